"""Windows of samples, and the Bessel function that one of them needs: hanning, kaiser, i0, ...

Invariants: numbers are float64, for any number of samples, which may be a size.
Not here: where windows are slid over (signals.py), sliding_window_view (pieces.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracemill.compiler.types import F64

from ..tracing.state import running
from ..tracing.tensor import fresh, result
from .axes import size_argument
from .creation import asarray
from .ranges import arange
from .words import full, sequence


def _window(name: str, shape: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """shape: the samples at distances from the middle that go from 1 - M to M - 1 in steps of 2,
    given these and M - 1."""

    def window(M: Any) -> Any:
        trace = running()
        count = size_argument(M)
        if not trace.sizes.at_least(count, 1, "a window has a sample"):
            return fresh(trace, full(trace, (0,), 0, F64))
        if not trace.sizes.at_least(count, 2, "a window has two samples"):
            return fresh(trace, full(trace, (1,), 1, F64))
        width: Any = result(trace, trace.cast(trace.size_value(count - 1), F64))
        place: Any = fresh(trace, trace.cast(sequence(trace, trace.sizes.normal(count)), F64))
        return shape(place * 2 - width, width)

    window.__name__ = name
    return window


hanning = _window("hanning", lambda n, width: 0.5 + 0.5 * np.cos(np.pi * n / width))
hamming = _window("hamming", lambda n, width: 0.54 + 0.46 * np.cos(np.pi * n / width))
blackman = _window(
    "blackman",
    lambda n, width: (
        0.42 + 0.5 * np.cos(np.pi * n / width) + 0.08 * np.cos(2.0 * np.pi * n / width)
    ),
)
bartlett = _window("bartlett", lambda n, width: np.where(n <= 0, 1 + n / width, 1 - n / width))


def kaiser(M: Any, beta: Any) -> Any:
    """np.kaiser"""
    trace = running()
    beta = asarray(beta, np.float64)
    count = size_argument(M)
    if trace.sizes.at_least(count, 1, "a window has a sample") and not trace.sizes.at_least(
        count, 2, "a window has two samples"
    ):
        return fresh(trace, full(trace, (1,), 1, F64))
    middle = (M - 1) / 2.0
    apart = (arange(0, M) - middle) / middle
    return i0(beta * np.sqrt(1 - apart**2.0)) / i0(beta)


def i0(x: Any) -> Any:
    """np.i0: two series of Chebyshev polynomials, by Cephes."""
    x = asarray(x)
    if x.dtype.kind == "c":
        raise TypeError("i0 not supported for complex values")
    if x.dtype.kind in "biu":
        x = x.astype(np.float64)
    x = np.abs(x)
    near, far = np.minimum(x, 8.0), np.maximum(x, 8.0)
    small = np.exp(near) * _series(near / 2.0 - 2, _NEAR)
    large = np.exp(far) * _series(32.0 / far - 2.0, _FAR) / np.sqrt(far)
    return np.where(x <= 8.0, small, large)


def _series(x: Any, coefficients: tuple[float, ...]) -> Any:
    """A sum of Chebyshev polynomials, by Clenshaw's recurrence."""
    one: Any = coefficients[0]
    two: Any = 0.0
    before: Any = 0.0
    for coefficient in coefficients[1:]:
        before, two = two, one
        one = x * two - before + coefficient
    return 0.5 * (one - before)


_NEAR = (
    -4.41534164647933937950e-18, 3.33079451882223809783e-17, -2.43127984654795469359e-16,
    1.71539128555513303061e-15, -1.16853328779934516808e-14, 7.67618549860493561688e-14,
    -4.85644678311192946090e-13, 2.95505266312963983461e-12, -1.72682629144155570723e-11,
    9.67580903537323691224e-11, -5.18979560163526290666e-10, 2.65982372468238665035e-9,
    -1.30002500998624804212e-8, 6.04699502254191894932e-8, -2.67079385394061173391e-7,
    1.11738753912010371815e-6, -4.41673835845875056359e-6, 1.64484480707288970893e-5,
    -5.75419501008210370398e-5, 1.88502885095841655729e-4, -5.76375574538582365885e-4,
    1.63947561694133579842e-3, -4.32430999505057594430e-3, 1.05464603945949983183e-2,
    -2.37374148058994688156e-2, 4.93052842396707084878e-2, -9.49010970480476444210e-2,
    1.71620901522208775349e-1, -3.04682672343198398683e-1, 6.76795274409476084995e-1,
)  # fmt: skip
_FAR = (
    -7.23318048787475395456e-18, -4.83050448594418207126e-18, 4.46562142029675999901e-17,
    3.46122286769746109310e-17, -2.82762398051658348494e-16, -3.42548561967721913462e-16,
    1.77256013305652638360e-15, 3.81168066935262242075e-15, -9.55484669882830764870e-15,
    -4.15056934728722208663e-14, 1.54008621752140982691e-14, 3.85277838274214270114e-13,
    7.18012445138366623367e-13, -1.79417853150680611778e-12, -1.32158118404477131188e-11,
    -3.14991652796324136454e-11, 1.18891471078464383424e-11, 4.94060238822496958910e-10,
    3.39623202570838634515e-9, 2.26666899049817806459e-8, 2.04891858946906374183e-7,
    2.89137052083475648297e-6, 6.88975834691682398426e-5, 3.36911647825569408990e-3,
    8.04490411014108831608e-1,
)  # fmt: skip

FUNCTIONS: dict[Any, Any] = {
    np.hanning: hanning, np.hamming: hamming, np.blackman: blackman, np.bartlett: bartlett,
    np.kaiser: kaiser, np.i0: i0,
}  # fmt: skip
