"""What a gradient can flow through: the values that depend smoothly on others.

Through a branch or loop it flows where it does in the regions, and from trip to trip with what a
loop carries.

Invariants: no value that is an integer or bool is reached, nor one behind an op whose gradient is
zero or undefined everywhere (`stop_gradient`).
Not here: the sweep itself (grad.py, flow.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..ir.graph import Graph, Node, Value
from ..ops.definition import Structure
from ..ops.flow import for_
from ..types import TensorType

# What a loop's region is handed and what it makes of that, for the next trip.
Pairs = Sequence[tuple[Value, Value]]


def carries(value: Value) -> bool:
    """Whether a gradient can flow through `value`: a floating or complex tensor."""
    return isinstance(value.type, TensorType) and value.type.dtype.kind in "fc"


def reached(nodes: Sequence[Node], inputs: Iterable[Value]) -> set[Value]:
    """What depends smoothly on the inputs, which are among it."""
    found = {value for value in inputs if carries(value)}
    for node in nodes:
        if any(operand in found for operand in node.operands):
            found.update(result for result in _depending(node, found) if carries(result))
    return found


def between(
    nodes: Sequence[Node], outputs: Iterable[Value], found: set[Value]
) -> tuple[list[Node], set[Value]]:
    """The nodes on paths to the outputs of values that are found to be reached, in order; and
    the values that the outputs so depend on, which they are among."""
    needed = set(outputs)
    path = []
    for node in reversed(nodes):
        if any(result in needed and result in found for result in node.results):
            needed.update(operand for operand in node.operands if operand in found)
            path.append(node)
    path.reverse()
    return path, needed


def tensors_of(values: Iterable[Value]) -> list[Value]:
    """Those that are no tokens."""
    return [value for value in values if isinstance(value.type, TensorType)]


def carried_pairs(node: Node) -> Pairs:
    """Of a loop's region. A `for` hands it the counter first, that of a `while` gives its
    condition first."""
    (region,) = node.regions
    params = region.params[1:] if node.op is for_ else region.params
    results = tensors_of(region.results)
    start = 0 if "stacked" in node.attrs else len(results) - node.attrs["carried"]
    return list(zip(params[: node.attrs["carried"]], results[start:]))


def reached_in_trips(region: Graph, inputs: set[Value], pairs: Pairs) -> set[Value]:
    """What depends on the inputs in a loop's region after any number of trips."""
    while True:
        found = reached(region.nodes, inputs)
        more = {param for param, made in pairs if made in found} - found
        if not more:
            return found
        inputs = inputs | more


def carried_between(
    region: Graph, inputs: set[Value], outputs: Sequence[Value], pairs: Pairs
) -> list[int]:
    """The numbers of the carried values through which a gradient flows, from trip to trip, from
    outputs of a loop's region to inputs of it."""
    found = reached_in_trips(region, inputs, pairs)
    while True:
        needed = between(region.nodes, outputs, found)[1]
        more = [made for param, made in pairs if param in needed and made not in outputs]
        if not more:
            break
        outputs = [*outputs, *more]
    return [at for at, (param, made) in enumerate(pairs) if param in found and made in outputs]


def _depending(node: Node, found: set[Value]) -> Iterable[Value]:
    if node.op.structure is Structure.FLOW:
        return _depending_in_regions(node, found)
    smooth = node.op.gradient is not None or node.op.facts.differentiable
    return node.results if smooth else ()


def _depending_in_regions(node: Node, found: set[Value]) -> set[Value]:
    """Regions are handed the last operands, and the last that they give are the results."""
    pairs = carried_pairs(node) if "carried" in node.attrs else ()
    results = tensors_of(node.results)
    made: set[Value] = set()
    own_rule = node.attrs.get("inputs")
    if own_rule is not None:
        return set(results) if found.intersection(node.operands[:own_rule]) else made
    for region in node.regions:
        handed = zip(reversed(region.params), reversed(node.operands))
        inside = reached_in_trips(region, {p for p, v in handed if v in found}, pairs)
        given = zip(reversed(results), reversed(tensors_of(region.results)))
        made.update(result for result, inner in given if inner in inside)
    return made
