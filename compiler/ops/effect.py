"""What is seen outside besides state: checks and prints.

Where a result is a token, the reference returns None, or the text of its failure; the reference
of `print` returns the text to show. Its template is that of `str.format`, with fields by position
alone: ``{}``, or ``{:.3f}``, which is applied to each number of an array.

Invariants: each yields one token; tokens that the graph returns are never pruned.
Not here: what happens when a check fails (the error slot of a call; the evaluator raises).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any

import numpy as np

from ..types import TOKEN, DType, Type
from .attributes import dtype_kind, exactly, only_tensor, tensor
from .batching import Each, Lanes, Operands
from .definition import Attrs, Facts, OpDef, SignatureError, Structure

_OF_CHECKS: Mapping[str, type] = {"dtype": DType, "raises": str, "arguments": str}


def _check_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    dtype_kind(only_tensor(operands), "b", "bools")
    exactly(attrs, "code", *attrs.keys() & _OF_CHECKS.keys())
    for name, kind in {"code": str, **_OF_CHECKS}.items():
        if name in attrs and not isinstance(attrs[name], kind):
            raise SignatureError("TM203", f"needs {name} as {kind.__name__}, got {attrs[name]!r}")
    return (TOKEN,)


def _print_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    (text,) = exactly(attrs, "text")
    zeros = [tensor(operands, i).dtype.numpy.type(0) for i in range(len(operands))]
    if not isinstance(text, str):
        raise SignatureError("TM203", f"needs a text, got {text!r}")
    fill(text, zeros)
    return (TOKEN,)


def fill(text: str, values: Sequence[Any]) -> str:
    """The template with its fields replaced. Raises SignatureError where they do not fit."""
    try:
        pieces = list(Formatter().parse(text))
        fields = [piece for piece in pieces if piece[1] is not None]
        if len(fields) != len(values) or any(name or kind for _, name, _, kind in fields):
            raise ValueError(f"one {{}} for each of {len(values)} values")
        rest = iter(values)
        made = [
            literal + ("" if name is None else _shown(next(rest), spec or ""))
            for literal, name, spec, _ in pieces
        ]
    except ValueError as problem:
        raise SignatureError("TM203", f"needs a fitting text, got {text!r}: {problem}") from None
    return "".join(made)


def _shown(value: Any, spec: str) -> str:
    if not spec:
        return f"{value}"
    array = np.asarray(value)
    if array.dtype == object or array.dtype.kind in "US":
        return format(value, spec)
    if array.ndim == 0:
        return format(array.item(), spec)
    shown: Any = {"all": lambda number: format(number.item(), spec)}
    return np.array2string(array, formatter=shown)


def _check(
    ok: Any, code: str, dtype: DType | None = None, raises: str = "", arguments: str = ""
) -> str | None:
    return None if np.all(ok) else ""


def _print(*arrays: Any, text: str) -> str:
    return fill(text, arrays)


def _check_lanes(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    """Of lanes that are active."""
    values = [lanes.harmless(emit, each, True).value for each in operands]
    return [Each(emit.emit(node.op, values, node.attrs), False)]


def _print_lanes(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    """All lanes at once, as one array."""
    values = [each.value for each in operands]
    return [Each(emit.emit(node.op, values, node.attrs), False)]


check = OpDef(
    name="check",
    signature=_check_type,
    reference=_check,
    batching=_check_lanes,
    structure=Structure.EFFECT,
    facts=Facts(can_fail=True, differentiable=False),
    doc="Fail the whole call with the error `code` unless every element is true. `dtype`, where it "
    "is given, is the element type that the error speaks of. `raises` and `arguments` are an "
    "exception of the user's to raise instead.",
)

print_ = OpDef(
    name="print",
    signature=_print_type,
    reference=_print,
    batching=_print_lanes,
    structure=Structure.EFFECT,
    facts=Facts(differentiable=False),
    doc="Show `text`, each {} or {:spec} of it replaced by an operand, in program order.",
)

EFFECT: tuple[OpDef, ...] = (check, print_)
