"""Subscripts understood: a key of user code into a region, new axes and index arrays.

NumPy's rules, in order: the ellipsis is written out; integers and slices choose a region;
``None`` puts axes in; index arrays (and integers beside them) broadcast together, their axes
come first in the result unless they stand side by side.

Invariants: a `Subscript` speaks about one array shape; indices are i64 values.
Not here: reading and writing (indexing.py).
"""

from __future__ import annotations

import operator
from dataclasses import field
from typing import Any

import numpy as np

from tracemill.compiler.dims import Size
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.ops.signature import shape_text
from tracemill.compiler.records import dataclass
from tracemill.compiler.types import BOOL, I64, U64

from ..tracing.concrete import known
from ..tracing.gathered import Element
from ..tracing.integer import TracedSize
from ..tracing.number import TracedNumber
from ..tracing.state import Trace, fail
from ..tracing.tensor import TracedArray, TracedScalar
from ..tracing.views import Reshape, Slice, Step, Transpose
from .operands import any_traced, value_of
from .positions import FAR, check_known, position, slice_bounds
from .words import broadcast_shapes

_GAP = object()  # stands for an ellipsis that stands for no axes


@dataclass(slots=True)
class Subscript:
    """steps: views to take first. indices: i64 values for the axes from `axis` on, after the
    steps. mask: a bool value for those axes instead. scalar: nothing is left of the shape."""

    steps: list[Step] = field(default_factory=list)
    axis: int = 0
    indices: tuple[Value, ...] = ()
    mask: Value | None = None
    scalar: bool = False


@dataclass(slots=True)
class _Row:
    """One entry of a key, as it stands in the result of slicing."""

    kind: str  # "axis", "new", "drop", "gap" (an ellipsis of no axes), "index", "mask"
    size: Size = 1
    index: Value | None = None


def understand(trace: Trace, shape: tuple[Size, ...], key: Any) -> Subscript:
    """Raises IndexError as NumPy does, and for what is not supported."""
    items = _items(key)
    rows, region, has_ellipsis = _rows(trace, shape, items)
    found = Subscript()
    if region is not None:
        found.steps.append(region)
    special = [row for row in rows if row.kind in ("index", "mask")]
    new_shape = tuple([size for row in rows for size in _sizes_of_row(row)])
    sliced = region.size if region is not None else shape
    if new_shape != sliced:
        found.steps.append(Reshape(new_shape))
    if not special:
        found.scalar = not new_shape and not has_ellipsis
        return found
    _place(trace, found, rows)
    ranks = [index.tensor.rank for index in found.indices]
    found.scalar = not has_ellipsis and len(new_shape) == len(found.indices) and not any(ranks)
    return found


def _sizes_of_row(row: _Row) -> tuple[Size, ...]:
    if row.kind in ("drop", "gap"):
        return ()
    if row.kind == "mask":
        assert row.index is not None
        return row.index.tensor.shape
    return (row.size,)


def _place(trace: Trace, found: Subscript, rows: list[_Row]) -> None:
    """Bring the indexed axes together, to where NumPy puts their result."""
    marks = [i for i, row in enumerate(rows) if row.kind in ("index", "mask", "drop")]
    adjacent = marks == list(range(marks[0], marks[-1] + 1))
    kept = [row for row in rows if row.kind not in ("drop", "gap")]
    axes: list[int] = []
    position = 0
    before = 0
    for row in kept:
        width = len(_sizes_of_row(row))
        if row.kind in ("index", "mask"):
            if not axes:
                before = position
            axes.extend(range(position, position + width))
        position += width
    if not adjacent and axes != list(range(len(axes))):
        rest = [i for i in range(position) if i not in axes]
        found.steps.append(Transpose((*axes, *rest)))
        before = 0
    elif not adjacent:
        before = 0
    found.axis = before
    masks = [row.index for row in kept if row.kind == "mask"]
    if masks:
        if len(axes) != masks[0].tensor.rank:  # type: ignore[union-attr]
            raise fail(
                "TM112",
                "a mask known only at run time cannot be combined with other index arrays",
                hint="use np.where(mask, a, b) on the whole array",
            )
        found.mask = masks[0]
    else:
        found.indices = tuple([row.index for row in kept if row.index is not None])
        try:
            broadcast_shapes(trace, [index.tensor.shape for index in found.indices])
        except ValueError:
            shapes = " and ".join(shape_text(index.tensor.shape) for index in found.indices)
            raise fail(
                "TM230",
                f"shape mismatch: indexing arrays could not be broadcast together: {shapes}",
            ) from None


