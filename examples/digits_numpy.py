"""The demo's training step written by hand in plain NumPy, for comparison."""

from __future__ import annotations

import numpy as np

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class NumPyModel:
    """Two dense layers, cross-entropy, Adam; derivatives written out."""

    def __init__(self, parameters: list[np.ndarray], rate: float) -> None:
        self.parameters = [p.copy() for p in parameters]
        self.first = [np.zeros_like(p) for p in parameters]
        self.second = [np.zeros_like(p) for p in parameters]
        self.rate = rate
        self.count = 0

    def step(self, x: np.ndarray, y: np.ndarray) -> float:
        """One step; returns the loss before it."""
        w1, b1, w2, b2 = self.parameters
        hidden = np.maximum(x @ w1 + b1, 0)
        z = hidden @ w2 + b2
        z = z - z.max(axis=1, keepdims=True)
        log_sum = np.log(np.exp(z).sum(axis=1, keepdims=True))
        log_p = z - log_sum
        rows = np.arange(len(y))
        loss = -log_p[rows, y].mean()
        dz = np.exp(log_p)
        dz[rows, y] -= 1
        dz /= len(y)
        dh = np.where(hidden > 0, dz @ w2.T, 0)
        self._adam([x.T @ dh, dh.sum(axis=0), hidden.T @ dz, dz.sum(axis=0)])
        return float(loss)

    def _adam(self, gradients: list[np.ndarray]) -> None:
        self.count += 1
        correct1 = 1 - BETA1**self.count
        correct2 = 1 - BETA2**self.count
        for p, g, m, v in zip(self.parameters, gradients, self.first, self.second, strict=True):
            m *= BETA1
            m += (1 - BETA1) * g
            v *= BETA2
            v += (1 - BETA2) * g * g
            p -= self.rate * (m / correct1) / (np.sqrt(v / correct2) + EPSILON)
