"""Sums of cotangents.

What an element that was read sends back is zeros but for one place. Added to another cotangent it
is an update of that place, which takes no walk over the whole array: so the gradient of a loop
over elements takes as long as the loop.

Not here: what is summed (grad.py, flow.py).
"""

from __future__ import annotations

from ..ir.builder import Builder
from ..ir.graph import Node, Value
from ..ops.creation import constant
from ..ops.gather import scatter_add
from ..ops.movement import broadcast_to


def added(builder: Builder, left: Value, right: Value) -> Value:
    """The sum of two cotangents of one value."""
    for total, part in ((left, right), (right, left)):
        updates = _updates_of_zeros(part)
        for node in updates:
            if node.results[1] in builder.tokens:  # its indices are checked by the new one
                builder.tokens.remove(node.results[1])
            total = builder.emit(scatter_add, (total, *node.operands[1:]), node.attrs)[0]
        if updates:
            return total
    made: Value = builder.add(left, right)
    return made


def _updates_of_zeros(value: Value) -> list[Node]:
    """The additions at indices that make the value of zeros, in order; none for other values."""
    found: list[Node] = []
    while value.node is not None and value.node.op is scatter_add:
        found.append(value.node)
        value = value.node.operands[0]
    return found[::-1] if _is_zero(value) else []


def _is_zero(value: Value) -> bool:
    node = value.node
    if node is not None and node.op is broadcast_to:
        node = node.operands[0].node
    return node is not None and node.op is constant and not node.attrs["value"].any()
