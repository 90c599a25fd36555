"""What the steps of a plan do, and what their cells are: between assembling and writing rows.

Invariants: data only.
Not here: order and memory (passes/schedule.py), rows (rows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .dims import Size
from .ir.graph import Node
from .kernel.kernel import Kernel
from .kernels import Ready
from .passes.schedule import Cell
from .plan import ErrorPlace, Origin
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
    """Call back with the arrays read."""

    node: Node


Job = LaunchJob | CopyJob | HostJob


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
