"""The kernel that copies a right operand into panels, and its recognition.

A panel is `PANEL_BYTES` of a row of the operand, then the same columns of the next row, through
all summed axes: ``packed[outer, n // columns, sums, k, n % columns]``, 0 beyond the last column.

Invariants: `packing_of` finds in `pack_kernel`'s kernels, whatever they are named, what they
were made from; other kernels of that form, too, do what the record says.
Not here: when packing pays (products.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dims import Dim, Size
from ..records import dataclass, replace
from ..types import BOOL, I64, DType
from .contraction import Axis, Operand, panel_columns
from .kernel import (
    Checked,
    Constant,
    IndexValue,
    Kernel,
    Let,
    Load,
    Parallel,
    Parameter,
    Statement,
    Store,
)  # fmt: skip
from .symbols import kernel_dims


@dataclass(frozen=True, slots=True)
class Packing:
    """A copy into panels: `source` is indexed by outer, n, sums and k; `columns` is n's extent."""

    outer: tuple[Axis, ...]
    n: Axis
    sums: tuple[Axis, ...]
    k: Axis
    source: Operand
    target: str
    dtype: DType

    @property
    def panels(self) -> Size:
        """Panels of one outer point."""
        columns = panel_columns(self.dtype)
        return (self.n.extent + columns - 1) // columns


def pack_kernel(packing: Packing, source: Parameter, target: Parameter) -> Kernel:
    """The copy as a kernel of two parameters."""
    columns = panel_columns(packing.dtype)
    taken = {source.name, target.name, *(s for size in source.shape for s in _symbols(size))}
    taken |= {a.name for a in (*packing.outer, *packing.sums, packing.k)}
    taken |= {s for a in (*packing.outer, *packing.sums, packing.k) for s in _symbols(a.extent)}
    taken |= _symbols(packing.n.extent)
    tile, lane = _free("t", taken), _free("q", taken)
    n = Dim.symbol(tile) * columns + Dim.symbol(lane)
    env: dict[str, Size] = {packing.n.name: n}
    index = tuple(i.substitute(env) if isinstance(i, Dim) else i for i in packing.source.index)
    width = packing.n.extent
    at, wide, inside, zero, name, made_of = (
        _free(word, taken) for word in ("at", "width", "inside", "zero", "x", "y")
    )
    value: list[Statement] = [
        IndexValue(at, n),
        Constant(wide, width, I64) if isinstance(width, int) else IndexValue(wide, width),
        Let(inside, "lt", (at, wide), BOOL),
        Constant(zero, _zero(source.dtype), source.dtype),
        Load(name, source.name, index, source.dtype, inside, zero),
    ]
    if source.dtype is not packing.dtype:
        value.append(Let(made_of, "convert", (name,), packing.dtype))
        name = made_of
    loops = (
        *packing.outer, Axis(tile, packing.panels), *packing.sums, packing.k, Axis(lane, columns),
    )  # fmt: skip
    value.append(Store(target.name, tuple(Dim.symbol(a.name) for a in loops), name))
    body = tuple(value)
    for axis in reversed(loops):
        body = (Parallel(axis.name, axis.extent, body),)
    made = Kernel("pack", (replace(source, mode="in"), target), (), body)
    return replace(made, dims=kernel_dims(made))


def packing_of(kernel: Kernel) -> Packing | None:
    """What a kernel packs; None for a kernel that does something else."""
    axes: list[Axis] = []
    body = kernel.body
    while len(body) == 1 and isinstance(body[0], Parallel):
        axes.append(Axis(body[0].axis, body[0].extent))
        body = body[0].body
    parts = _copy_in(body)
    if parts is None or len(axes) < 3:
        return None
    load, store, at, width = parts
    columns = panel_columns(kernel_dtype(kernel, store.buffer))
    lane = axes[-1]
    if store.index != tuple(Dim.symbol(a.name) for a in axes) or lane.extent != columns:
        return None
    tile = next((a for a in axes if at == Dim.symbol(a.name) * columns + _symbol(lane)), None)
    index = None if tile is None else _untiled(load, tile, lane, columns)
    if tile is None or index is None:
        return None
    place = axes.index(tile)
    found = Packing(
        tuple(axes[:place]), Axis(lane.name, width), tuple(axes[place + 1 : -2]), axes[-2],
        Operand(load.buffer, index, load.dtype), store.buffer, kernel_dtype(kernel, store.buffer),
    )  # fmt: skip
    return found if found.panels == tile.extent and place < len(axes) - 2 else None


def kernel_dtype(kernel: Kernel, name: str) -> DType:
    """The element type of a parameter."""
    return next(p.dtype for p in kernel.params if p.name == name)


def _copy_in(body: Sequence[Statement]) -> tuple[Load, Store, Size, Size] | None:
    """The load, the store, the column and the number of columns of a masked copy."""
    made = {getattr(s, "name", ""): s for s in body}
    store, load = body[-1], next((s for s in body if isinstance(s, Load)), None)
    inside = made.get("" if load is None or load.mask is None else load.mask)
    if not isinstance(store, Store) or store.mask is not None or not isinstance(inside, Let):
        return None
    value = made.get(store.value)
    if isinstance(value, Let) and value.op == "convert":
        value = made.get(value.args[0])
    if load is None or value is not load or inside.op != "lt" or len(body) not in (6, 7):
        return None
    at, width, other = made[inside.args[0]], made[inside.args[1]], made.get(load.other or "")
    if not isinstance(at, IndexValue) or not isinstance(other, Constant) or other.value != 0:
        return None
    if isinstance(width, Constant):
        return load, store, at.index, width.value
    return (load, store, at.index, width.index) if isinstance(width, IndexValue) else None


def _untiled(load: Load, tile: Axis, lane: Axis, columns: int) -> tuple[Size, ...] | None:
    """The load's index with the lane axis standing for the column."""
    index: list[Size] = []
    for part in load.index:
        if isinstance(part, Checked):
            return None
        if isinstance(part, Dim):
            per_tile, per_lane = part.coefficient(tile.name), part.coefficient(lane.name)
            if per_tile is None or per_lane is None or per_tile != per_lane * columns:
                return None
            part = part.substitute({tile.name: 0})
        index.append(part)
    return tuple(index)


def _symbol(axis: Axis) -> Dim:
    return Dim.symbol(axis.name)


def _symbols(size: Size) -> frozenset[str]:
    return size.symbols() if isinstance(size, Dim) else frozenset()


def _free(hint: str, taken: set[str]) -> str:
    while hint in taken:
        hint += "_"
    return hint


def _zero(dtype: DType) -> complex | float | int:
    return 0j if dtype.is_complex else 0.0 if dtype.is_float else 0
