"""Control flow: `cond`, `while_loop`, `fori_loop`, `scan`.

`functions` is what users call, `traced` the nodes, `carried` what a loop hands from trip to trip.

Not here: tracing of a region (tracing/regions.py), how loops run (compiler/assemble_flow.py).
"""
