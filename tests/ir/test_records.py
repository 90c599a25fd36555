"""`compiler.records.dataclass` makes what the standard library's makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import pickle
from typing import Any

import pytest

from tracemill.compiler.records import dataclass


@dataclass(frozen=True, slots=True)
class Ours:
    """A record with every kind of default."""

    first: int
    second: tuple[int, ...] = ()
    third: dict[str, int] = dataclasses.field(default_factory=dict)
    fourth: Any = dataclasses.field(default=7)

    def total(self) -> int:
        return self.first + sum(self.second)


@dataclasses.dataclass(frozen=True, slots=True)
class Theirs:
    """A record with every kind of default."""

    first: int
    second: tuple[int, ...] = ()
    third: dict[str, int] = dataclasses.field(default_factory=dict)
    fourth: Any = dataclasses.field(default=7)

    def total(self) -> int:
        return self.first + sum(self.second)


@dataclass(frozen=True, slots=True)
class One:
    """A single field."""

    value: Any


@dataclass(frozen=True, slots=True)
class Empty:
    """No field."""


@dataclass(frozen=True, slots=True)
class Named:
    """Compares by its own rule."""

    name: str
    rest: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.name == other.name


@dataclass(frozen=True, slots=True, eq=False)
class Identity:
    """Is equal to itself only."""

    name: str


def shown(thing: object) -> str:
    return repr(thing).replace("Theirs", "Ours")


@pytest.mark.parametrize("kind", [Ours, Theirs])
def test_records_are_made_shown_and_compared_alike(kind):
    plain, full = kind(1, fourth=[]), kind(2, (3, 4), {"a": 5}, None)
    assert shown(plain) == "Ours(first=1, second=(), third={}, fourth=[])"
    assert shown(full) == "Ours(first=2, second=(3, 4), third={'a': 5}, fourth=None)"
    assert full.total() == 9
    assert full == kind(2, (3, 4), {"a": 5}, None) != plain
    assert kind(1).third is not kind(1).third
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'first'"):
        kind()
    with pytest.raises(TypeError, match="unhashable"):
        hash(plain)
    assert not hasattr(plain, "__dict__")


@pytest.mark.parametrize("kind", [Ours, Theirs])
def test_records_refuse_changes(kind):
    record = kind(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="assign to field 'first'"):
        record.first = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="delete field 'first'"):
        del record.first


def test_the_standard_library_takes_records_for_its_own():
    record = Ours(1, (2,), {"a": 3}, 4)
    assert dataclasses.is_dataclass(Ours)
    assert dataclasses.replace(record, first=9) == Ours(9, (2,), {"a": 3}, 4)
    assert dataclasses.astuple(record) == (1, (2,), {"a": 3}, 4)
    ours, theirs = dataclasses.fields(Ours), dataclasses.fields(Theirs)
    assert [(f.name, f.type, f.default) for f in ours] == [
        (f.name, f.type, f.default) for f in theirs
    ]
    assert str(inspect.signature(Ours)).partition(" ->")[0].replace("<factory>", "?") == str(
        inspect.signature(Theirs)
    ).partition(" ->")[0].replace("<factory>", "?").replace(
        "third: 'dict[str, int]' = ?", f"third: 'dict[str, int]' = {dataclasses.MISSING!r}"
    )
    for copied in (pickle.loads(pickle.dumps(record)), copy.copy(record), copy.deepcopy(record)):
        assert copied == record
        assert copied is not record
    match record:
        case Ours(first, second):
            assert (first, second) == (1, (2,))


def test_equality_and_hash_are_those_of_the_fields():
    assert hash(One(3)) == hash(One(3))
    assert One(3) == One(3) != One(4)
    assert One(3) != Empty() == Empty()
    assert hash(Empty()) == hash(Empty())
    nan = math.nan
    assert One(nan) == One(nan)  # as the standard library: the same object is equal
    assert Named("a", 1) == Named("a", 2) != Named("b", 1)
    assert hash(Named("a", 1)) != hash(Named("a", 2))
    assert Identity("a") != Identity("a")
    assert len({Identity("a"), Identity("a")}) == 2


@dataclass(slots=True)
class Changing:
    """May change."""

    value: int
    items: list[int] = dataclasses.field(default_factory=list)


def test_records_that_change_are_not_hashable():
    changing = Changing(1)
    changing.value = 2
    changing.items.append(3)
    assert changing == Changing(2, [3]) != Changing(2)
    assert repr(changing) == "Changing(value=2, items=[3])"
    with pytest.raises(TypeError, match="unhashable"):
        hash(changing)
    with pytest.raises(AttributeError):
        changing.other = 1
    assert pickle.loads(pickle.dumps(changing)) == copy.copy(changing) == changing
    assert dataclasses.replace(changing, value=5) == Changing(5, [3])


def test_what_is_not_a_plain_record_is_the_standard_library_s():
    @dataclass(frozen=True, slots=True)
    class Below(Ours):  # type: ignore[misc]
        """Has a base."""

        fifth: int = 5

    assert Below(1).fifth == 5
    assert Below(1) != Ours(1)
    assert repr(Below(1)).endswith("Below(first=1, second=(), third={}, fourth=7, fifth=5)")
    with pytest.raises(ValueError, match="mutable default"):

        @dataclass(frozen=True, slots=True)
        class Wrong:
            """Shares a list."""

            value: list[int] = []  # noqa: RUF012
