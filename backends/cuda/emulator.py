"""Runs a kernel that is mapped to a grid as a GPU would, on the host, and watches it.

All threads of some blocks go through the code together, one NumPy lane a thread, with a mask of
those that take part. Barriers stand where `segments` says: the emulator runs from one to the
next, and counts the phases so that memory can tell what was ordered from what was luck.

Found: an index outside its buffer, a read of shared memory or an output that nobody wrote, two
threads touching one address in one phase (or from two blocks at all) with a store, a barrier
that some threads of a block do not reach. The first one found is raised.

Invariants: words mean what they mean on the host, bit for bit (ops/scalar_reference.py).
Not here: time, traffic, warps, the machine code (llvm/nvptx).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from ...compiler.dims import Dim, Size
from ...compiler.kernel.grid import BLOCK, GRID, GridKernel, has_nest, segments
from ...compiler.kernel.kernel import (
    Check,
    Checked,
    Constant,
    For,
    If,
    Index,
    IndexValue,
    Kernel,
    Let,
    Load,
    Local,
    Loop,
    Parallel,
    Reduce,
    Scan,
    Statement,
    Store,
    Update,
    failures,
    value_dtypes,
    walk,
)
from ...compiler.kernel.monoids import MONOIDS, fold, tree
from ...compiler.ops.scalar import ScalarFunction
from ...compiler.ops.scalar_reference import evaluate
from ...compiler.types import DType, dtype_of
from ..llvm.bodies import body_of, combine_of
from .emulated_memory import Array, KernelFault, Kind, Memory, Record, Touch

Env = dict[str, Array]
State = tuple[Array, ...]
LANES_AT_ONCE = 1 << 15


def emulate(
    mapped: GridKernel,
    arrays: Sequence[Array],
    dims: Mapping[str, int],
    blocks: int | None = None,
) -> int | None:
    """Run the kernel on arrays of its parameters' shapes, in place, by as many blocks as have
    work, at most `blocks`. The least number of a failure, or None. Raises KernelFault."""
    kernel = mapped.kernel
    size = mapped.blocks
    needed = max(1, size.evaluate(dims) if isinstance(size, Dim) else size)
    blocks = needed if blocks is None else min(blocks, needed)
    memories = _parameters(kernel, arrays, dims)
    failed: set[int] = set()
    step = max(1, LANES_AT_ONCE // mapped.threads)
    with np.errstate(all="ignore"):
        for first in range(0, blocks, step):
            some = np.arange(first, min(first + step, blocks))
            run = _Run(kernel, dict(memories), dims, some, blocks, mapped.threads)
            run.code(kernel.body, {}, False)
            failed |= run.failed
    return min(failed, default=None)


def _parameters(
    kernel: Kernel, arrays: Sequence[Array], dims: Mapping[str, int]
) -> dict[str, Memory]:
    """Buffers of the arguments; those in one memory share a record."""
    outputs = [a for p, a in zip(kernel.params, arrays) if p.mode != "in"]
    records: dict[tuple[int, int], Record] = {}
    found: dict[str, Memory] = {}
    for p, array in zip(kernel.params, arrays):
        shape = tuple(s.evaluate(dims) if isinstance(s, Dim) else s for s in p.shape)
        if array.shape != shape or array.dtype != p.dtype.numpy:
            raise ValueError(f"{p.name} is {array.dtype}{array.shape}, not {shape}")
        record = None
        if p.mode != "in" or any(np.shares_memory(array, o) for o in outputs):
            key = (array.ctypes.data, array.size)
            record = records.setdefault(key, Record(array.size))
        shared = any(np.shares_memory(array, a) for a in arrays if a is not array)
        found[p.name] = Memory(p.name, array, 0, record, p.mode != "out" or shared)
    return found


class _Run:
    """Some blocks of a launch."""

    def __init__(
        self,
        kernel: Kernel,
        memories: dict[str, Memory],
        dims: Mapping[str, int],
        some: Array,
        blocks: int,
        threads: int,
    ) -> None:
        self.memories = memories
        self.per_block, self.blocks, self.here = threads, blocks, len(some)
        self.lanes = len(some) * threads
        self.block = np.repeat(some, threads)
        self.thread = np.tile(np.arange(threads), len(some))
        self.active = np.ones(self.lanes, bool)
        self.symbols: dict[str, Array] = {n: np.full(self.lanes, v) for n, v in dims.items()}
        self.dtypes = value_dtypes(kernel.body)
        self.phase = 0
        self.in_thread = False
        self.failed: set[int] = set()
        fallible = [s for s in walk(kernel.body) if _fallible(s)]
        assert len(fallible) == len(failures(kernel))
        self.number = {id(s): at for at, s in enumerate(fallible)}
        self.table: dict[type[Any], Callable[[Any, Env], None]] = {
            Let: self.let, Constant: self.constant, IndexValue: self.index_value,
            Load: self.load, Store: self.store, Update: self.store, Check: self.check,
            Local: self.local, If: self.branch, Parallel: self.loop, For: self.loop,
            Loop: self.carry, Reduce: self.reduce, Scan: self.scan,
        }  # fmt: skip

    # -- control

    def code(self, body: tuple[Statement, ...], env: Env, repeated: bool) -> Env:
        """Run statements and the barriers between them; names are added to `env`."""
        if self.in_thread and not any(map(has_nest, body)):
            self.plain(body, env)
            return env
        for piece, barrier in segments(body, repeated):
            self.plain(piece, env)
            if barrier:
                self.barrier()
        return env

    def plain(self, body: tuple[Statement, ...], env: Env) -> None:
        for s in body:
            self.table[type(s)](s, env)

    def barrier(self) -> None:
        """All threads of a block, or none, have come here."""
        came = self.active.reshape(self.here, self.per_block)
        split = came.any(axis=1) & ~came.all(axis=1)
        if split.any():
            at = int(np.argmax(split))
            block = int(self.block[at * self.per_block])
            some = f"{int(came[at].sum())} of {self.per_block} threads of block {block}"
            raise KernelFault(Kind.DIVERGENT_BARRIER, f"only {some} come to it")
        self.phase += 1

    def among(self, mask: Array, body: tuple[Statement, ...], env: Env, repeated: bool) -> Env:
        """Run a body by those of the active threads that `mask` names."""
        before = self.active
        self.active = before & mask
        inner = self.code(body, dict(env), repeated)
        self.active = before
        return inner

    def branch(self, s: If, env: Env) -> None:
        mask = env[s.condition]
        for chosen, body, made in ((mask, s.body, s.yields), (~mask, s.otherwise, s.others)):
            if not (self.active & chosen).any():
                continue
            inner = self.among(chosen, body, env, True)
            for name, value in zip(s.names, made):
                env[name] = np.where(chosen, inner[value], env.get(name, inner[value]))

    def loop(self, s: Parallel | For, env: Env) -> None:
        """A loop over an axis: by blocks, by threads, or in order."""
        bind = s.bind if isinstance(s, Parallel) else None
        first, step = {
            GRID: (self.block, self.blocks), BLOCK: (self.thread, self.per_block)
        }.get(bind or "", (np.zeros(self.lanes, np.int64), 1))  # fmt: skip
        before, self.in_thread = self.in_thread, self.in_thread or bind == BLOCK
        index, end = first, self.size(s.extent)
        while (self.active & (index < end)).any():
            self.symbols[s.axis] = index
            self.among(index < end, s.body, env, bind != GRID)
            index = index + step
        self.in_thread = before

    def carry(self, s: Loop, env: Env) -> None:
        state = [env[name] for name in s.init]
        end = None if s.extent is None else self.size(s.extent)
        going, turn = self.active if s.when is None else self.active & env[s.when], 0
        while (going := going if end is None else going & (turn < end)).any():
            self.symbols[s.axis] = np.full(self.lanes, turn)
            inner = self.among(going, s.body, {**env, **dict(zip(s.names, state))}, True)
            state = [np.where(going, inner[n], old) for n, old in zip(s.yields, state)]
            if s.until is not None:
                going = going & ~inner[s.until]
            turn += 1
        env.update(zip(s.names, state))

    def reduce(self, s: Reduce, env: Env) -> None:
        monoid, end = MONOIDS[s.monoid], self.size(s.extent)
        neutral = self.constants(s, lambda d: monoid.neutral(d))
        elements: list[State] = []
        turn = 0
        while (self.active & (turn < end)).any():
            self.symbols[s.axis] = np.full(self.lanes, turn)
            inner = self.among(turn < end, s.body, env, True)
            made = zip(s.yields, neutral)
            elements.append(tuple(np.where(turn < end, inner[n], none) for n, none in made))
            turn += 1
        empty = self.constants(s, monoid.empty or monoid.neutral)
        for at in range(0, len(s.names), monoid.arity):
            part = slice(at, at + monoid.arity)
            found = empty[part]
            if elements:
                states = [e[part] for e in elements]
                join = self.joining(s.monoid, s.dtypes[part])
                folded = tree(join, states) if s.tree else fold(join, states)
                found = tuple(np.where(end > 0, f, none) for f, none in zip(folded, found))
            env.update(zip(s.names[part], found))

    def scan(self, s: Scan, env: Env) -> None:
        end, turn = self.size(s.extent), 0
        join = self.joining(s.monoid, s.dtypes)
        state: State | None = None
        while (self.active & (turn < end)).any():
            index = end - 1 - turn if s.reverse else np.full(self.lanes, turn)
            self.symbols[s.axis] = index
            inner = self.among(turn < end, s.body, env, True)
            element = tuple(inner[name] for name in s.yields)
            state = element if state is None else join(state, element)
            self.among(turn < end, s.then, {**env, **dict(zip(s.names, state))}, True)
            turn += 1

    def joining(
        self, monoid: str, dtypes: tuple[DType, ...], later: tuple[DType, ...] | None = None
    ) -> Callable[[State, State], State]:
        function = combine_of(monoid, dtypes, later)
        return lambda a, b: evaluate(function, (*a, *b))

    def constants(self, s: Reduce, values: Callable[[DType], tuple[Any, ...]]) -> State:
        arity = MONOIDS[s.monoid].arity
        found: list[Array] = []
        for at in range(0, len(s.dtypes), arity):
            pairs = zip(s.dtypes[at : at + arity], values(s.dtypes[at]))
            found += [np.full(self.lanes, value, dtype.numpy) for dtype, value in pairs]
        return tuple(found)

    # -- values

    def let(self, s: Let, env: Env) -> None:
        dtypes = tuple(self.dtypes[name] for name in s.args)
        body = body_of(s.op, dtypes, s.attrs, s.dtype)
        one = ScalarFunction(body.params, (body.results[s.result],))
        args = [env[name] for name in s.args]
        (made,) = evaluate(one, args)
        env[s.name] = made if len(made) == self.lanes else np.full(self.lanes, made[0])

    def constant(self, s: Constant, env: Env) -> None:
        env[s.name] = np.full(self.lanes, s.value, s.dtype.numpy)

    def index_value(self, s: IndexValue, env: Env) -> None:
        env[s.name] = self.size(s.index)

    def check(self, s: Check, env: Env) -> None:
        asked = self.active if s.mask is None else self.active & env[s.mask]
        if (asked & ~env[s.condition]).any():
            self.failed.add(self.number[id(s)])

    def size(self, size: Size) -> Array:
        """A size for each thread; division by 0 gives 0."""
        if isinstance(size, int):
            return np.full(self.lanes, size)
        total = np.zeros(self.lanes, np.int64)
        for factors, coefficient in size.terms:
            product = np.full(self.lanes, coefficient)
            for factor in factors:
                product = product * self.factor(factor)
            total = total + product
        return total

    def factor(self, factor: object) -> Array:
        if isinstance(factor, str):
            return self.symbols[factor]
        operation, a, b = cast(tuple[str, Size, Size], factor)
        x, y = self.size(a), self.size(b)
        made: Array = {
            "//": np.floor_divide, "%": np.mod, "min": np.minimum, "max": np.maximum
        }[operation](x, y)  # fmt: skip
        return made

    # -- memory

    def local(self, s: Local, env: Env) -> None:
        shape = tuple(n for n in s.shape if isinstance(n, int))
        assert len(shape) == len(s.shape), f"local {s.name} needs a fixed shape"
        shared = s.memory == "shared"
        sharing = self.per_block if shared else 1
        values = np.zeros((self.lanes // sharing, *shape), s.dtype.numpy)
        known = self.memories.get(s.name)
        record = None
        if shared:  # the same memory as in the iteration before
            record = Record(values.size) if known is None else known.record
        self.memories[s.name] = Memory(s.name, values, sharing, record, False)

    def touch(self, lanes: Array) -> Touch:
        threads = self.block[lanes] * self.per_block + self.thread[lanes]
        return Touch(threads, self.per_block, self.phase)

    def place(
        self, s: Load | Store | Update, index: Sequence[Index], env: Env, lanes: Array
    ) -> tuple[list[Array], Array]:
        """Indices for some threads, less those whose checked index is out of range."""
        good = np.ones(len(lanes), bool)
        found: list[Array] = []
        for i in index:
            if not isinstance(i, Checked):
                found.append(self.size(i)[lanes])
                continue
            at, extent = env[i.value][lanes].astype(np.int64), self.size(i.extent)[lanes]
            fits = (at >= -extent) & (at < extent)
            if not fits.all():
                self.failed.add(self.number[id(s)])
            good &= fits
            found.append(np.where(at < 0, at + extent, at))
        return [f[good] for f in found], lanes[good]

    def load(self, s: Load, env: Env) -> None:
        asked = self.active if s.mask is None else self.active & env[s.mask]
        memory = self.memories[s.buffer]
        index, lanes = self.place(s, s.index, env, np.flatnonzero(asked))
        touch = self.touch(lanes)
        memory.check_bounds(index, touch)
        found = np.zeros(self.lanes, s.dtype.numpy)
        if s.mask is not None and s.other is not None:
            found = np.where(env[s.mask], found, env[s.other])
        found[lanes] = memory.load(index, lanes, touch)
        env[s.name] = found

    def store(self, s: Store | Update, env: Env) -> None:
        asked = self.active
        if isinstance(s, Store) and s.mask is not None:
            asked = asked & env[s.mask]
        memory = self.memories[s.buffer]
        index, lanes = self.place(s, s.index, env, np.flatnonzero(asked))
        touch = self.touch(lanes)
        memory.check_bounds(index, touch)
        value = env[s.value][lanes]
        if isinstance(s, Update):
            old = memory.load(index, lanes, touch)
            own = dtype_of(old.dtype)
            assert own is not None
            (value,) = self.joining(s.monoid, (own,), (self.dtypes[s.value],))((old,), (value,))
        memory.store(index, lanes, touch, value)


def _fallible(s: Statement) -> bool:
    if isinstance(s, Load | Store | Update):
        return any(isinstance(i, Checked) for i in s.index)
    return isinstance(s, Check)
