"""What a trace yields: a finished graph and all that is needed to call it.

Invariants: immutable. The graph's results are the output tensors, then the final contents of
written inputs, then tokens.
Not here: checking guards, binding data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracemill.compiler.dims import Size
from tracemill.compiler.ir.graph import Graph
from tracemill.compiler.records import dataclass

from .guards import Guard
from .state import Input


@dataclass(frozen=True, slots=True)
class TensorOutput:
    """A result of the graph.

    kind: ``array``; ``scalar``, a NumPy scalar; or ``bool``, ``int``, ``float``, ``complex``, a
    Python number. same_as: index of an earlier output that is the same array object; two
    outputs of one graph result that are not `same_as` each other are two arrays.
    """

    result: int
    kind: str
    same_as: int | None = None


@dataclass(frozen=True, slots=True)
class InputOutput:
    """The caller's own array (an argument or a captured one), by input index."""

    input: int


@dataclass(frozen=True, slots=True)
class SizeOutput:
    """A Python int computed from the sizes of the call."""

    size: Size


@dataclass(frozen=True, slots=True)
class StaticOutput:
    """A Python value made while tracing."""

    value: Any


Output = TensorOutput | InputOutput | SizeOutput | StaticOutput


@dataclass(frozen=True, slots=True)
class TraceResult:
    """See the module.

    inputs: one per graph parameter. outputs: the flat results in the order of `structure`.
    structure: what the caller's `flatten` gave. writes: input index -> index of the graph
    result that is its final content. guards: all must hold for a later call to use the graph.
    looked_at: paths of those guards that are on what a captured container holds, where the function
    has looked at that.
    replaced: symbols of the argument shapes that the graph no longer has, and what they equal.
    variables: by name in the graph, the user's objects (each knows its store).
    """

    graph: Graph
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    structure: Any
    writes: Mapping[int, int]
    guards: tuple[Guard, ...]
    hints: Mapping[str, int]
    replaced: Mapping[str, Size]
    variables: Mapping[str, Any]
    looked_at: frozenset[str] = frozenset()
