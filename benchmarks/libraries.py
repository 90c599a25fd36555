"""Other libraries under the few NumPy spellings that the workloads use.

Not here: what is computed (workloads/), processes (worker.py).
"""

from __future__ import annotations

from typing import Any


class TorchAsNumPy:
    """torch."""

    def __init__(self, torch: Any) -> None:
        self.sqrt, self.exp, self.log, self.where = torch.sqrt, torch.exp, torch.log, torch.where
        self.mean = torch.mean
        self.maximum = torch.clamp_min
        self._torch = torch

    def max(self, x: Any, axis: int, keepdims: bool) -> Any:
        """Largest along an axis."""
        return self._torch.amax(x, axis, keepdim=keepdims)

    def sum(self, x: Any, axis: int, keepdims: bool = False) -> Any:
        """Sum along an axis."""
        return self._torch.sum(x, axis, keepdim=keepdims)

    def transpose(self, x: Any) -> Any:
        """A matrix turned round."""
        return x.T


class TensorFlowAsNumPy:
    """TensorFlow."""

    def __init__(self, tf: Any) -> None:
        self.sqrt, self.exp, self.log, self.tanh = tf.sqrt, tf.exp, tf.math.log, tf.tanh
        self.sin, self.abs, self.where = tf.sin, tf.abs, tf.where
        self.maximum, self.transpose = tf.maximum, tf.transpose
        self.sort, self.argsort = tf.sort, tf.argsort
        self.sum, self.max, self.mean = tf.reduce_sum, tf.reduce_max, tf.reduce_mean
