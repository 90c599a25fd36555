"""Variables outside a function that it gives another value while it is traced.

A function runs once for many calls, so ``self.count += 1`` or ``global n; n += 1`` would happen
once and never again. What is rebound is remembered where that is seen, and looked at when the
trace ends: a number that is another one then is an error at the user's line, and has its old
value back. So has a global or a variable of an enclosing function that holds a traced value then,
which means nothing afterwards.

Invariants: what ends as it began (a depth that is counted up and down) is no error, nor is what
was no number before (an object made at the first call); booleans are flags, not counts.
Not here: containers and dataclasses among the arguments, which every call changes
(calls/rebinding.py); arrays and Variables.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from tracemill.compiler.errors import TracemillError, error
from tracemill.compiler.ir.graph import Location
from tracemill.compiler.records import dataclass

from ..intercept.bytecode import instructions
from .guards import same_constant
from .source import user_location

_NUMBERS = (int, float, complex)
_MISSING = object()


@dataclass(slots=True)
class _Place:
    """Something that holds a value, and the line that assigns it."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], None]
    before: Any
    location: Location | None
    variable: bool = False  # a global, or a variable of an enclosing function


class Outside:
    """What one trace rebinds."""

    def __init__(self) -> None:
        self._places: dict[Any, _Place] = {}
        self._entered = False
        self._kept: list[object] = []  # ids are of objects that are alive

    def attribute(self, owner: Any, name: str) -> None:
        """``owner.name`` is about to be assigned."""
        self._add(
            (id(owner), name),
            owner,
            f"{type(owner).__name__}.{name}",
            lambda: _attribute(owner, name),
            lambda value: setattr(owner, name, value),
        )

    def item(self, owner: Any, key: Any) -> None:
        """``owner[key]`` of a list or dict is about to be assigned."""
        if isinstance(owner, list) and type(key) is not int:
            return
        self._add(
            (id(owner), "item", key),
            owner,
            f"an item [{key!r}]",
            lambda: _item(owner, key),
            lambda value: owner.__setitem__(key, value),
        )

    def function(self, function: FunctionType, captured: bool, assigned: frozenset[str]) -> None:
        """A function is about to run for the first time. captured: it was there before the trace,
        as the first one was; then so were the variables of enclosing functions, and those that
        are `assigned` are looked at."""
        code, space = function.__code__, function.__globals__
        names = assigned if captured or not self._entered else frozenset[str]()
        names = names.intersection(code.co_freevars)
        self._entered = True
        for instruction in instructions(code, "STORE_GLOBAL", "STORE_DEREF"):
            place = instruction.positions
            line = (place.lineno if place else None) or code.co_firstlineno
            where = Location(code.co_filename, line, code.co_name)
            name = instruction.argval
            if instruction.opname == "STORE_GLOBAL":
                self._global(space, name, where)
            elif instruction.opname == "STORE_DEREF" and name in names:
                at = code.co_freevars.index(name)
                self._cell((function.__closure__ or ())[at], name, where)

    def _global(self, space: dict[str, Any], name: str, where: Location) -> None:
        self._add(
            (id(space), name),
            space,
            f"the global {name}",
            lambda: space.get(name, _MISSING),
            lambda value: space.pop(name) if value is _MISSING else space.update({name: value}),
            where,
        )

    def _cell(self, cell: CellType, name: str, where: Location) -> None:
        self._add(
            (id(cell), name),
            cell,
            f"{name} of the enclosing function",
            lambda: _content(cell),
            lambda value: _fill(cell, value),
            where,
        )

    def _add(
        self,
        key: Any,
        owner: object,
        name: str,
        read: Callable[[], Any],
        write: Callable[[Any], None],
        where: Location | None = None,
    ) -> None:
        known = self._places.get(key)
        if known is None:
            self._kept.append(owner)
            before = read()
            line = where or user_location()
            self._places[key] = _Place(name, read, write, before, line, where is not None)
        elif where is None:
            known.location = user_location()

    def restore(self) -> list[TracemillError]:
        """Give variables that hold traced values their old values back; what is to be said of
        each."""
        left = [place for place in self._places.values() if place.variable and _is_traced(place)]
        for place in left:
            place.write(place.before)
        return [_leftover(place) for place in left]

    def check(self) -> None:
        """Refuse numbers that have changed and traced values in variables, which get their old
        values back."""
        changed = [place for place in self._places.values() if _has_changed(place)]
        problems = [*self.restore(), *[_refusal(place) for place in changed]]
        for place in changed:
            place.write(place.before)
        if problems:
            raise problems[0]


def _has_changed(place: _Place) -> bool:
    now = place.read()
    return (
        type(place.before) in _NUMBERS
        and type(now) in _NUMBERS
        and not same_constant(now, place.before)
    )


def _is_traced(place: _Place) -> bool:
    now = place.read()
    return now is not place.before and _holds_traced(now, 3)


def _holds_traced(thing: Any, depth: int) -> bool:
    if hasattr(type(thing), "tracing"):
        return True
    if not depth or type(thing) not in (list, tuple, dict):
        return False
    parts = thing.values() if type(thing) is dict else thing
    return any(_holds_traced(part, depth - 1) for part in parts)


def _leftover(place: _Place) -> TracemillError:
    return error(
        "TM103",
        f"{place.name} is given a traced value, which means nothing once the trace has ended",
        place=place.location,
        hint="return it, or keep state in a tm.Variable and assign that",
    )


def _refusal(place: _Place) -> TracemillError:
    return error(
        "TM107",
        f"{place.name} is changed from {place.before!r} to {place.read()!r}, which would happen "
        "only while the function is traced, not at each call",
        place=place.location,
        hint="keep the number in a tm.Variable (n = tm.Variable(0); n.assign_add(1)), or change "
        "it outside the compiled function",
    )


def _attribute(owner: Any, name: str) -> Any:
    if isinstance(getattr(type(owner), name, None), property):
        return _MISSING  # whatever it sets is seen itself
    return getattr(owner, name, _MISSING)


def _item(owner: Any, key: Any) -> Any:
    try:  # a dict that makes what it lacks is not asked
        return owner[key] if isinstance(owner, list) or key in owner else _MISSING
    except (LookupError, TypeError):
        return _MISSING


def _fill(cell: CellType, value: Any) -> None:
    if value is _MISSING:
        del cell.cell_contents
    else:
        cell.cell_contents = value


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # still empty
        return _MISSING
