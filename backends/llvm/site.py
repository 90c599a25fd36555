"""Where scalar words are emitted: a builder, what the machine can do, and what may be called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llvmlite import ir

from ...compiler.records import dataclass
from .machine import Machine

if TYPE_CHECKING:
    from .outlined import Routines


@dataclass(frozen=True, slots=True)
class Site:
    """The current place in a function (the builder moves) and its machine.

    routines: what long pieces of code may be called; None where all code stands in its place.
    """

    builder: ir.IRBuilder
    machine: Machine
    routines: Routines | None = None
