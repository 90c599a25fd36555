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
from tracemill.compiler.types import BOOL, I64

from ..tracing.state import Trace, fail, require_dtype, running
from ..tracing.tensor import fresh, result
from .axes import one_axis
from .operands import common_dtype, value_of, weak_type
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
    found = require_dtype(dtype) if dtype is not None else common_dtype(a, b)
    return trace.cast(value_of(a), found), trace.cast(value_of(b), found)


def matmul(x1: Any, x2: Any, out: Any = None, *, casting: str = "same_kind", order: str = "K", dtype: Any = None, subok: bool = True, axes: Any = None, axis: Any = None, signature: Any = None) -> Any:
    """np.matmul"""
    trace = running()
    if axes is not None or axis is not None:
        raise fail("TM111", "np.matmul with axes= is not supported", hint="use np.moveaxis")
    _numbers_only(x1, x2)
    a, b = _pair(trace, x1, x2, dtype)
    if a.tensor.rank == 0 or b.tensor.rank == 0:
        which = 0 if a.tensor.rank == 0 else 1
        raise fail(
            "TM208",
            f"matmul: Input operand {which} does not have enough dimensions (it is a scalar)",
            hint="multiply by a number with *",
        )
    made = matrix_product(trace, a, b)
    return result(trace, made) if out is None else deliver(trace, made, out, True, casting, "matmul")


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
        raise fail(
            "TM209",
            f"{name}: shapes {shape_text(a.tensor.shape)} and {shape_text(b.tensor.shape)} not "
            f"aligned: {first} (dim {i}) != {second} (dim {j})",
        )


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
    x, y = _pair(trace, a, b)
    column = reshape(trace, x, (product(x.tensor.shape), 1))
    row = reshape(trace, y, (1, product(y.tensor.shape)))
    made = trace.emit("mul", column, row)
    return result(trace, made) if out is None else deliver(trace, made, out, True, "same_kind", "outer")


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
    x, y = _pair(trace, x1, x2)
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
    x, y = _pair(trace, x1, x2)
    made = matrix_product(trace, x, expand(trace, y, (y.tensor.rank,)))
    return result(trace, reshape(trace, made, made.tensor.shape[:-1]))


def vecmat(x1: Any, x2: Any, /, **keywords: Any) -> Any:
    """np.vecmat"""
    trace = running()
    x, y = _pair(trace, x1, x2)
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


def einsum(*operands: Any, out: Any = None, dtype: Any = None, order: str = "K", casting: str = "safe", optimize: Any = False) -> Any:
    """np.einsum, operands contracted two at a time from left to right."""
    trace = running()
    text, items = _einsum_text(operands)
    found = require_dtype(dtype) if dtype is not None else common_dtype(*items)
    values = [trace.cast(value_of(item), found) for item in items]
    inputs, output = _einsum_labels(text, [v.tensor.rank for v in values])
    terms = [
        _diagonals(trace, value, labels) for value, labels in zip(values, inputs)
    ]
    while len(terms) > 1:
        later = "".join(labels for _, labels in terms[2:]) + output
        terms[:2] = [_einsum_pair(trace, terms[0], terms[1], later)]
    made = _einsum_final(trace, *terms[0], output)
    return result(trace, made) if out is None else deliver(trace, made, out, True, casting, "einsum")


def _einsum_text(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    if not operands:
        raise ValueError("must specify the einstein sum subscripts string and at least one operand")
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def name(labels: Any) -> str:
        return "".join("..." if label is Ellipsis else letters[label] for label in labels)

    pairs = len(operands) // 2
    text = ",".join(name(operands[2 * i + 1]) for i in range(pairs))
    if len(operands) % 2:
        text += "->" + name(operands[-1])
    return text, [operands[2 * i] for i in range(pairs)]


def _einsum_labels(text: str, ranks: list[int]) -> tuple[list[str], str]:
    """Labels of each operand and of the result, the ellipsis written out."""
    left, arrow, output = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ranks):
        raise ValueError(
            "fewer operands provided to einstein sum function than specified in the subscripts "
            "string" if len(inputs) > len(ranks) else
            "more operands provided to einstein sum function than specified in the subscripts "
            "string"
        )  # fmt: skip
    allowed = {c for c in text if c.isalpha()} | set(".,->")
    if set(text) - allowed:
        raise ValueError(
            f"invalid subscript {sorted(set(text) - allowed)[0]!r} in einstein sum subscripts "
            "string, subscripts must be letters"
        )
    free = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if c not in text]
    longest = max(
        (rank - len(part.replace("...", "")) for part, rank in zip(inputs, ranks) if "..." in part),
        default=0,
    )
    dots = "".join(free[:longest])
    made = []
    for part, rank in zip(inputs, ranks):
        count = rank - len(part.replace("...", ""))
        if count < 0 or (count and "..." not in part):
            raise ValueError(
                "einstein sum subscripts string contains too many subscripts for operand"
                if count < 0 else
                "operand has more dimensions than subscripts given in einstein sum, but no "
                "'...' ellipsis provided to broadcast the extra dimensions."
            )  # fmt: skip
        made.append(part.replace("...", dots[longest - count :] if "..." in part else ""))
    if not arrow:
        every = "".join(made)
        once = sorted(c for c in set(every) if every.count(c) == 1 and c not in dots)
        return made, dots + "".join(once)
    output = output.replace("...", dots)
    for c in output:
        if output.count(c) > 1:
            raise ValueError(f"einstein sum subscripts string includes output subscript '{c}' multiple times")
        if not any(c in part for part in made):
            raise ValueError(f"einstein sum subscripts string included output subscript '{c}' which never appeared in an input")
    return made, output


