"""Windows over an axis as movement: `slide` and its transpose `unslide`.

Position r of a window, which is another axis of the array, sees the elements from
``r * dilation`` on, `stride` apart. Repeated along a new axis of the size of the window and slid
along it, an array becomes all its windows; what is folded over that axis is pooling.

Invariants: each is the other's gradient. `axes` is (the axis seen, the axis of positions);
strides and dilations are at least 1; no place is outside.
Not here: sums of products under windows (convolution.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Size, dim_text
from ..types import TensorType, Type
from .attributes import count, distinct_axes, exactly, only_tensor, same_dtype, sizes, tensor
from .batching import Each, Lanes, Operands, same, shifted
from .definition import Attrs, OpDef, SignatureError, Structure
from .tangents import linear

Rule = Sequence[Any]


def _slide_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    operand = only_tensor(operands)
    axis, along, size, stride, dilation = _arguments(operand, attrs)
    _need_inside(size, operand.shape[along], operand.shape[axis], stride, dilation)
    return (_resized(operand, axis, size),)


def _unslide_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    count(operands, 2)
    operand, fill = tensor(operands, 0), tensor(operands, 1, "fill")
    same_dtype(operand, fill)
    if fill.rank:
        raise SignatureError("TM208", f"needs one number as fill, got {fill}")
    axis, along, size, stride, dilation = _arguments(operand, attrs)
    _need_inside(operand.shape[axis], operand.shape[along], size, stride, dilation)
    return (_resized(operand, axis, size),)


def _arguments(operand: TensorType, attrs: Attrs) -> tuple[int, int, Size, int, int]:
    axes, dilation, size, stride = exactly(attrs, "axes", "dilation", "size", "stride")
    axis, along = distinct_axes(axes, operand.rank) if len(axes) == 2 else (-1, -1)
    if axis < 0:
        raise SignatureError("TM203", f"needs two axes, got {axes!r}")
    (size,) = sizes((size,), "size")
    for number in (stride, dilation):
        if type(number) is not int or number < 1:
            raise SignatureError(
                "TM256", f"needs strides and dilations of at least 1, got {stride} and {dilation}"
            )
    return axis, along, size, stride, dilation


def _need_inside(places: Size, positions: Size, extent: Size, stride: int, dilation: int) -> None:
    if places == 0 or positions == 0:
        return
    last = (places - 1) * stride + (positions - 1) * dilation
    beyond = last - extent
    if isinstance(beyond, int) and beyond >= 0:
        raise SignatureError(
            "TM207",
            f"has a window outside its axis: index {dim_text(last)} of {dim_text(extent)}",
        )


def _resized(operand: TensorType, axis: int, size: Size) -> TensorType:
    shape = (*operand.shape[:axis], size, *operand.shape[axis + 1 :])
    return TensorType(operand.dtype, shape)


# -- references


def _slide(x: Any, axes: Any, dilation: int, size: int, stride: int) -> Any:
    axis, along = axes
    shape = list(x.shape)
    shape[axis] = size
    made = np.empty(shape, x.dtype)
    for r in range(x.shape[along]):
        rows = slice(r * dilation, r * dilation + size * stride, stride)
        made[_at(x.ndim, along, r)] = x[_at(x.ndim, along, r, axis, rows)]
    return made


def _unslide(x: Any, fill: Any, axes: Any, dilation: int, size: int, stride: int) -> Any:
    axis, along = axes
    shape = list(x.shape)
    shape[axis] = size
    made = np.full(shape, fill, x.dtype)
    for r in range(x.shape[along]):
        rows = slice(r * dilation, r * dilation + x.shape[axis] * stride, stride)
        made[_at(x.ndim, along, r, axis, rows)] = x[_at(x.ndim, along, r)]
    return made


def _at(rank: int, along: int, r: int, axis: int = -1, rows: slice | None = None) -> Any:
    """The index of position r; of some rows of it."""
    index: list[Any] = [slice(None)] * rank
    index[along] = r
    if rows is not None:
        index[axis] = rows
    return tuple(index)


# -- gradients


def _slide_gradient(emit: Any, node: Any, cts: Rule) -> Rule:
    (x,), (ct,) = node.operands, cts
    zero = emit.constant(0, ct.type.dtype)
    return [_as(emit.unslide, node, x, ct, zero)]


def _unslide_gradient(emit: Any, node: Any, cts: Rule) -> Rule:
    (x, _), (ct,) = node.operands, cts
    none = emit.broadcast_to(emit.constant(0, ct.type.dtype), shape=x.type.shape)
    nothing = emit.constant(1, ct.type.dtype)
    outside = emit.mul(ct, _as(emit.unslide, node, ct, none, nothing))
    return [_as(emit.slide, node, x, ct), emit.sum(outside, axes=tuple(range(len(x.type.shape))))]


def _as(make: Any, node: Any, like: Any, *operands: Any) -> Any:
    """One of the two ops with the windows of `node`, its axis of the size that `like` has."""
    attrs = node.attrs
    return make(
        *operands,
        axes=attrs["axes"],
        dilation=attrs["dilation"],
        size=like.type.shape[attrs["axes"][0]],
        stride=attrs["stride"],
    )


def _unslide_lanes(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Rule:
    """Fills of their own are chosen where no window has put anything."""
    x, fill = operands
    axes = {"axes": tuple([axis + 1 for axis in node.attrs["axes"]])}
    rows = lanes.spread(emit, x)
    if not fill.own:
        return same(emit, node, [rows, fill.value], axes)
    dtype = rows.type.dtype
    zero, one = emit.constant(0, dtype), emit.constant(1, dtype)
    (made,) = same(emit, node, [rows, zero], axes)
    ones = emit.broadcast_to(one, shape=rows.type.shape)
    (inside,) = same(emit, node, [ones, zero], axes)
    outside = emit.reshape(fill.value, shape=(lanes.size, *[1] * x.rank))
    chosen = emit.select(emit.not_equal(inside.value, zero), made.value, outside)
    return [Each(chosen, True)]


slide = OpDef(
    name="slide",
    signature=_slide_type,
    reference=_slide,
    gradient=_slide_gradient,
    tangent=linear(),
    batching=shifted("axes"),
    structure=Structure.MOVEMENT,
    doc="Windows over an axis: element i of the first of `axes` at position r along the second is "
    "element ``i * stride + r * dilation`` of the operand there.",
)

unslide = OpDef(
    name="unslide",
    signature=_unslide_type,
    reference=_unslide,
    gradient=_unslide_gradient,
    tangent=linear(),
    batching=_unslide_lanes,
    structure=Structure.MOVEMENT,
    doc="The transpose of slide: element i at position r goes to ``i * stride + r * dilation``, "
    "all other elements are the fill.",
)

SLIDING: tuple[OpDef, ...] = (slide, unslide)
