"""Split a placed graph by device.

Each edge that leaves a device becomes one `send` there and one `recv` on the device it goes to:
one pair for each value and destination, however many users it has. Effects that wait for effects
elsewhere get a token carried the same way, as a value of one element.

Invariants: no edge of a part crosses devices; parts keep the names of the whole graph, so a
transfer's key is the value's name and its destination.
Not here: choosing devices (place.py), pairing at run time (runtime/transport.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ..ir.builder import Builder
from ..ir.graph import Graph, Node, Value
from ..ops.definition import Structure
from ..records import dataclass
from ..types import TensorType


@dataclass(slots=True)
class Part:
    """One device's share. outputs: positions of its results among the whole graph's."""

    device: str
    graph: Graph
    params: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(slots=True)
class _Share:
    builder: Builder
    values: dict[Value, Value] = field(default_factory=dict)
    params: list[int] = field(default_factory=list)
    sent: set[tuple[Value, str]] = field(default_factory=set)


def partition(graph: Graph, home: str) -> tuple[Part, ...]:
    """The parts of a placed graph; results and arguments live on `home`."""
    split = _Splitter(graph, home)
    for node in graph.nodes:
        split.add(node)
    return split.finish()


class _Splitter:
    def __init__(self, graph: Graph, home: str) -> None:
        self.graph = graph
        self.home = home
        self.shares: dict[str, _Share] = {}
        self.positions = {param: i for i, param in enumerate(graph.params)}

    def share(self, device: str) -> _Share:
        """The share of a device, made when first needed."""
        found = self.shares.get(device)
        if found is None:
            found = self.shares[device] = _Share(Builder(f"{self.graph.name}"))
            found.builder.hints = dict(self.graph.hints)
        return found

    def add(self, node: Node) -> None:
        """Put a node into its device's share, with transfers for what comes from elsewhere."""
        assert node.device is not None
        share = self.share(node.device)
        if node.variable is not None:
            variable = self.graph.variables[node.variable]
            share.builder.variable(variable.name, variable.type, variable.device)
        share.builder.location = node.location  # also of the transfers
        operands = [self.at(value, node.device) for value in node.operands]
        after = [self.at(value, node.device) for value in node.after]
        made = share.builder.again(node, operands, after=after, regions=node.regions)
        share.values.update(zip(node.results, made, strict=True))

    def at(self, value: Value, device: str) -> Value:
        """The value as seen on `device`."""
        share = self.share(device)
        found = share.values.get(value)
        if found is not None:
            return found
        if value.node is not None and value.node.op.structure is Structure.CREATION:
            share.builder.location = value.node.location
            return self._made(value.node, share, value)
        source = self.home if value.node is None else value.node.device
        assert source is not None
        if source == device:
            share.params.append(self.positions[value])
            found = share.builder.param(value.name, value.type)
        else:
            found = self._transferred(value, source, device)
        share.values[value] = found
        return found

    def _made(self, node: Node, share: _Share, value: Value) -> Value:
        """A constant or the like: cheaper to make again than to send."""
        made = share.builder.emit(node.op, (), node.attrs, name=value.name)
        assert isinstance(made, Value)
        share.values[value] = made
        return made

    def _transferred(self, value: Value, source: str, device: str) -> Value:
        key = f"{value.name} -> {device}"
        origin = self.share(source).builder
        here = self.at(value, source)
        after: tuple[Value, ...] = ()
        if not isinstance(value.type, TensorType):
            here, after = origin.constant(True), (here,)
        origin.emit("send", (here,), {"key": key, "to": device}, after=after)
        sent = here.tensor
        received = self.share(device).builder.emit(
            "recv",
            (),
            {"dtype": sent.dtype, "shape": sent.shape, "key": key, "source": source},
            name=value.name,
        )
        assert isinstance(received, Value)
        return received

    def finish(self) -> tuple[Part, ...]:
        """Close all shares; results are fetched to the home device."""
        fetched: list[tuple[int, Value]] = []
        for position, value in enumerate(self.graph.results):
            if isinstance(value.type, TensorType):
                fetched.append((position, self.at(value, self.home)))
        parts = []
        for device, share in self.shares.items():
            mine = fetched if device == self.home else []
            graph = share.builder.finish([value for _, value in mine])
            positions = tuple(position for position, _ in mine)
            parts.append(Part(device, graph, tuple(share.params), positions))
        return tuple(parts)


def transfers(parts: tuple[Part, ...]) -> Mapping[str, tuple[str, str]]:
    """Every transfer's key with its source and destination."""
    return {
        node.attrs["key"]: (part.device, node.attrs["to"])
        for part in parts
        for node in part.graph.nodes
        if node.op.name == "send"
    }
