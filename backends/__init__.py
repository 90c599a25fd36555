"""The backends: implementations of the runtime's `Backend` protocol."""
