"""Functions of functions: derivatives in both modes.

Not here: gradients of losses (differentiation.py), the transforms of graphs (compiler/transforms).
"""
