"""The native entry: which calls it takes, what it returns, what it leaves behind."""

from __future__ import annotations

import gc
import sys
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from native_kernels import (
    KERNELS,
    Slow,
    addition,
    array,
    function,
    launch,
    raiser,
    slow,
    vector_result,
)
from tracemill.backends.llvm.native.encoder import (
    Frame,
    Held,
    InputSpec,
    NativeSpecialisation,
    OutputSpec,
    RowSpec,
    SizeSpec,
    Structure,
    array_flags,
    encode,
)
from tracemill.backends.llvm.native.layout import Build, Kind, OutputKind, RowKind, Size, Source
from tracemill.backends.llvm.native.runtime import Parameter

X, Y = np.arange(8.0), np.linspace(2, 3, 8)


@pytest.fixture
def code(compiled: Any) -> Any:
    return compiled(*KERNELS)


def test_positions_and_keywords_reach_the_same_specialisation(runtime: Any, code: Any) -> None:
    f = function(runtime, "xy", addition(code))
    for result in (f(X, Y), f(X, y=Y), f(y=Y, x=X), f(*[X, Y]), f(**{"x": X, "y": Y})):
        assert type(result) is np.ndarray
        assert result.flags.owndata
        np.testing.assert_array_equal(result, X + Y)
    assert f(np.zeros(0), np.zeros(0)).shape == (0,)
    assert f._installed[0].calls == 6


@pytest.mark.parametrize(
    "args",
    [
        (X,),
        (X, Y, Y),
        (X, Y[:7]),
        (X, Y.astype(np.float32)),
        (X, Y.astype(">f8")),
        (X, Y[::2]),
        (X[::2], Y[::2]),
        (X, Y.reshape(2, 4)),
        (X, list(Y)),
        (X, Y.view(np.recarray)),
        (X, 3.0),
        (X, None),
    ],
)
def test_other_calls_reach_the_slow_path_unchanged(runtime: Any, code: Any, args: Any) -> None:
    f = function(runtime, "xy", addition(code))
    with pytest.raises(Slow) as caught:
        f(*args, z=5)
    assert caught.value.args[1] == {"z": 5}
    with pytest.raises(Slow) as caught:
        f(*args)
    assert all(got is given for got, given in zip(caught.value.args[0], args, strict=True))


def test_unaligned_arrays_are_another_case(runtime: Any, code: Any) -> None:
    f = function(runtime, "xy", addition(code))
    shifted = np.frombuffer(b"x" + Y.tobytes(), np.float64, offset=1)
    with pytest.raises(Slow):
        f(X, shifted)


def test_an_equivalent_dtype_object_is_accepted(runtime: Any, code: Any) -> None:
    f = function(runtime, "xy", addition(code))
    other = np.dtype("<f8", metadata={"unit": "m"})
    assert other is not X.dtype
    np.testing.assert_array_equal(f(X.astype(other), Y), X + Y)


def test_defaults_and_keyword_only_parameters(runtime: Any, code: Any) -> None:
    parameters = [Parameter("x"), Parameter("y", default=(Y,), keyword_only=True)]
    f = function(runtime, "", addition(code), parameters=parameters)
    np.testing.assert_array_equal(f(X), X + Y)
    np.testing.assert_array_equal(f(X, y=X), X + X)
    for wrong in (lambda: f(X, Y), lambda: f(), lambda: f(X, x=X), lambda: f(X, w=X)):
        with pytest.raises(Slow):
            wrong()


def vectors_of(code: Any, dtype: Any) -> NativeSpecialisation:
    """The same for another dtype, so that float64 misses it."""
    spec = addition(code)
    return spec._replace(inputs=tuple(replace(entry, type=dtype) for entry in spec.inputs))


def test_the_most_recent_specialisation_is_tried_first(runtime: Any, code: Any) -> None:
    first, second = addition(code), addition(code)
    f = runtime.new_function([Parameter("x"), Parameter("y")], slow, raiser)
    one, two = encode(first), encode(second)
    runtime.install(f, one)
    runtime.install(f, two)
    three = encode(vectors_of(code, np.float32))
    runtime.install(f, three)
    f(X, Y)
    assert (one.calls, two.calls, three.calls) == (0, 1, 0)
    runtime.install(f, encode(vectors_of(code, np.int8)))
    f(X, Y)
    runtime.remove(f, two)
    f(X, Y)
    assert (one.calls, two.calls) == (1, 2)
    runtime.remove(f, one)
    with pytest.raises(Slow):
        f(X, Y)


