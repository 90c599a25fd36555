"""Histograms of bins of one width: where elements fall is computed, and is where NumPy has it.

Not here: other bins, several dimensions (tests/frontend).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracemill as tm
from traced import assert_equal, outcome

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore:Converting input from bool")]
RANGES = [None, (0, 1), (-3.5, 7.25), (0, 256)]


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i4", "u1", "i8", "?"])
@pytest.mark.parametrize("bounds", RANGES, ids=str)
def test_elements_fall_into_the_bins_of_numpy(dtype: str, bounds: Any, rng: Any) -> None:
    bins = int(rng.integers(1, 40))
    compiled = tm.jit(lambda x: np.histogram(x, bins=bins, range=bounds))
    for n in (1, 7, 300):
        x = rng.integers(0, 100, n) if dtype[0] not in "f" else rng.standard_normal(n) * 3
        x = x.astype(dtype)
        if bounds is not None:  # elements on edges, and what no bin has
            edges = np.linspace(*bounds, bins + 1)[:n].astype(dtype)
            x[: len(edges)] = edges
            if dtype[0] == "f":
                x[-3:] = np.array([np.nan, np.inf, -np.inf])[:n]
        (want, _), (got, _) = outcome(compiled.__wrapped__, [x]), outcome(compiled, [x])
        assert_equal(got, want)


def test_windows_are_not_made_for_the_few_that_are_taken() -> None:
    def spectra(x: Any) -> Any:
        parts = np.lib.stride_tricks.sliding_window_view(x, 64)[::32]
        return ((parts - parts.mean(1, keepdims=True)) ** 2).sum(1)

    x = np.sin(np.arange(4000.0))
    np.testing.assert_allclose(tm.jit(spectra)(x), spectra(x), rtol=1e-12)
    assert tm.jit(spectra).lower(x).plan.peak_bytes(n=4000) < 5 * 8 * 4000
