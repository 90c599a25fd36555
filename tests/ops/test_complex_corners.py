"""Functions of complex numbers where a part is zero, infinite, NaN, tiny or huge: NumPy's answers.

Not here: random operands (test_elementwise).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracemill as tm
from lanes import same_bits
from tracemill.compiler.ops import ALL
from tracemill.compiler.ops.scalar import trace_body
from tracemill.compiler.ops.scalar_reference import evaluate
from tracemill.compiler.types import C64, C128, DType, real_part_of

Lanes = np.ndarray[Any, Any]

UNARY = (
    np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sqrt, np.square,
    np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan,
    np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh,
    np.reciprocal, np.absolute, np.sign, np.conjugate, np.negative, np.rint,
    np.isnan, np.isinf, np.isfinite, np.logical_not,
)  # fmt: skip
BINARY = (
    np.add, np.subtract, np.multiply, np.divide, np.power, np.equal, np.not_equal, np.less,
    np.less_equal, np.maximum, np.minimum, np.fmax, np.fmin, np.logical_and,
)  # fmt: skip
OPS = {op.ufunc: op for op in ALL.values() if op.ufunc}
# NumPy multiplies by a sum of products that is rounded once on machines that can, twice on others.
PRODUCTS = {np.square, np.multiply}
DTYPES = pytest.mark.parametrize("dtype", [C64, C128], ids=repr)


def _corners(dtype: DType) -> Lanes:
    """Every pair of parts that a function may treat on its own."""
    single = dtype is C64
    tiny, huge, edge = (1e-38, 1e38, 88.0) if single else (1e-300, 1e300, 710.0)
    sizes = [0.0, 1e-5, 0.5, 1, 3, 20, 100, tiny, huge, edge, np.inf]
    parts = np.array([*sizes, *(-x for x in sizes), np.nan], np.float32 if single else np.float64)
    return np.array([complex(x, y) for x in parts for y in parts], dtype.numpy)


def _of_body(ufunc: np.ufunc, dtype: DType, *operands: Lanes) -> Lanes:
    (found,) = evaluate(trace_body(OPS[ufunc.__name__].scalar, [dtype] * len(operands)), operands)
    return found


def _parts(x: Lanes) -> tuple[Lanes, ...]:
    return (x.real, x.imag) if x.dtype.kind == "c" else (x,)


def _kind(x: Lanes) -> Lanes:
    return 4 * np.isnan(x) + 2 * np.isinf(x) + (x == 0)


def _is_open(operand: Lanes, want: Lanes) -> Lanes:
    """Where C99 (annex G) leaves the signs of zeros and infinities to the library."""
    infinite = np.isinf(operand.real) & np.isinf(operand.imag)
    return np.isnan(operand) | np.isnan(want) | infinite


def _assert_alike(
    got: Lanes, want: Lanes, operands: tuple[Lanes, ...], checked: Lanes, open_signs: Lanes
) -> None:
    """The same kind of number in both parts, its sign where that is not open, near in the norm."""
    limits = np.finfo(got.dtype)
    size = np.max([np.where(np.isfinite(x), np.abs(x), 0) for x in _parts(want)], axis=0)
    room = 16 * limits.eps * size + 4 * limits.smallest_subnormal
    same = np.ones(len(got), bool)
    for mine, right in zip(_parts(got), _parts(want)):
        special = (_kind(mine) != 0) | (_kind(right) != 0)
        signed = (np.signbit(mine) == np.signbit(right)) | np.isnan(right) | open_signs
        alike = (_kind(mine) == _kind(right)) & signed
        same &= np.where(special, alike, np.abs(mine - right) <= room)
    wrong = np.flatnonzero(checked & ~same)
    assert not len(wrong), [(*(x[i] for x in operands), got[i], want[i]) for i in wrong[:6]]


@DTYPES
@pytest.mark.parametrize("ufunc", UNARY, ids=lambda ufunc: ufunc.__name__)
def test_a_function_of_one_number_gives_numpys_kind_of_number(
    ufunc: np.ufunc, dtype: DType
) -> None:
    z = _corners(dtype)
    with np.errstate(all="ignore"):
        got, want = _of_body(ufunc, dtype, z), ufunc(z)
        if want.dtype == bool:
            assert np.array_equal(got, want)
            return
        checked = np.ones(len(z), bool)
        if ufunc in PRODUCTS:  # parts that cancel or overflow in one of the two ways only
            checked = np.isfinite(want) & (np.abs(z.real) != np.abs(z.imag))
        if ufunc is np.log1p:  # NumPy forms 1 + z, which drops small numbers
            checked = np.abs(z) > 1e-4
        _assert_alike(got, want, (z,), checked, _is_open(z, want))


@DTYPES
@pytest.mark.parametrize("ufunc", BINARY, ids=lambda ufunc: ufunc.__name__)
def test_a_function_of_two_numbers_gives_numpys_kind_of_number(
    ufunc: np.ufunc, dtype: DType
) -> None:
    z = _corners(dtype)
    a, b = np.repeat(z, len(z)), np.tile(z, len(z))
    with np.errstate(all="ignore"):
        got, want = _of_body(ufunc, dtype, a, b), ufunc(a, b)
        if want.dtype == bool:
            assert np.array_equal(got, want)
            return
        checked, open_signs = np.ones(len(a), bool), np.zeros(len(a), bool)
        if ufunc in PRODUCTS:
            terms = np.abs([a.real * b.real, a.imag * b.imag, a.real * b.imag, a.imag * b.real])
            normal = np.isfinite(terms) & (terms > np.finfo(dtype.numpy).tiny)
            checked = normal.all(axis=0) & (terms[0] != terms[1]) & (terms[2] != terms[3])
        if ufunc is np.power:  # the error of the angle is that of b log(a)
            turns = np.abs(b * np.log(a))
            checked = (turns < 2) | (_kind(want.real) != 0) & (_kind(want.imag) != 0)
            open_signs = np.isnan(want) | (turns >= 2) | np.isnan(turns)
        _assert_alike(got, want, (a, b), checked, open_signs)


@pytest.mark.cpu
@DTYPES
def test_machine_code_has_the_bits_of_the_bodies(dtype: DType) -> None:
    z = _corners(dtype)
    compiled = tm.jit(lambda z: tuple(ufunc(z) for ufunc in UNARY))
    with np.errstate(all="ignore"):
        for ufunc, got in zip(UNARY, compiled(z)):
            assert same_bits(got, _of_body(ufunc, dtype, z)).all(), ufunc


@pytest.mark.parametrize("sign", [1.0, -1.0])
@DTYPES
def test_the_angle_of_an_axis_is_rounded_once(dtype: DType, sign: float) -> None:
    real = _corners(dtype).real.dtype.type
    y = np.array([sign] * 4, real)
    x = np.array([0.0, -0.0, np.finfo(real).tiny, -np.finfo(real).tiny], real)
    part = real_part_of(dtype)
    (got,) = evaluate(trace_body(ALL["arctan2"].scalar, [part, part]), [y, x])
    assert same_bits(got, np.arctan2(y, x)).all()
