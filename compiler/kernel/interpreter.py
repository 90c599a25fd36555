"""Runs a kernel one element at a time: the oracle for schedules and back ends.

Ops run by their records' NumPy references, words by the scalar language's, reductions by the
definition in monoids.py. Parallel loops may be run in any order: `shuffle` makes one, in place.

Invariants: obvious and slow; an access out of range is an error of the test, not of the kernel,
except where the index is `Checked`.
Not here: vectors and threads; they change nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from ..dims import Dim, Size
from ..ops import ALL
from ..ops import scalar as words
from ..ops.scalar import Scalar, ScalarFunction, trace_body
from ..ops.scalar_reference import evaluate
from ..types import BOOL, I64, DType, dtype_of
from .kernel import (
    Call,
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
    Search,
    Select,
    Sort,
    Statement,
    Store,
    Update,
    fallible,
    value_dtypes,
)
from .monoids import MONOIDS, fold, named, tree
from .sort_steps import search, select, sort_step

Env = dict[str, Any]
Shuffle = Callable[[list[int]], None]


def interpret(
    kernel: Kernel,
    arrays: Sequence[np.ndarray[Any, Any]],
    dims: Mapping[str, int],
    shuffle: Shuffle | None = None,
) -> int | None:
    """Run the kernel on arrays of its parameters' shapes, in place. The number of the first
    failure, or None."""
    buffers = {p.name: array for p, array in zip(kernel.params, arrays)}
    for param, array in zip(kernel.params, arrays):
        shape = tuple(_size(s, dims) for s in param.shape)
        if array.shape != shape or array.dtype != param.dtype.numpy:
            raise ValueError(f"{param.name} is {array.dtype}{array.shape}, not {shape}")
    run = _Run(kernel, buffers, dims, shuffle)
    with np.errstate(all="ignore"), suppress(_Ended):
        run.block(kernel.body, {})
    return min(run.failed, default=None)


def _size(size: Size, env: Mapping[str, int]) -> int:
    return size.evaluate(env) if isinstance(size, Dim) else size


class _Ended(Exception):
    """A failure after which nothing is done."""


class _Run:
    def __init__(
        self,
        kernel: Kernel,
        buffers: MutableMapping[str, np.ndarray[Any, Any]],
        dims: Mapping[str, int],
        shuffle: Shuffle | None,
    ) -> None:
        self.buffers = buffers
        self.symbols: dict[str, int] = dict(dims)
        self.shuffle = shuffle
        self.dtypes = value_dtypes(kernel.body)
        self.failed: set[int] = set()
        self.independent = 0  # how many loops around have independent iterations
        self.number = {id(s): at for at, s in enumerate(fallible(kernel.body))}

    def block(self, body: tuple[Statement, ...], env: Env) -> Env:
        """Run statements; the names they define are added to `env`."""
        for s in body:
            self.statement(s, env)
        return env

    def order(self, extent: Size) -> Sequence[int]:
        """The iterations of a parallel loop, in some order."""
        found = list(range(_size(extent, self.symbols)))
        if self.shuffle is not None:
            self.shuffle(found)
        return found

    def statement(self, s: Statement, env: Env) -> None:
        match s:
            case Let():
                env[s.name] = self.let(s, env)
            case Constant():
                env[s.name] = _cast(s.value, s.dtype)
            case IndexValue():
                env[s.name] = np.int64(_size(s.index, self.symbols))
            case Load():
                env[s.name] = self.load(s, env)
            case Store() | Update():
                self.store(s, env)
            case Check():
                if (s.mask is None or env[s.mask]) and not env[s.condition]:
                    self.fail(s)
            case Local():
                shape = tuple(_size(size, self.symbols) for size in s.shape)
                self.buffers[s.name] = np.zeros(shape, s.dtype.numpy)
            case If():
                self.branch(s, env)
            case Parallel() | For():
                ordered = range(_size(s.extent, self.symbols))
                apart = isinstance(s, Parallel)
                self.independent += apart
                for i in self.order(s.extent) if apart else ordered:
                    self.symbols[s.axis] = i
                    self.block(s.body, dict(env))
                self.independent -= apart
            case Loop():
                self.carry(s, env)
            case Reduce():
                self.reduce(s, env)
            case Scan():
                self.scan(s, env)
            case Sort():
                sort_step(s, self.buffers)
            case Call():
                if not self.called(s):
                    self.fail(s)
            case Search():
                search(s, self.buffers)
            case Select():
                select(s, self.buffers)

    def fail(self, s: Statement) -> None:
        """Note a failure; where no other iteration goes on beside it, it is the last thing."""
        self.failed.add(self.number[id(s)])
        if not self.independent:
            raise _Ended

    def called(self, s: Call) -> bool:
        """What the op's reference makes, into the last arguments; whether it succeeded."""
        op = ALL[s.op]
        assert op.routine is not None
        count = len(op.routine.takes)
        arrays = [self.buffers[name] for name in s.arguments]
        taken = {axis for core in op.routine.takes for axis in core}
        sizes = {
            axis: size
            for array, core in zip(arrays, s.core)
            for axis, size in zip(core, array.shape[array.ndim - len(core) :])
            if axis not in taken
        }
        inputs = [array.copy() for array in arrays[:count]]
        made = op.reference(self.buffers[s.table], *inputs, **sizes)
        tensors = made if isinstance(made, tuple) else (made,)
        outs = [arrays[0], *arrays[count:]] if op.routine.writes else arrays[count:]
        for out, tensor in zip(outs, tensors):
            out[...] = tensor
        return not s.fails or tensors[-1] is None

    def let(self, s: Let, env: Env) -> Any:
        args = [env[name] for name in s.args]
        op = ALL.get(s.op)
        if op is not None:
            made = op.reference(*args, **s.attrs)
            made = made[s.result] if isinstance(made, tuple) else made
            return _cast(made, s.dtype)
        dtypes = tuple(self.dtypes[name] for name in s.args)
        return _apply(_word(s.op, dtypes, s.dtype), args)[0]

    def place(self, index: Sequence[Index], env: Env, s: Statement) -> tuple[int, ...] | None:
        """The position in the buffer; None where a checked index is out of range."""
        found: list[int] = []
        for i in index:
            if not isinstance(i, Checked):
                found.append(_size(i, self.symbols))
                continue
            at, extent = int(env[i.value]), _size(i.extent, self.symbols)
            if not -extent <= at < extent:
                self.fail(s)
                return None
            found.append(at + extent if at < 0 else at)
        return tuple(found)

    def load(self, s: Load, env: Env) -> Any:
        if s.mask is not None and not env[s.mask]:
            return env[s.other or ""]
        place = self.place(s.index, env, s)
        if place is None:
            return _cast(0, s.dtype)
        return self.buffers[s.buffer][self._inside(s.buffer, place)]

    def _inside(self, buffer: str, place: tuple[int, ...]) -> tuple[int, ...]:
        shape = self.buffers[buffer].shape
        if not all(0 <= i < n for i, n in zip(place, shape)):
            raise IndexError(f"{buffer}{list(place)} is outside {list(shape)}")
        return place

    def store(self, s: Store | Update, env: Env) -> None:
        if isinstance(s, Store) and s.mask is not None and not env[s.mask]:
            return
        place = self.place(s.index, env, s)
        if place is None:
            return
        place = self._inside(s.buffer, place)
        value = env[s.value]
        if isinstance(s, Update):
            old = self.buffers[s.buffer][place]
            own, wide = dtype_of(old.dtype), self.dtypes[s.value]
            assert own is not None
            (value,) = _combine(s.monoid, (own,), (old,), (value,), (wide,))
        self.buffers[s.buffer][place] = value

    def branch(self, s: If, env: Env) -> None:
        body, made = (s.body, s.yields) if env[s.condition] else (s.otherwise, s.others)
        inner = self.block(body, dict(env))
        env.update(zip(s.names, [inner[name] for name in made]))

    def carry(self, s: Loop, env: Env) -> None:
        state = [env[name] for name in s.init]
        if s.when is not None and not env[s.when]:
            env.update(zip(s.names, state))
            return
        turns = None if s.extent is None else _size(s.extent, self.symbols)
        turn = 0
        while turns is None or turn < turns:
            self.symbols[s.axis] = turn
            inner = self.block(s.body, {**env, **dict(zip(s.names, state))})
            state = [inner[name] for name in s.yields]
            turn += 1
            if s.until is not None and inner[s.until]:
                break
        env.update(zip(s.names, state))

    def elements(self, s: Reduce | Scan, env: Env) -> list[tuple[Any, ...]]:
        """What the body yields at each index."""
        count = _size(s.extent, self.symbols)
        made: dict[int, tuple[Any, ...]] = {}
        self.independent += 1
        for i in self.order(count) if isinstance(s, Reduce) else range(count):
            self.symbols[s.axis] = i
            inner = self.block(s.body, dict(env))
            made[i] = tuple(inner[name] for name in s.yields)
        self.independent -= 1
        return [made[i] for i in range(count)]

    def reduce(self, s: Reduce, env: Env) -> None:
        elements = self.elements(s, env)
        monoid = MONOIDS[s.monoid]
        for at in range(0, len(s.names), monoid.arity):
            part = slice(at, at + monoid.arity)
            states = [element[part] for element in elements]
            dtypes = s.dtypes[part]
            join = lambda a, b, d=dtypes: _combine(s.monoid, d, a, b)
            if states:
                found = tree(join, states) if s.tree else fold(join, states)
            else:
                empty = (monoid.empty or monoid.neutral)(dtypes[0])
                found = tuple(_cast(v, d) for v, d in zip(empty, dtypes))
            env.update(zip(s.names[part], found))

    def scan(self, s: Scan, env: Env) -> None:
        elements = self.elements(s, env)
        numbered = list(enumerate(elements))
        state: tuple[Any, ...] | None = None
        for i, element in reversed(numbered) if s.reverse else numbered:
            state = element if state is None else _combine(s.monoid, s.dtypes, state, element)
            self.symbols[s.axis] = i
            self.block(s.then, {**env, **dict(zip(s.names, state))})


