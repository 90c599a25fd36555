"""Two contents of one place become one: what is the same stays, numbers and arrays are results.

    {"a": x, "n": 1}, {"a": y, "n": 2}   ->   a pattern with two leaves, of the pairs (x, y), (1, 2)

Leaves are joined as NumPy would: a Python number takes the type of what it meets, two Python
numbers are of the wider kind; arrays and NumPy scalars of different types are no one type.

Invariants: an object that is on both sides is no leaf.
Not here: whose contents they are (branches.py, rolled.py).
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..compiler.ir.graph import Value
from ..compiler.records import dataclass
from ..compiler.types import TensorType
from ..numpy.operands import is_traced, value_of
from ..tracing.integer import TracedSize
from ..tracing.number import KINDS, TracedNumber, weak_kind
from ..tracing.state import Trace, require_dtype
from ..tracing.tensor import TracedArray, TracedScalar, fresh
from ..tracing.undefined import Undefined

_RANK = {bool: 0, int: 1, float: 2, complex: 3}
_CONSTANTS = (str, bytes, type(None), np.dtype, slice, type(Ellipsis))


class Differs(Exception):
    """Two contents are no one content. `what`: of which part, and how."""

    def __init__(self, path: str, left: str, right: str) -> None:
        super().__init__(path, left, right)
        self.path, self.left, self.right = path, left, right

    @property
    def of_lists(self) -> bool:
        """Whether both are lists, of other lengths."""
        return all(what.startswith("a list of ") for what in (self.left, self.right))


@dataclass(frozen=True, slots=True)
class Leaf:
    """A result: its place among the leaves."""

    at: int


@dataclass(frozen=True, slots=True)
class Same:
    """An object that is on both sides."""

    item: Any


@dataclass(frozen=True, slots=True)
class Nest:
    """A container made anew. keys: of a dict or dataclass."""

    kind: Any
    keys: tuple[Any, ...]
    parts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """The two sides of a leaf, and where it is in its place."""

    left: Any
    right: Any
    path: str


@dataclass(frozen=True, slots=True)
class LeafType:
    """What a leaf is to user code: a Python number of a kind, a NumPy scalar or an array."""

    tensor: TensorType
    kind: str | type

    def wrapped(self, trace: Trace, value: Value) -> Any:
        """The user's object for a value."""
        if isinstance(self.kind, type):
            return TracedNumber(trace, value, self.kind)
        return fresh(trace, value) if self.kind == "array" else TracedScalar(trace, value)

    def __repr__(self) -> str:
        if isinstance(self.kind, type):
            return self.kind.__name__
        return repr(self.tensor)


def paired(left: Any, right: Any, path: str, pairs: list[Pair], every: bool = False) -> Any:
    """The pattern of two contents; the pairs of its leaves are added to `pairs`.

    every: numbers and arrays are leaves even where both sides are one object. Raises Differs.
    """
    number = is_number(left) and is_number(right)
    if left is right and not (every and (number or isinstance(left, list | tuple | dict))):
        return Same(left)
    if number:
        if not every and _is_plain(left) and type(left) is type(right) and _equal(left, right):
            return Same(left)
        pairs.append(Pair(left, right, path))
        return Leaf(len(pairs) - 1)
    if type(left) is not type(right):
        raise Differs(path, described(left), described(right))
    found = list(_parts(left))
    others = list(_parts(right))
    if found or others or isinstance(left, list | tuple | dict):
        keys = tuple([key for key, _ in found])
        if keys != tuple([key for key, _ in others]):
            raise Differs(path, described(left), described(right))
        parts = [
            paired(a, b, path + _step(left, key), pairs, every)
            for (key, a), (_, b) in zip(found, others)
        ]
        return Nest(_maker(left), keys, tuple(parts))
    if _equal(left, right):
        return Same(left)
    raise Differs(path, described(left), described(right))


def filled(pattern: Any, leaves: Sequence[Any]) -> Any:
    """The content of a pattern with these leaves; what has none stays undefined."""
    if type(pattern) is Undefined:
        return pattern
    if type(pattern) is Leaf:
        return leaves[pattern.at]
    if type(pattern) is Same:
        return pattern.item
    return pattern.kind(pattern.keys, [filled(part, leaves) for part in pattern.parts])


def is_number(item: Any) -> bool:
    """True for what can be a leaf: arrays, NumPy scalars, Python numbers, traced or not."""
    return type(item) in (TracedArray, TracedScalar, TracedNumber, TracedSize) or (
        isinstance(item, bool | int | float | complex | np.generic | np.ndarray)
        and not isinstance(item, str | bytes)
    )


