"""Symbolic sizes: integer polynomials in named symbols, with floor division, modulo, min, max.

A `Dim` is a canonical sum of terms, so equal expressions are equal objects by content and a
shape can be compared with ``==``. A size known while compiling is a plain `int`; every
operation here returns an `int` when its result is constant.

Invariants: terms are sorted, no coefficient is zero, a `Dim` is never constant.
Not here: hints and guards (the trace decides comparisons and records them), evaluation of a
whole table of sizes (the plan's size program does that natively).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

# A factor is a symbol's name or an opaque operation on sizes: ("//", a, b), ("%", a, b),
# ("max", a, b), ("min", a, b). A monomial is a sorted tuple of factors (repeated for powers).
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "max": max,
    "min": min,
}


class Dim:
    """A size that is not known while compiling, e.g. ``n``, ``2*n + 1``, ``n // 4``."""

    __slots__ = ("terms", "_hash", "_names")
    terms: tuple[tuple[tuple[object, ...], int], ...]

    def __init__(self, terms: tuple[tuple[tuple[object, ...], int], ...]) -> None:
        self.terms = terms
        self._hash = hash(terms)
        self._names: frozenset[str] | None = None

    @staticmethod
    def symbol(name: str) -> Dim:
        """The size named `name`."""
        return Dim((((name,), 1),))

    @property
    def name(self) -> str | None:
        """The symbol's name when this is a bare symbol, else None."""
        if len(self.terms) == 1 and self.terms[0][1] == 1 and len(self.terms[0][0]) == 1:
            factor = self.terms[0][0][0]
            return factor if isinstance(factor, str) else None
        return None

    def __add__(self, other: Size) -> Size:
        return _sum(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Size) -> Size:
        return _sum(self, other, -1)

    def __rsub__(self, other: Size) -> Size:
        return _sum(other, self, -1)

    def __neg__(self) -> Size:
        return _sum(0, self, -1)

    def __mul__(self, other: Size) -> Size:
        if other == 1:
            return self
        product: dict[tuple[object, ...], int] = {}
        for left, a in self.terms:
            for right, b in _terms(other):
                key = left + right
                if left and right:
                    key = tuple(sorted(key, key=_factor_order))
                product[key] = product.get(key, 0) + a * b
        return _canonical(product)

    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Size:
        return floor_divide(self, other)

    def __rfloordiv__(self, other: Size) -> Size:
        return floor_divide(other, self)

    def __mod__(self, other: Size) -> Size:
        return modulo(self, other)

    def __rmod__(self, other: Size) -> Size:
        return modulo(other, self)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Dim) and self._hash == other._hash and self.terms == other.terms
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return dim_text(self)

    def symbols(self) -> frozenset[str]:
        """Names of all symbols in the expression."""
        if self._names is None:
            self._names = frozenset(_symbols(self))
        return self._names

    def substitute(self, env: Mapping[str, Size]) -> Size:
        """Replace symbols by sizes; symbols that `env` does not name stay."""
        for name in self._names or self.symbols():
            if name in env:
                break
        else:
            return self
        total: Size = 0
        for factors, coefficient in self.terms:
            product: Size = coefficient
            for factor in factors:
                product = product * _substituted(factor, env)
            total = total + product
        return total

    def evaluate(self, env: Mapping[str, int]) -> int:
        """The value for the given sizes. Raises KeyError for a symbol without a value."""
        size = self.substitute(env)
        if isinstance(size, Dim):
            raise KeyError(sorted(size.symbols())[0])
        return size

    def coefficient(self, symbol: str) -> Size | None:
        """c in ``self == c*symbol + rest`` with `symbol` in neither; None if not linear in it."""
        factor: Size = 0
        for factors, coefficient in self.terms:
            count = factors.count(symbol)
            rest = tuple(f for f in factors if f != symbol)
            inside = any(symbol in _symbols(_factor_dim(f)) for f in rest)
            if count > 1 or inside:
                return None
            if count == 1:
                factor = factor + _canonical({rest: coefficient})
        return factor


