"""Contents that a trip makes on the way to the next one, where two buffers take turns.

A trip that replaces the same regions each time writes only those: elsewhere the next buffer holds
what it held before the loop. So what lies between two updates of one trip is whole but for the
regions that later updates replace: these hold what they became two trips ago.

    a[0] = s            the content between both may be read at 0, and not at 1 and behind
    a[1:] = a[:-1] + 1

Not here: which buffers take turns (assemble_flow.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .ir.graph import Graph, Node, Value
from .kernel.movement import is_update


def reads_what_is_stale(region: Graph, param: Value, result: Value) -> bool:
    """Whether a content between `param` and `result`, which updates lead to, is read where a later
    update replaces it; also where that cannot be told."""
    flat = _Flat(region)
    updates: list[Node] = []
    value, first = flat.value(result), flat.value(param)
    between: dict[Value, int] = {}
    while value is not first:
        node = value.node
        if node is None or not is_update(node):
            return True
        if updates:
            between[value] = len(updates)  # how many updates follow
        updates.append(node)
        value = flat.value(node.operands[0])
    for node in flat.nodes:
        for at, operand in enumerate(node.operands):
            later = between.get(flat.value(operand))
            if later is None or (at == 0 and node in updates):
                continue
            if "size" not in node.attrs or "start" not in node.attrs or len(node.operands) != 1:
                return True
            if not all(_are_apart(node, update) for update in updates[:later]):
                return True
    return False


class _Flat:
    """The nodes of a graph with those inside of fused ones, and one value for each content."""

    def __init__(self, graph: Graph) -> None:
        self.nodes: list[Node] = []
        self._same: dict[Value, Value] = {}
        for node in graph.nodes:
            if node.op.name != "fused":
                self.nodes.append(node)
                continue
            (inner,) = node.regions
            self.nodes.extend(inner.nodes)
            self._same.update(zip(inner.params, node.operands))
            self._same.update(zip(node.results, inner.results))

    def value(self, value: Value) -> Value:
        """The value that stands for all that are this one."""
        while value in self._same:
            value = self._same[value]
        return value


def _are_apart(read: Node, update: Node) -> bool:
    """Whether a slice and an update are known to have no element in common."""
    part = update.operands[1].tensor.shape
    pairs = zip(_spans(read, read.attrs["size"]), _spans(update, part))
    return any(_is_before(a, b) or _is_before(b, a) for a, b in pairs)


def _spans(node: Node, sizes: Any) -> Iterator[tuple[Any, Any]]:
    """The least and the largest place along each axis."""
    for start, size, step in zip(node.attrs["start"], sizes, node.attrs["step"]):
        last = start + (size - 1) * step
        yield (start, last) if step > 0 else (last, start)


def _is_before(a: tuple[Any, Any], b: tuple[Any, Any]) -> bool:
    distance = b[0] - a[1]
    return isinstance(distance, int) and distance > 0
