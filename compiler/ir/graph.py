"""The graph: typed values, nodes, variables. Data with almost no methods.

A graph lists its nodes in an order in which every operand comes before its user. Nodes and
values never change once their graph is finished, so a pass builds a new graph and shares the
nodes it leaves alone. State is explicit: a read yields a value, a write yields a token, and a
graph returns the tokens it keeps; everything else is pure.

Invariants: a value belongs to one node (or is a parameter, `node` None); names are unique in a
graph.
Not here: making nodes (builder), judging them (verifier), text (printer), hints and guards of a
trace (frontend).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from ..ops.definition import OpDef
from ..records import dataclass
from ..types import TensorType, Type


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the user's program."""

    file: str
    line: int
    function: str

    def __repr__(self) -> str:
        return f"{self.file}:{self.line}, in {self.function}"


class Value:
    """One SSA value: a graph parameter (`node` is None) or the `index`-th result of `node`."""

    __slots__ = ("name", "type", "node", "index")

    def __init__(self, name: str, type: Type, node: Node | None = None, index: int = 0) -> None:
        self.name = name
        self.type = type
        self.node = node
        self.index = index

    @property
    def tensor(self) -> TensorType:
        """The type, known to be a tensor's. Raises TypeError for a token."""
        if isinstance(self.type, TensorType):
            return self.type
        raise TypeError(f"%{self.name} is a token")

    def __repr__(self) -> str:
        return f"%{self.name}"


class Node:
    """One application of an op.

    attrs: immutable by convention, keys sorted, values ints, floats, bools, strings, dims,
    dtypes, arrays (constants) and tuples of these.
    after: tokens that must exist before this node runs (control dependencies).
    variable: the name of the variable a state op touches.
    device: canonical device name, None where placement has not decided.
    regions: nested graphs of control ops and fused regions.
    """

    __slots__ = (
        "op", "operands", "attrs", "results", "location", "device", "after", "variable",
        "regions", "verified",
    )  # fmt: skip

    def __init__(
        self,
        op: OpDef,
        operands: tuple[Value, ...],
        attrs: Mapping[str, Any],
        location: Location | None = None,
        device: str | None = None,
        after: tuple[Value, ...] = (),
        variable: str | None = None,
        regions: tuple[Graph, ...] = (),
    ) -> None:
        self.op = op
        self.operands = operands
        self.attrs = attrs
        self.results: tuple[Value, ...] = ()
        self.location = location
        self.device = device
        self.after = after
        self.variable = variable
        self.regions = regions
        self.verified = False

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    def inputs(self) -> Iterator[Value]:
        """Operands, then tokens waited for."""
        yield from self.operands
        yield from self.after

    def __repr__(self) -> str:
        return f"<{', '.join(map(repr, self.results))} = {self.op.name}>"


@dataclass(frozen=True, slots=True)
class Variable:
    """A named piece of state in the graph; its buffer lives in a store."""

    name: str
    type: TensorType
    device: str | None = None


@dataclass(slots=True)
class Graph:
    """A function over tensors.

    results: values returned, tensors then the tokens kept.
    hints: a size for each dim symbol, as seen in the example call: for schedules and costs,
    never for correctness.
    """

    name: str
    params: tuple[Value, ...]
    nodes: tuple[Node, ...]
    results: tuple[Value, ...]
    variables: Mapping[str, Variable] = field(default_factory=dict)
    hints: Mapping[str, int] = field(default_factory=dict)

    def values(self) -> Iterator[Value]:
        """Every value: parameters, then results in order."""
        yield from self.params
        for node in self.nodes:
            yield from node.results
