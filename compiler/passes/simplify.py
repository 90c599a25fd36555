"""Algebra that changes no bit: identities, involutions, broadcasts that need not be made.

Each rule is a function whose docstring is its law. They ask for facts and structure only; laws
that belong to one op are the `canonical` rule of its record, which is asked here again because
sizes may have become equal since the node was made.

Invariants: every law holds for NaN, infinities, signed zeros and wrapping integers; no rule needs
another; every rule leaves less to compute.
Not here: constants (fold), value-changing "stable" forms (they would be a named option).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Size
from ..ir.builder import Builder
from ..ir.graph import Graph, Node, Value
from ..ir.inference import result_types
from ..ir.rewriter import Rule, candidate, rewrite
from ..ops.creation import constant
from ..ops.definition import OpDef, SignatureError, Structure
from ..ops.movement import broadcast_to
from ..ops.signature import broadcast_shapes
from ..records import dataclass
from ..types import TensorType
from .base import within


@dataclass(frozen=True, slots=True)
class Simplify:
    """Strict-safe algebra."""

    name: str = "simplify"

    def run(self, graph: Graph) -> Graph:
        """The graph with every law applied at every node."""
        return rewrite(within(graph, self.run), RULES)


def canonical_form(builder: Builder, node: Node) -> Value | None:
    """The op's own canonical form."""
    if node.op.canonical is None or node.after:
        return None
    made = node.op.canonical(builder, node.operands, node.attrs)
    return made if isinstance(made, Value) else None


def narrow_operands(builder: Builder, node: Node) -> Node | None:
    """f(broadcast(x), y) is f(x, y) where f broadcasts to the same shape anyway."""
    if node.op.structure is not Structure.ELEMENTWISE:
        return None
    operands = list(node.operands)
    shape = node.results[0].tensor.shape
    for place, operand in enumerate(node.operands):
        if _made_by(operand, broadcast_to):
            narrowed = [*operands[:place], _source(operand), *operands[place + 1 :]]
            if _common_shape(narrowed) == shape:
                operands = narrowed
    return None if operands == list(node.operands) else candidate(node, *operands)


def broadcast_last(builder: Builder, node: Node) -> Value | None:
    """f(broadcast(x), broadcast(y)) is broadcast(f(x, y)): compute each element once."""
    if node.op.structure is not Structure.ELEMENTWISE:
        return None
    if not any(_made_by(operand, broadcast_to) for operand in node.operands):
        return None
    sources = [_source(operand) for operand in node.operands]
    common, shape = _common_shape(sources), node.results[0].tensor.shape
    if common is None or common == shape:
        return None
    name = node.results[0].name
    made: Value = builder.emit(
        broadcast_to,
        (_settled(builder, node, sources, f"{name}_once"),),
        {"shape": shape},
        name=name,
    )
    return made


def seen_through(builder: Builder, node: Node) -> Value | None:
    """f(x) is x for a transparent op: what it meant to transforms is done when passes run."""
    seen_through = node.op.facts.transparent and not node.regions
    return node.operands[0] if seen_through else None


def identity_operand(builder: Builder, node: Node) -> Value | None:
    """f(x, e) is x for the identity e, bit for bit and for the kinds its fact names."""
    facts = node.op.facts
    if facts.identity is None or len(node.operands) != 2:
        return None
    x, e = node.operands
    same = x.type == node.results[0].type and e.tensor.dtype == x.tensor.dtype
    if same and x.tensor.dtype.kind in facts.identity_kinds and _is_number(e, facts.identity):
        return x
    return None


def twice_is_none(builder: Builder, node: Node) -> Value | None:
    """f(f(x)) is x for an involution."""
    if node.op.facts.involution and len(node.operands) == 1 and _same_inside(node):
        (inner,) = node.operands
        assert inner.node is not None
        (x,) = inner.node.operands
        return x if x.type == node.results[0].type else None
    return None


def twice_is_once(builder: Builder, node: Node) -> Value | None:
    """f(f(x)) is f(x), and f(x, x) is x, for an idempotent op."""
    if not node.op.facts.idempotent or node.op.structure is not Structure.ELEMENTWISE:
        return None
    x = node.operands[0]
    if x.type != node.results[0].type:
        return None
    if len(node.operands) == 1:
        exact = not x.tensor.dtype.is_complex  # the sign of a unit number rounds again
        return x if exact and _same_inside(node) else None
    return x if all(operand is x for operand in node.operands) else None


RULES: tuple[Rule, ...] = (
    canonical_form,
    seen_through,
    narrow_operands,
    broadcast_last,
    identity_operand,
    twice_is_none,
    twice_is_once,
)


def _settled(builder: Builder, node: Node, operands: Sequence[Value], name: str) -> Value:
    """The op of `node` on other operands, as these rules leave it."""
    seen = candidate(node, *operands)
    (type,) = result_types(node.op, operands, node.attrs)
    seen.results = (Value(name, type, seen),)
    while True:
        answers = (rule(builder, seen) for rule in RULES)
        made = next((answer for answer in answers if answer is not None), None)
        if isinstance(made, Value):
            return made
        if made is None:
            emitted: Value = builder.emit(seen.op, seen.operands, seen.attrs, name=name)
            return emitted
        seen = made


def _made_by(value: Value, op: OpDef) -> bool:
    return value.node is not None and value.node.op is op


def _source(value: Value) -> Value:
    """What a broadcast repeats; any other value is its own."""
    node = value.node
    return node.operands[0] if node is not None and node.op is broadcast_to else value


def _same_inside(node: Node) -> bool:
    """True for f(f(x)) with equal attributes."""
    inner = node.operands[0].node
    return inner is not None and inner.op is node.op and inner.attrs == node.attrs


def _common_shape(values: Sequence[Value]) -> tuple[Size, ...] | None:
    shapes = [v.type.shape for v in values if isinstance(v.type, TensorType)]
    try:
        return broadcast_shapes(shapes)
    except SignatureError:
        return None


def _is_number(value: Value, number: Any) -> bool:
    """True for the constant `number`, rank 0 or repeated, with the very bits."""
    source = _source(value)
    if source.node is None or source.node.op is not constant or source.tensor.rank:
        return False
    array = source.node.attrs["value"]
    return bool(array.tobytes() == np.asarray(number, array.dtype).tobytes())
