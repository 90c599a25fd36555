"""Shapes and axes: reshape, transpose, squeeze, broadcast_to, flip and their relatives.

Invariants: what NumPy gives as a view is a view here.
Not here: joining and repeating (joining.py), subscripts (indexing.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.dims import Size, product
from tracemill.compiler.ops.signature import shape_text

from ..tracing.integer import user_size
from ..tracing.state import fail, running
from ..tracing.tensor import TracedArray, TracedScalar, fresh
from ..tracing.views import (
    Broadcast,
    Reshape,
    Slice,
    Transpose,
    reshaped_strides,
)
from .axes import all_axes, listed_axes, one_axis, reshape_argument, shape_argument
from .memory_order import is_fortran, lies_in, settle_layout, slowest_first
from .operands import array_of
from .words import broadcast_shapes as broadcast_sizes
from .words import broadcast_to as spread_to


def view_of(a: Any) -> TracedArray:
    """`a` as an array a view can be taken of."""
    found = array_of(a)
    return found if type(found) is TracedArray else fresh(running(), found.value)


def reshape(
    a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None
) -> Any:
    """np.reshape"""
    shape = newshape if shape is None else shape
    array = view_of(a)
    if order == "A":
        order = "F" if is_fortran(array) else "C"
    if order == "F":
        new = reshape_argument(array.tracing, array.tensor_type.shape, shape)
        flipped = _reshaped(transpose(array), new[::-1], copy)
        return transpose(flipped)
    new = reshape_argument(array.tracing, array.tensor_type.shape, shape)
    return a if type(a) is TracedScalar and not new else _reshaped(array, new, copy)


def reshape_method(a: Any, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    """ndarray.reshape"""
    wanted = shape[0] if len(shape) == 1 else shape
    return reshape(a, wanted, order, copy=copy)


def _reshaped(array: TracedArray, new: tuple[Size, ...], copy: Any = None) -> TracedArray:
    """A view where NumPy gives one, else a copy."""
    trace = array.tracing
    shape = array.tensor_type.shape
    settles = copy is not True and not array.is_plain and new != shape
    if settles:
        shape = settle_layout(array, new)
        new = tuple(map(trace.sizes.normal, new))
    have, want = product(shape), product(new)
    if have != want:  # equal by a guard on what divides what: cut to the same expression
        row = _reshaped(array, (have,), copy).view_by(Slice((0,), (want,), (1,)))
        return row.view_by(Reshape(new))
    step = Reshape(new)
    if copy is True:
        return fresh(trace, step.read(trace, array.value))
    if not settles or reshaped_strides(shape, array.element_strides(), new) is not None:
        return array.view_by(step)
    if copy is False:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return fresh(trace, step.read(trace, array.value))


def ravel(a: Any, order: str = "C") -> Any:
    """np.ravel: a view where the elements lie side by side in the order asked for"""
    array = _read_in(view_of(a), order)
    return reshape(array, -1) if lies_in(array, "C") else fresh(running(), reshape(array, -1).value)


def flatten(a: Any, order: str = "C") -> Any:
    """ndarray.flatten"""
    return fresh(running(), reshape(_read_in(view_of(a), order), -1).value)


def _read_in(array: TracedArray, order: str) -> Any:
    """A view whose elements in C order are the array's in `order`: C, F, A or K."""
    if order == "F":
        return transpose(array)
    if array.is_plain or order == "C":
        return array
    if order == "K":
        settle_layout(array)
        return transpose(array, slowest_first(array))
    return transpose(array) if is_fortran(array) else array


def transpose(a: Any, axes: Any = None) -> Any:
    """np.transpose"""
    array = view_of(a)
    rank = array.ndim
    if axes is None:
        perm = tuple(range(rank))[::-1]
    else:
        perm = listed_axes(axes, rank)
        if len(perm) != rank:
            raise fail("TM208", "axes don't match array")
    if type(a) is TracedScalar:
        return a
    return array.view_by(Transpose(perm)) if rank > 1 else alias(array)


def transpose_method(a: Any, *axes: Any) -> Any:
    """ndarray.transpose"""
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list)):
        return transpose(a, axes[0])
    return transpose(a, axes or None)


def matrix_transpose(x: Any, /) -> Any:
    """np.matrix_transpose and ndarray.mT"""
    rank = view_of(x).ndim
    if rank < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {rank}")
    return swapaxes(x, -1, -2)


def swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    """np.swapaxes"""
    array = view_of(a)
    perm = list(range(array.ndim))
    i, j = one_axis(axis1, array.ndim), one_axis(axis2, array.ndim)
    perm[i], perm[j] = perm[j], perm[i]
    return array.view_by(Transpose(tuple(perm)))


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """np.moveaxis"""
    array = view_of(a)
    old, new = listed_axes(source, array.ndim), listed_axes(destination, array.ndim)
    if len(old) != len(new):
        raise ValueError(
            "`source` and `destination` arguments must have the same number of elements"
        )
    order = [axis for axis in range(array.ndim) if axis not in old]
    for place, axis in sorted(zip(new, old)):
        order.insert(place, axis)
    return array.view_by(Transpose(tuple(order)))


def rollaxis(a: Any, axis: Any, start: Any = 0) -> Any:
    """np.rollaxis"""
    array = view_of(a)
    rank = array.ndim
    source = one_axis(axis, rank)
    place = start + rank if start < 0 else start
    order = [i for i in range(rank) if i != source]
    order.insert(place - 1 if source < place else place, source)
    return array.view_by(Transpose(tuple(order)))


