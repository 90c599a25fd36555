"""Convolution and its transpose: values against SciPy, gradients against differences, refusals."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import scipy.signal

import tracemill as tm
from tracemill import nn
from tracemill.compiler.errors import ArgError, ShapeError

pytestmark = pytest.mark.cpu

LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
IMAGES = {1: (17,), 2: (9, 8), 3: (7, 6, 5)}
WINDOWS = {1: (3,), 2: (3, 2), 3: (2, 3, 2)}


def spread_out(w, dilation):
    """Weights with zeros between them."""
    shape = [(n - 1) * dilation + 1 for n in w.shape[2:]]
    made = np.zeros((*w.shape[:2], *shape), w.dtype)
    made[(..., *[slice(None, None, dilation)] * (w.ndim - 2))] = w
    return made


def convolved(x, w, stride=1, padding=0, dilation=1, groups=1):
    """Channels first, by SciPy's correlation of one image with one window."""
    wide = np.pad(x, [(0, 0)] * 2 + [(padding, padding)] * (x.ndim - 2)).astype(np.float64)
    w = spread_out(w, dilation).astype(np.float64)
    outputs, inner = w.shape[0] // groups, w.shape[1]
    steps = (slice(None, None, stride),) * (x.ndim - 2)
    made = []
    for image in wide:
        rows = []
        for o in range(w.shape[0]):
            first = o // outputs * inner
            parts = [
                scipy.signal.correlate(image[first + c], w[o, c], "valid") for c in range(inner)
            ]
            rows.append(sum(parts)[steps])
        made.append(rows)
    return np.array(made)


def channels_last(x):
    return np.moveaxis(x, 1, -1)


def weights_last(w):
    return np.moveaxis(w, (0, 1), (-1, -2))


def near(found, wanted, depth):
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, atol=4e-7 * depth**0.5 * 8, rtol=0)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    "options",
    [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": 2}, {"groups": 2, "stride": 3},
     {"groups": 4, "padding": 1}],
    ids=str,
)  # fmt: skip
def test_convolution_is_correlation_of_channels(rank, options, rng):
    groups = options.get("groups", 1)
    x = rng.standard_normal((2, 4, *IMAGES[rank])).astype(np.float32)
    w = rng.standard_normal((8, 4 // groups, *WINDOWS[rank])).astype(np.float32)
    b = rng.standard_normal(8).astype(np.float32)
    want = convolved(x, w, **options) + b.reshape(-1, *[1] * rank)
    near(nn.conv(x, w, b, **options), want, w[0].size)
    last = nn.conv(channels_last(x), weights_last(w), b, layout=LAST[rank], **options)
    near(last, channels_last(want), w[0].size)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.complex64, np.int32])
def test_convolution_of_other_dtypes(dtype, rng):
    x, w = (
        (rng.standard_normal(s) * 4).astype(dtype) for s in ((2, 3, 6, 9), (5, 3, 2, 3))
    )  # fmt: skip
    if dtype is np.complex64:
        x = x + 1j * rng.standard_normal(x.shape).astype(np.float32)
        want = convolved(x.real, w.real) + 1j * convolved(x.imag, w.real)
    else:
        want = convolved(x, w)
    found = nn.conv(x, w)
    assert found.dtype == x.dtype
    tolerance = {np.float16: 0.3, np.float64: 1e-12, np.complex64: 1e-4, np.int32: 0}[dtype]
    np.testing.assert_allclose(found, want, atol=tolerance, rtol=0)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 6, 7, 10])
