"""Losses over solvers, decompositions and Fourier transforms, and matrices they are smooth at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
LA, F = np.linalg, np.fft
R = np.random.default_rng(2)
M = R.standard_normal((4, 4))
S = M @ M.T + 2 * np.eye(4)
C = S + 1j * (M - M.T)  # Hermitian
BATCH = np.stack([S, S.T + M])


def symmetric(a: Array) -> Array:
    return (a + np.conjugate(np.swapaxes(a, -1, -2))) / 2


def size(z: Array) -> Array:
    return (z.real**2 + 0.5 * z.imag**2 + z.real).sum()


def of_rank(a: Array, count: int) -> Array:
    u, s, vh = LA.svd(a, full_matrices=False)
    return (u * s[..., None, :])[..., :count] @ vh[..., :count, :]


LOSSES: dict[str, Callable[[Array], Any]] = {
    "inv": lambda a: size(LA.inv(a)),
    "solve, the matrix": lambda a: size(LA.solve(a, M)),
    "solve, the right side": lambda a: size(LA.solve(C, a)),
    "solve, a vector": lambda a: size(LA.solve(a, a[..., 0, :])) if a.ndim == 2 else a.real.sum(),
    "det": lambda a: size(LA.det(a)),
    "slogdet": lambda a: (LA.slogdet(a)[1] ** 2).sum(),
    "the sign of slogdet": lambda a: size(LA.slogdet(a * (1 + 0.2j))[0]),
    "cholesky": lambda a: size(LA.cholesky(symmetric(a)) * M),
    "eigenvalues": lambda a: (LA.eigh(symmetric(a))[0] ** 3).sum(),
    "eigenvectors": lambda a: (np.abs(LA.eigh(symmetric(a))[1]) ** 4 * M).sum(),
    "eigenvalues alone": lambda a: (LA.eigvalsh(symmetric(a)) ** 3).sum(),
    "eigenvalues, upper": lambda a: (LA.eigvalsh(symmetric(a), UPLO="U") ** 3).sum(),
    "eigenvectors, upper": lambda a: (np.abs(LA.eigh(symmetric(a), "U")[1]) ** 4 * M).sum(),
    "cholesky, upper": lambda a: size(LA.cholesky(symmetric(a), upper=True) * M),
    "singular values": lambda a: (LA.svdvals(a) ** 3).sum(),
    "singular values of all": lambda a: (LA.svd(a)[1] ** 3).sum(),
    "left vectors": lambda a: (np.abs(LA.svd(a)[0]) ** 4 * M).sum(),
    "right vectors": lambda a: (np.abs(LA.svd(a, full_matrices=False)[2]) ** 4 * M).sum(),
    "a part of rank 2": lambda a: size(of_rank(a, 2)),
    "pinv": lambda a: size(LA.pinv(a)),
    "norm": lambda a: LA.norm(a, "nuc", axis=(-2, -1)).sum(),
    "cond": lambda a: LA.cond(a).sum(),
    "fft": lambda a: size(F.fft(a)),
    "fft, filled up": lambda a: size(F.fft(a, n=6, norm="ortho")),
    "fft, cut": lambda a: size(F.fft(a, n=3, axis=0)),
    "ifft": lambda a: size(F.ifft(a)),
    "fft2": lambda a: size(F.fft2(a) ** 2),
    "rfft": lambda a: size(F.rfft(a.real)),
    "rfft, odd": lambda a: size(F.rfft(a.real, n=5)),
    "irfft": lambda a: (F.irfft(a * (1 + 2j)) ** 3).sum(),
    "irfft, odd": lambda a: (F.irfft(a * (1 + 2j), n=5) ** 3).sum(),
}