def _items(key: Any) -> list[Any]:
    if isinstance(key, tuple):
        return list(key)
    return [key]


def _spelled_out(items: list[Any], rank: int) -> tuple[list[Any], bool]:
    """One item per axis, the ellipsis written out; whether there was one."""
    ellipses = sum(1 for item in items if item is Ellipsis)
    if ellipses > 1:
        raise fail("TM230", "an index can only have a single ellipsis ('...')")
    used = sum(_width(item) for item in items)
    if used > rank:
        raise fail(
            "TM230",
            f"too many indices for array: array is {rank}-dimensional, but {used} were indexed",
        )
    missing: list[Any] = [slice(None)] * (rank - used)
    if not ellipses:
        return items + missing, False
    at = next(i for i, item in enumerate(items) if item is Ellipsis)
    return [*items[:at], *(missing or [_GAP]), *items[at + 1 :]], True


def _rows(
    trace: Trace, shape: tuple[Size, ...], items: list[Any]
) -> tuple[list[_Row], Slice | None, bool]:
    items, has_ellipsis = _spelled_out([_normal(item) for item in items], len(shape))
    items = _places_together(trace, items)
    rows: list[_Row] = []
    start: list[Size] = []
    size: list[Size] = []
    step: list[int] = []

    def region(first: Size, number: Size, by: int = 1) -> None:
        start.append(first)
        size.append(number)
        step.append(by)

    for item in items:
        axis = len(start)
        if item is None:
            rows.append(_Row("new"))
        elif item is _GAP:
            rows.append(_Row("gap"))
        elif isinstance(item, slice):
            if item == slice(None):
                region(0, shape[axis])
            else:
                region(*slice_bounds(trace, shape[axis], item))
            rows.append(_Row("axis", size[-1]))
        elif type(item) is int or type(item) is TracedSize:
            place = position(trace, shape[axis], item, axis)
            if isinstance(place, Value):
                rows.append(_Row("index", shape[axis], place))
                region(0, shape[axis])
            else:
                rows.append(_Row("drop"))
                region(place, 1)
        elif item.tensor.dtype is BOOL:
            for row in _mask_rows(trace, shape, axis, item):
                rows.append(row)
            for n in shape[axis : axis + item.tensor.rank]:
                region(0, n)
        else:
            if item.tensor.dtype is U64 and not item.tensor.rank:  # NumPy makes a C long of it
                most = trace.literal(2**63 - 1, U64)
                fits = trace.emit("less_equal", item, most)
                trace.emit("check", fits, code="TM246", dtype=I64)
            index = trace.cast(item, I64)
            check_known(trace, index, shape[axis], axis)
            rows.append(_Row("index", shape[axis], index))
            region(0, shape[axis])
    whole = all(s == 0 for s in start) and tuple(size) == shape and all(s == 1 for s in step)
    return rows, None if whole else Slice(tuple(start), tuple(size), tuple(step)), has_ellipsis


def _places_together(trace: Trace, items: list[Any]) -> list[Any]:
    """Known integers beside ones of the run as such too: an element is one step, and to write it
    touches no row or column."""
    indices = [item for item in items if isinstance(item, Value)]
    if not indices or any(v.tensor.rank or v.tensor.dtype is BOOL for v in indices):
        return items
    numbers = (int, TracedSize)
    at = [i for i, item in enumerate(items) if isinstance(item, Value) or type(item) in numbers]
    if len(at) == len(indices) or at[-1] - at[0] + 1 != len(at):
        return items
    made = list(items)
    for i in at:
        if type(items[i]) is TracedSize:
            made[i] = trace.size_value(items[i].now())
        elif type(items[i]) is int and -FAR < items[i] < FAR:
            made[i] = trace.literal(items[i], I64)
    return made


