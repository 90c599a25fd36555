"""What has lost its digits: values that roundings before them make into anything.

The remainder of a rounded value, the bits of one, a difference that cancels: what comes out says
nothing, and what follows from it neither. Other numbers are put in its place; where results
change, they rest on it.

Not here: how far a rounded value may be off (judge.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lanes import same_bits
from numpy_lines import kind_of

SHARE = 0.5  # of its size that a value without a digit spreads over
SOME = 1e-3  # and one with few


def lost_digits(want: Any, samples: Sequence[Any], share: float = SHARE) -> Any:
    """Where the samples spread over so much of the size of `want`."""
    value = np.asarray(want)
    if not samples:
        return np.zeros(value.shape, bool)
    with np.errstate(all="ignore"):
        wide = np.complex128 if kind_of(value) == "c" else np.float64
        value = value.astype(wide)
        moved = [np.asarray(s).astype(wide) for s in samples]
        spread = np.fmax.reduce([np.abs(s - value) for s in moved])
        mask = (spread >= share * np.abs(value)) & (spread > 0)
        return mask | np.logical_or.reduce([np.isfinite(s) != np.isfinite(value) for s in moved])


def rests_on_lost(got: Any, want: Any, samples: Sequence[Any], strayed: Sequence[Any]) -> Any:
    """Where others in the place of what was lost change `want`, few digits of which agree, or
    make just what was got of it: a step from one number to another, such as a sign."""
    changed = [~same_bits(np.asarray(other), np.asarray(want)) for other in strayed]
    if not changed:
        return np.zeros(np.shape(want), bool)
    few = kind_of(want) not in "fc" or lost_digits(want, samples, SOME)
    alike = [same_bits(np.asarray(other), np.asarray(got)) for other in strayed]
    few |= np.logical_or.reduce(alike).reshape(np.shape(want))
    return np.logical_or.reduce(changed).reshape(np.shape(want)) & few


_FACTORS = np.array([1.0, 1.0, 1e-3, 1e3, -1.0, 0.0, np.inf, np.nan])
STRAYS = len(_FACTORS)  # runs with others in the place of what is lost


class Lost:
    """Puts others in the place of what has lost its digits. turn: the number of the run; a float
    is moved in another way in each."""

    def __init__(
        self, seed: int, turn: int, masks: Mapping[int, Any], samples: Sequence[Sequence[Any]]
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.turn = turn
        self.masks = masks
        self.samples = samples

    def replaced(self, at: int, made: Any, operands: Sequence[Any]) -> Any:
        """Value number `at` with others where it needs them; a view stays one."""
        mask, array = self.masks.get(at), np.asarray(made)
        if mask is None or mask.shape != array.shape:
            return made
        if any(isinstance(o, np.ndarray) and np.may_share_memory(o, array) for o in operands):
            return made
        drawn = np.array(array)
        count = int(mask.sum())
        pool = np.concatenate([np.asarray(s[at])[mask] for s in self.samples])
        others = pool[self.rng.integers(len(pool), size=count)]
        with np.errstate(all="ignore"):
            drawn[mask] = self._elsewhere(others, at).astype(array.dtype)
        if isinstance(made, np.ndarray):
            return drawn
        return drawn.item() if type(made) in (bool, int, float, complex) else drawn[()]

    def _elsewhere(self, values: Any, at: int) -> Any:
        """Any of the values, near them, or far away. at: the number of the value."""
        kind = kind_of(values)
        if kind == "b":
            return self.rng.integers(2, size=values.shape).astype(bool)
        if kind == "i":
            return values + self.rng.integers(-1, 2, size=values.shape).astype(values.dtype)
        first = np.random.default_rng(at).integers(STRAYS, size=values.shape)
        return values * _FACTORS[(first + self.turn) % STRAYS]
