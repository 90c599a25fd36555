"""NumPy's functions as intercepted code calls them.

Those that make arrays always make traced ones, since the function may write traced values into
them; those that call functions always hand them traced ones. The others go to their handler when
an argument is traced or is an array; called on plain numbers they run at once, and an array they
make becomes a constant of the trace.

Not here: the handlers (numpy/).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from ..loading import load
from ..numpy import calling, creation, ranges
from ..numpy.dispatch import DISPATCH, FUNCTIONS, handler_of
from ..numpy.operands import is_traced
from ..numpy.unsized import Unsized
from ..tracing.integer import TracedSize
from ..tracing.source import runs_intercepted
from ..tracing.state import current, fail, running
from ..tracing.tensor import fresh

_MAKERS = frozenset(
    function
    for function in (*creation.FUNCTIONS, *ranges.FUNCTIONS, *calling.FUNCTIONS)
    if function not in (np.zeros_like, np.ones_like, np.empty_like, np.full_like)
) | {np.zeros_like, np.ones_like, np.empty_like, np.full_like}


def has_arrays(args: Any) -> bool:
    """True where something among the arguments is traced or a NumPy array."""
    for item in args:
        if isinstance(item, list | tuple):
            if has_arrays(item):
                return True
        elif isinstance(item, np.ndarray) or is_traced(item):
            return True
    return False


def numpy_function(function: Any) -> Callable[..., Any]:
    """The stand-in for a NumPy function that has a handler."""
    handler = handler_of(function)
    assert handler is not None, function
    if function in _MAKERS:
        return handler

    def call(*args: Any, **keywords: Any) -> Any:
        for item in args:
            if issubclass(type(item), Unsized):
                return item.__array_function__(function, (), args, keywords)
        if has_arrays(args) or (keywords and has_arrays(keywords.values())):
            return handler(*args, **keywords)
        return as_constant(function(*args, **keywords))

    call.__name__ = getattr(function, "__name__", "function")
    call.__dict__["stands_for"] = function
    return call


def numpy_ufunc(ufunc: np.ufunc) -> Callable[..., Any]:
    """The stand-in for a ufunc."""

    def call(*args: Any, **keywords: Any) -> Any:
        for item in args:
            override = getattr(type(item), "__array_ufunc__", None)
            if type(override) is FunctionType and runs_intercepted(override.__code__):
                intercepted = load("intercept.callee").callee(override)
                return intercepted(item, ufunc, "__call__", *args, **keywords)
        if has_arrays(args) or (keywords and has_arrays(keywords.values())):
            return DISPATCH.ufunc(ufunc, "__call__", args, keywords)
        return as_constant(ufunc(*args, **keywords))

    call.__name__ = ufunc.__name__
    return call


def numpy_unsupported(function: Any) -> Callable[..., Any]:
    """The stand-in for a NumPy function without handler: fine on plain Python values."""

    def call(*args: Any, **keywords: Any) -> Any:
        if has_arrays(args) or (keywords and has_arrays(keywords.values())):
            raise DISPATCH.unsupported(function)
        return as_constant(function(*args, **keywords))

    return call


def global_random(function: Any) -> Callable[..., Any]:
    """The stand-in for functions of the global random state: they are refused."""
    name = getattr(function, "__name__", "function")

    def call(*args: Any, **keywords: Any) -> Any:
        raise fail(
            "TM106",
            f"np.random.{name} uses NumPy's global random state, whose draws would be frozen "
            "into the compiled function",
            hint="draw outside and pass the numbers, or use tm.random",
        )

    return call


def seeded_generator(make: Any) -> Callable[..., Any]:
    """The stand-in for what makes a generator (np.random.default_rng, RandomState, PCG64): with a
    seed it draws the same numbers at every call."""

    def call(*args: Any, **keywords: Any) -> Any:
        if current() is not None and all(s is None for s in (*args, *keywords.values())):
            raise fail(
                "TM106",
                f"np.random.{make.__name__}() without a seed draws other numbers at each call, "
                "which would be frozen into the compiled function",
                hint="draw outside and pass the numbers, or use tm.random",
            )
        return make(*args, **keywords)

    return call


def drawn(function: Any) -> Callable[..., Any]:
    """The stand-in for a method of a generator that the function has made: its draws are the same
    at every call of these sizes, which become fixed."""
    draw = numpy_unsupported(function)

    def call(*args: Any, **keywords: Any) -> Any:
        named = {name: _fixed_sizes(item) for name, item in keywords.items()}
        return draw(*_fixed_sizes(args), **named)

    return call


def _fixed_sizes(item: Any) -> Any:
    if type(item) in (tuple, list):
        return type(item)(map(_fixed_sizes, item))
    return int(item) if type(item) is TracedSize else item


def scalar_type(kind: Any) -> Callable[..., Any]:
    """The stand-in for ``np.float32`` and its like, when called."""

    def call(*args: Any, **keywords: Any) -> Any:
        if has_arrays(args):
            return creation.scalar_type(kind, *args)
        return kind(*args, **keywords)

    return call


def product_of_sizes(*args: Any, **keywords: Any) -> Any:
    """np.prod of a shape: a size."""
    if len(args) == 1 and not keywords and isinstance(args[0], tuple | list):
        if any(type(item) is TracedSize for item in args[0]) and all(
            type(item) in (int, TracedSize) for item in args[0]
        ):
            made: Any = 1
            for item in args[0]:
                made = made * item
            return made
    return numpy_function(np.prod)(*args, **keywords)


def as_constant(made: Any) -> Any:
    """An array made from plain Python values, as an array of the trace."""
    if type(made) is np.ndarray and current() is not None:
        return fresh(running(), running().builder.constant(made))
    if type(made) is tuple and any(type(part) is np.ndarray for part in made):
        return tuple(as_constant(part) for part in made)
    if type(made) is list and any(type(part) is np.ndarray for part in made):
        return [as_constant(part) for part in made]
    return made


def _table() -> dict[Any, Callable[..., Any]]:
    table: dict[Any, Callable[..., Any]] = {f: numpy_function(f) for f in FUNCTIONS}
    table[np.prod] = product_of_sizes
    for item in vars(np).values():  # not dir(): asking for a name NumPy has not loaded loads it
        if isinstance(item, np.ufunc):
            table[item] = numpy_ufunc(item)
        elif isinstance(item, type) and issubclass(item, np.generic):
            table[item] = scalar_type(item)
    return table


def late_function(function: Any) -> Callable[..., Any] | None:
    """The stand-in for a function of a part of NumPy that is not always loaded. np.random is one:
    nobody holds a function of it before it is."""
    found = _random_table().get(function) if "numpy.random" in sys.modules else None
    return numpy_function(function) if found is None and handler_of(function) else found


def is_generator(thing: object) -> bool:
    """Whether it is one of np.random's; asking must not load that either."""
    return "numpy.random" in sys.modules and isinstance(
        thing, np.random.Generator | np.random.RandomState
    )


def state_of(generator: Any) -> Any:
    """Where one of NumPy's generators stands."""
    if isinstance(generator, np.random.RandomState):
        return generator.get_state()
    return generator.bit_generator.state


def set_state(generator: Any, state: Any) -> None:
    """Put it there."""
    if isinstance(generator, np.random.RandomState):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state


@functools.cache
def _random_table() -> dict[Any, Callable[..., Any]]:
    functions = {name: getattr(np.random, name) for name in np.random.__all__}
    table: dict[Any, Callable[..., Any]] = {
        item: global_random(item) for item in functions.values() if not isinstance(item, type)
    }
    for make in (np.random.default_rng, *filter(_is_seedable, functions.values())):
        table[make] = seeded_generator(make)
    return table


def _is_seedable(item: Any) -> bool:
    kinds = (np.random.BitGenerator, np.random.RandomState, np.random.SeedSequence)
    return isinstance(item, type) and issubclass(item, kinds)


REPLACEMENTS = _table()
