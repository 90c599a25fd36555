"""Which nodes become one kernel.

Nodes are visited from results to parameters. A node joins the kernel that uses it if all uses
are there (or the uses elsewhere can wait for that kernel), and if computing it there is no
worse: no expensive value is computed more often than it has elements, a reduction only in the
row loop that has its result's axes, a contraction only where its result is consumed element by
element. Movement and literals join every kernel that uses them. Kernels over one domain that
read the same value become one.

Cycles cannot arise: each group has a height, the longest way to the graph's end. A group may
leave a value to a group of smaller height only, and groups merge at equal height only.

Invariants: linear in the graph's edges; sizes of groups are bounded.
Not here: rewriting the graph (fuse.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..dims import Dim
from ..ir.graph import Graph, Node, Value
from ..kernel.movement import is_join, is_update, is_view
from ..kernel.short import folded, is_short, is_short_fold
from ..ops.definition import Structure
from ..types import TensorType, TokenType
from .fuse_group import (
    Group,
    Limits,
    Shape,
    is_complete,
    is_fill,
    is_plain_move,
    is_turned,
    words_in,
)
from .fuse_sites import (
    ROOT,
    SHORT,
    Site,
    copies,
    folded_site,
    operand_sites,
    reduced_site,
    short_loop,
    used_loops,
    with_short_columns,
)

CHEAP = 4  # words of an op that may be computed again
FIRST_LOOP = 1 << 16  # loops of reductions are numbered from here, root loops from 0
JOINED = 3  # arrays put together inside a larger kernel; more get a loop each
LEADERS = 4  # groups that a further reader of one value is tried with
SMALL = 4096  # elements of a domain that needs no threads
FUSABLE = frozenset(
    (
        Structure.ELEMENTWISE,
        Structure.RANDOM,
        Structure.MOVEMENT,
        Structure.CREATION,
        Structure.REDUCTION,
        Structure.CONTRACTION,
        Structure.GATHER,
        Structure.SCAN,
        Structure.SCATTER,
    )
)


class Grouping:
    """The decision for one graph. homes: the groups of each node; the last of them is the one
    that hands the node's values to others."""

    def __init__(self, graph: Graph, limits: Limits) -> None:
        self.graph = graph
        self.limits = limits
        self.hints = graph.hints
        self.homes: dict[Node, list[Group]] = {}
        self.groups: list[Group] = []
        self.results = set(graph.results)
        self._context = 0
        self._loop = FIRST_LOOP
        self._users: dict[Value, list[Node]] = {}
        for node in graph.nodes:
            for value in dict.fromkeys(node.inputs()):
                self._users.setdefault(value, []).append(node)
        for node in reversed(graph.nodes):
            self._visit(node)
        for value in graph.params:
            self._siblings(value)

    # -- one node

    def _visit(self, node: Node) -> None:
        users, escapes = self._consumers(node)
        homes: list[Group] = []
        if self._may_repeat(node):
            left = escapes
            for group, inside in users.items():
                if inside and self._can_join(node, group, False):
                    self._join(node, group)
                    homes.append(group)
                else:
                    left = True
            if left or not homes:
                homes.append(self._start(node, [g for g in users if g not in homes]))
        else:
            home, stored = self._choose(node, users, escapes)
            if home is None:
                home = self._start(node, users)
            else:
                home.turned = home.turned or (stored and is_turned(node, home))
                self._join(node, home)
            homes.append(home)
        self.homes[node] = homes

    def _consumers(self, node: Node) -> tuple[dict[Group, bool], bool]:
        """The groups that use the node, and whether they can compute it; is it a result?"""
        escapes = False
        found: dict[Group, bool] = {}
        for value in node.results:
            if value in self.results:
                escapes = True
            if node.op.structure in FUSABLE:
                self._siblings(value)
            for user in self._users.get(value, ()):
                for home in self.homes[user]:
                    group = home.find()
                    inside = group.open and value in group.demand and value not in group.needs
                    found[group] = found.get(group, True) and inside
        return found, escapes

    def _siblings(self, value: Value) -> None:
        """Merge the groups over one domain and height that read `value`."""
        users = self._users.get(value)
        if users is None or len(users) < 2 or not isinstance(value.type, TensorType):
            return
        if all(size == 1 for size in value.type.shape):
            return
        leaders: dict[tuple[int, Shape], list[Group]] = {}
        for user in users:
            for home in self.homes[user]:
                group = home.find()
                if not group.open or not group.plain or value not in group.demand:
                    continue
                others = leaders.setdefault((group.height, group.domain), [])
                if group in others:
                    continue
                for leader in others[-LEADERS:]:
                    if self._can_merge(leader, group):
                        self._merge(leader, group)
                        break
                else:
                    others.append(group)

    def _choose(
        self, node: Node, users: Mapping[Group, bool], escapes: bool
    ) -> tuple[Group | None, bool]:
        """The group to join, or None; and whether it stores the value for others."""
        if node.op.structure not in FUSABLE or node.after or not users:
            return None, escapes
        best: Group | None = None
        for group, inside in users.items():
            if inside and (best is None or group.height > best.height):
                best = group
        if best is None:
            return None, escapes
        for group in users:
            if group is not best:
                escapes = True
                if group.height >= best.height:
                    return None, escapes
        return (best if self._can_join(node, best, escapes) else None), escapes

    def _may_repeat(self, node: Node) -> bool:
        """True for what every kernel may have for itself: literals, movement of one array."""
        structure = node.op.structure
        if node.after or structure not in FUSABLE:
            return False
        if structure is Structure.CREATION:
            return "value" not in node.attrs or node.attrs["value"].size == 1
        if structure is Structure.MOVEMENT:
            return len(node.operands) == 1
        if structure is Structure.ELEMENTWISE:
            shape = node.results[0].tensor.shape
            return all(size == 1 for size in shape) and words_in(node) <= CHEAP
        return False

    # -- joining

    def _can_join(self, node: Node, group: Group, escapes: bool) -> bool:
        limits = self.limits
        if (
            node.device != group.device
            or len(group.members) >= limits.nodes
            or len(group.demand) - len(group.members) > limits.inputs
        ):
            return False
        sites: tuple[Site, ...] = ()
        shape: Shape = ()
        for value in node.results:
            mine = group.demand.get(value)
            if mine:
                sites = sites + tuple([s for s in mine if s not in sites]) if sites else mine
                shape = value.tensor.shape
        structure = node.op.structure
        if escapes and not any(is_complete(group, s, shape) for s in sites):
            return False
        if any(s.moves for s in sites) and not is_plain_move(node):
            return False
        if structure is Structure.MOVEMENT:
            if is_join(node) and len(node.operands) > JOINED:
                return False  # each element would be looked for in many places
            if escapes and is_update(node) and not is_fill(node.operands[0]):
                return False  # better in place
            return len(sites) <= 6 and not (is_view(node) and not is_plain_move(node))
        if structure is Structure.ELEMENTWISE or structure is Structure.RANDOM:
            words = words_in(node)
            if group.words + words * sum(map(copies, sites)) > limits.words:
                return False
            return words <= CHEAP if len(sites) > 4 else self._worth(group, sites, shape, words)
        if structure is Structure.CREATION:
            return "value" not in node.attrs or node.attrs["value"].size == 1
        if is_short_fold(node):
            return not group.contraction and self._worth(group, sites, shape, CHEAP + 1)
        if structure is Structure.REDUCTION:
            return len(sites) == 1 and self._row_reduction(group, sites[0], shape)
        if structure is Structure.CONTRACTION:
            return len(sites) == 1 and self._epilogue(group, sites[0], shape)
        if structure is Structure.GATHER:
            return len(sites) == 1 and is_complete(group, sites[0], shape)
        return False

    def _worth(self, group: Group, sites: Iterable[Site], shape: Shape, words: int) -> bool:
        """True where computing the value at `sites` costs no more than it should."""
        contexts: dict[int, tuple[int, ...] | None] = {}
        last = len(group.domain) - 1
        short = last >= 0 and is_short(group.domain[last])
        column = short_loop(folded(group.domain[last:])) if short else last
        for site in sites:
            if words > CHEAP:
                axes = tuple([column if a == last else a for a in site.axes])
                mine = axes if site.exact else None
                if site.wasteful or (
                    site.context in contexts and (not mine or contexts[site.context] != mine)
                ):
                    return False
                contexts[site.context] = mine
                loops = group.contexts[site.context]
                used = [a for a, size in zip(axes, shape) if size != 1 and 0 <= a < SHORT]
                if set(used) != set(loops[: len(used)]):
                    return False
        return len(contexts) <= 3

    def _row_reduction(self, group: Group, site: Site, shape: Shape) -> bool:
        """True where the result lies along the first loops, so that it is computed once."""
        if group.contraction or group.reductions >= self.limits.reductions or not group.plain:
            return False
        used = used_loops(site, shape)
        loops = group.contexts[ROOT]
        if used is None or not site.exact or site.context != ROOT or used != loops[: len(used)]:
            return False
        return not group.turned if used else not loops or group.small

    def _epilogue(self, group: Group, site: Site, shape: Shape) -> bool:
        """True where the result is consumed element by element, its axes in any order."""
        if group.contraction or group.reductions or not group.plain:
            return False
        used = used_loops(site, shape)
        loops = group.contexts[ROOT]
        if used is None or not loops or not site.exact or site.context != ROOT:
            return False
        return len(used) == len(loops) and set(used) == set(loops)

    def _join(self, node: Node, group: Group) -> None:
        group.members.append(node)
        sites: dict[Site, None] = {}
        for value in node.results:
            sites.update(dict.fromkeys(group.demand.get(value, ())))
        for site in sites:
            self._push(node, group, site)
        structure = node.op.structure
        if structure is Structure.ELEMENTWISE or structure is Structure.RANDOM:
            group.words += words_in(node) * sum(map(copies, sites))

    def _push(self, node: Node, group: Group, site: Site) -> None:
        """Record where the operands of a member are needed."""
        structure = node.op.structure
        if is_short_fold(node):
            self._need(group, node.operands[0], folded_site(node, site))
        elif structure is Structure.REDUCTION:
            site = with_short_columns(node, site, group.contexts[ROOT])
            self._context += 1
            first, self._loop = self._loop, self._loop + len(node.attrs["axes"])
            shape = node.results[0].tensor.shape
            kept = [loop for loop in used_loops(site, shape) or [] if loop < SHORT]
            group.contexts[self._context] = [*kept, *range(first, self._loop)]
            group.reductions += 1
            self._need(group, node.operands[0], reduced_site(node, site, self._context, first))
        elif structure is Structure.CONTRACTION:
            group.contraction = True
            self._context += 1
            group.contexts[self._context] = []
            for at, value in enumerate(node.operands):
                axes = (-2,) * value.tensor.rank
                self._need(group, value, Site(self._context, axes, (node, at), True, True))
        else:
            for value, needed in operand_sites(node, site):
                self._need(group, value, needed)
            if structure is Structure.GATHER:
                group.needs.add(node.operands[0])

    def _need(self, group: Group, value: Value, site: Site) -> None:
        inner = [axis for axis in site.axes if FIRST_LOOP <= axis < SHORT]
        if site.context != ROOT and not site.moves and not inner:
            site = site._replace(context=ROOT)  # it does not change in the reduction's loop
        known = group.demand.get(value)
        if known is None:
            group.demand[value] = (site,)
        elif site not in known:
            group.demand[value] = (*known, site)

    # -- starting and merging

    def _start(self, node: Node, users: Iterable[Group]) -> Group:
        """A group of its own for the node."""
        used_by = list(users)
        height = 1 + max((g.height for g in used_by), default=-1)
        if not used_by and all(isinstance(r.type, TokenType) for r in node.results):
            height = -1  # nothing waits for it
        result = node.results[0].type if node.results else None
        shape = result.shape if isinstance(result, TensorType) else ()
        fusable = node.op.structure in FUSABLE and not node.after and not is_view(node)
        if node.op.structure is Structure.CREATION and "value" in node.attrs:
            fusable = False
        group = Group(shape, height, node.device, fusable)
        self.groups.append(group)
        if not fusable:
            group.members.append(node)
            group.needs.update(node.operands)
        else:
            self._root(node, group)
        return group

    def _root(self, node: Node, group: Group) -> None:
        structure = node.op.structure
        whole = Site(ROOT, tuple(range(len(group.domain))))
        group.members.append(node)
        if structure is Structure.SCATTER or (is_join(node) and len(node.operands) > JOINED):
            group.plain = False
            group.needs.update(node.operands)
        elif structure is Structure.SCAN:
            group.plain = False
            self._need(group, node.operands[0], whole)
        elif is_update(node) and not is_fill(node.operands[0]):
            base, value = node.operands
            group.plain = False
            group.domain = value.tensor.shape
            group.contexts[ROOT] = [a for a, size in enumerate(group.domain) if size != 1]
            group.needs.add(base)
            self._need(group, value, Site(ROOT, tuple(range(value.tensor.rank))))
        else:
            self._push(node, group, whole)
            if structure is Structure.ELEMENTWISE or structure is Structure.RANDOM:
                group.words += words_in(node)
        group.small = self._elements(group.domain) <= SMALL

    def _elements(self, shape: Shape) -> int:
        total = 1
        for size in shape:
            if isinstance(size, Dim):
                known = size.substitute(self.hints)
                size = known if isinstance(known, int) else SMALL + 1
            total *= size
        return total

    def _can_merge(self, a: Group, b: Group) -> bool:
        limits = self.limits
        return (
            a.device == b.device
            and len(a.members) + len(b.members) <= limits.nodes
            and a.words + b.words <= limits.words
            and a.reductions + b.reductions <= limits.reductions
            and not (a.contraction or b.contraction or a.conflicts(b))
        )

    def _merge(self, a: Group, b: Group) -> None:
        """`b` becomes part of `a`."""
        b.merged = a
        known = set(a.members)
        a.members.extend([node for node in b.members if node not in known])
        a.contexts.update({c: loops for c, loops in b.contexts.items() if c != ROOT})
        for value, sites in b.demand.items():
            for site in sites:
                self._need(a, value, site)
        a.needs |= b.needs
        a.turned = a.turned or b.turned
        a.words += b.words
        a.reductions += b.reductions
