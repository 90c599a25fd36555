"""A reduction by the threads of one block, in the order that monoids.py defines.

Thread t of 64 is lane t: it folds elements t, t + 64, ... of a block of 4,096 in registers and
leaves the result in shared memory; six steps with a barrier between halve the lanes, and a
seventh folds few elements in order. Where
there may be more than 4,096 elements, the common code runs over the blocks of elements and
folds their results with the tree over blocks.

Invariants: every thread of the block has the result. Code of `combine` is the monoid's own.
Not here: which reductions are done this way, barriers (grid.py).
"""

from __future__ import annotations

from ..dims import Dim, Size, maximum, minimum
from ..ops.scalar import Scalar
from ..records import replace
from .combining import combined
from .fresh import fresh
from .kernel import Constant, Let, Load, Local, Loop, Parallel, Reduce, Statement, Store
from .monoids import BLOCK, FEW, LANES, MONOIDS
from .schedule import IllegalSchedule
from .symbols import substitute_sizes

Body = tuple[Statement, ...]


def block_reduce(s: Reduce, taken: set[str]) -> Body:
    """Statements of a block's common code that define `s.names`."""
    lanes = [Local(fresh("lanes", taken), d, (LANES,), "shared") for d in s.dtypes]
    if isinstance(s.extent, int) and 0 < s.extent <= BLOCK:
        results = [
            Load(n, m.name, (0,), m.dtype, location=s.location) for n, m in zip(s.names, lanes)
        ]
        return (*lanes, *_one_block(s, lanes, 0, s.extent, taken), *results)
    block = fresh("chunk", taken)
    first = Dim.symbol(block) * BLOCK
    count = minimum(s.extent - first, BLOCK)
    parts = tuple(fresh("part", taken) for _ in s.names)
    loads = [Load(part, m.name, (0,), m.dtype) for part, m in zip(parts, lanes)]
    body = (*_one_block(s, lanes, first, count, taken), *loads)
    blocks = (s.extent + BLOCK - 1) // BLOCK
    return (
        *lanes,
        replace(s, axis=block, extent=blocks, body=body, yields=parts, loose=False, tree=True),
    )


def _one_block(s: Reduce, lanes: list[Local], first: Size, count: Size, taken: set[str]) -> Body:
    """Elements first .. first + count, at most 4,096, to element 0 of the lanes."""
    out: list[Statement] = [_fold_lanes(s, lanes, first, count, taken)]
    many = minimum(count // FEW, 1)
    few = (minimum(count, FEW) + (FEW - 1)) // FEW - many  # 1 where there are 1 .. 7
    width = LANES // 2
    while width:
        pairs = maximum(minimum(count - width, width), 0) * many
        if pairs != 0:
            out.append(_halve(s, lanes, width, pairs, taken))
        width //= 2
    if few != 0 and count != 1:
        out.append(_in_order(s, lanes, few, count, taken))
    return tuple(out)


def _fold_lanes(
    s: Reduce, lanes: list[Local], first: Size, count: Size, taken: set[str]
) -> Statement:
    """Each lane's elements in order, from the neutral state on."""
    thread, step = fresh("lane", taken), fresh("step", taken)
    lane = Dim.symbol(thread)
    place = first + lane + Dim.symbol(step) * LANES
    neutral = _neutral(s)
    start: list[Statement] = []
    for value, dtype in zip(neutral, s.dtypes):
        start.append(Constant(fresh("neutral", taken), value, dtype))
    held = tuple(fresh("held", taken) for _ in s.names)
    combined, made = combine(s, held, s.yields, taken)
    body = (*substitute_sizes(s.body, {s.axis: place}), *combined)
    init = tuple(c.name for c in start if isinstance(c, Constant))
    turns = (count - lane + LANES - 1) // LANES
    loop = Loop(held, init, step, turns, body, made, None, s.dtypes)
    stores = [Store(m.name, (lane,), name) for m, name in zip(lanes, held)]
    used = minimum(count, LANES)
    return Parallel(thread, used, (*start, loop, *stores), bind="block.x")


def _halve(s: Reduce, lanes: list[Local], width: int, pairs: Size, taken: set[str]) -> Statement:
    """Lane l takes in lane l + width."""
    thread = fresh("lane", taken)
    lane = Dim.symbol(thread)
    near = tuple(fresh("near", taken) for _ in lanes)
    far = tuple(fresh("far", taken) for _ in lanes)
    loads = [Load(n, m.name, (lane,), m.dtype) for n, m in zip(near, lanes)]
    loads += [Load(f, m.name, (lane + width,), m.dtype) for f, m in zip(far, lanes)]
    combined, made = combine(s, near, far, taken)
    stores = [Store(m.name, (lane,), name) for m, name in zip(lanes, made)]
    return Parallel(thread, pairs, (*loads, *combined, *stores), bind="block.x")


def _in_order(s: Reduce, lanes: list[Local], few: Size, count: Size, taken: set[str]) -> Statement:
    """One thread takes in one lane after another."""
    thread, step = fresh("lane", taken), fresh("step", taken)
    far = tuple(fresh("far", taken) for _ in lanes)
    held = tuple(fresh("held", taken) for _ in lanes)
    start = tuple(fresh("first", taken) for _ in lanes)
    following = (Dim.symbol(step) + 1,)
    first = [Load(n, m.name, (0,), m.dtype) for n, m in zip(start, lanes)]
    loads = [Load(f, m.name, following, m.dtype) for f, m in zip(far, lanes)]
    combined, made = combine(s, held, far, taken)
    loop = Loop(held, start, step, count - 1, (*loads, *combined), made, None, s.dtypes)
    stores = [Store(m.name, (0,), name) for m, name in zip(lanes, held)]
    return Parallel(thread, few, (*first, loop, *stores), bind="block.x")


def _neutral(s: Reduce) -> list[object]:
    monoid = MONOIDS[s.monoid]
    found: list[object] = []
    for at in range(0, len(s.dtypes), monoid.arity):
        found.extend(monoid.neutral(s.dtypes[at]))
    return found


def combine(
    s: Reduce, a: tuple[str, ...], b: tuple[str, ...], taken: set[str]
) -> tuple[list[Statement], tuple[str, ...]]:
    """The monoid's `combine` as statements: values `a`, then `b`; the names of the result."""
    arity = MONOIDS[s.monoid].arity
    out: list[Statement] = []
    results: list[str] = []
    for at in range(0, len(a), arity):
        part = slice(at, at + arity)
        put = lambda node, args: _statement(node, args, out, taken)
        results += combined(s.monoid, s.dtypes[part], (*a[part], *b[part]), put)
    return out, tuple(results)


def _statement(node: Scalar, args: tuple[str, ...], out: list[Statement], taken: set[str]) -> str:
    name = fresh("join", taken)
    if node.word == "const":
        out.append(Constant(name, node.attr, node.dtype))
    elif node.attr is not None:
        raise IllegalSchedule(f"a combine with {node.word} is no straight line")
    else:
        out.append(Let(name, node.word, args, node.dtype))
    return name
