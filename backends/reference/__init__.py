"""The reference back end: NumPy and the kernel interpreter; what the others must agree with."""
