"""Special methods of the user's classes: what Python calls by itself runs intercepted, too.

``a + b`` calls ``type(a).__add__``, ``len(a)`` its ``__len__``, a loop its ``__iter__``: such a
method reads globals, attributes and arrays, and chooses and repeats, as any function does. The
hooks here follow Python's protocols where one of the classes has such a method, and are
Python's operators and builtins where none has.

Invariants: outside a trace, and for classes of Python, NumPy and libraries, nothing is changed.
Not here: calls and constructors (callee.py), attributes (attribute_methods.py), truth
(plain_flow.py).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from ..tracing.integer import TracedSize
from ..tracing.number import TracedNumber
from ..tracing.source import is_library_file
from ..tracing.state import current, fail
from ..tracing.tensor import TracedArray, TracedScalar
from . import python_functions
from .callee import callee

Operation = Callable[[Any, Any], Any]

# Classes that have no such methods, the frequent ones: others are looked at.
_PLAIN: frozenset[type] = frozenset((
    TracedArray, TracedScalar, TracedNumber, TracedSize, np.ndarray, np.float64, np.float32,
    np.int64, np.bool_, int, float, complex, bool, str, bytes, list, tuple, dict, set, frozenset,
    range, slice, type(None),
))  # fmt: skip
_NUMBERS = (TracedNumber, TracedSize)  # leave it to the other operand
_OF_NUMPY = (TracedArray, TracedScalar, np.ndarray)
_TRACED = re.compile(r"<traced [^<>]*>")  # in a text that was made while tracing
_SEQUENCES = (list, tuple, str, bytes, bytearray)  # + and * of these come last

BINARY: Mapping[str, Operation] = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Div": operator.truediv,
    "FloorDiv": operator.floordiv, "Mod": operator.mod, "Pow": operator.pow,
    "MatMult": operator.matmul, "BitAnd": operator.and_, "BitOr": operator.or_,
    "BitXor": operator.xor, "LShift": operator.lshift, "RShift": operator.rshift,
}  # fmt: skip
_IN_PLACE: Mapping[str, Operation] = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul,
    "Div": operator.itruediv, "FloorDiv": operator.ifloordiv, "Mod": operator.imod,
    "Pow": operator.ipow, "MatMult": operator.imatmul, "BitAnd": operator.iand,
    "BitOr": operator.ior, "BitXor": operator.ixor, "LShift": operator.ilshift,
    "RShift": operator.irshift,
}  # fmt: skip
_UNARY: Mapping[str, Callable[[Any], Any]] = {
    "USub": operator.neg, "UAdd": operator.pos, "Invert": operator.invert,
}  # fmt: skip
_COMPARISONS: Mapping[str, Operation] = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge,
    "Eq": operator.eq, "NotEq": operator.ne,
}  # fmt: skip
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def method_of(kind: type, name: str) -> FunctionType | None:
    """The special method of a class, if it is a function of the user's."""
    if kind in _PLAIN:
        return None
    found = held_by(kind, name)
    own = type(found) is FunctionType and not is_library_file(found.__code__.co_filename)
    return found if own else None


def held_by(kind: type, name: str) -> Any:
    """What a class, or one it is made of, holds under a name; None where none does."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def user_call(owner: Any, name: str, *args: Any) -> Any:
    """What the user's special method of this name gives; NotImplemented where there is none."""
    method = None if current() is None else method_of(type(owner), name)
    return NotImplemented if method is None else callee(method)(owner, *args)


# -- operators


def _two_sided(operation: Operation, forward: str, reflected: str) -> Operation:
    """An operator that asks both operands. forward, reflected: names of special methods."""

    def apply(left: Any, right: Any) -> Any:
        kinds = type(left), type(right)
        if kinds[0] in _PLAIN and kinds[1] in _PLAIN or current() is None:
            if kinds[0] is str and forward in _ORDERED:
                _check_text(left, right)
            return operation(left, right)
        mine, theirs = method_of(kinds[0], forward), method_of(kinds[1], reflected)
        if mine is None and theirs is None:
            return operation(left, right)
        steps = [(forward, mine, left, right), (reflected, theirs, right, left)]
        if _goes_first(kinds, forward, reflected):
            steps.reverse()
        elif kinds[0] is kinds[1] and forward != reflected and forward not in _ORDERED:
            steps.pop()
        for name, method, owner, other in steps:
            made = _asked(name, method, owner, other)
            if made is not NotImplemented:
                return made
        return operation(left, right)  # which says what does not fit

    return apply


