"""Random graphs with branches and loops inside each other, for tests of passes, memory and rows.

Five types of values are always at hand; a region is handed at least one of each and yields any of
what it has: its parameters, the same value twice, what a nested loop gives. Which way a branch
goes, and how often a loop runs, follows from integers alone, so rounding decides nothing.

Not here: straight-line graphs (random_graphs.py).
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tracemill.compiler.dims import Dim
from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.ir.graph import Graph, Value
from tracemill.compiler.types import BOOL, F32, I64, TensorType

N = Dim.symbol("n")
VECTOR, MATRIX, SCALAR = (TensorType(F32, shape) for shape in ((N,), (N, 4), ()))
INTEGER, FLAG = TensorType(I64, ()), TensorType(BOOL, ())
TYPES = (VECTOR, MATRIX, SCALAR, INTEGER, FLAG)
Pool = dict[TensorType, list[Value]]


def random_flow_graph(seed: int, nodes: int = 12, depth: int = 3) -> Graph:
    """A graph over all five types that returns one value of each."""
    rng = random.Random(seed)
    builder = Builder(f"flow{seed}")
    pool: Pool = {t: [builder.param(name, t)] for name, t in zip("xmskp", TYPES)}
    _fill(rng, builder, pool, nodes, depth)
    return builder.finish([rng.choice(pool[t]) for t in TYPES])


def _fill(rng: random.Random, builder: Builder, pool: Pool, nodes: int, depth: int) -> None:
    for _ in range(nodes):
        if depth and rng.random() < 0.25:
            made = rng.choice(_FLOWS)(rng, builder, pool, depth - 1)
        else:
            made = [_plain(rng, builder, pool)]
        for value in made:
            pool[value.tensor].append(value)


def _plain(rng: random.Random, b: Builder, pool: Pool) -> Value:
    """One ordinary node."""

    def any_of(t: TensorType) -> Value:
        return rng.choice(pool[t][-4:])

    def column(t: TensorType) -> Value:
        return b.emit("reshape", (any_of(VECTOR),), {"shape": (N, 1)})

    def shifted() -> Value:
        return b.emit("slice", (any_of(VECTOR),), {"start": (N - 1,), "size": (N,), "step": (-1,)})

    def written() -> Value:
        attrs = {"start": (0, rng.randrange(4)), "step": (1, 1)}
        return b.emit("update_slice", (any_of(MATRIX), column(MATRIX)), attrs)

    float_type = rng.choice((VECTOR, MATRIX, SCALAR))
    makers: list[Callable[[], Value]] = [
        lambda: b.add(b.mul(any_of(float_type), 0.5), any_of(float_type)),
        lambda: b.maximum(any_of(float_type), b.tanh(any_of(float_type))),
        lambda: b.sub(any_of(VECTOR), any_of(SCALAR)),
        lambda: b.minimum(b.sum(any_of(VECTOR), axes=(0,)), 9.0),
        lambda: b.maximum(b.sum(any_of(MATRIX), axes=(1,)), -9.0),
        lambda: b.select(any_of(FLAG), any_of(float_type), any_of(float_type)),
        shifted,
        written,
        lambda: b.minimum(b.add(any_of(INTEGER), 1), 5),
        lambda: b.sub(any_of(INTEGER), any_of(INTEGER)),
        lambda: b.less(any_of(INTEGER), any_of(INTEGER)),
        lambda: b.logical_not(any_of(FLAG)),
    ]
    made: Value = rng.choice(makers)()
    return made


def _captured(rng: random.Random, pool: Pool) -> list[Value]:
    """What a region is handed: one value of each type, and some more, in any order."""
    chosen = [rng.choice(pool[t][-3:]) for t in TYPES]
    chosen += [rng.choice(rng.choice(list(pool.values()))) for _ in range(rng.randrange(3))]
    rng.shuffle(chosen)
    return chosen


class _Region:
    """A region being made: `params` by the types it is handed."""

    def __init__(self, rng: random.Random, handed: list[TensorType]) -> None:
        self.builder = Builder("region")
        self.params = [self.builder.param("v", t) for t in handed]
        self.pool: Pool = {t: [] for t in TYPES}
        for param in self.params:
            self.pool[param.tensor].append(param)
        self.rng = rng

    def fill(self, depth: int) -> None:
        _fill(self.rng, self.builder, self.pool, self.rng.randrange(1, 6), depth)

    def any_of(self, t: TensorType) -> Value:
        return self.rng.choice(self.pool[t])


def _cond(rng: random.Random, b: Builder, pool: Pool, depth: int) -> list[Value]:
    operands = _captured(rng, pool)
    types = rng.choices(TYPES, k=rng.randrange(1, 4))
    regions = []
    for _ in range(2):
        region = _Region(rng, [v.tensor for v in operands])
        region.fill(depth)
        regions.append(region.builder.finish([region.any_of(t) for t in types]))
    test = rng.choice(pool[FLAG][-3:])
    return _listed(b.emit("cond", (test, *operands), {}, regions=regions))


def _carried(rng: random.Random, pool: Pool) -> list[Value]:
    return [rng.choice(pool[rng.choice(TYPES)][-3:]) for _ in range(rng.randrange(1, 4))]


def _while(rng: random.Random, b: Builder, pool: Pool, depth: int) -> list[Value]:
    start, limit = b.constant(rng.randrange(3), I64), b.constant(rng.randrange(4), I64)
    carried = [start, *_carried(rng, pool)]
    operands = [*carried, limit, *_captured(rng, pool)]
    region = _Region(rng, [v.tensor for v in operands])
    region.fill(depth)
    inner = region.builder
    count = inner.add(region.params[0], 1)
    again = inner.less(count, region.params[len(carried)])
    made = [region.any_of(v.tensor) for v in carried[1:]]
    graph = inner.finish([again, count, *made])
    first = b.less(start, limit)
    attrs = {"carried": len(carried)}
    return _listed(b.emit("while", (first, *operands), attrs, regions=[graph]))[1:]


def _for(rng: random.Random, b: Builder, pool: Pool, depth: int) -> list[Value]:
    begin = b.constant(rng.randrange(-2, 3), I64)
    end = b.minimum(rng.choice(pool[INTEGER]), 3)
    carried = _carried(rng, pool)
    operands = [*carried, *_captured(rng, pool)]
    region = _Region(rng, [INTEGER, *[v.tensor for v in operands]])
    region.fill(depth)
    graph = region.builder.finish([region.any_of(v.tensor) for v in carried])
    attrs = {"carried": len(carried)}
    return _listed(b.emit("for", (begin, end, *operands), attrs, regions=[graph]))


def _scan(rng: random.Random, b: Builder, pool: Pool, depth: int) -> list[Value]:
    carried = _carried(rng, pool)
    stacked = [rng.choice(pool[VECTOR]) for _ in range(rng.randrange(3))]
    captured = _captured(rng, pool)
    rows = [SCALAR] * len(stacked)
    region = _Region(rng, [*[v.tensor for v in carried], *rows, *[v.tensor for v in captured]])
    region.fill(depth)
    types = rng.choices((VECTOR, MATRIX, SCALAR), k=rng.randrange(3))
    made = [region.any_of(v.tensor) for v in carried] + [region.any_of(t) for t in types]
    attrs = {
        "carried": len(carried),
        "length": N,
        "reverse": rng.random() < 0.5,
        "stacked": len(stacked),
    }
    graph = region.builder.finish(made)
    found = _listed(b.emit("scan", (*carried, *stacked, *captured), attrs, regions=[graph]))
    ends, stacks = found[: len(carried)], found[len(carried) :]
    return ends + [v if v.tensor == VECTOR else b.sum(v, axes=(0,)) for v in stacks]


_FLOWS = (_cond, _while, _for, _scan)


def _listed(made: Value | tuple[Value, ...]) -> list[Value]:
    return list(made) if isinstance(made, tuple) else [made]