def _diagonals(trace: Trace, value: Value, labels: str) -> tuple[Value, str]:
    """Repeated labels of one operand taken as a diagonal."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            need_equal(trace, value, value, i, j, "einsum")
            rank = value.tensor.rank
            order = [k for k in range(rank) if k not in (i, j)] + [i, j]
            value = transpose(trace, value, order)
            index = trace.emit("iota", size=value.tensor.shape[-1])
            value = trace.emit("gather", value, index, index, axes=(rank - 2, rank - 1))[0]
            labels = "".join(labels[k] for k in order[:-1])
    return value, labels


def _summed(trace: Trace, value: Value, labels: str, keep: str) -> tuple[Value, str]:
    axes = tuple(i for i, c in enumerate(labels) if c not in keep)
    if not axes:
        return value, labels
    if value.tensor.dtype is BOOL:
        made = trace.emit("any", value, axes=axes)
    else:
        made = trace.emit("sum", value, axes=axes)
    return made, "".join(c for c in labels if c in keep)


def _einsum_pair(
    trace: Trace, left: tuple[Value, str], right: tuple[Value, str], later: str
) -> tuple[Value, str]:
    a, x = _summed(trace, *left, right[1] + later)
    b, y = _summed(trace, *right, x + later)
    a, b = _matched(trace, a, x, b, y)
    shared = [c for c in x if c in y]
    batch = [(x.index(c), y.index(c)) for c in shared if c in later]
    axes = [(x.index(c), y.index(c)) for c in shared if c not in later]
    labels = (
        "".join(x[i] for i, _ in batch)
        + "".join(c for c in x if c not in shared)
        + "".join(c for c in y if c not in shared)
    )
    if axes:
        return contract(trace, a, b, axes, batch), labels
    first = _arranged(trace, a, x, labels)
    second = _arranged(trace, b, y, labels)
    made: Value = trace.emit("mul", first, second)
    return made, labels


def _matched(trace: Trace, a: Value, x: str, b: Value, y: str) -> tuple[Value, Value]:
    """Shared labels given equal sizes: one of size 1 is repeated."""
    shape_a, shape_b = list(a.tensor.shape), list(b.tensor.shape)
    for label in x:
        if label not in y:
            continue
        i, j = x.index(label), y.index(label)
        size = broadcast_shapes(trace, [(shape_a[i],), (shape_b[j],)])[0]
        shape_a[i] = shape_b[j] = size
    sizes = trace.sizes
    return (
        spread(trace, a, tuple([sizes.normal(n) for n in shape_a])),
        spread(trace, b, tuple([sizes.normal(n) for n in shape_b])),
    )


def _arranged(trace: Trace, value: Value, labels: str, wanted: str) -> Value:
    """Axes in the order of `wanted`, of size 1 where the value has none."""
    order = sorted(range(len(labels)), key=lambda i: wanted.index(labels[i]))
    value = transpose(trace, value, order)
    rest = iter(value.tensor.shape)
    return reshape(trace, value, [next(rest) if c in labels else 1 for c in wanted])


def _einsum_final(trace: Trace, value: Value, labels: str, output: str) -> Value:
    value, labels = _summed(trace, value, labels, output)
    return transpose(trace, value, [labels.index(c) for c in output])


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


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    """np.cross of vectors of three components."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = np.moveaxis(a, axisa, -1), np.moveaxis(b, axisb, -1)
    trace = running()
    for item in (x, y):
        if not trace.sizes.equal(value_of(item).tensor.shape[-1], 3, "cross takes vectors of three"):
            raise ValueError("incompatible dimensions for cross product\n(dimension must be 3)")
    parts = []
    for i, j in ((1, 2), (2, 0), (0, 1)):
        parts.append(x[..., i] * y[..., j] - x[..., j] * y[..., i])
    made = np.stack(parts, axis=-1)
    return np.moveaxis(made, -1, axisc)


FUNCTIONS = {
    np.dot: dot, np.vdot: vdot, np.inner: inner, np.outer: outer, np.tensordot: tensordot,
    np.einsum: einsum, np.kron: kron, np.cross: cross, np.linalg.multi_dot: multi_dot,
    np.linalg.outer: outer, np.linalg.tensordot: tensordot, np.linalg.matmul: matmul,
    np.linalg.vecdot: vecdot, np.linalg.cross: lambda x1, x2, /, *, axis=-1: cross(x1, x2, axis=axis),
}  # fmt: skip

GUFUNCS = {np.matmul: matmul, np.vecdot: vecdot, np.matvec: matvec, np.vecmat: vecmat}

METHODS = {"dot": dot}

