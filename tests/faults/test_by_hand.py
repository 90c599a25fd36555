"""More faults whose right answer NumPy does not give, each with the answer written out.

Not here: gradients of single ops (tests/transforms), loops (tests/compiled), threads one by one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill.compiler.errors import TraceError
from tracemill.compiler.plan import Copy, Loop

pytestmark = pytest.mark.cpu

# Functions of two equal elements: the first takes all of the gradient.
TIES: dict[str, Callable[[Any], Any]] = {
    "max": lambda x: x.max(),
    "min": lambda x: x.min(),
    "place of the greatest": lambda x: x[x.argmax()],
    "maximum": lambda x: np.maximum(x[0], x[1]),
    "minimum": lambda x: np.minimum(x[0], x[1]),
    "fmax": lambda x: np.fmax(x[0], x[1]),
    "nanmax": lambda x: np.nanmax(x),
    "clip at its lower bound": lambda x: np.clip(x, 1.0, 2.0)[0],
    "clip at its upper bound": lambda x: np.clip(x, 0.0, 1.0)[0],
    "clip by an element": lambda x: np.clip(x[0], x[1], 5.0),
    "first of a sort": lambda x: np.sort(x)[0],
    "top_k": lambda x: tm.top_k(x, 1)[0][0],
}


@pytest.mark.parametrize("name", TIES)
def test_the_first_of_two_equal_elements_takes_all_of_the_gradient(name: str) -> None:
    assert tm.grad(TIES[name])(np.array([1.0, 1.0])).tolist() == [1, 0]


def test_a_sort_hands_gradients_back_to_where_its_elements_stood() -> None:
    x = np.array([2.0, 1.0, 1.0])
    assert tm.grad(lambda x: np.sort(x) @ np.array([1.0, 10.0, 100.0]))(x).tolist() == [100, 1, 10]


def test_the_gradient_past_a_masked_diagonal_is_the_slope() -> None:
    def energy(x: Any) -> Any:
        apart = x[:, None] - x[None]
        distance = np.sqrt((apart * apart).sum(-1))
        charges = np.arange(9.0).reshape(3, 3)
        return np.where(~np.eye(3, dtype=bool), charges / distance, 0).sum()

    x = np.arange(6.0).reshape(3, 2) ** 1.5
    slopes, step = np.zeros_like(x), 1e-6
    with np.errstate(all="ignore"):
        for at in np.ndindex(x.shape):
            up, down = x.copy(), x.copy()
            up[at] += step
            down[at] -= step
            slopes[at] = (energy(up) - energy(down)) / (2 * step)
    np.testing.assert_allclose(tm.grad(energy)(x), slopes, atol=1e-7)
    np.testing.assert_allclose(tm.jit(tm.grad(energy))(x), slopes, atol=1e-7)


def test_another_structure_of_what_is_carried_is_shown_beside_the_first() -> None:
    doubled = tm.jit(
        lambda rows: tm.scan(lambda carried, row: ((carried, carried), row), 0.0, rows)
    )
    with pytest.raises(TraceError) as caught:
        doubled(np.ones(3))
    assert "PyTreeSpec(*)" in str(caught.value)
    assert "PyTreeSpec((*, *))" in str(caught.value)


def test_only_the_branch_that_is_taken_prints(capsys: pytest.CaptureFixture[str]) -> None:
    def told(word: str, number: float) -> Callable[[], float]:
        def branch() -> float:
            tm.print(word)
            return number

        return branch

    choice = tm.jit(lambda p: tm.cond(p > 0, told("up", 1.0), told("down", 2.0)))
    assert [choice(p) for p in (1.0, -1.0, 3.0)] == [1, 2, 1]
    assert capsys.readouterr().out.split() == ["up", "down", "up"]


def test_a_loop_that_writes_one_column_a_trip_copies_no_array() -> None:
    def filled(x: Any) -> Any:
        def body(k: Any, made: Any) -> Any:
            made[:, k] = k
            return made

        return tm.fori_loop(0, x.shape[1], body, x + 1)

    compiled = tm.jit(filled)
    assert compiled(np.zeros((2, 30))).tolist() == [list(range(30))] * 2
    plan = compiled.lower(np.zeros((2, 30))).plan.data
    (loop,) = [row for row in plan.rows if isinstance(row, Loop)]
    assert not any(isinstance(row, Copy) for row in loop.body)
    matrices = [buffer.name for buffer in plan.buffers if len(buffer.shape) == 2]
    assert len(matrices) == 2  # the argument and the result: nothing to take turns with


def test_an_edited_helper_is_noticed_by_the_next_process(
    run_python: Callable[..., str], tmp_path: Path
) -> None:
    main = f"""
        import sys
        sys.dont_write_bytecode = True
        sys.path.insert(0, {str(tmp_path)!r})
        import numpy as np
        import tracemill as tm
        from edited import step
        print(tm.jit(lambda x: step(x) * 2)(np.arange(3.0)).tolist())
    """
    for added in (1, 2, 1):
        (tmp_path / "edited.py").write_text(f"def step(x):\n    return x + {added}\n")
        printed = run_python(textwrap.dedent(main), TRACEMILL_CACHE=str(tmp_path / "cache"))
        assert printed.split("\n")[0] == str([2.0 * (n + added) for n in range(3)])


def test_parallel_functions_inside_each_other_run_from_several_threads() -> None:
    inner = tm.jit(lambda x: np.exp(x).sum())
    outer = tm.jit(lambda x: inner(x) + inner(x * 2))
    blocks = [np.full(100_000, k * 1e-3) for k in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(outer, blocks))
    np.testing.assert_allclose(found, [(np.exp(b) + np.exp(2 * b)).sum() for b in blocks])
