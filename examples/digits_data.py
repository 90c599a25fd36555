"""The handwritten digits of scikit-learn, split once and for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits

HELD_OUT = 0.2


@dataclass(frozen=True)
class Split:
    """Images as rows of 64 float32 in [0, 1], labels as int64."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def load() -> Split:
    """The fixed split: a seeded shuffle, the last fifth held out."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.data))
    images = (digits.data[order] / 16.0).astype(np.float32)
    labels = digits.target[order].astype(np.int64)
    cut = int(len(order) * (1 - HELD_OUT))
    return Split(images[:cut], labels[:cut], images[cut:], labels[cut:])
