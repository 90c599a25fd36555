"""Functions that neural networks are made of, on arrays of any floating dtype.

They work inside compiled functions and, compiled by themselves, on plain arrays; Variables may be
passed wherever arrays are.

Invariants: no state of their own; `dropout` draws from the generator it is given.
Not here: optimisers (optim/), generators (random/).
"""

from .functions import (
    cross_entropy,
    dense,
    dropout,
    gelu,
    layer_norm,
    log_softmax,
    relu,
    silu,
    softmax,
)

__all__ = [
    "cross_entropy", "dense", "dropout", "gelu", "layer_norm", "log_softmax", "relu", "silu",
    "softmax",
]  # fmt: skip
