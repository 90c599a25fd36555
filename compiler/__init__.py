"""The compiler: pure functions from graph to plan.

Invariants: imports only the standard library, NumPy and ml_dtypes; no files, clocks, threads,
devices, sockets or environment variables.
"""
