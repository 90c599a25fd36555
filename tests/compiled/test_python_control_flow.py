"""Python's `if`, `and`, `or`, `not` and conditional expressions on traced values.

Each function runs as plain Python too, which is the oracle. Not here: loops
(test_python_control_flow_loops.py), arrays and containers that are changed
(test_python_control_flow_memory.py), errors (test_python_control_flow_errors.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flow_helpers
import tracemill as tm
from python_flow import operations, same

pytestmark = pytest.mark.cpu
X = np.array([1.0, -2.0, 3.0, 0.5])


def assigned(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y


def several(x):
    k, y = 0, x
    if x[0] > 2:
        k = 1
        y = x + 1
    elif x[0] > 0:
        k = 2
    elif x[0] > -1:
        y = x * 3
    else:
        k = 4
    return k, y


def nested(x):
    n = 0
    if x[0] > 0:
        if x[1] > 0:
            n = 1
        else:
            n = 2
        n = n * 10
    return n


def returned(x):
    if x.sum() > 0:
        return x * 2
    y = x + 1
    return y


def returned_early(x):
    if x[0] > 10:
        return x
    if x[0] > 5:
        if x[1] > 0:
            return x * 2
        x = x - 1
    elif x[0] < -5:
        return x * 7
    if x[0] > 1:
        return x * 3
    return x * 4


def temporaries(x):
    if x.sum() > 0:
        part = x[1:]
        total = part.sum()
    else:
        part = "none"
        total = np.float64(0)
    return total


def deleted(x):
    k = 1
    if x[0] > 0:
        del k
        k = 2
    return k


def bound_by_imports_and_functions(x):
    if x[0] > 0:
        import math

        def f(q):
            return q * math.pi

        y = f(x)
    else:
        y = x
    return y


def annotated(x):
    k: int
    y: np.ndarray = x + 1
    if x[0] > 0:
        k: int = 3
        y: np.ndarray = x
    else:
        k = 4
    return k, y


def unpacked(x):
    (a, b), *c = (1, 2), 3, 4
    if x[0] > 0:
        a, (b, *c) = b, [a, 5, 6]
    return a, b, c


FUNCTIONS = [annotated, unpacked, assigned, several, nested, returned, returned_early,
             temporaries, deleted, bound_by_imports_and_functions]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_statements_take_the_branch_of_the_run(function: Any) -> None:
    same(function, *[(X * factor,) for factor in (1, -1, 0.2, 20, -20, -6)])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if x[0] > 0 else -x,
        lambda x: (1 if x[0] > 0 else 2, 1.5 if x[1] > 0 else -1.5),
        lambda x: x[0] > 0 and x[1] > 0,
        lambda x: x[0] > 0 or x[1] > 0 or x[2] > 0,
        lambda x: (x[0] and x[1], x[0] or x[1], not x[0], not x[1] > 0),
        lambda x: 0 < x[0] < 2,
        lambda x: 0 < x[0] <= x[1] < x[2] != 3,
        lambda x: x[0] is not None and x[0] > 0,
        lambda x: [a if a > 0 else -a for a in (x[0], x[1])],
        lambda x: [a for a in (1, 2, 3) if a > 1 and x.shape[0] > 2],
        lambda x: x[3] > 0 and x[int(x.shape[0] > 3) * 3] < 5,
        lambda x: (lambda q: q if q.sum() > 0 else q * 0)(x),
        lambda x: {"a": x if x[0] > 0 else x + 1, "b": (x[0] if x[1] > 0 else x[2],)},
    ],
)
def test_expressions_choose_as_python_does(function: Any) -> None:
    same(function, *[(X * factor,) for factor in (1, -1, 0.1, 0)])


def test_what_is_not_chosen_is_not_run() -> None:
    def guarded(x, i):
        return 1 if i < len(x) and x[i] > 0 else 2

    same(guarded, (X, 0), (X, 1), (X, 9), (X, 4))


def test_gradients_go_through_branches() -> None:
    def loss(x):
        if x.sum() > 0:
            return (x * x).sum()
        return x.sum()

    np.testing.assert_array_equal(tm.jit(tm.grad(loss))(X), 2 * X)
    np.testing.assert_array_equal(tm.jit(tm.grad(loss))(-X), np.ones(4))


def test_helpers_methods_and_closures_are_converted() -> None:
    model = flow_helpers.Leaky(0.5)

    def program(x):
        scale = 3

        def scaled(q):
            return q * scale if q[0] > 0 else q

        return flow_helpers.clipped(x), model(x), scaled(x), flow_helpers.depth(x)

    same(program, (X,), (-X,), (X * 9,))


def test_numbers_are_for_the_run_and_options_for_the_compilation() -> None:
    def scaled(x, n, double):
        if double:
            x = [x, x]
        if n > 2:
            return x[0] * n
        return x[0] - n

    compiled = same(scaled, (X, 3, True), (X, 1, True), (X, -5, True), (X, 3.0, True),
                    (X, 3, False), versions=3)  # fmt: skip
    assert len(compiled.explain_recompiles()) == 3


def test_numbers_whose_branches_differ_in_type_decide_the_compilation() -> None:
    def shaped(x, axis):
        if axis > 0:
            return x.sum(axis=axis), "rows"
        return x[0]

    same(shaped, (np.ones((2, 3)), 1), (np.ones((2, 3)), 0), versions=2)


def test_recursion_on_numbers_that_can_be_guarded_ends() -> None:
    def factorial(n):
        return 1 if n <= 1 else n * factorial(n - 1)

    def power(n):
        if n <= 0:
            return 1
        return 2 * power(n - 1)

    same(factorial, (5,), (3,), versions=2)
    same(power, (5,), (3,), versions=2)


def test_tests_of_arrays_are_ambiguous_unless_they_have_one_element() -> None:
    def positive(x):
        if x > 0:
            return 1
        return 2

    for size in (0, 2, 5):
        with pytest.raises(ValueError, match="ambiguous"):
            tm.jit(positive)(np.ones(size))
    same(
        positive, (np.ones(1),), (np.ones((1, 1)),), (np.float32(-1),), (np.array(2.0),), versions=4
    )


def test_variables_are_assigned_and_texts_printed_in_branches(capfd: Any) -> None:
    count = tm.Variable(0, name="python branches")

    @tm.jit
    def f(x):
        if x > 0:
            count.assign_add(1)
            tm.print("positive {}", x)
        elif count > 1:
            count.assign(0)
        return count.read()

    assert [int(f(v)) for v in (1.0, 2.0, -1.0, -1.0, 3.0)] == [1, 2, 0, 0, 1]
    assert capfd.readouterr().out.count("positive") == 3


def test_cheap_branches_of_numbers_are_selected() -> None:
    compiled = tm.jit(lambda x: x[0] + 1 if x[0] > 0 else x[0] * 2)
    assert "cond" not in operations(compiled.lower(X).text)
    assert "cond" in operations(tm.jit(assigned).lower(X).text)


def test_without_compiling_everything_is_plain_python() -> None:
    seen = []

    def f(x):
        if x.sum() > 0:
            seen.append("taken")
        return x

    with tm.disable_jit():
        tm.jit(f)(X)
        tm.jit(f)(-X)
    assert seen == ["taken"]


def untouched(x):
    """Blocks that mean something else in a function of their own stay where they are."""

    class Local:
        size = 3 if x.shape[0] > 2 else 1

    def generated():
        for i in range(3):
            if i != 1:
                yield x[i]

    def framed():
        one = 1
        if x.shape[0] > 2:
            two = one
        return sorted(locals())

    names = framed()
    first, *others = generated()
    try:
        if x.shape[0] > 100:
            raise ValueError
    except ValueError as problem:
        names.append(str(problem))
    with np.errstate(all="ignore"):
        if x[0] > 0:
            x = x / 0
    match len(names):
        case 0:
            pass
        case _:
            if x[0] > 1:
                x = x * 2
    return Local.size, first, others, names, x


def test_blocks_that_cannot_be_moved_run_where_they_are() -> None:
    same(untouched, (X,), (-X,))


def test_a_block_that_fails_shows_the_user_s_line() -> None:
    def f(x):
        if x.sum() > 0:
            return x.no_such_attribute
        return x

    with pytest.raises(AttributeError, match="no_such_attribute") as caught:
        tm.jit(f)(X)
    shown = [(entry.name, str(entry.statement).strip()) for entry in caught.traceback]
    assert ("f", "return x.no_such_attribute") in shown


def test_nodes_of_a_branch_carry_the_user_s_line_and_function() -> None:
    text = tm.jit(assigned).lower(X).text
    assert "in assigned" in text
    assert "test_python_control_flow.py" in text
