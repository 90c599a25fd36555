"""What elementwise ops accept: NumPy's loops over dtypes, and broadcasting of shapes.

Invariants: nothing is promoted here; operand dtypes must be exactly those of one loop. Shapes
broadcast from the right, a dim is equal to its partner or the integer 1; a symbolic dim is never
taken for 1.
Error codes: TM201 operand count or kind, TM202 dtypes, TM203 attributes, TM204 shapes.
Not here: promotion (the frontend asks NumPy), signatures of ops with axes (their families).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dims import Size, dim_text
from ..types import BF16, F16, DType, TensorType, Type, dtype_of
from .definition import Attrs, Signature, SignatureError

# One loop: operand dtypes and result dtypes.
Loop = tuple[tuple[DType, ...], tuple[DType, ...]]

_NOT_OURS = frozenset("OMmgG")  # objects, dates, long double


def loops_of(ufunc: np.ufunc) -> tuple[Loop, ...]:
    """The loops NumPy has for `ufunc` on our dtypes; bf16 wherever f16 is taken."""
    found: dict[tuple[DType, ...], tuple[DType, ...]] = {}
    for text in ufunc.types:
        if _NOT_OURS & set(text):
            continue
        left, right = text.split("->")
        operands, results = _dtypes(left), _dtypes(right)
        found.setdefault(operands, results)
        if F16 in operands:
            found.setdefault(_with_bf16(operands), _with_bf16(results))
    return tuple(found.items())


def loops(*operand_rows: Sequence[DType], result: DType | None = None) -> tuple[Loop, ...]:
    """Loops written by hand; the result is `result`, else the first operand's dtype."""
    return tuple((tuple(row), (result or row[0],)) for row in operand_rows)


def each(dtypes: Sequence[DType], arity: int = 1, result: DType | None = None) -> tuple[Loop, ...]:
    """Loops on `arity` operands of one dtype, for each of `dtypes`."""
    return loops(*((dtype,) * arity for dtype in dtypes), result=result)


def elementwise(taken: Sequence[Loop]) -> Signature:
    """The signature that takes exactly these loops and broadcasts the shapes."""
    table = dict(taken)
    arity = len(taken[0][0])

    def judge(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        tensors = tensor_operands(operands, arity)
        no_attributes(attrs)
        got = tuple(t.dtype for t in tensors)
        results = table.get(got)
        if results is None:
            raise _dtype_error(got, table)
        shape = broadcast_shapes([t.shape for t in tensors])
        return tuple(TensorType(dtype, shape) for dtype in results)

    return judge


def tensor_operands(operands: Sequence[Type], count: int) -> tuple[TensorType, ...]:
    """The operands, known to be `count` tensors. Raises SignatureError."""
    if len(operands) != count:
        expected = "1 operand" if count == 1 else f"{count} operands"
        raise SignatureError("TM201", f"expected {expected}, got {len(operands)}")
    tensors = tuple(t for t in operands if isinstance(t, TensorType))
    if len(tensors) != count:
        raise SignatureError("TM201", "expected arrays, got a token")
    return tensors


def no_attributes(attrs: Attrs) -> None:
    """Refuse attributes. Raises SignatureError."""
    if attrs:
        raise SignatureError("TM203", f"takes no attribute, got {', '.join(sorted(attrs))}")


def dtype_attribute(attrs: Attrs) -> DType:
    """The attribute `dtype`, the only one. Raises SignatureError."""
    if set(attrs) != {"dtype"} or not isinstance(attrs["dtype"], DType):
        got = ", ".join(f"{k}={v!r}" for k, v in attrs.items()) or "none"
        raise SignatureError("TM203", f"needs exactly the attribute dtype, got {got}")
    dtype = attrs["dtype"]
    assert isinstance(dtype, DType)
    return dtype


def broadcast_shapes(shapes: Sequence[tuple[Size, ...]]) -> tuple[Size, ...]:
    """The common shape by NumPy's rule. Raises SignatureError."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    rank = max(map(len, shapes))
    return tuple(_common_dim(shapes, axis - rank) for axis in range(rank))


def shape_text(shape: tuple[Size, ...]) -> str:
    """A shape for messages: ``[n, 4]``."""
    return f"[{', '.join(map(dim_text, shape))}]"


def _common_dim(shapes: Sequence[tuple[Size, ...]], axis: int) -> Size:
    """The size of `axis` (negative, from the right) that all shapes agree on, 1 aside."""
    size: Size = 1
    for shape in shapes:
        mine = shape[axis] if -axis <= len(shape) else 1
        if mine == 1 or mine == size:
            continue
        if size != 1:
            raise _shape_error(shapes, axis, size, mine)
        size = mine
    return size


def _shape_error(
    shapes: Sequence[tuple[Size, ...]], axis: int, left: Size, right: Size
) -> SignatureError:
    rank = max(map(len, shapes))
    symbolic = not (isinstance(left, int) and isinstance(right, int))
    return SignatureError(
        "TM204",
        "needs equal or broadcastable shapes, got " + " and ".join(map(shape_text, shapes)),
        f"they differ in dimension {rank + axis}: {dim_text(left)} against {dim_text(right)}",
        "sizes that are not known while compiling must be the same expression" if symbolic else "",
        sizes=(left, right),
    )


def _dtype_error(
    got: tuple[DType, ...], table: dict[tuple[DType, ...], tuple[DType, ...]]
) -> SignatureError:
    names = " and ".join(d.name for d in got)
    if len(set(got)) > 1 and all(len(set(row)) == 1 for row in table):
        return SignatureError(
            "TM202", f"needs operands of one dtype, got {names}", hint="cast one of them first"
        )
    rows = [d.name for row in table for d in row[:1]] if len(got) == 1 else _rows_text(table)
    return SignatureError("TM202", f"does not take {names}", f"it takes {', '.join(rows)}")


def _rows_text(table: dict[tuple[DType, ...], tuple[DType, ...]]) -> list[str]:
    if all(len(set(row)) == 1 for row in table):
        return [row[0].name for row in table]
    return ["(" + ", ".join(d.name for d in row) + ")" for row in table]


def _dtypes(codes: str) -> tuple[DType, ...]:
    found = tuple(dtype_of(np.dtype(code)) for code in codes)
    assert None not in found
    return found  # type: ignore[return-value]


def _with_bf16(dtypes: tuple[DType, ...]) -> tuple[DType, ...]:
    return tuple(BF16 if dtype is F16 else dtype for dtype in dtypes)
