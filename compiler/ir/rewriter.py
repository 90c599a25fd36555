"""Rebuilding a graph in one sweep from operands to users.

A rule sees a node with its new operands, a candidate that is not in the graph yet, and answers
with the value that replaces its result (existing or just made with the builder), with another
candidate, or with None. What no rule touches is shared with the old graph.

Invariants: the old graph is not changed; a node made in place of another keeps its name and
location; a graph in which nothing changed is returned as it is.
Not here: the rules (passes), canonical forms (the builder applies them to whatever is remade).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..ops.definition import OpDef, Structure
from ..records import replace
from .builder import Builder
from .graph import Graph, Node, Value
from .order import shown_by

Rule = Callable[[Builder, Node], Value | Node | None]
_MOST = 64  # steps at one node; far above any chain of rules, so that a loop shows


class Rewriter:
    """One sweep over one graph. `values` maps values of the old graph that changed."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.builder = Builder(graph.name)
        self.builder.begin_like(graph)
        self.values: dict[Value, Value] = {}
        self.changed = False
        self._gone: set[Value] = set()

    def keep(self, node: Node, rules: Sequence[Rule] = ()) -> None:
        """Put `node`, on its new operands and as `rules` leave it, into the new graph."""
        operands = tuple([self.values.get(v, v) for v in node.operands]) if self.values else None
        same = operands is None or operands == node.operands
        seen = node if same else _candidate(node, node.op, operands or (), node.attrs)
        if not same and node.op.structure is Structure.CONTROL:
            seen = _named_once(seen)
        if rules:
            made = self._settle(node, seen, rules)
            if isinstance(made, Value):
                self.replace(node, (made,))
                return
            seen = made
        if seen is node and not self._waits_changed(node):
            self.builder.adopt(node)
        else:
            self._remake(node, seen)

    def keep_with(self, node: Node, regions: tuple[Graph, ...]) -> None:
        """Put `node`, on its new operands and with other regions, into the new graph."""
        operands = tuple([self.values.get(v, v) for v in node.operands])
        seen = Node(node.op, operands, node.attrs, node.location, regions=regions)
        seen.results = node.results
        self._remake(node, seen)

    def replace(self, node: Node, values: Sequence[Value]) -> None:
        """Let `values` stand for the results of `node`."""
        self.changed = True
        for old, new in zip(node.results, values):
            self.values[old] = new

    def drop(self, node: Node) -> None:
        """Leave `node` out; what waits for it waits for what it waited for."""
        self.changed = True
        self._gone.update(node.results)
        for result in node.results:
            self.builder.names.release(result.name)

    def finish(self) -> Graph:
        """The new graph, or the old one if nothing changed."""
        if not self.changed:
            return self.graph
        results = tuple([self.values.get(v, v) for v in self.graph.results])
        return self.builder.finish(results, ())

    def _settle(self, node: Node, seen: Node, rules: Sequence[Rule]) -> Value | Node:
        """What the rules make of `seen`; what they make instead may have the node's name."""
        name = node.results[0].name
        self._begin(node)
        self.builder.names.release(name)
        self.builder.hint = name
        for _ in range(_MOST):
            answers = (rule(self.builder, seen) for rule in rules)
            made = next((answer for answer in answers if answer is not None), None)
            if made is None:
                self.builder.names.take(name)
                return seen
            if isinstance(made, Value):
                return made
            seen = made
        raise RuntimeError(f"the rules never finish with {node!r}")

    def _begin(self, node: Node) -> None:
        self.builder.hint = None
        self.builder.location = node.location
        self.builder.device = node.device

    def _remake(self, node: Node, seen: Node) -> None:
        self._begin(node)
        for result in node.results:
            self.builder.names.release(result.name)
        made = self.builder.emit_all(
            seen.op,
            seen.operands,
            seen.attrs,
            name=[result.name for result in node.results],
            variable=node.variable,
            after=self._waits(node),
            device=node.device,
            regions=seen.regions,
        )
        self.replace(node, made)

    def _waits_changed(self, node: Node) -> bool:
        return bool(node.after) and any(v in self.values or v in self._gone for v in node.after)

    def _waits(self, node: Node) -> list[Value]:
        """What `node` waits for besides the order of state and prints, which the builder adds."""
        found = []
        for value in node.after:
            earlier = value.node
            ordered = earlier is not None and (
                (node.variable is not None and earlier.variable == node.variable)
                or (shown_by(node) is not None and shown_by(earlier) is not None)
            )
            if not ordered and value not in self._gone:
                found.append(self.values.get(value, value))
        return found


def rewrite(graph: Graph, rules: Sequence[Rule]) -> Graph:
    """`graph` with `rules` applied at every node, operands first."""
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        rewriter.keep(node, rules if len(node.results) == 1 else ())
    return rewriter.finish()


def _candidate(
    node: Node, op: OpDef, operands: tuple[Value, ...], attrs: Mapping[str, Any]
) -> Node:
    """A node like `node` that is in no graph: its results are those of `node`."""
    made = Node(
        op, operands, attrs, node.location, node.device, node.after, node.variable, node.regions
    )
    made.results = node.results
    return made


def _named_once(node: Node) -> Node:
    """The node without operands that are the same as earlier ones, nor their parameters."""
    regions = tuple([_without_twins(region, node.operands) for region in node.regions])
    operands = tuple(dict.fromkeys(node.operands))
    made = Node(
        node.op, operands, node.attrs, node.location, node.device, node.after, node.variable,
        regions,
    )  # fmt: skip
    made.results = node.results
    return made


def _without_twins(region: Graph, operands: Sequence[Value]) -> Graph:
    first: dict[Value, Value] = {}
    inner = Rewriter(region)
    for operand, param in zip(operands, region.params):
        if first.setdefault(operand, param) is not param:
            inner.values[param] = first[operand]
    if not inner.values:
        return region
    inner.changed = True
    for node in region.nodes:
        inner.keep(node)
    return replace(inner.finish(), params=tuple(first.values()))


def candidate(node: Node, *operands: Value) -> Node:
    """The same op on other operands, for rules."""
    return _candidate(node, node.op, operands, node.attrs)
