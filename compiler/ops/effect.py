"""What is seen outside besides state: checks and prints.

Where a result is a token, the reference returns None, or the text of its failure; the reference
of `print` returns the text to show.

Invariants: each yields one token; tokens that the graph returns are never pruned.
Not here: what happens when a check fails (the error slot of a call; the evaluator raises).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..types import TOKEN, Type
from .attributes import dtype_kind, exactly, only_tensor, tensor
from .definition import Attrs, Facts, OpDef, SignatureError, Structure


def _check_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    dtype_kind(only_tensor(operands), "b", "bools")
    (code,) = exactly(attrs, "code")
    if not isinstance(code, str):
        raise SignatureError("TM203", f"needs an error code, got {code!r}")
    return (TOKEN,)


def _print_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    (text,) = exactly(attrs, "text")
    for index in range(len(operands)):
        tensor(operands, index)
    if not isinstance(text, str) or text.count("{}") != len(operands):
        raise SignatureError("TM203", f"needs a text with one {{}} for each operand, got {text!r}")
    return (TOKEN,)


def _check(ok: Any, code: str) -> str | None:
    return None if np.all(ok) else ""


def _print(*arrays: Any, text: str) -> str:
    pieces = text.split("{}")
    return pieces[0] + "".join(f"{array}{piece}" for array, piece in zip(arrays, pieces[1:]))


check = OpDef(
    name="check",
    signature=_check_type,
    reference=_check,
    structure=Structure.EFFECT,
    facts=Facts(can_fail=True, differentiable=False),
    doc="Fail the whole call with the error `code` unless every element is true.",
)

print_ = OpDef(
    name="print",
    signature=_print_type,
    reference=_print,
    structure=Structure.EFFECT,
    facts=Facts(differentiable=False),
    doc="Show `text`, each {} of it replaced by an operand. Prints appear in program order.",
)

EFFECT: tuple[OpDef, ...] = (check, print_)