def test_same_padding_keeps_the_size_divided_by_the_stride(stride, size, rng):
    x, w = rng.standard_normal((1, 2, size)), rng.standard_normal((3, 2, 4))
    found = nn.conv(x, w, stride=stride, padding="same")
    places = -(-size // stride)
    total = max((places - 1) * stride + 4 - size, 0)
    padded = np.pad(x, ((0, 0), (0, 0), (total // 2, total - total // 2)))
    assert found.shape == (1, 3, places)
    np.testing.assert_allclose(found, convolved(padded, w, stride)[..., :places], atol=1e-12)


def test_padding_by_pairs(rng):
    x, w = rng.standard_normal((1, 2, 5, 4)), rng.standard_normal((3, 2, 3, 3))
    padded = np.pad(x, ((0, 0), (0, 0), (2, 0), (1, 3)))
    found = nn.conv(x, w, padding=((2, 0), (1, 3)))
    np.testing.assert_allclose(found, convolved(padded, w), atol=1e-12)
    np.testing.assert_array_equal(nn.conv(x, w, padding="valid"), nn.conv(x, w))


@pytest.mark.parametrize("layout", [None, "NHWC"])
@pytest.mark.parametrize(
    "options",
    [{}, {"stride": 2, "padding": 1}, {"stride": 3, "output_padding": 2}, {"groups": 2},
     {"dilation": 2, "padding": ((3, 0), (1, 2))}, {"padding": 2}],
    ids=str,
)  # fmt: skip
def test_the_transpose_is_the_transpose(options, layout, rng):
    """<conv(a), x> is <a, conv_transpose(x)> for every a."""
    groups = options.get("groups", 1)
    x, w = rng.standard_normal((2, 4, 4, 5)), rng.standard_normal((4, 6 // groups, 3, 2))
    if layout:
        x, w = channels_last(x), weights_last(w)
    y = nn.conv_transpose(x, w, layout=layout, **options)
    forward = {key: value for key, value in options.items() if key != "output_padding"}
    a = rng.standard_normal(y.shape)
    back = nn.conv(a, w, layout=layout, **forward)
    assert back.shape == x.shape
    np.testing.assert_allclose(np.sum(back * x), np.sum(a * y), rtol=1e-11)


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


@pytest.mark.parametrize("layout", [None, "NHWC"])
@pytest.mark.parametrize(
    "options",
    [{"padding": 1}, {"stride": 2}, {"stride": 2, "padding": 1}, {"stride": 3, "padding": 2},
     {"dilation": 2, "padding": 1}, {"groups": 2, "stride": 2}, {"stride": 2, "dilation": 2}],
    ids=str,
)  # fmt: skip
def test_gradients_are_differences(options, layout, rng):
    groups = options.get("groups", 1)
    x, w = rng.standard_normal((2, 2, 6, 5)), rng.standard_normal((4, 2 // groups, 3, 2))
    if layout:
        x, w = channels_last(x).copy(), weights_last(w).copy()
    weight = rng.standard_normal(nn.conv(x, w, layout=layout, **options).shape)

    @tm.jit
    def loss(x, w):
        return np.sum(weight * np.tanh(nn.conv(x, w, layout=layout, **options)))

    by_x, by_w = tm.jit(tm.grad(loss, argnums=(0, 1)))(x, w)
    np.testing.assert_allclose(by_x, differences(lambda a: loss(a, w), x), atol=2e-8)
    np.testing.assert_allclose(by_w, differences(lambda a: loss(x, a), w), atol=2e-8)


def test_gradients_of_the_transpose(rng):
    x, w = rng.standard_normal((1, 2, 3, 4)), rng.standard_normal((2, 3, 3, 2))

    @tm.jit
    def loss(x, w):
        return np.sum(np.sin(nn.conv_transpose(x, w, stride=2, padding=1)))

    by_x, by_w = tm.grad(loss, argnums=(0, 1))(x, w)
    np.testing.assert_allclose(by_x, differences(lambda a: loss(a, w), x), atol=2e-8)
    np.testing.assert_allclose(by_w, differences(lambda a: loss(x, a), w), atol=2e-8)


def test_second_derivatives(rng):
    x, w = rng.standard_normal((1, 2, 5)), rng.standard_normal((2, 2, 3))

    @tm.jit
    def slope(x, w):
        inner = tm.grad(lambda w: np.sum(nn.conv(x, w, stride=2) ** 3))(w)
        return np.sum(inner * inner)

    by_x = tm.jit(tm.grad(slope))(x, w)
    np.testing.assert_allclose(by_x, differences(lambda a: slope(a, w), x), rtol=1e-5, atol=1e-6)


def test_a_layer_is_one_kernel_beside_its_padding(rng):
    @tm.jit
    def layer(x, w, b, y):
        return nn.relu(nn.conv(x, w, b, padding=1) + y)

    @tm.jit
    def last(x, w, b):
        return nn.relu(nn.conv(x, w, b, layout="NHWC"))

    x, w = rng.standard_normal((2, 8, 9, 9)), rng.standard_normal((8, 8, 3, 3))
    assert str(layer.lower(x, w, w[:, 0, 0, 0], x).kernels).count("kernel @") == 2
    x, w = channels_last(x).copy(), weights_last(w).copy()
    assert str(last.lower(x, w, w[0, 0, 0]).kernels).count("kernel @") == 1


def test_sizes_stay_open(rng):
    traced = []

    @tm.jit
    def f(x, w):
        traced.append(np.shape(x))
        return nn.conv(x, w, stride=2, padding=1)

    w = rng.standard_normal((9, 10, 3, 3))
    for n, h, v in ((3, 10, 12), (4, 31, 17), (2, 64, 9), (9, 8, 8)):
        x = rng.standard_normal((n, 10, h, v))
        np.testing.assert_allclose(f(x, w), convolved(x, w, 2, 1), atol=1e-11)
    assert len(traced) == 1


@pytest.mark.parametrize("layout", [None, "NHWC"])
def test_arrays_that_are_no_plain_blocks(layout, rng):
    x = rng.standard_normal((3, 6, 20, 9)).transpose(0, 1, 3, 2)[::-1, ::2, :, 1::2]
    w = rng.standard_normal((3, 10, 2, 7)).transpose(1, 0, 3, 2)[::2, :, ::3, ::-1]
    want = convolved(x, w)
    if layout:
        found = channels_last(want)
        np.testing.assert_allclose(
            nn.conv(channels_last(x), weights_last(w), layout=layout), found, atol=1e-11
        )
    else:
        np.testing.assert_allclose(nn.conv(x, w), want, atol=1e-11)


@pytest.mark.parametrize("layout", [None, "NHWC"])
def test_sizes_zero_and_one(layout, rng):
    for n, c, o in itertools.product((0, 1, 2), (0, 1, 3), (0, 1, 5)):
        x, w = rng.standard_normal((n, c, 4, 3)), rng.standard_normal((o, c, 1, 3))
        want = convolved(x, w) if n and c and o else np.zeros((n, o, 4, 1))
        if layout:
            x, w, want = channels_last(x), weights_last(w), channels_last(want)
        np.testing.assert_allclose(nn.conv(x, w, layout=layout), want, atol=1e-12)


def test_variables_are_weights(rng):
    x = rng.standard_normal((1, 2, 5, 5))
    w = tm.Variable(rng.standard_normal((3, 2, 3, 3)), name="conv_weights")
    b = tm.Variable(rng.standard_normal(3), name="conv_bias")

    @tm.jit
    def f(x):
        return nn.conv(x, w, b)

    want = convolved(x, np.asarray(w)) + np.asarray(b)[:, None, None]
    np.testing.assert_allclose(f(x), want, atol=1e-12)


def test_threads_do_not_show_in_a_result(rng):
    x = rng.standard_normal((2, 9, 40, 33)).astype(np.float32)
    w = rng.standard_normal((100, 9, 3, 3)).astype(np.float32)
    f = tm.jit(lambda x, w: nn.conv(x, w, padding=1))
    results, before = set(), tm.num_threads()
    try:
        for threads in (1, 2, 3):
            tm.set_num_threads(threads)
            results.add(f(x, w).tobytes())
    finally:
        tm.set_num_threads(before)
    assert len(results) == 1


X, W = np.zeros((1, 4, 8, 8)), np.zeros((6, 4, 3, 3))


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        (lambda: nn.conv(X, W, stride=0), "TM256", "stride must be at least 1, got 0"),
        (lambda: nn.conv(X, W, dilation=-1), "TM256", "dilation must be at least 1"),
        (lambda: nn.conv(X, W, groups=0), "TM256", "groups must be at least 1"),
        (lambda: nn.conv(X, W[:, :1], groups=4), "TM256", "4 groups cannot share out 6 outputs"),
        (lambda: nn.conv(X, W, groups=2), "TM256", "4 channels, the weights take 4 in each"),
        (lambda: nn.conv(X, W[:, :3]), "TM209", "4 channels, the weights take 3"),
        (lambda: nn.conv(X, W, padding=-1), "TM256", "padding must not be negative"),
        (lambda: nn.conv(X, W, padding="full"), "TM256", "'valid', 'same'"),
        (lambda: nn.conv(X, W, padding=(1, 2, 3)), "TM256", "2 numbers or pairs, got 3"),
        (lambda: nn.conv(X, W, stride=(1, 2, 3)), "TM256", "one number or 2"),
        (lambda: nn.conv(X, W, stride=1.5), "TM256", "needs integers"),
        (lambda: nn.conv(X, W, dilation=4), "TM207", "reaches over 9 elements"),
        (lambda: nn.conv(X, W, layout="NWC"), "TM203", "layout is 'NCHW' or 'NHWC'"),
        (lambda: nn.conv(X[0, 0], W), "TM208", "rank 3 to 5"),
        (lambda: nn.conv(X, W[0]), "TM208", "needs weights of rank 4"),
        (lambda: nn.conv(X, W, np.zeros(5)), "TM209", "one number for each output"),
        (lambda: nn.conv_transpose(X, W), "TM209", "4 channels, the weights take 6"),
        (lambda: nn.conv_transpose(X, W[:4], output_padding=1), "TM256", "output_padding"),
    ],
)  # fmt: skip
def test_refusals_say_what_was_got(call, code, words):
    with pytest.raises((ArgError, ShapeError)) as caught:
        call()
    assert caught.value.code == code
    assert words in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_nothing_warns(rng):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.conv(rng.standard_normal((1, 2, 4)), rng.standard_normal((2, 2, 3)))
