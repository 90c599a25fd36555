"""The scalar language on NumPy arrays: what every word means, lane by lane.

`evaluate` runs a `ScalarFunction` on arrays of lanes. It is the oracle for the words in the back
ends and lets a body be compared with its op's NumPy reference without any code generation.

Invariants: every word is exact for every input, `fma` and `scale` round once; nothing warns.
Not here: speed, broadcasting, memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np

from ..types import BOOL
from .integer_conversion import float_to_integer
from .scalar import Loop, Rarely, Scalar, ScalarFunction

Lanes = np.ndarray[Any, np.dtype[Any]]


def evaluate(function: ScalarFunction, operands: Sequence[Lanes]) -> tuple[Lanes, ...]:
    """The results of `function` for arrays of equal length, one element a lane."""
    arrays = [np.ascontiguousarray(x, p.dtype.numpy) for x, p in zip(operands, function.params)]
    values: dict[int, Lanes] = {id(p): x for p, x in zip(function.params, arrays)}
    run = _Run(len(arrays[0]) if arrays else 1, values)
    with np.errstate(all="ignore"):
        return tuple(run.value(result) for result in function.results)


class _Run:
    """One evaluation: the values found so far by node, chained to those of outer regions."""

    def __init__(self, lanes: int, values: dict[int, Lanes]) -> None:
        self.lanes = lanes
        self.values = values
        self.regions: dict[int, tuple[Lanes, ...]] = {}

    def value(self, root: Scalar) -> Lanes:
        """The lanes of a node, operands first, without recursion on chains."""
        pending = [root]
        while pending:
            node = pending[-1]
            if id(node) in self.values:
                pending.pop()
                continue
            missing = [a for a in node.args if id(a) not in self.values]
            if missing:
                pending.extend(missing)
                continue
            pending.pop()
            self.values[id(node)] = self._apply(node)
        return self.values[id(root)]

    def _apply(self, node: Scalar) -> Lanes:
        if node.word == "const":
            return np.full(self.lanes, node.attr, node.dtype.numpy)
        if node.word == "result":
            region, index = cast(tuple[Rarely | Loop, int], node.attr)
            return self._region(region)[index]
        args = [self.values[id(a)] for a in node.args]
        made = _MEANING[node.word](node, *args)
        return np.asarray(made, dtype=node.dtype.numpy)

    def _region(self, region: Rarely | Loop) -> tuple[Lanes, ...]:
        found = self.regions.get(id(region))
        if found is None:
            found = self._rarely(region) if isinstance(region, Rarely) else self._loop(region)
            self.regions[id(region)] = found
        return found

    def _rarely(self, region: Rarely) -> tuple[Lanes, ...]:
        fast = tuple(self.value(x) for x in region.fast)
        condition = self.value(region.condition)
        if not condition.any():
            return fast
        slow = (self.value(x) for x in region.slow)
        return tuple(np.where(condition, s, f) for s, f in zip(slow, fast))

    def _loop(self, region: Loop) -> tuple[Lanes, ...]:
        state = [self.value(x) for x in region.init]
        while True:
            inner = _Run(self.lanes, dict(self.values))
            inner.regions = dict(self.regions)
            inner.values.update((id(c), x) for c, x in zip(region.carried, state))
            going = inner.value(region.condition)
            if not going.any():
                return tuple(state)
            following = [inner.value(x) for x in region.step]
            state = [np.where(going, new, old) for new, old in zip(following, state)]


def fused_multiply_add(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """a * b + c rounded once, for float32 or float64 lanes."""
    with np.errstate(all="ignore"):
        if a.dtype == np.float32:
            product = a.astype(np.float64) * b.astype(np.float64)
            return _sum_to_odd(product, c.astype(np.float64)).astype(np.float32)
        plain = a * b + c
        exponents = [np.frexp(x)[1] for x in (a, b, c)]
        product_exponent = exponents[0] + exponents[1]
        finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
        inexact = finite & (a != 0) & (b != 0)
        moderate = [np.abs(e) < 900 for e in (*exponents, product_exponent)]
        tame = inexact & np.logical_and.reduce(moderate)
        result = np.where(tame, _fma_by_parts(a, b, c), plain)
        for lane in np.flatnonzero(inexact & ~tame):
            result[lane] = _exact_fma(float(a[lane]), float(b[lane]), float(c[lane]))
        return result


def _fma_by_parts(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Boldo and Melquiond's way: add the product's parts, rounding to odd in between."""
    high, low = _two_product(a, b)
    top, rest = _two_sum(c, low)
    first, second = _two_sum(high, top)
    return first + _sum_to_odd(rest, second)


