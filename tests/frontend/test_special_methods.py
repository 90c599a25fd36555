"""What Python calls by itself: special methods of the user's classes see, choose and repeat as
functions that are called do.

Each function is run twice with what its methods read changed in between: a number that was taken
while tracing would be an old one. Not here: the classes (tests/support/own_classes.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import own_classes as own
import tracemill as tm
from own_classes import Data, First, Plain

pytestmark = pytest.mark.cpu

Function = Callable[..., Any]


def augmented(u: Any, w: Any) -> Any:
    z = u
    z += w
    return z.a


def unpacked(u: Any, w: Any) -> Any:
    a, b, c = u
    return a + 2 * b - c + w.a


def stored(u: Any, w: Any) -> Any:
    u[1] = w.a[0]
    u[0] += 3.0
    del u[2]
    return u.a * 1


def summed(u: Any, w: Any) -> Any:
    total = 0.0
    for part in u:
        if part > 1:
            total += part
    return total + w.a


# Several on a line: told apart by where they stand.
TWO: dict[str, Function] = {
    "add": lambda u, w: (u + w).a, "mul": lambda u, w: (u * w).a, "matmul": lambda u, w: u @ w,
    "number": lambda u, w: (u + 3.0).a, "reflected": lambda u, w: (3.0 + u).a,
    "power": lambda u, w: (u**2).a, "negative": lambda u, w: (-u).a, "abs": lambda u, w: abs(u).a,
    "divmod": lambda u, w: divmod(u, 2.0)[0].a + divmod(w, 3.0)[1].a,
    "less": lambda u, w: u.a if u < w else w.a * 2, "chain": lambda u, w: u.a * (u < w < u),
    "greater": lambda u, w: u.a if w > u else w.a * 2, "item": lambda u, w: u[1] + w["scale"],
    "equal": lambda u, w: u.a if u == w else w.a, "unequal": lambda u, w: u.a if u != w else w.a,
    "length": lambda u, w: u.a * len(w), "in": lambda u, w: u.a + (4.0 in u),
    "not in": lambda u, w: u.a + (4.0 not in u), "list": lambda u, w: list(u)[1] + w.a,
    "comprehension": lambda u, w: sum([part * 2 for part in u]) + w.a,
    "star": lambda u, w: np.stack([*u]) + w.a, "arguments": lambda u, w: max(*u) + w.a,
    "zip": lambda u, w: sum(a * b for a, b in zip(u, w)) + w.a, "sum": lambda u, w: sum(u) + w.a,
    "float": lambda u, w: w.a * float(u), "call": lambda u, w: u(w.a),
    "next": lambda u, w: next(iter(u)) + w.a,
    "operator": lambda u, w: operator.add(u, w).a + operator.neg(u).a,
    "augmented": augmented, "unpacked": unpacked, "stored": stored, "summed": summed,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _as_before() -> Any:
    scale, table = own.SCALE, own.TABLE.copy()
    yield
    own.SCALE, own.TABLE[:] = scale, table


def check(function: Function, *calls: Callable[[], tuple[Any, ...]], change: Any = None) -> None:
    """Compiled and plain give the same, with what methods read changed after each call."""
    compiled = tm.jit(function)
    for make in calls * 3:
        want, got = function(*make()), compiled(*make())
        np.testing.assert_allclose(got, want, rtol=1e-13)
        own.change()


def pair(kind: Any, shift: float) -> Callable[[], tuple[Any, Any]]:
    return lambda: (kind(np.arange(3.0) + shift), kind(np.arange(3.0) * 2 + 1))


@pytest.mark.parametrize("name", TWO)
def test_arguments_that_are_dataclasses(name: str) -> None:
    check(TWO[name], pair(Data, 0.5), pair(Data, -9.0))


@pytest.mark.parametrize("name", TWO)
def test_arguments_of_a_plain_class(name: str) -> None:
    check(TWO[name], pair(Plain, 0.5), pair(Plain, -9.0))


@pytest.mark.parametrize("name", sorted(TWO.keys() - {"stored"}))
def test_objects_from_outside(name: str) -> None:
    """Their arrays are read at every call, too."""
    function = TWO[name]
    for shift in (0.5, -9.0):
        u, w = pair(Plain, shift)()

        def around(x: Any, u: Any = u, w: Any = w) -> Any:
            return function(u, w) + x

        compiled = tm.jit(around)
        for _ in range(3):
            want = around(np.ones(3))
            np.testing.assert_allclose(compiled(np.ones(3)), want, rtol=1e-13)
            u.a *= -1.5
            own.change()


def test_python_decides_who_is_asked() -> None:
    check(lambda u, w: (u + w).a, lambda: (Plain(np.arange(3.0)), First(np.ones(3))))
    check(lambda u, w: (u + w).a, lambda: (First(np.arange(3.0)), First(np.ones(3))))
    check(lambda x, u: (x.sum() * u) + x, lambda: (np.arange(3.0), own.Times(np.ones(3))))
    check(lambda x, u: (x * u) + x, lambda: (np.arange(3.0), own.Times(np.ones(3))))
    check(lambda u, n: (n + u).a, lambda: (Plain(np.ones(3)), 7))


@pytest.mark.parametrize(
    "function",
    [
        lambda u: u - u, lambda u: u < 3, lambda u: u @ 3, lambda u: ~u, lambda u: [1] - u,
        lambda u: round(u), lambda u: u + "text", lambda u: own.Truth(u.a) + 1,
    ],
)  # fmt: skip
def test_what_python_refuses_is_refused(function: Function) -> None:
    u = Plain(np.arange(3.0))
    with pytest.raises(Exception) as wanted:
        function(u)
    with pytest.raises(wanted.type) as caught:
        tm.jit(function)(u)
    assert str(caught.value) == str(wanted.value)


def test_truth() -> None:
    def chosen(x: Any, t: Any) -> Any:
        if t and not own.Truth(-x):
            return x + 1
        return -x

    check(
        chosen,
        lambda: (np.arange(3.0), own.Truth(np.ones(3))),
        lambda: (np.arange(3.0), own.Truth(np.ones(3) * 9)),
    )
    with pytest.raises(TypeError, match=r"__bool__ should return bool, returned numpy\.bool"):
        tm.jit(lambda x, w: x if w else -x)(np.ones(2), _Lying(np.ones(2)))


class _Lying:
    def __init__(self, a: Any) -> None:
        self.a = a

    def __bool__(self) -> bool:
        return self.a.sum() > 0  # type: ignore[no-any-return]


def test_iterators() -> None:
    def run(x: Any) -> Any:
        total = x * 0
        for number in own.Countdown(3):
            total = total + x * number
        for number in own.ByNumber():
            total = total + number
        first = next(own.Countdown(2))
        return total + first + next(own.Countdown(0), own.SCALE) + (2.0 in own.ByNumber())

    check(run, lambda: (np.arange(3.0),))


def test_context_managers() -> None:
    outside = own.Scope()

    def run(x: Any) -> Any:
        with outside as scale, own.Scope() as other:
            x = x * scale + other
        with own.Scope():
            raise KeyError
        return x

    check(run, lambda: (np.arange(3.0),))
    assert outside.entered == 0


def test_attributes_that_are_computed() -> None:
    def run(x: Any, o: Any) -> Any:
        made = own.Attributes(x)
        made.scaled = x + o.scaled
        made.doubled = made.doubled + o.doubled
        made.scaled += 1
        setattr(made, "scaled", made.scaled * 2)  # noqa: B010
        noting = own.Noting(x)
        noting.b = made.total + made.total
        held = vars(noting)["a"] + o.guessed + getattr(o, "guessed", 0)
        return made.a + noting.b + held + o.total + own.Checked(x).b + hasattr(o, "other")

    check(run, lambda: (np.arange(3.0), own.Attributes(np.arange(3.0) + 1)))
    kept = own.Attributes(np.arange(3.0))
    compiled = tm.jit(lambda x: x + kept.scaled + kept.doubled + kept.guessed)
    for _ in range(3):
        want = np.ones(3) + kept.scaled + kept.doubled + kept.guessed
        np.testing.assert_allclose(compiled(np.ones(3)), want)
        kept.a += 1
        own.change()


def test_a_traced_value_is_not_kept_by_setattr() -> None:
    kept = own.Attributes(np.zeros(2))
    with pytest.raises(tm.TracemillError, match=r"TM103(.|\n)*'b'"):
        tm.jit(lambda x: setattr(kept, "b", x.sum()))(np.ones(2))
    assert "b" not in vars(kept)


def test_a_callable_that_is_equal_to_everything() -> None:
    check(lambda x, f: f(x), lambda: (np.arange(3.0), own.Same()))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if str(x[0]) == "1.0" else -x,
        lambda x: x if f"{x.sum()} in all" != "3.0 in all" else -x,
        lambda x: x * ("1" in f"{x[0]}"),
        lambda x: x * (f"{x[0]}" in ["1.0", "2.0"]),
        lambda x: x * ("a" < str(x[1]) < "b"),
    ],
)
def test_the_text_of_a_value_of_the_run_is_not_compared(function: Function) -> None:
    with pytest.raises(TypeError, match=r"TM102(.|\n)*a text made of <traced (.|\n)*host_call"):
        tm.jit(function)(np.ones(3))
    function(np.ones(3))


def test_other_texts_are() -> None:
    compiled = tm.jit(lambda x, mode: x * 2 if mode == "twice" or f"{x.ndim}" == "2" else x)
    np.testing.assert_array_equal(compiled(np.ones(3), "twice"), [2, 2, 2])
    np.testing.assert_array_equal(compiled(np.ones(3), "<traced"), [1, 1, 1])
    np.testing.assert_array_equal(compiled(np.ones((1, 1)), "once"), [[2]])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if bool(x[0] > 0) is True else -x,
        lambda x: x if (not x[0] > 0) is False else -x,
        lambda x: x if (x.sum() > 0) is not True else -x,  # which is no bool of Python's
        lambda x: x * (bool(x[0] > 0) is not False),
        lambda x: x * (x is not None) + (x.ndim is True),
    ],
)
def test_a_bool_of_the_run_is_true_or_false(function: Function) -> None:
    compiled = tm.jit(function)
    for x in (np.array([1.0, 2.0]), np.array([-1.0, 2.0])):
        np.testing.assert_array_equal(compiled(x), function(x))
