"""What a Python loop carries, as far as its trips have shown it, and how a trip ended.

Not here: the trips (rolled.py); what `functions` carry, which users say (carried.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from ..compiler.ir.graph import Node
from ..compiler.records import dataclass
from ..tracing.number import TracedNumber
from ..tracing.state import fail
from ..tracing.undefined import Undefined
from .nests import Differs, LeafType, Pair
from .outcomes import CODES, Mixed
from .places import UNBOUND
from .shared import Shared


@dataclass(slots=True)
class CarriedByLoop:
    """What is known of what a loop carries: for each changed place its pattern, or why it has
    none; the sides and types of the leaves."""

    patterns: dict[int, Any] = field(default_factory=dict)
    pairs: list[Pair] = field(default_factory=list)
    shared: Shared = field(default_factory=Shared)
    spent: dict[int, Any] = field(default_factory=dict)
    kinds: list[LeafType] = field(default_factory=list)
    steps: dict[int, int] = field(default_factory=dict)  # of integers that grow by one number
    variables: dict[str, Any] = field(default_factory=dict)
    code: Any = None
    value: Any = UNBOUND

    def is_settled(self, other: CarriedByLoop) -> bool:
        """Whether tracing again would change nothing."""
        return (
            list(self.patterns) == list(other.patterns)
            and self.steps == other.steps
            and self.kinds == other.kinds
            and [pair.path for pair in self.pairs] == [pair.path for pair in other.pairs]
            and list(self.variables) == list(other.variables)
            and (self.code is None) == (other.code is None)
            and self.shared.is_as(other.shared)
            and list(self.spent) == list(other.spent)
        )


def is_counted(item: Any, given: Sequence[Any]) -> bool:
    """Whether Python would compute an integer while tracing, if a loop ran then: it is made of
    constants, and of the numbers that the loop's body is given."""
    if type(item) is int:
        return True
    if type(item) is not TracedNumber or item.kind is not int:
        return False
    known = {number.value for number in given}
    pending = [item.value]
    while pending:
        value = pending.pop()
        if value not in known and value.node is None:
            return False
        if value not in known and value.node is not None:
            pending.extend(value.node.operands)
            known.add(value)
    return True


def operations(nodes: Iterable[Node]) -> int:
    """How many nodes there are, in regions too."""
    return sum(1 + sum(operations(region.nodes) for region in node.regions) for node in nodes)


def code_of(outcome: Any) -> Any:
    """The code of a trip, None where it goes on in any case."""
    if type(outcome) is Mixed:
        return outcome.code
    code = CODES[None if outcome is None else outcome[0]]
    return code or None


def value_of_outcome(outcome: Any) -> Any:
    if type(outcome) is Mixed:
        return outcome.value
    return outcome[1] if outcome is not None and outcome[0] == "return" else UNBOUND


def unfit(problem: Differs) -> Exception:
    return fail(
        "TM260",
        f"{problem.path} is {problem.left} before this loop, {problem.right} after a trip",
        "what a loop carries keeps its structure, dtype and shape on every trip",
    )


def changing(problem: Differs) -> Undefined:
    return Undefined(
        f"{problem.path} is used, which is {problem.left} before this loop, {problem.right} after "
        "a trip",
        "what a loop carries keeps its structure, dtype and shape on every trip",
        f"give {problem.path} before the loop what it has after a trip",
    )


def never_bound(name: str) -> Undefined:
    return Undefined(
        f"{name} is used, which is bound only if this loop makes a trip",
        "how many it makes is known only when the compiled function runs",
        f"give {name} a value before the loop",
    )
