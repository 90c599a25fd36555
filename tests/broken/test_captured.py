"""Everything a function finds outside itself is looked at again at every call."""

from __future__ import annotations

import functools
import types
from array import array
from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu

X = np.arange(3.0)


class Fields(dict):  # type: ignore[type-arg]
    __getattr__ = dict.__getitem__


class Items(list):  # type: ignore[type-arg]
    pass


class Parent:
    rate = 0.5

    def scaled(self, x: Any) -> Any:
        return x * self.rate

    @classmethod
    def of_class(cls, x: Any) -> Any:
        return x * cls.rate


class Child(Parent):
    pass


Case = tuple[Callable[[Any], Any], list[Callable[[], Any]]]


def of_sets() -> Case:
    s = {1, 2}
    return lambda x: x * len(s) * sum(s), [lambda: s.add(3), lambda: s.clear()]


def of_dicts_of_other_types() -> Case:
    d, o, c = defaultdict(float, a=1.0), OrderedDict(a=np.ones(3)), Counter("aab")
    return lambda x: (x * d["a"] + o["a"]) * c["a"], [
        lambda: d.update(a=2.0),
        lambda: o.update(a=np.zeros(3)),
        lambda: c.update("aa"),
    ]


def of_wrappers() -> Case:
    base = {"a": 1.0}
    chain, user, proxy = ChainMap({}, base), UserDict(b=2.0), types.MappingProxyType(base)
    return lambda x: x * chain["a"] * user["b"] + proxy["a"], [
        lambda: base.update(a=3.0),
        lambda: user.update(b=4.0),
    ]


def of_deques() -> Case:
    q = deque([1.0, np.ones(3)])
    return lambda x: x * q[0] + q[1], [
        lambda: q.__setitem__(0, 2.0),
        lambda: q.__setitem__(1, np.zeros(3)),
        lambda: q[1].__iadd__(3),
        lambda: q.rotate(1),
    ]


def of_subclasses() -> Case:
    fields, items = Fields(a=1.0, w=np.ones(3)), Items([1.0, np.ones(3)])
    pair = namedtuple("Pair", "left right")([1.0], 2.0)
    return lambda x: x * fields.a * items[0] + fields["w"] + items[1] * pair[0][0], [
        lambda: fields.update(a=2.0),
        lambda: fields.update(w=np.zeros(3)),
        lambda: items.__setitem__(0, 5.0),
        lambda: items.__setitem__(1, np.zeros(3)),
        lambda: pair[0].__setitem__(0, 3.0),
    ]


def of_bytes() -> Case:
    b, a = bytearray(b"ab"), array("d", [1.0])
    return lambda x: x * b[0] + a[0], [lambda: b.__setitem__(0, 1), lambda: a.__setitem__(0, 2.0)]


def of_large_containers() -> Case:
    arrays = [np.full(3, float(i)) for i in range(1200)]
    numbers = {i: float(i) for i in range(1500)}
    return lambda x: x * numbers[1400] + arrays[1100], [
        lambda: arrays.__setitem__(1100, np.zeros(3)),
        lambda: arrays[1100].__iadd__(1),
        lambda: numbers.__setitem__(1400, 2.0),
    ]


def of_names_asked_for() -> Case:
    o = types.SimpleNamespace(layer0=np.ones(3))
    name = "layer"
    return lambda x: x * getattr(o, f"{name}0") * getattr(o, "gain", 5.0) + hasattr(o, "bias"), [
        lambda: setattr(o, "layer0", np.full(3, 2.0)),
        lambda: setattr(o, "gain", 1.0),
        lambda: setattr(o, "bias", 1.0),
        lambda: delattr(o, "gain"),
    ]


def of_methods_replaced() -> Case:
    kind = type("Kind", (Parent,), {})
    o = kind()
    return lambda x: o.scaled(x) + o.of_class(x), [
        lambda: setattr(kind, "rate", 2.0),
        lambda: setattr(o, "rate", 3.0),
        lambda: setattr(kind, "scaled", lambda self, x: x + 7),
        lambda: setattr(kind, "of_class", classmethod(lambda cls, x: x - 1)),
    ]


