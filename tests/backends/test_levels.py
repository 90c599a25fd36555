"""Quick code computes the bits of the best code: bodies, conversions, reductions, masks, graphs.

Not here: what the bits should be (test_kernels.py, test_reductions.py, tests/ops).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import mill
from kernel_runner import Compiled, sym
from lanes import operand_lanes, random_values, same_bits
from nest_graphs import CHOICES, EXCHANGE, HALVES
from plan_runner import PlanFailed, PlanRun
from random_graphs import random_graph
from tracemill.backends.llvm.machine import Machine, host_machine, level_machine
from tracemill.backends.llvm.native.loader import Loaded, load
from tracemill.backends.llvm.skeletons import quick_code
from tracemill.compiler.compile import compile_graph
from tracemill.compiler.errors import TracemillError
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.kernel.kernel import (
    IndexValue,
    Kernel,
    Let,
    Load,
    Parallel,
    Parameter,
    Reduce,
    Statement,
    Store,
)
from tracemill.compiler.kernel.target import Target
from tracemill.compiler.ops.definition import SignatureError
from tracemill.compiler.ops.elementwise import ELEMENTWISE
from tracemill.compiler.passes import PIPELINE
from tracemill.compiler.passes.base import run_passes
from tracemill.compiler.plan import Launch
from tracemill.compiler.types import (
    BF16,
    BOOL,
    C64,
    DTYPES,
    F32,
    F64,
    I64,
    U32,
    DType,
    TensorType,
)

pytestmark = pytest.mark.cpu

n, m, i, j = (sym(x) for x in "nmij")
MACHINES = {"host": host_machine(), "v2": level_machine("x86-64-v2")}
KINDS = (BOOL, U32, I64, BF16, F32, F64, C64)


class Quick(Compiled):
    """One kernel's quick code, ready to run."""

    def load(self, machine: Machine) -> Loaded:
        return load(quick_code(self.kernel, machine))


def both(kernel: Kernel, machine: str, inputs: list[Any], outputs: list[Any], **dims: int) -> None:
    """Run both codes on the same arrays: the outputs have the same bits."""
    found = []
    for kind in (Compiled, Quick):
        made = [array.copy() for array in outputs]
        kind(kernel, MACHINES[machine])(*inputs, *made, **dims)
        found.append(made)
    for best, quick in zip(*found, strict=True):
        assert same_bits(quick, best).all(), kernel.name


def rows_of(op: Any) -> list[tuple[tuple[DType, ...], dict[str, Any], tuple[DType, ...]]]:
    """Operand dtypes, attributes and result dtypes that an op takes: operands alike where it
    takes such, else one mixture."""
    targets = KINDS if op.name in ("cast", "bitcast") else (None,)
    alike = [(d,) * arity for arity in (1, 2, 3) for d in KINDS]
    alike += [(BOOL, d, d) for d in KINDS]
    found = [row for a, to in itertools.product(alike, targets) if (row := typed(op, a, to))]
    if found:
        return found
    mixed = itertools.product(DTYPES, repeat=2)
    return [next(found for row in mixed if (found := typed(op, row, None)))]


def typed(op: Any, row: tuple[DType, ...], to: DType | None) -> Any:
    """A row of `rows_of`, or None where the op does not take these operands."""
    attrs = {} if to is None else {"dtype": to}
    try:
        results = op.signature([TensorType(d, (4,)) for d in row], attrs)
    except (SignatureError, IndexError):
        return None
    kinds = results if isinstance(results, tuple) else (results,)
    return row, attrs, tuple(kind.dtype for kind in kinds)


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_every_elementwise_op(op: Any, rng: np.random.Generator) -> None:
    """At some of the dtypes it takes, in one kernel; every fourth op without wide vectors."""
    machine = "host" if rng.integers(4) else "v2"
    body: list[Statement] = []
    params, inputs, outputs, stores = [], [], [], []
    rows = rows_of(op)
    rows = [rows[at] for at in rng.permutation(len(rows))[:4]]
    assert rows
    lanes = [operand_lanes(row, 37, rng) for row, _, _ in rows]
    count = max(len(columns[0]) for columns in lanes)
    for at, (row, attrs, results) in enumerate(rows):
        for k, (dtype, column) in enumerate(zip(row, lanes[at], strict=True)):
            params.append(Parameter(f"x{at}_{k}", dtype, (n,), "in"))
            inputs.append(np.resize(column, count))
            body.append(Load(f"a{at}_{k}", f"x{at}_{k}", (i,), dtype))
        names = tuple(f"a{at}_{k}" for k in range(len(row)))
        for number, dtype in enumerate(results):
            body.append(Let(f"r{at}_{number}", op.name, names, dtype, attrs, result=number))
            stores.append(Parameter(f"o{at}_{number}", dtype, (n,), "out"))
            outputs.append(np.zeros(count, dtype.numpy))
            body.append(Store(f"o{at}_{number}", (i,), f"r{at}_{number}"))
    loop = Parallel("i", n, tuple(body), vector=8)
    both(Kernel(op.name, (*params, *stores), ("n",), (loop,)), machine, inputs, outputs, n=count)