def _check_text(text: str, other: Any) -> None:
    """Refuse to compare a text that was made of a value of the run: it has none of its digits."""
    for part in (text, other):
        found = _TRACED.search(part) if type(part) is str else None
        if found is not None and current() is not None:
            raise fail(
                "TM102",
                f"a text made of {found[0]} is compared, which is known only when the compiled "
                "function runs",
                hint="compare the value itself, or compare in a function that tm.host_call calls",
            )


def _goes_first(kinds: tuple[type, type], forward: str, reflected: str) -> bool:
    """Whether the right operand is asked first: an instance of a class made of the left one's."""
    left, right = kinds
    if left in _SEQUENCES:
        return True
    if left is right or not issubclass(right, left):
        return False
    return getattr(right, reflected, None) is not getattr(left, reflected, None) or (
        forward in _ORDERED
    )


def _asked(name: str, method: FunctionType | None, owner: Any, other: Any) -> Any:
    """What one operand answers."""
    if method is not None:
        return callee(method)(owner, other)
    kind = type(owner)
    if kind in _NUMBERS or kind in _OF_NUMPY and _defers_to(other, kind is TracedScalar):
        return NotImplemented
    found = getattr(type(owner), name, None)
    return NotImplemented if found is None else found(owner, other)


def _defers_to(other: Any, is_number: bool) -> bool:
    """Whether arrays, or numbers of NumPy's, leave an operation to an object."""
    kind = type(other)
    missing = object()
    asked = getattr(kind, "__array_ufunc__", missing)
    if asked is None or asked is missing and getattr(other, "__array_priority__", -1) > 0:
        return True
    return is_number and not (hasattr(kind, "__len__") and hasattr(kind, "__getitem__"))


_ORDERED = frozenset(f"__{name}__" for name in _MIRRORED)


def _name(operation: Any) -> str:
    name: str = operation.__name__
    return name.strip("_")


def _unequal(left: Any, right: Any) -> Any:
    """``left != right``: by `__eq__` where a class has no `__ne__`."""
    for owner, other in ((left, right), (right, left)):
        kind = type(owner)
        if (
            held_by(kind, "__ne__") is object.__dict__["__ne__"]
            and method_of(kind, "__eq__") is not None
        ):
            made = user_call(owner, "__eq__", other)
            if made is not NotImplemented:
                return _truth(made, negated=True)
    return _two_sided(operator.ne, "__ne__", "__ne__")(left, right)


def _in_place(operation: Operation, otherwise: Operation) -> Operation:
    name = f"__{operation.__name__.strip('_')}__"

    def apply(left: Any, right: Any) -> Any:
        kind = type(left)
        if kind in _PLAIN and type(right) in _PLAIN or current() is None:
            return operation(left, right)
        made = user_call(left, name, right)
        if made is not NotImplemented:
            return made
        if method_of(kind, name) is None and hasattr(kind, name):
            return operation(left, right)
        return otherwise(left, right)

    return apply


def _one_sided(operation: Callable[..., Any], name: str) -> Callable[..., Any]:
    """An operator or builtin that asks its first operand."""

    def apply(item: Any, *rest: Any) -> Any:
        if type(item) in _PLAIN:
            return operation(item, *rest)
        made = user_call(item, name, *rest)
        return operation(item, *rest) if made is NotImplemented else made

    return apply


def contains(item: Any, items: Any) -> Any:
    """``item in items``"""
    kind = type(items)
    if kind in _PLAIN or current() is None:
        if type(item) is str:
            _check_text(item, items)
        return item in items
    if method_of(kind, "__contains__") is not None:
        return _truth(user_call(items, "__contains__", item))
    if is_iterated(items):
        return _is_among(item, iterated(items))
    return item in items


