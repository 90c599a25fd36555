"""Compute now what depends on constants alone.

The result must be what a run would give, bit for bit. Elementwise ops are folded by running
their scalar body, where no word of it depends on the target (fma is a call, or two roundings,
on some); moves by their reference; reductions, running totals and contractions of integers and
bools by theirs.

Invariants: nothing larger than `limit` elements goes in or comes out; a result is not larger
than what it was made of, so a repeated number stays one number; what fails stays, to fail in
the run.
Not here: which ops have which meaning (records).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.builder import Builder
from ..ir.graph import Graph, Node, Value
from ..ir.rewriter import rewrite
from ..ops.creation import constant
from ..ops.definition import Structure
from ..ops.scalar import Loop, Rarely, Scalar, ScalarFunction, trace_body
from ..ops.scalar_reference import evaluate
from ..records import dataclass
from ..types import TensorType
from .base import within

_TOTALS = frozenset((Structure.REDUCTION, Structure.SCAN, Structure.CONTRACTION))
_SMALL = 16  # elements that a result may always have


@dataclass(frozen=True, slots=True)
class Fold:
    """Constant folding. limit: most elements of an operand or result."""

    limit: int = 4096
    name: str = "fold"

    def run(self, graph: Graph) -> Graph:
        """The graph with constants in the place of what could be computed."""
        return rewrite(within(graph, self.run), (self._rule,))

    def _rule(self, builder: Builder, node: Node) -> Value | None:
        """op(constants) is a constant."""
        if not node.operands or node.after or not self._affordable(node):
            return None
        arrays = [v.node.attrs["value"] for v in node.operands if v.node is not None]
        made = _computed(node, arrays)
        if made is None:
            return None
        return builder.constant(made, name=node.results[0].name)

    def _affordable(self, node: Node) -> bool:
        if not all(v.node is not None and v.node.op is constant for v in node.operands):
            return False
        result = node.results[0].type
        if len(node.results) != 1 or not isinstance(result, TensorType) or not result.is_static:
            return False
        size = _elements(result)
        known = [_elements(v.tensor) for v in node.operands]
        return max(size, *known) <= self.limit and size <= max(sum(known), _SMALL)


def _elements(type: TensorType) -> int:
    total = 1
    for size in type.shape:
        assert isinstance(size, int)
        total *= size
    return total


def _computed(node: Node, arrays: list[Any]) -> Any:
    """The result's array, or None where a run might give other bits."""
    structure = node.op.structure
    if structure is Structure.ELEMENTWISE:
        return _elementwise(node, arrays)
    if structure is Structure.MOVEMENT:
        return node.op.reference(*arrays, **node.attrs)
    if structure in _TOTALS and all(a.dtype.kind in "biu" for a in arrays):
        return node.op.reference(*arrays, **node.attrs)
    return None


def _elementwise(node: Node, arrays: list[Any]) -> Any:
    body, attrs = node.op.scalar, node.attrs
    if body is None:
        return None
    dtypes = [v.tensor.dtype for v in node.operands]
    function = trace_body(lambda *operands: body(*operands, **attrs), dtypes)
    if not is_portable(function):
        return None
    shape = np.broadcast_shapes(*[a.shape for a in arrays])
    lanes = [np.broadcast_to(a, shape).reshape(-1) for a in arrays]
    (made,) = evaluate(function, lanes)
    return np.asarray(made).reshape(shape)


def is_portable(function: ScalarFunction) -> bool:
    """True where every target computes the same bits: no fused multiply-add anywhere."""
    pending: list[Scalar] = list(function.results)
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.word == "fma":
            return False
        pending.extend(node.args)
        if node.word == "result":
            pending.extend(_inside(node.attr))
    return True


def _inside(attr: object) -> list[Scalar]:
    """The scalars a region word depends on."""
    assert isinstance(attr, tuple)
    region = attr[0]
    if isinstance(region, Rarely):
        return [region.condition, *region.slow, *region.fast]
    assert isinstance(region, Loop)
    return [*region.init, region.condition, *region.step]