def test_it_binds_as_a_method_and_carries_attributes(runtime: Any, code: Any) -> None:
    frame = Frame()
    owner = InputSpec(Source.ARGUMENT, Kind.ANY, origin=0)
    x = array(frame, 1)
    weight = array(frame, 0, source=Source.ATTRIBUTE, origin=0, key="weight")
    out = vector_result(frame, x)
    row = launch(code, "add", x.dims, x.data, weight.data, out.data)
    sizes = (SizeSpec(Size.EQUAL, x.dims, weight.dims),)
    spec = NativeSpecialisation(frame, (owner, x, weight), sizes, outputs=(out,), rows=(row,))
    f = function(runtime, "sx", spec)

    class Model:
        step = f

        def __init__(self) -> None:
            self.weight = Y

    model = Model()
    np.testing.assert_array_equal(model.step(X), X + Y)
    bound = model.step
    assert bound.__self__ is model
    np.testing.assert_array_equal(bound(X), X + Y)
    assert Model.step is f
    before = sys.getrefcount(Y)
    for _ in range(100):
        bound(X)
        with pytest.raises(Slow):
            bound(X[:3])
    assert sys.getrefcount(Y) == before
    f.__name__, f.__doc__ = "step", "One step."
    assert (f.__name__, f.__doc__, f.__dict__["__name__"]) == ("step", "One step.", "step")
    runtime.function_type.answer = lambda self: 42
    assert f.answer() == 42


def test_calls_leak_nothing(runtime: Any, code: Any) -> None:
    f = function(runtime, "xy", addition(code))
    f(X, Y)
    watched = [X, Y, X.dtype, f, f._installed[0], np.ndarray]
    gc.collect()
    before = [sys.getrefcount(thing) for thing in watched]
    blocks = sys.getallocatedblocks()
    for _ in range(1000):
        f(X, y=Y)
        with pytest.raises(Slow):
            f(X, 1)
    gc.collect()
    assert [sys.getrefcount(thing) for thing in watched] == before
    assert sys.getallocatedblocks() < blocks + 100


def test_a_cycle_through_a_function_is_collected(runtime: Any, code: Any) -> None:
    class Holder:
        pass

    holder: Any = Holder()
    spec = encode(addition(code))
    holder.f = runtime.new_function(
        [Parameter("x"), Parameter("y")], lambda *args: slow(*args), raiser, keepalive=holder
    )
    runtime.install(holder.f, spec)
    holder.f(X, Y)
    gone = weakref.ref(holder), weakref.ref(spec), weakref.ref(holder.f)
    del holder, spec
    gc.collect()
    assert [reference() for reference in gone] == [None] * 3


def test_a_tree_of_arguments_is_taken_apart_natively(runtime: Any, code: Any) -> None:
    frame = Frame()
    params = InputSpec(Source.ARGUMENT, Kind.DICT, origin=0, ndim=2)
    pair = InputSpec(Source.DICT_ITEM, Kind.TUPLE, origin=0, key="b", ndim=2)
    x = array(frame, 0, source=Source.DICT_ITEM, key="a")
    y = array(frame, 1, source=Source.SEQUENCE_ITEM, index=1)
    first = InputSpec(Source.SEQUENCE_ITEM, Kind.LIST, origin=1, index=0, ndim=0)
    out = vector_result(frame, x)
    spec = NativeSpecialisation(
        frame,
        (params, pair, x, y, first),
        (SizeSpec(Size.EQUAL, x.dims, y.dims),),
        outputs=(out, OutputSpec(OutputKind.INPUT, input=2)),
        rows=(launch(code, "add", x.dims, x.data, y.data, out.data),),
        result=Structure(
            Build.DICT,
            (0, Structure(Build.TUPLE, (1, Held("kept"))), Structure(Build.LIST, (0, 0))),
            ("sum", "pair", "twice"),
        ),
    )
    f = function(runtime, "p", spec)
    result = f({"a": X, "b": ([], Y)})
    np.testing.assert_array_equal(result["sum"], X + Y)
    assert result["pair"] == (X, "kept") or result["pair"][0] is X
    assert result["twice"] == [result["sum"]] * 2 or result["twice"][1] is result["sum"]
    others: list[Any] = [
        {"a": X},
        {"a": X, "b": ([], Y), "c": 1},
        {"a": X, "b": [[], Y]},
        {"a": X, "c": ([], Y)},
        {"a": X, "b": ([1], Y)},
        {"a": X, "b": ([], Y, Y)},
    ]
    for other in others:
        with pytest.raises(Slow):
            f(other)


def scaled(code: Any, **kind: Any) -> NativeSpecialisation:
    """x * s, where s is a number passed by value or by address."""
    frame = Frame()
    x, out = array(frame, 0), None
    address = frame.slot()
    number = InputSpec(Source.ARGUMENT, origin=1, **kind)
    addresses: tuple[SizeSpec, ...] = ()
    if number.kind == Kind.SCALAR:
        number = InputSpec(Source.ARGUMENT, origin=1, data=address, **kind)
    else:
        value = frame.slot(2)
        number = InputSpec(Source.ARGUMENT, origin=1, value=value, **kind)
        addresses = (SizeSpec(Size.ADDRESS, value, target=address),)
    out = vector_result(frame, x)
    row = launch(code, "scale", x.dims, x.data, address, out.data)
    return NativeSpecialisation(
        frame, (x, number), addresses=addresses, outputs=(out,), rows=(row,)
    )


