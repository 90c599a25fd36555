"""Products of matrices and their relatives, all as contractions.

Not here: decompositions and solvers (they come as library ops).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracemill.compiler.dims import Size, product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.ops.signature import shape_text
from tracemill.compiler.types import BF16, BOOL, I64

from ..tracing.state import Trace, fail, require_dtype, running
from ..tracing.tensor import fresh, result
from .axes import one_axis
from .memory_order import in_order
from .operands import array_of, dtype_as_arrays, value_of, weak_type
from .ufuncs import call as multiply
from .ufuncs import deliver
from .words import broadcast_shapes, expand, reshape, spread, transpose

Pair = tuple[int, int]


def contract(
    trace: Trace, a: Value, b: Value, axes: Sequence[Pair], batch: Sequence[Pair] = ()
) -> Value:
    """Sums of products over `axes`; of bools, whether any product holds."""
    dtype = a.tensor.dtype
    if dtype is BOOL:
        made = trace.emit("contract", trace.cast(a, I64), trace.cast(b, I64),
                          axes=tuple(axes), batch=tuple(batch))  # fmt: skip
        return trace.cast(made, BOOL)
    value: Value = trace.emit("contract", a, b, axes=tuple(axes), batch=tuple(batch))
    return value


def _pair(trace: Trace, a: Any, b: Any, dtype: Any = None) -> tuple[Value, Value]:
    found = require_dtype(dtype) if dtype is not None else dtype_as_arrays(a, b)
    return trace.cast(value_of(a), found), trace.cast(value_of(b), found)


def _ufunc_pair(trace: Trace, a: Any, b: Any, dtype: Any = None) -> tuple[Value, Value]:
    """The same for NumPy's ufuncs, which have no loop for bfloat16 and take another."""
    left, right = value_of(a), value_of(b)
    given = (left.tensor.dtype, right.tensor.dtype)
    if BF16 in given and dtype is None:
        dtype = np.matmul.resolve_dtypes((given[0].numpy, given[1].numpy, None))[2]
    return _pair(trace, a, b, dtype)


def matmul(
    x1: Any,
    x2: Any,
    out: Any = None,
    *,
    casting: str = "same_kind",
    order: str = "K",
    dtype: Any = None,
    subok: bool = True,
    axes: Any = None,
    axis: Any = None,
    signature: Any = None,
) -> Any:
    """np.matmul"""
    trace = running()
    if axes is not None or axis is not None:
        raise fail("TM111", "np.matmul with axes= is not supported", hint="use np.moveaxis")
    _numbers_only(x1, x2)
    a, b = _ufunc_pair(trace, x1, x2, dtype)
    if a.tensor.rank == 0 or b.tensor.rank == 0:
        which = 0 if a.tensor.rank == 0 else 1
        raise fail(
            "TM208",
            f"matmul: Input operand {which} does not have enough dimensions (it is a scalar)",
            hint="multiply by a number with *",
        )
    made = matrix_product(trace, a, b)
    if out is None:
        return in_order(result(trace, made), order)
    return deliver(trace, made, out, True, casting, "matmul")


def matrix_product(trace: Trace, a: Value, b: Value) -> Value:
    """matmul of two values of one dtype."""
    left, right = a.tensor.rank, b.tensor.rank
    inner_a, inner_b = left - 1, max(right - 2, 0)
    need_equal(trace, a, b, inner_a, inner_b, "matmul")
    if left <= 2 and right <= 2:
        return contract(trace, a, b, [(inner_a, inner_b)])
    if right <= 2:
        return contract(trace, a, b, [(inner_a, inner_b)])
    lead = broadcast_shapes(
        trace, [a.tensor.shape[: max(left - 2, 0)], b.tensor.shape[: right - 2]]
    )
    a = _lead(trace, a, lead, min(left, 2))
    b = _lead(trace, b, lead, 2)
    batch = [(i, i) for i in range(len(lead))]
    return contract(trace, a, b, [(a.tensor.rank - 1, len(lead))], batch)


def _lead(trace: Trace, value: Value, lead: tuple[Size, ...], own: int) -> Value:
    return spread(trace, value, lead + value.tensor.shape[value.tensor.rank - own :])


