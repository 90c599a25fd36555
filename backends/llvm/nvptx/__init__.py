"""Kernels on a grid (compiler/kernel/grid.py) as code for NVIDIA GPUs, over the llvm core."""
