"""Native execution: code loader, control block, thread pool, plan walker and call entry.

Invariants: importing this package does not load LLVM; native code of ours is written in the typed
subset of Python in `language` and kept in a cache as position-independent bytes.
Not here: kernels (the CPU backend generates them) and where cached bytes lie (the runtime's cache).
"""
