"""Functions that neural networks are made of, on arrays of any floating dtype.

They work inside compiled functions and, compiled by themselves, on plain arrays; Variables may be
passed wherever arrays are.

Invariants: no state of their own; `dropout` draws from the generator it is given.
Not here: optimisers (optim/), generators (random/).
"""

from .convolution import conv, conv_transpose
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
from .normalisation import batch_norm, batch_statistics, group_norm, local_response_norm
from .pooling import avg_pool, max_pool

__all__ = [
    "avg_pool", "batch_norm", "batch_statistics", "conv", "conv_transpose", "cross_entropy",
    "dense", "dropout", "gelu", "group_norm", "layer_norm", "local_response_norm", "log_softmax",
    "max_pool", "relu", "silu", "softmax",
]  # fmt: skip
