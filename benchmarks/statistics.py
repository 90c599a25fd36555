"""Medians, their intervals, and paired ratios.

Not here: how samples are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    """A median with its 95% interval (percentile bootstrap)."""

    median: float
    low: float
    high: float


def median_of(samples: Sequence[float], seed: int = 0) -> Estimate:
    """Median of the samples and its bootstrap interval."""
    values = np.asarray(samples, np.float64)
    draws = np.random.default_rng(seed).integers(0, len(values), (RESAMPLES, len(values)))
    medians = np.median(values[draws], axis=1)
    low, high = np.percentile(medians, (2.5, 97.5))
    return Estimate(float(np.median(values)), float(low), float(high))


def ratio_of(
    slower: Sequence[Sequence[float]], faster: Sequence[Sequence[float]], seed: int = 0
) -> Estimate:
    """median(slower)/median(faster) block by block: drift of the machine cancels out.

    Both arguments are lists of blocks taken alternately; block i of one belongs to block i of
    the other.
    """
    pairs = [np.median(a) / np.median(b) for a, b in zip(slower, faster, strict=True)]
    return median_of(pairs, seed)


def geometric_mean(ratios: Sequence[float]) -> float:
    """exp of the mean logarithm."""
    return float(np.exp(np.mean(np.log(np.asarray(ratios, np.float64)))))
