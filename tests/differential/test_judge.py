"""The judge of random programs finds what is wrong, and excuses what roundings make of a value.

Each program is written out, and an implementation that is wrong, or right but for last digits,
stands in for the compiler.

Not here: programs that are compiled (test_programs.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import judge
from .programs import Parameter, Program, copied
from .steps import Step

MATRIX = Parameter(np.dtype(np.float64), "nm", "plain", False)
ROUNDED, EXACT = "rounded", "exact"


def program_of(*steps: tuple[str, tuple[int, ...], str]) -> Program:
    """Of one matrix, returning the last value."""
    made = tuple(Step(text, operands, noise, text) for text, operands, noise in steps)
    return Program((MATRIX,), made, (len(made),))


def found(program: Program, a: Any, call: Callable[[Any], Any]) -> list[str]:
    """What the judge says of an implementation."""
    rng = np.random.default_rng(3)
    wanted = judge.expected(program, copied([a]), rng)

    def tuple_of(a: Any) -> Sequence[Any]:
        return (call(a),)

    return judge.check(program, tuple_of, [a], wanted)


def one_ulp_up(x: Any) -> Any:
    """The next number."""
    return np.nextafter(x, np.inf)


REMAINDERS = program_of(
    ("np.exp({0})", (0,), ROUNDED),
    ("{0} % 0.7", (1,), EXACT),
    ("np.cosh({0} * 9) + {0}", (2,), ROUNDED),
)
BITS = program_of(
    ("np.exp({0})", (0,), ROUNDED),
    ("{0}.view(np.int64)", (1,), EXACT),
    ("np.tanh({0} % 5)", (2,), ROUNDED),
)
DIFFERENCES = program_of(
    ("np.exp({0})", (0,), ROUNDED),
    ("{0} - np.mean({0})", (1,), "sum"),
    ("np.abs({0}) > 3", (2,), EXACT),
)
DIGITS = np.linspace(0, 3, 40).reshape(5, 8)
NONE = np.linspace(40, 60, 40).reshape(5, 8)  # exp of it is known to many times 0.7


def test_what_follows_from_a_remainder_of_a_rounded_value_is_anything() -> None:
    def call(a: Any) -> Any:
        rest = one_ulp_up(np.exp(a)) % 0.7
        return np.cosh(rest * 9) + rest

    assert not found(REMAINDERS, NONE, call)
    assert not found(REMAINDERS, DIGITS, call)


def test_but_not_where_the_remainder_has_its_digits() -> None:
    def call(a: Any) -> Any:
        rest = np.exp(a) % 0.7
        return np.cosh(rest * 9) + rest * (1 + 1e-9)

    (problem,) = found(REMAINDERS, DIGITS, call)
    assert "in all" in problem


def test_the_remainder_of_the_bits_of_a_rounded_value_is_anything() -> None:
    assert not found(BITS, DIGITS, lambda a: np.tanh(one_ulp_up(np.exp(a)).view(np.int64) % 5))


def test_a_comparison_that_does_not_rest_on_last_digits_must_be_right() -> None:
    def right(a: Any) -> Any:
        grown = np.exp(a)
        return np.abs(grown - np.mean(grown)) > 3

    assert not found(DIFFERENCES, DIGITS, right)
    (problem,) = found(DIFFERENCES, DIGITS, lambda a: ~right(a))
    assert "40 in all" in problem


def test_a_long_sum_of_equal_terms_may_drift_but_not_far() -> None:
    steps = ("np.tan({0})", (0,), ROUNDED), ("np.einsum('ij,ij', {0}, {0})", (1,), "sum")
    total = program_of(*steps)
    a = np.ones((40, 40))
    right = float(1600 * np.tan(1.0) ** 2)
    assert not found(total, a, lambda a: np.float64(right * (1 + 80e-16)))
    assert found(total, a, lambda a: np.float64(right * (1 + 1e-11)))


def test_a_quotient_near_a_whole_number_may_fall_on_either_side() -> None:
    about_one = ("np.sqrt({0}) ** 2 / {0}", (1,), ROUNDED)
    steps = ("np.exp({0} / 9)", (0,), ROUNDED), about_one, ("{0} // {1}", (0, 2), EXACT)
    a = np.arange(1, 1601.0).reshape(40, 40)
    below = np.random.default_rng(4).random(a.shape) < 0.5
    assert not found(program_of(*steps), a, lambda a: a - below)
    assert not found(program_of(*steps), a, lambda a: a - ~below)
    assert found(program_of(*steps), a, lambda a: a - 6 * below)


def test_a_step_at_zero_of_a_variance_without_digits_falls_on_either_side() -> None:
    steps = ("np.var({0}, axis=0)", (0,), "sum"), ("np.heaviside({0}, 46.0)", (1,), EXACT)
    a = np.full((23, 3), 5.788697642)
    assert (np.var(a, axis=0) > 0).all(), "NumPy rounds otherwise now: take another number"
    assert not found(program_of(*steps), a, lambda a: np.full(3, 46.0))
    assert not found(program_of(*steps), a, lambda a: np.full(3, 1.0))
    assert found(program_of(*steps), a, lambda a: np.full(3, 45.0))
    assert found(program_of(*steps), a + np.arange(23.0)[:, None], lambda a: np.full(3, 46.0))


def test_changes_between_equal_and_unequal_numbers_are_excused() -> None:
    program = program_of(
        ("np.arctan2({0}, {0})", (0,), ROUNDED),
        ("np.diff({0}[..., 1:] == {0}[..., :-1], axis=1)", (1,), EXACT),
    )

    def rounded_elsewhere(a: Any) -> Any:
        angle = np.arctan2(a, a)
        angle[::2, ::3] = one_ulp_up(angle[::2, ::3])
        return np.diff(angle[..., 1:] == angle[..., :-1], axis=1)

    a = np.full((9, 11), 0.5)
    assert np.diff(a[:, 1:] == a[:, :-1], axis=1).sum() == 0
    assert rounded_elsewhere(a).any()
    assert not found(program, a, rounded_elsewhere)
    exact = program_of(("np.diff({0}[..., 1:] == {0}[..., :-1], axis=1)", (0,), EXACT))
    assert found(exact, a, rounded_elsewhere)


def test_what_roundings_leave_of_the_spread_of_equal_numbers_is_excused() -> None:
    program = program_of(
        ("np.std({0}, axis=0)", (0,), "sum"),
        ("{0} != 0", (1,), EXACT),
    )
    spreads = program_of(("np.std({0}, axis=0)", (0,), "sum"))
    a = np.broadcast_to(np.linspace(1, 9, 11) / 7, (34, 11)).copy()
    assert np.std(a, axis=0).any()
    assert not found(program, a, lambda a: np.zeros(11, bool))
    a[:17] += 1e-3
    assert not found(program, a, lambda a: np.ones(11, bool))
    assert found(program, a, lambda a: np.zeros(11, bool))
    assert found(spreads, a, lambda a: np.std(a, axis=0) * (1 + 1e-9))
