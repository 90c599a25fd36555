"""`jacobian` and `hessian`: both modes, nests, shapes, loops."""

from __future__ import annotations

import numpy as np
import pytest

import tracemill as tm
from lane_programs import newton, scanned

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize("mode", ["forward", "reverse", None])
def test_jacobian(mode, rng):
    a, x = rng.standard_normal((4, 3)), rng.standard_normal(3)
    f = lambda x: np.sin(a @ x)
    want = np.cos(a @ x)[:, None] * a
    np.testing.assert_allclose(tm.jacobian(f, mode=mode)(x), want, rtol=1e-12)
    np.testing.assert_allclose(tm.vmap(tm.jacobian(f, mode=mode))(np.stack([x, x])), [want, want])
    slopes = tm.jacobian(lambda p, n: {"y": p["x"][:n] * p["b"], "n": n}, mode=mode)(
        {"x": x, "b": np.float64(2), "k": 3}, 2
    )
    np.testing.assert_array_equal(slopes["y"]["x"], 2 * np.eye(2, 3))
    np.testing.assert_array_equal(slopes["y"]["b"], x[:2])
    assert slopes["n"] is None
    assert slopes["y"]["k"] is None
    by_both = tm.jacobian(lambda a, b: a * b, (1, 0), mode=mode)(x, 2.0)
    np.testing.assert_array_equal(by_both[0], x)
    np.testing.assert_array_equal(by_both[1], 2 * np.eye(3))


def test_shapes_of_a_jacobian(rng):
    x = rng.standard_normal((2, 3))
    f = lambda x: np.stack([x.T, x.T**2])
    want = np.zeros((2, 3, 2, 2, 3))
    for i, j in np.ndindex(2, 3):
        want[0, j, i, i, j] = 1
        want[1, j, i, i, j] = 2 * x[i, j]
    for mode in ("forward", "reverse"):
        np.testing.assert_allclose(tm.jacobian(f, mode=mode)(x), want)
    assert tm.jacobian(np.sin)(np.ones(0)).shape == (0, 0)
    assert tm.jacobian(np.sin)(1.0) == np.cos(1.0)


def test_the_mode_with_fewer_lanes_is_taken():
    wide, tall = np.ones((2, 50)), np.ones((50, 2))
    for a, mode in ((wide, "reverse"), (tall, "forward")):
        f = lambda x, a=a: np.tanh(a @ x)
        texts = [
            tm.jit(tm.jacobian(f, mode=m)).lower(np.ones(a.shape[1])).text for m in (None, mode)
        ]
        assert texts[0].count("\n") == texts[1].count("\n")


def test_jacobians_go_through_loops(rng):
    xs = rng.standard_normal(4)
    forward, reverse = (tm.jacobian(scanned, mode=m)(xs) for m in ("forward", "reverse"))
    np.testing.assert_allclose(forward, reverse, atol=1e-12)
    step = 1e-6
    differences = [
        (scanned(xs + step * e) - scanned(xs - step * e)) / (2 * step) for e in np.eye(4)
    ]
    np.testing.assert_allclose(forward, np.transpose(differences), atol=1e-8)
    root = tm.jacobian(lambda a: np.array([newton(a[0]), newton(a[1])]), mode="forward")
    np.testing.assert_allclose(root(np.array([4.0, 9])), [[0.25, 0], [0, 1 / 6]], atol=1e-9)


def test_hessian(rng):
    x = rng.standard_normal(3)
    f = lambda x: (x**3).sum() * x[0] + np.exp(x[1] * x[2])
    step = 1e-5
    slope = tm.grad(f)
    want = [(slope(x + step * e) - slope(x - step * e)) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(tm.hessian(f)(x), want, rtol=1e-6, atol=1e-8)
    both = tm.hessian(lambda a, b: (a * b**2).sum(), (0, 1))(x, np.float64(3))
    np.testing.assert_allclose(both[0][1], np.full(3, 6.0))
    np.testing.assert_allclose(both[1][0], np.full(3, 6.0))
    np.testing.assert_allclose(both[1][1], 2 * x.sum())
    np.testing.assert_allclose(
        tm.vmap(tm.hessian(f))(np.stack([x, x]))[1], want, rtol=1e-6, atol=1e-8
    )
    curvature = tm.jit(tm.hessian(f))
    for n in (3, 5, 8):
        assert curvature(np.ones(n)).shape == (n, n)
    assert len(curvature.explain_recompiles()) == 1


def test_what_has_no_jacobian_says_so():
    with pytest.raises(TypeError, match="TM120"):
        tm.jacobian(np.sin)(np.ones(3) * 1j)
    with pytest.raises(TypeError, match="TM120"):
        tm.jacobian(lambda x: x * 1j, mode="reverse")(np.ones(3))
    np.testing.assert_array_equal(tm.jacobian(lambda x: x * 1j)(np.ones(2)), 1j * np.eye(2))
    with pytest.raises(ValueError, match="TM203"):
        tm.jacobian(np.sin, mode="sideways")
    with pytest.raises(ValueError, match="TM203"):
        tm.jacobian(np.sin, argnums=1)(np.ones(3))
