"""Forward-mode derivatives: a graph made again with the tangent of each value beside it.

`pushforward` writes into a builder, so it serves a live trace and a region alike; what it writes
are ordinary nodes, which can be differentiated or batched again.

Conventions: the tangent of a complex z is the change of z itself, so a holomorphic f has the
tangent f'(z) t, and Re(conj(g) t) is the change of a real loss with the gradient g. None stands for
zero: integers and bools have no tangent, nor has what depends on the inputs only through them,
`stop_gradient` and state.

Invariants: work is linear in the nodes; checks and prints happen once; each node has the place and
device of the one that it was made of.
Not here: the rules (with their ops), branches and loops (jvp_flow.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import error
from ..ir.builder import Builder
from ..ir.graph import Graph, Node, Value
from ..ir.traversal import needed
from ..ops.definition import Structure
from ..types import TensorType
from .applied import Applied
from .jvp_flow import flow_tangents
from .reach import carries, tensors_of

Tangents = Sequence[Value | None]


def pushforward(
    builder: Builder, graph: Graph, operands: Sequence[Value], tangents: Tangents
) -> tuple[list[Value], list[Value | None]]:
    """Append `graph`, applied to values of `builder`: its tensors and their tangents.

    tangents: of each operand, of its type; None for zero.
    Raises GradientError for an op on the way that has no derivative.
    """
    forward = _Forward(builder)
    for param, operand, tangent in zip(graph.params, operands, tangents, strict=True):
        forward.note(param, operand, tangent)
    results = tensors_of(graph.results)
    path = needed(graph, results)
    for node in graph.nodes:
        with builder.standing_at(node):
            forward.step(node, node in path)
    return [forward.values[v] for v in results], [forward.tangents.get(v) for v in results]


class _Forward:
    """What became of each value of the graph, and its tangent if that is not zero."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self.values: dict[Value, Value] = {}
        self.tangents: dict[Value, Value] = {}

    def note(self, value: Value, made: Value, tangent: Value | None) -> None:
        """`value` of the graph is `made` here."""
        self.values[value] = made
        if tangent is not None and carries(value):
            if tangent.type != made.type:
                raise error(
                    "TM120", f"the tangent of %{value.name} is {tangent.type!r}, not {made.type!r}"
                )
            self.tangents[value] = tangent

    def step(self, node: Node, is_needed: bool) -> None:
        """Make a node again; with the tangents of its results, if those are needed."""
        operands = tuple([self.values[operand] for operand in node.operands])
        tangents = [self.tangents.get(operand) for operand in node.operands]
        if not is_needed or all(tangent is None for tangent in tangents):
            made = self._builder.again(node, operands, device=node.device, regions=node.regions)
            self.values.update(zip(node.results, made))
        elif node.op.structure is Structure.FLOW:
            found = flow_tangents(self._builder, node, operands, tangents, pushforward)
            for result, value, tangent in zip(node.results, *found):  # a rule may have no effects
                self.note(result, value, tangent)
        else:
            made = self._builder.again(node, operands, device=node.device)
            found_tangents = self._rule(Applied.of(node, operands, made), tangents)
            for result, value, tangent in zip(node.results, made, found_tangents):
                self.note(result, value, self._fitted(node, tangent, value))

    def _rule(self, node: Applied, tangents: Tangents) -> Tangents:
        nothing = [None] * len(node.results)
        if node.op.tangent is not None:
            made: Tangents = node.op.tangent(self._builder, node, tangents)
            return [*made, *nothing[len(made) :]]
        if node.op.facts.differentiable and any(map(carries, node.results)):
            raise error(
                "TM120", f"{node.op.name} has no derivative", place=node.location,
                hint="wrap its operands in stop_gradient if none should flow through it; "
                "tm.custom_jvp gives the function around it a rule of its own",
            )  # fmt: skip
        return nothing

    def _fitted(self, node: Node, tangent: Value | None, like: Value) -> Value | None:
        """A tangent repeated to the shape of its result."""
        if tangent is None or not isinstance(like.type, TensorType):
            return None
        if tangent.tensor.shape != like.tensor.shape:
            shape = like.tensor.shape
            tangent = self._builder.emit("broadcast_to", (tangent,), {"shape": shape})
        if tangent.type != like.type:
            raise error(
                "TM304",
                f"the tangent rule of {node.op.name} made {tangent.type!r} for {like.type!r}",
                place=node.location,
            )
        return tangent
