"""Lanes to test elementwise bodies with: edge values and random ones, by dtype; distances."""

from __future__ import annotations

import itertools

import numpy as np

from tracemill.compiler.types import BF16, BOOL, DType, real_part_of


def edge_values(dtype: DType) -> np.ndarray:
    """The values that break things: zeros, ones, extremes, denormals, infinities, NaN."""
    if dtype is BOOL:
        return np.array([False, True])
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        near = [info.min, info.min + 1, info.max - 1, info.max, 0, 1, 2, 3, 5, 7, 8, 31, 63, 100]
        signed = [-1, -2, -3, -7, -100] if dtype.kind == "i" else []
        return (
            np.array([int(v) & ((1 << dtype.bits) - 1) for v in near + signed], np.uint64)
            .astype(f"u{dtype.bits // 8}")
            .view(dtype.numpy)
        )
    if dtype.is_complex:
        part = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan, 1e-40, 3e30])
        pairs = list(itertools.product(part, part))
        made = np.empty(len(pairs), dtype.numpy)
        made.real, made.imag = np.array(pairs).T
        return made
    with np.errstate(over="ignore"):
        wide = np.array(
            [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.0, -2.5, 3.0, 0.1, -0.3, 7.0, 1e-3, 100.0,
             -1000.0, 6e4, 1e9, -3e15, 1e30, np.inf, -np.inf, np.nan, np.pi, -np.e]
        ).astype(dtype.numpy)  # fmt: skip
    bits = np.array(_special_bits(dtype), dtype=f"u{dtype.bits // 8}").view(dtype.numpy)
    return np.concatenate([wide, bits, -bits])


def _special_bits(dtype: DType) -> list[int]:
    """Denormals, the least normal, the greatest finite, neighbours of one."""
    mantissa = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[dtype.name]
    one = int(np.array(1.0, dtype.numpy).view(f"u{dtype.bits // 8}"))
    infinity = int(np.array(np.inf, dtype.numpy).view(f"u{dtype.bits // 8}"))
    least = 1 << mantissa
    return [1, 2, 3, least // 2, least - 1, least, least + 1, infinity - 1, one - 1, one + 1]


def random_values(dtype: DType, count: int, rng: np.random.Generator) -> np.ndarray:
    """Ordinary magnitudes, half of them; all bit patterns, the other half."""
    if dtype is BOOL:
        return rng.integers(0, 2, count).astype(bool)
    if dtype.is_complex:
        part = real_part_of(dtype)
        made = np.empty(count, dtype.numpy)
        made.real, made.imag = (random_values(part, count, rng) for _ in range(2))
        return made
    bits = rng.integers(0, 1 << 63, count, dtype=np.uint64) * np.uint64(2)
    bits = (bits ^ (bits >> np.uint64(31))).astype(f"u{dtype.bits // 8}")
    wild = bits.view(dtype.numpy)
    if dtype.is_integer:
        tame = rng.integers(0, 120, count).astype(dtype.numpy)
        tame = np.where(rng.random(count) < 0.5, tame, -tame) if dtype.kind == "i" else tame
        return np.where(rng.random(count) < 0.5, wild, tame).astype(dtype.numpy)
    tame = (rng.standard_normal(count) * 2.0 ** rng.integers(-3, 4, count)).astype(dtype.numpy)
    return np.where(rng.random(count) < 0.5, wild, tame)


def operand_lanes(dtypes, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """All pairs (or triples, thinned) of edge values, then `count` random lanes."""
    edges = [edge_values(d) for d in dtypes]
    grid = np.meshgrid(*[np.arange(len(e)) for e in edges], indexing="ij")
    picks = [g.ravel() for g in grid]
    if len(picks[0]) > 4000:
        keep = rng.choice(len(picks[0]), 4000, replace=False)
        picks = [p[keep] for p in picks]
    return [
        np.concatenate([e[p], random_values(d, count, rng)])
        for e, p, d in zip(edges, picks, dtypes)
    ]


def ordered_bits(x: np.ndarray) -> np.ndarray:
    """Floats as integers in the same order, both zeros 0: differences count steps."""
    width = x.dtype.itemsize
    bits = np.ascontiguousarray(x).view(f"i{width}").astype(np.int64)
    lowest = np.int64(-(1 << (8 * width - 1)))
    return np.where(bits < 0, lowest - bits, bits)


def same_bits(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Lane by lane: equal bits, where all NaN count as equal."""
    if got.dtype.kind == "c":
        return same_bits(got.real, want.real) & same_bits(got.imag, want.imag)
    if got.dtype.kind == "f" or got.dtype == BF16.numpy:
        raw = f"u{got.dtype.itemsize}"
        with np.errstate(invalid="ignore"):
            both_nan = (got != got) & (want != want)
        mine = np.ascontiguousarray(got).view(raw)
        return both_nan | (mine == np.ascontiguousarray(want).view(raw))
    return got == want
