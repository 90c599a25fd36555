"""An execution plan, as the compiler makes it, run through the native entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from native_kernels import KERNELS, Slow, function
from tracemill.backends.llvm.native.control import Control
from tracemill.backends.llvm.native.encoder import Held, InputSpec, Structure
from tracemill.backends.llvm.native.from_plan import (
    Leaf,
    PlanNotNative,
    SizeRelation,
    place,
    specialisation_of,
)
from tracemill.backends.llvm.native.language import Ptr, f64, i64, pointer
from tracemill.backends.llvm.native.layout import Build, Kind, Source
from tracemill.compiler.dims import Dim
from tracemill.compiler.plan import (
    BufferSpec,
    CommitPoint,
    Copy,
    ExecutionPlan,
    HostCall,
    Launch,
    Origin,
    Result,
    SizeRow,
)
from tracemill.compiler.types import F32, F64

X, Y = np.arange(8.0), np.linspace(2, 3, 8)


def add_strided(ctl: Control, args: Ptr[i64], begin: i64, end: i64) -> None:
    """words: x, x's stride, y, y's stride, target"""
    target = pointer(Ptr[f64], args[4])
    for index in range(begin, end):
        left = pointer(Ptr[f64], args[0] + index * args[1])
        right = pointer(Ptr[f64], args[2] + index * args[3])
        target[index] = left[0] + right[0]


def refuse_as_generated_code(ctl: Control, args: Ptr[i64], begin: i64, end: i64) -> None:
    """The kernel's second failure, reported as generated code does."""
    source = pointer(Ptr[f64], args[0])
    for index in range(begin, end):
        if source[index] < 0.0:
            ctl.fail(ctl, 1 + 1, -1, index, 0, 0)
            return


@pytest.fixture
def code(compiled: Any) -> Any:
    return compiled(*KERNELS, add_strided, refuse_as_generated_code)


def argument(position: int, **where: Any) -> Leaf:
    return Leaf(Origin.ARGUMENT, position, place(Source.ARGUMENT, origin=position, **where))


# slots 0: n, of argument buffer 0; 1: 1; 2: 1000 (work)
SIZES = (SizeRow("extent", 0, 0), SizeRow("const", 1), SizeRow("const", 1000))


def plan_of(buffers: tuple[BufferSpec, ...], rows: tuple[Any, ...], **fields: Any) -> ExecutionPlan:
    values: dict[str, Any] = {
        "name": "test",
        "sizes": SIZES,
        "size_symbols": {"n": 0},
        "buffers": buffers,
        "kernels": (),
        "rows": rows,
        "results": (),
        "arena_bytes": 1,
    }
    return ExecutionPlan(**{**values, **fields})


def vector(origin: Origin, index: int = 0, **fields: Any) -> BufferSpec:
    return BufferSpec(F64, (0,), origin, index, **fields)


def test_extents_of_one_symbol_must_agree(runtime: Any, code: Any) -> None:
    plan = plan_of(
        (vector(Origin.ARGUMENT, 0), vector(Origin.ARGUMENT, 1), vector(Origin.OUTPUT)),
        (Launch(0, (0, 1, 2), (), extent=0, work=2),),
        results=(Result(2),),
    )
    spec = specialisation_of(plan, [code.address_of("add")], [argument(0), argument(1)])
    f = function(runtime, "xy", spec)
    np.testing.assert_array_equal(f(X, Y), X + Y)
    np.testing.assert_array_equal(f(X[:3], Y[:3]), X[:3] + Y[:3])
    for wrong in ((X, Y[:7]), (X[::2], Y[:4])):
        with pytest.raises(Slow):
            f(*wrong)


