"""What moved blocks can change: variables of the user's function, and containers they hold.

A block that is traced runs where it would not have run, or once for all trips. So before it runs
the contents of its places are kept, afterwards what it made of them is read, and they are put
back; what the graph decides is then written to them.

Invariants: the containers are the user's own objects, changed in place.
Not here: arrays, which are memory (tracing/memory.py); what contents become in the graph
(nests.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..compiler.records import dataclass
from ..intercept.calls_of_hooks import is_moved
from ..numpy.operands import is_traced
from ..tracing.source import OWN_FOLDERS, is_library_file
from ..tracing.state import current


class Unbound:
    """What a variable holds before it is bound."""

    def __repr__(self) -> str:
        return "nothing"


_MOST = 2000  # elements of containers looked at
_SIMPLE = (np.ndarray, np.generic, bool, int, float, complex, str, bytes, type(None), type,
           ModuleType, Unbound)  # fmt: skip
_LASTING = frozenset(("deque", "bytearray", "array", "Random", "Generator", "RandomState"))


UNBOUND = Unbound()


@dataclass(frozen=True, slots=True)
class Place:
    """A variable or container. name: as in the user's program. is_live: it may be read by what
    comes after the blocks."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], None]
    is_live: bool = True
    is_container: bool = False


def places(blocks: Iterable[Any], live: Sequence[str]) -> list[Place]:
    """The variables that blocks use, and the containers in them."""
    return _reached(blocks, live).found


def can_be_tried(blocks: Iterable[Any]) -> bool:
    """Whether all that blocks use can be put back: no iterator, queue or generator."""
    return not _reached(blocks, ()).is_lasting


def _reached(blocks: Iterable[Any], live: Sequence[str]) -> _Reached:
    reached = _Reached([], {})
    cells: dict[str, CellType] = {}
    for block in moved_blocks(blocks):
        cells.update(zip(block.__code__.co_freevars, block.__closure__ or ()))
    cells = {name: cell for name, cell in cells.items() if not name.startswith("tracemill ")}
    for name, cell in cells.items():
        reached.add_cell(name, cell, name in live)
    for name, cell in cells.items():
        reached.add_below(name, _content(cell))
    return reached


def moved_blocks(blocks: Iterable[Any]) -> Iterator[FunctionType]:
    """The functions that stand for the user's blocks, among functions that call them."""
    for block in blocks:
        if type(block) is tuple:
            yield from moved_blocks(block)
        elif type(block) is FunctionType:
            if is_moved(block.__code__):
                yield block
            elif block.__code__.co_filename.startswith(OWN_FOLDERS):
                yield from moved_blocks([_content(cell) for cell in block.__closure__ or ()])


def contents(items: Iterable[Place]) -> list[Any]:
    """What all of them hold."""
    return [place.read() for place in items]


def put_back(items: Iterable[Place], held: Iterable[Any]) -> None:
    """Let them hold what they held."""
    for place, content in zip(items, held, strict=True):
        place.write(content)


def is_same_content(place: Place, a: Any, b: Any) -> bool:
    """Whether nothing was put there in between."""
    if not place.is_container:
        return a is b
    if type(a) is dict:
        return list(a) == list(b) and all(a[key] is b[key] for key in a)
    if type(a) is set:
        return bool(a == b)
    return len(a) == len(b) and all(x is y for x, y in zip(a, b))


def _variable(name: str, cell: CellType, is_live: bool) -> Place:
    def write(content: Any) -> None:
        if content is not UNBOUND:
            cell.cell_contents = content
        elif _content(cell) is not UNBOUND:
            del cell.cell_contents

    return Place(name, lambda: _content(cell), write, is_live)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


@dataclass(slots=True)
class _Reached:
    """What has been found. is_lasting: something among it changes for good when it is used."""

    found: list[Place]
    seen: dict[int, Any]
    is_lasting: bool = False

    def add_cell(self, name: str, cell: CellType, is_live: bool) -> None:
        """Add a variable."""
        if id(cell) not in self.seen:
            self.seen[id(cell)] = cell
            self.found.append(_variable(name, cell, is_live))

    def add_below(self, name: str, item: Any) -> None:
        """Add the containers and variables below an item."""
        kind = type(item)
        if isinstance(item, _SIMPLE) or is_traced(item) or id(item) in self.seen:
            return
        if len(self.seen) > _MOST or (kind in (list, dict, set) and len(item) > _MOST):
            return
        self.seen[id(item)] = item
        self.is_lasting |= _is_unwatched(kind) or (
            kind.__name__ in _LASTING
            and not kind.__module__.startswith("tracemill.")
            and not _draws_in_the_run(item)
        )
        if kind is FunctionType:
            self._add_closure(item)
        elif kind is MethodType:
            self.add_below(name, item.__self__)
            self.add_below(name, item.__func__)
        elif kind is list:
            self._add(name, lambda: list(item), lambda new: _fill(item, new))
        elif kind is dict:
            self._add(name, lambda: dict(item), lambda new: _fill_dict(item, new))
        elif kind is set:
            self._add(name, lambda: set(item), lambda new: _fill_set(item, new))
        if kind in (list, tuple):
            for at, part in enumerate(item):
                self.add_below(f"{name}[{at}]", part)
        elif kind is dict:
            for key, part in list(item.items()):
                self.add_below(f"{name}[{key!r}]", part)
        else:
            self._add_attributes(name, item)

    def _add(self, name: str, read: Callable[[], Any], write: Callable[[Any], None]) -> None:
        self.found.append(Place(name, read, write, True, True))

    def _add_closure(self, function: FunctionType) -> None:
        """The variables of a function that was made in another one."""
        if is_library_file(function.__code__.co_filename):
            return
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if not name.startswith("tracemill "):
                self.add_cell(name, cell, True)
                self.add_below(name, _content(cell))

    def _add_attributes(self, name: str, item: Any) -> None:
        held = getattr(item, "__dict__", None)
        module = type(item).__module__.split(".")[0]
        if type(held) is not dict or module in ("numpy", "tracemill", "builtins"):
            return
        if len(held) <= _MOST:
            self._add(name, lambda: dict(held), lambda new: _fill_dict(held, new))
            for key, part in list(held.items()):
                self.add_below(f"{name}.{key}", part)


def _draws_in_the_run(item: Any) -> bool:
    """Whether it is a generator of NumPy's from outside, whose draws are calls by the graph."""
    trace = current()
    if trace is None or trace.paths is None or not type(item).__module__.startswith("numpy."):
        return False
    return bool(trace.paths.is_captured(item))


def _is_unwatched(kind: type) -> bool:
    """Whether objects of this kind change in ways that are not looked at: iterators, containers of
    the user's own kinds, objects with slots."""
    module = kind.__module__.split(".")[0]
    if hasattr(kind, "__next__"):
        return True
    if module in ("tracemill", "numpy"):
        return False
    if issubclass(kind, list | dict | set) and kind not in (list, dict, set):
        return True
    return module != "builtins" and bool(vars(kind).get("__slots__"))


def _fill(item: list[Any], new: Sequence[Any]) -> None:
    if len(item) != len(new) or any(a is not b for a, b in zip(item, new)):
        item[:] = new


def _fill_dict(item: dict[Any, Any], new: dict[Any, Any]) -> None:
    if list(item) != list(new) or any(item[key] is not new[key] for key in new):
        item.clear()
        item.update(new)


def _fill_set(item: set[Any], new: set[Any]) -> None:
    if item != new:
        item.clear()
        item.update(new)
