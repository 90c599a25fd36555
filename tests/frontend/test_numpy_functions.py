"""NumPy functions, methods and operators: traced, they give what NumPy gives.

Each expression runs on plain, transposed, reversed and strided arguments, and once with the
arrays captured instead of passed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from traced import assert_same, trace_function

# x: (3, 4), y: (4,), i: three integers below 3, v: (9,), k: (3, 4) integers, b: (3, 4) bools
EXPRESSIONS = """
x + y; x * 2; 2 / (x + 1); x - x.T.T; -x; +x; abs(x - 3); x ** 2; x ** 0.5; (x + 1) ** -1; x ** 3
2.0 ** y; x % 3; x // 2; divmod(x, y + 1); x > y; (x > y) & (x < 9); ~(x > y); x == y; x != 2
k + 1; k * 2.5; k // 3; k % 3; k / 2; -k; k ** 2; k << 2; k >> 1; k & 3; k | 1; k ^ 5; ~k; k > 4
b & (k > 3); b | b; b ^ b; ~b; b + b; b * 2; b.sum(); np.logical_not(x); np.logical_xor(b, x)
np.add(x, y); np.add(x, 1, dtype=np.float32); np.subtract(k, 2, dtype=float)
np.true_divide(k, k + 1); np.maximum(x, y); np.minimum(x, 3); np.fmax(x, y); np.fmin(x, 2)
np.hypot(x, y); np.arctan2(x, y); np.sin(x) + np.exp(-y); np.tanh(x / 9); np.log1p(x); np.sqrt(k)
np.cbrt(x); np.floor(x / 2); np.modf(x / 3); np.frexp(x); np.ldexp(x, k); np.sign(x - 2)
np.heaviside(x - 2, 0.5); np.rint(x / 3); np.isnan(x / x); np.isfinite(1 / x); np.signbit(-x)
np.copysign(x, y - 3); np.nextafter(x, 9); np.gcd(k, 6); np.lcm(k, 4); np.float_power(k, 2)
np.square(k); np.reciprocal(x + 1); np.positive(k); np.deg2rad(x); np.degrees(x)
np.bitwise_count(k); np.exp2(y); np.logaddexp(x, y); np.spacing(x); np.where(x > 3, x, 0)
np.where(x > 3, 1, 2.5); np.where(b, k, x); np.where(b, k, 7); np.where(b, 1, 2); np.clip(x, 2, 5)
x.clip(2); x.clip(max=3); np.clip(k, 2.5, None); np.clip(x, y, y + 2); np.fix(x / 3)
np.add.outer(y, v); np.multiply.outer(y, y); np.add.reduce(x); np.multiply.reduce(x + 1, axis=1)
np.maximum.reduce(x, axis=(0, 1)); np.add.accumulate(x, axis=1); np.multiply.accumulate(y)
np.add(x, y, where=b, out=np.zeros((3, 4))); np.exp(x, out=x.copy()); np.add(k, 1, out=x.copy())
x.sum(); x.sum(0); x.sum(axis=(0, 1)); x.sum(axis=-1, keepdims=True); x.sum(initial=5)
k.sum(dtype=float); np.sum(x, where=x > 3); np.sum(b, axis=0); np.sum(k.astype(np.int8))
np.sum(k.astype(np.uint8), axis=0); np.prod(x + 1, axis=1); np.prod(k, dtype=float); x.mean()
x.mean(1); k.mean(axis=0); b.mean(); np.mean(x, where=x > 3); np.mean(x.astype(np.float16))
x.mean(axis=1, keepdims=True); np.mean(x, dtype=np.float32); x.var(); x.var(0); x.std(ddof=1)
k.std(axis=1); np.var(x, where=b, axis=0); np.std(x + 1j * x); x.var(keepdims=True); x.max()
x.min(axis=0); np.max(x, axis=(0, 1)); x.max(initial=20); np.min(x, where=b, initial=99)
np.ptp(x, axis=0); np.argmax(x); np.argmin(x, axis=0); x.argmax(1)
np.argmax(x, axis=1, keepdims=True); np.argmin(v, keepdims=True); np.any(x > 3)
np.all(x > 3, axis=0); x.any(axis=1, keepdims=True); np.all(k); np.any(b, where=b); np.cumsum(x)
np.cumsum(x, axis=1); np.cumsum(k.astype(np.int8)); np.cumprod(y); np.cumsum(b)
np.cumulative_sum(v); np.cumulative_sum(v, include_initial=True); np.count_nonzero(x)
np.count_nonzero(k, axis=0); np.average(v); np.average(x, axis=0, weights=v[:3])
np.average(x, axis=0, weights=x, returned=True); x @ y; x @ x.T; y @ y; np.dot(x, y); np.dot(x, 2)
np.matmul(x[None], x.T[None]); k @ k.T; (x * 1j) @ x.T; np.matmul(np.stack([x, x]), x.T)
np.matmul(x, np.stack([x.T, x.T])); y @ np.stack([x.T, x.T]); np.vdot(x, x); np.vdot(x * 1j, x)
np.inner(x, x); np.inner(y, 2); np.outer(y, v); np.kron(x, y); np.tensordot(x, x)
np.tensordot(x, x, axes=([0], [0])); np.tensordot(x, y, axes=1); np.tensordot(x, y, 0)
np.vecdot(x, x); np.einsum("ij,j->i", x, y); np.einsum("ij,kj->ik", x, x)
np.einsum("ii->i", x[:3, :3]); np.einsum("ij->ji", x); np.einsum("ij,jk,k", x, x.T, v[:3])
np.einsum("ij->", x); np.einsum("...j->...", x); np.einsum("i,j", y, v)
np.einsum("...ij,...jk->...ik", np.stack([x, x]), x.T); np.einsum(x, [0, 1], y, [1], [0])
np.einsum("ij,ij->ij", x, x); np.cross(x[:, :3], x[:, 1:]); np.linalg.norm(x); np.linalg.norm(v)
np.linalg.norm(x, axis=1); np.linalg.norm(v, 1); x.T; x.reshape(-1); x.reshape(4, 3)
x.reshape((2, 6)); np.reshape(x, (2, -1), order="F"); x.ravel(); x.flatten(); x.T.ravel()
x.T.reshape(2, 6); x[::2].reshape(-1); x.transpose(1, 0); np.transpose(x[None], (2, 0, 1))
x.swapaxes(0, 1); np.moveaxis(x[None], 0, -1); np.rollaxis(x[None], 2); np.expand_dims(x, (0, 2))
np.squeeze(x[:1]); np.squeeze(x[:1], 0); np.broadcast_to(y, (3, 4)); np.broadcast_arrays(x, y)
np.flip(x); np.flip(x, 0); np.fliplr(x); np.flipud(x); np.rot90(x); np.rot90(x, 2); np.rot90(x, 3)
np.atleast_1d(x[0, 0]); np.atleast_2d(y); np.atleast_3d(x); x.squeeze()
np.concatenate([x, x * 2], axis=1); np.concatenate([x, k]); np.concatenate((x, y[None]), axis=0)
np.concatenate([x, y], None); np.stack([y, y]); np.stack([y, y + 1], axis=1); np.vstack([x, y])
np.hstack([v, v]); np.hstack([x, x]); np.dstack([x, x]); np.column_stack([y, y])
np.append(v, 3.0); np.append(x, x, axis=0); np.split(x, 2, axis=1); np.split(v, 3)
np.split(v, [2, 5]); np.array_split(v, 4); np.vsplit(x, [1]); np.hsplit(x, 2); np.unstack(x)
np.roll(v, 2); np.roll(x, 1, axis=0); np.roll(x, -1); np.roll(x, (1, 2), axis=(0, 1))
np.roll(v, 20); np.tile(v, 3); np.tile(x, (2, 2)); np.tile(y, (2, 1, 2)); np.repeat(v, 2)
np.repeat(x, 2, axis=1); np.repeat(y, [1, 0, 2, 3]); np.pad(v, 2)
np.pad(x, ((1, 2), (0, 1)), constant_values=3); np.pad(x, 1, constant_values=((1, 2), (3, 4)))
np.pad(v, 3, mode="reflect"); np.pad(v, 2, mode="edge"); np.pad(v, 12, mode="wrap")
np.pad(x, 2, mode="symmetric"); x[1:]; x[1:, ::2]; x[::-1]; x[0]; x[0, 1]; x[-1]; x[..., None]
x[()]; v[1:-1]; v[::3]; v[::-2]; v[5:2]; v[2:100]; x[i]; x[i[:, None], i]; x[:, i]; x[0, i]
x[i, :, None]; x[i, ..., 0]; x[[0, 2]]; x[[[0], [1]], [0, 2]]; x[i][:, i]; np.take(v, i)
np.take(x, i, axis=0); x.take([0, 1]); np.take(v, [20, -20], mode="clip")
np.take(v, [20, -20], mode="wrap"); np.take_along_axis(x, np.argmax(x, axis=1)[:, None], axis=1)
np.select([x > 3, x > 1], [x, x * 2], -1); x.astype(np.int32); x.astype(int) // 2
k.astype(np.float32); x.astype(bool); k.astype(np.uint8); x.astype(complex); x.real; x.imag
(x * 1j).real; (x + 2j).imag; np.conj(x + 1j * x); abs(x + 1j); np.angle(x + 1j); (x * 1j).conj()
k.astype(np.int32).view(np.uint32); x.view(np.int64); b.view(np.uint8)
x.sum().view(np.int64); x[0, 1].view(np.uint64); (x.sum() > 1).view(np.uint8); x.max().view()
x.astype(np.float32).view(np.int32); np.zeros(x.shape) + x; np.ones_like(x); np.zeros_like(k)
np.full_like(x, 3); np.full((2, 3), 7) * k[:2, :3]; np.empty_like(y) * 0
np.zeros_like(x, dtype=int); np.ones((2, len(y))); np.eye(3) @ x; np.eye(3, 4, 1); np.identity(3)
np.tri(3, 4); np.arange(10) * v[0]; np.arange(1, 10, 3); np.arange(len(v)) + v
np.arange(0.0, 1.0, 0.1); np.arange(5, 0, -2); np.arange(3, dtype=np.float32)
np.linspace(0, 1, 5) + y[0]; np.linspace(0, 1, len(v)); np.linspace(2, 3, 4, endpoint=False)
np.linspace(y[0], y[1], 3); np.logspace(0, 2, 3); np.array([x.sum(), 1.0, 2])
np.geomspace(1, 1000, 4); np.geomspace(y[0] + 1, y[1] + 9, len(v)); np.geomspace(-1, -8, 4) * y
np.geomspace(x + 1, 100 + x, 5, axis=1); np.geomspace(1, 256, 9, dtype=int)
np.geomspace(y[1], 2, 1)
np.geomspace(1j, 1000j, 4) + y; np.geomspace(2, 32, 4, endpoint=False); np.geomspace(-1, 1 + 0j, 5)
np.fromiter((a * 2 for a in y), float); np.fromiter(range(9), int, 4) * y
np.frombuffer(b"abcdabcd", np.uint8, 4, 1) + y; np.frombuffer(b"abcdabcd", "i4")
np.array([[1, 2], [3, 4]]) @ x[:2]; np.array([x[0], x[1]]); np.array(x, dtype=np.float32)
np.asarray(x); np.array(3) + k; np.array([1, 2.5]); np.float32(y[0]); np.diff(v)
np.diff(x, axis=0); np.diff(v, n=2); np.diff(b); np.ediff1d(v); np.trace(x); np.trace(x, 1)
np.diag(y); np.diag(x); np.diag(y, 1); np.diag(x, -1); np.diagonal(x, 1); np.tril(x)
np.triu(x, 1); np.meshgrid(y, v); np.meshgrid(y, v, indexing="ij"); np.meshgrid(y, v, sparse=True)
np.indices((2, 3)); np.vander(y, 3); np.round(x / 3, 2); np.round(x * 10, -1); x.round()
np.isclose(x, x + 1e-9); np.allclose(x, x); np.array_equal(x, x); np.array_equal(x, y)
np.nan_to_num(x / x); np.sinc(x); np.iscomplex(x); np.isreal(x); np.isposinf(1 / x); x.shape
x.size; len(x); x.ndim; x.T.shape; x / x.shape[0]; x.sum() / x.size; x.dtype; x.nbytes
np.shape(x); np.ndim(x); np.size(x, 0); np.result_type(x, np.float32); np.iscomplexobj(x)
x.itemsize; x.copy(); x.trace(); x.item(3); x[0, 1].item(); y.sum().item(); x.dot(y); x.conj()
x.nonzero if False else x; float(x.sum()); int(k[0, 1]); complex(x[0, 0])
bool(k[0, 1] > 0) if False else k; round(x[0, 1], 1); len(x[0]); max(x[0, 0], x[0, 1])
min(y[0], 2.0); sum(y); sum(x); abs(x[0, 0] - 5); x[0, 0] // 2; divmod(x[1, 1], 2)
np.nansum(np.where(b, x, np.nan)); np.nansum(k, axis=1); np.nanprod(np.where(b, y, np.nan), 1)
np.nanmax(np.where(b, x, np.nan), 0); np.nanmin(np.where(x > 3, x, np.nan), 1); np.nanmax(k)
np.nanmean(np.where(b, x, np.nan), axis=1); np.nanmean(x * np.nan); np.nanmean(k, 0)
np.nanmean(x, where=b); np.nanvar(np.where(b, x, np.nan), 1); np.nanstd(x, 0, ddof=1)
np.nanvar(np.where(x > 3, x, np.nan), axis=1, ddof=1, keepdims=True); np.nanstd(k)
np.nancumsum(np.where(b, x, np.nan), 0); np.nancumprod(np.where(b, y, np.nan))
np.nanargmax(np.where(b, x, np.nan), 1); np.nanargmin(np.where(b, -x, np.nan))
np.nansum(np.where(b, x + 1j, np.nan)); np.nanmean(np.where(b, x + 1j, np.nan), 1)
np.nanmax(np.where(b, x, np.nan), 0, initial=3.0, where=x > 1); np.nanmin(v, keepdims=True)
np.convolve(v, y); np.convolve(y, v, "same"); np.convolve(v, y, "valid"); np.convolve(k[0], k[1])
np.convolve(v, [1, 2, 1], "same"); np.convolve(v, y[:1]); np.correlate(v, y)
np.correlate(v, y, "full"); np.correlate(y, v, "same"); np.correlate(y * 1j, v + 2j, "full")
np.gradient(v); np.gradient(x); np.gradient(x, 2.0, axis=1); np.gradient(v, edge_order=2)
np.gradient(v, np.cumsum(v * v + 1)); np.gradient(v, np.cumsum(v * v + 1), edge_order=2)
np.gradient(k, axis=0); np.trapezoid(v); np.trapezoid(x, axis=0); np.trapezoid(x, y)
np.trapezoid(v, dx=0.5); np.polyval([1, 2, 3.0], x); np.polyval(y, v); np.polyval([2, 1], k)
np.polynomial.polynomial.polyval(v, [1, 2, 3]); np.polynomial.polynomial.polyval(x, y)
np.cov(x); np.cov(x, rowvar=False); np.cov(v); np.cov(y, y**2); np.cov(x, ddof=0); np.cov(k)
np.cov(x, x[::-1], rowvar=False); np.cov(x + 1j); np.corrcoef(x + b); np.corrcoef(y, y**2)
np.insert(v, 0, 0); np.insert(v, 3, y); np.insert(x, 1, 9, axis=1); np.insert(x, 1, y, axis=0)
np.insert(v, [1, 3, 3], [7, 8, 9]); np.insert(k, 1, 2.7); np.insert(x, [1], x[:, :2], axis=1)
np.insert(v, slice(1, 4), y[:3]); np.insert(v, -1, 5.0); np.delete(v, 0); np.delete(v, [1, 3])
np.delete(x, 1, axis=1); np.delete(x, slice(0, 3, 2), axis=0); np.delete(v, -1)
np.block([[x, x], [k, x]]); np.block([v, y]); np.block([[x, x[:, :1]], [x[:1], np.ones((1, 1))]])
np.block([v[0], 1.0]); np.resize(v, (2, 3)); np.resize(y, 10); np.resize(k, (5, 5))
np.lib.stride_tricks.sliding_window_view(v, 3); np.lib.stride_tricks.sliding_window_view(x, (2, 3))
np.lib.stride_tricks.sliding_window_view(x, 2, axis=1).mean(-1); f"{x.shape} {len(v)}"
np.piecewise(v, [v < 0, v > 1], [lambda t: -t, lambda t: t - t.mean(), 7])
np.piecewise(k, [b], [3, 4])
np.piecewise(v, v < 0, [lambda t, m: t * m, 5], 2.5); np.piecewise(v[0], [v[0] < 0], [1, 2])
np.piecewise(k, [b, ~b], [1.7, lambda t: t / 2]); np.fromfunction(lambda i, j: i * 10 + j, (2, 3))
np.interp(x, v, v * 2); np.interp(k, v, y[:1] * v, left=-1, right=7); np.interp(x, v, v, period=2)
np.interp(x, v, v + 2j * v); np.interp(y[0], [1, 2], [5, 7]); np.unwrap(v * 5)
np.unwrap(x * 2, axis=0); np.unwrap(k * 3, period=7); np.unwrap(v, 1, period=3.5); np.isin(k, i)
np.isin(x, v, invert=True); np.isin(k, np.arange(20) * 2); np.isin(y, [0.5, 3]); np.isin(b, [True])
np.isin(x + 1j, y + 1j); np.nanmedian(np.where(b, x, np.nan), 1); np.nanmedian(x)
np.nanmedian(k, axis=0, keepdims=True)
np.nanpercentile(np.where(b, x, np.nan), [20, 60.5], axis=1)
np.nanquantile(v, 0.3, method="hazen")
np.nanquantile(np.where(x > 2, x, np.nan), 0.4, axis=0, keepdims=True, method="closest_observation")
np.histogram2d(v, v**2, bins=3); np.histogram2d(y, y, bins=(2, [0, 1, 2, 3]), density=True)
np.histogram2d(v, -v, [4, 3], [[-1, 1], [-2, 0]], weights=v); np.histogramdd(x[:, :3], bins=2)
np.choose(i, x.T[:3, :3]); np.choose(k, [x, k, -1, y], mode="clip"); i.choose([4, 5.5, i])
x[np.ix_(i, [True, False, True, True])]; np.ix_(i, [0]); np.ravel_multi_index((i, i + 1), x.shape)
np.ravel_multi_index((k, i[:1] - 3), (4, 5), mode=("wrap", "clip"), order="F")
np.unravel_index(k, (3, 4)); np.unravel_index(x.argmax(), x.shape)
np.unravel_index(i, 3, order="F"); x[:, :3][np.diag_indices(3)]; np.diag_indices_from(x[:, 1:])
np.tril_indices_from(x, -1); x[np.triu_indices_from(x, 1)]; np.tril_indices(x.shape[0], 1, 5)
np.triu_indices(4, m=x.shape[0]); np.mask_indices(3, np.tril)[0] + i[0]
np.apply_along_axis(lambda r: r.max() - r[0], 1, x); np.apply_along_axis(np.cumsum, 0, x)
np.apply_along_axis(lambda r, p: r[::-1] * p, 0, x, 2)
np.apply_along_axis(lambda r: np.outer(r, r), 1, k); np.apply_over_axes(np.sum, x, [0, 1])
np.hanning(x.shape[0]) * y[0]; np.hamming(len(v)) * v; np.blackman(v.shape[0]) + v
np.bartlett(v.shape[0]) * v; np.kaiser(v.shape[0], 8.6) * v; np.kaiser(5, y[0]); np.i0(x); np.i0(k)
np.polyadd(y, v); np.polysub(k[0], [1, 2.5]); np.polyder(v); np.polyder(k[0], 2); np.polyint(v)
np.polyint(k[0], 2, [1, 2.5]); np.poly(y); np.poly(i); np.packbits(b); np.packbits(k, axis=0)
np.packbits(b, 1, "little"); np.unpackbits(k.astype(np.uint8), axis=1, count=5)
np.unpackbits(i.astype(np.uint8), count=-3, bitorder="little"); np.linalg.norm(x, 1)
np.linalg.norm(k, -np.inf, (1, 0)); np.linalg.norm(x, np.inf, keepdims=True); np.linalg.norm(v, 3)
np.linalg.norm(x + 1j, axis=1); np.linalg.vector_norm(x, axis=(0, 1), ord=1)
np.linalg.vector_norm(k, keepdims=True); np.linalg.matrix_norm(x, ord=-1)
np.linalg.matrix_power(x[:, 1:], 5); np.linalg.matrix_power(k[:, :3], 0); np.dsplit(x[None], 2)
np.extract(b, x).sum(); np.extract([1, 0, 1], y); np.compress([0, 1], x, 1); x.compress([0, 1, 1])
np.compress(y > 1, x, axis=1).max(axis=1); np.require(x.T, None, "C"); np.asarray_chkfinite(x)
np.real_if_close(x); np.array_equiv(x, x[:1]); np.array_equiv(y, v); np.isfortran(x * 1)
[e * p[0] for p, e in np.ndenumerate(x)]; np.common_type(x, k); np.mintypecode([x, "F"])
(np.isscalar(x[0, 0]), np.isscalar(x), np.iterable(x)); np.promote_types(k.dtype, "f4")
np.unique([3, 1, 3]) * y[0]; np.argwhere(np.eye(2)) + i[0]; np.setdiff1d(np.arange(4), [1]) + i[0]
np.isclose(b, b); np.allclose(b, True); np.meshgrid(x, y)
np.isclose(k.astype(np.uint8), 250, atol=20)
np.quantile(v, True); np.quantile(y, False, method="hazen"); np.percentile(v, True)
np.quantile(k, np.array([True, False])); np.histogram(y, weights=y > 1)
np.histogram(v, [0, 1], weights=v)
np.histogram(y, 3, weights=y > 1, density=True); np.polyval(v, y); np.linalg.matrix_rank(v)
np.isneginf(np.log(x)); np.isposinf(-np.log(x)); np.isneginf(v, v > 0); np.angle(k, True)
np.nansum([k[0], k[1]])
""".replace("\n", ";").split(";")  # fmt: skip

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda a: a,
    "transposed": lambda a: np.asarray(a, order="F"),
    "reversed": lambda a: np.array(a[::-1])[::-1],
    "strided": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
}


def arguments() -> dict[str, Any]:
    x = np.arange(12.0).reshape(3, 4)
    return {
        "x": x,
        "y": np.array([1.5, 2.0, 0.5, 3.0]),
        "i": np.array([2, 0, 1]),
        "v": np.linspace(-1, 2, 9),
        "k": np.arange(12).reshape(3, 4),
        "b": x % 2 == 0,
    }


def compiled(expression: str, names: str) -> Callable[..., Any]:
    """A lambda whose source is in no file, on a fresh namespace."""
    made: Callable[..., Any] = eval(f"lambda {names}: {expression}", {"np": np})
    return made


@pytest.mark.parametrize("expression", [e.strip() for e in EXPRESSIONS if e.strip()])
def test_an_expression_equals_numpy_in_every_layout(expression: str) -> None:
    plain = arguments()
    function = compiled(expression, ", ".join(plain))
    for layout in LAYOUTS.values():
        assert_same(function, *(layout(a) for a in plain.values()))
    inner = compiled(expression, "x, k, i")
    captured = {name: plain[name] for name in ("y", "v", "b")}
    inner.__globals__.update(captured)
    assert_same(inner, plain["x"], plain["k"], plain["i"])


def test_the_place_of_a_diagonal_may_be_an_argument_or_a_size() -> None:
    x = np.arange(12.0).reshape(3, 4)
    for offset in (0, 2, -1, 5, True):
        assert_same(lambda x, k: (np.diag(x, k), np.trace(x, k), x.diagonal(k)), x, offset)
    assert_same(lambda x: (np.diagonal(x, x.shape[0]), np.diag(x, 1 - len(x))), x)


def test_a_histogram_by_edges_takes_no_bools_as_weights() -> None:
    with pytest.raises(TypeError):
        trace_function(lambda x: np.histogram(x, [0.0, 1, 2], weights=x > 1), np.arange(3.0))
