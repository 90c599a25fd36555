"""np.einsum, operands contracted two at a time from left to right.

Not here: a better order of contraction.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL

from ..tracing.diagonal import Diagonal
from ..tracing.state import Trace, require_dtype, running
from ..tracing.tensor import TracedArray, fresh, result
from .linear import contract, need_equal
from .memory_order import in_order
from .movement import transpose as axes_moved
from .movement import view_of
from .operands import dtype_as_arrays, is_traced, value_of
from .ufuncs import deliver
from .words import broadcast_shapes, reshape, spread, transpose


def einsum(
    *operands: Any,
    out: Any = None,
    dtype: Any = None,
    order: str = "K",
    casting: str = "safe",
    optimize: Any = False,
) -> Any:
    """np.einsum, operands contracted two at a time from left to right."""
    trace = running()
    text, items = _einsum_text(operands)
    found = require_dtype(dtype) if dtype is not None else dtype_as_arrays(*items)
    values = [trace.cast(value_of(item), found) for item in items]
    inputs, output = _einsum_labels(text, [v.tensor.rank for v in values])
    views = out is None and len(items) == 1 and output != ""  # one element is a number
    if views and _is_view(inputs[0], output, values[0], items[0]):
        return _viewed(view_of(items[0]), inputs[0], output)
    terms = [_diagonals(trace, value, labels) for value, labels in zip(values, inputs)]
    while len(terms) > 1:
        later = "".join(labels for _, labels in terms[2:]) + output
        terms[:2] = [_einsum_pair(trace, terms[0], terms[1], later)]
    made = _einsum_final(trace, *terms[0], output)
    if out is None:
        return in_order(result(trace, made), order)
    return deliver(trace, made, out, True, casting, "einsum")


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
            raise ValueError(
                f"einstein sum subscripts string includes output subscript '{c}' multiple times"
            )
        if not any(c in part for part in made):
            raise ValueError(
                f"einstein sum subscripts string included output subscript '{c}' which never "
                "appeared in an input"
            )
    return made, output


def _is_view(labels: str, output: str, value: Value, item: Any) -> bool:
    """Whether the axes of an array are only named in another order, some of them together:
    NumPy then gives a view."""
    return is_traced(item) and value is value_of(item) and set(labels) == set(output)


def _viewed(array: TracedArray, labels: str, output: str) -> TracedArray:
    """The view: axes of one label become their diagonal."""
    while (twice := _repeated(labels)) is not None:
        need_equal(array.tracing, array.value, array.value, *twice, "einsum")
        order = [*(k for k in range(len(labels)) if k not in twice), *twice]
        moved: TracedArray = axes_moved(array, order)
        array = moved.view_by(Diagonal(moved.tensor_type.shape[-1], 0, 0))
        labels = "".join(labels[k] for k in order[:-1])
    made: TracedArray = axes_moved(array, [labels.index(label) for label in output])
    return made


def _repeated(labels: str) -> tuple[int, int] | None:
    """Where the first label that comes again is, and where it comes again."""
    for i, label in enumerate(labels):
        if label in labels[i + 1 :]:
            return i, labels.index(label, i + 1)
    return None


def _diagonals(trace: Trace, value: Value, labels: str) -> tuple[Value, str]:
    """Repeated labels of one operand taken as a diagonal."""
    kept = "".join(dict.fromkeys(labels))
    if kept == labels:
        return value, labels
    return _viewed(fresh(trace, value), labels, kept).value, kept


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


FUNCTIONS: dict[Any, Any] = {np.einsum: einsum}
