"""The cpu back end: machine code for the host or another processor of its family."""
