"""Folding axes.

The op's name is the name of its monoid. Reduced axes are dropped; the dtype stays (the
frontend casts first where NumPy widens). On a tie, min and max give their cotangent to the first
element that attains it, as maximum and minimum do.

Invariants: `axes` is a sorted tuple; argmin and argmax have one axis and yield i64.
Not here: running totals (running.py); keepdims, where, initial, mean, var: compositions; the tree
in which lanes are summed (kernels).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..types import BF16, I64, TensorType, Type
from .attributes import distinct_axes, dtype_kind, just, only_tensor
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
from .shaping import axes_back, axes_last, expand, flip
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
)  # fmt: skip
