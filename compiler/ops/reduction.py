"""Folding axes and running totals.

The op's name is the name of its monoid. Reduced axes are dropped; the dtype stays (the
frontend casts first where NumPy widens). On a tie, min and max give their cotangent to the first
element that attains it, as maximum and minimum do.

Invariants: `axes` is a sorted tuple; argmin and argmax have one axis and yield i64.
Not here: keepdims, where, initial, mean, var: compositions; the tree in which lanes are summed
(kernels).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..types import BF16, I64, TensorType, Type
from .attributes import distinct_axes, dtype_kind, just, one_axis, only_tensor
from .batching import shifted
from .definition import (
    Attrs,
    Canonical,
    Facts,
    Gradient,
    OpDef,
    Signature,
    SignatureError,
    Structure,
    Tangent,
)
from .record import conjugate
from .shaping import axes_back, axes_last, expand, filled, flip, zeros_like
from .tangents import linear

Rule = Sequence[Any]


def _reduced(kinds: str, what: str, needs_element: bool = False) -> Signature:
    """The signature of a reduction over `axes` that keeps the dtype."""

    def judge(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        operand = only_tensor(operands)
        dtype_kind(operand, kinds, what)
        axes = distinct_axes(just(attrs, "axes"), operand.rank)
        if list(axes) != sorted(axes):
            raise SignatureError("TM203", f"needs sorted axes, got {list(axes)}")
        if needs_element:
            _not_empty(operand, axes)
        kept = tuple([n for axis, n in enumerate(operand.shape) if axis not in axes])
        return (TensorType(operand.dtype, kept),)

    return judge


def _index_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    (kept,) = _reduced("biufc", "numbers", needs_element=True)(operands, attrs)
    if len(attrs["axes"]) != 1 or not isinstance(kept, TensorType):
        raise SignatureError("TM203", f"needs one axis, got {list(attrs['axes'])}")
    return (kept.with_dtype(I64),)


def _running_type(kinds: str) -> Signature:
    """The signature of a scan along `axis`."""

    def judge(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        operand = only_tensor(operands)
        dtype_kind(operand, kinds, "numbers")
        one_axis(just(attrs, "axis"), operand.rank)
        return (operand,)

    return judge


def _not_empty(operand: TensorType, axes: Sequence[int]) -> None:
    for axis in axes:
        if operand.shape[axis] == 0:
            raise SignatureError(
                "TM241", f"has no result over axis {axis} of size zero, got {operand}"
            )


def _wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """The NumPy function without widening; bf16 by way of f32."""

    def reference(x: Any, **attrs: Any) -> Any:
        axis = attrs["axes"] if "axes" in attrs else attrs["axis"]
        with np.errstate(all="ignore"):
            if x.dtype == BF16.numpy:
                return np.asarray(function(x.astype(np.float32), axis)).astype(x.dtype)
            return function(x, axis)

    return reference


def _running(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's scan in the operand's own type, bf16 too: every step is rounded."""

    def reference(x: Any, *, axis: int) -> Any:
        with np.errstate(all="ignore"):
            return function(x, axis=axis, dtype=x.dtype)

    return reference


def _index(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: Any, axes: tuple[int]) -> Any:
        return function(x.astype(np.float32) if x.dtype == BF16.numpy else x, axis=axes[0])

    return reference


def _no_axes(emit: Any, operands: Rule, attrs: Attrs) -> Any:
    """A reduction over no axis is its operand."""
    return None if attrs["axes"] else operands[0]


def _no_sum(emit: Any, operands: Rule, attrs: Attrs) -> Any:
    """A sum over no axis adds the operand to nothing: -0.0 becomes 0.0."""
    return None if attrs["axes"] else emit.add(operands[0], 0)


# -- gradients


def _sum_gradient(emit: Any, node: Any, cts: Rule) -> Rule:
    return [expand(emit, cts[0], node.operands[0].type.shape, node.attrs["axes"])]


def _extreme_gradient(place: str) -> Gradient:
    """The element that argmin or argmax (`place`) finds gets the whole cotangent."""

    def rule(emit: Any, node: Any, cts: Rule) -> Rule:
        (x,), axes = node.operands, node.attrs["axes"]
        chosen = _chosen(emit, x, axes, place)
        shape = chosen.type.shape
        spread = expand(emit, cts[0], shape, (len(shape) - 1,))
        zero = emit.constant(0, x.type.dtype)
        return [axes_back(emit, emit.select(chosen, spread, zero), x.type.shape, axes)]

    return rule


def _extreme_tangent(place: str) -> Tangent:
    """The tangent of the element that argmin or argmax (`place`) finds."""

    def rule(emit: Any, node: Any, tangents: Rule) -> Rule:
        (x,), axes = node.operands, node.attrs["axes"]
        rows = axes_last(emit, tangents[0], axes)
        kept = emit.select(_chosen(emit, x, axes, place), rows, emit.constant(0, x.type.dtype))
        return [emit.sum(kept, axes=(len(rows.type.shape) - 1,))]

    return rule


def _chosen(emit: Any, x: Any, axes: Sequence[int], place: str) -> Any:
    """Which element of [kept axes..., all of `axes` as one] is the extreme."""
    rows = axes_last(emit, x, axes)
    shape = rows.type.shape
    last = len(shape) - 1
    found = getattr(emit, place)(rows, axes=(last,))
    return emit.equal(emit.iota(size=shape[last]), expand(emit, found, shape, (last,)))