def floats(rng: np.random.Generator, *shape: int, dtype: DType = F32) -> np.ndarray[Any, Any]:
    return random_values(dtype, int(np.prod(shape)), rng).reshape(shape)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("vector", [0, 8])
@pytest.mark.parametrize("monoid", ["sum", "max", "any"])
@pytest.mark.parametrize("dtype", [F32, BF16, I64, C64], ids=lambda d: d.name)
def test_reductions_of_one_vector(
    monoid: str, dtype: DType, vector: int, machine: str, rng: np.random.Generator
) -> None:
    if dtype is C64:
        monoid = {"max": "prod"}.get(monoid, monoid)  # complex numbers have no order
    kind = BOOL if monoid == "any" else dtype
    folded = F32 if kind is BF16 else kind
    body: list[Statement] = [Load("a", "x", (i,), kind)]
    if monoid != "any":
        body.append(Let("b", "square", ("a",), dtype))
    result = "a" if monoid == "any" else "b"
    reduce = Reduce(("r",), monoid, "i", n, tuple(body), (result,), (folded,), vector=vector)
    params = (Parameter("x", kind, (n,), "in"), Parameter("o", folded, (), "out"))
    kernel = Kernel("reduce", params, ("n",), (reduce, Store("o", (), "r")))
    for count in (0, 1, 7, 8, 63, 64, 65, 1000, 4096, 9001):
        x = floats(rng, count, dtype=kind)
        both(kernel, machine, [x], [np.zeros((), folded.numpy)], n=count)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("vector", [0, 2, 8, 16, 64])
