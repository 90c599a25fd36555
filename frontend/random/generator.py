"""The generator: Philox4x32-10 over a 64-bit counter and a 64-bit key.

Invariants: state is ``[key, counter]``; a draw of n numbers takes n counters (normal in float64:
2n), in C order of the result; equal seeds give equal numbers, inside a trace and outside.
Not here: the rounds (the op `philox`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiled import jit
from ..compiler.errors import error
from ..compiler.types import F32, F64, U64, DType
from ..lifted import counted
from ..numpy.operands import value_of
from ..runtime.store import VariableStore
from ..tracing.state import current, fail, require_dtype, running
from ..tracing.tensor import fresh, result
from ..variable import Variable


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

    def random(self, shape: Any = (), dtype: Any = np.float64) -> Any:
        """Uniform in [0, 1)."""
        return self._run("_random", _shape(shape), np.dtype(dtype))

    def uniform(
        self, low: Any = 0.0, high: Any = 1.0, shape: Any = (), dtype: Any = np.float64
    ) -> Any:
        """Uniform in [low, high)."""
        return self._run("_uniform", _shape(shape), np.dtype(dtype), low, high)

    def normal(
        self, mean: Any = 0.0, deviation: Any = 1.0, shape: Any = (), dtype: Any = np.float64
    ) -> Any:
        """Normal with this mean and standard deviation."""
        return self._run("_normal", _shape(shape), np.dtype(dtype), mean, deviation)

    def integers(self, low: int, high: int, shape: Any = (), dtype: Any = np.int64) -> Any:
        """Integers from `low` up to and without `high`, each equally likely to 2**-32."""
        kind = require_dtype(dtype)
        least = -(2 ** (kind.bits - 1)) if kind.kind == "i" else 0
        if not kind.is_integer or not least <= low < high <= least + 2**kind.bits:
            raise fail("TM203", f"no integers of {kind.name} from {low} up to {high}")
        return self._run("_integers", _shape(shape), np.dtype(dtype), int(low), int(high))

    def bernoulli(self, p: Any = 0.5, shape: Any = ()) -> Any:
        """True with probability `p`."""
        return self.random(shape) < p

    def bits(self, shape: Any = ()) -> Any:
        """Uniform 64-bit integers (uint64)."""
        return self._run("_bits", _shape(shape), np.dtype(np.uint64))

    # -- inside a trace

    def _bits(self, shape: tuple[Any, ...], dtype: Any, each: int = 1) -> Any:
        """`each` draws for every element, along a new last axis if there are several."""
        trace = running()
        state = self.state.read()
        key, counter = state[0], state[1]
        shape = shape if each == 1 else (*shape, each)
        count = math.prod(shape)
        index = counted(count, np.uint64) + counter
        drawn = trace.emit("philox", value_of(index), value_of(key))
        taken = counter + value_as_u64(count)
        self.state.assign(np.stack([key, taken]))
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

    def _integers(self, shape: tuple[Any, ...], dtype: Any, low: int, high: int) -> Any:
        bits = self._bits(shape, dtype)
        span = (high - low) % 2**64
        offset = bits % np.uint64(span) if span else bits
        return (offset + np.uint64(low % 2**64)).astype(dtype)

    # -- outside

    def _run(self, method: str, shape: tuple[Any, ...], dtype: Any, *numbers: Any) -> Any:
        if not (require_dtype(dtype).is_float or method in ("_bits", "_integers")):
            raise fail("TM202", f"draws floating numbers, not {dtype}")
        if current() is not None:
            return getattr(self, method)(shape, dtype, *numbers)
        return self._compiled(method, shape, dtype, numbers)()

    @functools.lru_cache(maxsize=64)  # noqa: B019  a generator lives as long as its program
    def _compiled(
        self, method: str, shape: tuple[Any, ...], dtype: Any, numbers: tuple[Any, ...]
    ) -> Callable[[], Any]:
        draw = getattr(self, method)
        return jit(lambda: draw(shape, dtype, *numbers))


def value_as_u64(count: Any) -> Any:
    """A size, known or not, as a traced uint64."""
    trace = running()
    return result(trace, trace.cast(value_of(count), U64))


def _unit(bits: Any, dtype: DType) -> Any:
    """The leading bits as a number in [0, 1) that the dtype holds exactly."""
    digits = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}[dtype.name]
    leading = bits >> np.uint64(64 - digits)
    return leading.astype(dtype.numpy) * dtype.numpy.type(2.0**-digits)


def _shape(shape: Any) -> tuple[Any, ...]:
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if any(type(size) is int and size < 0 for size in sizes):
        raise error("TM242", f"a shape has no negative sizes, got {sizes}")
    return sizes
