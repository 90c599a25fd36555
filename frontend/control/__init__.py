"""Control flow: `cond`, `while_loop`, `fori_loop`, `scan`, and statements of Python.

`functions` is what users call, `traced` the nodes, `carried` what a loop hands from trip to trip.
`branches`, `python_loops` and `rolled` are what the hooks of intercept/plain_flow.py come to.

Not here: tracing of a region (tracing/regions.py), how loops run (compiler/assemble_flow.py).
"""
