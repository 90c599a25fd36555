"""A plan as bytes: what is read is what was written, and nothing else is read."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from grid_kernels import SUITE, plan_of
from tracemill.compiler.ir.graph import Location
from tracemill.compiler.plan import (
    BufferSpec,
    CommitPoint,
    Copy,
    ErrorPlace,
    ExecutionPlan,
    HostCall,
    Launch,
    Origin,
    Result,
    SizeRow,
)
from tracemill.compiler.plan_bytes import PlanBytesError, plan_from_bytes, plan_to_bytes
from tracemill.compiler.types import BF16, DTYPES, F32, F64

HERE, THERE = Location("program.py", 3, "f"), Location("program.py", 4, "f")
MOVED = Location("program.py", 30, "f"), None, Location("program.py", 40, "f")
PLACES = (HERE, None, THERE)


def a_plan(**changes: object) -> ExecutionPlan:
    """One with every kind of row."""
    plan = ExecutionPlan(
        name="f",
        sizes=(SizeRow("extent", 0, 1), SizeRow("const", 2**62), SizeRow("mul", 0, 1)),
        size_symbols={"n": 0},
        buffers=tuple(
            BufferSpec(dtype, (0, 1), origin, at, None, True, False, f"x{at}", HERE)
            for at, (dtype, origin) in enumerate(zip(DTYPES, [*Origin, *Origin], strict=False))
        ),
        kernels=(),
        rows=(
            Launch(0, (0, 1), (0,), 1, 16, 2, THERE, 1, (1,)),
            Copy(0, 1, HERE),
            HostCall(0, (1,), ((0, 1),), None),
            CommitPoint(),
            Launch(1, (), (), 0),
        ),
        results=(Result(0, True), Result(1)),
        arena_bytes=2,
        variables=("w", "käse"),
        callbacks=({"text": "{:.3f} {{", "axes": (1, -2), "on": True, "eps": 0.1, "dtype": F32},),
        error_places=(ErrorPlace("gather", "TM230", THERE), ErrorPlace("check", "TM244")),
        kernel_names=("add", "sum"),
    )
    return dataclasses.replace(plan, **changes)  # type: ignore[arg-type]


def test_a_plan_read_back_is_the_plan_written():
    plan = a_plan()
    assert plan_from_bytes(plan_to_bytes(plan, PLACES), PLACES) == plan


@pytest.mark.parametrize("name", SUITE)
def test_plans_of_programs_are_read_back(name):
    plan = dataclasses.replace(plan_of(name), kernels=())
    assert plan.kernel_names
    rows = [getattr(row, "location", None) for row in plan.rows]
    places = (*rows, *[place.location for place in plan.error_places])
    assert plan_from_bytes(plan_to_bytes(plan, places), places) == plan


def test_places_are_those_of_the_graph_that_is_traced_now():
    read = plan_from_bytes(plan_to_bytes(a_plan(), PLACES), MOVED)
    assert read.rows[0].location == MOVED[2]
    assert read.rows[1].location == MOVED[0]
    assert read.error_places[0].location == MOVED[2]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_constants_keep_dtype_shape_and_bits(dtype):
    rng = np.random.default_rng(1)
    raw = rng.integers(0, 2 if dtype.kind == "b" else 256, (3, 2, dtype.itemsize), np.uint8)
    array = raw.view(dtype.numpy).reshape(3, 2)
    constants = (array, array[::-1, ::-1].T, np.zeros((0, 4), dtype.numpy), array[0, 0])
    plan = a_plan(constants=tuple(map(np.asarray, constants)))
    read = plan_from_bytes(plan_to_bytes(plan, PLACES), PLACES)
    assert len(read.constants) == 4
    for got, wanted in zip(read.constants, plan.constants, strict=True):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        assert got.tobytes() == wanted.tobytes()
        assert got.flags.aligned
        assert not got.flags.writeable


@pytest.mark.parametrize(
    "changes",
    [
        {"callbacks": ({"function": print},)},
        {"callbacks": ({"value": 1j},)},
        {"constants": (np.array(["text"]),)},
        {"rows": (Copy(0, 1, Location("elsewhere.py", 1, "g")),)},
        {"arena_bytes": np.int64(2)},
    ],
)
def test_what_has_no_written_form_is_an_error(changes):
    with pytest.raises(PlanBytesError, match="no written form"):
        plan_to_bytes(a_plan(**changes), PLACES)


def test_bytes_that_are_no_plan_are_an_error(rng):
    data = plan_to_bytes(a_plan(constants=(np.ones(3),)), PLACES)
    for wrong in (
        b"",
        data[:40],
        data[:8],
        data[:-9],
        bytes(len(data)),
        data.replace(b"Launch", b"Lounge"),
    ):
        with pytest.raises(PlanBytesError):
            plan_from_bytes(wrong, PLACES)
    for at in rng.integers(0, len(data), 300):
        changed = bytearray(data)
        changed[at] ^= int(rng.integers(1, 256))
        try:
            assert isinstance(plan_from_bytes(bytes(changed), PLACES), ExecutionPlan)
        except PlanBytesError:
            pass


def test_only_places_that_exist_are_read():
    with pytest.raises(PlanBytesError):
        plan_from_bytes(plan_to_bytes(a_plan(), PLACES), PLACES[:1])


def test_names_of_dtypes_are_not_code():
    data = plan_to_bytes(a_plan(buffers=(BufferSpec(F64, (), Origin.OUTPUT),)), PLACES)
    assert plan_from_bytes(data.replace(b'"f64"', b'"f32"'), PLACES).buffers[0].dtype is F32
    for name in (b'"f65"', b'"int"'):
        with pytest.raises(PlanBytesError):
            plan_from_bytes(data.replace(b'"f64"', name), PLACES)
    assert BF16.name == "bf16"
