"""Ops that mean something to gradients alone; passes see through them.

Not here: the transform that heeds them (transforms/grad.py).
"""

from __future__ import annotations

import numpy as np

from ..types import DTYPES
from .definition import Facts, OpDef
from .record import record
from .signature import each

OPS: tuple[OpDef, ...] = (
    record("stop_gradient", np.array, lambda x: x,
           "The operand itself; no gradient flows through.",
           taken=each(DTYPES),
           facts=Facts(idempotent=True, transparent=True, differentiable=False),
           exact_halves=True),
    record("alias", np.array, lambda x: x,
           "The operand itself, as a value of its own: a gradient by it does not see other uses "
           "of the operand.",
           taken=each(DTYPES), gradient=lambda emit, node, cts: [cts[0]],
           facts=Facts(transparent=True), exact_halves=True),
)  # fmt: skip
