"""Random well-formed graphs: all families of ops, symbolic sizes, state and checks.

Not here: arguments for them (mill.inputs_for).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np

from tracemill.compiler.dims import Dim
from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.ir.graph import Graph, Location, Value
from tracemill.compiler.ops import ALL
from tracemill.compiler.ops.definition import SignatureError, Structure
from tracemill.compiler.ops.stepping import step_of
from tracemill.compiler.types import BOOL, C64, F16, F32, F64, I8, I32, I64, U8, TensorType

N, M = Dim.symbol("n"), Dim.symbol("m")
DTYPES = (BOOL, I8, I32, I64, U8, F16, F32, F64, C64)
SHAPES = ((), (N,), (M, N), (N, 1, 3), (2, 3), (1,))
ELEMENTWISE = [op for op in ALL.values() if op.structure is Structure.ELEMENTWISE]


class Maker:
    """Grows one graph from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.line = 0
        self.b = Builder("random", self.locate)
        self.b.variable("state", TensorType(F32, (2, 3)))
        self.values: list[Value] = [
            self.b.param(f"p{i}", TensorType(self.pick(DTYPES), shape))
            for i, shape in enumerate(SHAPES)
        ]

    def locate(self) -> Location:
        self.line += 1
        return Location("random.py", self.line, "random")

    def pick(self, options):  # type: ignore[no-untyped-def]
        return options[int(self.rng.integers(len(options)))]

    def value(self, wanted: Callable[[TensorType], bool] = lambda type: True) -> Value | None:
        found = [v for v in self.values if wanted(v.tensor)]
        return self.pick(found) if found else None

    def grow(self, size: int) -> Graph:
        steps = [
            self.elementwise, self.elementwise, self.elementwise, self.literal, self.cast,
            self.move, self.fold, self.step, self.contract, self.index, self.state, self.show,
        ]  # fmt: skip
        while len(self.b.nodes) < size:
            self.pick(steps)()
        results = [self.pick(self.values) for _ in range(3)]
        return self.b.finish(results)

    def add(self, made: Value) -> None:
        self.values.append(made)

    def elementwise(self) -> None:
        op = self.pick(ELEMENTWISE)
        first = self.value()
        assert first is not None
        rest = (first, *(self.value(lambda t: t.shape in (first.tensor.shape, ())) for _ in "ab"))
        for count in (1, 2, 3):
            operands = rest[:count]
            try:
                op.signature([v.type for v in operands if v], {})
            except SignatureError:
                continue
            made = self.b.emit(op, operands, name=self.pick(("h", "t", None)))
            for value in made if isinstance(made, tuple) else (made,):
                self.add(value)
            return

    def literal(self) -> None:
        dtype = self.pick(DTYPES)
        shape = self.pick(((), (), (3,), (2, 3), (70,)))
        number = self.rng.choice([0, 1, -1.5, np.nan, np.inf, -0.0, 1e-7], shape)
        with np.errstate(all="ignore"):
            self.add(self.b.constant(np.asarray(number).astype(dtype.numpy)))

    def cast(self) -> None:
        self.add(self.b.cast(self.value(), dtype=self.pick(DTYPES)))

    def move(self) -> None:
        x = self.value()
        assert x is not None
        shape, rank = x.tensor.shape, x.tensor.rank
        perm = tuple(int(i) for i in self.rng.permutation(rank))
        ones, none = (1,) * rank, (0,) * rank
        back = (-1,) * rank
        moves: list[Callable[[], Value]] = [
            lambda: self.b.transpose(x, perm=perm),
            lambda: self.b.reshape(x, shape=(1, *shape)),
            lambda: self.b.broadcast_to(x, shape=(2, *shape)),
            lambda: self.b.slice(x, start=tuple(n - 1 for n in shape), size=shape, step=back),
            lambda: self.b.pad(x, self.b.constant(1, x.tensor.dtype), low=ones, high=none),
            lambda: (
                self.b.update_slice(self.b.broadcast_to(x, shape=shape), x, start=none, step=back)
                if not rank
                else self.b.transpose(x, perm=perm)
            ),
        ]
        if rank:
            moves.append(lambda: self.b.concatenate(x, x, axis=0))
        if rank <= 3:
            self.add(self.pick(moves)())

    def fold(self) -> None:
        name = self.pick(("sum", "prod", "min", "max", "any", "all", "cumsum", "cumprod", "cummax"))
        kinds = {"any": "b", "all": "b", "min": "biuf", "max": "biuf", "cummax": "biuf"}.get(
            name, "iuf"
        )
        x = self.value(lambda t: t.rank > 0 and t.dtype.kind in kinds)
        if x is None:
            return
        axis = int(self.rng.integers(x.tensor.rank))
        if name in ("min", "max") and not isinstance(x.tensor.shape[axis], int):
            return  # may be empty
        key = {"axis": axis} if name.startswith("cum") else {"axes": (axis,)}
        self.add(self.b.emit(name, (x,), key))

    def step(self) -> None:
        x = self.value(lambda t: t.rank > 0)
        assert x is not None
        op, axis = self.pick(ELEMENTWISE), int(self.rng.integers(x.tensor.rank))
        with contextlib.suppress(SignatureError):
            if step_of(op.name, x.tensor.dtype) == (2, x.tensor.dtype):
                self.add(self.b.emit("accumulate", (x,), {"axis": axis, "step": op.name}))

    def contract(self) -> None:
        x = self.value(lambda t: t.rank == 2 and t.dtype.kind in "iuf")
        if x is not None:
            self.add(self.b.contract(x, x, axes=((0, 0),), batch=((1, 1),)))

    def index(self) -> None:
        x = self.value(lambda t: t.rank > 0)
        assert x is not None
        indices = self.b.constant(np.array([0, -1, 0]))
        value, _ = self.b.gather(x, indices, axes=(0,), name="taken")
        self.add(value)
        if x.tensor.dtype.kind in "iuf":
            self.add(self.b.scatter_add(x, value, indices, axes=(0,))[0])
        wide = self.b.cast(value, dtype=self.pick(DTYPES))
        op = self.pick(ELEMENTWISE)
        with contextlib.suppress(SignatureError):
            step_of(op.name, wide.tensor.dtype)
            attrs = {"axes": (0,), "step": op.name}
            self.add(self.b.emit("scatter_step", (x, wide, indices), attrs)[0])

    def state(self) -> None:
        x = self.value(lambda t: t == TensorType(F32, (2, 3)))
        if x is None or self.rng.integers(2):
            self.add(self.b.emit("read", (), variable="state"))
        else:
            self.b.emit("assign", (x,), variable="state")

    def show(self) -> None:
        if self.rng.integers(3) == 0:
            self.b.emit("print", (self.value(lambda t: t.dtype.kind == "i") or self.values[0],),
                        {"text": 'seen // "{}"'})  # fmt: skip


def random_graph(seed: int, size: int = 30) -> Graph:
    """A graph of about `size` nodes."""
    return Maker(seed).grow(size)
