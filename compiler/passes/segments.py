"""Cut one device's part into segments that never block in the middle.

Nodes that depend on the same set of receives form one segment: it can run as soon as those have
arrived, as one compiled plan. A path that leaves a set for a larger one never comes back, so
segments form an acyclic graph.

Invariants: every node but sends and receives is in one segment; a segment's inputs are parameters
of the part, received values and results of other segments.
Not here: running them (runtime/executor.py).
"""

from __future__ import annotations

from ..ir.builder import Builder
from ..ir.graph import Graph, Node, Value
from ..ops.definition import Structure
from ..records import dataclass
from ..types import TensorType
from .partition import Part


@dataclass(frozen=True, slots=True)
class Segment:
    """A graph without transfers. Inputs, outputs and waits are names of the part's values.

    inputs: one per parameter of `graph`. outputs: one per result. waits: tokens of other
    segments; marks: tokens this one makes that others wait for.
    """

    graph: Graph
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    waits: tuple[str, ...]
    marks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Receive:
    """A value that comes from elsewhere."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Send:
    """A value that goes elsewhere once it is there."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class PartProgram:
    """What one device does in a step."""

    device: str
    params: tuple[tuple[int, str], ...]  # position among the step's arguments, name
    segments: tuple[Segment, ...]
    receives: tuple[Receive, ...]
    sends: tuple[Send, ...]
    outputs: tuple[tuple[int, str], ...]  # position among the step's results, name


def cut(part: Part) -> PartProgram:
    """The segments, sends and receives of a part."""
    graph = part.graph
    groups = _groups(graph)
    home = {node: key for key, nodes in groups.items() for node in nodes}
    needed = _needed_elsewhere(graph, home)
    segments = tuple(_segment(graph, nodes, home, key, needed) for key, nodes in groups.items())
    transfers = [n for n in graph.nodes if n.op.structure is Structure.TRANSFER]
    return PartProgram(
        part.device,
        tuple((position, p.name) for position, p in zip(part.params, graph.params, strict=True)),
        segments,
        tuple(Receive(n.attrs["key"], n.result.name) for n in transfers if not n.operands),
        tuple(Send(n.attrs["key"], n.operands[0].name) for n in transfers if n.operands),
        tuple((at, v.name) for at, v in zip(part.outputs, graph.results, strict=False)),
    )


def _groups(graph: Graph) -> dict[frozenset[str], list[Node]]:
    """Nodes by the receives they depend on, in order of first appearance."""
    reach: dict[Node, frozenset[str]] = {}
    groups: dict[frozenset[str], list[Node]] = {}
    for node in graph.nodes:
        inputs = [reach[value.node] for value in node.inputs() if value.node is not None]
        depends = frozenset().union(*inputs)
        if node.op.structure is Structure.TRANSFER:
            reach[node] = depends if node.operands else frozenset((node.attrs["key"],))
            continue
        reach[node] = depends
        groups.setdefault(depends, []).append(node)
    return groups


def _needed_elsewhere(graph: Graph, home: dict[Node, frozenset[str]]) -> set[Value]:
    """Values used outside the segment that makes them, by the caller or by a transfer."""
    needed = set(graph.results)
    for node in graph.nodes:
        for value in node.inputs():
            if value.node is not None and home.get(value.node) != home.get(node):
                needed.add(value)
    return needed


def _segment(
    graph: Graph,
    nodes: list[Node],
    home: dict[Node, frozenset[str]],
    key: frozenset[str],
    needed: set[Value],
) -> Segment:
    outside: dict[Value, None] = {}
    for node in nodes:
        for value in node.inputs():
            if value.node is None or home.get(value.node) != key:
                outside[value] = None
    tensors = [v for v in outside if isinstance(v.type, TensorType)]
    tokens = [v for v in outside if not isinstance(v.type, TensorType)]
    made = [value for node in nodes for value in node.results]
    outputs = [v for v in made if v in needed and isinstance(v.type, TensorType)]
    kept = [v for v in made if not isinstance(v.type, TensorType)]
    inner = _rebuilt(graph, nodes, tensors, [*outputs, *kept])
    return Segment(
        inner,
        tuple(v.name for v in tensors),
        tuple(v.name for v in outputs),
        tuple(v.name for v in tokens),
        tuple(v.name for v in kept if v in needed),
    )


def _rebuilt(graph: Graph, nodes: list[Node], params: list[Value], results: list[Value]) -> Graph:
    """A graph of these nodes; tokens from elsewhere are the executor's to wait for."""
    builder = Builder(graph.name)
    builder.hints = dict(graph.hints)
    values = {value: builder.param(value.name, value.type) for value in params}
    for node in nodes:
        if node.variable is not None:
            variable = graph.variables[node.variable]
            builder.variable(variable.name, variable.type, variable.device)
        after = [values[v] for v in node.after if v in values]
        operands = [values[v] for v in node.operands]
        made = builder.again(node, operands, after=after, regions=node.regions)
        values.update(zip(node.results, made, strict=True))
    tensors = [v for v in results if isinstance(v.type, TensorType)]
    tokens = [v for v in results if not isinstance(v.type, TensorType)]
    return builder.finish([values[v] for v in tensors], [values[v] for v in tokens])
