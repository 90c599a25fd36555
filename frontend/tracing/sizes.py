"""Facts about sizes: the trace's answers to "are these equal?", "is this at least 2?".

An answer that does not follow from the expressions is taken from the example call (the hints)
and recorded as a guard. An equality removes a symbol: it is replaced by what it equals,
everywhere. So after ``n == m`` all types speak of one symbol.

Invariants: `listeners` hear of every removal. `replaced` maps removed symbols to sizes over the
remaining ones; each remaining symbol is the bare size of some argument axis.
Not here: types and nodes that mention a removed symbol (the trace rewrites them), the integer
that user code sees (integer.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracemill.compiler.dims import Dim, Size, dim_text, symbols_of
from tracemill.compiler.errors import error
from tracemill.compiler.ir.attrs import substitute_value
from tracemill.compiler.ir.graph import Location, Value
from tracemill.compiler.types import TensorType

from .guards import SizeGuard

Place = Callable[[], Location | None]
_BEYOND_SIZES = 2**62  # sizes are computed in 64 bits when a call runs, and none comes near this


class Sizes:
    """The symbols of one trace, their hints and what is known about them."""

    def __init__(self, hints: Mapping[str, int], place: Place) -> None:
        self.hints = dict(hints)
        self.listeners: list[Callable[[Mapping[str, Size]], None]] = []
        self.guards: list[SizeGuard] = []
        self.replaced: dict[str, Size] = {}
        self._equal_to: dict[str, set[str]] = {}  # of a symbol: the removed ones that mention it
        self._extents: set[Size] = set()  # of arrays there are: not negative
        self._order = {name: i for i, name in enumerate(self.hints)}
        self._lower: dict[Dim, int] = {}
        self._bounds: dict[Dim, SizeGuard] = {}
        self._unequal: set[Size] = set()
        self._equal: set[Size] = set()
        self._divisible: set[Size] = set()
        self._place = place

    def add(self, hints: Mapping[str, int]) -> None:
        """Learn of further symbols."""
        for name, hint in hints.items():
            self.hints.setdefault(name, hint)
            self._order.setdefault(name, len(self._order))

    def normal(self, size: Size) -> Size:
        """The size over the remaining symbols."""
        if type(size) is int or not self.replaced:
            return size
        made: Size = substitute_value(size, self.replaced)
        return made

    def hint(self, size: Size) -> int:
        """The size in the example call."""
        return size.evaluate(self.hints) if isinstance(size, Dim) else size

    def hints_of(self, shape: Sequence[Size]) -> tuple[int, ...]:
        """A shape in the example call."""
        return tuple(self.hint(self.normal(size)) for size in shape)

    def equal(self, left: Size, right: Size, reason: str) -> bool:
        """Decide ``left == right``, making them one size if it holds in the example call."""
        left, right = self.normal(left), self.normal(right)
        if left == right:
            return True
        difference = left - right
        if isinstance(difference, int) or difference in self._unequal:
            return False
        if self.hint(left) != self.hint(right):
            if not self._signed(difference):
                self._unequal.add(difference)
                self._guard(left, "!=", right, reason)
            return False
        self._guard(left, "==", right, reason)
        if not self._solve(difference):
            self._fix_all(difference, reason)
        return True

    def answer_equal(self, left: Size, right: Size, reason: str) -> bool:
        """Decide ``left == right`` for code that asks: no symbol is fixed for it.

        Where no symbol can be replaced (``n % 2 == 0``) the answer is remembered as a fact.
        """
        left, right = self.normal(left), self.normal(right)
        difference = left - right
        if isinstance(difference, int) or self.hint(left) != self.hint(right):
            return self.equal(left, right, reason)
        if difference not in self._equal:
            self._guard(left, "==", right, reason)
            if not self._solve(difference):
                self._equal.add(difference)
        return True

    def at_least(self, left: Size, right: Size, reason: str) -> bool:
        """Decide ``left >= right``."""
        left, right = self.normal(left), self.normal(right)
        difference = left - right
        if isinstance(difference, int):
            return difference >= 0
        if self._known(difference):
            return True
        if self._known(-1 - difference):
            return False
        holds = self.hint(difference) >= 0
        self._learn_guarded(difference if holds else -1 - difference, reason)
        return holds

    def same_count(self, left: Size, right: Size, reason: str) -> bool:
        """Decide ``left == right`` without making them one size where exact division is enough.

        ``2*(n // 2) == n`` only needs n to be even.
        """
        left, right = self.normal(left), self.normal(right)
        difference = left - right
        if isinstance(difference, int):
            return difference == 0
        multiplied, divisions = _divided_out(difference)
        if multiplied == 0 and all(self.divides(b, a, reason) for a, b in divisions):
            return True
        return self.equal(left, right, reason)

    def divides(self, divisor: Size, size: Size, reason: str) -> bool:
        """Decide ``size % divisor == 0``."""
        rest = self.normal(size) % self.normal(divisor)
        if isinstance(rest, int) or rest in self._divisible:
            return rest in (0, *self._divisible)
        exact = self.hint(rest) == 0
        self._guard(rest, "==" if exact else "!=", 0, reason)
        if exact:
            self._divisible.add(rest)
        return exact

    def need_extents(self, values: Sequence[Value]) -> None:
        """Guard that no axis of these has a negative size. Raises ShapeError where one has."""
        for value in values:
            for size in value.type.shape if isinstance(value.type, TensorType) else ():
                if type(size) is int or size in self._extents:
                    continue
                if not self.at_least(size, 0, "an array has no axis of a negative size"):
                    place = self._place()
                    raise error("TM242", "negative dimensions are not allowed", place=place)
                self._extents.add(size)

    def specialise(self, size: Size, reason: str) -> int:
        """The size as an integer: its symbols are fixed to the example call's."""
        size = self.normal(size)
        if isinstance(size, int):
            return size
        value = self.hint(size)
        self.equal(size, value, reason)
        return value

    def _solve(self, difference: Size) -> bool:
        """Replace one symbol so that `difference` is 0; False where none can be."""
        assert isinstance(difference, Dim)
        for name in sorted(difference.symbols(), key=self._order.__getitem__, reverse=True):
            factor = difference.coefficient(name)
            if factor in (1, -1):
                rest = difference - factor * Dim.symbol(name)
                self._replace({name: -rest if factor == 1 else rest})
                return True
        return False

    def _fix_all(self, difference: Size, reason: str) -> None:
        """Make every symbol of `difference` the number it is in the example call."""
        assert isinstance(difference, Dim)
        for name in sorted(difference.symbols()):
            value = self.hints[name]
            self._guard(Dim.symbol(name), "==", value, reason)
            self._replace({name: value})

    def _replace(self, change: dict[str, Size]) -> None:
        for symbol in change:
            for name in self._equal_to.pop(symbol, ()):
                self._remove(name, substitute_value(self.replaced[name], change))
        for name, size in change.items():
            self._remove(name, size)
        lower, self._lower = self._lower, {}
        for shape, bound in lower.items():
            known = shape.substitute(change) - bound
            if isinstance(known, Dim):
                self._learn(known)
        self._divisible = _substituted(self._divisible, change)
        self._unequal = _substituted(self._unequal, change)
        self._equal = _substituted(self._equal, change)
        for listener in self.listeners:
            listener(change)

    def _remove(self, symbol: str, size: Size) -> None:
        """Note what a removed symbol equals."""
        self.replaced[symbol] = size
        for name in symbols_of((size,)):
            self._equal_to.setdefault(name, set()).add(symbol)

    def _guard(self, left: Size, relation: str, right: Size, reason: str) -> None:
        self.guards.append(SizeGuard(left, relation, right, reason, self._place()))

    def _known(self, difference: Size) -> bool:
        """True when ``difference >= 0`` follows from sizes not being negative or from facts."""
        if isinstance(difference, int):
            return difference >= 0
        part, offset = _split(difference)
        if (
            offset >= _BEYOND_SIZES
            or offset >= 0
            and all(c > 0 and _not_negative(t) for t, c in part.terms)
        ):
            return True
        bound = self._lower.get(part)
        if bound is not None and bound + offset >= 0:
            return True
        less = _without_divisions(difference)
        return less is not difference and self._known(less)

    def _signed(self, difference: Dim) -> bool:
        """True when the difference is known to be positive or negative."""
        return self._known(difference - 1) or self._known(-1 - difference)

    def _learn_guarded(self, difference: Size, reason: str) -> None:
        """Guard ``difference >= 0``; a weaker guard on the same sizes is dropped."""
        assert isinstance(difference, Dim)
        part, offset = _split(difference)
        if part.terms[0][1] > 0:
            guard = SizeGuard(part, ">=", -offset, reason, self._place())
        else:
            guard = SizeGuard(-part, "<", offset + 1, reason, self._place())
        weaker = self._bounds.get(part)
        if weaker in self.guards:
            self.guards.remove(weaker)
        self.guards.append(guard)
        self._bounds[part] = guard
        self._learn(difference)

    def _learn(self, difference: Size) -> None:
        """Remember ``difference >= 0``."""
        if isinstance(difference, Dim):
            part, offset = _split(difference)
            self._lower[part] = max(self._lower.get(part, -offset), -offset)


def _substituted(facts: set[Size], change: Mapping[str, Size]) -> set[Size]:
    """Facts after a symbol was replaced; those that are numbers now need no remembering."""
    kept = (fact.substitute(change) for fact in facts if isinstance(fact, Dim))
    return {fact for fact in kept if isinstance(fact, Dim)}


def _split(size: Dim) -> tuple[Dim, int]:
    """The part with symbols, and the constant."""
    constant = next((c for t, c in size.terms if not t), 0)
    if not constant:
        return size, 0
    part = size - constant
    assert isinstance(part, Dim), dim_text(size)
    return part, constant


def _divided_out(difference: Dim) -> tuple[Size, list[tuple[Size, int]]]:
    """The sum with ``b*(a // b)`` read as a, and the exact divisions that this supposes."""
    total: Size = 0
    divisions: list[tuple[Size, int]] = []
    for factors, coefficient in difference.terms:
        rest, scale, product = list(factors), coefficient, Dim(((factors, coefficient),))
        made: Size = product if factors else coefficient
        for factor in factors:
            operation, a, b = factor if isinstance(factor, tuple) else ("", 0, 0)
            if operation == "//" and isinstance(b, int) and scale % b == 0:
                rest.remove(factor)
                divisions.append((a, b))
                made = Dim(((tuple(rest), scale // b),)) * a if rest else a * (scale // b)
                break
        total = total + made
    return total, divisions


def _without_divisions(difference: Dim) -> Size:
    """Something not larger: what is subtracted as ``a // b`` is subtracted as a."""
    total: Size = 0
    changed = False
    for factors, coefficient in difference.terms:
        factor = factors[0] if len(factors) == 1 else None
        if coefficient < 0 and isinstance(factor, tuple) and factor[0] == "//":
            _, a, b = factor
            if isinstance(b, int) and b > 0 and (isinstance(a, int) or _size_not_negative(a)):
                total = total + a * coefficient
                changed = True
                continue
        total = total + (Dim(((factors, coefficient),)) if factors else coefficient)
    return total if changed else difference


def _not_negative(factors: tuple[object, ...]) -> bool:
    return all(isinstance(factor, str) or _operation_not_negative(factor) for factor in factors)


def _operation_not_negative(factor: Any) -> bool:
    operation, a, b = factor
    if operation in ("max", "min"):
        return (any if operation == "max" else all)(_size_not_negative(size) for size in (a, b))
    if not isinstance(b, int) or b <= 0:
        return False
    return operation == "%" or _size_not_negative(a)


def _size_not_negative(size: Size) -> bool:
    if isinstance(size, int):
        return size >= 0
    part, offset = _split(size)
    return offset >= 0 and all(c > 0 and _not_negative(t) for t, c in part.terms)
