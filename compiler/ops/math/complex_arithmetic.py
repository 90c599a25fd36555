"""Arithmetic on complex numbers beyond sum and product, operation by operation as NumPy does it."""

from __future__ import annotations

from ..scalar import (
    Scalar,
    absolute,
    complex_,
    constant,
    copysign,
    imag,
    is_nan,
    mul,
    rarely,
    real,
    select,
)
from .roots import hypot


def complex_divide(a: Scalar, b: Scalar) -> Scalar:
    """Smith's quotient, as NumPy: divide by the larger part of the divisor first."""
    ar, ai, br, bi = real(a), imag(a), real(b), imag(b)
    by_real = absolute(br) >= absolute(bi)
    large, small = select(by_real, br, bi), select(by_real, bi, br)
    zero = large.equals(0) & small.equals(0)
    ratio = select(zero, constant(1.0, br.dtype), small / large)
    inverse = 1.0 / (large + small * ratio)
    re = select(by_real, ar + ai * ratio, ar * ratio + ai) * inverse
    im = select(by_real, ai - ar * ratio, ai * ratio - ar) * inverse
    magnitude = absolute(br)
    return complex_(select(zero, ar / magnitude, re), select(zero, ai / magnitude, im))


def annex_g_product(a: Scalar, b: Scalar) -> Scalar:
    """a * b as C99 has it (annex G.5.1): an infinity times what is not zero is an infinity, also
    where the schoolbook formula makes NaN of both parts. NumPy's product is `mul`, its power this.
    """
    usual = mul(a, b)
    ar, ai, br, bi = real(a), imag(a), real(b), imag(b)
    overflow = _any_infinite(ar * br, ai * bi, ar * bi, ai * br)
    lost = is_nan(real(usual)) & is_nan(imag(usual))
    lost = lost & (overflow | _any_infinite(ar, ai, br, bi))
    (ar, ai), (br, bi) = _directions(ar, ai), _directions(br, bi)
    endless = float("inf")
    re, im = endless * (ar * br - ai * bi), endless * (ar * bi + ai * br)
    return complex_(*rarely(lost, (re, im), (real(usual), imag(usual))))


def _any_infinite(first: Scalar, *others: Scalar) -> Scalar:
    found = absolute(first).equals(float("inf"))
    return found | _any_infinite(*others) if others else found


def _directions(re: Scalar, im: Scalar) -> tuple[Scalar, ...]:
    """Both parts, 0 for NaN; of a number with an infinity 1 for that, 0 for what is finite."""
    one, infinite = constant(1.0, re.dtype), _any_infinite(re, im)
    return tuple(
        select(
            infinite,
            copysign(select(_any_infinite(part), one, 0.0), part),
            select(is_nan(part), 0.0, part),
        )
        for part in (re, im)
    )


def complex_reciprocal(a: Scalar) -> Scalar:
    """1 / a by Smith's method, as NumPy."""
    re, im = real(a), imag(a)
    by_real = absolute(im) <= absolute(re)
    large, small = select(by_real, re, im), select(by_real, im, re)
    ratio = small / large
    divisor = large + small * ratio
    one = constant(1.0, re.dtype)
    return complex_(select(by_real, one, ratio) / divisor, select(by_real, -ratio, -one) / divisor)


def not_below(a: Scalar, b: Scalar) -> Scalar:
    """NumPy's order of complex numbers: real parts, then imaginary ones; false with a NaN."""
    ar, ai, br, bi = real(a), imag(a), real(b), imag(b)
    decided = (ar > br) & ~is_nan(ai) & ~is_nan(bi)
    return decided | (ar.equals(br) & (ai >= bi))


def complex_absolute(a: Scalar) -> Scalar:
    """sqrt(x**2 + y**2) without undue overflow."""
    return hypot(real(a), imag(a))


def complex_sign(a: Scalar) -> Scalar:
    """z / |z|; 0 for 0; an infinite part decides alone, two infinite ones make NaN."""
    infinity = float("inf")
    re, im = real(a), imag(a)
    length = complex_absolute(a)
    nothing = constant(0.0, re.dtype)
    not_a_number = constant(float("nan"), re.dtype)
    re_infinite, im_infinite = absolute(re).equals(infinity), absolute(im).equals(infinity)
    both = re_infinite & im_infinite
    finite_re = select(length.equals(0.0), nothing, re / length)
    finite_im = select(length.equals(0.0), nothing, im / length)
    one = constant(1.0, re.dtype)
    unit_re, unit_im = select(re > 0.0, one, -1.0), select(im > 0.0, one, -1.0)
    signed_re = select(re_infinite, unit_re, select(im_infinite, nothing, finite_re))
    signed_im = select(im_infinite, unit_im, select(re_infinite, nothing, finite_im))
    invalid = both | (is_nan(re) & ~im_infinite) | (is_nan(im) & ~re_infinite)
    return complex_(
        select(invalid, not_a_number, signed_re), select(invalid, not_a_number, signed_im)
    )


def conj_body(a: Scalar) -> Scalar:
    """The conjugate; a real number is its own."""
    return complex_(real(a), -imag(a)) if a.dtype.is_complex else a
