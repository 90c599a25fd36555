"""Library functions written on traced arrays, callable anywhere.

While a function is traced they add to its graph; on plain arrays they run compiled.

Invariants: nothing is compiled, nor the native runtime made, before the first call outside a
trace.
Not here: the functions (nn/, special/, random/, optim/).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from .calls.tracebacks import shorten
from .compiled import jit_of_library
from .compiler.types import DType
from .numpy.operands import value_of, weak_type
from .tracing.state import current, require_dtype, running
from .tracing.tensor import result
from .variable import Variable

P = ParamSpec("P")
R = TypeVar("R")


def lifted(function: Callable[P, R]) -> Callable[P, R]:
    """The function inside a trace; outside, its compiled form."""

    @functools.cache
    def compiled() -> Callable[..., R]:
        return cast("Callable[..., R]", jit_of_library(function))

    @functools.wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> R:
        if current() is not None:
            return function(*args, **keywords)
        plain = [_plain(item) for item in args]
        named = {name: _plain(item) for name, item in keywords.items()}
        try:
            return compiled()(*plain, **named)
        except BaseException as problem:
            shorten(problem)
            raise

    return call


def derived(name: str, function: Callable[..., Any], inner: Callable[P, R]) -> Callable[P, R]:
    """`inner`, lifted, as a function of the arguments of `function`. name: of what it makes."""
    inner.__name__ = f"{name}_of_{getattr(function, '__name__', 'function')}"
    if inspect.isfunction(function) or inspect.ismethod(function) or hasattr(function, "lower"):
        inner.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return lifted(inner)


def apply(op: str, *operands: Any) -> Any:
    """A floating elementwise op that NumPy has no function for, in the trace that is running.

    Operands promote as NumPy's do among each other; integers become floats.
    """
    trace = running()
    values = [value_of(item) for item in map(read, operands)]
    dtype = floating_dtype(*operands)
    return result(trace, trace.emit(op, *[trace.cast(value, dtype) for value in values]))


def floating_dtype(*operands: Any) -> DType:
    """The floating type operands are computed in: their common one, float64 for wide integers."""
    common = require_dtype(np.result_type(*[weak_type(read(item)) for item in operands]))
    if common.kind in "fc":
        return common
    return require_dtype(np.result_type(common.numpy, np.float32))


def counted(count: Any, dtype: Any) -> Any:
    """``np.arange(count, dtype=dtype)`` for a size that may not be known, in the trace."""
    return running().dispatch.function(np.arange, (count,), {"dtype": dtype})


def read(item: Any) -> Any:
    """The value of a Variable; anything else as it is."""
    return item.read() if isinstance(item, Variable) else item


def _plain(item: Any) -> Any:
    """What a compiled function is given: lists as arrays, Variables as they are."""
    return np.asarray(item) if isinstance(item, list) else item
