"""The store of variables: named cells, and the operations on several of them at once.

A variable is declared (name, type, container), then initialised by its first value. `commit`
judges all new values first and then writes them all, so a step either happened or did not;
`snapshot` copies several variables as they were at one moment.

Invariants: names are unique in a store; a value always has its variable's dtype and a shape that
its type allows; no reader ever sees half of a write; a container is a label by which variables
are listed and deleted together.
Not here: what native code writes in place (it keeps the same rules through the cells), devices,
files (checkpoint/).
"""

from __future__ import annotations

import difflib
import threading
from collections import deque
from collections.abc import Iterable, Mapping

import numpy as np

from ..compiler.dims import Dim
from ..compiler.errors import error
from ..compiler.records import dataclass
from ..compiler.types import TensorType
from .cells import Array, Cell, CellLocks, PythonLocks, locked
from .forks import tell_after_forks

DEFAULT_CONTAINER = "main"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Copies of variables at one moment, and the versions they were of."""

    values: Mapping[str, Array]
    versions: Mapping[str, int]


class VariableStore:
    """All variables of one program; every method may be called from any thread."""

    def __init__(self, locks: CellLocks | None = None) -> None:
        self._locks = locks or PythonLocks()
        self._cells: dict[str, Cell] = {}
        self._table = threading.Lock()
        self._released: deque[Cell] = deque()
        tell_after_forks(self)

    def after_fork(self) -> None:
        """Forget that a thread of the parent was looking at the table."""
        self._table = threading.Lock()

    def use_locks(self, locks: CellLocks) -> None:
        """Take the cells' locks by `locks` from now on: before native code first touches them."""
        with self._table:
            before, self._locks = self._locks, locks
        if isinstance(before, PythonLocks) and before is not locks:
            before.hand_over(locks)

    def create(
        self,
        name: str,
        type: TensorType,
        value: Array | None = None,
        container: str = DEFAULT_CONTAINER,
    ) -> Cell:
        """Declare a variable, with its first value if one is given."""
        if value is not None:
            _judge(name, type, value)
        cell = Cell(name, type, container)
        if value is not None:
            cell.write(value, cell.buffer_for(value.shape))
        self._sweep()
        with self._table:
            if name in self._cells:
                raise error("TM203", f"there is a variable named {name!r} already")
            self._cells[name] = cell
        return cell

    def cell(self, name: str) -> Cell:
        """The cell of a variable; its address may be kept as long as the cell is."""
        with self._table:
            cell = self._cells.get(name)
            names = list(self._cells)
        if cell is None:
            raise error("TM130", f"there is no variable named {name!r}", hint=_near(name, names))
        return cell

    def names(self, container: str | None = None) -> list[str]:
        """Names of all variables, or of those in a container, in the order they were made."""
        self._sweep()
        with self._table:
            cells = list(self._cells.values())
        return [c.name for c in cells if container is None or c.container == container]

    def __contains__(self, name: str) -> bool:
        with self._table:
            return name in self._cells

    def read(self, name: str) -> Array:
        """A copy of the value."""
        cell = self.cell(name)
        with locked(self._locks, [cell], write=False):
            return _value(cell).copy()

    def assign(self, name: str, value: Array) -> None:
        """Give a variable a value; the first one initialises it."""
        self.commit({name: value})

    def add(self, name: str, delta: Array) -> None:
        """Add to a variable; many threads may, and none of their additions is lost."""
        cell = self.cell(name)
        _judge(name, cell.type, delta)
        with locked(self._locks, [cell], write=True):
            self._check_present([cell])
            current = _value(cell)
            _judge_same_shape(name, current, delta)
            total = np.add(current, delta)
            cell.write(total, cell.buffer_for(total.shape))

    def commit(self, values: Mapping[str, Array], add: Mapping[str, Array] | None = None) -> None:
        """Write all of `values` and add all of `add`, or raise and change nothing."""
        add = add or {}
        cells = {name: self.cell(name) for name in [*values, *add]}
        for name, value in [*values.items(), *add.items()]:
            _judge(name, cells[name].type, value)
        with locked(self._locks, list(cells.values()), write=True):
            self._check_present(cells.values())
            # Everything that can fail (memory, an overlap of source and buffer) happens before
            # the first write.
            made = {name: np.array(value, copy=True) for name, value in values.items()}
            for name, delta in add.items():
                current = made[name] if name in made else _value(cells[name])
                _judge_same_shape(name, current, delta)
                made[name] = np.add(current, delta)
            buffers = {name: cells[name].buffer_for(value.shape) for name, value in made.items()}
            for name, value in made.items():
                cells[name].write(value, buffers[name])

    def snapshot(self, names: Iterable[str] | None = None) -> Snapshot:
        """Copies of the initialised variables, or of exactly `names`, as of one moment."""
        chosen = self.names() if names is None else list(names)
        cells = [self.cell(name) for name in chosen]
        with locked(self._locks, cells, write=False):
            if names is None:
                cells = [cell for cell in cells if cell.initialised]
            values = {cell.name: _value(cell).copy() for cell in cells}
            return Snapshot(values, {cell.name: cell.version for cell in cells})

    def delete(self, name: str) -> None:
        """Forget a variable; code that still holds its cell finds it without a value."""
        cell = self.cell(name)
        with locked(self._locks, [cell], write=True):
            with self._table:
                self._cells.pop(name, None)
            cell.unbind()

    def release(self, cell: Cell) -> None:
        """Forget the variable of a cell that nobody refers to any more.

        The garbage collector calls this, at any moment and in any thread, also one that is in the
        middle of another method here: so it never waits.
        """
        self._released.append(cell)
        self._sweep()

    def _sweep(self) -> None:
        """Forget released variables, unless the table is in use: then the next call does."""
        while self._released and self._table.acquire(blocking=False):
            try:
                cell = self._released.popleft()
                if self._cells.get(cell.name) is cell:
                    del self._cells[cell.name]
            except IndexError:  # another thread was here first
                continue
            finally:
                self._table.release()

    def clear(self, container: str) -> None:
        """Delete all variables of a container."""
        for name in self.names(container):
            self.delete(name)

    def _check_present(self, cells: Iterable[Cell]) -> None:
        """A cell whose variable was deleted while its lock was waited for takes no value."""
        with self._table:
            for cell in cells:
                if self._cells.get(cell.name) is not cell:
                    raise error("TM130", f"variable {cell.name!r} has been deleted")


