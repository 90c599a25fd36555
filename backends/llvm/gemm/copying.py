"""Copies of a strided matrix into rows of fixed distance: what packing is made of.

``target[r, c] = source[r, c]`` converted, for c below `columns`, and 0 from there to `width`.
Three ways, by where the source's neighbours are: along a row, a vector at a time; along a
column, squares transposed in registers; nowhere, one by one. What does not fill a vector or a
square goes one by one, or under a mask where that is cheap.

Invariants: touches no element of the source outside the matrix.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ....compiler.records import dataclass
from ....compiler.types import DType, real_part_of
from ..conversions import convert
from ..machine import Machine
from ..site import Site
from ..types import I64, POINTER, memory_element, part_count
from .code import (
    advance,
    internal,
    lanes_below,
    load_elements,
    loop,
    number,
    prefetch,
    transpose,
    zero_of,
)  # fmt: skip

_AHEAD = 4  # rows: what lies there is asked for while this row is copied


@dataclass(frozen=True, slots=True)
class Copying:
    """What is copied: element types, and bytes between rows of the target."""

    source: DType
    target: DType
    stride: int


@dataclass(slots=True)
class _Copy:
    """One copy function under construction."""

    what: Copying
    site: Site
    source: ir.Value
    row_stride: ir.Value
    column_stride: ir.Value
    rows: ir.Value
    columns: ir.Value
    width: ir.Value
    target: ir.Value

    @property
    def builder(self) -> ir.IRBuilder:
        return self.site.builder

    def source_at(self, row: ir.Value, column: ir.Value) -> ir.Value:
        b = self.builder
        down = advance(b, self.source, b.mul(row, self.row_stride))
        return advance(b, down, b.mul(column, self.column_stride))

    def target_at(self, row: ir.Value, column: ir.Value) -> ir.Value:
        b = self.builder
        down = advance(b, self.target, b.mul(row, number(self.what.stride)))
        return advance(b, down, b.mul(column, number(self.what.target.itemsize)))

    def one(self, row: ir.Value, column: ir.Value) -> None:
        """Copy one element, part by part."""
        b, what = self.builder, self.what
        place, source = self.target_at(row, column), self.source_at(row, column)
        parts = part_count(what.source)
        element = memory_element(what.source)
        for part in range(parts):
            at = advance(b, source, part * (what.source.itemsize // parts))
            value = b.load(at, typ=element, align=1)
            if what.source is not what.target:
                value = convert(self.site, what.source, what.target, value)
            b.store(value, advance(b, place, part * (what.target.itemsize // parts)), align=1)

    def block(
        self, row: ir.Value, row_end: ir.Value, column: ir.Value, column_end: ir.Value
    ) -> None:
        """Copy a block one by one."""

        def line(r: ir.Value, _: list[ir.Value]) -> None:
            loop(self.builder, column, column_end, 1, lambda c, _: self.one(r, c))

        loop(self.builder, row, row_end, 1, line)

    def fill(self) -> None:
        """Zeros from `columns` to `width`."""
        b, what = self.builder, self.what
        parts = part_count(what.target)
        zero = zero_of(memory_element(what.target))

        def line(r: ir.Value, _: list[ir.Value]) -> None:
            def clear(c: ir.Value, _: list[ir.Value]) -> None:
                place = self.target_at(r, c)
                for part in range(parts):
                    at = advance(b, place, part * (what.target.itemsize // parts))
                    b.store(zero, at, align=1)

            loop(b, self.columns, self.width, 1, clear)

        rows = b.select(b.icmp_signed("<", self.columns, self.width), self.rows, number(0))
        loop(b, number(0), rows, 1, line)


def copy_function(
    module: ir.Module, machine: Machine, what: Copying, way: str, prefix: str
) -> ir.Function:
    """``void f(source, row stride, column stride, rows, columns, width, target)``.

    way: ``rows``, ``columns`` or ``any``, by the neighbours of the source.
    """
    name = f"{prefix}_copy_{way}_{what.source}_{what.target}_{what.stride}"
    known = module.globals.get(name)
    if known is not None:
        return known
    types = [POINTER, I64, I64, I64, I64, I64, POINTER]
    function, builder = internal(module, name, types)
    copy = _Copy(what, Site(builder, machine), *function.args)
    _WAYS[way](copy)
    builder.ret_void()
    return function


def _one_by_one(copy: _Copy) -> None:
    copy.block(number(0), copy.rows, number(0), copy.columns)
    copy.fill()


def _by_rows(copy: _Copy) -> None:
    """Vectors along the rows."""
    b, what = copy.builder, copy.what
    real_source, real_target, lanes = _reals(copy)
    parts = part_count(what.source)
    masked = copy.site.machine.has_masked_memory
    reals = b.mul(copy.columns, number(parts))
    end = b.mul(copy.width if masked else copy.columns, number(parts))
    whole = b.and_(reals, number(-lanes))
    ahead = b.mul(copy.row_stride, number(_AHEAD))

    def vector(r: ir.Value, c: ir.Value, mask: ir.Value | None) -> None:
        down = advance(b, copy.source, b.mul(r, copy.row_stride))
        source = b.gep(down, [c], source_etype=memory_element(real_source))
        prefetch(b, advance(b, source, ahead))
        value = load_elements(copy.site, real_source, real_target, source, lanes, mask)
        line = advance(b, copy.target, b.mul(r, number(what.stride)))
        place = b.gep(line, [c], source_etype=memory_element(real_target))
        b.store(value, place, align=1)

    def row(r: ir.Value, _: list[ir.Value]) -> None:
        loop(b, number(0), whole, lanes, lambda c, _: vector(r, c, None))
        if masked:
            loop(b, whole, end, lanes, lambda c, _: vector(
                r, c, lanes_below(b, b.sub(reals, c), lanes)
            ))  # fmt: skip

    loop(b, number(0), copy.rows, 1, row)
    if not masked:
        copy.block(number(0), copy.rows, b.udiv(whole, number(parts)), copy.columns)
        copy.fill()


def _by_columns(copy: _Copy) -> None:
    """Squares, transposed."""
    b, what = copy.builder, copy.what
    count = copy.site.machine.vector_bits // 8 // what.target.itemsize
    if count < 2:
        _one_by_one(copy)
        return
    moved = ir.IntType(8 * what.target.itemsize)  # elements only move: complex ones too
    rows, columns = (b.and_(n, number(-count)) for n in (copy.rows, copy.columns))

    def square(r: ir.Value, c: ir.Value) -> None:
        lines = []
        for i in range(count):
            source = copy.source_at(r, b.add(c, number(i)))
            if what.source is what.target:
                lines.append(b.load(source, typ=ir.VectorType(moved, count), align=1))
                continue
            value = load_elements(copy.site, what.source, what.target, source, count, None)
            lines.append(b.bitcast(value, ir.VectorType(moved, count)))
        for i, line in enumerate(transpose(b, lines)):
            b.store(line, copy.target_at(b.add(r, number(i)), c), align=1)

    def line(r: ir.Value, _: list[ir.Value]) -> None:
        loop(b, number(0), columns, count, lambda c, _: square(r, c))

    loop(b, number(0), rows, count, line)
    copy.block(rows, copy.rows, number(0), columns)
    copy.block(number(0), copy.rows, columns, copy.columns)
    copy.fill()


def _reals(copy: _Copy) -> tuple[DType, DType, int]:
    """A complex copy as one of its reals; lanes of a register of the target's."""
    source, target = copy.what.source, copy.what.target
    if source.is_complex:
        from_, to = (real_part_of(source), real_part_of(target))
        return from_, to, copy.site.machine.vector_bits // to.bits
    return source, target, copy.site.machine.vector_bits // target.bits


_WAYS: dict[str, Callable[[_Copy], None]] = {
    "rows": _by_rows,
    "columns": _by_columns,
    "any": _one_by_one,
}
