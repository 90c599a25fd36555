"""Random numbers that are reproducible on any number of threads and devices.

A `Generator` is counter-based: the i-th number of a stream is a function of the seed and of i
alone, so it does not matter who computes it. Its state is a Variable: drawing inside a compiled
function advances it when the call commits, and checkpoints save it with the rest.
"""

from .generator import Generator

__all__ = ["Generator"]