def _value(cell: Cell) -> Array:
    if cell.array is None:
        raise error(
            "TM130",
            f"variable {cell.name!r} has no value yet",
            detail=f"it was declared as {cell.type!r} and read before its first assignment",
            hint="assign it, or restore a checkpoint, before reading it",
        )
    return cell.array


def _judge(name: str, type: TensorType, value: Array) -> None:
    if value.dtype != type.dtype.numpy:
        raise error(
            "TM202",
            f"variable {name!r} holds {type.dtype.name}, got an array of {value.dtype}",
            hint=f"convert it first: value.astype({type.dtype.numpy.name!r})",
        )
    if len(value.shape) == type.rank and _fits(type, value.shape):
        return
    raise error("TM209", f"variable {name!r} is {type!r}, got a value of shape {value.shape}")


def _fits(type: TensorType, shape: tuple[int, ...]) -> bool:
    """Fixed extents agree; a symbolic one may differ from value to value, but is one number."""
    symbols: dict[str, int] = {}
    for declared, got in zip(type.shape, shape, strict=True):
        if isinstance(declared, Dim):
            if declared.name is not None and symbols.setdefault(declared.name, got) != got:
                return False
        elif declared != got:
            return False
    return True


def _judge_same_shape(name: str, current: Array, delta: Array) -> None:
    if current.shape != delta.shape:
        raise error(
            "TM209", f"variable {name!r} has shape {current.shape} now, got {delta.shape} to add"
        )


def _near(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name, names, n=3)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else ""
