"""What random programs do besides: control flow, layers, special functions, bits, libraries.

Lines as in numpy_lines.py that name ``tm`` and ``also``. In a compiled program these are
tracemill and `TRACED`; when NumPy runs the line they are `PLAIN_TM` and `PLAIN`, which say the
same in plain Python and NumPy: loops, windows and `math`. `F` is an array of floats, `G` a real
matrix, `H` a matrix of floats.

Not here: how lines become random programs, how results are compared (tests/differential).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import scipy.special as sp
from numpy.lib.stride_tricks import sliding_window_view

import numpy_lines
import tracemill as tm
from numpy_lines import Line, kind_of

EXACT = """
f: np.array([np.deg2rad({0}), np.radians({0})])
f: np.array([np.degrees({0}), np.rad2deg({0})])
F: ({0} + 1).astype(np.float64).view(np.int64)
R: tm.cond(np.any({0} > 1), lambda x: x + 1, lambda x: x * 2, {0})
Rb: tm.cond(np.all({1}), lambda x: np.roll(x, 1), lambda x: x - {0}, {0})
R: tm.fori_loop(0, 3, lambda i, x: np.roll(x, 1) + x, {0})
R: tm.fori_loop(0, {0}.shape[0], lambda i, x: x - {0}[i], {0})
R: tm.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, {0}))[1]
R: tm.scan(lambda c, x: (np.where(x > c, x, c), c - x), {0}[0], {0})[1]
R: tm.switch(np.argmax({0}) % 3, [lambda x: x + 1, lambda x: np.roll(x, 1), np.abs], {0})
R: tm.map(lambda x: x + x.max(initial=1), {0})
A: tm.host_call(lambda x: x.T, {0}, result={0}.T)
R: tm.checkpoint(lambda x: np.roll(x, 1) - x)({0})
F: also.with_a_gradient({0})
F: also.with_a_tangent({0})
R: tm.top_k({0}, 2)[0]
R: tm.top_k({0}, 1)[1]
R: tm.top_k({0}, 2, axis={axis})[1]
G: tm.nn.max_pool({0}[None, None], 2, stride=1)
G: tm.nn.max_pool({0}[None, None], (2, 1), padding=(1, 0))
A: tm.stop_gradient({0})
A: tm.nonzero({0}, {0}.size)[0]
A: tm.flatnonzero({0} > 1, {0}.size + 2, fill_value=-1)
A: tm.argwhere({0}, {0}.size)
A: also.drawn({0}.shape)
H: also.window_gradient(np.clip(np.rint({0}), -9, 9) + 0)
"""

ROUNDED = """
f: np.sinc({0})
F: tm.special.erf({0})
F: tm.special.erfc(np.clip({0}, -3, 3))
F: tm.special.expit({0})
F: tm.special.softplus({0})
F: tm.special.ndtr(np.clip({0}, -3, 4))
F: tm.special.log_ndtr(np.clip({0}, -3, 4))
F: tm.special.logit(np.clip({0} / 4, 0, 1))
FF: tm.special.xlogy({0}, np.abs({1}))
FF: tm.special.xlog1py({0}, np.abs({1}))
F: tm.special.entr(np.abs({0}))
"""

SUMS = """
F: tm.special.gammaln(np.abs({0}) + 3)
F: tm.special.digamma(np.abs({0}) + 2)
F: tm.special.ndtri(np.clip({0} / 4, 0.1, 0.9))
F: tm.special.erfinv(np.clip({0} / 4, -0.9, 0.9))
F: tm.special.polygamma(1, np.abs({0}) + 1)
NN: np.convolve({0}.ravel(), {1}.ravel()[:3])
NN: np.correlate({0}.ravel(), {1}.ravel()[:4], "same")
HH: tm.nn.conv({0}[None, None], {1}[None, None, :2, :2])
GG: tm.nn.conv({0}[None, None], {1}[None, None, :1, :2], stride=2, padding=1)
H: tm.nn.avg_pool({0}[None, None], 2, stride=1)
H: np.linalg.det({definite})
H: np.linalg.slogdet({definite})[1]
H: np.linalg.inv({definite})
H: np.linalg.solve({definite}, {0})
H: np.linalg.cholesky({definite})
H: np.linalg.eigvalsh({definite})
H: np.linalg.svd({0}, compute_uv=False)
F: np.fft.fft({0})
F: np.fft.irfft(np.fft.rfft({0}))
"""

# A matrix that is far from singular: of others what a library gives is up to the last digits.
# In float64 at once, for the product is one of the roundings that the matrix spreads.
WIDE = "np.clip({0}, -2, 2).astype(np.float64)"
DEFINITE = f"{WIDE} @ {WIDE}.T + np.eye({{0}}.shape[0])"

KINDS: Mapping[str, Callable[[Any], bool]] = {
    **numpy_lines.KINDS,
    "F": lambda v: np.ndim(v) > 0 and kind_of(v) == "f",
    "G": lambda v: np.ndim(v) == 2 and kind_of(v) in "if",
    "H": lambda v: np.ndim(v) == 2 and kind_of(v) == "f",
}
EXACT_ROOT_HALF = Fraction(math.isqrt(10**80 // 2), 10**40)
ROOT_HALF = math.sqrt(0.5)
SEED = 7
GENERATOR = tm.random.Generator(SEED)


def lines() -> list[Line]:
    """The whole catalogue."""
    sums = SUMS.replace("{definite}", DEFINITE)
    return numpy_lines.lines_of({"exact": EXACT, "rounded": ROUNDED, "sum": sums})


# -- control flow


def _cond(predicate: Any, if_true: Any, if_false: Any, *operands: Any) -> Any:
    return (if_true if predicate else if_false)(*operands)


def _while_loop(test: Any, body: Any, carry: Any) -> Any:
    while test(carry):
        carry = body(carry)
    return carry


def _fori_loop(lower: int, upper: int, body: Any, carry: Any) -> Any:
    for i in range(lower, upper):
        carry = body(i, carry)
    return carry


def _scan(body: Any, carry: Any, xs: Any) -> Any:
    made = []
    for x in xs:
        carry, y = body(carry, x)
        made.append(y)
    return carry, np.stack(made)


def _map(function: Any, xs: Any) -> Any:
    return np.stack([function(x) for x in xs])


def _turned_back(x: Any) -> Any:
    return np.flip(x) - x


def _with_a_gradient() -> Any:
    made = tm.custom_vjp(_turned_back)
    made.defvjp(lambda x: (_turned_back(x), ()), lambda kept, ct: (np.flip(ct) - ct,))
    return made


def _with_a_tangent() -> Any:
    made = tm.custom_jvp(_turned_back)
    made.defjvp(lambda x, dx: (_turned_back(*x), _turned_back(*dx)))
    return made


def _top_k(x: Any, k: int, axis: int = -1) -> Any:
    """Backwards, so that of equal elements the first comes last in the order."""
    count = x.shape[axis]
    if count < k:
        raise ValueError("too few elements")
    order = np.argsort(np.flip(x, axis), axis, kind="stable")
    best = np.take(count - 1 - np.flip(order, axis), range(k), axis)
    return np.take_along_axis(x, best, axis), best


def _nonzero(x: Any, size: int) -> Any:
    return tuple(_argwhere(x, size).T)


def _flatnonzero(x: Any, size: int, fill_value: int) -> Any:
    found = np.flatnonzero(x)
    return np.pad(found, (0, size - len(found)), constant_values=fill_value)


def _argwhere(x: Any, size: int) -> Any:
    found = np.argwhere(x)
    return np.pad(found, ((0, size - len(found)), (0, 0)))


# -- windows


def _windows(image: Any, window: Any, stride: Any) -> Any:
    """[batch, channels, rows, columns, *window], each window with its place."""
    if any(not 0 < size <= extent for extent, size in zip(image.shape[2:], window)):
        raise ValueError("the window does not fit")
    return sliding_window_view(image, window, (2, 3))[:, :, :: stride[0], :: stride[1]]


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


def _padded(image: Any, padding: Any, fill: Any) -> Any:
    rows, columns = _pair(padding)
    sides = ((0, 0), (0, 0), (rows, rows), (columns, columns))
    return np.pad(image, sides, constant_values=fill)


def _max_pool(image: Any, window: Any, stride: Any = None, padding: Any = 0) -> Any:
    window = _pair(window)
    least = -np.inf if kind_of(image) == "f" else np.iinfo(image.dtype).min
    image = _padded(image, padding, least)
    return _windows(image, window, _pair(stride or window)).max(axis=(4, 5))


def _avg_pool(image: Any, window: int, stride: int) -> Any:
    seen = _windows(image, _pair(window), _pair(stride))
    return (seen.sum(axis=(4, 5)) / window**2).astype(image.dtype)


def _conv(image: Any, weight: Any, stride: int = 1, padding: int = 0) -> Any:
    image = _padded(image, padding, 0)
    seen = _windows(image, weight.shape[2:], _pair(stride))[:, None]
    products = seen * weight[:, :, None, None]  # not tensordot, which leaves out 0 * NaN
    return products.sum(axis=(2, 5, 6), dtype=np.result_type(seen, weight))


def _window_gradient(x: Any) -> Any:
    """Of the sum of the squares of all means of 2 by 2."""
    slope = 2 * _avg_pool(x[None, None], 2, 1)[0, 0] / 4
    made = np.zeros_like(x)
    for row in (0, 1):
        for column in (0, 1):
            made[row : row + slope.shape[0], column : column + slope.shape[1]] += slope
    return made.astype(x.dtype)


# -- special functions and random bits


def _special(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """Element by element in float64."""

    def run(x: Any) -> Any:
        wide = x.astype(np.float64)
        made = [math.nan if math.isnan(e) else function(e) for e in wide.ravel().tolist()]
        return np.array(made, np.float64).reshape(x.shape).astype(x.dtype)

    return run


def _expit(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else math.exp(x)


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _ndtr(x: float) -> float:
    """With what x / sqrt(2) loses in rounding, which erfc makes larger."""
    at = -x * ROOT_HALF
    if not math.isfinite(at):
        return math.erfc(at) / 2
    lost = float(-Fraction(x) * EXACT_ROOT_HALF - Fraction(at))
    return (math.erfc(at) - 2 / math.sqrt(math.pi) * math.exp(-at * at) * lost) / 2


def _log_ndtr(x: float) -> float:
    return math.log(_ndtr(x)) if x < 0 else math.log1p(-_ndtr(-x))


def _logit(p: float) -> float:
    if not 0 < p < 1:
        return {0.0: -math.inf, 1.0: math.inf}.get(p, math.nan)
    return math.log1p((2 * p - 1) / (1 - p)) if 0.25 < p < 0.75 else math.log(p) - math.log1p(-p)


def _xlogy(x: Any, y: Any) -> Any:
    x, y = (o.astype(np.result_type(x, y)) for o in (x, y))
    return np.where((x == 0) & ~np.isnan(y), np.zeros_like(x), x * np.log(y))


def _xlog1py(x: Any, y: Any) -> Any:
    x, y = (o.astype(np.result_type(x, y)) for o in (x, y))
    return np.where((x == 0) & ~np.isnan(y), np.zeros_like(x), x * np.log1p(y))


def _philox(counter: int, key: int) -> int:
    """Ten rounds on two words, the key as two words, of Philox 4x32."""
    words = [counter & 0xFFFFFFFF, counter >> 32, 0, 0]
    low, high = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        first, second = words[0] * 0xD2511F53, words[2] * 0xCD9E8D57
        words = [
            second >> 32 ^ words[1] ^ low, second & 0xFFFFFFFF,
            first >> 32 ^ words[3] ^ high, first & 0xFFFFFFFF,
        ]  # fmt: skip
        low, high = low + 0x9E3779B9 & 0xFFFFFFFF, high + 0xBB67AE85 & 0xFFFFFFFF
    return words[0] | words[1] << 32


def _drawn(shape: tuple[int, ...]) -> Any:
    key = int(np.random.SeedSequence(SEED).generate_state(1, np.uint64)[0])
    bits = [_philox(counter, key) for counter in range(math.prod(shape))]
    return np.array(bits, np.uint64).reshape(shape)


def _traced_drawn(shape: tuple[Any, ...]) -> Any:
    """From a generator that begins anew."""
    GENERATOR.state.assign(GENERATOR.state.read() * np.array([1, 0], np.uint64))
    return GENERATOR.bits(shape)


def _traced_window_gradient(x: Any) -> Any:
    def squares(image: Any) -> Any:
        return np.square(tm.nn.avg_pool(image[None, None], 2, stride=1)).sum()

    return tm.grad(squares)(x)


TRACED = SimpleNamespace(
    drawn=_traced_drawn, window_gradient=_traced_window_gradient,
    with_a_gradient=_with_a_gradient(), with_a_tangent=_with_a_tangent(),
)  # fmt: skip
PLAIN = SimpleNamespace(
    drawn=_drawn, window_gradient=_window_gradient,
    with_a_gradient=_turned_back, with_a_tangent=_turned_back,
)  # fmt: skip


def _host_call(function: Any, array: Any, result: Any) -> Any:
    """Its result is an array of its own."""
    made = function(array)
    return made.copy() if isinstance(made, np.ndarray) else made


PLAIN_TM = SimpleNamespace(
    switch=lambda index, functions, *operands: functions[index](*operands), map=_map,
    cond=_cond, while_loop=_while_loop, fori_loop=_fori_loop, scan=_scan, top_k=_top_k,
    host_call=_host_call,
    checkpoint=lambda function: function, stop_gradient=np.copy,
    nonzero=_nonzero, flatnonzero=_flatnonzero, argwhere=_argwhere,
    nn=SimpleNamespace(max_pool=_max_pool, avg_pool=_avg_pool, conv=_conv),
    special=SimpleNamespace(
        erf=_special(math.erf), erfc=_special(math.erfc), expit=_special(_expit),
        softplus=_special(_softplus), ndtr=_special(_ndtr), log_ndtr=_special(_log_ndtr),
        logit=_special(_logit), xlogy=_xlogy, xlog1py=_xlog1py, entr=_special(sp.entr),
        gammaln=_special(sp.gammaln), digamma=_special(sp.digamma), ndtri=_special(sp.ndtri),
        erfinv=_special(sp.erfinv), polygamma=lambda n, x: _special(partial(sp.polygamma, n))(x),
    ),
)  # fmt: skip
PLAIN_NAMES = {"np": np, "ml_dtypes": ml_dtypes, "tm": PLAIN_TM, "also": PLAIN}
TRACED_NAMES = {"np": np, "ml_dtypes": ml_dtypes, "tm": tm, "also": TRACED}
