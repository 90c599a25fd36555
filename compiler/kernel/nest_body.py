"""Bodies of loops and branches that may be one kernel: what they do, and in which order.

A *step* is a node that is done where it stands: it makes a number or a few, writes into an array,
checks, or is a loop or branch itself. All other nodes are formulas: their elements are computed
where a step needs them, so what folds an array is a step. Arrays that steps write into stay in one
memory: a *version* of such an array can be read until a step ends it by writing. Steps are put into
an order in which that is so.

Invariants: pure. What is a step follows from structures and shapes, never from names of ops but
those of control flow.
Not here: statements (nest.py), what becomes such a kernel (assemble_nest.py).
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

from ..ir.attrs import attrs_key
from ..ir.graph import Graph, Node, Value
from ..ops.definition import OpDef, Structure
from ..ops.flow import cond, for_, scan, while_
from ..records import dataclass
from ..types import TensorType
from .movement import is_update
from .short import folded


@dataclass(frozen=True, slots=True)
class Form:
    """How operands, parameters and results of control flow stand for each other.

    ahead: operands before those that are parameters. own: parameters before those that are
    operands. tests: what a region yields before what are results.
    """

    ahead: int
    own: int
    tests: int


FORMS: Mapping[OpDef, Form] = {
    cond: Form(ahead=1, own=0, tests=0),
    while_: Form(ahead=1, own=0, tests=1),
    for_: Form(ahead=2, own=1, tests=0),
    scan: Form(ahead=0, own=0, tests=0),
}
LOOPS = (while_, for_, scan)
_FORMULAS = (
    Structure.ELEMENTWISE, Structure.RANDOM, Structure.MOVEMENT, Structure.CREATION,
    Structure.GATHER,
)  # fmt: skip
_FOLDS = (Structure.REDUCTION, Structure.CONTRACTION)
MOST_WRITTEN = 16  # elements that a step writes, one after the other


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A node to be done. bodies: its regions. uses: numbers and versions of arrays that it needs.
    ends: versions that are no more afterwards, each with the one that follows, if it has one."""

    node: Node
    bodies: tuple[Body, ...]
    uses: frozenset[Value]
    ends: Mapping[Value, Value | None]


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A region. homes: for each result that is an array the parameter in whose memory it lies.
    changed: positions of the parameters that are written into."""

    params: tuple[Value, ...]
    steps: tuple[Step, ...]
    results: tuple[Value, ...]
    homes: Mapping[Value, int]
    changed: frozenset[int]


def body_of(region: Graph, apart: Collection[Value] = ()) -> Body | None:
    """The region as a body, None where it does something else. apart: results that are arrays of
    which each trip of a loop makes an element."""
    return _Reading(region).body(apart)


def is_loop(node: Node, body: Body) -> bool:
    """Whether a body fits its loop: what it carries in memory it leaves where it was, and what
    else a trip is given or makes are numbers."""
    form, count = FORMS[node.op], node.attrs["carried"]
    stacks = [
        *body.params[count:][: node.attrs.get("stacked", 0)],
        *body.results[form.tests :][count:],
    ]
    if any(v.tensor.shape for v in stacks):
        return False
    if any(not form.own <= at < form.own + count for at in body.changed):
        return False
    ends = body.results[form.tests :]
    return all(body.homes.get(v, at) == at for at, v in enumerate(ends, form.own))


def all_steps(body: Body) -> Iterator[Step]:
    """The steps of a body and of those in it, as they are written."""
    for step in body.steps:
        yield step
        for inner in step.bodies:
            yield from all_steps(inner)


class _Reading:
    """One region while it is looked at."""

    def __init__(self, region: Graph) -> None:
        self.region = region
        self.same: dict[Value, Value] = {}
        self.made: dict[Hashable, Node] = {}
        self.apart: set[Value] = set()
        self.homes: dict[Value, int] = {
            param: at for at, param in enumerate(region.params) if param.tensor.shape
        }

    def body(self, apart: Collection[Value]) -> Body | None:
        """All of it, None where some node is of another kind."""
        self._flatten(self.region.nodes)
        self.apart.update([self._value(v) for v in apart])
        found: list[Step] = []
        for node in self.made.values():
            step = self._step(node) if _is_allowed(node) else None
            if step is None:
                return None
            if _is_done(node) or step.ends or step.bodies:
                found.append(step)
        steps = _ordered(found)
        results = tuple(
            [self._value(v) for v in self.region.results if isinstance(v.type, TensorType)]
        )
        if steps is None or not self._are_last(steps, results):
            return None
        changed = frozenset([self.homes[old] for step in steps for old in step.ends])
        arrays = {v: self.homes[v] for v in results if v in self.homes}
        return Body(self.region.params, steps, results, arrays, changed)

    def _value(self, value: Value) -> Value:
        return self.same.get(value, value)

    def _flatten(self, nodes: Sequence[Node]) -> None:
        """Copies of all nodes, those of kernels in their place, equal ones once."""
        for node in nodes:
            operands = tuple([self._value(v) for v in node.operands])
            if node.op.structure is Structure.CONTROL:
                (inner,) = node.regions
                self.same.update(zip(inner.params, operands))
                self._flatten(inner.nodes)
                self.same.update(zip(node.results, [self._value(v) for v in inner.results]))
                continue
            key: Hashable = node
            if not node.regions:
                key = (node.op, operands, attrs_key(node.attrs))
            copy = self.made.get(key)
            if copy is None:
                copy = Node(
                    node.op, operands, node.attrs, node.location, node.device,
                    regions=node.regions,
                )  # fmt: skip
                copy.results = tuple([Value(v.name, v.type, copy, v.index) for v in node.results])
                self.made[key] = copy
            self.same.update(zip(node.results, copy.results))

    # -- one node

    def _step(self, node: Node) -> Step | None:
        """What a node does, None if it is nothing that a body does."""
        bodies: list[Body] = []
        for region in node.regions:
            made = body_of(region)
            if made is None:
                return None
            bodies.append(made)
        ends: dict[Value, Value | None] = {}
        if bodies:
            if not self._flow(node, bodies, ends):
                return None
        elif node.op.structure is Structure.SCATTER or is_update(node):
            base = node.operands[0]
            if base in self.homes:
                ends[base] = node.results[0]
                self.homes[node.results[0]] = self.homes[base]
            elif node.op.structure is Structure.SCATTER:
                return None
        elif node.op.structure is Structure.GATHER and not self._is_read(node.operands[0]):
            return None
        return Step(node, tuple(bodies), frozenset(self._uses(node)), ends)

    def _is_read(self, source: Value) -> bool:
        """Whether places of an array are places of one that lies in memory."""
        made = source.node
        return source in self.homes or (made is not None and made.op.structure is Structure.GATHER)

    def _flow(self, node: Node, bodies: Sequence[Body], ends: dict[Value, Value | None]) -> bool:
        """Note the arrays that control flow writes into and gives; False where one of them is
        seen under two names, or may lie in one memory or another."""
        form = FORMS[node.op]
        if node.op in LOOPS and not is_loop(node, bodies[0]):
            return False
        operands = node.operands
        if any(v.tensor.shape and v not in self.homes for v in operands):
            return False
        for at in {at - form.own + form.ahead for body in bodies for at in body.changed}:
            home = self.homes[operands[at]]
            if sum(self.homes.get(v) == home for v in operands) > 1:
                return False
            ends[operands[at]] = None
        for at, result in enumerate(node.results):
            if not isinstance(result.type, TensorType) or not result.tensor.shape:
                continue
            if "stacked" in node.attrs and at >= node.attrs["carried"]:
                if result not in self.apart:
                    return False
                continue
            places = {body.homes[body.results[form.tests + at]] for body in bodies}
            if len(places) > 1:
                return False
            old = operands[places.pop() - form.own + form.ahead]
            self.homes[result] = self.homes[old]
            if old in ends:
                if ends[old] is not None:
                    return False
                ends[old] = result
        return True

    def _uses(self, node: Node) -> set[Value]:
        """The numbers and versions of arrays that a node needs, those behind formulas included."""
        found: set[Value] = set()
        pending = list(node.operands)
        seen: set[Value] = set()
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            if value.node is None or value in self.homes or _is_done(value.node):
                found.add(value)
            else:
                pending.extend(value.node.operands)
        return found

    def _are_last(self, steps: Sequence[Step], results: Sequence[Value]) -> bool:
        """Whether each array is given as it is in the end, and those that are written into are."""
        arrays = [v for v in results if v.tensor.shape and v not in self.apart]
        if any(v not in self.homes for v in arrays):
            return False
        ended = {old for step in steps for old in step.ends}
        given = [self.homes[v] for v in arrays]
        changed = {self.homes[v] for v in ended}
        return len({*given}) == len(given) and changed <= {*given} and ended.isdisjoint(arrays)


def _is_done(node: Node) -> bool:
    """Whether a node is done where it stands, even if it writes nothing."""
    if node.op.structure in (Structure.EFFECT, Structure.FLOW, Structure.SCATTER):
        return True
    return any(isinstance(r.type, TensorType) and is_few(r) for r in node.results)


def is_few(value: Value) -> bool:
    """True for a number, and for so few elements that each is one."""
    return 0 < folded(value.tensor.shape) <= MOST_WRITTEN


def _is_allowed(node: Node) -> bool:
    structure = node.op.structure
    if structure is Structure.EFFECT:
        return node.op.facts.can_fail and not node.operands[0].tensor.shape
    if structure is Structure.FLOW:
        return node.op in FORMS
    if structure is Structure.SCATTER or is_update(node):
        places = [size for v in node.operands[2:] for size in v.tensor.shape]
        return is_few(node.operands[1]) and all(size == 1 for size in places)
    if structure is Structure.CREATION and "value" in node.attrs:
        return bool(node.attrs["value"].size == 1)
    if structure in _FOLDS:
        return is_few(node.results[0])
    return structure in _FORMULAS


def _ordered(steps: Sequence[Step]) -> tuple[Step, ...] | None:
    """The steps as they stand, but for those that read what another one ends: they come before
    it. None where two of them would have to."""
    maker = {r: at for at, step in enumerate(steps) for r in step.node.results}
    before: list[set[int]] = [set() for _ in steps]
    readers: dict[Value, list[int]] = {}
    for at, step in enumerate(steps):
        before[at].update([maker[v] for v in step.uses if v in maker])
        for version in step.uses:
            readers.setdefault(version, []).append(at)
    for at, step in enumerate(steps):
        for version in step.ends:
            before[at].update([other for other in readers[version] if other != at])
    after: list[list[int]] = [[] for _ in steps]
    for at, others in enumerate(before):
        for other in others:
            after[other].append(at)
    waiting = [len(others) for others in before]
    ready = [at for at, count in enumerate(waiting) if not count]
    ordered: list[Step] = []
    while ready:
        done = heapq.heappop(ready)
        ordered.append(steps[done])
        for at in after[done]:
            waiting[at] -= 1
            if not waiting[at]:
                heapq.heappush(ready, at)
    return tuple(ordered) if len(ordered) == len(steps) else None