def leaf_type(item: Any) -> LeafType:
    """What an item is."""
    kind = weak_kind(item)
    if kind is not None:
        return LeafType(TensorType(KINDS[kind], ()), kind)
    if type(item) is TracedArray or type(item) is TracedScalar:
        return LeafType(item.tensor_type, "array" if type(item) is TracedArray else "scalar")
    array = type(item) is np.ndarray
    tensor = TensorType(require_dtype(item.dtype), item.shape if array else ())
    return LeafType(tensor, "array" if array else "scalar")


def joined(trace: Trace, left: LeafType, right: LeafType, path: str) -> LeafType:
    """The type both sides take. Raises Differs."""
    a, b = left.kind, right.kind
    if isinstance(a, type) and isinstance(b, type):
        kind = max(a, b, key=_RANK.__getitem__)
        return LeafType(TensorType(KINDS[kind], ()), kind)
    dtype = left.tensor.dtype
    if isinstance(a, type) or isinstance(b, type):
        dtype = require_dtype(np.result_type(_promoting(left), _promoting(right)))
    elif dtype != right.tensor.dtype:
        raise Differs(path, repr(left), repr(right))
    if left.tensor.rank != right.tensor.rank or not all(
        trace.sizes.equal(m, n, "control flow keeps shapes")
        for m, n in zip(left.tensor.shape, right.tensor.shape)
    ):
        raise Differs(path, repr(left), repr(right))
    wide = right if isinstance(a, type) else left
    kind_of_both = "array" if "array" in (a, b) and a == b else "scalar"
    if left.tensor.rank or (isinstance(a, type) or isinstance(b, type)):
        kind_of_both = str(wide.kind)
    return LeafType(wide.tensor.with_dtype(dtype), kind_of_both)


def converted(trace: Trace, item: Any, wanted: LeafType) -> Value:
    """The value of an item as that type."""
    return trace.cast(value_of(item), wanted.tensor.dtype)


def zeros(trace: Trace, wanted: TensorType) -> Value:
    """Content for a leaf that nobody reads."""
    zero = trace.literal(0, wanted.dtype)
    shape = tuple([trace.sizes.normal(size) for size in wanted.shape])
    value: Value = trace.emit("broadcast_to", zero, shape=shape) if shape else zero
    return value


def described(item: Any) -> str:
    """An item, in an error."""
    if is_number(item):
        return repr(leaf_type(item))
    if isinstance(item, list | tuple | dict | set):
        return f"a {type(item).__name__} of {len(item)}"
    if item is None or isinstance(item, _CONSTANTS):
        return f"{item!r:.40}"
    name = getattr(item, "__name__", None)
    return name if isinstance(name, str) else f"a {type(item).__name__}"


def _promoting(item: LeafType) -> Any:
    """What NumPy is told of an operand."""
    if not isinstance(item.kind, type):
        return item.tensor.dtype.numpy
    return np.dtype(bool) if item.kind is bool else item.kind(0)


def _is_plain(item: Any) -> bool:
    return type(item) in KINDS or isinstance(item, np.generic) and not is_traced(item)


def _equal(left: Any, right: Any) -> bool:
    """Whether two objects are one constant."""
    if isinstance(left, float | complex):
        return repr(left) == repr(right)
    if isinstance(left, (bool, int, np.generic, *_CONSTANTS)):
        return bool(left == right)
    return False


def _parts(item: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(item, list | tuple):
        yield from enumerate(item)
    elif isinstance(item, dict):
        yield from item.items()
    elif dataclasses.is_dataclass(item) and not isinstance(item, type):
        for field in dataclasses.fields(item):
            yield field.name, getattr(item, field.name)


def _step(item: Any, key: Any) -> str:
    return f".{key}" if not isinstance(item, list | tuple | dict) else f"[{key!r}]"


def _maker(item: Any) -> Any:
    kind: Any = type(item)
    if hasattr(item, "_make"):
        return lambda keys, parts: kind._make(parts)
    if isinstance(item, list | tuple):
        return lambda keys, parts: kind(parts)
    if isinstance(item, dict):
        return lambda keys, parts: _dict_like(item, dict(zip(keys, parts)))
    return lambda keys, parts: dataclasses.replace(item, **dict(zip(keys, parts)))


def _dict_like(item: Any, parts: dict[Any, Any]) -> Any:
    made = copy.copy(item)
    made.clear()
    made.update(parts)
    return made
