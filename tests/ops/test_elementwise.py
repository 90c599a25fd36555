"""Every elementwise record: its scalar body against its NumPy reference, at every dtype."""

from __future__ import annotations

import numpy as np
import pytest

from lanes import operand_lanes, ordered_bits, same_bits
from tracemill.compiler.ops import (
    elementwise_arithmetic,
    elementwise_bits,
    elementwise_cast,
    elementwise_comparison,
    elementwise_complex,
    elementwise_division,
    elementwise_gamma,
    elementwise_rounding,
)
from tracemill.compiler.ops.definition import SignatureError
from tracemill.compiler.ops.elementwise import ELEMENTWISE
from tracemill.compiler.ops.scalar import trace_body
from tracemill.compiler.ops.scalar_reference import evaluate
from tracemill.compiler.types import BF16, DTYPES, TensorType

# Complex results of these overflow inside differently from one NumPy build to the next.
COMPLEX_ARITHMETIC = {"mul", "square", "div", "reciprocal"}
STRICT_FAMILIES = (
    elementwise_arithmetic, elementwise_bits, elementwise_cast, elementwise_comparison,
    elementwise_complex, elementwise_division, elementwise_rounding,
)  # fmt: skip
STRICT = {op.name for family in STRICT_FAMILIES for op in family.OPS} | {"sqrt"}
GAMMA = {op.name for op in elementwise_gamma.OPS}
DIGITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
STEPS = 4  # ours within 2 ulp of the truth, NumPy's within 2
ATTRIBUTES = {"cast": "dtype", "bitcast": "dtype"}


def admissible(op):
    """Every (operand dtypes, attrs) the op's signature takes."""
    found = []
    for arity in (1, 2, 3):
        for row in _rows(arity):
            for attrs in _attributes(op):
                try:
                    op.signature([TensorType(d, (4,)) for d in row], attrs)
                except SignatureError:
                    continue
                found.append((row, attrs))
    return found


def _rows(arity):
    if arity == 3:
        return [(a, b, b) for a in DTYPES for b in DTYPES]
    return [(a,) for a in DTYPES] if arity == 1 else [(a, b) for a in DTYPES for b in DTYPES]


def _attributes(op):
    return [{"dtype": d} for d in DTYPES] if op.name in ATTRIBUTES else [{}]


CASES = [(op, row, attrs) for op in ELEMENTWISE for row, attrs in admissible(op)]


def _name(case):
    op, row, attrs = case
    return "-".join([op.name, *(d.name for d in row), *(d.name for d in attrs.values())])


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_the_body_means_what_numpy_means(case):
    op, row, attrs = case
    rng = np.random.default_rng(len(_name(case)))
    lanes = operand_lanes(row, 300, rng)
    function = trace_body(lambda *xs: op.scalar(*xs, **attrs), row)
    got = evaluate(function, lanes)
    want = op.reference(*lanes, **attrs)
    want = want if isinstance(want, tuple) else (want,)
    types = op.signature([TensorType(d, (4,)) for d in row], attrs)
    assert len(got) == len(want) == len(types)
    for mine, right, type_ in zip(got, want, types):
        right = np.asarray(right)
        assert right.dtype == type_.dtype.numpy == mine.dtype
        _compare(op, lanes, mine, right)


def _compare(op, lanes, mine, right):
    agree = same_bits(mine, right) | _close(op, lanes, mine, right)
    if not agree.all():
        bad = np.flatnonzero(~agree)
        shown = [(tuple(x[i] for x in lanes), mine[i], right[i]) for i in bad[:6]]
        pytest.fail(f"{len(bad)} of {len(mine)} lanes differ: {shown}")


def _close(op, lanes, mine, right):
    """Lanes near enough where equal bits are not promised: complex numbers, by norm, and what
    is transcendental, by steps."""
    complex_lanes = [x for x in (*lanes, right) if x.dtype.kind == "c"]
    with np.errstate(all="ignore"):
        if complex_lanes and right.dtype.kind in "cf":
            # NumPy's intermediate overflows and NaN differ from machine to machine.
            tame = np.logical_and.reduce([_tame(x) for x in (*lanes, mine, right)])
            epsilon = np.finfo(complex_lanes[0].real.dtype).eps
            factor = np.nan_to_num(_norm_factor(op, lanes))
            near = abs(mine - right) <= factor * epsilon * abs(right)
            if op.name == "log1p":  # NumPy forms 1 + z first
                near |= abs(mine - right) <= 4 * epsilon
            free = ~tame if op.name in COMPLEX_ARITHMETIC else np.zeros(len(mine), bool)
            if op.name not in STRICT:
                free |= ~np.logical_and.reduce([np.isfinite(x) for x in (*lanes, right)])
            return near & np.isfinite(right) | free
        if op.name.startswith("logaddexp"):
            # Both sides cancel alike near zero.
            right, mine = right.astype(np.float64), mine.astype(np.float64)
            size = np.maximum(1, np.maximum(abs(lanes[0]), abs(lanes[1])).astype(np.float64))
            return abs(mine - right) <= 4 * 2.0 ** -DIGITS[lanes[0].dtype.name] * size
        if op.name in GAMMA and right.dtype == np.float64:  # references lose digits near zeros
            return abs(mine - right) <= 16 * 2.0**-52 * np.maximum(1, abs(right))
        if op.name not in STRICT and right.dtype != BF16.numpy and right.dtype.kind == "f":
            steps = np.abs(ordered_bits(mine) - ordered_bits(right))
            return (steps <= STEPS) & ~np.isnan(mine) & ~np.isnan(right)
    return np.zeros(len(mine), bool)


def _tame(x):
    if x.dtype.kind not in "cf":
        return np.ones(len(x), bool)
    limit = 1e15 if x.dtype.itemsize in (4, 8) else 1e120
    size = abs(x)
    return (size == 0) | (size < limit) & (size > 1 / limit)


def _norm_factor(op, lanes):
    """How many epsilons of its length a complex result may be off."""
    if "power" in op.name:
        base, exponent = lanes
        return 16 + 8 * abs(exponent) * (1 + abs(np.log(base)))
    return 16 if op.name not in STRICT else 4
