"""How the operands, parameters and results of a loop's node and region correspond.

    op      operands                  parameters of the region      its results
    while   p, c..., x...             c..., x...                    p, c...
    for     a, b, c..., x...          i, c..., x...                 c...
    scan    c..., s..., x...          c..., rows..., x...           c..., y...

Not here: what transforms make of loops.
"""

from __future__ import annotations

from ..ir.graph import Node
from ..ops.flow import for_, while_
from ..records import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """Of one node. head: operands before the carried ones; handed: parameters, and yielded:
    results, before them. carried, stacked: how many there are."""

    head: int
    handed: int
    yielded: int
    carried: int
    stacked: int

    @classmethod
    def of(cls, node: Node) -> Form:
        """The form of a `while`, `for` or `scan`."""
        is_for, is_while = node.op is for_, node.op is while_
        return cls(
            2 if is_for else 1 if is_while else 0,
            1 if is_for else 0,
            1 if is_while else 0,
            node.attrs["carried"],
            node.attrs.get("stacked", 0),
        )

    def param(self, operand: int) -> int:
        """The number of the parameter that stands for an operand behind the head."""
        return operand - self.head + self.handed