def expand_dims(a: Any, axis: Any) -> Any:
    """np.expand_dims"""
    array = view_of(a)
    items = axis if isinstance(axis, tuple | list) else (axis,)
    axes = listed_axes(tuple(items), array.ndim + len(items))
    rest = iter(array.tensor_type.shape)
    rank = array.ndim + len(axes)
    return array.view_by(Reshape(tuple([1 if i in axes else next(rest) for i in range(rank)])))


def squeeze(a: Any, axis: Any = None) -> Any:
    """np.squeeze"""
    array = view_of(a)
    shape = array.tensor_type.shape
    if axis is None:
        sizes = array.tracing.sizes
        axes = tuple(
            i for i, n in enumerate(shape) if sizes.equal(n, 1, "squeeze drops axes of size 1")
        )
        shape = array.tensor_type.shape
    else:
        axes = listed_axes(axis, len(shape)) if shape else all_axes(axis, 0, scalar_ok=True)
        for i in axes:
            if not array.tracing.sizes.equal(shape[i], 1, "squeeze takes axes of size 1"):
                raise ValueError(
                    "cannot select an axis to squeeze out which has size not equal to one"
                )
    if not axes:
        return a if type(a) is TracedScalar else alias(array)
    return array.view_by(Reshape(tuple([n for i, n in enumerate(shape) if i not in axes])))


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """np.broadcast_to"""
    found = view_of(array)
    wanted = shape_argument(shape)
    trace = found.tracing
    have = found.tensor_type.shape
    if len(have) > len(wanted):
        raise fail(
            "TM205",
            f"input operand has more dimensions than allowed: {shape_text(have)} against "
            f"{shape_text(wanted)}",
        )
    spread_to(trace, found.value, wanted)  # decides and checks sizes
    return found.view_by(Broadcast(tuple([trace.sizes.normal(n) for n in wanted])))


def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """np.broadcast_arrays"""
    trace = running()
    arrays = [view_of(a) for a in args]
    shape = broadcast_sizes(trace, [a.tensor_type.shape for a in arrays])
    return tuple(a if a.tensor_type.shape == shape else broadcast_to(a, shape) for a in arrays)


def broadcast_shapes(*args: Any) -> Any:
    """np.broadcast_shapes"""
    trace = running()
    shape = broadcast_sizes(trace, [shape_argument(s) for s in args])
    return tuple(user_size(trace, n) for n in shape)


def flip(m: Any, axis: Any = None) -> Any:
    """np.flip"""
    array = view_of(m)
    shape = array.tensor_type.shape
    axes = tuple(range(len(shape))) if axis is None else listed_axes(axis, len(shape))
    if not shape:  # NumPy takes all of it as an element
        return TracedScalar(array.tracing, array.value)
    turned = [i in axes and n != 1 for i, n in enumerate(shape)]
    start = tuple([n - 1 if turn else 0 for turn, n in zip(turned, shape)])
    return array.view_by(Slice(start, shape, tuple([-1 if turn else 1 for turn in turned])))


def fliplr(m: Any) -> Any:
    """np.fliplr"""
    if view_of(m).ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip(m, 1)


def flipud(m: Any) -> Any:
    """np.flipud"""
    if view_of(m).ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """np.rot90"""
    first, second = listed_axes(tuple(axes), view_of(m).ndim)
    k %= 4
    if k == 0:
        return alias(view_of(m))
    if k == 2:
        return flip(m, (first, second))
    if k == 1:
        return swapaxes(flip(m, second), first, second)
    return flip(swapaxes(m, first, second), second)


def atleast_1d(*arys: Any) -> Any:
    """np.atleast_1d"""
    made = tuple(a.reshape(1) if a.ndim == 0 else a for a in map(view_of, arys))
    return made[0] if len(made) == 1 else made


def atleast_2d(*arys: Any) -> Any:
    """np.atleast_2d"""
    made = []
    for a in map(view_of, arys):
        made.append(a.reshape(1, 1) if a.ndim == 0 else expand_dims(a, 0) if a.ndim == 1 else a)
    return made[0] if len(made) == 1 else tuple(made)


def atleast_3d(*arys: Any) -> Any:
    """np.atleast_3d"""
    made = []
    for a in map(view_of, arys):
        if a.ndim < 2:
            a = a.reshape(1, -1, 1) if a.ndim else a.reshape(1, 1, 1)
        made.append(expand_dims(a, 2) if a.ndim == 2 else a)
    return made[0] if len(made) == 1 else tuple(made)


def alias(array: TracedArray) -> TracedArray:
    """Another array object on the same memory."""
    return array.view_by(Reshape(array.tensor_type.shape))


FUNCTIONS: dict[Any, Any] = {
    np.reshape: reshape, np.ravel: ravel, np.transpose: transpose, np.permute_dims: transpose,
    np.matrix_transpose: matrix_transpose, np.linalg.matrix_transpose: matrix_transpose,
    np.swapaxes: swapaxes, np.moveaxis: moveaxis, np.rollaxis: rollaxis,
    np.expand_dims: expand_dims, np.squeeze: squeeze, np.broadcast_to: broadcast_to,
    np.broadcast_arrays: broadcast_arrays, np.broadcast_shapes: broadcast_shapes,
    np.flip: flip, np.fliplr: fliplr, np.flipud: flipud, np.rot90: rot90,
    np.atleast_1d: atleast_1d, np.atleast_2d: atleast_2d, np.atleast_3d: atleast_3d,
}  # fmt: skip

METHODS: dict[str, Any] = {
    "reshape": reshape_method, "ravel": ravel, "flatten": flatten,
    "transpose": transpose_method, "swapaxes": swapaxes, "squeeze": squeeze,
}  # fmt: skip

ATTRIBUTES = {"T": transpose, "mT": matrix_transpose}
