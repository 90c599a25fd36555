"""The definition of reductions: exact neutral values, the tree, the error.

Not here: loops that compute them.
"""

from __future__ import annotations

import math
from itertools import product as pairs

import numpy as np
import pytest

from tracemill.compiler.kernel.interpreter import _combine
from tracemill.compiler.kernel.monoids import (
    BLOCK,
    LANES,
    MONOIDS,
    fold,
    state_dtypes,
    tree,
)
from tracemill.compiler.types import BOOL, C64, F32, F64, I8, I64, U8

FLOATS = (0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan)
EDGES = {
    "b": (False, True),
    "i": (0, 1, -1, 127, -128),
    "u": (0, 1, 255),
    "f": FLOATS,
    "c": tuple(complex(a, b) for a, b in pairs(FLOATS, FLOATS)),
}


def dtypes_of(name: str) -> tuple:
    if name in ("any", "all"):
        return (BOOL,)
    plain = (F32, F64, I8, U8, I64)
    return plain if name in ("sum", "prod") else (BOOL, C64, *plain)


@pytest.mark.parametrize("name", MONOIDS)
def test_combining_with_the_neutral_value_changes_no_bit(name: str) -> None:
    monoid = MONOIDS[name]
    for dtype in dtypes_of(name):
        states = state_dtypes(monoid, dtype)
        raw = zip(monoid.neutral(states[0]), states)
        neutral = tuple(np.asarray(v).astype(d.numpy)[()] for v, d in raw)
        for edge in EDGES[dtype.kind]:
            value = np.asarray(edge).astype(dtype.numpy)[()]
            state = (value, np.int64(3))[: monoid.arity]
            for a, b in ((neutral, state), (state, neutral)):
                with np.errstate(all="ignore"):
                    made = _combine(name, states, a, b)
                assert [m.tobytes() for m in made] == [s.tobytes() for s in state], (edge, dtype)


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 100, 4095, 4096, 4097, 3 * 4096 + 7])
def test_a_fold_takes_every_element_once(count: int) -> None:
    assert fold(lambda a, b: a + b, [1 << i for i in range(count)]) == (1 << count) - 1


def test_the_first_of_two_operands_came_first() -> None:
    seen: list[tuple[int, int]] = []

    def least(a: int, b: int) -> int:
        seen.append((a, b))
        return min(a, b)

    fold(least, list(range(3 * BLOCK + 5)))
    assert all(a < b for a, b in seen)
    assert len(seen) == 3 * BLOCK + 4


def test_a_few_elements_fold_one_after_another() -> None:
    join = lambda a, b: f"({a}{b})"
    assert fold(join, "abcd") == "(((ab)c)d)"
    assert fold(join, "abcdefg") == "((((((ab)c)d)e)f)g)"
    few = [np.float32(x) for x in np.random.default_rng(1).standard_normal(7)]
    for count in range(1, 8):
        assert fold(lambda a, b: a + b, few[:count]) == np.sum(few[:count])


def test_lanes_are_strided_and_meet_in_a_tree() -> None:
    join = lambda a, b: f"({a}{b})"
    assert fold(join, "abcdefgh") == "(((ae)(cg))((bf)(dh)))"
    assert fold(join, "abcdefghi") == "((((ai)e)(cg))((bf)(dh)))"
    assert fold(lambda a, b: a + b, [[i] for i in range(130)])[:4] == [0, 64, 128, 32]


def test_blocks_meet_as_a_binary_counter_carries() -> None:
    join = lambda a, b: f"({a}{b})"
    assert tree(join, "ab") == "(ab)"
    assert tree(join, "abc") == "((ab)c)"
    assert tree(join, "abcde") == "(((ab)(cd))e)"
    assert tree(join, "abcdefg") == "(((ab)(cd))((ef)g))"


@pytest.mark.parametrize("count", [8, 64, 200, 1000])
def test_the_error_of_a_sum_is_no_worse_than_numpys(count: int) -> None:
    rng = np.random.default_rng(count)
    mine = theirs = 0.0
    for _ in range(200):
        x = (rng.random(count) * 2).astype(np.float32)
        exact = math.fsum(x.astype(np.float64))
        mine += abs(float(fold(lambda a, b: a + b, list(x))) - exact)
        theirs += abs(float(np.sum(x)) - exact)
    assert mine <= 1.25 * theirs
    assert LANES * LANES == BLOCK
