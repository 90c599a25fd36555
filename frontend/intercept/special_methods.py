"""Operators in intercepted code: Python's, which follow its protocol where one of the classes has
a special method that is the user's.

Invariants: operands are asked in Python's order; what none of them answers is Python's error.
Not here: the methods (user_methods.py), builtins (python_builtins.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from ..numpy.operands import any_traced
from ..tracing.integer import TracedSize
from ..tracing.number import TracedNumber
from ..tracing.operators import REFLECTED, UFUNCS
from ..tracing.state import current
from ..tracing.tensor import TracedArray, TracedScalar
from ..tracing.texts import refuse_text
from .callee import callee
from .iteration import is_iterated, iterated
from .user_methods import PLAIN, held_by, method_of, user_call

Operation = Callable[[Any, Any], Any]

_NUMBERS = (TracedNumber, TracedSize)  # leave it to the other operand
_OF_NUMPY = (TracedArray, TracedScalar, np.ndarray)
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
_ORDERED = frozenset(f"__{name}__" for name in _MIRRORED)
OF_OPERATORS = {**BINARY, **_COMPARISONS, **_UNARY}


def two_sided(operation: Operation, forward: str, reflected: str) -> Operation:
    """An operator that asks both operands. forward, reflected: names of special methods."""

    def apply(left: Any, right: Any) -> Any:
        kinds = type(left), type(right)
        if kinds[0] in PLAIN and kinds[1] in PLAIN or current() is None:
            if kinds[0] is str and forward in _ORDERED:
                _check_text(left, right)
            return operation(left, right)
        mine, theirs = method_of(kinds[0], forward), method_of(kinds[1], reflected)
        if mine is None and theirs is None and not any(map(_overrides, kinds)):
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
    if current() is not None:
        hint = "compare the value itself, or compare in a function that tm.host_call calls"
        for part in (text, other):
            refuse_text(part, "compared", hint)


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
    if _overrides(type(other)) and (kind in _OF_NUMPY or _overrides(kind)) or _overrides(kind):
        operands = (owner, other) if name not in REFLECTED else (other, owner)
        return callee(UFUNCS[name])(*operands) if name in UFUNCS else NotImplemented
    if kind in _NUMBERS or kind in _OF_NUMPY and _defers_to(other, kind is TracedScalar):
        return NotImplemented
    found = getattr(type(owner), name, None)
    return NotImplemented if found is None else found(owner, other)


def _overrides(kind: type) -> bool:
    """Whether a class of the user's says what ufuncs do of it."""
    return method_of(kind, "__array_ufunc__") is not None


def _defers_to(other: Any, is_number: bool) -> bool:
    """Whether arrays, or numbers of NumPy's, leave an operation to an object."""
    kind = type(other)
    missing = object()
    asked = getattr(kind, "__array_ufunc__", missing)
    if asked is None or asked is missing and getattr(other, "__array_priority__", -1) > 0:
        return True
    return is_number and not (hasattr(kind, "__len__") and hasattr(kind, "__getitem__"))


def _name(operation: Any) -> str:
    name: str = operation.__name__
    return name.strip("_")


def _unequal(left: Any, right: Any) -> Any:
    """``left != right``: by `__eq__` where a class has no `__ne__`."""
    if type(left) in PLAIN and type(right) in PLAIN:
        return _not_equal(left, right)
    for owner, other in ((left, right), (right, left)):
        kind = type(owner)
        if (
            held_by(kind, "__ne__") is object.__dict__["__ne__"]
            and method_of(kind, "__eq__") is not None
        ):
            made = user_call(owner, "__eq__", other)
            if made is not NotImplemented:
                return _truth(made, negated=True)
    return _not_equal(left, right)


_not_equal = two_sided(operator.ne, "__ne__", "__ne__")


def _in_place(operation: Operation, otherwise: Operation) -> Operation:
    name = f"__{operation.__name__.strip('_')}__"

    def apply(left: Any, right: Any) -> Any:
        kind = type(left)
        if kind in PLAIN and type(right) in PLAIN or current() is None:
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
        if type(item) in PLAIN:
            return operation(item, *rest)
        made = user_call(item, name, *rest)
        return operation(item, *rest) if made is NotImplemented else made

    return apply


def contains(item: Any, items: Any) -> Any:
    """``item in items``"""
    kind = type(items)
    if kind in PLAIN or current() is None:
        if type(item) is str:
            _check_text(item, items)
        if kind is TracedArray:
            return _truth(np.any(items == item))
        if kind in (list, tuple) and any_traced([item, *items]):
            return _is_among(item, items)
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


OPERATORS: dict[str, Callable[..., Any]] = {
    **{name: two_sided(f, f"__{_name(f)}__", f"__r{_name(f)}__") for name, f in BINARY.items()},
    **{
        name: two_sided(f, f"__{_name(f)}__", f"__{_MIRRORED[_name(f)]}__")
        for name, f in _COMPARISONS.items()
    },
    **{name: _one_sided(f, f"__{_name(f)}__") for name, f in _UNARY.items()},
    "NotEq": _unequal,
    "In": contains,
    "NotIn": lambda item, items: _truth(contains(item, items), negated=True),
}
IN_PLACE = {name: _in_place(f, OPERATORS[name]) for name, f in _IN_PLACE.items()}
