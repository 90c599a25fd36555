"""Bodies of control flow: a function traced into a region of the graph being built.

The body is traced like an inner function, by a trace of its own whose parameters are what the
loop hands it. Values of enclosing traces, and arrays from outside, become further parameters as
they are met; `captured` are the values around it that they stand for. Variables are cells of the
trace: what a body reads comes from outside, what it assigns stays with it until `states` are
read at its end.

Invariants: a region that is traced and not yet in the graph hears of sizes that turn out equal
as long as its `Regions` are open.
Not here: which parameters loops have, what their results must be (control/traced.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from tracemill.compiler.errors import error
from tracemill.compiler.ir.graph import Graph, Value
from tracemill.compiler.types import TensorType

from .kinship import spent_outside
from .number import TracedNumber
from .state import Trace
from .tensor import fresh, result


@dataclass(frozen=True, slots=True)
class Handed:
    """What a body gets. kind: ``scalar``, ``array``, or a Python class: a weak number."""

    name: str
    tensor: TensorType
    kind: str | type[Any] = "scalar"

    def wrapped(self, trace: Trace, value: Value) -> Any:
        """What user code sees."""
        if isinstance(self.kind, type):
            return TracedNumber(trace, value, self.kind)
        return fresh(trace, value) if self.kind == "array" else result(trace, value)


@dataclass(frozen=True, slots=True)
class Region:
    """A traced body. params: what it is handed, then the variables of `states` in their order,
    then one for each of `captured`. assigned: the variables it writes, by name."""

    graph: Graph
    given: int
    captured: tuple[Value, ...]
    assigned: dict[str, Any]


# Runs the user's body on what it is handed; gives the values it yields.
Body = Callable[[list[Any], Trace], Sequence[Value]]


class Regions:
    """Traces bodies for one node of `outer`.

    one_device: whether the node runs on one; not where bodies become nodes of the trace around.
    """

    def __init__(self, outer: Trace, one_device: bool = True) -> None:
        self.outer = outer
        self.one_device = one_device
        self._traces: list[Trace] = []

    def __enter__(self) -> Regions:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: object, trace: TracebackType | None
    ) -> None:
        for inner in self._traces:
            self.outer.sizes.listeners.remove(inner.replace)

    def trace(
        self, name: str, handed: Sequence[Handed], body: Body, variables: Sequence[Any] = ()
    ) -> Region:
        """Run `body`. variables: those whose content is a parameter and, in the end, a result."""
        opened = OpenRegion(self, name, handed, variables)
        results = opened.run(lambda: body(opened.items, opened.trace))
        return opened.finish(results)

    def add(self, inner: Trace) -> None:
        """Let a trace hear of sizes until the node is made."""
        self._traces.append(inner)


class OpenRegion:
    """A region that code can be added to until it is finished.

    items: what its body is handed. states: after `run`, what it holds in Variables and memory.
    """

    def __init__(
        self,
        regions: Regions,
        name: str,
        handed: Sequence[Handed] = (),
        variables: Sequence[Any] = (),
    ) -> None:
        outer = regions.outer
        self.variables = variables
        self._one_device = regions.one_device
        self.trace = inner = Trace(name, outer.dispatch, {})
        inner.become_region()
        regions.add(inner)
        known = outer.sizes.replaced  # since the types were found, a symbol may have been removed
        values = [
            inner.builder.param(item.name, item.tensor.substitute(known) if known else item.tensor)
            for item in handed
        ]
        assert inner.states is not None
        for variable in variables:
            inner.states[variable.name] = inner.builder.param(variable.name, variable.type)
        self.items = [item.wrapped(inner, v) for item, v in zip(handed, values)]
        self._given = len(handed) + len(variables)

    def run(self, block: Callable[[], Any]) -> Any:
        """Trace `block` behind what is there."""
        inner = self.trace
        inner.alive = True
        try:
            with inner:
                return block()
        finally:
            inner.sizes.listeners.append(inner.replace)

    def finish(self, results: Sequence[Value]) -> Region:
        """The region that yields these, and then the content of its variables."""
        inner = self.trace
        assert inner.states is not None
        states = [inner.states[variable.name] for variable in self.variables]
        graph = inner.builder.finish([*results, *states])
        if self._one_device:
            _check_devices(graph)
        assert inner.outer is not None
        inner.outer.spent.update(spent_outside(inner))
        captured = tuple([item.value for item in inner.inputs])
        return Region(graph, self._given, captured, dict(inner.assigned))


def _check_devices(graph: Graph) -> None:
    for node in graph.nodes:
        if node.device is not None:
            raise error(
                "TM260",
                f"{node.op.name} is placed on {node.device!r} inside a loop or branch, which runs "
                "on one device",
                place=node.location,
                hint="write `with tm.device(...)` around the loop or branch",
            )


def with_operands(region: Region, operands: Sequence[Value]) -> Graph:
    """The region with one parameter for each of `operands`, which all it captures are among."""
    graph = region.graph
    known = dict(zip(region.captured, graph.params[region.given :], strict=True))
    taken = {value.name for value in graph.values()}
    params = list(graph.params[: region.given])
    for operand in operands:
        param = known.get(operand)
        if param is None:
            name = operand.name
            while name in taken:
                name += "_"
            taken.add(name)
            param = Value(name, operand.type)
        params.append(param)
    graph.params = tuple(params)
    return graph
