"""Running totals: each element and all before it along an axis.

Invariants: elements are taken in order; the dtype stays (the frontend casts first where NumPy
widens). On a tie, the extreme so far is the first element that attains it.
Not here: folds of whole axes (reduction.py), scans by any elementwise op (stepping.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..types import I64, Type
from .attributes import dtype_kind, just, one_axis, only_tensor
from .batching import shifted
from .definition import (
    Attrs,
    OpDef,
    Signature,
    Structure,
)
from .record import conjugate
from .shaping import axes_back, axes_last, flip, zeros_like
from .tangents import linear

Rule = Sequence[Any]


def _running_type(kinds: str) -> Signature:
    """The signature of a scan along `axis`."""

    def judge(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        operand = only_tensor(operands)
        dtype_kind(operand, kinds, "numbers")
        one_axis(just(attrs, "axis"), operand.rank)
        return (operand,)

    return judge


def _running(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's scan in the operand's own type, bf16 too: every step is rounded."""

    def reference(x: Any, *, axis: int) -> Any:
        with np.errstate(all="ignore"):
            return function(x, axis=axis, dtype=x.dtype)

    return reference


def _reverse_sum(emit: Any, x: Any, axis: int) -> Any:
    return flip(emit, emit.cumsum(flip(emit, x, axis), axis=axis), axis)


def _cumsum_gradient(emit: Any, node: Any, cts: Rule) -> Rule:
    return [_reverse_sum(emit, cts[0], node.attrs["axis"])]


def _cumprod_gradient(emit: Any, node: Any, cts: Rule) -> Rule:
    """Right where elements are zero: beyond the first zero only the zero itself counts.

    Before the first zero it is (sum of later ct * y) / x; at the first zero the same with that
    zero read as 1; after it, zero. Second derivatives are right where no element is zero.
    """
    (x,), (y,), (ct,) = node.operands, node.results, cts
    axis, one = node.attrs["axis"], emit.constant(1, x.type.dtype)
    is_zero, none, first = _zeros_along(emit, x, axis)
    whole = emit.cumprod(emit.select(first, one, x), axis=axis)
    blank = zeros_like(emit, x)
    ahead = emit.select(none, emit.mul(ct, conjugate(emit, y)), blank)
    behind = emit.select(none, blank, emit.mul(ct, conjugate(emit, whole)))
    safe = conjugate(emit, emit.select(is_zero, one, x))
    usual = emit.div(_reverse_sum(emit, ahead, axis), safe)
    at_zero = _reverse_sum(emit, behind, axis)
    return [emit.select(first, at_zero, emit.select(none, usual, blank))]


def _extreme_so_far_gradient(emit: Any, node: Any, cts: Rule) -> Rule:
    """Each element gets the cotangents of the prefixes it is the extreme of."""
    axis = (node.attrs["axis"],)
    rows, given = (axes_last(emit, v, axis) for v in (node.operands[0], cts[0]))
    places, axes = _extremes_so_far(emit, node)
    made, _ = emit.scatter_add(zeros_like(emit, rows), given, *places, axes=axes)
    return [axes_back(emit, made, node.operands[0].type.shape, axis)]


def _extreme_so_far_tangent(emit: Any, node: Any, tangents: Rule) -> Rule:
    """The tangent of the element that is the extreme."""
    axis = (node.attrs["axis"],)
    places, axes = _extremes_so_far(emit, node)
    made, _ = emit.gather(axes_last(emit, tangents[0], axis), *places, axes=axes)
    return [axes_back(emit, made, node.operands[0].type.shape, axis)]


def _extremes_so_far(emit: Any, node: Any) -> tuple[list[Any], tuple[int, ...]]:
    """Where the extreme of each prefix is, for all axes of the rows, the scanned axis last."""
    (x,), (y,), axis = node.operands, node.results, node.attrs["axis"]
    prefixes = axes_last(emit, y, (axis,))
    shape = prefixes.type.shape
    last = len(shape) - 1
    places = emit.broadcast_to(emit.iota(size=shape[last]), shape=shape)
    before = emit.pad(
        prefixes, emit.constant(0, x.type.dtype), low=(0,) * last + (1,), high=(0,) * (last + 1)
    )
    before = emit.slice(before, start=(0,) * (last + 1), size=shape, step=(1,) * (last + 1))
    first = emit.equal(places, emit.constant(0, I64))
    is_new = emit.logical_or(first, emit.not_equal(prefixes, before))
    since = emit.cummax(emit.select(is_new, places, emit.constant(0, I64)), axis=last)
    lead = [
        emit.reshape(
            emit.iota(size=n), shape=tuple([n if i == a else 1 for i in range(len(shape))])
        )
        for a, n in enumerate(shape[:last])
    ]
    return [*lead, since], tuple(range(last + 1))


def _cumprod_tangent(emit: Any, node: Any, tangents: Rule) -> Rule:
    """Before the first zero y * (sum of tangents / x so far); from it on its tangent times the
    product with that zero read as 1."""
    (x,), (y,), (tangent,) = node.operands, node.results, tangents
    axis, one = node.attrs["axis"], emit.constant(1, x.type.dtype)
    is_zero, none, first = _zeros_along(emit, x, axis)
    blank = zeros_like(emit, x)
    parts = emit.select(is_zero, blank, emit.div(tangent, emit.select(is_zero, one, x)))
    usual = emit.mul(y, emit.cumsum(parts, axis=axis))
    whole = emit.cumprod(emit.select(first, one, x), axis=axis)
    behind = emit.mul(whole, emit.cumsum(emit.select(first, tangent, blank), axis=axis))
    return [emit.select(none, usual, behind)]


def _zeros_along(emit: Any, x: Any, axis: int) -> tuple[Any, Any, Any]:
    """Where elements are zero, where none was so far, and where the first one is."""
    is_zero = emit.equal(x, emit.constant(0, x.type.dtype))
    zeros = emit.cumsum(emit.cast(is_zero, dtype=I64), axis=axis)
    none = emit.equal(zeros, emit.constant(0, I64))
    first = emit.logical_and(is_zero, emit.equal(zeros, emit.constant(1, I64)))
    return is_zero, none, first


RUNNING: tuple[OpDef, ...] = (
    OpDef(
        name="cumsum",
        signature=_running_type("iufc"),
        reference=_running(np.cumsum),
        gradient=_cumsum_gradient,
        tangent=linear(),
        batching=shifted("axis"),
        structure=Structure.SCAN,
        doc="Each element and all before it along `axis`, added from left to right.",
    ),
    OpDef(
        name="cumprod",
        signature=_running_type("iufc"),
        reference=_running(np.cumprod),
        gradient=_cumprod_gradient,
        tangent=_cumprod_tangent,
        batching=shifted("axis"),
        structure=Structure.SCAN,
        doc="Each element and all before it along `axis`, multiplied from left to right.",
    ),
    OpDef(
        name="cummin",
        signature=_running_type("biufc"),
        reference=_running(np.minimum.accumulate),
        step="minimum",
        gradient=_extreme_so_far_gradient,
        tangent=_extreme_so_far_tangent,
        batching=shifted("axis"),
        structure=Structure.SCAN,
        doc="The least of each element and all before it along `axis`; from a NaN on, NaN.",
    ),
    OpDef(
        name="cummax",
        signature=_running_type("biufc"),
        reference=_running(np.maximum.accumulate),
        step="maximum",
        gradient=_extreme_so_far_gradient,
        tangent=_extreme_so_far_tangent,
        batching=shifted("axis"),
        structure=Structure.SCAN,
        doc="The greatest of each element and all before it along `axis`; from a NaN on, NaN.",
    ),
)