def _prod_gradient(emit: Any, node: Any, cts: Rule) -> Rule:
    (x,), axes = node.operands, node.attrs["axes"]
    others = _others(emit, x, axes)
    return [emit.mul(expand(emit, cts[0], x.type.shape, axes), conjugate(emit, others))]


def _prod_tangent(emit: Any, node: Any, tangents: Rule) -> Rule:
    (x,), axes = node.operands, node.attrs["axes"]
    return [emit.sum(emit.mul(tangents[0], _others(emit, x, axes)), axes=axes)]


def _others(emit: Any, x: Any, axes: Sequence[int]) -> Any:
    """For each element the product of all others over `axes`: right where elements are zero."""
    row = axes_last(emit, x, axes)
    axis = len(row.type.shape) - 1
    before = _exclusive_product(emit, row, axis)
    after = flip(emit, _exclusive_product(emit, flip(emit, row, axis), axis), axis)
    return axes_back(emit, emit.mul(before, after), x.type.shape, axes)


def _exclusive_product(emit: Any, x: Any, axis: int) -> Any:
    """The product of all elements before each one."""
    shape = x.type.shape
    low = tuple([1 if i == axis else 0 for i in range(len(shape))])
    none = (0,) * len(shape)
    shifted = emit.pad(x, emit.constant(1, x.type.dtype), low=low, high=none)
    running = emit.cumprod(shifted, axis=axis)
    return emit.slice(running, start=none, size=shape, step=(1,) * len(shape))


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
    (x,), (y,), axis = node.operands, node.results, node.attrs["axis"]
    rows, prefixes, given = (axes_last(emit, v, (axis,)) for v in (x, y, cts[0]))
    shape = rows.type.shape
    last = len(shape) - 1
    count = shape[last]
    places = emit.broadcast_to(emit.iota(size=count), shape=shape)
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
    axes = tuple(range(last + 1))
    made, _ = emit.scatter_add(zeros_like(emit, rows), given, *lead, since, axes=axes)
    return [axes_back(emit, made, x.type.shape, (axis,))]


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


def _reduction(
    name: str,
    signature: Signature,
    reference: Callable[..., Any],
    doc: str,
    facts: Facts,
    gradient: Gradient | None = None,
    tangent: Tangent | None = None,
    canonical: Canonical | None = _no_axes,
) -> OpDef:
    return OpDef(
        name=name,
        signature=signature,
        reference=reference,
        doc=doc,
        structure=Structure.REDUCTION,
        gradient=gradient,
        tangent=tangent,
        batching=shifted("axes"),
        canonical=None if signature is _index_type else canonical,
        facts=facts,
    )


_NUMBERS = _reduced("iufc", "numbers")
_ORDERED = _reduced("biufc", "numbers", needs_element=True)
_BOOLS = _reduced("b", "bools")
_EXACT = Facts(associative=True, commutative=True, idempotent=True)
_NO_GRADIENT = Facts(associative=True, commutative=True, idempotent=True, differentiable=False)


def _typed_sum(x: Any, axis: Any) -> Any:
    return np.sum(x, axis=axis, dtype=x.dtype)


def _typed_prod(x: Any, axis: Any) -> Any:
    return np.prod(x, axis=axis, dtype=x.dtype)


REDUCTION: tuple[OpDef, ...] = (
    _reduction(
        "sum", _NUMBERS, _wide(_typed_sum), "The sum over `axes`.",
        Facts(commutative=True), _sum_gradient, linear(), _no_sum,
    ),
    _reduction(
        "prod", _NUMBERS, _wide(_typed_prod), "The product over `axes`.",
        Facts(commutative=True), _prod_gradient, _prod_tangent,
    ),
    _reduction(
        "min", _ORDERED, _wide(np.min), "The least element over `axes`; NaN where there is one.",
        _EXACT, _extreme_gradient("argmin"), _extreme_tangent("argmin"),
    ),
    _reduction(
        "max", _ORDERED, _wide(np.max), "The greatest element over `axes`; NaN where there is one.",
        _EXACT, _extreme_gradient("argmax"), _extreme_tangent("argmax"),
    ),
    _reduction(
        "any", _BOOLS, lambda x, axes: np.any(x, axis=axes),
        "True where an element over `axes` is.", _NO_GRADIENT,
    ),
    _reduction(
        "all", _BOOLS, lambda x, axes: np.all(x, axis=axes),
        "True where all elements over `axes` are.", _NO_GRADIENT,
    ),
    _reduction(
        "argmin", _index_type, _index(np.argmin),
        "The index of the least element along the one axis in `axes`: the first of equals, the "
        "first NaN where there is one.", Facts(differentiable=False),
    ),
    _reduction(
        "argmax", _index_type, _index(np.argmax),
        "The index of the greatest element along the one axis in `axes`: the first of equals, "
        "the first NaN where there is one.", Facts(differentiable=False),
    ),
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
        structure=Structure.SCAN,
        doc="The least of each element and all before it along `axis`; from a NaN on, NaN.",
    ),
    OpDef(
        name="cummax",
        signature=_running_type("biufc"),
        reference=_running(np.maximum.accumulate),
        step="maximum",
        gradient=_extreme_so_far_gradient,
        structure=Structure.SCAN,
        doc="The greatest of each element and all before it along `axis`; from a NaN on, NaN.",
    ),
)  # fmt: skip
