"""What batching rules are written with: a value for many lanes at once, and the common rules.

Invariants: where lanes have values of their own these are rows of one array, along its first axis.
Lanes that are not active compute on whatever is there and nobody sees what comes out; they must
not fail.
Not here: rules of single ops (with their records), the transform (transforms/vmap.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dims import Size
from ..records import dataclass
from .definition import Batching


@dataclass(frozen=True, slots=True)
class Each:
    """A value of the function that is mapped. own: whether lanes have rows of their own."""

    value: Any
    own: bool

    @property
    def rank(self) -> int:
        """Of the value in one lane."""
        rank: int = len(self.value.type.shape)
        return rank - self.own


@dataclass(frozen=True, slots=True)
class Lanes:
    """size: how many there are. active: bools, one a lane, or None where all are."""

    size: Size
    active: Any = None

    def spread(self, emit: Any, each: Each) -> Any:
        """The rows of a value, repeated where all lanes share it."""
        if each.own:
            return each.value
        return emit.broadcast_to(each.value, shape=(self.size, *each.value.type.shape))

    def harmless(self, emit: Any, each: Each, number: complex | float) -> Each:
        """A value that is this number where no lane is active to see it."""
        if self.active is None:
            return each
        active = self.active if each.own else emit.any(self.active, axes=(0,))
        if each.own:
            active = aligned(emit, Each(active, True), each.rank)
        other = emit.constant(number, each.value.type.dtype)
        return Each(emit.select(active, each.value, other), each.own)


Operands = Sequence[Each]


def elementwise(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    """All operands side by side, their axes aligned from the right in each lane."""
    rank = max(each.rank for each in operands)
    return same(emit, node, [aligned(emit, each, rank) for each in operands])


def as_it_is(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    """Of ops that do the same for any number of leading axes."""
    return same(emit, node, [each.value for each in operands])


def shifted(key: str) -> Batching:
    """Of ops of one operand whose attribute `key` names axes of it."""

    def rule(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
        axes = node.attrs[key]
        moved = axes + 1 if isinstance(axes, int) else tuple([axis + 1 for axis in axes])
        return same(emit, node, [operands[0].value], {key: moved})

    return rule


def same(emit: Any, node: Any, values: Sequence[Any], attrs: Any = None) -> Sequence[Each]:
    """The op of `node` on rows, some attributes replaced: its results as rows."""
    made = emit.emit(node.op, values, {**node.attrs, **(attrs or {})})
    return [Each(value, True) for value in (made if isinstance(made, tuple) else (made,))]


def aligned(emit: Any, each: Each, rank: int) -> Any:
    """A value whose axes in one lane are those of an array of `rank`, from the right."""
    shape = each.value.type.shape
    if not each.own or each.rank == rank:
        return each.value
    return emit.reshape(each.value, shape=(shape[0], *[1] * (rank - each.rank), *shape[1:]))


def moved_axis(emit: Any, value: Any, source: int, target: int) -> Any:
    """One axis at another place, the others in their order."""
    order = [axis for axis in range(len(value.type.shape)) if axis != source]
    order.insert(target, source)
    return emit.transpose(value, perm=tuple(order))


def numbered(emit: Any, lanes: Lanes, rank: int) -> Any:
    """The number of each lane, with so many axes behind."""
    return emit.reshape(emit.iota(size=lanes.size), shape=(lanes.size, *[1] * rank))
