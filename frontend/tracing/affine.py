"""How integers of a run hang together: sums of multiples of others, with a size.

    for i in range(n - 4):   i is an atom from 0 to n - 5
        x[i:i + 5]           i + 5 = 1 * i + 5, so the slice has 5 elements and ends at n or before

Invariants: immutable; an atom stands for one value, wherever it is used.
Not here: what is made of that (numpy/run_time_slices.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tracemill.compiler.dims import Size, floor_divide
from tracemill.compiler.records import dataclass

from .integer import TracedSize

if TYPE_CHECKING:
    from .number import TracedNumber


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """An integer that no other ones make. low, high: what it lies between, where that is known.
    is_counted: it changes from trip to trip of a Python loop, which could also run while tracing.
    """

    number: TracedNumber
    low: Size | None = None
    high: Size | None = None
    is_counted: bool = False


@dataclass(frozen=True, slots=True)
class Affine:
    """The sum of `terms`, each atom times a number that is not zero, and of `rest`."""

    terms: Mapping[Atom, int]
    rest: Size

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        """self + factor * other"""
        terms = dict(self.terms)
        for atom, times in other.terms.items():
            total = terms.pop(atom, 0) + factor * times
            if total:
                terms[atom] = total
        return Affine(terms, self.rest + factor * other.rest)

    def times(self, factor: int) -> Affine:
        """factor * self"""
        return Affine({}, 0).plus(self, factor)

    @property
    def low(self) -> Size | None:
        """What it is not below, if that is known."""
        return self._bound(lambda atom, times: atom.low if times > 0 else atom.high)

    @property
    def high(self) -> Size | None:
        """What it is not above, if that is known."""
        return self._bound(lambda atom, times: atom.high if times > 0 else atom.low)

    @property
    def is_counted(self) -> bool:
        """Whether it changes from trip to trip."""
        return any(atom.is_counted for atom in self.terms)

    def _bound(self, of: Callable[[Atom, int], Size | None]) -> Size | None:
        total = self.rest
        for atom, times in self.terms.items():
            bound = of(atom, times)
            if bound is None:
                return None
            total = total + times * bound
        return total


def affine_of(number: Any) -> Affine | None:
    """What an integer is made of, None for what is no integer."""
    kind = type(number)
    if kind is int:
        return Affine({}, number)
    if kind is TracedSize:
        return Affine({}, number.now())
    if not hasattr(kind, "affine") or number.kind is not int:  # of arrays nothing may be asked
        return None
    if number.affine is None:
        number.affine = Affine({Atom(number): 1}, 0)
    found: Affine = number.affine
    return found


def change_with_trips(number: Any, low: Size | None = None, high: Size | None = None) -> None:
    """Let an integer that a loop hands its body be one that changes from trip to trip."""
    if getattr(number, "kind", None) is int:
        number.affine = Affine({Atom(number, low, high, True): 1}, 0)


def count_between(number: Any, lower: Any, upper: Any) -> None:
    """Let the counter of a loop lie from one integer to below the other."""
    first, last = affine_of(lower), affine_of(upper)
    low = None if first is None else first.low
    high = None if last is None else last.high
    number.affine = Affine({Atom(number, low, None if high is None else high - 1): 1}, 0)


def account(made: TracedNumber, name: str, left: Any, right: Any) -> None:
    """Let the result of an operator know what it is made of, where that is such a sum, or what it
    lies between."""
    a, b = affine_of(left), affine_of(right)
    if a is None or b is None:
        return
    if name in ("add", "sub"):
        made.affine = a.plus(b, 1 if name == "add" else -1)
    elif name == "mul":
        if a.terms:
            a, b = b, a
        if not a.terms and isinstance(a.rest, int):
            made.affine = b.times(a.rest)
    elif name in ("mod", "floordiv") and type(right) is int and right > 0:
        low, high = (0, right - 1) if name == "mod" else _divided(a, right)
        made.affine = Affine({Atom(made, low, high, a.is_counted): 1}, 0)


def _divided(a: Affine, divisor: int) -> tuple[Size | None, Size | None]:
    """Bounds of a quotient."""
    low, high = a.low, a.high
    return (
        None if low is None else floor_divide(low, divisor),
        None if high is None else floor_divide(high, divisor),
    )


def most_between(lower: Any, upper: Any) -> Size | None:
    """A size that ``upper - lower`` is never above, None where none is known."""
    first, last = affine_of(lower), affine_of(upper)
    return None if first is None or last is None else last.plus(first, -1).high
