"""The generator: Philox4x32-10 over a 64-bit counter and a 64-bit key.

Invariants: state is ``[key, counter]``; a draw of n numbers takes n counters (normal in float64:
2n), in C order of the result; equal seeds give equal numbers, inside a trace and outside.
Not here: the rounds (the op `philox`), bounds and shapes that are given (arguments.py).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiled import jit_of_library
from ..compiler.types import F32, F64, U64, DType
from ..lifted import counted
from ..numpy.operands import array_of, is_traced, value_of, weak_type
from ..runtime.store import VariableStore
from ..tracing.lanes import lane_of
from ..tracing.state import current, fail, require_dtype, running
from ..tracing.tensor import fresh, result
from ..variable import Variable
from .arguments import as_u64, bounds_of, integer_type, shape_of


class Generator:
    """A stream of random numbers, its state a Variable.

    seed: an int, for the same numbers every time; None for others every time.
    name, store: of the Variable.
    """

    def __init__(
        self,
        seed: int | None = None,
        *,
        name: str | None = None,
        store: VariableStore | None = None,
    ) -> None:
        (key,) = np.random.SeedSequence(seed).generate_state(1, np.uint64)
        self.state = Variable(np.array([key, 0], np.uint64), name, store=store)

    def random(self, shape: Any = None, dtype: Any = np.float64, *, size: Any = None) -> Any:
        """Uniform in [0, 1)."""
        return self._run("_random", shape_of(shape, size), np.dtype(dtype))

    def uniform(
        self, low: Any = 0.0, high: Any = 1.0, shape: Any = None, dtype: Any = np.float64, *,
        size: Any = None,
    ) -> Any:  # fmt: skip
        """Uniform in [low, high)."""
        return self._run("_uniform", shape_of(shape, size), np.dtype(dtype), low, high)

    def normal(
        self, mean: Any = 0.0, deviation: Any = 1.0, shape: Any = None, dtype: Any = np.float64, *,
        size: Any = None,
    ) -> Any:  # fmt: skip
        """Normal with this mean and standard deviation."""
        return self._run("_normal", shape_of(shape, size), np.dtype(dtype), mean, deviation)

    def integers(
        self, low: Any, high: Any = None, shape: Any = None, dtype: Any = np.int64, *,
        size: Any = None,
    ) -> Any:  # fmt: skip
        """Integers from `low` up to and without `high`, each equally likely to 2**-32; from 0 up
        to and without the only bound that is given. Bounds may be known at run time only."""
        kind, sizes = integer_type(dtype), shape_of(shape, size)
        if current() is None:
            low, high = bounds_of(kind, low, high)
        return self._run("_integers", sizes, kind.numpy, low, high)

    def bernoulli(self, p: Any = 0.5, shape: Any = None, *, size: Any = None) -> Any:
        """True with probability `p`."""
        return self.random(shape, size=size) < p

    def bits(self, shape: Any = None, *, size: Any = None) -> Any:
        """Uniform 64-bit integers (uint64)."""
        return self._run("_bits", shape_of(shape, size), np.dtype(np.uint64))

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, *, shape: Any = None
    ) -> Any:
        """Rows of `a`, or integers below `a`, each as likely as any other at every draw."""
        if not replace or p is not None:
            what, hint = (
                ("without replacement", "permutation(a)[:n] draws n of them")
                if p is None
                else ("with p=", "np.searchsorted(np.cumsum(p), generator.random(n)) are places")
            )
            raise fail("TM111", f"a choice {what} is not supported", hint=hint)
        sizes = shape_of(shape, size)
        if np.ndim(a) == 0:
            if np.result_type(weak_type(a)).kind not in "iu":
                raise ValueError(f"a must be a sequence or an integer, got {a!r:.80}")
            return self.integers(a, shape=sizes)
        rows = _rows(a)
        return rows[self.integers(rows.shape[0], shape=sizes)]

    def permutation(self, x: Any) -> Any:
        """The rows of `x`, or the integers below `x`, in random order."""
        if np.ndim(x) == 0:
            return self._order(x)
        rows = _rows(x)
        return rows[self._order(rows.shape[0])]

    def shuffle(self, x: Any) -> None:
        """Put the rows of an array into random order, in place."""
        if not isinstance(x, np.ndarray) or np.ndim(x) == 0:
            raise TypeError(f"shuffle() puts the rows of an array into order, got {x!r:.80}")
        rows = _rows(x)
        rows[...] = rows[self._order(rows.shape[0])]

    def _order(self, count: Any) -> Any:
        """The integers below `count` in random order: the places of random bits in theirs."""
        return self._run("_places", shape_of(count, None), np.dtype(np.uint64))

    # -- inside a trace

    def _bits(self, shape: tuple[Any, ...], dtype: Any, each: int = 1) -> Any:
        """`each` draws for every element, along a new last axis if there are several."""
        trace = running()
        state = self.state.read()
        key, counter = state[0], state[1]
        shape = shape if each == 1 else (*shape, each)
        count = math.prod(shape)
        taken = as_u64(count)
        lane = lane_of(trace)
        if lane is not None:  # each lane's numbers stand where one draw of all would have them
            number, lanes = [result(trace, trace.cast(value, U64)) for value in lane]
            counter, taken = counter + number * taken, taken * lanes
        index = counted(count, np.uint64) + counter
        drawn = trace.emit("philox", value_of(index), value_of(key))
        self.state.assign(np.stack([key, state[1] + taken]))
        return np.reshape(fresh(trace, drawn), shape)

    def _random(self, shape: tuple[Any, ...], dtype: Any) -> Any:
        return _unit(self._bits(shape, dtype), require_dtype(dtype))

    def _uniform(self, shape: tuple[Any, ...], dtype: Any, low: Any, high: Any) -> Any:
        unit = self._random(shape, dtype)
        return (low + (high - low) * unit).astype(dtype)

    def _normal(self, shape: tuple[Any, ...], dtype: Any, mean: Any, deviation: Any) -> Any:
        """Box and Muller's pair, of which the cosine is taken."""
        kind = require_dtype(dtype)
        if kind.bits <= F32.bits:
            bits = self._bits(shape, dtype)
            first, second = bits >> np.uint64(32), bits & np.uint64(0xFFFFFFFF)
            working, scale = F32, 2.0**-32
        else:
            pair = self._bits(shape, dtype, each=2) >> np.uint64(11)
            first, second = pair[..., 0], pair[..., 1]
            working, scale = F64, 2.0**-53
        radius = np.sqrt(-2.0 * np.log((first + np.uint64(1)).astype(working.numpy) * scale))
        turn = np.cos(second.astype(working.numpy) * (scale * 2 * math.pi))
        return (mean + deviation * (radius * turn)).astype(dtype)

    def _integers(self, shape: tuple[Any, ...], dtype: Any, low: Any, high: Any) -> Any:
        low, high = bounds_of(require_dtype(dtype), low, high)
        bits = self._bits(shape, dtype)
        first = as_u64(low)
        if is_traced(low) or is_traced(high):
            offset = bits % (as_u64(high) - first)
        else:
            span = (high - low) % 2**64
            offset = bits % np.uint64(span) if span else bits
        return (offset + first).astype(dtype)

    def _places(self, shape: tuple[Any, ...], dtype: Any) -> Any:
        return np.argsort(self._bits(shape, dtype))

    # -- outside

    def _run(self, method: str, shape: tuple[Any, ...], dtype: Any, *numbers: Any) -> Any:
        if not (require_dtype(dtype).is_float or method in _OF_INTEGERS):
            raise fail("TM202", f"draws floating numbers, not {dtype}")
        if current() is not None:
            return getattr(self, method)(shape, dtype, *numbers)
        if any(type(n) is int and not -(2**63) <= n < 2**63 for n in numbers):
            return self._compiled(method, shape, dtype, numbers)()
        return self._compiled(method, shape, dtype)(*numbers)

    @functools.lru_cache(maxsize=64)  # noqa: B019  a generator lives as long as its program
    def _compiled(
        self, method: str, shape: tuple[Any, ...], dtype: Any, fixed: tuple[Any, ...] = ()
    ) -> Callable[..., Any]:
        """A draw; of numbers that are no arguments of compiled functions, `fixed` holds them."""
        draw = getattr(self, method)
        return jit_of_library(lambda *numbers: draw(shape, dtype, *fixed, *numbers))


_OF_INTEGERS = frozenset(("_bits", "_integers", "_places"))


def _rows(x: Any) -> Any:
    """An array whose rows are taken: traced in a trace, where places are."""
    return np.asarray(x) if current() is None else array_of(x)


def _unit(bits: Any, dtype: DType) -> Any:
    """The leading bits as a number in [0, 1) that the dtype holds exactly."""
    digits = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}[dtype.name]
    leading = bits >> np.uint64(64 - digits)
    return leading.astype(dtype.numpy) * dtype.numpy.type(2.0**-digits)
