"""What signatures of ops with attributes ask: keys, axes, sizes, equal dims.

Invariants: axes in the graph are non-negative and distinct (the frontend counts from the end and
sorts); sizes are integers or dims; nothing is silently taken to be equal.
Error codes: TM201 operands, TM202 dtypes, TM203 attributes, TM208 rank, TM209 unequal sizes,
TM220 axis out of range, TM221 axis twice, TM242 negative size.
Not here: broadcasting (signature.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dims import Dim, Size, dim_text
from ..types import DType, TensorType, Type
from .definition import Attrs, SignatureError
from .signature import shape_text


def exactly(attrs: Attrs, *keys: str) -> tuple[Any, ...]:
    """The values of the attributes `keys`, known to be all there are."""
    if attrs.keys() != set(keys):
        wanted, got = ", ".join(keys) or "no attribute", ", ".join(attrs) or "none"
        raise SignatureError("TM203", f"takes the attributes {wanted}, got {got}")
    return tuple(attrs[key] for key in keys)


def just(attrs: Attrs, key: str) -> Any:
    """The value of the one attribute there is."""
    return exactly(attrs, key)[0]


def tensor(operands: Sequence[Type], index: int, what: str = "operand") -> TensorType:
    """Operand `index`, known to be a tensor."""
    if index >= len(operands):
        raise SignatureError("TM201", f"needs a {what}, got {len(operands)} operands")
    found = operands[index]
    if not isinstance(found, TensorType):
        raise SignatureError("TM201", f"needs an array as {what}, got a token")
    return found


def count(operands: Sequence[Type], wanted: int) -> None:
    """Refuse another number of operands."""
    if len(operands) != wanted:
        raise SignatureError("TM201", f"expected {wanted} operands, got {len(operands)}")


def only_tensor(operands: Sequence[Type]) -> TensorType:
    """The one operand, known to be a tensor."""
    count(operands, 1)
    return tensor(operands, 0)


def distinct_axes(value: object, rank: int, what: str = "axes") -> tuple[int, ...]:
    """A tuple of distinct axes of an array of `rank`."""
    if not isinstance(value, tuple) or not all(type(axis) is int for axis in value):
        raise SignatureError("TM203", f"needs a tuple of axes as {what}, got {value!r}")
    for axis in value:
        one_axis(axis, rank)
    if len(set(value)) != len(value):
        raise SignatureError("TM221", f"names an axis twice: {what}={list(value)}")
    return value


def one_axis(value: object, rank: int) -> int:
    """One axis of an array of `rank`."""
    if type(value) is not int:
        raise SignatureError("TM203", f"needs an axis, got {value!r}")
    if not 0 <= value < rank:
        raise SignatureError(
            "TM220", f"axis {value} is out of bounds for an array of dimension {rank}"
        )
    return value


def sizes(value: object, what: str, rank: int | None = None) -> tuple[Size, ...]:
    """A tuple of sizes, none a negative number."""
    if not isinstance(value, tuple) or not all(type(s) is int or isinstance(s, Dim) for s in value):
        raise SignatureError("TM203", f"needs a tuple of sizes as {what}, got {value!r}")
    if rank is not None and len(value) != rank:
        raise SignatureError("TM208", f"needs {rank} sizes as {what}, got {len(value)}")
    for size in value:
        if isinstance(size, int) and size < 0:
            raise SignatureError("TM242", f"got a negative size in {what}={shape_text(value)}")
    return value


def equal_sizes(a: Size, b: Size, what: str) -> Size:
    """The size both are. Raises SignatureError with the two sizes."""
    if a == b:
        return a
    raise SignatureError(
        "TM209", f"needs equal sizes {what}, got {dim_text(a)} and {dim_text(b)}", sizes=(a, b)
    )


def equal_shapes(a: Sequence[Size], b: Sequence[Size], what: str) -> None:
    """Refuse shapes that differ in rank or in a size."""
    if len(a) != len(b):
        left, right = shape_text(tuple(a)), shape_text(tuple(b))
        raise SignatureError("TM208", f"needs equal shapes {what}, got {left} and {right}")
    for x, y in zip(a, b):
        equal_sizes(x, y, what)


def same_dtype(a: TensorType, b: TensorType) -> DType:
    """The one element type of both."""
    if a.dtype == b.dtype:
        return a.dtype
    raise SignatureError(
        "TM202",
        f"needs operands of one dtype, got {a.dtype.name} and {b.dtype.name}",
        hint="cast one of them first",
    )


def dtype_kind(found: TensorType, kinds: str, what: str) -> DType:
    """The element type, known to be of one of the NumPy kinds `kinds`."""
    if found.dtype.kind not in kinds:
        raise SignatureError("TM202", f"needs {what}, got {found.dtype.name}")
    return found.dtype
