"""Programs as people write them run unchanged, equal to NumPy, in one version for all sizes."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from public_programs import PROGRAMS

pytestmark = pytest.mark.cpu


def arrays(made: Any) -> list[Any]:
    return [np.asarray(item) for item in (made if isinstance(made, tuple) else (made,))]


@pytest.mark.parametrize(
    ("function", "make", "sizes"), PROGRAMS, ids=[program[0].__name__ for program in PROGRAMS]
)
def test_it_gives_what_numpy_gives(function: Any, make: Any, sizes: Any) -> None:
    compiled = tm.jit(function)
    for n in sizes:
        plain, own = make(n), copy.deepcopy(make(n))
        with np.errstate(all="ignore"):
            want = arrays(function(*plain))
            got = arrays(compiled(*own))
        for a, b in zip([*got, *own], [*want, *plain], strict=True):
            if isinstance(b, np.ndarray):
                np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    assert len(compiled.explain_recompiles()) == 1
