"""Who calls: coroutines, pools of threads and processes, copies, NumPy's own loops.

Not here: threads that compile at once (tests/compiled/test_threads.py).
"""

from __future__ import annotations

import asyncio
import copy
import functools
import multiprocessing
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import joblib
import numpy as np
import pytest

import tracemill as tm
from called_from_pools import standardised

pytestmark = pytest.mark.cpu


ROWS = [np.arange(5.0) * k + k for k in range(1, 7)]
WANT = [(x - x.mean()) / x.std() for x in ROWS]


def same(made: Any) -> None:
    np.testing.assert_allclose(list(made), WANT, rtol=1e-13)


def test_coroutines() -> None:
    async def gathered() -> Any:
        return await asyncio.gather(*[asyncio.to_thread(standardised, row) for row in ROWS])

    same(asyncio.run(gathered()))


@pytest.mark.parametrize("prefer", ["threads", "processes"])
def test_joblib(prefer: str) -> None:
    parallel = joblib.Parallel(n_jobs=2, prefer=prefer, timeout=120)
    same(parallel(joblib.delayed(standardised)(x) for x in ROWS))


@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_processes(start: str) -> None:
    standardised(ROWS[0])  # what the child of a fork inherits is in use already
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork with threads
        with multiprocessing.get_context(start).Pool(2) as pool:
            same(pool.map_async(standardised, ROWS).get(timeout=120))


def test_threads() -> None:
    with ThreadPoolExecutor(4) as pool:
        same(pool.map(standardised, ROWS))


def test_copies_and_wrappers() -> None:
    same(map(copy.copy(standardised), ROWS))
    same(map(copy.deepcopy(standardised), ROWS))
    same(map(functools.partial(standardised), ROWS))
    same(map(functools.lru_cache(lambda k: standardised(ROWS[k])), range(6)))
    same(np.apply_along_axis(standardised, 1, np.array(ROWS)))
    assert functools.reduce(tm.jit(lambda a, b: a + b), [1.0, 2.0, 3.0]) == 6.0


def test_numpy_s_error_state_is_not_asked() -> None:
    """A compiled call raises and warns of nothing that NumPy only warns of."""
    inverse = tm.jit(lambda x: 1 / x)
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(inverse(np.zeros(2)), [np.inf, np.inf])
    with tm.disable_jit(), np.errstate(all="raise"), pytest.raises(FloatingPointError):
        inverse(np.zeros(2))
