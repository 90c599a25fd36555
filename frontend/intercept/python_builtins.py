"""Builtins and functions of `operator` that call methods of the user's classes.

Not here: what builtins do of traced values (python_functions.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..tracing.state import current, fail
from ..tracing.tensor import TracedArray
from . import python_functions
from .iteration import iterated
from .plain_flow import asked
from .special_methods import OF_OPERATORS, OPERATORS, two_sided
from .user_methods import PLAIN, method_of, user_call


def _asking(function: Any, name: str) -> Callable[..., Any]:
    """A builtin whose first argument may have a special method for it."""
    otherwise = python_functions.REPLACEMENTS.get(function, function)

    def call(*args: Any, **named: Any) -> Any:
        if args and type(args[0]) not in PLAIN:
            made = user_call(args[0], name, *args[1:], *named.values())
            if made is not NotImplemented:
                return otherwise(made) if function in _CONVERSIONS else made
        return otherwise(*args, **named)

    return call


def _over(function: Any) -> Callable[..., Any]:
    """A builtin that runs over its arguments."""
    otherwise = python_functions.REPLACEMENTS.get(function, function)

    def call(*args: Any, **named: Any) -> Any:
        return otherwise(*[iterated(arg) for arg in args], **named)

    return call


def _truth_of_all(function: Callable[..., Any], decides: bool) -> Callable[..., Any]:
    """any, all: which stop at the element that decides. Where the elements are traced, all of them
    are looked at, unless that could be seen.
    function: the builtin. decides: the truth that stops it."""
    join = np.logical_or if decides else np.logical_and

    def call(items: Any) -> Any:
        trace = current()
        if trace is None or type(items) is TracedArray:
            return python_functions.REPLACEMENTS[function](items)
        made: Any = not decides
        done = 0
        for item in iterated(items):
            truth = asked(item)
            if type(made) is not bool and len(trace.builder.tokens) > done:
                raise _seen(function)
            if truth is decides:
                return decides
            if type(truth) is not bool:
                made = (
                    truth
                    if type(made) is bool
                    else trace.dispatch.python_number(join(made, truth).value)
                )
            done = len(trace.builder.tokens)
        return made

    return call


def _seen(function: Callable[..., Any]) -> Exception:
    name = function.__name__
    return fail(
        "TM102",
        f"{name}() goes on, behind an element that is known only when the compiled function runs, "
        "to code that can fail or that has effects",
        hint=f"write a loop that ends with `break`, or give {name}() a list, of which Python "
        "computes all elements",
    )


def _next(items: Any, *default: Any) -> Any:
    try:
        made = user_call(items, "__next__")
    except StopIteration:
        if not default:
            raise
        return default[0]
    return next(items, *default) if made is NotImplemented else made


def _dict(*args: Any, **named: Any) -> Any:
    if len(args) == 1 and method_of(type(args[0]), "__getitem__") is not None:
        keys = user_call(args[0], "keys")
        if keys is not NotImplemented:
            args = ({key: user_call(args[0], "__getitem__", key) for key in iterated(keys)},)
    return dict(*map(iterated, args), **named)


def _power(base: Any, exponent: Any, *modulus: Any) -> Any:
    if modulus:
        return python_functions.traced_pow(base, exponent, *modulus)
    return OPERATORS["Pow"](base, exponent)


_CONVERSIONS = (int, float, complex)
STAND_INS: dict[Any, Callable[..., Any]] = {
    **{
        function: _asking(function, f"__{function.__name__}__")
        for function in (len, abs, round, reversed, *_CONVERSIONS)
    },
    **{
        function: _over(function)
        for function in (list, tuple, set, frozenset, zip, enumerate, iter, min, max, sum)
    },
    any: _truth_of_all(any, True),
    all: _truth_of_all(all, False),
    next: _next,
    dict: _dict,
    divmod: two_sided(divmod, "__divmod__", "__rdivmod__"),
    pow: _power,
    **{
        getattr(operator, name): OPERATORS[kind]
        for kind, operation in OF_OPERATORS.items()
        for name in (operation.__name__, operation.__name__.strip("_"))
        if hasattr(operator, name)
    },
}
