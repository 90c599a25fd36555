"""The microkernel: a tile of sums in registers, over one stretch of packed operands.

``c[r, j] += a[r, k] * b[k, j]``. `a` is a packed left block: rows of `Geometry.left_stride`
bytes; `b` a panel: `PANEL_BYTES` for each k; `c` the block of sums, a second plane of it for the
products with imaginary parts.

Invariants: each sum is one chain of multiply-adds in the order of k, from 0 where `first` says
so; so neither the tile's place nor its height shows in a result.
"""

from __future__ import annotations

from llvmlite import ir

from ....compiler.kernel.contraction import PANEL_BYTES
from ..machine import Machine
from ..site import Site
from ..types import I1, I64, POINTER
from .code import advance, broadcast, internal, loop, multiply_add, number, prefetch, zero_of
from .geometry import Geometry


def emit_micro(module: ir.Module, machine: Machine, g: Geometry, name: str) -> ir.Function:
    """``void name(a, b, next, c, depth, first)``."""
    function, builder = internal(module, name, [POINTER, POINTER, POINTER, POINTER, I64, I1])
    a, b, following, c, depth, first = function.args
    site = Site(builder, machine)
    places = [
        advance(builder, c, part * g.plane + row * g.sum_stride + v * g.register_bytes)
        for part in range(g.parts)
        for row in range(g.rows)
        for v in range(g.vectors)
    ]
    begin = _begin(builder, g, places, first)

    def step(k: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        at_a = builder.gep(a, [builder.mul(k, number(g.parts))], source_etype=g.element)
        at_b = advance(builder, b, builder.mul(k, number(PANEL_BYTES)))
        ahead = advance(builder, following, builder.mul(k, number(PANEL_BYTES)))
        for line in range(0, PANEL_BYTES, 64):
            prefetch(builder, advance(builder, ahead, line))
        columns = [
            builder.load(advance(builder, at_b, v * g.register_bytes), typ=g.vector, align=16)
            for v in range(g.vectors)
        ]
        made: list[ir.Value] = []
        for part in range(g.parts):
            for row in range(g.rows):
                place = advance(builder, at_a, row * g.left_stride + part * g.real.itemsize)
                factor = broadcast(builder, builder.load(place, typ=g.element), g.lanes)
                for column in columns:
                    total = sums[len(made)]
                    made.append(multiply_add(site, g.real, factor, column, total))
        return made

    made = loop(builder, number(0), depth, 1, step, begin)
    for place, value in zip(places, made):
        builder.store(value, place, align=16)
    builder.ret_void()
    return function


def _begin(
    builder: ir.IRBuilder, g: Geometry, places: list[ir.Value], first: ir.Value
) -> list[ir.Value]:
    """The sums so far: zeros at first."""
    function = builder.function
    before = builder.block
    more, ready = function.append_basic_block("more"), function.append_basic_block("ready")
    builder.cbranch(first, ready, more)
    builder.position_at_end(more)
    loaded = [builder.load(place, typ=g.vector, align=16) for place in places]
    builder.branch(ready)
    builder.position_at_end(ready)
    begin = []
    for value in loaded:
        phi = builder.phi(g.vector)
        phi.add_incoming(zero_of(g.vector), before)
        phi.add_incoming(value, more)
        begin.append(phi)
    return begin
