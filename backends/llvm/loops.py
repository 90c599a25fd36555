"""Loops of a kernel as code: counted loops, carried state, conditions, masks of last vectors.

A loop is guarded and tested at its end; what its body computes alike in every iteration stands
between guard and loop.

Invariants: every loop that may run long asks now and then whether to stop (control.poll): loops
around loops by the work inside them, an outermost plain loop in strips.
Not here: vector loops (vector_loop.py), reductions (reduce.py), plain statements (statements.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ...compiler.dims import Dim, Size, maximum
from ...compiler.kernel.kernel import (
    Constant,
    For,
    If,
    Let,
    Loop,
    Parallel,
    Reduce,
    Scan,
    Statement,
    bodies,
    walk,
)  # fmt: skip
from .control import poll
from .frame import Frame, constant
from .indices import scalar_size
from .invariants import split_invariant
from .simplifying import ask_to_simplify
from .types import I1, I32, Lane, any_lane, intrinsic, invert, splat, widen

Block = tuple[Statement, ...]
Body = Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value] | None]
Prepare = Callable[[], None] | None
STRIP = 1 << 16
_FOREVER = 1 << 62
_VALUES = (Let, Constant)


def counted(
    frame: Frame,
    axis: str,
    begin: ir.Value,
    end: ir.Value,
    step: int,
    body: Body,
    carried: Sequence[ir.Value] = (),
    prepare: Prepare = None,
    work: Size | None = None,
) -> list[ir.Value]:
    """``for axis in begin, begin + step, ... < end``; the carried values after the last.

    prepare: emitted once before the first iteration, if there is one. work: of an iteration,
    where the loop should ask whether to stop.
    """
    builder = frame.builder
    before, ready, done = builder.block, frame.block("ready"), frame.block("done")
    builder.cbranch(builder.icmp_signed("<", begin, end), ready, done)
    builder.position_at_end(ready)
    if prepare is not None:
        prepare()
    prepared = builder.block
    top = frame.block("top")
    builder.branch(top)
    builder.position_at_end(top)
    index = builder.phi(begin.type)
    index.add_incoming(begin, prepared)
    phis = [builder.phi(value.type) for value in carried]
    for phi, value in zip(phis, carried):
        phi.add_incoming(value, prepared)
    with frame.iteration(axis, index):
        made = list(body(index, list(phis)) or ())
        if work is not None:
            poll(frame, scalar_size(frame, work))
    following = builder.add(index, ir.Constant(index.type, step), flags=["nsw"])
    latch = builder.block
    index.add_incoming(following, latch)
    builder.cbranch(builder.icmp_signed("<", following, end), top, done)
    builder.position_at_end(done)
    results = []
    for phi, value, first in zip(phis, made, carried):
        phi.add_incoming(value, latch)
        result = builder.phi(value.type)
        result.add_incoming(first, before)
        result.add_incoming(value, latch)
        results.append(result)
    return results


def mask_below(frame: Frame, index: ir.Value, end: ir.Value, width: int) -> ir.Value:
    """The lanes of index, index + 1, ... that lie below `end`."""
    builder = frame.builder
    left = builder.sub(end, index)
    left = intrinsic(builder, "llvm.smin", left.type, [left, constant(width)], left.type)
    typ = ir.VectorType(I32, width)
    lanes = ir.Constant(typ, [ir.Constant(I32, i) for i in range(width)])
    return builder.icmp_signed("<", lanes, splat(builder, builder.trunc(left, I32), width))


def tail_bits(frame: Frame, begin: ir.Value, end: ir.Value, width: int) -> ir.Value:
    """The lanes of the last step of a loop from `begin` to `end` by `width`, as bits."""
    builder = frame.builder
    bits = ir.IntType(max(width, 32))
    left = builder.and_(builder.sub(end, begin), constant(width - 1))
    if bits.width != 64:
        left = (builder.trunc if bits.width < 64 else builder.zext)(left, bits)
    partial = builder.sub(builder.shl(ir.Constant(bits, 1), left), ir.Constant(bits, 1))
    none = builder.icmp_unsigned("==", left, ir.Constant(bits, 0))
    return builder.select(none, ir.Constant(bits, (1 << width) - 1), partial)


def step_mask(frame: Frame, index: ir.Value, end: ir.Value, width: int, tail: ir.Value) -> ir.Value:
    """The active lanes of a step: all, or those of `tail` in the last; scalar work only."""
    builder = frame.builder
    whole = builder.icmp_signed("<=", builder.add(index, constant(width)), end)
    chosen = builder.select(whole, ir.Constant(tail.type, (1 << width) - 1), tail)
    if tail.type.width != width:
        chosen = builder.trunc(chosen, ir.IntType(width))
    return builder.bitcast(chosen, ir.VectorType(I1, width))


def range_of(frame: Frame, axis: str, extent: Size) -> tuple[ir.Value, ir.Value]:
    """First and end index of an axis in this call."""
    if axis == frame.thread_axis:
        return frame.begin, frame.end
    return constant(0), scalar_size(frame, extent)


def work_of(frame: Frame, body: Block) -> Size | None:
    """Inner iterations of one run of `body`, as far as sizes known here tell; None: no loop."""
    total: Size = 0
    looped = False
    for s in body:
        if isinstance(s, Parallel | For | Loop | Reduce | Scan):
            inner = work_of(frame, tuple(i for b in bodies(s) for i in b))
            extent = s.extent if s.extent is not None and _is_known(frame, s.extent) else 64
            total = total + extent * (1 if inner is None else inner)
            looped = True
        elif isinstance(s, If):
            inner = work_of(frame, s.body + s.otherwise)
            if inner is not None:
                total, looped = total + inner, True
    return maximum(total, 1) if looped else None


def emit_parallel(frame: Frame, s: Parallel) -> None:
    """Independent iterations, one at a time or in the lanes of a loop around."""
    _plain_loop(frame, s.axis, s.extent, s.body, s.unroll)


def emit_for(frame: Frame, s: For) -> None:
    """Iterations in order."""
    _plain_loop(frame, s.axis, s.extent, s.body, s.unroll)


def emit_if(frame: Frame, s: If) -> None:
    """A condition shared by all lanes."""
    builder = frame.builder
    blocks = [frame.block(name) for name in ("then", "else", "after")]
    builder.cbranch(any_lane(builder, frame.values[s.condition].value), blocks[0], blocks[1])
    ends: list[tuple[ir.Block, list[Lane]]] = []
    for block, body, made in zip(blocks, (s.body, s.otherwise), (s.yields, s.others)):
        builder.position_at_end(block)
        frame.emit(body)
        lanes = [widen(builder, frame.values[name], frame.lanes.width) for name in made]
        ends.append((builder.block, lanes))
        builder.branch(blocks[2])
    builder.position_at_end(blocks[2])
    (first, then), (second, otherwise) = ends
    for name, lane, other in zip(s.names, then, otherwise):
        joined = _phis(builder, lane, first)
        for phi, part in zip(joined.parts, other.parts):
            phi.add_incoming(part, second)
        frame.values[name] = joined


def emit_loop(frame: Frame, s: Loop) -> None:
    """Carried values, until the extent or until all lanes are done."""
    builder = frame.builder
    if len(frame.levels) == 1 and any(not isinstance(inner, _VALUES) for inner in walk(s.body)):
        ask_to_simplify(frame.function)
    width = frame.lanes.width
    init = [widen(builder, frame.values[name], width) for name in s.init]
    end = constant(_FOREVER) if s.extent is None else scalar_size(frame, s.extent)
    moved, kept = split_invariant(s.body, s.axis, s.names)
    before, ready, done = builder.block, frame.block("ready"), frame.block("done")
    some = builder.icmp_signed("<", constant(0), end)
    if s.when is not None:
        some = builder.and_(some, frame.values[s.when].value)
    builder.cbranch(some, ready, done)
    builder.position_at_end(ready)
    frame.emit(moved)
    prepared, top = builder.block, frame.block("top")
    builder.branch(top)
    builder.position_at_end(top)
    index = builder.phi(end.type)
    index.add_incoming(constant(0), prepared)
    state = [_phis(builder, lane, prepared) for lane in init]
    frame.values.update(zip(s.names, state))
    with frame.iteration(s.axis, index):
        frame.emit(kept)
        made = [widen(builder, frame.values[name], width) for name in s.yields]
        go_on = None if s.until is None else _some_lane_goes_on(frame, frame.values[s.until])
        work = work_of(frame, s.body)
        if work is None:
            _poll_sometimes(frame, index)
        else:
            poll(frame, scalar_size(frame, work))
    following = builder.add(index, constant(1), flags=["nsw"])
    more = builder.icmp_signed("<", following, end)
    if go_on is not None:
        more = builder.and_(more, go_on)
    latch = builder.block
    index.add_incoming(following, latch)
    builder.cbranch(more, top, done)
    builder.position_at_end(done)
    for name, first, lane, last in zip(s.names, init, state, made):
        parts = []
        for start, phi, value in zip(first.parts, lane.parts, last.parts):
            phi.add_incoming(value, latch)
            result = builder.phi(value.type)
            result.add_incoming(start, before)
            result.add_incoming(value, latch)
            parts.append(result)
        frame.values[name] = Lane(first.dtype, tuple(parts), width)


def _phis(builder: ir.IRBuilder, lane: Lane, block: ir.Block) -> Lane:
    parts = []
    for value in lane.parts:
        phi = builder.phi(value.type)
        phi.add_incoming(value, block)
        parts.append(phi)
    return Lane(lane.dtype, tuple(parts), lane.width)


def _some_lane_goes_on(frame: Frame, until: Lane) -> ir.Value:
    builder = frame.builder
    going = invert(builder, until.value)
    if until.width > 1 and frame.lanes.mask is not None:
        going = builder.and_(going, frame.lanes.mask)
    return any_lane(builder, going)


def _poll_sometimes(frame: Frame, index: ir.Value) -> None:
    """Every 1,024 iterations, count them as work."""
    builder = frame.builder
    ask, onward = frame.block("sometimes"), frame.block("onward")
    low = builder.and_(index, constant(1023))
    due = builder.icmp_signed("==", low, constant(1023))
    builder.cbranch(due, ask, onward).set_weights([1, 1000])
    builder.position_at_end(ask)
    poll(frame, constant(1024 * 16))
    builder.branch(onward)
    builder.position_at_end(onward)


def _plain_loop(frame: Frame, axis: str, extent: Size, body: Block, unroll: int) -> None:
    begin, end = range_of(frame, axis, extent)
    if isinstance(extent, int) and axis != frame.thread_axis and extent <= unroll:
        for index in range(extent):
            with frame.iteration(axis, constant(index)):
                frame.emit(body)
        return
    moved, kept = split_invariant(body, axis)
    stripped(
        frame, begin, end, 1, body,
        lambda first, last, work, prepare: counted(
            frame, axis, first, last, 1, lambda _, __: frame.emit(kept), (), prepare, work
        ),
        lambda: frame.emit(moved),
    )  # fmt: skip


def stripped(
    frame: Frame,
    begin: ir.Value,
    end: ir.Value,
    step: int,
    body: Block,
    loop: Callable[[ir.Value, ir.Value, Size | None, Prepare], object],
    prepare: Prepare = None,
) -> None:
    """Run `loop` over [begin, end) so that it asks whether to stop.

    `loop` is given a range, the work of an iteration if it must ask itself (as it has inner
    loops), and what it must emit before its first iteration. An outermost loop without inner
    ones is run strip by strip.
    """
    work = work_of(frame, body)
    if work is not None or len(frame.levels) > 1:
        loop(begin, end, work, prepare)
        return
    builder = frame.builder

    def strip(start: ir.Value, _: list[ir.Value]) -> None:
        stop = builder.add(start, constant(STRIP * step), flags=["nsw"])
        stop = intrinsic(builder, "llvm.smin", stop.type, [stop, end], stop.type)
        loop(start, stop, None, None)

    counted(frame, "(strip)", begin, end, STRIP * step, strip, prepare=prepare, work=STRIP * step)


def _is_known(frame: Frame, extent: Size) -> bool:
    if not isinstance(extent, Dim):
        return True
    return all(s in frame.dims or s in frame.axes for s in extent.symbols())
