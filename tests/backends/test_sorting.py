"""The steps of a sort: machine code leaves what the interpreter leaves, and rows are NumPy's.

Not here: sorting from user code (tests/compiled/test_sorting.py).
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kernel_runner import Compiled
from lanes import edge_values
from tracemill.backends.llvm.machine import host_machine, level_machine
from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.kernel.grid import map_to_grid
from tracemill.compiler.kernel.interpreter import interpret
from tracemill.compiler.kernel.lowering import lower
from tracemill.compiler.kernel.printer import kernel_text
from tracemill.compiler.kernel.region import region_of
from tracemill.compiler.kernel.schedule import IllegalSchedule
from tracemill.compiler.kernel.sorting import LONG, SELECTED, split_sort
from tracemill.compiler.kernel.verifier import complaints_about
from tracemill.compiler.types import BF16, DTYPES, TensorType

pytestmark = pytest.mark.cpu

MACHINES = {
    "host": host_machine(),
    "v3": level_machine("x86-64-v3"),
    "v2": level_machine("x86-64-v2"),
}
REAL = tuple(dtype for dtype in DTYPES if not dtype.is_complex)
ROWS = ((1, 1), (1, 7), (5, 2), (19, 24), (18, 33), (3, 100), (70, 100), (2, 300), (1, 5000),
        (6, 700), (4, 1024), (5, 1025), (0, 9), (3, 0))  # fmt: skip


def kernel_of(op, dtype, shape):
    """The kernel that puts rows of an array in order."""
    b = Builder("sorting")
    made = b.emit(op, [b.param("x", TensorType(dtype, shape))], {})
    return lower(region_of(made.node)).kernel


def elements(rng, dtype, shape):
    """Edge values among random ones, with many ties."""
    edges = edge_values(dtype)
    chosen = edges[rng.integers(0, len(edges), shape)]
    if dtype.is_float:
        spread = (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4)).astype(dtype.numpy)
    elif dtype.bits == 1:
        return chosen
    else:
        info = np.iinfo(dtype.numpy)
        spread = rng.integers(info.min, info.max, shape, dtype.numpy, endpoint=True)
    return np.where(rng.random(shape) < rng.random(), chosen, spread)


def numpys(op, x):
    """What NumPy makes of the rows."""
    wide = x.astype(np.float32) if x.dtype == BF16.numpy else x
    places = np.argsort(wide, axis=-1, kind="stable")
    return places if op == "argsort" else np.take_along_axis(x, places, -1)


def bits(x):
    return np.ascontiguousarray(x).view(np.uint8)


def arrays_for(kernel, x):
    """The source, and other buffers with garbage in them."""
    made = [x]
    for p in kernel.params[1:]:
        array = np.empty(p.shape, p.dtype.numpy)
        array.view(np.uint8)[...] = 0xA5
        made.append(array)
    return made


def launches(op, dtype, shape):
    split = split_sort(kernel_of(op, dtype, shape))
    assert split is not None
    for stage in split.stages:
        assert complaints_about(stage.kernel) == []
    return split.stages


def run_all(stages, x, machine, chunks):
    """All launches over one set of buffers, each in chunks of so many iterations."""
    largest = max((s.kernel for s in stages), key=lambda k: len(k.params))
    buffers = dict(zip([p.name for p in largest.params], arrays_for(largest, x)))
    for stage in stages:
        step = -(-stage.extent // chunks)
        ranges = [(a, min(a + step, stage.extent)) for a in range(0, stage.extent, max(step, 1))]
        mine = [buffers[p.name] for p in stage.kernel.params]
        Compiled(stage.kernel, machine)(*mine, chunks=reversed(ranges))
    return buffers["out"]


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("op", ["sort", "argsort"])
def test_rows_are_numpys_bit_for_bit(op, dtype, rng):
    for shape in ROWS:
        x = elements(rng, dtype, shape)
        got = run_all(launches(op, dtype, shape), x, host_machine(), 1)
        np.testing.assert_array_equal(bits(got), bits(numpys(op, x)), f"{dtype} {shape}")


@pytest.mark.parametrize("dtype", [d for d in REAL if d.name in ("i8", "u32", "f32", "f64")],
                         ids=str)  # fmt: skip
@pytest.mark.parametrize("op", ["sort", "argsort"])
def test_long_rows_in_pieces_are_numpys_bit_for_bit(op, dtype, rng):
    x = elements(rng, dtype, (2, LONG + 77))
    stages = launches(op, dtype, x.shape)
    assert [s.kernel.body[0].stage for s in stages][:3] == ["count", "spread", "buckets"]
    for chunks in (1, 5):
        got = run_all(stages, x, host_machine(), chunks)
        np.testing.assert_array_equal(bits(got), bits(numpys(op, x)))


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("op", ["sort", "argsort"])
def test_every_machine_sorts_alike(op, name, rng):
    for dtype, shape in itertools.product([d for d in REAL if d.name in ("i16", "f32", "u64")],
                                          [(19, 40), (2, 700)]):  # fmt: skip
        x = elements(rng, dtype, shape)
        got = run_all(launches(op, dtype, shape), x, MACHINES[name], 3)
        np.testing.assert_array_equal(bits(got), bits(numpys(op, x)))


@pytest.mark.parametrize("op", ["sort", "argsort"])
@pytest.mark.parametrize("dtype", [d for d in REAL if d.name in ("f16", "i32", "f64")], ids=str)
def test_each_step_leaves_what_the_interpreter_leaves(op, dtype, rng):
    x = elements(rng, dtype, (2, LONG + 5))
    stages = launches(op, dtype, x.shape)
    mine = arrays_for(stages[0].kernel, x)
    theirs = [array.copy() for array in mine]
    for stage in stages:
        Compiled(stage.kernel)(*mine, chunks=[(0, stage.extent)])
        assert interpret(stage.kernel, theirs, {}) is None
        over = stage.kernel.body[0].stage in ("buckets", "mend")
        for p, a, b in zip(stage.kernel.params, mine, theirs):
            if not over or p.name == "out":
                np.testing.assert_array_equal(bits(a), bits(b), f"{p.name} {stage.kernel.body}")
                continue
            a[...] = b


@pytest.mark.parametrize("pattern", ["same", "two", "sorted", "reversed", "powers", "tail"])
def test_no_distribution_of_keys_is_too_hard(pattern, rng):
    n = LONG + 1
    x = {
        "same": np.full(n, 3.5),
        "two": rng.integers(0, 2, n).astype(float),
        "sorted": np.arange(n) * 1.0,
        "reversed": np.arange(n)[::-1] * 1.0,
        "powers": 2.0 ** rng.integers(-1000, 1000, n),
        "tail": np.where(np.arange(n) == n // 2, 1e300, np.nextafter(0, 1) * rng.integers(1, 9, n)),
    }[pattern]
    for op, row in itertools.product(("sort", "argsort"), (x, x[:999])):
        f64 = next(d for d in DTYPES if d.name == "f64")
        got = run_all(launches(op, f64, row.shape), row, host_machine(), 2)
        np.testing.assert_array_equal(got, numpys(op, row))


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_elements_are_found_where_numpy_finds_them(side, name, rng):
    for dtype, n in itertools.product(REAL, (0, 1, 2, 7, 64, 1000)):
        row = numpys("sort", elements(rng, dtype, (n,)))
        wanted = elements(rng, dtype, (5, 13))
        b = Builder("searching")
        params = [b.param(p, TensorType(dtype, x.shape)) for p, x in (("r", row), ("w", wanted))]
        made = b.emit("searchsorted", params, {"side": side})
        (stage,) = split_sort(lower(region_of(made.node)).kernel).stages
        assert complaints_about(stage.kernel) == []
        assert "search row for wanted -> " + side in kernel_text(stage.kernel)
        mine, theirs = (np.full(wanted.shape, -1) for _ in "ab")
        Compiled(stage.kernel, MACHINES[name])(row, wanted, mine, chunks=[(40, 65), (0, 40)])
        interpret(stage.kernel, [row, wanted, theirs], {})
        wide = [x.astype(np.float32) if dtype is BF16 else x for x in (row, wanted)]
        np.testing.assert_array_equal(mine, np.searchsorted(*wide, side=side))
        np.testing.assert_array_equal(theirs, mine)


@pytest.mark.parametrize("name", MACHINES)
def test_the_greatest_are_selected_in_one_pass(name, rng):
    for dtype, shape, size in itertools.product(
        REAL, ((3, 5), (2, 150), (1, 9000)), (0, 1, 5, SELECTED)
    ):
        if size > shape[1]:
            continue
        x = elements(rng, dtype, shape)
        b = Builder("selecting")
        made = b.emit("greatest", [b.param("x", TensorType(dtype, shape))], {"size": size})
        (stage,) = split_sort(lower(region_of(made.node)).kernel).stages
        assert complaints_about(stage.kernel) == []
        mine, theirs = (np.full((shape[0], size), -1) for _ in "ab")
        ranges = [(row, row + 1) for row in range(shape[0])]
        Compiled(stage.kernel, MACHINES[name])(x, mine, chunks=ranges)
        interpret(stage.kernel, [x, theirs], {})
        backwards = numpys("argsort", x[:, ::-1])
        np.testing.assert_array_equal(mine, (shape[1] - 1 - backwards[:, ::-1])[:, :size])
        np.testing.assert_array_equal(theirs, mine)


@pytest.mark.parametrize("pattern", ["rising", "falling", "same", "nan"])
def test_no_row_is_too_hard_to_select_from(pattern):
    n = 20_000
    row = {"rising": np.arange(n), "falling": np.arange(n)[::-1], "same": np.zeros(n),
           "nan": np.full(n, np.nan)}[pattern]  # fmt: skip
    x = row[None].astype(np.float64)
    b = Builder("selecting")
    f64 = next(d for d in DTYPES if d.name == "f64")
    made = b.emit("greatest", [b.param("x", TensorType(f64, x.shape))], {"size": 60})
    (stage,) = split_sort(lower(region_of(made.node)).kernel).stages
    got = np.zeros((1, 60), np.int64)
    Compiled(stage.kernel)(x, got, chunks=[(0, 1)])
    first = n - 1 if pattern == "rising" else 0
    step = -1 if pattern == "rising" else 1
    np.testing.assert_array_equal(got[0], first + step * np.arange(60))


def test_a_grid_has_no_sorts_yet():
    kernel = kernel_of("sort", next(d for d in DTYPES if d.name == "f32"), (4, 4))
    with pytest.raises(IllegalSchedule, match="@sort has no form on a grid"):
        map_to_grid(kernel)


def test_a_cancelled_sort_stops():
    (stage,) = launches("sort", next(d for d in DTYPES if d.name == "f64"), (4000, 5000))
    x = np.ones((4000, 5000))
    outcome = Compiled(stage.kernel)(*arrays_for(stage.kernel, x), chunks=[(0, 4000)], cancel_at=3)
    assert outcome.polls == 3


def test_a_kernel_that_sorts_says_how():
    f32 = next(d for d in DTYPES if d.name == "f32")
    (rows,) = launches("sort", f32, (8, 200))
    text = kernel_text(rows.kernel)
    assert "sort x -> elements out by rows using other" in text
    (short,) = launches("argsort", f32, (8, 20))
    assert len(short.kernel.params) == 2, "rows in a network need no memory"


def test_a_sort_is_alone_in_its_kernel():
    kernel = kernel_of("sort", next(d for d in DTYPES if d.name == "f32"), (4, 4))
    doubled = type(kernel)(kernel.name, kernel.params, kernel.dims, kernel.body * 2)
    assert "not the only statement" in complaints_about(doubled)[0]
