"""Containers outside a function that it changes: looked at, they are what they are at each call.

A function that looks at what it changes is traced at each call, so the change happens as often as
in plain Python. One that only writes (a list of traces made) is traced once, and so is one that
fills a cache.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill.compiler.errors import TraceError

pytestmark = pytest.mark.cpu

seen: list[float] = []


class Holder:
    def __init__(self) -> None:
        self.history: list[float] = []
        self.logs: dict[str, list[float]] = {"loss": []}

    def method(self, x: Any) -> Any:
        self.history.append(2.0)
        return x * len(self.history)

    def nested(self, x: Any) -> Any:
        self.logs["loss"].append(1.0)
        return x * len(self.logs["loss"])

    def writes_only(self, x: Any) -> Any:
        self.logs["loss"].append(1.0)
        self.history.append(1.0)
        return x + 1


def a_global() -> Callable[..., Any]:
    seen.clear()

    def f(x: Any) -> Any:
        seen.append(1.0)
        return x * len(seen)

    return f


def over(make: Callable[[], Any], use: Callable[[Any, Any], Any]) -> Callable[[], Any]:
    """Makes a function that uses a new container each time."""

    def made() -> Callable[..., Any]:
        held = make()
        return lambda x: use(held, x)

    return made


def iterated(held: list[float], x: Any) -> Any:
    for number in held:
        x = x + number
    held.append(2.0)
    return x


def asked(held: list[float], x: Any) -> Any:
    y = x * 2 if 2.0 in held else x
    held.append(2.0)
    return y


def summed(held: list[float], x: Any) -> Any:
    held.extend([2.0])
    return x * sum(held)


def taken(held: list[float], x: Any) -> Any:
    return x * held.pop()


def sorted_(held: list[float], x: Any) -> Any:
    y = x * held[0]
    held.sort()
    return y


def by_slice(held: list[float], x: Any) -> Any:
    held[len(held) :] = [1.0]
    return x * len(held)


def added(held: set[int], x: Any) -> Any:
    held.add(len(held))
    return x * len(held)


def keyed(held: dict[int, int], x: Any) -> Any:
    held[len(held)] = 1
    return x * len(held)


def turned(held: deque[float], x: Any) -> Any:
    held.rotate(1)
    return x * held[0]


def cached(held: dict[str, float], x: Any) -> Any:
    if "scale" not in held:
        held["scale"] = 3.0
    return x * held["scale"]


def up_and_down(held: list[float], x: Any) -> Any:
    held.append(1.0)
    y = x * len(held)
    held.pop()
    return y


CASES: dict[str, Callable[[], Any]] = {
    "global": a_global,
    "attribute": lambda: Holder().method,
    "nested": lambda: Holder().nested,
    "iterated": over(lambda: [1.0], iterated),
    "in": over(lambda: [1.0], asked),
    "sum": over(lambda: [1.0], summed),
    "pop": over(lambda: [1.0, 2.0, 3.0, 4.0], taken),
    "sort": over(lambda: [3.0, 1.0, 2.0], sorted_),
    "slice": over(list, by_slice),
    "set": over(set, added),
    "dict": over(dict, keyed),
    "deque": over(lambda: deque([1.0, 2.0, 3.0]), turned),
    "cache": over(dict, cached),
    "as before": over(list, up_and_down),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_changed_and_looked_at_is_as_in_plain_python(name: str) -> None:
    plain = CASES[name]()
    expected = [plain(1.5) for _ in range(4)]
    compiled = tm.jit(CASES[name]())
    assert [compiled(1.5) for _ in range(4)] == expected


@pytest.mark.parametrize(("name", "compilations"), [("cache", 2), ("as before", 1), ("global", 5)])
def test_only_what_stays_changed_is_compiled_again(name: str, compilations: int) -> None:
    compiled = tm.jit(CASES[name]())
    for _ in range(5):
        compiled(1.5)
    assert len(compiled.explain_recompiles()) == compilations


def test_the_reason_names_the_container() -> None:
    holder = Holder()
    compiled = tm.jit(holder.method)
    compiled(1.0)
    compiled(1.0)
    reason = [*compiled.explain_recompiles()][-1].reason
    assert reason == "self.history was changed by the function, which looks at it"


def test_a_container_that_is_only_written_is_traced_once() -> None:
    holder = Holder()
    compiled = tm.jit(holder.writes_only)
    assert [compiled(1.0) for _ in range(3)] == [2.0] * 3
    assert holder.logs == {"loss": [1.0]}
    assert holder.history == [1.0]
    assert len(compiled.explain_recompiles()) == 1


def test_a_counter_s_number_is_refused_once_there_is_one() -> None:
    counts: Counter[str] = Counter(calls=3)

    @tm.jit
    def f(x: Any) -> Any:
        counts["calls"] += 1
        return x * 2

    with pytest.raises(TraceError, match=r"TM107.*test_outside_containers.*\n.*from 3 to 4"):
        f(np.ones(2))
    assert counts == {"calls": 3}
