"""The graph and what can be said about it: made, judged, printed, read, run, hashed, rewritten."""
