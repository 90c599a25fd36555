"""How the operands, parameters and results of a loop's node and region correspond.

    op      operands                  parameters of the region      its results
    while   p, c..., x...             c..., x...                    p, c...
    for     a, b, c..., x...          i, c..., x...                 c...
    scan    c..., s..., x...          c..., rows..., x...           c..., y...

Not here: what transforms make of loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dims import Size
from ..ir.builder import Builder
from ..ir.graph import Node, Value
from ..ops.flow import for_, while_
from ..records import dataclass
from ..types import I64, TensorType

Values = Sequence[Value]


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


def counting(
    builder: Builder,
    count: Value,
    carried: Values,
    given: Values,
    body: Callable[[Builder, Value, Values, Values], Values],
    most: Size | None = None,
) -> Values:
    """A `for` from 0. body: makes the region, of the counter, what is carried and what is given.
    most: a size that the count is never above."""
    inner = Builder("region")
    inner.hints = dict(builder.hints)
    at = inner.param("i", TensorType(I64, ()))
    moving = [inner.param(value.name, value.type) for value in carried]
    rest = [inner.param(value.name, value.type) for value in given]
    region = inner.finish(body(inner, at, moving, rest), ())
    operands = (builder.constant(0, I64), count, *carried, *given)
    attrs = {"carried": len(carried), **({} if most is None else {"most": most})}
    return builder.emit_all(for_, operands, attrs, regions=[region])
