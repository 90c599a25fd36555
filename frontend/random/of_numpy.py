"""Draws of NumPy's generators in compiled functions: NumPy makes them, each time the function runs.

    def noisy(x, rng):
        return x + rng.normal(0.0, 0.1, x.shape)

The generator belongs to the program: its numbers are NumPy's, in the program's order, and it goes
on where it stands. So each draw is a `host_call`; what is drawn, its dtype and shape follow from
the arguments. `tm.random.Generator` draws in machine code.

Invariants: a draw has the type that NumPy gives it, a Python number among them.
Not here: generators that the traced function makes itself (intercept/numpy_functions.py).
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..host_calls import host_call
from ..numpy.operands import is_traced, value_of, weak_type
from ..spec import Spec
from ..tracing.state import fail, running
from ..tracing.tensor import TracedArray

_FLOATS = frozenset((
    "beta", "chisquare", "exponential", "f", "gamma", "gumbel", "laplace", "logistic", "lognormal",
    "noncentral_chisquare", "noncentral_f", "normal", "pareto", "power", "random",
    "random_sample", "rayleigh", "standard_cauchy", "standard_exponential", "standard_gamma",
    "standard_normal", "standard_t", "triangular", "uniform", "vonmises", "wald", "weibull",
))  # fmt: skip
_INTEGERS = frozenset((
    "binomial", "geometric", "hypergeometric", "integers", "logseries", "negative_binomial",
    "poisson", "randint", "zipf",
))  # fmt: skip
_SETTINGS = ("size", "dtype", "out", "endpoint", "method")  # are no parameters that broadcast


def draw(method: Callable[..., Any], refused: Callable[..., Any]) -> Callable[..., Any]:
    """What a traced function calls for a method of a generator from outside. refused: for one
    whose results cannot be told beforehand."""
    name = method.__name__
    if name in ("rand", "randn"):
        return lambda *shape: _made(method, shape, {}, Spec(float, shape) if shape else 0.0)
    rule = _distribution if name in _FLOATS | _INTEGERS else _RULES.get(name)
    if rule is None:
        return refused
    signature = inspect.signature(method)

    def call(*args: Any, **keywords: Any) -> Any:
        given = signature.bind(*args, **keywords)
        asked = dict(given.arguments)
        given.apply_defaults()
        if asked.get("out") is not None:
            raise fail("TM111", f"{name} with out= is not supported", hint=f"x[...] = rng.{name}()")
        return rule(method, args, keywords, given.arguments, asked)

    return call


def _made(
    method: Callable[..., Any], args: tuple[Any, ...], keywords: Mapping[str, Any], result: Any
) -> Any:
    """The draw; a Python number is one that is traced."""
    made = host_call(_Call(method), args, dict(keywords), result=result)
    if type(result) in (int, float, bool):
        return running().dispatch.python_number(value_of(made))
    return made


class _Call:
    """The method, called with what was given."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        owner = type(getattr(method, "__self__", None))
        self.__qualname__ = f"{owner.__name__}.{method.__name__}"

    def __call__(self, args: Any, keywords: Any) -> Any:
        return self.method(*args, **keywords)


def _shape(size: Any) -> tuple[Any, ...]:
    return tuple(size) if isinstance(size, tuple | list) else (size,)


def _distribution(
    method: Any, args: Any, keywords: Any, given: Mapping[str, Any], asked: Mapping[str, Any]
) -> Any:
    dtype = given.get("dtype", float if method.__name__ in _FLOATS else np.int64)
    size = given["size"]
    if size is not None:
        return _made(method, args, keywords, Spec(dtype, _shape(size)))
    parameters = [item for name, item in asked.items() if name not in _SETTINGS]
    shape = _broadcast([item for item in parameters if item is not None])
    if shape:
        return _made(method, args, keywords, Spec(dtype, shape))
    if method.__name__ in ("integers", "randint") and dtype not in (int, bool):
        return _made(method, args, keywords, Spec(dtype))
    number = False if dtype is bool else 0.0 if method.__name__ in _FLOATS else 0
    return _made(method, args, keywords, number)


def _broadcast(parameters: list[Any]) -> tuple[Any, ...]:
    """The shape of arrays and numbers side by side."""
    if not any(map(is_traced, parameters)):
        return np.broadcast_shapes(*map(np.shape, parameters))
    zeros = [np.zeros(np.shape(item)) for item in parameters]
    return tuple(functools.reduce(operator.add, zeros).shape)


def _permutation(method: Any, args: Any, keywords: Any, given: Mapping[str, Any], _: Any) -> Any:
    x = given["x"]
    if np.ndim(x):
        return _made(method, args, keywords, x if isinstance(x, np.ndarray) else np.asarray(x))
    return _made(method, args, keywords, Spec(np.int64, (x,)))


def _shuffle(method: Any, args: Any, keywords: Any, given: Mapping[str, Any], _: Any) -> None:
    x = given["x"]
    if type(x) is not TracedArray:
        raise fail("TM111", "shuffle of something else than an array is not supported",
                   hint="permutation gives a new one")  # fmt: skip

    def shuffled(x: Any) -> Any:
        method(x, **{name: item for name, item in given.items() if name != "x"})
        return x

    x[...] = host_call(shuffled, x, result=x)


def _choice(method: Any, args: Any, keywords: Any, given: Mapping[str, Any], _: Any) -> Any:
    a, size = given["a"], given["size"]
    drawn = () if size is None else _shape(size)
    if np.ndim(a) == 0:
        return _made(method, args, keywords, 0 if size is None else Spec(np.int64, drawn))
    axis = operator.index(given.get("axis", 0)) % np.ndim(a)
    shape = (*np.shape(a)[:axis], *drawn, *np.shape(a)[axis + 1 :])
    return _made(method, args, keywords, Spec(np.result_type(weak_type(a)), shape))


def _vectors(length_of: str) -> Callable[..., Any]:
    """Of a distribution of vectors, as long as one of its parameters."""

    def rule(method: Any, args: Any, keywords: Any, given: Mapping[str, Any], _: Any) -> Any:
        size = given["size"]
        shape = (*(() if size is None else _shape(size)), np.shape(given[length_of])[-1])
        return _made(method, args, keywords, Spec(float, shape))

    return rule


_RULES: Mapping[str, Callable[..., Any]] = {
    "permutation": _permutation,
    "permuted": _permutation,
    "shuffle": _shuffle,
    "choice": _choice,
    "multivariate_normal": _vectors("mean"),
    "dirichlet": _vectors("alpha"),
}
