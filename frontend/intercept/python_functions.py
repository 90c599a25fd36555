"""Python's builtins and the math module on traced arguments.

Each behaves as the original where nothing among its arguments is traced.

Invariants: results are what Python would give: weak numbers, sizes.
Not here: NumPy's functions (numpy/).
"""

from __future__ import annotations

import builtins
import math
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..numpy.names import SPECIAL
from ..numpy.operands import any_traced, common_dtype, is_traced, value_of
from ..numpy.reductions import fold
from ..numpy.unsized import Unsized
from ..tracing.integer import TracedSize, user_size
from ..tracing.number import KINDS, TracedNumber, weak_kind
from ..tracing.state import Trace, fail, running
from ..tracing.tensor import TracedArray, TracedScalar, result

_RANK = {bool: 0, int: 1, float: 2, complex: 3}


def traced_len(items: Any) -> Any:
    """len"""
    if type(items) is TracedArray:
        shape = items.tensor_type.shape
        if not shape:
            raise TypeError("len() of unsized object")
        return user_size(items.tracing, shape[0])
    if issubclass(type(items), Unsized):
        return items.shape[0]
    return len(items)


def _conversion(kind: type) -> Callable[..., Any]:
    def convert(*args: Any, **keywords: Any) -> Any:
        if len(args) != 1 or keywords or not is_traced(args[0]):
            return kind(*args, **keywords)
        (item,) = args
        if type(item) is TracedSize:
            if kind is int:
                return item
            if kind is bool:
                return bool(item)
            return item.number().converted(kind)
        if type(item) is TracedNumber:
            return item.converted(kind)
        if item.ndim and item.size != 1:
            if kind is bool:
                raise ValueError(
                    "The truth value of an array with more than one element is ambiguous. "
                    "Use a.any() or a.all()"
                )
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        if item.ndim and kind is not bool and not _one_element_is_a_number():
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        if kind in (int, float) and item.dtype.kind == "c":
            if type(item) is not TracedScalar:
                raise TypeError(f"{kind.__name__}() argument must be a real number, not 'complex'")
            warnings.warn(
                "Casting complex values to real discards the imaginary part",
                np.exceptions.ComplexWarning,
                stacklevel=2,
            )
            item = item.real
        return running().dispatch.python_number(item.reshape(()).value).converted(kind)

    return convert


@cache
def _one_element_is_a_number() -> bool:
    """Whether this NumPy makes a number of an array of one element that has axes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return float(np.ones(1)) == 1
        except TypeError:
            return False


def traced_pow(base: Any, exp: Any, mod: Any = None) -> Any:
    """pow; with a modulus it is of Python's integers only, so the numbers are fixed."""
    parts = (base, exp, mod)
    if mod is None:
        return pow(base, exp)
    if any(isinstance(part, np.ndarray | np.generic) for part in parts):
        kinds = ", ".join(repr(_type_name(part.__class__)) for part in parts)
        raise fail(
            "TM202",
            f"unsupported operand type(s) for ** or pow(): {kinds}",
            hint="write x ** p % m",
        )
    if any(type(part) is TracedNumber for part in parts):
        raise fail(
            "TM111",
            "pow() with a modulus is not supported for a number that is known only at run time",
            hint="write x ** p % m where the power fits 64 bits, or name the numbers in "
            "static_argnames",
        )
    return pow(*[_fixed(part, "pow() with a modulus needs its number") for part in parts])


def _type_name(kind: type) -> str:
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _of_memory(original: Callable[..., Any]) -> Callable[..., Any]:
    """A builtin that reads the memory of an array."""

    def call(*args: Any, **keywords: Any) -> Any:
        if args and (
            type(args[0]) in (TracedArray, TracedScalar) or issubclass(type(args[0]), Unsized)
        ):
            raise fail(
                "TM102",
                f"{original.__name__}() needs the memory of {args[0]!r} while the function is "
                "traced",
                "its data is there only when the compiled function runs",
                f"return the array and call {original.__name__}() on the result",
            )
        return original(*args, **keywords)

    return call


def traced_range(*args: Any) -> range:
    """range: a Python loop runs while tracing, so the numbers are fixed."""
    reason = "a Python loop runs over range() of it while the function is traced"
    return range(*[_fixed(item, reason) for item in args])


def _fixed(item: Any, reason: str) -> Any:
    if type(item) is TracedSize:
        return item.tracing.sizes.specialise(item.size, reason)
    return item


def traced_type(*args: Any) -> Any:
    """type"""
    if len(args) == 1 and (is_traced(args[0]) or issubclass(type(args[0]), Unsized)):
        return args[0].__class__
    return builtins.type(*args)


def _extreme(original: Callable[..., Any], op: str, function: Any) -> Callable[..., Any]:
    def pick(*args: Any, **keywords: Any) -> Any:
        if keywords:
            return original(*args, **keywords)
        if len(args) == 1 and type(args[0]) is TracedArray and args[0].ndim == 1:
            return function(args[0])
        items = list(args[0]) if len(args) == 1 else list(args)
        if not any(type(item) in (TracedNumber, TracedScalar) for item in items):
            return original(items)
        made = items[0]
        for item in items[1:]:
            made = _chosen(running(), op, item, made)
        return made

    return pick


def _chosen(trace: Trace, op: str, new: Any, old: Any) -> Any:
    """`new` where ``new op old``, else `old`: what min() and max() do."""
    weak = weak_kind(new), weak_kind(old)
    if None not in weak:
        kind = max(weak, key=_RANK.__getitem__)  # type: ignore[arg-type]
        dtype = KINDS[kind]  # type: ignore[index]
        values = [trace.cast(value_of(item), dtype) for item in (new, old)]
        chosen = trace.emit("select", trace.emit(op, *values), *values)
        return TracedNumber(trace, chosen, kind)  # type: ignore[arg-type]
    dtype = common_dtype(new, old)
    values = [trace.cast(value_of(item), dtype) for item in (new, old)]
    return result(trace, trace.emit("select", trace.emit(op, *values), *values))


