"""Everything a function finds outside itself is looked at again at every call."""

from __future__ import annotations

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
