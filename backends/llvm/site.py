"""Where scalar words are emitted: a builder, and what the machine can do."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from .machine import Machine


@dataclass(frozen=True, slots=True)
class Site:
    """The current place in a function (the builder moves) and its machine."""

    builder: ir.IRBuilder
    machine: Machine
