"""What one kernel is made from, and what lowering says about the kernel it made.

Invariants: immutable. A region reads its parameters only; its results are tensors.
Not here: which nodes make a region (passes/fuse.py), the lowering itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..dims import Size
from ..ir.graph import Node, Value
from ..ops.definition import Structure
from ..records import dataclass
from ..types import TensorType
from .kernel import Kernel


@dataclass(frozen=True, slots=True)
class Region:
    """Nodes that become one kernel. `params` stand for the operands, in order.

    strided: positions of parameters that come with byte strides; strided_results: all results
    go to memory with byte strides.
    """

    params: tuple[Value, ...]
    nodes: tuple[Node, ...]
    results: tuple[Value, ...]
    strided: frozenset[int] = frozenset()
    strided_results: bool = False


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel and how its parameters stand for the region's operands and results.

    inputs: the region's parameter behind each ``in`` parameter of the kernel.
    outputs: the region's result behind each parameter that follows.
    bases: per output, the region's parameter whose content the output's memory must hold
    before the launch (an update in place), None for memory that is only written.
    safe: pairs (input, output), counted as above, that may be one memory.
    bound: sizes of the kernel's dims that are no symbols of the region.
    """

    kernel: Kernel
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    bases: tuple[int | None, ...]
    safe: frozenset[tuple[int, int]]
    bound: Mapping[str, Size]


def region_of(node: Node, strided: frozenset[int] = frozenset()) -> Region:
    """The region of a `fused` node, or of a node that stands alone."""
    if node.op.structure is Structure.CONTROL:
        (inner,) = node.regions
        results = tuple(r for r in inner.results if isinstance(r.type, TensorType))
        return Region(inner.params, inner.nodes, results, strided)
    params = tuple(Value(v.name, v.type) for v in dict.fromkeys(node.operands))
    copy = _standalone(node, params)
    results = tuple(r for r in copy.results if isinstance(r.type, TensorType))
    return Region(params, (copy,), results, strided)


def written_after(region: Region, at: int) -> tuple[Region, Region, int]:
    """A region in two: one gives what result `at` writes into a parameter, the other writes it.
    Also which parameter that is."""
    update = region.results[at].node
    assert update is not None
    held = update.operands[0]
    base = region.params.index(held)
    value = update.operands[1]
    results = tuple(value if i == at else result for i, result in enumerate(region.results))
    nodes = tuple(node for node in region.nodes if node is not update)
    params = (Value(held.name, held.type), Value(value.name, value.type))
    copy = _standalone(update, params)
    strided = frozenset((0,)) if base in region.strided else frozenset[int]()
    return (
        Region(region.params, nodes, results, region.strided, region.strided_results),
        Region(params, (copy,), tuple(copy.results), strided),
        base,
    )


def _standalone(node: Node, params: Sequence[Value]) -> Node:
    by_name = dict(zip(dict.fromkeys(node.operands), params))
    copy = Node(
        node.op,
        tuple(by_name[v] for v in node.operands),
        node.attrs,
        node.location,
        node.device,
        regions=node.regions,
    )
    copy.results = tuple(Value(v.name, v.type, copy, v.index) for v in node.results)
    return copy


def all_nodes(nodes: Sequence[Node]) -> list[Node]:
    """The nodes and those of their regions, at any depth, an outer one before those in it."""
    found: list[Node] = []
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        found.append(node)
        for region in reversed(node.regions):
            stack.extend(reversed(region.nodes))
    return found


def kernel_name(nodes: Sequence[Node]) -> str:
    """A name a person recognises: the ops that matter, in order, at most four."""
    quiet = (Structure.MOVEMENT, Structure.CREATION)
    loud = dict.fromkeys(n.op.name for n in nodes if n.op.structure not in quiet)
    names = list(loud or dict.fromkeys(n.op.name for n in nodes)) or ["copy"]
    return "_".join(names[:4] if len(names) <= 4 else [*names[:2], *names[-2:]])