Size = int | Dim


def floor_divide(a: Size, b: Size) -> Size:
    """a // b, exact terms divided out: ``(4*n + 8) // 4`` is ``n + 2``."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if b == 1:
        return a
    if isinstance(b, int) and b > 0 and isinstance(a, Dim):
        exact = {t: c // b for t, c in a.terms if c % b == 0}
        rest = {t: c for t, c in a.terms if c % b}
        if not rest:
            return _canonical(exact)
        if exact:
            return _canonical(exact) + _opaque("//", _canonical(rest), b)
    if a == b:
        return 1
    if isinstance(a, Dim) and isinstance(b, Dim):
        quotient = _exact_quotient(a, b)
        if quotient is not None:
            return quotient
    return _opaque("//", a, b)


def modulo(a: Size, b: Size) -> Size:
    """a % b with NumPy's sign rule."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    if b == 1 or a == b:
        return 0
    if isinstance(b, int) and isinstance(a, Dim):
        rest = _canonical({t: c % b for t, c in a.terms})
        if isinstance(rest, int):
            return rest % b
        a = rest
    return _opaque("%", a, b)


def maximum(a: Size, b: Size) -> Size:
    """The larger of two sizes; decided now where their difference is constant."""
    difference = a - b
    if isinstance(difference, int):
        return a if difference >= 0 else b
    return _opaque("max", *sorted((a, b), key=dim_text))


def minimum(a: Size, b: Size) -> Size:
    """The smaller of two sizes; decided now where their difference is constant."""
    difference = a - b
    if isinstance(difference, int):
        return b if difference >= 0 else a
    return _opaque("min", *sorted((a, b), key=dim_text))


def product(sizes: tuple[Size, ...]) -> Size:
    """The number of elements of a shape."""
    total: Size = 1
    for size in sizes:
        total = total * size
    return total


def symbols_of(sizes: tuple[Size, ...]) -> frozenset[str]:
    """Names of all symbols in a shape."""
    return frozenset(name for size in sizes for name in _symbols(size))


def dim_text(size: Size) -> str:
    """The text form; `parse_dim` reads it back."""
    if isinstance(size, int):
        return str(size)
    text = ""
    for factors, coefficient in size.terms:
        body = "*".join(_factor_text(f) for f in factors)
        magnitude = abs(coefficient)
        piece = str(magnitude) if not body else body if magnitude == 1 else f"{magnitude}*{body}"
        if not text:
            text = piece if coefficient > 0 else f"-{piece}"
        else:
            text += f" + {piece}" if coefficient > 0 else f" - {piece}"
    return text


def parse_dim(text: str) -> Size:
    """Read the text form of a size. Raises ValueError on anything else."""
    tokens = re.findall(r"\d+|[A-Za-z_][\w.]*|//|[-+*%(),]|\S", text)
    size, rest = _parse_sum(tokens, 0)
    if rest != len(tokens):
        raise ValueError(f"not a size: {text!r}")
    return size


