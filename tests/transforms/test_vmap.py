"""`vmap` against NumPy loops: nests, control flow, state, random numbers, and what it refuses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import tracemill as tm
from lane_programs import PROGRAMS, branches, chosen, newton, scanned
from library_losses import BATCH, LOSSES, M, S
from tracemill.compiler.errors import ArgError, BoundsError, UnsupportedError

pytestmark = pytest.mark.cpu


def looped(f, *args):
    return np.stack([f(*row) for row in zip(*args, strict=True)])


def agree(f, *args, **tolerance):
    got, want = tm.vmap(f)(*args), looped(f, *args)
    np.testing.assert_allclose(got, want, **{"rtol": 1e-12, "atol": 1e-12, **tolerance})
    assert got.dtype == want.dtype


SMOOTH = ["elementwise", "products", "if", "scan", "a place of the run", "writes at a place",
          "a place in a branch", "shapes"]  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_lanes_are_what_a_loop_over_them_gives(name, rng):
    f, args = PROGRAMS[name]
    agree(f, *args(rng))


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_inside_and_outside(name, rng):
    f, args = PROGRAMS[name]
    args = args(rng)
    slope = tm.grad(lambda *row: (f(*row) ** 2).sum())
    agree(slope, *args, rtol=1e-9)
    inside = tm.vmap(slope)(*args)
    outside = tm.grad(lambda *stacks: (tm.vmap(f)(*stacks) ** 2).sum())(*args)
    np.testing.assert_allclose(outside, inside, rtol=1e-9, atol=1e-12)
    ones = [np.full_like(a, at == 0) if a.dtype.kind == "f" else None for at, a in enumerate(args)]
    _, tangent = tm.jvp(lambda *stacks: (tm.vmap(f)(*stacks) ** 2).sum(), args, ones)
    np.testing.assert_allclose(tangent, inside.sum(), rtol=1e-9)


def test_a_while_loop_has_a_forward_derivative_for_lanes():
    a = np.array([2.0, 4, 9])
    ahead = lambda a: tm.jvp(newton, (a,), (np.ones_like(a),))[1]
    np.testing.assert_allclose(tm.vmap(ahead)(a), 0.5 / np.sqrt(a))
    _, tangent = tm.jvp(tm.vmap(newton), (a,), (np.ones(3),))
    np.testing.assert_allclose(tangent, 0.5 / np.sqrt(a))


@pytest.mark.parametrize("name", LOSSES)
def test_libraries_solve_a_problem_for_each_lane(name):
    agree(LOSSES[name], BATCH, rtol=1e-9, atol=1e-9)


def test_libraries_where_lanes_share_operands(rng):
    b = rng.standard_normal((3, 4))
    solve = np.linalg.solve
    np.testing.assert_allclose(tm.vmap(solve, (None, 0))(S, b), [solve(S, row) for row in b])
    np.testing.assert_allclose(
        tm.vmap(solve, (0, None))(BATCH, b[0]), [solve(a, b[0]) for a in BATCH]
    )
    several = lambda a, b: solve(a, b[..., None])[..., 0]
    got = tm.vmap(several, (None, 0))(BATCH, rng.standard_normal((3, 2, 4)))
    assert got.shape == (3, 2, 4)
    for f in (lambda a: np.linalg.qr(a)[1], lambda a: np.linalg.lstsq(a, M)[0],
              lambda a: np.sort(np.linalg.eigvals(a.astype(complex)).real)):  # fmt: skip
        agree(f, BATCH, rtol=1e-9, atol=1e-9)


def test_axes_in_and_out(rng):
    x, y = rng.standard_normal((2, 3, 4)), rng.standard_normal(3)
    f = lambda x, y: x * 2 + y
    for axis in (1, -2):
        got = tm.vmap(f, in_axes=(axis, 0), out_axes=-1)(x, y)
        want = np.stack([f(x[:, i], y[i]) for i in range(3)], axis=-1)
        np.testing.assert_array_equal(got, want)
    got = tm.vmap(f, in_axes=(None, 0), out_axes=1)(x, y)
    np.testing.assert_array_equal(got, np.stack([f(x, v) for v in y], axis=1))
    both = tm.vmap(lambda x: (x.sum(), 3.0, y), out_axes=(0, None, None))(x)
    np.testing.assert_allclose(both[0], x.sum((1, 2)))
    assert both[1] == 3
    np.testing.assert_array_equal(both[2], y)
    np.testing.assert_array_equal(tm.vmap(lambda x, scale: x * scale)(x, scale=np.arange(2.0)),
                                  x * np.arange(2.0)[:, None, None])  # fmt: skip


@dataclass
class Point:
    at: np.ndarray
    mass: np.ndarray


def test_arguments_and_results_are_nested(rng):
    points = Point(rng.standard_normal((5, 2)), rng.random(5))
    scale = {"by": np.float64(2), "shift": rng.standard_normal(5)}

    def f(point, scale):
        return Point(point.at * scale["by"], point.mass + scale["shift"]), (point.mass,)

    moved, (mass,) = tm.vmap(f, in_axes=(0, {"by": None, "shift": 0}))(points, scale)
    np.testing.assert_array_equal(moved.at, points.at * 2)
    np.testing.assert_array_equal(moved.mass, points.mass + scale["shift"])
    np.testing.assert_array_equal(mass, points.mass)
    out = tm.vmap(f, (0, {"by": None, "shift": 0}), out_axes=(Point(1, 0), 0))(points, scale)
    np.testing.assert_array_equal(out[0].at, points.at.T * 2)


def test_maps_nest(rng):
    x, y = rng.standard_normal((3, 4)), rng.standard_normal((5, 4))
    dots = tm.vmap(tm.vmap(np.dot, (None, 0)), (0, None))
    np.testing.assert_allclose(dots(x, y), x @ y.T)
    np.testing.assert_allclose(tm.jit(dots)(x, y), x @ y.T)
    deep = tm.vmap(tm.vmap(newton))(np.abs(x) + 1)
    np.testing.assert_allclose(deep, np.sqrt(np.abs(x) + 1))
    places = rng.integers(4, size=(3, 5))
    np.testing.assert_array_equal(
        tm.vmap(tm.vmap(lambda x, i: x[i], (None, 0)))(x, places), np.take_along_axis(x, places, 1)
    )


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("f", [newton, branches, scanned, np.sin, lambda x: x.sum()])
def test_no_lane_and_one(f, n):
    x = np.ones((n, 3)) if f is not newton else np.full(n, 2.0)
    got = tm.vmap(f)(x)
    want = np.asarray(f(np.ones(3) if f is not newton else 2.0))
    assert got.shape == (n, *want.shape)
    np.testing.assert_allclose(got, np.broadcast_to(want, got.shape))


def test_one_version_serves_any_number_of_lanes():
    mapped = tm.jit(
        lambda a, x: (tm.vmap(newton)(a), tm.vmap(tm.grad(lambda x: branches(x).sum()))(x))
    )
    for n in (3, 0, 5, 2, 40):
        roots, slopes = mapped(np.full(n, 2.0), np.ones((n, 3)))
        assert roots.shape == (n,)
        assert slopes.shape == (n, 3)
    assert len(mapped.explain_recompiles()) == 1


def test_what_lanes_share_is_computed_once():
    shared = np.arange(16.0).reshape(4, 4)
    mapped = tm.jit(lambda x: tm.vmap(lambda x: x + np.linalg.inv(shared + np.eye(4)) @ shared)(x))
    text = mapped.lower(np.ones((7, 4, 4))).text
    assert "inv %" in text
    assert ": f64[4, 4], token" in next(line for line in text.splitlines() if " inv %" in line)


# -- state, effects, random numbers


def test_variables():
    count, total = tm.Variable(0), tm.Variable(np.float64(0))

    def f(x):
        count.assign_add(1)
        return x * count.read()

    np.testing.assert_array_equal(tm.vmap(f)(np.ones(3)), 1)
    assert count.read() == 1
    with pytest.raises(UnsupportedError, match="TM123"):
        tm.vmap(lambda x: total.assign_add(x))(np.ones(3))
    around = np.zeros(3)

    @tm.jit
    def writes(x):
        def f(x):
            around[0] = x

        tm.vmap(f)(x)

    with pytest.raises(UnsupportedError, match=r"TM123(.|\n)*array around"):
        writes(np.ones(3))


def test_each_lane_draws_its_own_numbers():
    inside, outside = tm.random.Generator(5), tm.random.Generator(5)
    for f, draw in (
        (lambda x: x + inside.normal(shape=2), lambda: outside.normal(shape=(3, 2))),
        (lambda x: x + inside.random(), lambda: np.tile(outside.random(3)[:, None], 2)),
        (lambda x: inside.integers(0, 100, 4) + x.sum(), lambda: outside.integers(0, 100, (3, 4))),
    ):
        np.testing.assert_array_equal(tm.vmap(f)(np.zeros((3, 2))), np.zeros((3, 1)) + draw())
        np.testing.assert_array_equal(inside.state.read(), outside.state.read())
    nested = tm.vmap(tm.vmap(lambda x: x + inside.random()))(np.zeros((3, 4)))
    np.testing.assert_array_equal(nested, outside.random((3, 4)))
    twice = tm.vmap(lambda x: (inside.random(), inside.random(2)))(np.zeros(3))
    np.testing.assert_array_equal(twice[0], outside.random(3))
    np.testing.assert_array_equal(twice[1], outside.random((3, 2)))


def test_draws_in_loops_are_each_lanes_own():
    inside, outside = tm.random.Generator(6), tm.random.Generator(6)

    def walk(x):
        return tm.fori_loop(0, 4, lambda i, x: x + inside.normal(), x)

    want = sum(outside.normal(shape=3) for _ in range(4))
    np.testing.assert_allclose(tm.vmap(walk)(np.zeros(3)), want)
    with pytest.raises(UnsupportedError, match="TM123"):
        tm.vmap(lambda x: tm.cond(x > 0, lambda: inside.random(), lambda: 0.0))(np.ones(2))


def test_an_index_out_of_bounds_fails_only_where_it_is_used():
    x = np.arange(12.0).reshape(4, 3)
    with pytest.raises(BoundsError, match="TM230"):
        tm.vmap(lambda x, i: x[i])(x, np.array([0, 1, 3, 0]))
    np.testing.assert_array_equal(tm.vmap(chosen)(x, np.array([0, 3, 2, 5])), [0, 6, 8, 18])
    shared = lambda x, i: tm.cond(x[0] < 0, lambda: x[i], lambda: x[0])
    np.testing.assert_array_equal(tm.vmap(shared, (0, None))(x, 7), x[:, 0])

    def counts(x, n):
        def body(c):
            i, total = c
            return i + 1, total + x[i]

        return tm.while_loop(lambda c: c[0] < n, body, (0, 0.0))[1]

    np.testing.assert_array_equal(tm.vmap(counts)(x, np.array([3, 1, 0, 2])), [3, 3, 0, 19])
    with pytest.raises(BoundsError, match="TM230"):
        tm.vmap(counts)(x, np.array([3, 1, 4, 2]))


def test_a_matrix_that_cannot_be_solved_fails_only_where_it_is_used():
    flags = np.array([True, False, True])
    stack = np.stack([S, 0 * S, BATCH[1]])
    for f in (np.linalg.inv, np.linalg.cholesky, lambda a: np.linalg.solve(a, a)):
        guarded = lambda a, is_good, f=f: tm.cond(is_good, f, lambda a: a, a)
        symmetric = stack + np.swapaxes(stack, 1, 2)
        want = [f(a) if good else a for a, good in zip(symmetric, flags)]
        np.testing.assert_allclose(tm.vmap(guarded)(symmetric, flags), want, rtol=1e-9, atol=1e-12)
        with pytest.raises(np.linalg.LinAlgError):
            tm.vmap(guarded)(symmetric, ~flags)
        shared = tm.vmap(lambda x, good, f=f: tm.cond(good, lambda: f(0 * S) * x, lambda: S * x))
        np.testing.assert_allclose(shared(np.ones(2), np.array([False, False])), [S, S])


def test_prints_show_all_lanes_at_once(capfd):
    tm.vmap(lambda x: (tm.print("{}", x), x)[1])(np.arange(3))
    assert capfd.readouterr().out == "[0 1 2]\n"


# -- refusals

X = np.ones((3, 2))
BAD = {
    "sizes": (lambda: tm.vmap(np.add)(X, np.ones((4, 2))), "3 lanes(.|\n)*4"),
    "sizes that are known": (
        lambda: tm.jit(lambda: tm.vmap(np.add)(np.ones(3), np.ones(4)))(), "3 lanes(.|\n)*4"),
    "out of range": (lambda: tm.vmap(np.sin, in_axes=2)(X), "axis 2"),
    "below range": (lambda: tm.vmap(np.sin, in_axes=-3)(X), "axis -3"),
    "a number": (lambda: tm.vmap(np.add)(X, 1.0), "None is for"),
    "no lanes": (lambda: tm.vmap(np.sin, in_axes=None)(X), "needs an argument"),
    "too few axes": (lambda: tm.vmap(np.add, in_axes=(0,))(X, X), "1 entries for 2"),
    "no axis": (lambda: tm.vmap(np.sin, in_axes="x")(X), "in_axes is an axis"),
    "another nest": (
        lambda: tm.vmap(lambda p: p["a"], in_axes=({"b": 0},))({"a": X}), "in_axes is"),
    "out axis": (lambda: tm.vmap(np.sum, out_axes=1)(X), "out_axes has the axis 1"),
    "out None": (lambda: tm.vmap(np.sum, out_axes=None)(X), "differs between lanes"),
    "out nest": (lambda: tm.vmap(lambda x: (x, x), out_axes=(0,))(X), "out_axes is an axis"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_axes_that_do_not_fit_are_refused(name):
    run, text = BAD[name]
    with pytest.raises(ArgError, match=rf"TM122(.|\n)*{text}"):
        run()
