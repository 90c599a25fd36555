"""Pooling and normalisation of images: values by NumPy's windows, gradients by differences."""

from __future__ import annotations

import numpy as np
import pytest

import tracemill as tm
from tracemill import nn
from tracemill.compiler.errors import TracemillError

pytestmark = pytest.mark.cpu


def windows_of(x, window, stride, padding, dilation, fill):
    """[..., places, positions] of all axes but the first two, channels first."""
    count = x.ndim - 2
    x = np.pad(x, [(0, 0)] * 2 + [(padding, padding)] * count, constant_values=fill)
    reach = (window - 1) * dilation + 1
    seen = np.lib.stride_tricks.sliding_window_view(x, (reach,) * count, tuple(range(2, x.ndim)))
    places = (slice(None, None, stride),) * count
    return seen[(slice(None), slice(None), *places, *[slice(None, None, dilation)] * count)]


CASES = [(2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 1), (5, 3, 2, 1), (2, 1, 0, 3), (1, 2, 0, 1)]
LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_max_pool(case, rank, rng):
    window, stride, padding, dilation = case
    x = rng.standard_normal((2, 3, 11, 7, 6)[: rank + 2]).astype(np.float32)
    want = windows_of(x, *case, -np.inf).max(axis=tuple(range(-rank, 0)))
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    np.testing.assert_array_equal(nn.max_pool(x, window, **options), want)
    last = nn.max_pool(np.moveaxis(x, 1, -1), window, layout=LAST[rank], **options)
    np.testing.assert_array_equal(last, np.moveaxis(want, 1, -1))


def test_max_pool_of_integers_and_nan(rng):
    x = rng.integers(-128, 127, (1, 2, 9, 9)).astype(np.int8)
    want = windows_of(x, 3, 2, 1, 1, -128).max(axis=(-1, -2))
    np.testing.assert_array_equal(nn.max_pool(x, 3, stride=2, padding=1), want)
    y = np.array([[[1.0, np.nan, 2, 3]]])
    np.testing.assert_array_equal(nn.max_pool(y, 2), [[[np.nan, 3]]])


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("count_padding", [True, False])
def test_avg_pool(case, count_padding, rng):
    window, stride, padding, dilation = case
    x = rng.standard_normal((2, 3, 10, 7))
    seen = windows_of(x, *case, 0).sum(axis=(-1, -2))
    real = windows_of(np.ones_like(x), *case, 0).sum(axis=(-1, -2))
    want = seen / (window**2 if count_padding else real)
    options = {"stride": stride, "padding": padding, "dilation": dilation,
               "count_padding": count_padding}  # fmt: skip
    np.testing.assert_allclose(nn.avg_pool(x, window, **options), want, rtol=1e-12, atol=1e-14)
    last = nn.avg_pool(np.moveaxis(x, 1, -1), window, layout="NHWC", **options)
    np.testing.assert_allclose(last, np.moveaxis(want, 1, -1), rtol=1e-12, atol=1e-14)


def test_integers_become_floats():
    x = np.arange(8).reshape(1, 1, 8)
    np.testing.assert_array_equal(nn.avg_pool(x, 2), [[[0.5, 2.5, 4.5, 6.5]]])


def differences(function, x, step=1e-6):
    found = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        ends = []
        for sign in (1, -1):
            moved = x.copy()
            moved[at] += sign * step
            ends.append(float(function(moved)))
        found[at] = (ends[0] - ends[1]) / (2 * step)
    return found


