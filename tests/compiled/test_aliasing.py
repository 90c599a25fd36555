"""Arguments and captured arrays that share memory are compiled as views of it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill.tracing.state import current

pytestmark = pytest.mark.cpu

Array = Any
Views = Callable[[Array], tuple[Array, ...]]

LINES: dict[str, Views] = {
    "itself": lambda x: (x, x),
    "itself as another view": lambda x: (x, x[:]),
    "later": lambda x: (x[:-1], x[1:]),
    "earlier": lambda x: (x[1:], x[:-1]),
    "reversed": lambda x: (x, x[::-1]),
    "both reversed": lambda x: (x[::-1][:-1], x[::-1][1:]),
    "reversed and later": lambda x: (x[3:], x[::-1][:-3]),
    "interleaved": lambda x: (x[: 2 * (len(x) // 2) : 2], x[1 : 2 * (len(x) // 2) : 2]),
    "every second and all": lambda x: (x[::2], x[: len(x[::2])]),
    "every third and second": lambda x: (x[: 3 * (len(x) // 3) : 3], x[::2][: len(x) // 3]),
    "ends": lambda x: (x[: 2 * len(x) // 3], x[-(2 * len(x) // 3) :]),
    "one number": lambda x: (x, np.broadcast_to(x[1:2], x.shape)),
    "every second, shifted": lambda x: (x[::2][:-1], x[::2][1:]),
}
TABLES: dict[str, Views] = {
    "transposed": lambda a: (a, a.T),
    "transposed, the other way": lambda a: (a.T, a),
    "itself in Fortran order": lambda a: (a.T, a.T[:]),
    "windows": lambda a: (a[:-1, :-1], a[1:, 1:]),
    "windows across": lambda a: (a[:-2, 1:], a[2:, :-1]),
    "a window and a reversed one": lambda a: (a[:-1, :-1], a[:0:-1, :0:-1]),
    "rows, one row on": lambda a: (a[:-1], a[1:]),
    "all but a row, as rows and columns": lambda a: (a[1:, 1:], a[:-1, :-1].T),
    "columns": lambda a: (a[:, :1], a[:, 1:2]),
    "columns that overlap": lambda a: (a[:, :2], a[:, 1:3]),
    "one row for all": lambda a: (a, np.broadcast_to(a[1], a.shape)),
    "sliding": lambda a: (
        a.reshape(-1)[: len(a) * 2].reshape(-1, 2),
        np.lib.stride_tricks.sliding_window_view(a.reshape(-1), 2)[: len(a)],
    ),
    "flat": lambda a: (a.reshape(-1)[: a.size], a.T.reshape(-1) if 1 in a.shape else a.reshape(-1)),
}


@pytest.fixture
def compiled() -> Iterator[Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """Compiles a function of which only what was compiled can run: it raises wherever it is
    called without being traced."""
    calls: list[str] = []

    def compile_(function: Callable[..., Any]) -> Callable[..., Any]:
        def traced_only(*args: Any) -> Any:
            if current() is None:
                calls.append(function.__name__)
                raise AssertionError("the plain function ran")
            return function(*args)

        return tm.jit(traced_only)

    yield compile_
    assert not calls


def add(x: Array, y: Array) -> Array:
    np.add(x, y, out=x)
    return y * 1


def shift(x: Array, y: Array) -> Array:
    x[1:] = y[:-1] * 2
    return x.sum(), y.sum()


def both(x: Array, y: Array) -> Array:
    x += 1
    y *= 2 if y.flags.writeable else 1
    x[0] = 7
    return x, x + y


def through(x: Array, y: Array) -> Array:
    _halve(x[::2])
    return _sum(y), y[::-1] + 0


def _halve(part: Array) -> None:
    part /= 2


def _sum(part: Array) -> Array:
    return part.sum()


def outside(x: Array, y: Array) -> Array:
    total = np.multiply(x, 3, out=x)
    np.subtract(total, y, out=total)
    return y + total


def spread(x: Array, y: Array) -> Array:
    x[...] = y[:1]
    return y + x


def masked(x: Array, y: Array) -> Array:
    x[x > 4] = 0
    return y.max(), y + 1


WRITES = [add, shift, both, through, outside, spread, masked]


def same(got: Any, want: Any) -> None:
    """Equal in type and value, part by part."""
    assert isinstance(got, tuple) == isinstance(want, tuple)
    for a, b in zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]:
        assert type(a) is type(b)
        np.testing.assert_allclose(a, b, rtol=1e-15)


def check(act: Any, function: Any, views: Views, shape: tuple[int, ...]) -> None:
    """One call of the compiled function against the plain one."""
    mine = np.arange(1.0, math.prod(shape) + 1).reshape(shape)
    theirs = mine.copy()
    args, plain = views(mine), views(theirs)
    if function is both and not plain[1].flags.writeable:
        function = add
        act = tm.jit(add)
    got, want = act(*args), function(*plain)
    np.testing.assert_array_equal(mine, theirs)
    same(got, want)


@pytest.mark.parametrize("views", LINES)
@pytest.mark.parametrize("function", WRITES, ids=lambda f: f.__name__)
def test_a_write_is_seen_through_every_view_of_a_line(
    function: Any, views: str, compiled: Any
) -> None:
    act = compiled(function)
    for size in (9, 9, 12, 31, 9):
        check(act, function, LINES[views], (size,))


@pytest.mark.parametrize("views", TABLES)
@pytest.mark.parametrize("function", WRITES, ids=lambda f: f.__name__)
def test_a_write_is_seen_through_every_view_of_a_table(
    function: Any, views: str, compiled: Any
) -> None:
    act = compiled(function)
    square = "transposed" in views or "rows and columns" in views
    for rows, columns in ((9, 9), (9, 12), (17, 10), (9, 9)):
        check(act, function, TABLES[views], (rows, rows if square else columns))


# The ends lie at another distance from each other for each size.
@pytest.mark.parametrize("views", sorted({**LINES, **TABLES}.keys() - {"ends"}))
def test_other_sizes_of_the_same_views_need_no_other_version(views: str) -> None:
    act = tm.jit(add)
    for size in (9, 21, 30, 102):
        shape = (size, size) if views in TABLES else (size,)
        check(act, add, {**LINES, **TABLES}[views], shape)
    assert len(act.explain_recompiles()) == 1


def test_arrays_that_lie_otherwise_get_a_version_of_their_own(compiled: Any) -> None:
    act = compiled(shift)
    order = [*LINES, *reversed(LINES), "later", "itself", "earlier"]
    for views in order:
        check(act, shift, LINES[views], (12,))
    check(act, shift, lambda x: (x, x.copy()), (12,))
    check(act, shift, lambda x: (x[:4], x[-4:]), (12,))


def three(x: Array, y: Array, z: Array) -> Array:
    x += y
    z *= 2
    y[1:] -= z[:-1]
    return x + z, y * x


@pytest.mark.parametrize(
    "views",
    [
        lambda x: (x[:-2], x[1:-1], x[2:]),
        lambda x: (x[2:], x[1:-1], x[:-2]),
        lambda x: (x, x[::-1], x),
        lambda x: (x[: len(x) // 2], x[len(x) // 2 : len(x) // 2 * 2], x[: len(x) // 2]),
        lambda x: (x[:8:2], x[1:9:2], x[2:6]),
    ],
)
def test_three_views(views: Any, compiled: Any) -> None:
    act = compiled(three)
    for size in (9, 12, 12):
        check(act, three, views, (size,))


def test_a_table_and_its_elements_in_one_row(compiled: Any) -> None:
    def mix(table: Array, row: Array) -> Array:
        row[1:] += row[:-1]
        table[0] = 0
        return table.sum(axis=0), row * 1

    act = compiled(mix)
    for shape in ((3, 9), (4, 9), (9, 9)):
        check(act, mix, lambda a: (a, a.reshape(-1)), shape)
        check(act, mix, lambda a: (a[1:], a.reshape(-1)[3:]), shape)


def test_parts_of_one_array_of_complex_numbers(compiled: Any) -> None:
    def turn(a: Array, b: Array) -> Array:
        a *= 2
        return b + a

    act = compiled(turn)
    for _ in range(2):
        mine = np.arange(12.0)
        theirs = mine.copy()
        got = act(mine.view(complex).real, mine.view(complex).imag)
        want = turn(theirs.view(complex).real, theirs.view(complex).imag)
        np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(got, want)


def test_fields_of_one_table_of_records(compiled: Any) -> None:
    def add_to(a: Array, b: Array) -> Array:
        a += b
        return b + 0

    act = compiled(add_to)
    for count in (5, 9):
        mine = np.zeros(count, [("a", np.float64), ("b", np.int32), ("c", np.float32)])
        mine["a"], mine["b"] = np.arange(count), 3
        theirs = mine.copy()
        np.testing.assert_array_equal(act(mine["a"], mine["b"]), add_to(theirs["a"], theirs["b"]))
        np.testing.assert_array_equal(mine, theirs)


def test_arrays_captured_and_passed(compiled: Any) -> None:
    table = np.arange(12.0)
    window = table[2:]

    def act(x: Array) -> Array:
        x += window[: len(x)]
        return table * 1, window.sum()

    run = compiled(act)
    for views in (lambda: table[:-2], lambda: table[2:], lambda: table[::-1][:-2], lambda: table):
        if views().size == 12:
            with pytest.raises(ValueError):
                run(views())
            continue
        before = table.copy()
        got = run(views())
        after = table.copy()
        table[:] = before
        want = act(views())
        np.testing.assert_array_equal(after, table)
        same(got, want)


def test_two_captured_arrays_one_of_which_is_written() -> None:
    table = np.arange(8.0)
    low, high = table[:5], table[3:]

    @tm.jit
    def act() -> Array:
        high[0] = 10
        low[1:] += high[:4]
        return low + high

    for _ in range(2):
        mine = table.copy()
        a, b = mine[:5], mine[3:]
        b[0] = 10
        a[1:] += b[:4]
        np.testing.assert_array_equal(act(), a + b)
        np.testing.assert_array_equal(table, mine)


def test_a_captured_array_that_is_replaced_is_noticed() -> None:
    space: dict[str, Any] = {"np": np}
    exec("def act(x):\n    x += 1\n    return table + x\n", space)
    space["table"] = first = np.arange(4.0)
    act = tm.jit(space["act"])
    np.testing.assert_array_equal(act(first), 2 * first)
    space["table"] = np.zeros(4)
    np.testing.assert_array_equal(act(first), first)


def test_the_same_array_twice_is_updated_in_place() -> None:
    x = np.ones(1000)
    plan = tm.jit(lambda a, b: a.__iadd__(b)).lower(x, x).plan.data
    assert [type(row).__name__ for row in plan.rows] == ["CommitPoint", "Launch"]
    assert {buffer.origin.value for buffer in plan.buffers} == {"argument"}


def test_arguments_in_containers_and_by_keyword() -> None:
    @tm.jit
    def act(tree: dict[str, Array], *, last: Array) -> Array:
        tree["a"] += last
        tree["b"][1:] *= 2
        tree["new"] = tree["a"] + last
        return last - 1

    for _ in range(2):
        mine, theirs = np.arange(9.0), np.arange(9.0)
        left = {"a": mine[1:], "b": mine[:-1]}
        right = {"a": theirs[1:], "b": theirs[:-1]}
        got, want = act(left, last=mine[1:]), act.__wrapped__(right, last=theirs[1:])
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(left["new"], right["new"])


def test_lists_of_windows() -> None:
    @tm.jit
    def act(parts: list[Array]) -> Array:
        for left, right in itertools.pairwise(parts):
            right += left
        return sum(parts[1:], parts[0])

    for count in (6, 6, 9):
        mine, theirs = np.arange(float(count + 8)), np.arange(float(count + 8))
        got = act([mine[i : i + count] for i in range(5)])
        want = act.__wrapped__([theirs[i : i + count] for i in range(5)])
        np.testing.assert_allclose(mine, theirs, rtol=1e-15)
        np.testing.assert_allclose(got, want, rtol=1e-15)


def test_an_error_leaves_shared_memory_as_it_was() -> None:
    @tm.jit
    def act(x: Array, y: Array, i: Array) -> Array:
        x += 1
        return y[i]

    x = np.arange(6.0)
    act(x[1:], x[:-1], np.array([0, 4]))
    with pytest.raises(IndexError):
        act(x[1:], x[:-1], np.array([0, 5]))
    np.testing.assert_array_equal(x, [0, 2, 3, 4, 5, 6])


@pytest.mark.parametrize(
    ("views", "why"),
    [
        (lambda x: (x, x.view(np.int64)), r"their element types differ: float64, int64"),
        (lambda x: (x[:-1].view(complex), x[1:].view(complex)), r"begin in the middle"),
        (lambda x: (x, x.view(np.float32)[::2]), r"their element types differ"),
    ],
)
def test_what_cannot_be_compiled_says_which_arguments(views: Any, why: str) -> None:
    act = tm.jit(add)
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"x and y share memory(.|\n)*{why}") as got:
            act(*views(np.arange(9.0)))
        assert "hint: pass a copy of one of them: y.copy()" in str(got.value)
        assert "test_aliasing.py" in str(got.value)
    assert act(np.arange(3.0), np.arange(3.0)).tolist() == [0, 1, 2]