def _is_among(item: Any, parts: Any) -> Any:
    """Whether one of the parts is the item, or equal to it."""
    found: Any = False
    for part in parts:
        found |= part is item or _truth(OPERATORS["Eq"](part, item))
        if found is True:
            break
    return found


def _truth(item: Any, negated: bool = False) -> Any:
    """bool() of what a method gave, which may be traced."""
    made = callee(bool)(item)
    if not negated:
        return made
    return not made if type(made) is bool else operator.xor(made, True)


# -- items and iteration


def is_iterated(items: Any) -> bool:
    """Whether a loop over it calls methods of the user's."""
    kind = type(items)
    if kind in _PLAIN or current() is None:
        return False
    if method_of(kind, "__iter__") is not None or method_of(kind, "__next__") is not None:
        return True
    return not hasattr(kind, "__iter__") and method_of(kind, "__getitem__") is not None


def iterated(items: Any) -> Any:
    """What a loop over an object of the user's runs over."""
    if not is_iterated(items):
        return items
    kind = type(items)
    if not hasattr(kind, "__iter__"):
        return _by_number(items)
    made = user_call(items, "__iter__")
    if made is NotImplemented:
        made = iter(items)
    return made if method_of(type(made), "__next__") is None else _by_next(made)


def _by_number(items: Any) -> Iterator[Any]:
    at = 0
    while True:
        try:
            found = user_call(items, "__getitem__", at)
        except IndexError:
            return
        yield found
        at += 1


def _by_next(items: Any) -> Iterator[Any]:
    while True:
        try:
            found = user_call(items, "__next__")
        except StopIteration:
            return
        yield found


class Context:
    """Stands for a context manager of the user's in a ``with`` statement."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager

    def __enter__(self) -> Any:
        return user_call(self.manager, "__enter__")

    def __exit__(self, *problem: Any) -> Any:
        return user_call(self.manager, "__exit__", *problem)


def context(manager: Any) -> Any:
    """What a ``with`` statement enters."""
    kind = type(manager)
    if current() is None or None in (method_of(kind, "__enter__"), method_of(kind, "__exit__")):
        return manager
    return Context(manager)


OPERATORS: dict[str, Callable[..., Any]] = {
    **{name: _two_sided(f, f"__{_name(f)}__", f"__r{_name(f)}__") for name, f in BINARY.items()},
    **{
        name: _two_sided(f, f"__{_name(f)}__", f"__{_MIRRORED[_name(f)]}__")
        for name, f in _COMPARISONS.items()
    },
    **{name: _one_sided(f, f"__{_name(f)}__") for name, f in _UNARY.items()},
    "NotEq": _unequal,
    "In": contains,
    "NotIn": lambda item, items: _truth(contains(item, items), negated=True),
}
IN_PLACE = {name: _in_place(f, OPERATORS[name]) for name, f in _IN_PLACE.items()}


def _asking(function: Any, name: str) -> Callable[..., Any]:
    """A builtin whose first argument may have a special method for it."""
    otherwise = python_functions.REPLACEMENTS.get(function, function)

    def call(*args: Any, **named: Any) -> Any:
        if args and type(args[0]) not in _PLAIN:
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


def _next(items: Any, *default: Any) -> Any:
    try:
        made = user_call(items, "__next__")
    except StopIteration:
        if not default:
            raise
        return default[0]
    return next(items, *default) if made is NotImplemented else made


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
        for function in (list, tuple, set, frozenset, zip, enumerate, iter, min, max, sum, any, all)
    },
    next: _next,
    divmod: _two_sided(divmod, "__divmod__", "__rdivmod__"),
    pow: _power,
    **{
        getattr(operator, name): OPERATORS[kind]
        for kind, operation in {**BINARY, **_COMPARISONS, **_UNARY}.items()
        for name in (_name(operation), operation.__name__)
        if hasattr(operator, name)
    },
}
