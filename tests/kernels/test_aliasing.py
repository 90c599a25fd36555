"""What may be one memory: claims about indices, checked against all their values."""

from __future__ import annotations

import itertools
from typing import Any

from tracemill.compiler.dims import Dim, Size
from tracemill.compiler.kernel.aliasing import _never_equal


def value(size: Size, known: dict[str, int]) -> int:
    return size.evaluate(known) if isinstance(size, Dim) else size


def test_indices_that_are_said_never_to_be_equal_never_are(rng: Any) -> None:
    i, n = Dim.symbol("i"), Dim.symbol("n")
    claimed = 0
    for _ in range(600):
        a, b, c, d, e, f = (int(k) for k in rng.integers(-4, 5, 6))
        x, y = i * a + n * b + c, i * d + n * e + f
        extent = n - int(rng.integers(0, 3))
        if not _never_equal(x, y, {"i": extent}):
            continue
        claimed += 1
        for size in range(8):
            trips = range(value(extent, {"n": size}))
            for one, other in itertools.product(trips, trips):
                left = value(x, {"n": size, "i": one})
                right = value(y, {"n": size, "i": other})
                assert left != right, (x, y, extent, size)
    assert claimed > 50


def test_evens_and_odds_and_halves_are_apart() -> None:
    i, n = Dim.symbol("i"), Dim.symbol("n")
    extents = {"i": n, "j": None}
    assert _never_equal(i * 2, i * 2 + 1, extents)
    assert _never_equal(i, i + n, extents)
    assert _never_equal(n * 4, n * 4 + 1, extents)
    assert not _never_equal(i, i + 1, extents)
    assert not _never_equal(i * 2, i * 3, extents)
    assert not _never_equal(Dim.symbol("j"), 5, extents)