def _cast(value: Any, dtype: DType) -> Any:
    return np.asarray(value).astype(dtype.numpy)[()]


def _apply(function: ScalarFunction, args: Sequence[Any]) -> tuple[Any, ...]:
    lanes = [np.asarray([a], p.dtype.numpy) for a, p in zip(args, function.params)]
    return tuple(lane[0] for lane in evaluate(function, lanes))


@cache
def _word(word: str, dtypes: tuple[DType, ...], dtype: DType) -> ScalarFunction:
    def body(*args: Scalar) -> Scalar:
        if word == "convert":
            return words.convert(args[0], dtype)
        if word == "select":
            return words.select(*args)
        if word == "mul":
            return words.mul(*args)
        return Scalar(word, args, dtype)

    return trace_body(body, dtypes)


@cache
def _combining(monoid: str, dtypes: tuple[DType, ...], later: tuple[DType, ...]) -> ScalarFunction:
    def body(*args: Scalar) -> tuple[Scalar, ...]:
        return named(monoid).combine(args[: len(dtypes)], args[len(dtypes) :])

    return trace_body(body, (*dtypes, *later))


def _combine(
    monoid: str,
    dtypes: tuple[DType, ...],
    a: tuple[Any, ...],
    b: tuple[Any, ...],
    later: tuple[DType, ...] | None = None,
) -> tuple[Any, ...]:
    if monoid == "sum" and dtypes[0] not in (BOOL, I64):
        return (np.asarray(a[0] + b[0]).astype(dtypes[0].numpy)[()],)
    return _apply(_combining(monoid, dtypes, later or dtypes), (*a, *b))
