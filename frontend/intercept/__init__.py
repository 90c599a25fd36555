"""How user code is shown traced functions in place of NumPy's, Python's and its own."""