def need_equal(trace: Trace, a: Value, b: Value, i: int, j: int, name: str) -> None:
    """Refuse operands whose summed axes differ."""
    first, second = a.tensor.shape[i], b.tensor.shape[j]
    if not trace.sizes.equal(first, second, f"{name} sums over these axes"):
        problem = fail(
            "TM209",
            f"{name}: shapes {shape_text(a.tensor.shape)} and {shape_text(b.tensor.shape)} not "
            f"aligned: {first} (dim {i}) != {second} (dim {j})",
        )
        raise trace.explain(problem, (first, second))


def dot(a: Any, b: Any, out: Any = None) -> Any:
    """np.dot"""
    trace = running()
    x, y = _pair(trace, a, b)
    if x.tensor.rank == 0 or y.tensor.rank == 0:
        made = trace.emit("mul", x, y)
    else:
        i, j = x.tensor.rank - 1, max(y.tensor.rank - 2, 0)
        need_equal(trace, x, y, i, j, "dot")
        made = contract(trace, x, y, [(i, j)])
    return result(trace, made) if out is None else deliver(trace, made, out, True, "no", "dot")


def vdot(a: Any, b: Any, /) -> Any:
    """np.vdot"""
    trace = running()
    x, y = _pair(trace, a, b)
    if trace.sizes.hints_of(x.tensor.shape) == trace.sizes.hints_of(y.tensor.shape):
        for axis in range(x.tensor.rank):  # axis by axis, so that none of them is fixed
            need_equal(trace, x, y, axis, axis, "vdot")
    x, y = (reshape(trace, v, (product(v.tensor.shape),)) for v in (x, y))
    if x.tensor.dtype.is_complex:
        x = trace.emit("conj", x)
    need_equal(trace, x, y, 0, 0, "vdot")
    return result(trace, contract(trace, x, y, [(0, 0)]))


def inner(a: Any, b: Any, /) -> Any:
    """np.inner"""
    trace = running()
    x, y = _pair(trace, a, b)
    if x.tensor.rank == 0 or y.tensor.rank == 0:
        return result(trace, trace.emit("mul", x, y))
    i, j = x.tensor.rank - 1, y.tensor.rank - 1
    need_equal(trace, x, y, i, j, "inner")
    return result(trace, contract(trace, x, y, [(i, j)]))


def outer(a: Any, b: Any, out: Any = None) -> Any:
    """np.outer"""
    trace = running()
    x, y = value_of(a), value_of(b)
    column = reshape(trace, x, (product(x.tensor.shape), 1))
    row = reshape(trace, y, (1, product(y.tensor.shape)))
    return multiply(np.multiply, (fresh(trace, column), fresh(trace, row)), out=out)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """np.tensordot"""
    trace = running()
    x, y = _pair(trace, a, b)
    if hasattr(axes, "__iter__"):
        first, second = axes
        first = list(first) if hasattr(first, "__iter__") else [first]
        second = list(second) if hasattr(second, "__iter__") else [second]
    else:
        first = list(range(x.tensor.rank - int(axes), x.tensor.rank))
        second = list(range(int(axes)))
    if len(first) != len(second):
        raise ValueError("shape-mismatch for sum")
    pairs = []
    for i, j in zip(first, second):
        pair = (one_axis(i, x.tensor.rank), one_axis(j, y.tensor.rank))
        if not trace.sizes.equal(
            x.tensor.shape[pair[0]], y.tensor.shape[pair[1]], "tensordot sums over these axes"
        ):
            raise fail("TM209", "shape-mismatch for sum", f"{x.type!r} and {y.type!r}, axes {pair}")
        pairs.append(pair)
    return fresh(trace, contract(trace, x, y, pairs))


def vecdot(x1: Any, x2: Any, /, *args: Any, axis: Any = -1, **keywords: Any) -> Any:
    """np.vecdot and np.linalg.vecdot"""
    trace = running()
    x, y = _ufunc_pair(trace, x1, x2)
    x, y = (_last(trace, v, axis) for v in (x, y))
    need_equal(trace, x, y, x.tensor.rank - 1, y.tensor.rank - 1, "vecdot")
    if x.tensor.dtype.is_complex:
        x = trace.emit("conj", x)
    lead = broadcast_shapes(trace, [x.tensor.shape[:-1], y.tensor.shape[:-1]])
    x, y = _lead(trace, x, lead, 1), _lead(trace, y, lead, 1)
    batch = [(i, i) for i in range(len(lead))]
    return result(trace, contract(trace, x, y, [(len(lead), len(lead))], batch))


