"""A loop around numbers is one launch: the step of a loop whose kernel holds all that is in it.

What makes the loop's bounds and first numbers goes into the kernel, too, so that it knows them.

    %n = slice %iota ...
    %e = for 0, %n, %d ... {     ->     launch for_gather_scatter(d)
      ...
    }

Invariants: an array that trips write into has a parameter of its own, so it may also be read as it
was before the loop.
Not here: which loops are like that and their kernels (kernel/nest.py), other loops
(assemble_flow.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from .assemble_region import Scope
from .ir.graph import Node, Value
from .kernel.halves import hinted
from .kernel.lowering_values import Unlowered
from .kernel.nest_body import FORMS, LOOPS, Body, all_steps, body_of, is_loop
from .kernel.region import Region, all_nodes
from .ops.definition import Structure
from .types import TensorType

MOST = 400  # steps of a loop; compiling larger ones takes longer than compiling row by row
MOST_FOLDED = 4096  # elements that a step folds, as far as the sizes of the first call tell
_AHEAD = 16  # nodes that make an operand; more are a kernel of their own
_NUMBERS = (Structure.ELEMENTWISE, Structure.MOVEMENT, Structure.CREATION, Structure.CONTROL)


def nest_step(assembly: Scope, node: Node) -> bool:
    """Append the launch of a loop; False where it is not one kernel."""
    body = _body(node, assembly.kernels.hints)
    if body is None:
        return False
    form, entry = FORMS[node.op], _Entry()
    kept: dict[Value, Value] = {}
    changed = {at - form.own + form.ahead for at in body.changed}
    operands = [
        entry.apart(value) if at in changed else entry.shared(value)
        for at, value in enumerate(node.operands)
    ]
    copy = Node(
        node.op, tuple(operands), node.attrs, node.location, node.device, regions=node.regions
    )
    copy.results = tuple([Value(v.name, v.type, copy, v.index) for v in node.results])
    results: list[Value] = []
    targets: list[Value] = []
    for at, (result, own) in enumerate(zip(node.results, copy.results), form.ahead):
        if not isinstance(result.type, TensorType):
            continue
        carried = at - form.ahead < node.attrs["carried"]
        if result.tensor.shape and carried and at not in changed:
            kept[result] = node.operands[at]
        elif (result.tensor.shape and carried) or result in assembly.last:
            results.append(own)
            targets.append(result)
    sources = [assembly.cells[value] for value in entry.operands]
    strided = frozenset([at for at, cell in enumerate(sources) if cell.note.strided])
    region = Region(tuple(entry.params), (*entry.nodes, copy), tuple(results), strided)
    try:
        assembly.kernels.ready(region)
    except Unlowered:
        return False
    for result, operand in kept.items():
        assembly.cells[result] = assembly.contiguous(operand)
    assembly.cells.update(zip(targets, assembly.run(region, node, sources)))
    return True


def _body(node: Node, hints: Mapping[str, int]) -> Body | None:
    """The body of a loop that is one kernel."""
    if node.op not in LOOPS or any(_is_long(n, hints) for n in all_nodes(node.regions[0].nodes)):
        return None
    body = body_of(node.regions[0])
    if body is None or not is_loop(node, body):
        return None
    return body if sum(1 for _ in all_steps(body)) <= MOST else None


def _is_long(node: Node, hints: Mapping[str, int]) -> bool:
    """Whether it folds so many elements that several threads should."""
    if node.op.structure not in (Structure.REDUCTION, Structure.CONTRACTION):
        return False
    sizes = [size for v in node.operands for size in v.tensor.shape]
    return any(hinted(size, hints) is None for size in sizes) or any(
        prod(hinted(size, hints) or 0 for size in v.tensor.shape) > MOST_FOLDED
        for v in node.operands
    )


class _Entry:
    """What stands before the loop in its kernel. operands: the value that each parameter is."""

    def __init__(self) -> None:
        self.params: list[Value] = []
        self.operands: list[Value] = []
        self.nodes: list[Node] = []
        self._known: dict[Value, Value] = {}

    def apart(self, value: Value) -> Value:
        """A parameter for one use of a value."""
        self.operands.append(value)
        self.params.append(Value(value.name, value.type))
        return self.params[-1]

    def shared(self, value: Value) -> Value:
        """A parameter for all uses of a value, or the value made again from few others."""
        if value not in self._known:
            if not value.tensor.shape:
                for node in _making(value):
                    self._copy(node)
            if value not in self._known:
                self._known[value] = self.apart(value)
        return self._known[value]

    def _copy(self, node: Node) -> None:
        if node.results[0] in self._known:
            return
        operands = tuple([self.shared(v) for v in node.operands])
        made = Node(node.op, operands, node.attrs, node.location, node.device, regions=node.regions)
        made.results = tuple([Value(v.name, v.type, made, v.index) for v in node.results])
        self._known.update(zip(node.results, made.results))
        self.nodes.append(made)


def _making(value: Value) -> list[Node]:
    """The nodes that make a number from other numbers, in order; none where they are many or
    something else."""
    found: dict[Node, None] = {}
    pending = [value]
    while pending:
        at = pending.pop()
        node = at.node
        if node is None or not _is_plain(node):
            if at.tensor.shape:
                return []
            continue
        found.pop(node, None)
        found[node] = None  # behind those that use it
        pending.extend(node.operands)
        if len(found) > _AHEAD:
            return []
    return list(reversed(found))


def _is_plain(node: Node) -> bool:
    nodes = [node, *[inner for region in node.regions for inner in region.nodes]]
    return not node.after and all(n.op.structure in _NUMBERS for n in nodes)