def test_relations_between_sizes_are_guards(runtime: Any, code: Any) -> None:
    plan = plan_of(
        (vector(Origin.ARGUMENT, 0), vector(Origin.OUTPUT)),
        (Launch(0, (0, 0, 1), (), extent=0, work=2),),
        results=(Result(1),),
    )
    n = Dim.symbol("n")
    relations = [
        SizeRelation(n, ">=", 2),
        SizeRelation(n * n - 1, "<", 100),
        SizeRelation((n + 3) // 2, "!=", 3),
        SizeRelation(n, "%", 2),
    ]
    f = function(
        runtime,
        "x",
        specialisation_of(plan, [code.address_of("add")], [argument(0)], relations=relations),
    )
    for count in range(13):
        x = np.ones(count)
        if count in (2, 6, 8, 10) and count >= 2:
            np.testing.assert_array_equal(f(x), x + x)
        else:
            with pytest.raises(Slow):
                f(x)


def test_strides_scalars_temporaries_constants_and_captured(runtime: Any, code: Any) -> None:
    """out = (x + y) * s + constant + captured, x and y strided"""
    captured = np.full(8, 10.0)
    plan = plan_of(
        (
            vector(Origin.ARGUMENT, 0, strided=True),
            vector(Origin.ARGUMENT, 1, strided=True),
            BufferSpec(F64, (), Origin.SCALAR, 0),
            vector(Origin.TEMPORARY, offset=5),
            vector(Origin.TEMPORARY, offset=4),
            vector(Origin.CONSTANT),
            vector(Origin.CAPTURED),
            vector(Origin.OUTPUT),
        ),
        (
            Launch(0, (0, 1, 3), (), extent=0, work=2),
            Launch(1, (3, 2, 4), (), extent=0, work=2),
            Launch(2, (4, 5, 4), (), extent=0, work=2),
            Launch(2, (4, 6, 4), (), extent=0, work=2),
            Copy(4, 7),
        ),
        sizes=(*SIZES, *(SizeRow("const", size) for size in (8, 64, 0, 128))),
        results=(Result(7),),
        arena_bytes=6,
        constants=(np.full(8, 100.0),),
        captured=(captured,),
    )
    kernels = [code.address_of(name) for name in ("add_strided", "scale", "add")]
    scalar = Leaf(Origin.SCALAR, 0, place(Source.ARGUMENT, origin=2))
    f = function(
        runtime, "xys", specialisation_of(plan, kernels, [argument(0), argument(1), scalar])
    )
    long = np.arange(16.0)
    for x, y in ((X, Y), (long[::2], Y[::-1]), (long[8:], long[::-2])):
        captured += 1
        np.testing.assert_array_equal(f(x, y, 2.5), (x + y) * 2.5 + 100.0 + captured)
    with pytest.raises(Slow):
        f(long, long, 2.5)  # the captured array has 8 elements


def test_writes_to_an_argument_and_a_structured_result(runtime: Any, code: Any) -> None:
    """x += 0 for checked x; return (total, {"x": x, "again": total}, None)"""
    shown: list[Any] = []
    plan = plan_of(
        (
            vector(Origin.ARGUMENT, 0, written=True),
            BufferSpec(F64, (), Origin.OUTPUT, 0),
            vector(Origin.ARGUMENT, 1),
        ),
        (
            Launch(0, (2,), (), extent=0, work=2),
            Launch(1, (2, 1), (0,), extent=1, work=2),
            HostCall(0, (2, 1), ((0,), ())),
            CommitPoint(),
            Copy(2, 0),
        ),
        results=(Result(1, as_scalar=True), Result(0)),
    )

    def show(x: Any, s: Any) -> None:
        shown.append((x.copy(), s.copy()))

    structure = Structure(
        Build.TUPLE, (0, Structure(Build.DICT, (1, 0), ("x", "again")), Held(None))
    )
    kernels = [code.address_of("refuse_negative"), code.address_of("total")]
    tree = [
        InputSpec(Source.ARGUMENT, Kind.DICT, ndim=2),
        Leaf(Origin.ARGUMENT, 0, place(Source.DICT_ITEM, origin=0, key="target")),
        Leaf(Origin.ARGUMENT, 1, place(Source.DICT_ITEM, origin=0, key="source")),
    ]
    f = function(
        runtime, "p", specialisation_of(plan, kernels, tree, callbacks=[show], result=structure)
    )
    target = np.zeros(8)
    total, named, nothing = f({"target": target, "source": X})
    assert (type(total), total, nothing) == (np.float64, X.sum(), None)
    assert named["x"] is target
    assert named["again"] is total
    np.testing.assert_array_equal(target, X)
    np.testing.assert_array_equal(shown[0][0], X)
    assert shown[0][1].shape == ()
    assert shown[0][1] == X.sum()
    with pytest.raises(ArithmeticError):
        f({"target": target, "source": X - 1})
    np.testing.assert_array_equal(target, X)
    with pytest.raises(Slow):
        f({"target": target, "source": target})


def test_what_the_tables_cannot_say_is_refused() -> None:
    plan = plan_of((BufferSpec(F32, (), Origin.SCALAR, 0),), ())
    scalar = Leaf(Origin.SCALAR, 0, place(Source.ARGUMENT))
    with pytest.raises(PlanNotNative, match="cannot be passed as f32"):
        specialisation_of(plan, [], [scalar])
    plan = plan_of((vector(Origin.ARGUMENT, 0),), ())
    with pytest.raises(PlanNotNative, match="no input is given for argument 0"):
        specialisation_of(plan, [], [])


def test_strides_can_be_pinned(runtime: Any, code: Any) -> None:
    plan = plan_of(
        (
            vector(Origin.ARGUMENT, 0, strided=True),
            vector(Origin.ARGUMENT, 1),
            vector(Origin.OUTPUT),
        ),
        (Launch(0, (0, 0, 2), (), extent=0, work=2),),
        results=(Result(2),),
    )
    long, kernels = np.arange(16.0), [code.address_of("add_strided")]
    inputs = [argument(0), argument(1)]
    for steps, good, bad in (((2,), long[::2], X), (None, X, long[::2])):
        spec = specialisation_of(plan, kernels, inputs, strides={0: steps})
        f = function(runtime, "xy", spec)
        np.testing.assert_array_equal(f(good, Y), good + good)
        with pytest.raises(Slow):
            f(bad, Y)


def test_failures_carry_the_number_of_their_place_in_the_plan(runtime: Any, code: Any) -> None:
    plan = plan_of(
        (vector(Origin.ARGUMENT, 0),), (Launch(0, (0,), (), extent=0, work=2, errors=4),)
    )
    kernels = [code.address_of("refuse_as_generated_code")]
    f = function(runtime, "x", specialisation_of(plan, kernels, [argument(0)]))
    assert f(X) is None
    with pytest.raises(ArithmeticError) as caught:
        f(np.array([1.0, -1.0]))
    assert caught.value.args[:3] == (2, 5, 1)
