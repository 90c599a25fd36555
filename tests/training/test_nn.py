"""`tm.nn` and `tm.special`: values against SciPy, gradients against differences, edges."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.special as sp

import tracemill as tm
from tracemill import grad, nn, special
from tracemill.compiler.errors import ArgError
from tracemill.random import Generator

EDGES = np.array([0.0, -0.0, 1e-300, -1e-300, 0.5, -0.5, 1, -1, 5, -5, 30, -30, 40, -700, 800,
                  -1e4, np.inf, -np.inf, np.nan])  # fmt: skip

REFERENCES = {
    "erf": sp.erf,
    "erfc": sp.erfc,
    "ndtr": sp.ndtr,
    "log_ndtr": sp.log_ndtr,
    "expit": sp.expit,
    "log_expit": sp.log_expit,
    "softplus": lambda x: np.logaddexp(x, 0),
    "logit": lambda x: sp.logit(x),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", REFERENCES)
def test_special_functions(name, dtype, rng):
    x = np.concatenate([EDGES, rng.normal(size=200) * 4]).astype(dtype)
    if name == "logit":
        x = np.concatenate([[0, 1, 0.5, 1e-30, -1, 2], rng.random(200)]).astype(dtype)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = REFERENCES[name](x.astype(np.float64))
        narrow = wanted.astype(dtype)
    found = getattr(special, name)(x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, narrow, rtol=3e-6 if dtype is np.float32 else 2e-13,
                               atol=1e-37 if dtype is np.float32 else 1e-300)  # fmt: skip


def test_integers_and_numbers_are_taken_as_floats():
    np.testing.assert_allclose(special.erf(1), sp.erf(1), rtol=1e-15)
    np.testing.assert_allclose(special.expit(np.array([0, 1])), sp.expit([0.0, 1.0]))
    assert special.expit(np.array([0, 1])).dtype == np.float64
    assert special.expit(np.array([0, 1], np.float16)).dtype == np.float16


def test_xlogy():
    x = np.array([0.0, 0.0, 0.0, 1.0, 2.0, 0.0])
    y = np.array([0.0, 3.0, np.nan, 0.0, 3.0, -1.0])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(special.xlogy(x, y), sp.xlogy(x, y))


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp(axis, keepdims, rng):
    a = rng.normal(size=(4, 5)) * 300
    a[1], a[:, 2] = -np.inf, -np.inf
    a[3, 3] = 1e308
    wanted = sp.logsumexp(a, axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(special.logsumexp(a, axis, keepdims), wanted)


def test_logsumexp_of_no_weight_is_minus_infinity_and_has_a_gradient():
    a = np.array([-np.inf, -np.inf])
    assert special.logsumexp(a) == -np.inf
    np.testing.assert_array_equal(grad(special.logsumexp)(a), [0, 0])
    assert special.logsumexp(np.array([np.inf, 0.0])) == np.inf


@pytest.mark.parametrize("name", ["expit", "log_expit", "softplus", "ndtr", "erf"])
def test_gradients_are_finite_far_out(name):
    slope = grad(lambda x: getattr(special, name)(x).sum())
    found = slope(np.array([-800.0, -40.0, 0.0, 40.0, 800.0]))
    assert np.isfinite(found).all()
    h = 1e-6
    for x in (0.0, 0.7, -1.3):
        wanted = (REFERENCES[name](x + h) - REFERENCES[name](x - h)) / (2 * h)
        np.testing.assert_allclose(slope(np.array([x])), [wanted], rtol=1e-6)


def test_softmax_and_its_logarithm(rng):
    x = rng.normal(size=(3, 7)) * 50
    for axis in (-1, 0, (0, 1)):
        np.testing.assert_allclose(nn.softmax(x, axis), sp.softmax(x, axis), rtol=1e-12)
        np.testing.assert_allclose(
            nn.log_softmax(x, axis), sp.log_softmax(x, axis), rtol=1e-12, atol=1e-15
        )
    assert nn.softmax(np.array([1e4, 0, -1e4], np.float32)).tolist() == [1, 0, 0]


def test_activations(rng):
    x = np.concatenate([rng.normal(size=50) * 3, [0.0, -0.0, np.inf]])
    np.testing.assert_array_equal(nn.relu(x), np.maximum(0, x))
    np.testing.assert_allclose(nn.silu(x), x * sp.expit(x))
    np.testing.assert_allclose(nn.gelu(x), x * sp.ndtr(x), rtol=1e-12)
    np.testing.assert_allclose(nn.gelu(x[:-1], approximate=True), nn.gelu(x[:-1]), atol=2e-3)
    assert np.isnan(nn.relu(np.array([np.nan])))
    np.testing.assert_array_equal(
        grad(lambda x: nn.relu(x).sum())(np.array([-1.0, 0, 2])), [0, 0, 1]
    )
    assert nn.gelu(x.astype(np.float32)).dtype == np.float32


def test_dense(rng):
    x, w, b = rng.normal(size=(5, 3)), rng.normal(size=(3, 2)), rng.normal(size=2)
    np.testing.assert_allclose(nn.dense(x, w, b), x @ w + b)
    np.testing.assert_allclose(nn.dense(x, tm.Variable(w)), x @ w)


def test_layer_norm(rng):
    x = rng.normal(size=(4, 6)) * 3 + 5
    scale, bias = rng.normal(size=6), rng.normal(size=6)
    wanted = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(nn.layer_norm(x), wanted)
    np.testing.assert_allclose(nn.layer_norm(x, scale, bias), wanted * scale + bias)


def test_cross_entropy(rng):
    logits = rng.normal(size=(6, 4)) * 30
    classes = rng.integers(0, 4, 6)
    losses = -sp.log_softmax(logits, -1)[np.arange(6), classes]
    np.testing.assert_allclose(nn.cross_entropy(logits, classes), losses.mean())
    np.testing.assert_allclose(nn.cross_entropy(logits, classes, "sum"), losses.sum())
    np.testing.assert_allclose(nn.cross_entropy(logits, classes, "none"), losses, atol=1e-14)
    np.testing.assert_allclose(
        nn.cross_entropy(logits, np.eye(4)[classes], "none"), losses, atol=1e-14
    )
    np.testing.assert_allclose(
        nn.cross_entropy(logits, classes.astype(np.uint8), "none"), losses, atol=1e-14
    )
    found = grad(nn.cross_entropy)(logits, classes)
    np.testing.assert_allclose(found, (sp.softmax(logits, -1) - np.eye(4)[classes]) / 6, atol=1e-12)
    with pytest.raises(ArgError, match="reduction"):
        nn.cross_entropy(logits, classes, "max")


@pytest.mark.parametrize("wrong", [4, -1, 250])
def test_a_class_that_is_none_fails_the_call(wrong):
    with pytest.raises(IndexError):
        nn.cross_entropy(np.zeros((2, 4)), np.array([0, wrong]))
    assert nn.cross_entropy(np.zeros((2, 4)), np.array([0, 3])) == np.log(4)


def test_dropout():
    x = np.ones((200, 50), np.float32)
    g = Generator(1)
    y = nn.dropout(x, 0.25, g)
    assert y.dtype == np.float32
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.02
    assert (nn.dropout(x, 0.25, g) != y).any()
    assert nn.dropout(x, 0.25, g, training=False) is x
    np.testing.assert_array_equal(nn.dropout(x, 0.0, g), x)
    with pytest.raises(ArgError):
        nn.dropout(x, 1.0, g)
    slope = grad(lambda x: nn.dropout(x, 0.5, g).sum())(x)
    assert set(np.unique(slope)) == {np.float32(0), np.float32(2)}
