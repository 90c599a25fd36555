"""Is a graph well-formed? All rules, all complaints at once, and a ticket for code generation.

Not checked: that a region of a symbolic array lies inside it (the trace decides that from
guards), that a device exists (placement), that hints are sizes anybody passes.

Invariants: a node found right is marked and its own rules are not asked again; the rules that
speak about a graph as a whole are linear and always asked.
Not here: the types of ops (their signatures), repairing anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..dims import Dim, symbols_of
from ..errors import BrokenGraph, GraphError, error
from ..ops.definition import SignatureError, Structure
from ..records import dataclass
from ..types import DType, TensorType, TokenType, Type
from .graph import Graph, Node, Value, Variable
from .inference import result_types
from .order import shown_by
from .printer import print_graph

RULES: Mapping[str, str] = {
    # one node
    "V101": "the operands and attributes are what the op's signature takes",
    "V102": "the result types are what the signature gives",
    "V103": "attributes are sorted, immutable and of the known kinds",
    "V104": "only control ops have regions",
    "V105": "a node and its results refer to each other",
    "V106": "a state op names a variable of the graph, no other op names one",
    # names and order
    "V201": "a value is defined before it is used, in the same graph or region",
    "V202": "a name belongs to one value; a region of control flow has names of its own",
    "V203": "a token waited for, or value read before, comes earlier",
    "V204": "a result of the graph is defined; tensors come before tokens",
    "V205": "a parameter is an array and no node's result",
    "V206": "operands of a fused node are distinct",
    # effects
    "V301": "a read waits for the last write of its variable",
    "V302": "a write waits for the last write of its variable, if nothing has read it since",
    "V303": "a write waits for each read since the last write",
    "V304": "a print, or control flow with effects inside, waits for the one before it",
    "V305": "a region touches no variables; outside control flow it has no effects either",
    # sizes
    "V401": "each symbol of a size stands in the shape of a parameter",
    "V402": "a variable's shape has no symbols",
}


@dataclass(frozen=True, slots=True)
class Complaint:
    """What is wrong, by which rule, at which node (None: at the graph's first line)."""

    code: str
    text: str
    node: Node | None = None


class Verified:
    """A graph that has been found well-formed; only `verify` makes these."""

    __slots__ = ("graph",)

    def __init__(self, graph: Graph, found: Sequence[Complaint]) -> None:
        if found:
            raise ValueError("not well-formed")
        self.graph = graph


def verify(graph: Graph, made_by: str | None = None) -> Verified:
    """The ticket. Raises GraphError, or BrokenGraph naming the pass `made_by`."""
    found = complaints(graph)
    if found:
        raise _refusal(graph, found, made_by)
    return Verified(graph, found)


def complaints(graph: Graph) -> list[Complaint]:
    """Everything that is wrong with `graph`."""
    return list(_Verifier(graph).complaints())


def _refusal(
    graph: Graph, found: Sequence[Complaint], made_by: str | None
) -> GraphError | BrokenGraph:
    notes: dict[Node | None, list[str]] = {}
    for complaint in found:
        notes.setdefault(complaint.node, []).append(f"error[{complaint.code}]: {complaint.text}")
    first = found[0]
    place = first.node.location if first.node is not None else None
    number = "1 error" if len(found) == 1 else f"{len(found)} errors"
    who = f"after the pass {made_by}, " if made_by else ""
    made = error(
        "TM303" if made_by else "TM302",
        f"{who}@{graph.name} is not well-formed: {number}, first {first.code}: {first.text}",
        place=place,
        detail=print_graph(graph, notes=notes),
    )
    assert isinstance(made, GraphError | BrokenGraph)
    return made


class _Verifier:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._symbols = symbols_of(
            tuple(s for p in graph.params if isinstance(p.type, TensorType) for s in p.type.shape)
        )
        self._names: set[str] = set()
        self._judged: dict[object, tuple[Type, ...]] = {}  # by op and operand types
        self._sized: set[int] = set()  # types found to mention known symbols only

    def complaints(self) -> Iterable[Complaint]:
        for variable in self._graph.variables.values():
            if not variable.type.is_static:
                yield Complaint("V402", f"@{variable.name} is {variable.type}")
        for param in self._graph.params:
            yield from self._name(param, None)
            if param.node is not None or not isinstance(param.type, TensorType):
                yield Complaint("V205", f"%{param.name} is not a plain array parameter")
        yield from self._body(self._graph, None)

    def _body(self, graph: Graph, inside: Structure | None) -> Iterable[Complaint]:
        """A graph, or a region of a node of the structure `inside`."""
        known = set(graph.params)
        yield from _effects(graph.nodes)
        for node in graph.nodes:
            for value in node.operands:
                if value not in known:
                    yield Complaint("V201", f"%{value.name} is not defined here", node)
            for value in node.after:
                if value not in known:
                    yield Complaint("V203", f"%{value.name} does not come earlier", node)
            for result in node.results:
                yield from self._name(result, node)
            if not node.verified:
                wrong = list(self._node(node))
                yield from wrong
                node.verified = not wrong
            if node.op.structure in _OUTSIDE.get(inside, ()):
                yield Complaint("V305", f"{node.op.name} inside a region", node)
            for region in node.regions:
                yield from self._region(node, region)
            known.update(node.results)
        yield from self._results(graph, known)

    def _region(self, node: Node, region: Graph) -> Iterable[Complaint]:
        names = self._names
        if node.op.structure is Structure.FLOW:
            self._names = set()
            for param in region.params:
                yield from self._name(param, node)
                if param.node is not None or not isinstance(param.type, TensorType):
                    yield Complaint("V205", f"%{param.name} is not a plain parameter", node)
        yield from self._body(region, node.op.structure)
        self._names = names

    def _results(self, graph: Graph, known: set[Value]) -> Iterable[Complaint]:
        tokens = False
        for result in graph.results:
            if result not in known:
                yield Complaint("V204", f"%{result.name} is returned, not defined")
            if isinstance(result.type, TokenType):
                tokens = True
            elif tokens:
                yield Complaint("V204", f"%{result.name} is returned after a token")

    def _name(self, value: Value, node: Node | None) -> Iterable[Complaint]:
        if value.name in self._names:
            yield Complaint("V202", f"%{value.name} is defined twice", node)
        self._names.add(value.name)

    # -- one node

    def _node(self, node: Node) -> Iterable[Complaint]:
        for index, result in enumerate(node.results):
            if result.node is not node or result.index != index:
                yield Complaint("V105", f"%{result.name} belongs to another node", node)
        yield from self._attrs(node)
        yield from self._shape(node)
        variable, wrong = self._variable(node)
        yield from wrong
        if not wrong:
            yield from self._types(node, variable)
        yield from self._sizes(node)

    def _attrs(self, node: Node) -> Iterable[Complaint]:
        if list(node.attrs) != sorted(node.attrs):
            yield Complaint("V103", f"attributes {', '.join(node.attrs)} are not sorted", node)
        for key, value in node.attrs.items():
            if not _is_attribute(value):
                yield Complaint("V103", f"attribute {key} is {value!r}", node)

    def _shape(self, node: Node) -> Iterable[Complaint]:
        fused = node.op.structure is Structure.CONTROL
        if (fused or node.op.structure is Structure.FLOW) != bool(node.regions):
            yield Complaint("V104", f"{node.op.name} has {len(node.regions)} regions", node)
        if fused and len(set(node.operands)) != len(node.operands):
            yield Complaint("V206", "an operand is named twice", node)

    def _variable(self, node: Node) -> tuple[Variable | None, list[Complaint]]:
        if (node.op.structure is Structure.STATE) != (node.variable is not None):
            text = "names a variable" if node.variable is not None else "names no variable"
            return None, [Complaint("V106", f"{node.op.name} {text}", node)]
        if node.variable is None:
            return None, []
        found = self._graph.variables.get(node.variable)
        if found is None:
            return None, [Complaint("V106", f"@{node.variable} is not a variable", node)]
        return found, []

    def _types(self, node: Node, variable: Variable | None) -> Iterable[Complaint]:
        plain = not (node.attrs or node.regions or variable)
        key = (node.op, *[v.type for v in node.operands]) if plain else None
        types = self._judged.get(key) if plain else None
        if types is None:
            try:
                types = result_types(node.op, node.operands, node.attrs, variable, node.regions)
            except SignatureError as problem:
                yield Complaint("V101", f"{node.op.name} {problem.summary}", node)
                return
            self._judged[key] = types
        got = tuple([r.type for r in node.results])
        if got != types:
            expected = ", ".join(map(str, types))
            yield Complaint("V102", f"is {', '.join(map(str, got))}, expected {expected}", node)

    def _sizes(self, node: Node) -> Iterable[Complaint]:
        for result in node.results:
            if not isinstance(result.type, TensorType) or result.type.is_static:
                continue
            if id(result.type) in self._sized:
                continue
            unknown = symbols_of(result.type.shape) - self._symbols
            if unknown:
                names = ", ".join(sorted(unknown))
                yield Complaint("V401", f"no parameter has a size {names}", node)
            else:
                self._sized.add(id(result.type))


def _effects(nodes: Sequence[Node]) -> Iterable[Complaint]:
    """The rules of program order, stated on their own: the builder is not asked."""
    reads: dict[str, list[Value]] = {}
    writes: dict[str, Value] = {}
    shown: Value | None = None
    for node in nodes:
        if not node.results:
            continue
        result, name = node.results[0], node.variable
        if name is not None and isinstance(result.type, TokenType):
            since = reads.pop(name, [])
            for value in since:
                if value not in node.after:
                    text = f"must come after %{value.name}, which reads @{name}"
                    yield Complaint("V303", text, node)
            if not since and name in writes and writes[name] not in node.after:
                text = f"must come after %{writes[name].name}, which writes @{name}"
                yield Complaint("V302", text, node)
            writes[name] = result
        elif name is not None:
            if name in writes and writes[name] not in node.after:
                text = f"must come after %{writes[name].name}, which writes @{name}"
                yield Complaint("V301", text, node)
            reads.setdefault(name, []).append(result)
        elif (token := shown_by(node)) is not None:
            if shown is not None and shown not in node.after:
                yield Complaint("V304", f"must come after %{shown.name}", node)
            shown = token


# What may not stand in a region of a node of this structure.
_OUTSIDE: Mapping[Structure | None, tuple[Structure, ...]] = {
    Structure.CONTROL: (Structure.STATE, Structure.EFFECT, Structure.TRANSFER, Structure.FLOW),
    Structure.FLOW: (Structure.STATE, Structure.TRANSFER),
}


def _is_attribute(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_attribute, value))
    if isinstance(value, np.ndarray):
        return not value.flags.writeable
    return isinstance(value, bool | int | float | str | Dim | DType)
