"""Few columns, lanes along the rows: whole rows are read and written side by side.

Lanes along the rows of a ``[n, 3]`` array want every third element. The three columns' vectors
come from the same three loads, which LLVM makes once, and where all three columns are stored they
are written together, at the place of the last.

Invariants: only rows of active lanes are touched, and of those only what is theirs.
Not here: columns of many (a gather, memory.py), complex numbers (memory.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llvmlite import ir

from ...compiler.dims import Dim
from ...compiler.kernel.kernel import Load, Statement, Store, Update, walk
from ...compiler.types import BOOL
from .access import resolve
from .frame import Buffer, Frame
from .types import (
    I32,
    POINTER,
    VOID,
    Lane,
    constant_of,
    intrinsic,
    memory_element,
    part_count,
    vector_of,
    widen,
)

_MOST = 7  # columns that a row may have


def load_column(frame: Frame, s: Load, buffer: Buffer) -> Lane | None:
    """The lanes of a load that picks one column; None for another load."""
    column = _column(frame, s)
    if column is None:
        return None
    count = int(frame.parameters[s.buffer].shape[-1])  # type: ignore[arg-type]
    width = frame.lanes.width
    row = tuple(i for i in s.index[:-1] if isinstance(i, Dim | int))
    place = resolve(frame, buffer, (*row, 0), [], None)
    typ = vector_of(memory_element(s.dtype), width * count)
    if frame.lanes.mask is None:
        rows = frame.builder.load(place.pointer, typ=typ, align=1)
    else:
        mask = _shuffled(frame, frame.lanes.mask, [k // count for k in range(width * count)])
        zero = constant_of(typ, 0.0 if isinstance(typ.element, ir.FloatType | ir.DoubleType) else 0)
        args = [place.pointer, ir.Constant(I32, 1), mask, zero]
        rows = intrinsic(frame.builder, "llvm.masked.load", typ, args, typ, POINTER)
    picked = _shuffled(frame, rows, [k * count + column for k in range(width)])
    if s.dtype is BOOL:
        picked = frame.builder.icmp_unsigned("!=", picked, constant_of(picked.type, 0))
    return Lane(s.dtype, (picked,), width)


def whole_rows(frame: Frame, block: Sequence[Statement]) -> Mapping[int, tuple[Store, ...]]:
    """Stores of a block that together fill rows: identity of the last -> all, by column; of the
    others -> none. A column may wait for the last where nothing else touches the buffer, and what
    lay there has been loaded."""
    touching: dict[str, list[Statement]] = {}
    for s in walk(tuple(block)):
        if isinstance(s, Load | Store | Update):
            touching.setdefault(s.buffer, []).append(s)
    mine = {id(s) for s in block}
    found: dict[int, tuple[Store, ...]] = {}
    for buffer, users in touching.items():
        columns = {s.index[-1]: s for s in users if isinstance(s, Store) and _is_in(frame, s)}
        rows = {s.index[:-1] for s in columns.values()}
        parameter = frame.parameters.get(buffer)
        whole = parameter is not None and len(users) == len(columns) == parameter.shape[-1]
        if whole and len(rows) == 1 and all(id(s) in mine for s in users):
            found.update((id(s), ()) for s in users[:-1])
            found[id(users[-1])] = tuple(columns[c] for c in range(len(columns)))
    return found


def _is_in(frame: Frame, s: Store) -> bool:
    return len(s.index) > 1 and _column(frame, s) is not None


def store_rows(frame: Frame, stores: tuple[Store, ...]) -> None:
    """Write all columns of the lanes' rows."""
    width, count = frame.lanes.width, len(stores)
    buffer = frame.buffers[stores[0].buffer]
    row = tuple(i for i in stores[0].index[:-1] if isinstance(i, Dim | int))
    place = resolve(frame, buffer, (*row, 0), [], None)
    parts = [widen(frame.builder, frame.values[s.value], width).value for s in stores]
    while len(parts) & (len(parts) - 1):
        parts.append(parts[-1])
    while len(parts) > 1:
        ends = range(0, len(parts), 2)
        parts = [_joined(frame, parts[k], parts[k + 1]) for k in ends]
    rows = _shuffled(frame, parts[0], [c * width + k for k in range(width) for c in range(count)])
    if frame.lanes.mask is None:
        frame.builder.store(rows, place.pointer, align=1)
        return
    mask = _shuffled(frame, frame.lanes.mask, [k // count for k in range(width * count)])
    args = [rows, place.pointer, ir.Constant(I32, 1), mask]
    intrinsic(frame.builder, "llvm.masked.store", VOID, args, rows.type, POINTER)


def _joined(frame: Frame, a: ir.Value, b: ir.Value) -> ir.Value:
    lanes = [ir.Constant(I32, k) for k in range(2 * a.type.count)]
    return frame.builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, len(lanes)), lanes))


def _column(frame: Frame, s: Load | Store) -> int | None:
    """Which of few columns an access is to, with the lanes along the rows."""
    parameter = frame.parameters.get(s.buffer)
    axis = frame.lanes.axis
    if frame.lanes.width == 1 or axis is None or s.mask is not None or len(s.index) < 2:
        return None
    if parameter is None or parameter.strided:
        return None
    if part_count(parameter.dtype) != 1:
        return None
    if parameter.dtype is BOOL and isinstance(s, Store):
        return None
    if frame.lanes.mask is not None and not frame.machine.has_masked_memory:
        return None
    *outer, row, column = s.index
    count = parameter.shape[-1]
    if not isinstance(count, int) or not 1 < count <= _MOST or not isinstance(column, int):
        return None
    if not isinstance(row, Dim) or row.coefficient(axis) != 1:
        return None
    for index in outer:
        if not isinstance(index, int) and not (
            isinstance(index, Dim) and axis not in index.symbols()
        ):
            return None
    return column


def _shuffled(frame: Frame, value: ir.Value, order: list[int]) -> ir.Value:
    mask = ir.Constant(ir.VectorType(I32, len(order)), [ir.Constant(I32, i) for i in order])
    return frame.builder.shuffle_vector(value, value, mask)
