"""Elementwise chains: bounded by memory when fused well, by arithmetic when not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..workload import Factory, Function, Workload, array_forms, between, named_sizes


def normal(dtype: type, count: int) -> Callable[[np.random.Generator, Mapping[str, int]], Any]:
    """`count` vectors of n normal numbers."""
    return lambda rng, sizes: tuple(
        rng.standard_normal(sizes["n"]).astype(dtype) for _ in range(count)
    )


def chain(x: Any, y: Any) -> Any:
    """The transcendental chain, in NumPy."""
    return np.tanh(x) * y + np.exp(-x * x) * np.sin(y)


def chain_for(library: Any) -> Function:
    """The same for a library that spells it alike."""
    return lambda x, y: library.tanh(x) * y + library.exp(-x * x) * library.sin(y)


def chain_numba(fastmath: bool = False) -> Function:
    """Hand-written parallel loop."""
    import numba

    @numba.njit(parallel=True, fastmath=fastmath)
    def run(x: Any, y: Any) -> Any:
        out = np.empty_like(x)
        for i in numba.prange(x.size):
            out[i] = math.tanh(x[i]) * y[i] + math.exp(-x[i] * x[i]) * math.sin(y[i])
        return out

    return run


def numexpr_form(expression: str, names: tuple[str, ...]) -> Factory:
    """numexpr evaluating `expression` over arguments of these names."""

    def factory() -> Function:
        import numexpr

        numexpr.set_num_threads(numexpr.detect_number_of_cores())
        return lambda *args: numexpr.evaluate(
            expression, local_dict=dict(zip(names, args, strict=True)), global_dict={}
        )

    return factory


def polynomial(x: Any, y: Any) -> Any:
    """Multiply-adds only: the pure bandwidth case."""
    return 0.5 * x * x + 2.0 * x * y - y + 1.0


def polynomial_numba(fastmath: bool = False) -> Function:
    """Hand-written parallel loop."""
    import numba

    @numba.njit(parallel=True, fastmath=fastmath)
    def run(x: Any, y: Any) -> Any:
        out = np.empty_like(x)
        half, two, one = x.dtype.type(0.5), x.dtype.type(2.0), x.dtype.type(1.0)
        for i in numba.prange(x.size):
            out[i] = half * x[i] * x[i] + two * x[i] * y[i] - y[i] + one
        return out

    return run


def cdf(x: Any) -> Any:
    """Normal distribution function by Abramowitz and Stegun 26.2.17, in NumPy alone."""
    k = 1.0 / (1.0 + 0.2316419 * np.abs(x))
    series = k * (
        0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
    )
    tail = 0.3989422804014327 * np.exp(-0.5 * x * x) * series
    return np.where(x > 0, 1.0 - tail, tail)


def black_scholes(s: Any, k: Any, t: Any) -> Any:
    """Price of a European call, in NumPy."""
    root = 0.2 * np.sqrt(t)
    d1 = (np.log(s / k) + 0.12 * t) / root
    return s * cdf(d1) - k * np.exp(-0.1 * t) * cdf(d1 - root)


def black_scholes_for(library: Any) -> Function:
    """The same for a library that spells it alike."""

    def distribution(x: Any) -> Any:
        k = 1.0 / (1.0 + 0.2316419 * library.abs(x))
        series = k * (
            0.319381530
            + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
        )
        tail = 0.3989422804014327 * library.exp(-0.5 * x * x) * series
        return library.where(x > 0, 1.0 - tail, tail)

    def run(s: Any, k: Any, t: Any) -> Any:
        root = 0.2 * library.sqrt(t)
        d1 = (library.log(s / k) + 0.12 * t) / root
        return s * distribution(d1) - k * library.exp(-0.1 * t) * distribution(d1 - root)

    return run


def black_scholes_numba(fastmath: bool = False) -> Function:
    """Hand-written parallel loop."""
    import numba

    @numba.njit(fastmath=fastmath)
    def distribution(x: Any) -> Any:
        k = 1.0 / (1.0 + 0.2316419 * abs(x))
        series = k * (
            0.319381530
            + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
        )
        tail = 0.3989422804014327 * math.exp(-0.5 * x * x) * series
        return 1.0 - tail if x > 0 else tail

    @numba.njit(parallel=True, fastmath=fastmath)
    def run(s: Any, k: Any, t: Any) -> Any:
        out = np.empty_like(s)
        for i in numba.prange(s.size):
            root = 0.2 * math.sqrt(t[i])
            d1 = (math.log(s[i] / k[i]) + 0.12 * t[i]) / root
            out[i] = s[i] * distribution(d1) - k[i] * math.exp(-0.1 * t[i]) * distribution(
                d1 - root
            )
        return out

    return run


def market(dtype: type) -> Callable[[np.random.Generator, Mapping[str, int]], Any]:
    """Spot, strike, time to expiry."""

    def draw(rng: np.random.Generator, sizes: Mapping[str, int]) -> Any:
        n = sizes["n"]
        ranges = ((10, 50), (15, 45), (0.2, 2.0))
        return tuple(rng.uniform(low, high, n).astype(dtype) for low, high in ranges)

    return draw


def _traffic(dtype: type, arrays: int) -> Callable[[Mapping[str, int]], float]:
    """Bytes of so many vectors."""
    return lambda sizes: float(arrays * np.dtype(dtype).itemsize * sizes["n"])


def _pair(
    name: str,
    numpy: Function,
    shared: Callable[[Any], Function],
    numba: Callable[[bool], Function],
    **rest: Any,
) -> tuple[Workload, Workload]:
    forms = {**array_forms(shared, shared), "numba": lambda: numba(False), **rest.pop("extra", {})}
    arrays, make = rest["arrays"], rest["make"]
    return tuple(  # type: ignore[return-value]
        Workload(
            name=f"{name}-{label}",
            draw=named_sizes(n=between(*size)),
            inputs=make(dtype),
            numpy=numpy,
            peers=forms,
            traffic=_traffic(dtype, arrays + 1),
            tolerance=tolerance,
            unequal={"numba fastmath": lambda: numba(True)},
        )
        for label, dtype, size, tolerance in (
            ("f32", np.float32, rest["f32"], 1e-4),
            ("f64", np.float64, rest["f64"], 1e-10),
        )
    )


CHAIN = "tanh(x)*y + exp(-x*x)*sin(y)"
POLYNOMIAL = "0.5*x*x + 2.0*x*y - y + 1.0"
XY = ("x", "y")
ELEMENTWISE = (
    *_pair(
        "chain", chain, chain_for, chain_numba,
        extra={"numexpr": numexpr_form(CHAIN, XY)},
        arrays=2, make=lambda dtype: normal(dtype, 2),
        f32=(6_000_000, 10_000_000), f64=(1_000_000, 3_000_000),
    ),
    *_pair(
        "polynomial", polynomial, lambda library: polynomial, polynomial_numba,
        extra={"numexpr": numexpr_form(POLYNOMIAL, XY)},
        arrays=2, make=lambda dtype: normal(dtype, 2),
        f32=(6_000_000, 10_000_000), f64=(3_000_000, 5_000_000),
    ),
    *_pair(
        "black-scholes", black_scholes, black_scholes_for, black_scholes_numba,
        arrays=3, make=market,
        f32=(3_000_000, 5_000_000), f64=(800_000, 1_500_000),
    ),
)  # fmt: skip