def _two_product(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    product = a * b
    a1, a2 = _split(a)
    b1, b2 = _split(b)
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def _split(x: Lanes) -> tuple[Lanes, Lanes]:
    spread = x * 134217729.0  # 2**27 + 1
    high = spread - (spread - x)
    return high, x - high


def _two_sum(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _sum_to_odd(a: Lanes, b: Lanes) -> Lanes:
    """a + b in float64; where inexact, the neighbour with an odd last bit."""
    total, error = _two_sum(a, b)
    even = (total.view(np.int64) & 1) == 0
    adjust = even & (error != 0) & np.isfinite(total) & np.isfinite(error)
    toward = np.where(error > 0, np.inf, -np.inf)
    return np.where(adjust, np.nextafter(total, toward), total)


def _exact_fma(a: float, b: float, c: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if c != 0 or a * b != 0 else 0.0
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def _quot(node: Scalar, a: Lanes, b: Lanes) -> Lanes:
    if node.dtype.kind == "u":
        return np.where(b == 0, 0, a // np.where(b == 0, 1, b)).astype(a.dtype)
    safe = np.where((b == 0) | (b == -1), 1, b)
    floored = a // safe
    inexact = (a - floored * safe) != 0
    truncated = floored + (inexact & ((a < 0) != (safe < 0)))
    return np.where(b == 0, 0, np.where(b == -1, -a, truncated)).astype(a.dtype)


def _rem(node: Scalar, a: Lanes, b: Lanes) -> Lanes:
    return np.where(b == 0, 0, a - b * _quot(node, a, b)).astype(a.dtype)


def _shift(left: bool) -> Callable[..., Lanes]:
    def shift(node: Scalar, a: Lanes, b: Lanes) -> Lanes:
        bits = node.dtype.bits
        wide = (b < 0) | (b >= bits) if node.dtype.kind == "i" else b >= bits
        count = np.where(wide, 0, b).astype(a.dtype)
        if left:
            return np.where(wide, 0, np.left_shift(a, count))
        return np.where(wide, np.where(a < 0, -1, 0) if node.dtype.kind == "i" else 0,
                        np.right_shift(a, count))  # fmt: skip

    return shift


def _scale(node: Scalar, a: Lanes, b: Lanes) -> Lanes:
    exponent = np.clip(np.nan_to_num(b), -5000, 5000).astype(np.int32)
    return np.asarray(np.ldexp(a, exponent), a.dtype)


def _clz(node: Scalar, a: Lanes) -> Lanes:
    bits = node.dtype.bits
    rest = a.astype(f"u{bits // 8}")
    count = np.full(len(a), bits, np.int64)
    while rest.any():
        count -= rest != 0
        rest = rest >> np.asarray(1, rest.dtype)
    return count


def _mulhi(node: Scalar, a: Lanes, b: Lanes) -> Lanes:
    bits = node.dtype.bits
    if bits < 64:
        wide = np.int64 if node.dtype.kind == "i" else np.uint64
        product = a.astype(wide) * b.astype(wide)
        return (product >> np.asarray(bits, wide)).astype(a.dtype)
    products = [(int(x) * int(y)) >> 64 for x, y in zip(a, b)]
    return np.array(products, dtype=a.dtype)


def _convert(node: Scalar, a: Lanes) -> Lanes:
    if node.args[0].dtype.is_float and node.dtype.is_integer:
        return float_to_integer(a.astype(np.float64), node.dtype)
    return a.astype(node.dtype.numpy)


def _bitcast(node: Scalar, a: Lanes) -> Lanes:
    return np.ascontiguousarray(a).view(node.dtype.numpy)


def _lookup(node: Scalar, index: Lanes) -> Lanes:
    return np.array(node.attr, dtype=node.dtype.numpy)[index]


def _complex(node: Scalar, re: Lanes, im: Lanes) -> Lanes:
    made = np.empty(len(re), node.dtype.numpy)
    made.real, made.imag = re, im
    return made


def _plain(function: Callable[..., Any]) -> Callable[..., Lanes]:
    return lambda node, *args: function(*args)


def _not(node: Scalar, a: Lanes) -> Lanes:
    return ~a if node.dtype is not BOOL else np.logical_not(a)


_MEANING: Mapping[str, Callable[..., Lanes]] = {
    "add": _plain(np.add),
    "sub": _plain(np.subtract),
    "mul": _plain(np.multiply),
    "div": _plain(np.divide),
    "quot": _quot,
    "rem": _rem,
    "neg": _plain(np.negative),
    "fma": _plain(fused_multiply_add),
    "scale": _scale,
    "sqrt": _plain(np.sqrt),
    "abs": _plain(np.absolute),
    "copysign": _plain(np.copysign),
    "floor": _plain(np.floor),
    "ceil": _plain(np.ceil),
    "trunc": _plain(np.trunc),
    "rint": _plain(np.rint),
    "lt": _plain(np.less),
    "le": _plain(np.less_equal),
    "eq": _plain(np.equal),
    "ne": _plain(np.not_equal),
    "and": _plain(np.bitwise_and),
    "or": _plain(np.bitwise_or),
    "xor": _plain(np.bitwise_xor),
    "not": _not,
    "shl": _shift(True),
    "shr": _shift(False),
    "clz": _clz,
    "popcount": _plain(np.bitwise_count),
    "mulhi": _mulhi,
    "select": _plain(np.where),
    "convert": _convert,
    "bitcast": _bitcast,
    "lookup": _lookup,
    "real": _plain(np.real),
    "imag": _plain(np.imag),
    "complex": _complex,
}
