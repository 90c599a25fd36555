"""The word evaluator: fma and scale round once, loops and rarely are lane by lane."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from lanes import operand_lanes, same_bits
from tracemill.compiler.ops import scalar
from tracemill.compiler.ops.elementwise_bits import philox_bits
from tracemill.compiler.ops.scalar import loop, rarely, select, trace_body
from tracemill.compiler.ops.scalar_reference import evaluate, fused_multiply_add
from tracemill.compiler.types import BF16, F16, F32, F64, I32, I64, U64


def _exactly(a: float, b: float, c: float, kind) -> float:
    total = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        wide = total.numerator / total.denominator
    except OverflowError:
        return np.inf if total > 0 else -np.inf
    if kind is np.float64:
        return wide
    # One rounding to f32: float64 is double, so decide by the exact value between neighbours.
    with np.errstate(over="ignore"):
        near = np.float32(wide)
    if not np.isfinite(near):
        return near
    with np.errstate(over="ignore"):
        around = [near, *(np.nextafter(near, np.float32(end)) for end in (np.inf, -np.inf))]
    finite = [x for x in around if np.isfinite(x)]
    best = min(finite, key=lambda x: (abs(Fraction(float(x)) - total), int(x.view(np.uint32)) & 1))
    return best


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_fma_rounds_once(kind):
    dtype = F32 if kind is np.float32 else F64
    rng = np.random.default_rng(3)
    a, b, c = operand_lanes([dtype] * 3, 400, rng)
    keep = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    # Near cancellation, where a second rounding shows.
    x, y = (rng.standard_normal(300).astype(kind) for _ in range(2))
    z = -(x.astype(np.float64) * y).astype(kind)
    a, b, c = (np.concatenate(p) for p in ((a[keep], x), (b[keep], y), (c[keep], z)))
    got = fused_multiply_add(a, b, c)
    for p, q, r, value in zip(a, b, c, got):
        want = _exactly(float(p), float(q), float(r), kind)
        assert value == want, (p, q, r, value, want)


def test_scale_rounds_once_into_the_denormals():
    function = trace_body(lambda x, k: scalar.scale(x, k), [F32, F32])
    (got,) = evaluate(function, [np.float32([1.5, 1.25, 1.0]), np.float32([-149, -149, -150])])
    assert got.tolist() == [2 * 2.0**-149, 2.0**-149, 0.0]


def test_a_loop_stops_lane_by_lane_and_keeps_what_a_lane_had():
    def steps(x):
        count = scalar.constant(0, x.dtype)
        return loop((x, count), lambda x, n: x > 1, lambda x, n: (x >> 1, n + 1))[1]

    (got,) = evaluate(trace_body(steps, [I32]), [np.int32([1, 2, 8, 1 << 20, -5])])
    assert got.tolist() == [0, 1, 3, 20, 0]


def test_rarely_is_a_choice_per_lane():
    body = lambda x: rarely(x < 0, (-x,), (x * 2,))[0]
    (got,) = evaluate(trace_body(body, [I64]), [np.int64([3, -4])])
    assert got.tolist() == [6, 4]


def test_arithmetic_on_halves_is_refused():
    for dtype in (F16, BF16):
        with pytest.raises(TypeError):
            trace_body(lambda x: x + x, [dtype])


def test_integers_go_to_halves_by_way_of_f32():
    function = trace_body(lambda x: scalar.convert(x, F16), [I64])
    lanes = np.int64([0, 1, 2049, 65504, 65520, -70000, 2**40])
    (got,) = evaluate(function, [lanes])
    with np.errstate(over="ignore"):
        assert same_bits(got, lanes.astype(np.float16)).all()


def test_a_scalar_has_no_truth_value():
    with pytest.raises(TypeError):
        trace_body(lambda x: select(x > 0, x, 0) if x > 0 else x, [I32])


def test_philox_gives_the_published_stream():
    # Random123's known answers: counter 0 and key 0 begin 6627e8d5 e169c58d.
    zero = philox_bits(np.zeros(1, np.uint64), np.zeros(1, np.uint64))[0]
    assert (int(zero) & 0xFFFFFFFF, int(zero) >> 32) == (0x6627E8D5, 0xE169C58D)
    assert zero.dtype == U64.numpy
