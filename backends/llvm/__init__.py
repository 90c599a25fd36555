"""The llvm core shared by the cpu and cuda back ends: scalar words, loops, modules, native code."""
