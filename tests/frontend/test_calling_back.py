"""Python's own code that calls methods of the user's in their place: mixins of collections.abc,
orders made of one comparison, context managers made of generators, metaclasses, ufuncs that a
class overrides.

Not here: methods that Python calls itself (test_special_methods.py).
"""

from __future__ import annotations

import collections.abc
import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu

SCALE = 2.0


class Table(collections.abc.MutableMapping[str, Any]):
    def __init__(self, **items: Any) -> None:
        self.items_ = dict(items)

    def __getitem__(self, key: str) -> Any:
        return self.items_[key] * SCALE

    def __setitem__(self, key: str, value: Any) -> None:
        self.items_[key] = value + SCALE

    def __delitem__(self, key: str) -> None:
        del self.items_[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.items_)

    def __len__(self) -> int:
        return len(self.items_)


class Row(collections.abc.Sequence[Any]):
    def __init__(self, *items: Any) -> None:
        self.held = items

    def __getitem__(self, at: Any) -> Any:
        return self.held[at] * SCALE

    def __len__(self) -> int:
        return len(self.held)


@functools.total_ordering
class Size:
    def __init__(self, a: Any) -> None:
        self.a = a

    def __eq__(self, other: Any) -> Any:
        return self.a * SCALE == other.a

    def __lt__(self, other: Any) -> Any:
        return self.a * SCALE < other.a

    __hash__ = None  # type: ignore[assignment]


@contextlib.contextmanager
def scaled(by: float) -> Iterator[float]:
    yield by * SCALE


class Counting(type):
    def __call__(cls, *args: Any) -> Any:
        made = super().__call__(*args)
        made.scale = SCALE
        return made

    def __getitem__(cls, key: float) -> float:
        return SCALE * key


class Counted(metaclass=Counting):
    scale: float

    def __init__(self, a: Any) -> None:
        self.a = a


class Unit(np.lib.mixins.NDArrayOperatorsMixin):
    def __init__(self, a: Any) -> None:
        self.a = a

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        plain = [item.a if isinstance(item, Unit) else item for item in inputs]
        return getattr(ufunc, method)(*plain, **named) * SCALE


class Pair(NamedTuple):
    a: Any
    b: Any

    def __add__(self, other: Any) -> Any:
        return Pair(self.a + other.a * SCALE, self.b - other.b)


class Lower:
    def __init__(self, a: Any) -> None:
        self.a = a

    def __add__(self, other: Any) -> Any:
        return type(self)(self.a + SCALE)


class Upper(Lower):
    def __add__(self, other: Any) -> Any:
        return super().__add__(other)


def edited(x: Any) -> Any:
    table = Table(a=x)
    table["a"] += 1
    table.update(b=x * 2)
    table.setdefault("c", x.sum())
    taken = table.pop("b")
    del table["a"]
    return taken + table["c"] + len(table)


def entered(x: Any) -> Any:
    with scaled(3) as scale, contextlib.suppress(KeyError):
        x = x * scale
        raise KeyError
    return x


TABLE, ROW = Table(a=1.0, b=2.0), Row(1.0, 2.0)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "get": lambda x: x * TABLE.get("a", 0) + TABLE.get("z", 5),
    "in": lambda x: x * ("a" in TABLE) + ("z" in TABLE),
    "items": lambda x: x * sum(value for _, value in TABLE.items()),
    "values": lambda x: x * sum(TABLE.values()),
    "dict": lambda x: x * dict(TABLE)["b"],
    "edited": edited,
    "row": lambda x: x * sum(part for part in ROW) + ROW[-1],
    "in a row": lambda x: x + (4.0 in ROW),
    "reversed": lambda x: x * next(reversed(ROW)),
    "index": lambda x: x + ROW.index(2.0 * SCALE),
    "order": lambda x: x * (Size(2.0) >= Size(5.0)) + (Size(1.0) <= Size(2.0)),
    "order of the run": lambda x: x + 1 if Size(x[0]) >= Size(x[1]) else -x,
    "with": entered,
    "metaclass": lambda x: Counted(x).a * Counted(x).scale + Counted[3],
    "ufunc": lambda x: np.sin(Unit(x)) + np.add(x, Unit(x)),
    "ufuncs of operators": lambda x: (x + Unit(x)) * (2.0 * Unit(x)) - (Unit(x) - Unit(x * 2)),
    "named tuple": lambda x: (Pair(x, 1.0) + Pair(x * 2, 3.0)).a,
    "super": lambda x: (Upper(x) + 1).a,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_called_back_sees_what_is_there_now(name: str) -> None:
    global SCALE
    function = FUNCTIONS[name]
    compiled = tm.jit(function)
    before = SCALE
    try:
        for x in (np.arange(3.0) + 1, np.array([3.0, 1.0, 2.0]), np.arange(3.0) + 1):
            np.testing.assert_allclose(compiled(x), function(x), rtol=1e-13)
            SCALE += 1
    finally:
        SCALE = before
