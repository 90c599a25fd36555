"""What the steps of a plan do, and what their cells are: between assembling and writing rows.

Invariants: data only.
Not here: order and memory (passes/schedule.py), rows (rows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .dims import Size
from .ir.graph import Node
from .kernel.kernel import Kernel
from .kernels import Ready
from .passes.schedule import Cell, Step
from .plan import ErrorPlace, Origin
from .records import dataclass
from .types import DType


@dataclass(frozen=True, slots=True)
class Note:
    """What a cell is: its element type, shape, origin, position among its origin, a name."""

    dtype: DType
    shape: tuple[Size, ...]
    origin: Origin
    index: int = 0
    name: str = ""
    strided: bool = False


@dataclass(frozen=True, slots=True)
class LaunchJob:
    """Run the kernels of a region: their parameters are the step's reads, then its writes.

    places: per stage, what each of its failures is.
    """

    ready: Ready
    node: Node | None
    places: tuple[tuple[ErrorPlace, ...], ...]


@dataclass(frozen=True, slots=True)
class CopyJob:
    """Copy the bytes of the one read to the one write."""


@dataclass(frozen=True, slots=True)
class HostJob:
    """Call back with the arrays read, then those written."""

    node: Node


@dataclass(frozen=True, slots=True)
class BranchJob:
    """Run the steps of one of two regions, as the bool in `test` says."""

    node: Node
    test: Cell
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class TurnOf:
    """Two buffers (result, other) that take turns. current, following: cells of the region.
    first: what the first trip reads."""

    current: Cell
    following: Cell
    first: Cell
    result: Cell
    other: Cell


@dataclass(frozen=True, slots=True)
class SliceOf:
    """A cell of the region that is a row of a whole array, another one on each trip."""

    view: Cell
    whole: Cell


@dataclass(frozen=True, slots=True)
class LoopJob:
    """Run the steps of a region again and again: while the bool in `condition` is true, or for
    the integers between `bounds`, or `length` times (backwards if `reverse`)."""

    node: Node
    body: tuple[Step, ...]
    condition: Cell | None
    bounds: tuple[Cell, Cell] | None
    length: Size | None
    index: Cell | None
    reverse: bool
    turns: tuple[TurnOf, ...]
    slices: tuple[SliceOf, ...]


Job = LaunchJob | CopyJob | HostJob | BranchJob | LoopJob


@dataclass(frozen=True, slots=True)
class Assembled:
    """A graph's cells and kernels, beside its steps.

    symbols: for each dim symbol a parameter and the axis whose size it is. copying: the job that
    copies between two cells. kernels: may still grow while rows are written.
    """

    name: str
    params: tuple[Cell, ...]
    variables: Mapping[str, Cell]
    constants: tuple[Any, ...]
    symbols: dict[str, tuple[int, int]]
    copying: Callable[[Cell, Cell], LaunchJob | CopyJob]
    kernels: list[Kernel]
