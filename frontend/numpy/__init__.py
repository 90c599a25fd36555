"""NumPy's functions, methods and operators in terms of graph ops, for traced arguments."""
