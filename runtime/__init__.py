"""The runtime: executes plans and owns state, buffers, caches and checkpoints."""
