"""Native execution: code loader, control block, thread pool, plan walker and the entry Python
calls.

Invariants: importing this package loads neither llvmlite nor ctypes callbacks into the process;
native code of ours is written in the typed subset of Python in `language` and kept in a cache as
position-independent bytes.
Not here: kernels (the CPU backend generates them) and where cached bytes lie (the runtime's cache).
"""