def test_numbers_are_passed_by_value_and_scalars_in_place(runtime: Any, code: Any) -> None:
    f = function(
        runtime,
        "xs",
        scaled(code, kind=Kind.FLOAT),
        scaled(code, kind=Kind.SCALAR, type=np.float64),
    )
    for number in (2.5, -0.0, 1e300, np.float64(3.5)):
        np.testing.assert_array_equal(f(X, number), X * number)
    for other in (2, True, np.float32(2), 1j, "2.0", np.array(2.0)):
        with pytest.raises(Slow):
            f(X, other)


@pytest.mark.parametrize(
    ("kind", "good", "expected", "bad"),
    [
        (Kind.INT, -(2**63), -(2**63), [2**63, True, 1.0]),
        (Kind.INT, 2**40, 2**40, [-(2**64), np.int64(3)]),
        (Kind.BOOL, True, 1, [1, np.True_]),
        (Kind.BOOL, False, 0, [0, None]),
    ],
)
def test_integers_and_truth_values_are_exact(
    runtime: Any, kind: Kind, good: Any, expected: int, bad: list[Any]
) -> None:
    frame = Frame()
    value = frame.slot()
    spec = NativeSpecialisation(
        frame,
        (InputSpec(Source.ARGUMENT, kind, value=value),),
        (SizeSpec(Size.EQUAL, value, frame.constant(expected)),),
        result=Held("taken"),
    )
    f = function(runtime, "n", spec)
    assert f(good) == "taken"
    for other in bad:
        with pytest.raises(Slow):
            f(other)


def test_memory_shared_with_a_written_argument_is_another_case(runtime: Any, code: Any) -> None:
    frame = Frame()
    x = array(frame, 0)
    out = array(frame, 1, flags=array_flags(contiguous=True, writeable=True))
    row = launch(code, "add", x.dims, x.data, x.data, out.data)
    spec = NativeSpecialisation(
        frame,
        (x, out),
        (SizeSpec(Size.EQUAL, x.dims, out.dims),),
        overlaps=((0, 1),),
        rows=(row,),
        result=Held(None),
    )
    f = function(runtime, "xo", spec)
    target = np.zeros(16)
    assert f(X, target[:8]) is None
    np.testing.assert_array_equal(target[:8], 2 * X)
    f(target[:8], target[8:])
    f(np.zeros(0), target[3:3])
    for a, b in ((target[:8], target[:8]), (target[:8], target[7:15]), (target[4:12], target[:8])):
        with pytest.raises(Slow):
            f(a, b)
    target.flags.writeable = False
    with pytest.raises(Slow):
        f(X, target[:8])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.complex128, np.bool_])
def test_scalars_are_returned_as_numpy_returns_them(runtime: Any, code: Any, dtype: Any) -> None:
    frame = Frame()
    x = array(frame, 0, type=dtype)
    out = OutputSpec(OutputKind.SCALAR, dtype, data=frame.slot(), value=frame.slot(2))

    size = frame.constant(np.dtype(dtype).itemsize)
    row = RowSpec(RowKind.COPY, words=(out.data, x.data, size))
    f = function(runtime, "x", NativeSpecialisation(frame, (x,), outputs=(out,), rows=(row,)))
    source = np.array([1, 2]).astype(dtype)
    result = f(source)
    assert type(result) is dtype
    assert result == source[0]


def test_a_failing_part_of_the_result_raises_and_leaks_nothing(runtime: Any, code: Any) -> None:
    def fails(*parts: Any) -> None:
        raise LookupError(len(parts))

    spec = addition(code)
    f = function(
        runtime,
        "xy",
        spec._replace(
            result=Structure(Build.LIST, (0, Structure(Build.CALL, (0, 0, Held(1)), fails)))
        ),
    )
    before = sys.getrefcount(X.dtype)
    for _ in range(50):
        with pytest.raises(LookupError, match="3"):
            f(X, Y)
    gc.collect()
    assert sys.getrefcount(X.dtype) < before + 5


def test_a_specialisation_is_installed_once(runtime: Any, code: Any) -> None:
    f = function(runtime, "xy", addition(code))
    with pytest.raises(ValueError, match="encode another"):
        runtime.install(f, f._installed[0])


def test_too_many_parameters_are_refused(runtime: Any) -> None:
    with pytest.raises(ValueError, match="at most 255 parameters"):
        runtime.new_function([Parameter(f"p{i}") for i in range(256)], slow, raiser)