def element_first(trace: Trace, key: Any) -> tuple[Element | None, Any]:
    """A key of integers, some of the run, and slices that leave something out: the integers as a
    step of their own, so that a write to part of a row touches that row, and the rest."""
    items = key if type(key) is tuple else ()
    at = [i for i, item in enumerate(items) if _is_integer(item)]
    if (
        not any(type(items[i]) in (TracedNumber, TracedScalar) for i in at)
        or not all(i in at or type(item) is slice for i, item in enumerate(items))
        or all(i in at or item == slice(None) for i, item in enumerate(items))
        or at[-1] - at[0] + 1 != len(at)
    ):
        return None, key
    places = tuple([trace.cast(value_of(items[i]), I64) for i in at])
    return Element(tuple(at), places), tuple([x for i, x in enumerate(items) if i not in at])


def _is_integer(item: Any) -> bool:
    if type(item) in (TracedNumber, TracedScalar):
        return value_of(item).tensor.dtype.kind == "i"
    return type(item) is TracedSize or (type(item) is int and -FAR < item < FAR)


def _normal(item: Any) -> Any:
    """None, Ellipsis, a slice, an integer, or the value of an index array or mask."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    kind = type(item)
    if kind is int or kind is TracedSize:
        return item
    if kind is bool or kind is np.bool_:
        return value_of(np.bool_(item))
    if kind in (TracedArray, TracedScalar, TracedNumber):
        return _index_value(value_of(item))
    if isinstance(item, range):
        item = list(item)
    if isinstance(item, list | tuple | np.ndarray):
        if isinstance(item, list | tuple) and not any_traced(item) and np.size(item) == 0:
            return value_of(np.zeros(np.shape(item), np.int64))
        return _index_value(value_of(item))
    try:
        return operator.index(item)
    except TypeError:
        raise fail(
            "TM230",
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or "
            f"boolean arrays are valid indices, got {item!r:.60}",
        ) from None


def _index_value(value: Value) -> Value:
    if value.tensor.dtype.kind not in "biu":
        raise fail(
            "TM230", "arrays used as indices must be of integer (or boolean) type, got "
            f"{value.tensor.dtype.name}"
        )  # fmt: skip
    return value


def _width(item: Any) -> int:
    """How many axes an item uses."""
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, Value) and item.tensor.dtype is BOOL:
        return item.tensor.rank
    return 1


def _mask_rows(trace: Trace, shape: tuple[Size, ...], axis: int, mask: Value) -> list[_Row]:
    rank = mask.tensor.rank
    empty = False
    for i, (mine, n) in enumerate(zip(mask.tensor.shape, shape[axis:])):
        if trace.sizes.equal(mine, n, "a mask has the shape of what it selects from"):
            continue
        if not trace.sizes.equal(mine, 0, "a mask without elements fits any axis"):
            raise fail(
                "TM230",
                f"boolean index did not match indexed array along axis {axis + i}; size of axis "
                f"is {n} but size of corresponding boolean axis is {mine}",
            )
        empty = True
    found = np.zeros((0,) * rank, bool) if empty else known(trace, mask)
    if rank == 0:
        if found is None:
            raise fail("TM112", "a single traced bool is used as an index", hint="use np.where")
        places = np.zeros(1 if found else 0, np.int64)
        return [_Row("index", 1, trace.builder.constant(places))]
    if found is None:
        return [_Row("mask", 1, mask)]
    return [
        _Row("index", shape[axis + i], trace.builder.constant(places))
        for i, places in enumerate(np.nonzero(found))
    ]
