"""Mapping to a grid changes where a kernel's points are computed, never what they are."""

from __future__ import annotations

import numpy as np
import pytest

from grid_kernels import SUITE, plan_of
from kernel_runner import sym
from plan_runner import PlanRun
from tracemill.compiler.kernel.grid import GRID, map_to_grid, segments, verify_binds
from tracemill.compiler.kernel.interpreter import interpret
from tracemill.compiler.kernel.kernel import (
    Constant,
    Kernel,
    Let,
    Load,
    Local,
    Parallel,
    Parameter,
    Reduce,
    Store,
)
from tracemill.compiler.kernel.printer import kernel_text
from tracemill.compiler.kernel.schedule import IllegalSchedule
from tracemill.compiler.types import F32

n, m, i, j = (sym(name) for name in "nmij")
SMALL = ("chain strided", "layer norm", "two axes", "places", "complex", "running sum",
         "pad", "gather", "scatter", "whole sum")  # fmt: skip


class MappedRun(PlanRun):
    """Interprets the mapped kernel in place of its own."""

    def kernel(self, kernel, arrays, dims, extent):
        return interpret(map_to_grid(kernel).kernel, arrays, dims, self.shuffle.shuffle)


@pytest.mark.parametrize("name", SMALL)
def test_interpreting_before_and_after_agrees_bit_for_bit(name):
    _, args = SUITE[name]
    plan = plan_of(name)
    before = PlanRun(plan, [a.copy() for a in args], {}, 0).run()
    after = MappedRun(plan, [a.copy() for a in args], {}, 0).run()
    for a, b in zip(before, after):
        assert a.tobytes() == b.tobytes()


def row_sums(extent=m):
    body = (
        Reduce(("s",), "sum", "j", extent, (Load("a", "x", (i, j), F32),), ("a",), (F32,)),
        Store("o", (i,), "s"),
    )
    params = (Parameter("x", F32, (n, extent), "in"), Parameter("o", F32, (n,), "out"))
    dims = ("n", "m") if extent is m else ("n",)
    return Kernel("sums", params, dims, (Parallel("i", n, body, threads=True),))


ROWS = """\
kernel @sums(x: f32[n, 70], out o: f32[n]) dims n {
  parallel row in n [bind grid.x] {
    local lanes: f32[64] shared
    parallel lane in 64 [bind block.x] {
      neutral = -0.0 : f32
      loop step in (((-lane + 133) // 64)) carry (held = neutral) {
        a = load x[row, lane + 64*step]
        join = add held, a : f32
        yield join
      }
      store lanes[lane] = held
    }
    parallel lane0 in 32 [bind block.x] {
      near = load lanes[lane0]
      far = load lanes[lane0 + 32]
      join0 = add near, far : f32
      store lanes[lane0] = join0
    }
"""


def test_a_row_is_a_block_and_a_lane_of_its_sum_a_thread():
    mapped = map_to_grid(row_sums(70))
    assert (mapped.blocks, mapped.threads) == (n, 64)
    text = kernel_text(mapped.kernel)
    assert text.startswith(ROWS)
    assert text.endswith("""\
    s = load lanes[0]
    parallel first in 1 [bind block.x] {
      store o[row] = s
    }
  }
}
""")


def test_rows_of_unknown_length_run_over_blocks_of_elements():
    mapped = map_to_grid(row_sums())
    assert "s = reduce sum chunk in (((m + 4095) // 4096)) [tree] {" in kernel_text(mapped.kernel)
    rng = np.random.default_rng(1)
    for size in (0, 1, 2, 7, 8, 9, 63, 64, 65, 4099, 5000):
        x = rng.standard_normal((2, size)).astype(np.float32)
        mine, theirs = np.ones(2, np.float32), np.zeros(2, np.float32)
        interpret(mapped.kernel, [x, mine], {"n": 2, "m": size})
        interpret(row_sums(), [x, theirs], {"n": 2, "m": size})
        assert mine.tobytes() == theirs.tobytes()


def test_points_are_threads_and_the_last_block_has_fewer():
    body = (Load("a", "x", (i, j), F32), Let("b", "neg", ("a",), F32), Store("o", (j, i), "b"))
    params = (Parameter("x", F32, (n, m), "in"), Parameter("o", F32, (m, n), "out"))
    kernel = Kernel("t", params, ("m", "n"), (Parallel("i", n, (Parallel("j", m, body),)),))
    mapped = map_to_grid(kernel)
    assert mapped.threads == 256
    (grid,) = mapped.kernel.body
    assert isinstance(grid, Parallel)
    assert grid.bind == GRID
    assert mapped.blocks == (m * n + 255) // 256
    assert not any(barrier for _, barrier in segments(grid.body, False))


def test_barriers_stand_after_nests_and_after_common_loads():
    (grid,) = map_to_grid(row_sums(70)).kernel.body
    assert isinstance(grid, Parallel)
    marks = [(type(piece[-1]).__name__, barrier) for piece, barrier in segments(grid.body, False)]
    assert marks == [("Local", False), *[("Parallel", True)] * 7, ("Load", True),
                     ("Parallel", True)]  # fmt: skip


def nest(*body):
    return Parallel("t", 8, body, bind="block.x")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ((Constant("c", 0.0, F32), Store("o", (0,), "c")), "every thread of a block would store"),
        ((nest(nest()),), "bound inside one thread's code"),
        ((nest(Local("l", F32, (4,), "shared")),), "is in shared memory"),
        ((Local("l", F32, (4,), "stack"),), "is not in shared memory"),
        ((Parallel("b", 2, (Parallel("c", 2, (), bind=GRID),), bind=GRID),), "inside a block"),
        ((Parallel("b", 2, ()),), "bound to None inside a block"),
    ],
)
def test_binds_that_threads_could_not_keep_are_refused(body, complaint):
    kernel = Kernel("k", (Parameter("o", F32, (1,), "out"),), (), body)
    with pytest.raises(IllegalSchedule, match=complaint):
        verify_binds(kernel)