FUNCTIONS = {
    "max": lambda x: nn.max_pool(x, 3, stride=2, padding=1),
    "max, apart": lambda x: nn.max_pool(x, 2),
    "max, dilated": lambda x: nn.max_pool(x, 2, stride=1, dilation=2),
    "avg": lambda x: nn.avg_pool(x, 3, stride=2, padding=1),
    "avg, real": lambda x: nn.avg_pool(x, 3, stride=1, padding=1, count_padding=False),
    "avg, last": lambda x: nn.avg_pool(x, (2, 1), layout="NHWC"),
    "batch_norm": lambda x: nn.batch_norm(x, *nn.batch_statistics(x)),
    "group_norm": lambda x: nn.group_norm(x, 2),
    "local_response_norm": lambda x: nn.local_response_norm(x, 3, alpha=0.5),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_differences(name, rng):
    x = rng.permutation(2 * 4 * 5 * 6).reshape(2, 4, 5, 6) * 0.05  # no ties nearby
    function = FUNCTIONS[name]
    weight = rng.standard_normal(function(x).shape)
    loss = tm.jit(lambda x: np.sum(weight * function(x)))
    np.testing.assert_allclose(tm.jit(tm.grad(loss))(x), differences(loss, x), atol=3e-8)


def test_of_equal_elements_the_first_gets_the_gradient():
    x = np.ones((1, 1, 4, 4))
    slope = tm.grad(lambda x: np.sum(nn.max_pool(x, 2)))(x)
    want = np.zeros((4, 4))
    want[::2, ::2] = 1
    np.testing.assert_array_equal(slope[0, 0], want)


def test_pooling_is_one_kernel(rng):
    x = rng.standard_normal((2, 3, 12, 12))
    f = tm.jit(lambda x: nn.max_pool(nn.relu(x), 3, stride=2, padding=1))
    assert str(f.lower(x).kernels).count("kernel @") == 1


def test_batch_norm_by_its_formula(rng):
    x, scale, bias = rng.standard_normal((5, 4, 3, 6)), *rng.standard_normal((2, 4))
    mean, variance = nn.batch_statistics(x)
    np.testing.assert_allclose(mean, x.mean((0, 2, 3)), atol=1e-14)
    np.testing.assert_allclose(variance, x.var((0, 2, 3)), rtol=1e-12)
    each = [a[:, None, None] for a in (mean, variance, scale, bias)]
    want = (x - each[0]) / np.sqrt(each[1] + 1e-5) * each[2] + each[3]
    np.testing.assert_allclose(nn.batch_norm(x, mean, variance, scale, bias), want, atol=1e-13)
    last = nn.batch_norm(np.moveaxis(x, 1, -1), mean, variance, scale, bias, layout="NHWC")
    np.testing.assert_allclose(last, np.moveaxis(want, 1, -1), atol=1e-13)
    rows = x.reshape(-1, 4)
    np.testing.assert_allclose(
        nn.batch_norm(rows, *nn.batch_statistics(rows)),
        (rows - rows.mean(0)) / np.sqrt(rows.var(0) + 1e-5), atol=1e-13,
    )  # fmt: skip


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm_by_its_formula(groups, rng):
    x, scale, bias = rng.standard_normal((3, 6, 4, 5)), *rng.standard_normal((2, 6))
    parts = x.reshape(3, groups, -1)
    mean, variance = parts.mean(-1, keepdims=True), parts.var(-1, keepdims=True)
    want = ((parts - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape)
    want = want * scale[:, None, None] + bias[:, None, None]
    np.testing.assert_allclose(nn.group_norm(x, groups, scale, bias), want, atol=1e-13)
    last = nn.group_norm(np.moveaxis(x, 1, -1), groups, scale, bias, layout="NHWC")
    np.testing.assert_allclose(last, np.moveaxis(want, 1, -1), atol=1e-13)


@pytest.mark.parametrize("size", [1, 4, 5])
def test_local_response_norm_by_its_formula(size, rng):
    x = rng.standard_normal((2, 7, 3, 4))
    want = np.zeros_like(x)
    for c in range(7):
        first, last = max(0, c - size // 2), min(7, c + (size - 1) // 2 + 1)
        total = (x[:, first:last] ** 2).sum(1)
        want[:, c] = x[:, c] / (2 + 0.3 * total / size) ** 0.75
    found = nn.local_response_norm(x, size, alpha=0.3, k=2.0)
    np.testing.assert_allclose(found, want, rtol=1e-12)


X = np.zeros((1, 4, 8, 8))


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        (lambda: nn.max_pool(X, 0), "TM256", "window must be at least 1"),
        (lambda: nn.max_pool(X, 2, padding=2), "TM256", "padding must be less"),
        (lambda: nn.max_pool(X, 9), "TM207", "reaches over 9 elements"),
        (lambda: nn.avg_pool(X, 3, stride=0), "TM256", "stride must be at least 1"),
        (lambda: nn.max_pool(X.astype(complex), 2), "TM202", "real numbers"),
        (lambda: nn.group_norm(X, 3), "TM256", "3 groups cannot share out 4 channels"),
        (lambda: nn.batch_norm(X, np.zeros((4, 1)), np.ones(4)), "TM208", "one number per channel"),
    ],
)
def test_refusals_say_what_was_got(call, code, words):
    with pytest.raises(TracemillError) as caught:
        call()
    assert caught.value.code == code
    assert words in str(caught.value)
