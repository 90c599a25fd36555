"""Classes of a user's, whose special methods read globals, choose and repeat.

Not here: what is asked of them (tests/frontend/test_special_methods.py).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SCALE = 2.0
TABLE = np.arange(3.0)


def change() -> None:
    """Change what the methods read."""
    global SCALE
    SCALE += 1
    TABLE[:] += 1


class Methods:
    """Of something with an array `a`."""

    a: Any

    def like(self, a: Any) -> Any:
        """Another one."""
        return type(self)(a)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Methods):
            return self.like(self.a + other.a * SCALE)
        return self.like(self.a + other * SCALE) if np.ndim(other) == 0 else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return self.like(other * TABLE[1] - self.a)

    def __iadd__(self, other: Any) -> Any:
        return self.like(self.a * SCALE + other.a)

    def __mul__(self, other: Any) -> Any:
        return self.like(self.a * other.a * TABLE[2])

    def __matmul__(self, other: Any) -> Any:
        total = 0.0
        for i in range(len(self.a)):
            total = total + self.a[i] * other.a[i] * SCALE
        return total

    def __pow__(self, other: Any) -> Any:
        return self.like(self.a**other + SCALE)

    def __divmod__(self, other: Any) -> Any:
        return self.like(self.a + SCALE), self.like(self.a - other)

    def __neg__(self) -> Any:
        return self.like(-self.a * TABLE[2])

    def __abs__(self) -> Any:
        if self.a.sum() > 0:
            a = self.a * SCALE
        else:
            a = -self.a
        return self.like(a)

    def __lt__(self, other: Any) -> Any:
        return self.a.sum() * SCALE < other.a.sum()

    def __eq__(self, other: object) -> Any:
        return np.all(self.a * SCALE == other.a) if isinstance(other, Methods) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, at: Any) -> Any:
        if at == "scale":
            return SCALE
        return self.a[at] + TABLE[0]

    def __setitem__(self, at: Any, value: Any) -> None:
        self.a[at] = value * SCALE

    def __delitem__(self, at: Any) -> None:
        self.a[at] = SCALE

    def __len__(self) -> int:
        return len(self.a) + int(SCALE)

    def __contains__(self, value: Any) -> Any:
        return (self.a * SCALE == value).any()

    def __iter__(self) -> Iterator[Any]:
        for i in range(3):
            yield self.a[i] * SCALE

    def __float__(self) -> float:
        return float(self.a.sum() * SCALE)

    def __call__(self, x: Any) -> Any:
        return x * SCALE + self.a


class Plain(Methods):
    """A class like any."""

    def __init__(self, a: Any) -> None:
        self.a = a


@dataclass(eq=False)
class Data(Methods):
    """Arguments of it are nested arrays."""

    a: Any


class First(Plain):
    """A subclass, whose reflected operators come first."""

    def __radd__(self, other: Any) -> Any:
        return self.like(other.a - self.a * SCALE)


class Times:
    """Multiplies numbers and arrays, which leave it to this class."""

    __array_ufunc__ = None

    def __init__(self, a: Any) -> None:
        self.a = a

    def __rmul__(self, other: Any) -> Any:
        return other * self.a * SCALE


class Truth:
    """Is true where a number is large."""

    def __init__(self, a: Any) -> None:
        self.a = a

    def __bool__(self) -> bool:
        return bool(self.a.sum() > SCALE)


class Countdown:
    """An iterator with state of its own."""

    def __init__(self, begin: int) -> None:
        self.at = begin

    def __iter__(self) -> Countdown:
        return self

    def __next__(self) -> Any:
        if self.at == 0:
            raise StopIteration
        self.at -= 1
        return self.at * SCALE


class ByNumber:
    """Iterated by the old protocol."""

    def __getitem__(self, at: int) -> Any:
        if at >= 3:
            raise IndexError
        return TABLE[at]


class Scope:
    """A context manager."""

    def __init__(self) -> None:
        self.entered = 0

    def __enter__(self) -> float:
        self.entered += 1
        return SCALE

    def __exit__(self, *problem: Any) -> bool:
        self.entered -= 1
        return problem[0] is KeyError


class Doubled:
    """A descriptor."""

    def __get__(self, owner: Any, kind: Any) -> Any:
        return owner.a * SCALE

    def __set__(self, owner: Any, value: Any) -> None:
        owner.a = value / SCALE


class Attributes:
    """Attributes that are computed."""

    doubled = Doubled()

    def __init__(self, a: Any) -> None:
        self.a = a

    @property
    def scaled(self) -> Any:
        """A property with a setter."""
        return self.a * SCALE

    @scaled.setter
    def scaled(self, value: Any) -> None:
        self.a = value / TABLE[1]

    @functools.cached_property
    def total(self) -> Any:
        """Computed once."""
        return self.a.sum() * SCALE

    def __getattr__(self, name: str) -> Any:
        if name == "guessed":
            return TABLE[1]
        raise AttributeError(name)


class Noting:
    """Takes what is assigned."""

    def __init__(self, a: Any) -> None:
        self.a = a

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value * SCALE)


@dataclass
class Checked:
    """A dataclass that computes when it is made."""

    a: Any
    b: Any = field(init=False)

    def __post_init__(self) -> None:
        self.b = self.a * SCALE


class Same:
    """Equal to everything."""

    def __call__(self, x: Any) -> Any:
        return x * SCALE

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(map)
