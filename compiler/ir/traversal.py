"""Walks over graphs: who uses what, what is needed, all nodes inside out.

Invariants: iterative, each node visited a bounded number of times, order is the graph's own.
Not here: changing graphs (rewriter).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..dims import Size
from ..ops.creation import iota
from ..ops.movement import slice_
from ..types import TokenType
from .graph import Graph, Node, Value


def users(graph: Graph) -> dict[Value, list[Node]]:
    """The nodes that take each value as operand or wait for it, in order; unused values too."""
    found: dict[Value, list[Node]] = {value: [] for value in graph.values()}
    for node in graph.nodes:
        for value in dict.fromkeys(node.inputs()):
            found.setdefault(value, []).append(node)
    return found


def devices(graph: Graph) -> set[str]:
    """Every device that a node or variable of the graph names."""
    nodes = {node.device for node in graph.nodes if node.device is not None}
    return nodes | {v.device for v in graph.variables.values() if v.device is not None}


def all_nodes(graph: Graph) -> Iterator[Node]:
    """Every node, those of regions after the node that holds them."""
    stack = [iter(graph.nodes)]
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
            continue
        yield node
        stack.extend(iter(region.nodes) for region in reversed(node.regions))


def needed(graph: Graph, roots: Iterable[Value] | None = None) -> set[Node]:
    """The nodes that `roots` (else the results) need, effects they must follow included.

    A write waits for earlier reads and writes of its variable only for the order; that alone
    does not make those needed.
    """
    found: set[Node] = set()
    pending = [v.node for v in (graph.results if roots is None else roots) if v.node is not None]
    while pending:
        node = pending.pop()
        if node in found:
            continue
        found.add(node)
        pending.extend([v.node for v in node.operands if v.node is not None])
        pending.extend([v.node for v in node.after if v.node and not only_order(node, v.node)])
    return found


def only_order(node: Node, earlier: Node) -> bool:
    """True where `node`, a write, waits for `earlier` just because it comes before it."""
    return (
        node.variable is not None
        and earlier.variable == node.variable
        and isinstance(node.results[0].type, TokenType)
    )


def last_uses(graph: Graph) -> dict[Node, list[Value]]:
    """For each node the values that nothing needs once it has run."""
    kept = set(graph.results)
    last: dict[Value, Node] = {}
    for node in graph.nodes:
        for value in node.results:
            last[value] = node
        for value in node.operands:
            last[value] = node
    found: dict[Node, list[Value]] = {}
    for value, node in last.items():
        if value not in kept:
            found.setdefault(node, []).append(value)
    return found


def counted(value: Value) -> Size | None:
    """The size that a value of one element is: one number of an iota, which is how sizes are
    made into values. None for anything else."""
    node = value.node
    if node is None or node.op is not slice_ or value.tensor.shape != (1,):
        return None
    source = node.operands[0].node
    place: Size | None = None if source is None or source.op is not iota else node.attrs["start"][0]
    return place
