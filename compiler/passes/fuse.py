"""Fusion: nodes that become one kernel move into the region of a `fused` node.

Law: the graph computes the same values, op by op, in the same dtypes; only what is kept in
memory changes.

Invariants: a node alone stays as it is, so a fused graph is a fixed point; a fused value keeps
the name it had, its twin in the region gets a number.
Not here: which nodes go together (fuse_groups.py), kernels.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial

from ..ir.graph import Graph, Location, Node, Value
from ..ir.names import Names
from ..ops.definition import Structure
from ..ops.structural import fused
from ..records import dataclass, replace
from ..types import TensorType
from .base import within
from .fuse_group import Group, Limits
from .fuse_groups import Grouping


@dataclass(frozen=True, slots=True)
class Fuse:
    """Grow fused regions."""

    limits: Limits = field(default_factory=Limits)
    name: str = "fuse"

    def run(self, graph: Graph) -> Graph:
        """The graph with its kernels as `fused` nodes."""
        if not graph.nodes:
            return graph
        graph = within(graph, partial(self._region, graph.hints))
        grouping = Grouping(graph, self.limits)
        groups = [g for g in grouping.groups if g.merged is None]
        if all(len(group.members) == 1 for group in groups):
            return graph
        return _Rewriting(graph, grouping, groups).run()

    def _region(self, hints: Mapping[str, int], region: Graph) -> Graph:
        """A region of control flow; sizes are those of the graph around it."""
        made = self.run(replace(region, hints=hints))
        return region if made.nodes is region.nodes else made


class _Rewriting:
    def __init__(self, graph: Graph, grouping: Grouping, groups: Sequence[Group]) -> None:
        self.graph = graph
        self.position = {node: at for at, node in enumerate(graph.nodes)}
        self.names = Names()
        for value in graph.values():
            self.names.claim(value.name)
        for region in (n.regions[0] for n in graph.nodes if n.op is fused):
            for value in region.values():  # kernels of an earlier run of this pass
                self.names.take(value.name)
        for group in groups:
            group.members.sort(key=self.position.__getitem__)
        self.groups = groups
        self.grouping = grouping
        self.values: dict[Value, Value] = {value: value for value in graph.params}
        self.maker: dict[Value, Group] = {}
        self._seen: set[Node] = set()  # nodes whose names are taken by a region
        self.outside: set[Value] = set(graph.results)
        self.inputs: dict[Group, list[Value]] = {}
        used: set[Value] = set()
        for group in groups:
            used.update(self._boundary(group))
        for node in graph.nodes:  # what nothing uses is for pruning to drop
            self.outside.update([r for r in node.results if r not in used])

    def run(self) -> Graph:
        """All groups in an order in which values come before their uses."""
        graph = self.graph
        nodes = [node for group in self._order() for node in self._emit(group)]
        results = tuple([self.values[value] for value in graph.results])
        return Graph(graph.name, graph.params, tuple(nodes), results, graph.variables, graph.hints)

    def _boundary(self, group: Group) -> Iterable[Value]:
        """Note what the group takes from outside; all that it uses."""
        own: set[Value] = set()
        own_used: set[Value] = set()
        inputs: dict[Value, None] = {}
        for node in group.members:
            for value in node.inputs():
                if value in own:
                    own_used.add(value)
                else:
                    inputs.setdefault(value)
            own.update(node.results)
        self.inputs[group] = list(inputs)
        self.outside.update(inputs)
        return own_used | inputs.keys()

    def _order(self) -> list[Group]:
        """Groups by the place of their last node, as far as their values allow."""
        for group in self.groups:
            alone = len(group.members) == 1
            for node in group.members:
                # A value that several groups compute for themselves comes from the one it
                # started, where it is the only one that nothing else in it uses.
                for value in node.results:
                    if value in self.outside and (alone or self._is_source(group, node)):
                        self.maker[value] = group
        waiting: dict[Group, int] = {}
        users: dict[Group, list[Group]] = {}
        for group in self.groups:
            makers = {self.maker[v] for v in self.inputs[group] if v in self.maker}
            waiting[group] = len(makers)
            for maker in makers:
                users.setdefault(maker, []).append(group)
        number = {group: at for at, group in enumerate(self.groups)}
        place = {group: self.position[group.members[-1]] for group in self.groups}
        ready = [(place[g], number[g]) for g in self.groups if not waiting[g]]
        heapq.heapify(ready)
        ordered: list[Group] = []
        while ready:
            group = self.groups[heapq.heappop(ready)[1]]
            ordered.append(group)
            for user in users.get(group, ()):
                waiting[user] -= 1
                if not waiting[user]:
                    heapq.heappush(ready, (place[user], number[user]))
        if len(ordered) != len(self.groups):
            raise RuntimeError("fusion made a cycle")
        return ordered

    def _is_source(self, group: Group, node: Node) -> bool:
        return self.grouping.homes[node][-1].find() is group

    # -- writing

    def _emit(self, group: Group) -> list[Node]:
        if len(group.members) == 1:
            return [self._alone(group.members[0])]
        outputs = [
            value
            for node in group.members
            for value in node.results
            if value in self.outside and self.maker.get(value) is group
        ]
        outputs.sort(key=lambda value: not isinstance(value.type, TensorType))
        return [self._fused(group, outputs)] if outputs else []

    def _alone(self, node: Node) -> Node:
        operands = tuple([self.values[v] for v in node.operands])
        after = tuple([self.values[v] for v in node.after])
        if operands == node.operands and after == node.after:
            made = node
        else:
            made = Node(
                node.op, operands, node.attrs, node.location, node.device, after,
                node.variable, node.regions,
            )  # fmt: skip
            made.results = tuple([Value(r.name, r.type, made, r.index) for r in node.results])
        self.values.update(zip(node.results, made.results))
        return made

    def _fused(self, group: Group, outputs: list[Value]) -> Node:
        claim = self.names.claim
        inputs = self.inputs[group]
        inner = {value: Value(claim(value.name), value.type) for value in inputs}
        params = tuple(inner.values())
        leaving = set(outputs)
        nodes: list[Node] = []
        for node in group.members:
            copy = Node(
                node.op, tuple([inner[v] for v in node.operands]), node.attrs, node.location,
                node.device,
            )  # fmt: skip
            keep = node.results[0] not in self.outside and node not in self._seen
            self._seen.add(node)
            copy.results = tuple(
                [
                    Value(r.name if keep and r not in leaving else claim(r.name), r.type, copy, at)
                    for at, r in enumerate(node.results)
                ]
            )
            inner.update(zip(node.results, copy.results))
            nodes.append(copy)
        region = Graph("region", params, tuple(nodes), tuple([inner[v] for v in outputs]))
        operands = tuple([self.values[v] for v in inputs])
        made = Node(fused, operands, {}, _location(group), group.device, (), None, (region,))
        made.results = tuple([Value(v.name, v.type, made, at) for at, v in enumerate(outputs)])
        self.values.update(zip(outputs, made.results))
        return made


def _location(group: Group) -> Location | None:
    loud = [n for n in group.members if n.op.structure is not Structure.CREATION]
    return (loud or group.members)[-1].location
