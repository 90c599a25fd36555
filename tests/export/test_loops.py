"""Loops and branches in exported libraries: the C program's bits are the compiled function's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tracemill as tm
from c_programs import CProgram
from tracemill import TracemillError

pytestmark = [pytest.mark.cpu, pytest.mark.tool("cc")]


@tm.jit
def turns(x, n):
    def body(i, state):
        y, total = state
        y = tm.cond(y.sum() > 10, lambda: y * 0.5, lambda: y + i)
        return y, total + y.sum()

    y, total = tm.fori_loop(0, n, body, (x, 0.0))
    last, rows = tm.scan(lambda c, r: (c[::-1] + r, c * r), y, y, reverse=True)
    halves = tm.while_loop(lambda c: c > 1e-3, lambda c: c / 2, total)
    return last, rows, halves


def test_a_library_loops_as_the_function_does(tmp_path: Path, rng) -> None:
    made = turns.export(tmp_path / "libturns.so", rng.random(5), 3, features="host")
    program = CProgram(
        tmp_path,
        made,
        """
        turns *instance = turns_create();
        for (int call = 0; call < 4; call++) {
            int64_t n = get_size();
            double *x = get_array(n, 8);
            int64_t trips = get_size();
            double *last = malloc(n * 8 + 1), *rows = malloc(n * n * 8 + 1), halves;
            if (turns_run(instance, x, trips, n, last, n, rows, n * n, &halves, 1)) return 1;
            put(last, n * 8);
            put(rows, n * n * 8);
            put(&halves, 8);
            free(x); free(last); free(rows);
        }
        turns_destroy(instance);
        """,
    )
    given: list[object] = []
    want = b""
    for n, trips in ((5, 3), (1, 6), (7, 0), (4, 9)):
        x = rng.random(n)
        given += [n, x, np.int64(trips)]
        for part in turns(x, trips):
            want += np.asarray(part).tobytes()
    assert program.run(*given) == want


def test_a_print_inside_a_loop_cannot_be_exported(tmp_path: Path) -> None:
    @tm.jit
    def shows(x):
        def body(i, c):
            tm.print("{}", i)
            return c

        return tm.fori_loop(0, 3, body, x)

    with pytest.raises(TracemillError, match="TM113"):
        shows.export(tmp_path / "libshows.so", np.ones(3))