@pytest.mark.parametrize("monoid", ["any", "all"])
def test_masks_that_a_routine_takes_and_gives(
    monoid: str, vector: int, machine: str, rng: np.random.Generator
) -> None:
    """In loops, where they stay in registers."""
    shift = (Load("a", "x", (i, j), I64), Load("b", "y", (i, j), I64),
             Let("c", "right_shift", ("a", "b"), I64))  # fmt: skip
    holes = (Let("d", "cast", ("c",), BOOL, {"dtype": BOOL}), Let("e", "logical_not", ("d",), BOOL))
    reduce = Reduce(("r",), monoid, "j", m, (*shift, *holes), ("e",), (BOOL,), vector=vector)
    params = (Parameter("x", I64, (n, m), "in"), Parameter("y", I64, (n, m), "in"),
              Parameter("o", BOOL, (n,), "out"))  # fmt: skip
    loop = Parallel("i", n, (reduce, Store("o", (i,), "r")))
    kernel = Kernel("masks", params, ("n", "m"), (loop,))
    for count in (0, 1, 8, 71, 5000):
        x, y = (rng.integers(0, 3, (4, count)) for _ in range(2))
        x[0], x[1, count // 2 :] = monoid == "any", 9
        both(kernel, machine, [x, y], [np.zeros(4, bool)], n=4, m=count)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("vector", [0, 8])
def test_rows_that_are_reduced_and_read_again(
    vector: int, machine: str, rng: np.random.Generator
) -> None:
    """exp(x - max) / sum, and where the greatest is."""
    load = lambda name, axis: Load(name, "x", (i, sym(axis)), F32)
    body = (
        Reduce(("t", "at"), "argmax", "j", m, (load("a", "j"), IndexValue("w", j)),
               ("a", "w"), (F32, I64), vector=vector),
        Reduce(("s",), "sum", "k", m, (load("b", "k"), Let("c", "sub", ("b", "t"), F32),
               Let("e", "exp", ("c",), F32)), ("e",), (F32,), vector=vector),
        Parallel("l", m, (load("d", "l"), Let("f", "sub", ("d", "t"), F32),
                 Let("g", "exp", ("f",), F32), Let("h", "div", ("g", "s"), F32),
                 Store("o", (i, sym("l")), "h")), vector=vector),
        Store("p", (i,), "at"),
    )  # fmt: skip
    params = (Parameter("x", F32, (n, m), "in"), Parameter("o", F32, (n, m), "out"),
              Parameter("p", I64, (n,), "out"))  # fmt: skip
    kernel = Kernel("softmax", params, ("n", "m"), (Parallel("i", n, body),))
    for rows, columns in ((1, 1), (3, 7), (4, 64), (2, 5000)):
        x = floats(rng, rows, columns)
        outputs = [np.zeros((rows, columns), np.float32), np.zeros(rows, np.int64)]
        both(kernel, machine, [x], outputs, n=rows, m=columns)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", [F32, I64], ids=lambda d: d.name)
def test_columns_that_are_reduced_tile_by_tile(
    dtype: DType, machine: str, rng: np.random.Generator
) -> None:
    reduce = Reduce(("s",), "sum", "i", n, (Load("a", "x", (i, j), dtype),), ("a",), (dtype,))
    loop = Parallel("j", m, (reduce, Store("o", (j,), "s")), vector=16)
    params = (Parameter("x", dtype, (n, m), "in"), Parameter("o", dtype, (m,), "out"))
    kernel = Kernel("columns", params, ("n", "m"), (loop,))
    for rows, columns in ((1, 1), (7, 17), (65, 100), (4097, 40), (9000, 1100)):
        x = floats(rng, rows, columns, dtype=dtype)
        both(kernel, machine, [x], [np.zeros(columns, dtype.numpy)], n=rows, m=columns)


@pytest.mark.parametrize("machine", MACHINES)
def test_masked_memory(machine: str, rng: np.random.Generator) -> None:
    body = (
        Load("p", "when", (i,), BOOL),
        Load("z", "y", (i,), F32),
        Load("a", "x", (i,), F32, mask="p", other="z"),
        Let("b", "tanh", ("a",), F32),
        Store("o", (i,), "b", mask="p"),
    )
    params = (
        Parameter("when", BOOL, (n,), "in"),
        Parameter("x", F32, (n,), "in"),
        Parameter("y", F32, (n,), "in"),
        Parameter("o", F32, (n,), "out"),
    )
    kernel = Kernel("masked", params, ("n",), (Parallel("i", n, body, vector=16),))
    for count in (1, 15, 16, 333):
        inputs = [rng.integers(0, 2, count).astype(bool), floats(rng, count), floats(rng, count)]
        both(kernel, machine, inputs, [np.full(count, 7, np.float32)], n=count)


class Run(PlanRun):
    """One call of a plan, its kernels as machine code of one kind."""

    code: type[Compiled] = Compiled

    def _launch(self, row: Launch) -> None:
        extent = self.sizes[row.extent]
        if extent:
            kernel = self.plan.kernels[row.kernel]
            dims = dict(zip(kernel.dims, [self.sizes[s] for s in row.sizes], strict=True))
            arrays = [self.arrays[at] for at in row.buffers]
            outcome = self.code(kernel)(*arrays, chunks=((0, extent),), **dims)
            if outcome.failures:
                number = min(code for code, _, _ in outcome.failures) - 1
                raise PlanFailed(self.plan.error_places[row.errors + number])


class QuickRun(Run):
    code = Quick


def outcome(run: type[Run], plan: Any, args: Any, store: Any, seed: int) -> Any:
    """All memory that is written, or the place of the failure."""
    mine = {name: array.copy() for name, array in store.items()}
    try:
        results = run(plan, [np.array(a) for a in args], mine, seed).run()
    except PlanFailed as problem:
        return problem.place
    return [*results, *mine.values()]


@pytest.mark.parametrize("number", range(6))
def test_random_graphs(number: int, rng: np.random.Generator) -> None:
    target = Target(host_machine().vector_bits, 2)
    plan = None
    while plan is None:
        seed = int(rng.integers(1 << 30))
        graph = random_graph(seed, 30)
        try:
            plan = compile_graph(run_passes(graph, PIPELINE).graph, target=target)
        except TracemillError:  # a graph whose constants fail
            continue
    args, store = mill.inputs_for(graph, seed)
    best, quick = (outcome(run, plan, args, store, seed) for run in (Run, QuickRun))
    if not isinstance(best, list):
        assert quick == best
        return
    for a, b in zip(best, quick, strict=True):
        assert same_bits(np.asarray(b), np.asarray(a)).all(), f"seed {seed}"


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("text", [EXCHANGE, CHOICES, HALVES], ids=["exchange", "choices", "halves"])
@pytest.mark.parametrize("dtype", ["i64", "f32", "f64", "bf16"])
def test_loops_around_numbers(text: str, dtype: str, machine: str, rng) -> None:
    graph = run_passes(parse_graph(text.replace("DT", dtype)), PIPELINE).graph
    (kernel,) = compile_graph(graph).kernels
    for size in (0, 1, 9):
        arrays = [
            np.zeros((), p.dtype.numpy)
            if not p.shape
            else rng.integers(-9, 9, size).astype(p.dtype.numpy)
            for p in kernel.params
        ]
        trips = [at for at, p in enumerate(kernel.params) if p.mode == "in"]
        for at in trips:
            arrays[at][...] = size
        both(kernel, machine, arrays[: len(trips)], arrays[len(trips) :], n=size)
