"""What both ways of a matrix product share: multiply-add of lanes, the tile of sums, the epilogue.

A tile of sums lies in the function's frame, row after row; an epilogue then runs over it once,
masked, so its statements are generated once whatever the microkernels look like.

Not here: the microkernels (packed_product.py, direct_product.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from llvmlite import ir

from ...compiler.dims import Dim, Size
from ...compiler.kernel.contraction import Axis, Contraction, Operand
from ...compiler.types import DType, real_part_of
from . import memory
from .access import Access, resolve
from .conversions import convert
from .frame import Frame, Lanes, constant, offset_bytes
from .indices import scalar_size
from .loops import counted, mask_below
from .scalar import constant_lane
from .types import Lane, intrinsic, memory_element, part_count, widen
from .words import WORDS


def multiply_add(frame: Frame, total: Lane, a: Lane, b: Lane) -> Lane:
    """total + a * b in the order of a contraction: fused where the machine can."""
    builder = frame.builder
    a, b = widen(builder, a, total.width), widen(builder, b, total.width)
    dtype = real_part_of(total.dtype)
    if not total.dtype.is_complex:
        return Lane(dtype, (_fused(frame, dtype, total.value, a.value, b.value),), total.width)
    negated = WORDS["neg"](frame.site, dtype, a.parts[1])
    re = _fused(frame, dtype, total.parts[0], a.parts[0], b.parts[0])
    im = _fused(frame, dtype, total.parts[1], a.parts[0], b.parts[1])
    re = _fused(frame, dtype, re, negated, b.parts[1])
    im = _fused(frame, dtype, im, a.parts[1], b.parts[0])
    return Lane(total.dtype, (re, im), total.width)


def _fused(frame: Frame, dtype: DType, total: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    if dtype.is_float and frame.machine.has_fma:
        return intrinsic(frame.builder, "llvm.fma", total.type, [a, b, total], total.type)
    product = WORDS["mul"](frame.site, dtype, a, b)
    return WORDS["add"](frame.site, dtype, total, product)


def zeros(frame: Frame, dtype: DType, width: int) -> Lane:
    """A sum of nothing."""
    return widen(frame.builder, constant_lane(dtype, 0), width)


def lanes_of(frame: Frame, dtype: DType) -> int:
    """Lanes of one vector register."""
    return max(1, frame.machine.vector_bits // real_part_of(dtype).bits)


class Tile:
    """Sums of `rows` x `columns` in the frame; complex ones as elements, parts side by side."""

    def __init__(self, frame: Frame, dtype: DType, rows: int, columns: int, count: int = 1) -> None:
        self.frame = frame
        self.dtype = dtype
        self.columns = columns
        self.bytes = rows * columns * dtype.itemsize
        elements = rows * columns * count * part_count(dtype)
        self.memory = frame.stack_slot(memory_element(dtype), elements)

    def place(self, base: ir.Value, row: int, column: int, width: int) -> Access:
        """`width` sums of a row, of the tile at address `base`."""
        offset = (row * self.columns + column) * self.dtype.itemsize
        pointer = offset_bytes(self.frame, base, offset)
        return Access(
            self.dtype, pointer, self.dtype.itemsize if width > 1 else 0, None, width, None
        )

    def at(self, base: ir.Value, row: ir.Value, column: ir.Value, width: int) -> Access:
        """The same at a row and column known at run time."""
        builder = self.frame.builder
        index = builder.add(builder.mul(row, constant(self.columns)), column)
        pointer = offset_bytes(self.frame, base, builder.mul(index, constant(self.dtype.itemsize)))
        return Access(
            self.dtype, pointer, self.dtype.itemsize if width > 1 else 0, None, width, None
        )


def epilogue(
    frame: Frame,
    found: Contraction,
    tile: Tile,
    base: ir.Value,
    rows: tuple[ir.Value, ir.Value],
    columns: tuple[ir.Value, ir.Value],
) -> None:
    """Run the statements after the sums over rows [first, end) and columns [first, end)."""
    width = lanes_of(frame, tile.dtype)

    def row(index: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
        inside = frame.builder.sub(index, rows[0])
        if found.n is None:
            _finish(frame, found, tile, tile.at(base, inside, constant(0), 1))
            return ()

        def vector(at: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
            assert found.n is not None
            mask = mask_below(frame, at, columns[1], width)
            with frame.vectorised(Lanes(found.n.name, width, mask)):
                column = frame.builder.sub(at, columns[0])
                _finish(frame, found, tile, tile.at(base, inside, column, width))
            return ()

        counted(frame, found.n.name, columns[0], columns[1], width, vector)
        return ()

    counted(frame, "(row)" if found.m is None else found.m.name, rows[0], rows[1], 1, row)


def _finish(frame: Frame, found: Contraction, tile: Tile, place: Access) -> None:
    lanes = frame.lanes
    with frame.vectorised(Lanes(None, lanes.width)):
        total = memory.load(frame, place, None)
        if total.dtype is not found.dtype:
            narrow = convert(frame.site, total.dtype, found.dtype, total.value)
            total = Lane(found.dtype, (narrow,), total.width)
        frame.values[found.result] = total
    frame.emit(found.around)
    frame.emit(found.after)


@contextmanager
def bound(frame: Frame, axes: Sequence[tuple[Axis | None, ir.Value]]) -> Iterator[None]:
    """Inside, the axes have these values."""
    with ExitStack() as stack:
        for axis, value in axes:
            if axis is not None:
                stack.enter_context(frame.iteration(axis.name, value))
        yield


def unflatten(frame: Frame, flat: ir.Value, axes: Sequence[Axis]) -> list[tuple[Axis, ir.Value]]:
    """The index of each axis, the last fastest, of a flat position that is not negative."""
    found: list[tuple[Axis, ir.Value]] = []
    for axis in reversed(axes):
        extent = scalar_size(frame, axis.extent)
        if axis is axes[0]:
            found.insert(0, (axis, flat))
        else:
            found.insert(0, (axis, frame.builder.urem(flat, extent)))
            flat = frame.builder.udiv(flat, extent)
    return found


def smallest(frame: Frame, *values: ir.Value) -> ir.Value:
    """The least of some i64."""
    least = values[0]
    for value in values[1:]:
        least = intrinsic(frame.builder, "llvm.smin", least.type, [least, value], least.type)
    return least


def flat_extent(axes: Sequence[Axis]) -> Size:
    """How many points some axes have together."""
    total: Size = 1
    for axis in axes:
        total = total * axis.extent
    return total


def operand_value(frame: Frame, dtype: DType, operand: Operand) -> Lane:
    """An operand at the current indices, in the product's dtype."""
    place = resolve(frame, frame.buffers[operand.buffer], operand.index, [], None)
    value = memory.load(frame, place, None)
    if value.dtype is dtype:
        return value
    made = convert(frame.site, value.dtype, dtype, value.value)
    return Lane(dtype, (made,), value.width)


def step_of(frame: Frame, operand: Operand, axis: Axis) -> Size:
    """Bytes from one index of an axis to the next."""
    step: Size = 0
    for part, stride in zip(operand.index, frame.buffers[operand.buffer].strides):
        change = part.coefficient(axis.name) if isinstance(part, Dim) else 0
        assert change is not None
        step = step + change * stride
    return step


def over_tile_groups(frame: Frame, body: Callable[[ir.Value], ir.Value]) -> None:
    """Run `body` at tile after tile of the launch; it says how many tiles it did."""
    builder = frame.builder
    before, top, done = builder.block, frame.block("tiles"), frame.block("done")
    builder.cbranch(builder.icmp_signed("<", frame.begin, frame.end), top, done)
    builder.position_at_end(top)
    position = builder.phi(frame.begin.type)
    position.add_incoming(frame.begin, before)
    with frame.iteration("(tile)", position):
        following = builder.add(position, body(position))
    position.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, frame.end), top, done)
    builder.position_at_end(done)