def matvec(x1: Any, x2: Any, /, **keywords: Any) -> Any:
    """np.matvec"""
    trace = running()
    x, y = _ufunc_pair(trace, x1, x2)
    made = matrix_product(trace, x, expand(trace, y, (y.tensor.rank,)))
    return result(trace, reshape(trace, made, made.tensor.shape[:-1]))


def vecmat(x1: Any, x2: Any, /, **keywords: Any) -> Any:
    """np.vecmat"""
    trace = running()
    x, y = _ufunc_pair(trace, x1, x2)
    if x.tensor.dtype.is_complex:
        x = trace.emit("conj", x)
    made = matrix_product(trace, expand(trace, x, (x.tensor.rank - 1,)), y)
    shape = made.tensor.shape
    return result(trace, reshape(trace, made, (*shape[:-2], shape[-1])))


def _last(trace: Trace, value: Value, axis: Any) -> Value:
    place = one_axis(axis, value.tensor.rank)
    order = [i for i in range(value.tensor.rank) if i != place] + [place]
    return transpose(trace, value, order)


def kron(a: Any, b: Any) -> Any:
    """np.kron"""
    trace = running()
    x, y = _pair(trace, a, b)
    rank = max(x.tensor.rank, y.tensor.rank)
    left = (1,) * (rank - x.tensor.rank) + x.tensor.shape
    right = (1,) * (rank - y.tensor.rank) + y.tensor.shape
    first = reshape(trace, x, [n for size in left for n in (size, 1)])
    second = reshape(trace, y, [n for size in right for n in (1, size)])
    made = trace.emit("mul", first, second)
    return result(trace, reshape(trace, made, [m * n for m, n in zip(left, right)]))


def _numbers_only(*items: Any) -> None:
    for item in items:
        kind = weak_type(item)
        if isinstance(kind, np.dtype) and kind.kind not in "biufcV":
            raise fail("TM202", f"matmul does not take {kind}")


def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """np.linalg.multi_dot, from left to right."""
    made = arrays[0]
    for item in arrays[1:]:
        made = dot(made, item)
    return made if out is None else deliver(running(), value_of(made), out, True, "no", "multi_dot")


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None
) -> Any:
    """np.cross of vectors of two or three components."""
    if axis is not None:
        axisa = axisb = axisc = axis
    first, second = _components(a, axisa), _components(b, axisb)
    if len(first) == len(second) == 2:
        return _turned(first, second, 0, 1)[...]
    parts = [_turned(first, second, i, j) for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.moveaxis(np.stack(parts, axis=-1), -1, axisc)


def _components(a: Any, axis: int) -> list[Any]:
    """The components of vectors along an axis. Raises ValueError."""
    array: Any = array_of(a)
    if array.ndim < 1:
        raise ValueError("At least one array has zero dimension")
    array = np.moveaxis(array, axis, -1)
    size, sizes = value_of(array).tensor.shape[-1], running().sizes
    for count in (3, 2):
        if sizes.equal(size, count, f"cross takes vectors of {count}"):
            return [array[..., i] for i in range(count)]
    raise ValueError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")


def _turned(x: list[Any], y: list[Any], i: int, j: int) -> Any:
    """``x[i] * y[j] - x[j] * y[i]``, without what vectors of two components lack."""
    ahead = x[i] * y[j] if i < len(x) and j < len(y) else None
    back = x[j] * y[i] if j < len(x) and i < len(y) else None
    return ahead if back is None else -back if ahead is None else ahead - back


def _vector_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    sizes = running().sizes
    for item in (x1, x2):
        if not sizes.equal(array_of(item).tensor_type.shape[axis], 3, "cross takes vectors of 3"):
            raise ValueError("Both input arrays must be (arrays of) 3-dimensional vectors")
    return cross(x1, x2, axis=axis)


FUNCTIONS: dict[Any, Any] = {
    np.dot: dot, np.vdot: vdot, np.inner: inner, np.outer: outer, np.tensordot: tensordot,
    np.kron: kron, np.cross: cross, np.linalg.multi_dot: multi_dot,
    np.linalg.outer: outer, np.linalg.tensordot: tensordot, np.linalg.matmul: matmul,
    np.linalg.vecdot: vecdot, np.linalg.cross: _vector_cross,
}  # fmt: skip

GUFUNCS: dict[Any, Any] = {
    np.matmul: matmul,
    np.vecdot: vecdot,
    np.matvec: matvec,
    np.vecmat: vecmat,
}

METHODS: dict[str, Any] = {"dot": dot}
