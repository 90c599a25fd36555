"""Choose a device for every node.

Nodes that touch one variable share its device: they form a group, found by union-find, whose
constraints must have a device in common. A node without a constraint goes where the largest part
of its operands (in bytes, as far as the hints tell) already is; sources wait for their first user.

Invariants: every node of the result names one device of `devices`; user constraints hold.
Not here: costs of computing (all devices are alike so far), transfers (partition.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..device import DeviceName, feasible
from ..dims import Dim, product
from ..errors import error
from ..ir.graph import Graph, Node, Value
from ..records import dataclass
from ..types import TensorType


@dataclass(frozen=True, slots=True)
class Place:
    """The placement pass. devices: what there is, the default one first."""

    devices: tuple[DeviceName, ...]
    name: str = "place"

    def run(self, graph: Graph) -> Graph:
        """The same graph with a device on every node. Raises ArgError where constraints clash."""
        state = _state_devices(graph, self.devices)
        chosen: dict[Node, DeviceName] = {}
        for node in graph.nodes:
            if node.variable is not None:
                chosen[node] = state[node.variable]
            elif node.device is not None:
                chosen[node] = _one(feasible(node.device, self.devices), node, self.devices)
            elif node.operands:
                chosen[node] = _heaviest(graph, node.operands, chosen) or self.devices[0]
        _place_sources(graph, chosen, self.devices[0])
        return _with_devices(graph, chosen)


def _state_devices(graph: Graph, devices: Sequence[DeviceName]) -> dict[str, DeviceName]:
    """One device per variable: of its own constraint and of all nodes that touch it."""
    admitted = {
        name: set(feasible(variable.device, devices)) for name, variable in graph.variables.items()
    }
    for node in graph.nodes:
        if node.variable is None or node.device is None:
            continue
        wanted = set(feasible(node.device, devices))
        both = admitted[node.variable] & wanted
        if both:
            admitted[node.variable] = both
        elif not wanted:
            raise _impossible(node, devices)
    for name, options in admitted.items():
        if not options:
            raise error(
                "TM203",
                f"variable {name!r} is constrained to {graph.variables[name].device!r}",
                detail=f"there are the devices {', '.join(map(str, devices))}",
            )
    return {name: min(options, key=devices.index) for name, options in admitted.items()}


def _heaviest(
    graph: Graph, operands: Iterable[Value], chosen: dict[Node, DeviceName]
) -> DeviceName | None:
    """The device that holds most bytes of the operands; None if none is placed yet."""
    weight: dict[DeviceName, int] = {}
    for value in operands:
        if value.node in chosen:
            device = chosen[value.node]
            weight[device] = weight.get(device, 0) + 1 + _bytes(graph, value)
    return max(weight, key=lambda device: weight[device]) if weight else None


def _bytes(graph: Graph, value: Value) -> int:
    if not isinstance(value.type, TensorType):
        return 0
    elements = product(value.type.shape)
    if isinstance(elements, Dim):
        elements = elements.evaluate(dict.fromkeys(elements.symbols(), 64) | dict(graph.hints))
    return elements * value.type.dtype.itemsize


def _place_sources(graph: Graph, chosen: dict[Node, DeviceName], default: DeviceName) -> None:
    """Nodes without operands go to the device of their first user."""
    for node in reversed(graph.nodes):
        for value in node.inputs():
            if value.node is not None and value.node not in chosen:
                chosen[value.node] = chosen.get(node, default)
        chosen.setdefault(node, default)


def _with_devices(graph: Graph, chosen: dict[Node, DeviceName]) -> Graph:
    """A copy whose nodes name their devices."""
    renamed: dict[Value, Value] = {}
    nodes = []
    for node in graph.nodes:
        copy = Node(
            node.op,
            tuple(renamed.get(value, value) for value in node.operands),
            node.attrs,
            node.location,
            str(chosen[node]),
            tuple(renamed.get(value, value) for value in node.after),
            node.variable,
            node.regions,
        )
        copy.results = tuple(Value(r.name, r.type, copy, r.index) for r in node.results)
        renamed.update(zip(node.results, copy.results, strict=True))
        nodes.append(copy)
    results = tuple(renamed.get(value, value) for value in graph.results)
    return Graph(graph.name, graph.params, tuple(nodes), results, graph.variables, graph.hints)


def _one(options: Sequence[DeviceName], node: Node, devices: Sequence[DeviceName]) -> DeviceName:
    if not options:
        raise _impossible(node, devices)
    return options[0]


def _impossible(node: Node, devices: Sequence[DeviceName]) -> Exception:
    return error(
        "TM203",
        f"{node.op.name} is constrained to {node.device!r}, and no device matches",
        place=node.location,
        detail=f"there are the devices {', '.join(map(str, devices))}",
        hint="tm.devices(cpu=2) makes further CPU devices",
    )