def traced_sum(items: Any, /, start: Any = 0) -> Any:
    """sum: over the first axis of an array, without widening, as ``+`` would."""
    if type(items) is TracedArray and items.ndim:
        count = items.tensor_type.shape[0]
        if items.tracing.sizes.equal(count, 0, "sum() of nothing is what it starts from"):
            return start
        if items.dtype.kind == "b":
            return np.add(fold(np.add, items, 0), start)
        return np.add(fold(np.add, items, 0, dtype=items.dtype), start)
    return sum(items, start)


def _truth(original: Callable[[Any], bool], ufunc: np.ufunc) -> Callable[[Any], Any]:
    def truth(items: Any) -> Any:
        if type(items) is TracedArray and items.ndim == 1:
            return running().dispatch.python_number(value_of(fold(ufunc, items, 0)))
        return original(items)

    return truth


def _math(name: str, function: Callable[..., Any], ufunc: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        if not any_traced(args):
            return function(*args)
        for item in args:
            if getattr(item, "ndim", 0) and item.size != 1:
                raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        trace = running()
        floats = [_to_float(item) for item in args]
        value = value_of(ufunc(*[result(trace, value_of(item)) for item in floats]))
        if name in _DOMAIN:
            _check_domain(trace, value, [value_of(item) for item in floats])
        kind = bool if name in _ASKING else float
        return TracedNumber(trace, trace.cast(value, KINDS[kind]), kind)

    call.__name__ = name
    return call


def _to_float(item: Any) -> Any:
    return _conversion(float)(item) if is_traced(item) else float(item)


def _check_domain(trace: Trace, value: Any, operands: list[Any]) -> None:
    """Fail the call where the math module raises ValueError: NaN out of numbers."""
    ok = trace.emit("logical_not", trace.emit("isnan", value))
    for operand in operands:
        ok = trace.emit("logical_or", ok, trace.emit("isnan", operand))
    trace.emit("check", ok, code="TM251")


def _rounding(function: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    def call(item: Any) -> Any:
        if not is_traced(item) or type(item) is TracedSize:
            return function(item)
        number = _to_float(item) if type(item) is not TracedNumber else item
        return getattr(number, name)()

    return call


def _traced_prod(items: Any, /, *, start: Any = 1) -> Any:
    made = start
    for item in items:
        made = made * item
    return made


def _traced_hypot(*args: Any) -> Any:
    if not any_traced(args):
        return math.hypot(*args)
    made = args[0]
    for item in args[1:]:
        made = _MATH[math.hypot](made, item)
    return made


def _traced_log(x: Any, *base: Any) -> Any:
    if not any_traced((x, *base)):
        return math.log(x, *base)
    made = _MATH[math.log](x)
    return made / traced_log(*base) if base else made


def traced_log(x: Any) -> Any:
    """math.log of one argument."""
    return _MATH[math.log](x) if is_traced(x) else math.log(x)


def _refused(name: str) -> Callable[..., Any]:
    original = getattr(math, name)

    def call(*args: Any, **keywords: Any) -> Any:
        if any_traced(args):
            hint = f"tm.special.{name} is" if name in SPECIAL else "call it outside"
            raise fail("TM110", f"math.{name} of a traced number is not supported", hint=hint)
        return original(*args, **keywords)

    return call


_DOMAIN = frozenset(("sqrt", "log", "log2", "log10", "log1p", "asin", "acos", "acosh", "atanh",
                     "sin", "cos", "tan", "fmod", "pow"))  # fmt: skip
_ASKING = frozenset(("isnan", "isinf", "isfinite"))
_SAME = {
    "sqrt": np.sqrt, "exp": np.exp, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "fabs": np.fabs, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "degrees": np.degrees, "radians": np.radians, "atan2": np.arctan2, "hypot": np.hypot,
    "copysign": np.copysign, "fmod": np.fmod, "pow": np.power, "exp2": np.exp2,
    "cbrt": np.cbrt,
}  # fmt: skip
_MATH: dict[Any, Callable[..., Any]] = {
    getattr(math, name): _math(name, getattr(math, name), ufunc)
    for name, ufunc in _SAME.items()
    if hasattr(math, name)
}
REPLACEMENTS: dict[Any, Callable[..., Any]] = {
    **_MATH,
    math.hypot: _traced_hypot,
    math.log: _traced_log,
    math.prod: _traced_prod,
    math.floor: _rounding(math.floor, "__floor__"),
    math.ceil: _rounding(math.ceil, "__ceil__"),
    math.trunc: _rounding(math.trunc, "__trunc__"),
    **{
        getattr(math, name): _refused(name)
        for name in ("gamma", "lgamma", "erf", "erfc", "frexp", "modf", "ldexp", "gcd", "isclose",
                     "factorial", "comb", "perm", "dist", "fsum", "remainder")
    },
    len: traced_len,
    int: _conversion(int),
    float: _conversion(float),
    complex: _conversion(complex),
    bool: _conversion(bool),
    range: traced_range,
    pow: traced_pow,
    memoryview: _of_memory(memoryview),
    bytes: _of_memory(bytes),
    bytearray: _of_memory(bytearray),
    type: traced_type,
    min: _extreme(min, "less", np.min),
    max: _extreme(max, "greater", np.max),
    sum: traced_sum,
    any: _truth(any, np.logical_or),
    all: _truth(all, np.logical_and),
}  # fmt: skip