def _opaque(operation: str, a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return _OPERATIONS[operation](a, b)
    return _factor_dim((operation, a, b))


def _terms(size: Size) -> tuple[tuple[tuple[object, ...], int], ...]:
    return size.terms if isinstance(size, Dim) else (((), size),)


def _sum(a: Size, b: Size, sign: int) -> Size:
    if b == 0:
        return a
    total = dict(_terms(a))
    for factors, coefficient in _terms(b):
        total[factors] = total.get(factors, 0) + sign * coefficient
    return _canonical(total)


def _canonical(terms: dict[tuple[object, ...], int]) -> Size:
    kept = [(t, c) for t, c in terms.items() if c]
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    if len(kept) > 1:
        kept.sort(key=lambda term: (-len(term[0]), [_factor_order(f) for f in term[0]]))
    return Dim(tuple(kept))


def _exact_quotient(a: Dim, b: Dim) -> Size | None:
    """a / b for a one-term divisor that every term of `a` contains."""
    if len(b.terms) != 1:
        return None
    factors, divisor = b.terms[0]
    quotient: dict[tuple[object, ...], int] = {}
    for term, coefficient in a.terms:
        rest = list(term)
        for factor in factors:
            if factor not in rest:
                return None
            rest.remove(factor)
        if coefficient % divisor:
            return None
        quotient[tuple(rest)] = coefficient // divisor
    return _canonical(quotient)


def _operation(factor: object) -> tuple[str, Size, Size]:
    """The parts of a factor that is not a symbol."""
    assert isinstance(factor, tuple)
    operation, a, b = factor
    return operation, a, b


def _factor_dim(factor: object) -> Dim:
    return Dim((((factor,), 1),))


def _factor_order(factor: object) -> str:
    return _factor_text(factor)


def _factor_text(factor: object) -> str:
    if isinstance(factor, str):
        return factor
    operation, a, b = _operation(factor)
    if operation in ("max", "min"):
        return f"{operation}({dim_text(a)}, {dim_text(b)})"
    return f"({_operand_text(a)} {operation} {_operand_text(b)})"


def _operand_text(size: Size) -> str:
    simple = isinstance(size, int) or size.name is not None
    return dim_text(size) if simple else f"({dim_text(size)})"


def _symbols(size: Size) -> Iterator[str]:
    if isinstance(size, Dim):
        for factors, _ in size.terms:
            for factor in factors:
                if isinstance(factor, str):
                    yield factor
                else:
                    _, a, b = _operation(factor)
                    yield from _symbols(a)
                    yield from _symbols(b)


def _substituted(factor: object, env: Mapping[str, Size]) -> Size:
    if isinstance(factor, str):
        found = env.get(factor)
        return Dim.symbol(factor) if found is None else found
    operation, a, b = _operation(factor)
    a = a.substitute(env) if isinstance(a, Dim) else a
    b = b.substitute(env) if isinstance(b, Dim) else b
    rebuild = {"//": floor_divide, "%": modulo, "max": maximum, "min": minimum}
    return rebuild[operation](a, b)


def _parse_sum(tokens: list[str], at: int) -> tuple[Size, int]:
    size, at = _parse_product(tokens, at)
    while at < len(tokens) and tokens[at] in "+-":
        sign = tokens[at]
        term, at = _parse_product(tokens, at + 1)
        size = size + term if sign == "+" else size - term
    return size, at


def _parse_product(tokens: list[str], at: int) -> tuple[Size, int]:
    size, at = _parse_atom(tokens, at)
    while at < len(tokens) and tokens[at] in ("*", "//", "%"):
        operation = tokens[at]
        factor, at = _parse_atom(tokens, at + 1)
        if operation == "*":
            size = size * factor
        else:
            size = floor_divide(size, factor) if operation == "//" else modulo(size, factor)
    return size, at


def _parse_atom(tokens: list[str], at: int) -> tuple[Size, int]:
    if at >= len(tokens):
        raise ValueError("a size ends too early")
    token = tokens[at]
    if token.isdigit():
        return int(token), at + 1
    if token == "-":  # as in Python: -1 // n is (-1) // n
        size, at = _parse_atom(tokens, at + 1)
        return 0 - size, at
    if token == "(":
        size, at = _parse_sum(tokens, at + 1)
        return size, _expect(tokens, at, ")")
    if token in ("max", "min") and at + 1 < len(tokens) and tokens[at + 1] == "(":
        a, at = _parse_sum(tokens, at + 2)
        b, at = _parse_sum(tokens, _expect(tokens, at, ","))
        return (maximum if token == "max" else minimum)(a, b), _expect(tokens, at, ")")
    if token[0].isalpha() or token[0] == "_":
        return Dim.symbol(token), at + 1
    raise ValueError(f"unexpected {token!r} in a size")


def _expect(tokens: list[str], at: int, token: str) -> int:
    if at >= len(tokens) or tokens[at] != token:
        raise ValueError(f"expected {token!r} in a size")
    return at + 1
