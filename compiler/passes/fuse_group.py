"""A group of nodes while fusion grows it, and the facts about nodes that decide.

Invariants: a group knows where in its loops each value is needed; merged groups point to what
they have become.
Not here: the decisions (fuse_groups.py).
"""

from __future__ import annotations

from ..dims import Size
from ..ir.graph import Node, Value
from ..kernel.cost import words_of
from ..kernel.movement import is_reindexing, is_view
from ..ops.definition import Structure
from ..records import dataclass
from .fuse_sites import ROOT, Site, used_loops

Shape = tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a kernel may grow."""

    nodes: int = 96
    words: int = 1600
    inputs: int = 40
    reductions: int = 8


class Group:
    """Nodes that become one kernel, or one node that cannot (`open` False)."""

    __slots__ = (
        "contexts", "contraction", "demand", "device", "domain", "height", "members", "merged",
        "needs", "open", "plain", "reductions", "small", "turned", "words",
    )  # fmt: skip

    def __init__(self, domain: Shape, height: int, device: str | None, open: bool) -> None:
        self.domain = domain
        self.height = height
        self.device = device
        self.open = open
        self.members: list[Node] = []
        self.merged: Group | None = None
        self.demand: dict[Value, tuple[Site, ...]] = {}
        self.needs: set[Value] = set()
        self.contexts: dict[int, list[int]] = {
            ROOT: [axis for axis, size in enumerate(domain) if size != 1]
        }
        self.contraction = False
        self.reductions = 0
        self.words = 0
        self.plain = True  # a root that other roots may stand beside
        self.small = False
        self.turned = False  # stores something in another order of axes than that of its loops

    def find(self) -> Group:
        """The group this one has become."""
        group = self
        while group.merged is not None:
            if group.merged.merged is not None:
                group.merged = group.merged.merged
            group = group.merged
        return group

    def conflicts(self, other: Group) -> bool:
        """Whether one of them computes for itself what the other needs in memory."""
        return any(
            value.node in one.members
            for one, two in ((self, other), (other, self))
            for value in two.needs
            if value.node is not None
        )


def is_complete(group: Group, site: Site, shape: Shape) -> bool:
    """True where the loops meet every element of the value exactly once."""
    used = used_loops(site, shape)
    if used is None or not site.exact or site.moves:
        return False
    loops = group.contexts[site.context]
    return len(used) == len(set(used)) and set(used) == set(loops[: len(used)])


def is_turned(node: Node, group: Group) -> bool:
    """True where a stored value does not begin with the axes of the outer loops: it gets loops
    of its own, in which a reduction of the outer loops would be repeated."""
    outer = group.contexts[ROOT]
    for value in node.results:
        for site in group.demand.get(value, ()):
            used = used_loops(site, value.tensor.shape)
            if used is None or used[: len(outer)] != outer:
                return True
    return False


def words_in(node: Node) -> int:
    """Words of an elementwise node's body."""
    return words_of(node.op, tuple([v.tensor.dtype for v in node.operands]), node.attrs)


def is_plain_move(node: Node) -> bool:
    """True for movement of one array that is an affine index."""
    if node.op.structure is not Structure.MOVEMENT or len(node.operands) != 1:
        return False
    if is_view(node):
        return is_reindexing(node.operands[0].tensor.shape, node.results[0].tensor.shape)
    return True


def is_fill(value: Value) -> bool:
    """True for an array that is one number repeated: nothing to keep in memory."""
    node = value.node
    if node is None:
        return False
    if node.op.structure is Structure.CREATION:
        return "value" not in node.attrs or node.attrs["value"].size == 1
    return (
        node.op.structure is Structure.MOVEMENT
        and len(node.operands) == 1
        and not node.operands[0].tensor.shape
    )