CASES = [
    of_sets,
    of_dicts_of_other_types,
    of_wrappers,
    of_deques,
    of_subclasses,
    of_bytes,
    of_large_containers,
    of_names_asked_for,
    of_methods_replaced,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_change_outside_is_seen(case: Callable[[], Case]) -> None:
    function, changes = case()
    compiled = tm.jit(function)
    for change in (lambda: None, *changes):
        change()
        for _ in range(2):
            np.testing.assert_array_equal(compiled(X), function(X))
    before = len(compiled.explain_recompiles())
    compiled(X)
    assert len(compiled.explain_recompiles()) == before


def test_an_attribute_that_is_missing_raises_as_python_does() -> None:
    o = types.SimpleNamespace()
    compiled = tm.jit(lambda x: x * getattr(o, "absent"))  # noqa: B009  the builtin is meant
    with pytest.raises(AttributeError, match="absent"):
        compiled(X)
    o.absent = 2.0
    np.testing.assert_array_equal(compiled(X), 2 * X)


def test_chance_is_not_frozen() -> None:
    import random

    own = random.Random(3)
    for draw in (
        lambda x: x * random.random(),
        lambda x: x * random.gauss(0, 1),
        lambda x: x * own.choice([1.0, 2.0]),
        lambda x: x + np.random.default_rng().normal(size=3),
        lambda x: x + np.random.default_rng(None).normal(size=3),
    ):
        with pytest.raises(TypeError, match=r"\[TM106\].*\n.*frozen|\[TM106\].*\n.*\n?.*frozen"):
            tm.jit(draw)(X)
    seeded = lambda x: x * random.Random(1).random() + np.random.default_rng(0).normal(size=3)
    np.testing.assert_array_equal(tm.jit(seeded)(X), seeded(X))


class Scaled:
    def __init__(self) -> None:
        self.by = 1.0

    def method(self, x: Any) -> Any:
        return x * self.by

    def __call__(self, x: Any) -> Any:
        return x * self.by


BOUND: dict[str, Callable[[Scaled], Callable[..., Any]]] = {
    "a method": lambda thing: thing.method,
    "a partial": lambda thing: functools.partial(Scaled.method, thing),
    "a partial of a method": lambda thing: functools.partial(thing.method),
    "an object that is called": lambda thing: thing,
    "a method called by another function": lambda thing: (lambda m: lambda x: m(x))(thing.method),
    "a partial called by another function": lambda thing: (lambda m: lambda x: m(x))(
        functools.partial(Scaled.method, thing)
    ),
}


@pytest.mark.parametrize("form", BOUND)
def test_attributes_of_what_a_function_is_bound_to_are_never_stale(form: str) -> None:
    thing = Scaled()
    act = tm.jit(BOUND[form](thing))
    for by in (1.0, 2.0, 3.0, 1.0):
        thing.by = by
        assert act(np.ones(2)).tolist() == [by, by]


OPERATIONS: list[Callable[..., Any]] = [np.sin, np.cos, np.exp, lambda x: -x]


def test_elements_of_a_captured_array_of_integers_may_be_python_s_and_are_never_stale() -> None:
    picks = np.array([[0, 1], [2, 3]])

    @tm.jit
    def act(x: Any, row: int) -> Any:
        for pick in picks[row]:
            x = OPERATIONS[pick](x)
        return x

    def want(row: int) -> Any:
        return OPERATIONS[picks[row][1]](OPERATIONS[picks[row][0]](X))

    for _ in range(2):
        for row in (0, 1):
            np.testing.assert_allclose(act(X, row), want(row), rtol=1e-14)
    picks[1, 0] = 0
    for row in (0, 1):
        np.testing.assert_allclose(act(X, row), want(row), rtol=1e-14)
    count = len(act.explain_recompiles())
    act(X, 0), act(X, 1)
    assert len(act.explain_recompiles()) == count


def test_other_uses_of_such_elements() -> None:
    flags, sizes, steps = np.array([True, False]), [np.array([2, 3]), np.array([4])], np.uint8([3])

    @tm.jit
    def act(x: Any) -> Any:
        made = np.zeros(int(sizes[0][1])) if flags[0] and not flags[1] else np.ones(2)
        for _ in range(steps[0]):
            made = made + x.sum()
        return made, [x] * int(sizes[1][0]), float(sizes[0].sum())

    made, rows, total = act(X)
    assert (made.tolist(), len(rows), total) == ([9.0] * 3, 4, 5.0)
    flags[1] = True
    assert act(X)[0].tolist() == [10.0] * 2
    assert "flags is array([ True, False])" in str(act.explain_recompiles())


def test_a_captured_array_written_by_the_function_and_asked_for_numbers_is_as_in_numpy() -> None:
    places = np.array([0, 2])

    @tm.jit
    def act(x: Any) -> Any:
        places[0] = places[0] + 1
        return x[int(places[0])] * 1

    for at in (1, 2):
        assert act(X) == X[at]
        assert places[0] == at


def test_numbers_of_captured_floats_stay_unknown() -> None:
    table = np.array([0.5])
    with pytest.raises(TypeError, match=r"\[TM102\]"):
        tm.jit(lambda x: OPERATIONS[int(table[0])](x))(X)


def test_a_captured_array_may_change_its_shape_and_element_type_in_place() -> None:
    table = np.arange(6.0)
    act = tm.jit(lambda x: x + table)
    for change in ("(6, 1)", "(2, 3)", "(6,)"):
        table.shape = eval(change)
        wanted = np.ones(table.shape[-1]) + table
        assert np.array_equal(act(np.ones(table.shape[-1])), wanted)
    table.dtype = np.int64
    assert np.array_equal(act(np.ones(6)), np.ones(6) + table)


def test_a_captured_array_that_is_no_plain_one_is_refused_with_what_to_do(tmp_path: Any) -> None:
    unaligned = np.frombuffer(bytearray(25), "f8", offset=1)
    mapped = np.memmap(tmp_path / "a", "f8", "w+", shape=(3,))
    for kept, named in ((unaligned, "unaligned array"), (mapped, "memmap")):
        act = tm.jit(_adding(kept))
        for _ in range(2):
            with pytest.raises(TypeError, match=rf"\[TM105\][\s\S]*{named}"):
                act(np.ones(3))


def _adding(array: Any) -> Any:
    return lambda x: x + array


def test_an_integer_of_more_than_64_bits_is_refused_after_a_good_call_too() -> None:
    act = tm.jit(lambda x, n: x + n)
    whole = np.arange(3)
    assert act(whole, 1).tolist() == [1, 2, 3]
    for number in (2**64, -(2**70)):
        with pytest.raises(OverflowError, match=r"\[TM246\]"):
            act(whole, number)
    assert act(whole, 2).tolist() == [2, 3, 4]
