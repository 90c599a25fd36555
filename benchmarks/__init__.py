"""The benchmark suite: tracemill beside its peers, in one run, at equal numerics.

One process per contender (spinning thread pools disturb each other), alternating blocks, sizes
drawn per run from a stated range, medians with 95% intervals, accuracy beside time.
`python -m benchmarks --help` says how to choose; README.md in this folder says how to read it.
"""
