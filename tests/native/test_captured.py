"""Constants and captured names: what must be the same, and what is read again at every call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from native_kernels import KERNELS, Slow, array, function, launch, vector_result
from tracemill.backends.llvm.native.constants import constant_input
from tracemill.backends.llvm.native.encoder import (
    Frame,
    Held,
    InputSpec,
    NativeSpecialisation,
    SizeSpec,
)
from tracemill.backends.llvm.native.from_plan import place
from tracemill.backends.llvm.native.layout import Kind, Size, Source

X, Y = np.arange(8.0), np.linspace(2, 3, 8)


@pytest.fixture
def code(compiled: Any) -> Any:
    return compiled(*KERNELS)


CONSTANTS: list[Any] = [
    None, True, 3, 2**80, "relu", b"x", (1, 2), float, 1.5, 0.0, -0.0, float("nan"), 2j,
    np.float64(2.5), np.float32(2.5), np.float16(-0.0), np.complex128(1 + 2j), np.int32(7),
]  # fmt: skip


def test_a_constant_matches_itself_alone(runtime: Any) -> None:
    def accepts(value: Any) -> Any:
        frame = Frame()
        entry, tests = constant_input(frame, place(Source.ARGUMENT), value)
        return function(
            runtime, "c", NativeSpecialisation(frame, (entry,), tuple(tests), result=Held("yes"))
        )

    functions = [accepts(value) for value in CONSTANTS]
    for row, f in enumerate(functions):
        for column, value in enumerate(CONSTANTS):
            if row == column:
                assert f(value) == "yes", value
            else:
                with pytest.raises(Slow):
                    f(value)


def test_equal_objects_of_one_type_match_and_failing_comparisons_do_not(runtime: Any) -> None:
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise RuntimeError("no comparison")

        def __hash__(self) -> int:
            return 0

    frame = Frame()
    entry, _ = constant_input(frame, place(Source.ARGUMENT), Odd())
    f = function(runtime, "c", NativeSpecialisation(frame, (entry,), result=Held("yes")))
    with pytest.raises(Slow):
        f(Odd())
    frame = Frame()
    entry, _ = constant_input(frame, place(Source.ARGUMENT), ("a", 1000))
    g = function(runtime, "c", NativeSpecialisation(frame, (entry,), result=Held("yes")))
    assert g(("a", int("1000"))) == "yes"


def test_captured_names_are_read_at_every_call(runtime: Any, code: Any) -> None:
    frame = Frame()
    names = {"w": Y.copy(), "mode": "a"}
    x = array(frame, 0)
    scope = InputSpec(Source.OBJECT, Kind.ANY, key=names)
    w = array(frame, 1, source=Source.DICT_ITEM, key="w")
    mode, _ = constant_input(frame, place(Source.DICT_ITEM, origin=1, key="mode"), "a")
    out = vector_result(frame, x)
    row = launch(code, "add", x.dims, x.data, w.data, out.data)
    sizes = (SizeSpec(Size.EQUAL, x.dims, w.dims),)
    f = function(
        runtime,
        "x",
        NativeSpecialisation(frame, (x, scope, w, mode), sizes, outputs=(out,), rows=(row,)),
    )
    np.testing.assert_array_equal(f(X), X + Y)
    names["w"][:] = 5  # type: ignore[index]
    np.testing.assert_array_equal(f(X), X + 5)
    names["w"] = X
    np.testing.assert_array_equal(f(X), X + X)
    names["mode"] = "b"
    with pytest.raises(Slow):
        f(X)
    names["mode"] = "a"
    del names["w"]
    with pytest.raises(Slow):
        f(X)


def test_closure_cells_and_checks(runtime: Any) -> None:
    value: Any = "first"

    def closure() -> Any:
        return value

    cell = closure.__closure__[0]  # type: ignore[index]
    seen = []

    def check(thing: Any) -> bool:
        seen.append(thing)
        if thing is None:
            raise RuntimeError("not this one")
        return thing == "first"

    entry = InputSpec(Source.CELL, Kind.CHECK, key=cell, type=check)
    f = function(runtime, "", NativeSpecialisation(Frame(), (entry,), result=Held("yes")))
    assert f() == "yes"
    for changed in ("second", None):
        value = changed
        with pytest.raises(Slow):
            f()
    assert seen == ["first", "second", None]


def test_a_check_of_all_arguments(runtime: Any) -> None:
    entry = InputSpec(
        Source.ARGUMENTS, Kind.CHECK, index=2, type=lambda args: args[0] + args[1] == 5
    )
    f = function(runtime, "ab", NativeSpecialisation(Frame(), (entry,), result=Held("yes")))
    assert f(2, 3) == f(b=1, a=4) == "yes"
    with pytest.raises(Slow):
        f(2, 2)


def test_a_global_replaced_during_the_call_stays_alive(runtime: Any, code: Any) -> None:
    """A check runs Python between finding an array and reading it."""
    names: dict[str, Any] = {"w": Y.copy()}

    def replace_it(thing: Any) -> bool:
        names["w"] = None
        return True

    frame = Frame()
    scope = InputSpec(Source.OBJECT, Kind.ANY, key=names)
    w = array(frame, 0, source=Source.DICT_ITEM, key="w")
    check = InputSpec(Source.ARGUMENTS, Kind.CHECK, index=0, type=replace_it)
    out = vector_result(frame, w)
    row = launch(code, "add", w.dims, w.data, w.data, out.data)
    spec = NativeSpecialisation(frame, (scope, w, check), outputs=(out,), rows=(row,))
    f = function(runtime, "", spec)
    np.testing.assert_array_equal(f(), Y + Y)
    with pytest.raises(Slow):
        f()


def test_a_specialisation_may_be_removed_by_its_own_test(runtime: Any) -> None:
    made: list[Any] = []

    def remove_all(thing: Any) -> bool:
        for encoded in list(made[0]._installed):
            runtime.remove(made[0], encoded)
        return False

    entry = InputSpec(Source.ARGUMENT, Kind.CHECK, type=remove_all)
    spec = NativeSpecialisation(Frame(), (entry,), result=Held("never"))
    made.append(function(runtime, "a", spec, spec, spec))
    del entry, spec
    for _ in range(3):
        with pytest.raises(Slow):
            made[0](1)
