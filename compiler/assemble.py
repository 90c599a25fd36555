"""A graph becomes steps over cells, and scheduled steps become the plan.

Invariants: a tensor value lies in one cell, a reshape in its operand's; a variable read lies in
the variable's cell, so nothing is copied that need not be.
Not here: fusion, lowering, the order and the sharing of memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .assemble_flow import flow_step
from .dims import Dim, Size, product
from .errors import error
from .ir.graph import Graph, Node, Value
from .jobs import Assembled, CopyJob, HostJob, LaunchJob, Note
from .kernel.lowering import lower
from .kernel.lowering_values import Unlowered
from .kernel.movement import is_update, is_view
from .kernel.region import Region, all_nodes, region_of, written_after
from .kernel.target import Target
from .kernels import Kernels
from .ops.definition import Structure
from .passes.schedule import (
    CARRIED,
    DEFERRED,
    FIXED,
    OUTPUT,
    TARGET,
    TEMPORARY,
    Cell,
    Step,
    needed,
    schedule,
)
from .plan import ErrorPlace, ExecutionPlan, Origin
from .rows import PlanWriter
from .types import TensorType, TokenType

_IN_ROWS = (Structure.SORT, Structure.LIBRARY)
_OLD = (FIXED, DEFERRED, CARRIED)  # cells that are not written over, or by turns


class Assembly:
    """The steps of one graph."""

    def __init__(
        self,
        graph: Graph,
        target: Target,
        params: Sequence[tuple[Origin, int]],
        strided: frozenset[int],
        writes: Mapping[int, int],
        shared: Sequence[Collection[int]] = (),
    ) -> None:
        self.graph = graph
        self.kernels = Kernels(target, graph.hints)
        self.steps: list[Step] = []
        self.constants: list[Any] = []
        self.writes = writes
        self.cells: dict[Value, Cell] = {}
        self.params: list[Cell] = []
        self.variables: dict[str, Cell] = {}
        self.current: dict[str, Cell] = {}
        self._bytes: dict[TensorType, Size] = {}
        together = self.together(shared)
        self.shared: set[Cell] = set()
        for at, (value, (origin, index)) in enumerate(zip(graph.params, params)):
            kind = TARGET if at in writes else FIXED
            if kind == TARGET and (at in strided or at in together):
                kind = DEFERRED
            cell = self.cell(value.tensor, kind, origin, index, value.name, at in strided)
            self.params.append(cell)
            self.cells[value] = cell
            if at in together:
                self.shared.add(cell)
        for at, variable in enumerate(graph.variables.values()):
            cell = self.cell(variable.type, TARGET, Origin.VARIABLE, at, variable.name)
            self.variables[variable.name] = self.current[variable.name] = cell
        self.uses = _uses(graph)
        self.last = _last_uses(graph)
        for node in graph.nodes:
            self.node(node)

    def together(self, shared: Sequence[Collection[int]]) -> set[int]:
        """The parameters that share memory with another one, if more than one is touched."""
        if not shared:
            return set()
        used = {v for node in self.graph.nodes for v in node.operands} | {*self.graph.results}
        touched = {*self.writes, *[at for at, v in enumerate(self.graph.params) if v in used]}
        groups = [touched.intersection(group) for group in shared]
        return {at for group in groups if len(group) > 1 for at in group}

    def cell(
        self,
        type: TensorType,
        kind: str,
        origin: Origin,
        index: int = 0,
        name: str = "",
        strided: bool = False,
    ) -> Cell:
        """A new cell for a value of `type`."""
        size = self._bytes.get(type)
        if size is None:
            size = self._bytes[type] = product(type.shape) * type.dtype.itemsize
        return Cell(kind, type, size, Note(type.dtype, type.shape, origin, index, name, strided))

    # -- nodes

    def node(self, node: Node) -> None:
        """Append what a node needs."""
        structure = node.op.structure
        if structure is Structure.STATE:
            assert node.variable is not None
            if node.operands:
                self.current[node.variable] = self.contiguous(node.operands[0])
            else:
                self.cells[node.result] = self.current[node.variable]
        elif structure is Structure.EFFECT and not node.op.facts.can_fail:
            self.host(node)
        elif structure is Structure.FLOW:
            flow_step(self, node)
        elif is_view(node):
            self.cells[node.result] = self.contiguous(node.operands[0])
        elif structure is Structure.CREATION and "value" in node.attrs:
            self.constant(node)
        elif structure is Structure.TRANSFER:
            raise error("TM401", f"{node.op.name} has no row in a plan", place=node.location)
        else:
            self.launch(node)

    def constant(self, node: Node) -> None:
        """A constant is bytes kept in the plan."""
        value = node.result
        index = len(self.constants)
        self.constants.append(node.attrs["value"])
        self.cells[value] = self.cell(value.tensor, FIXED, Origin.CONSTANT, index, value.name)

    def host(self, node: Node) -> None:
        """A call back, with arrays of exactly the operands' and the results' shapes."""
        reads = [self.contiguous(v) for v in node.operands]
        results = [r for r in node.results if not isinstance(r.type, TokenType)]
        made = [self.temporary(r.tensor, r.name) for r in results]
        self.steps.append(Step(HostJob(node), reads, made, bases=[None] * len(made), fails=True))
        self.cells.update(zip(results, made))

    def launch(self, node: Node) -> None:
        """The kernel of a fused region, or of a node alone."""
        fused = node.op.structure is Structure.CONTROL
        operands = node.operands if fused else tuple(dict.fromkeys(node.operands))
        sources = [self.cells[v] for v in operands]
        if node.op.structure in _IN_ROWS:  # reads whole rows, more than once
            sources = [self.contiguous(v) for v in operands]
        strided = frozenset(at for at, cell in enumerate(sources) if cell.note.strided)
        region = region_of(node, strided)
        results = [r for r in node.results if not isinstance(r.type, TokenType)]
        at = self.written_and_read(region, operands, sources)
        if at is None:
            made = self.run(region, node, sources)
        else:
            first, last, base = written_after(region, at)
            made = self.run(first, node, sources)
            (made[at],) = self.run(last, node, [sources[base], made[at]])
        self.cells.update(zip(results, made))

    def run(self, region: Region, node: Node, sources: Sequence[Cell]) -> list[Cell]:
        """Append the launches of a region; the cells of its results."""
        try:
            ready = self.kernels.ready(region)
        except Unlowered as problem:
            raise error("TM401", str(problem), place=node.location) from None
        made = [self.temporary(r.tensor, r.name) for r in region.results]
        lowered = ready.lowered
        nodes = all_nodes(region.nodes)
        places = tuple([tuple([_place(nodes[at]) for at in s.failing]) for s in ready.stages])
        bases = [None if base is None else sources[base] for base in lowered.bases]
        between = [self.temporary(TensorType(p.dtype, p.shape), p.name) for p in ready.temporaries]
        self.steps.append(
            Step(
                LaunchJob(ready, node, places),
                [sources[at] for at in lowered.inputs],
                [*made, *between],
                lowered.safe,
                [*bases, *[None] * len(between)],
                any(places),
            )
        )
        return made

    def written_and_read(
        self, region: Region, operands: Sequence[Value], sources: Sequence[Cell]
    ) -> int | None:
        """The result that a kernel would write into an operand which it still reads elsewhere, if
        nobody else needs what that holds: written afterwards, the rest of it need not be copied."""
        for at, result in enumerate(region.results):
            if result.node is None or not is_update(result.node):
                continue
            base, value = result.node.operands
            readers = [node for node in region.nodes if base in node.operands]
            if len(readers) == 1 or value in (*region.params, *region.results):
                continue
            if base not in region.params:  # made in the kernel: nothing of it is kept
                continue
            place = region.params.index(base)
            if sources[place].kind in _OLD or self.uses[operands[place]] != 1:
                continue
            lowered = lower(region)
            read = lowered.inputs.index(place)
            if (read, at) not in lowered.safe:
                return at
        return None

    def temporary(self, type: TensorType, name: str = "") -> Cell:
        """A cell in the arena."""
        return self.cell(type, TEMPORARY, Origin.TEMPORARY, 0, name)

    def contiguous(self, value: Value) -> Cell:
        """The value's cell, copied first where it may be strided."""
        cell = self.cells[value]
        if not cell.note.strided:
            return cell
        made = self.temporary(value.tensor, value.name)
        self.copy(cell, made)
        return made

    def copy(self, source: Cell, target: Cell) -> None:
        """Append a copy."""
        self.steps.append(Step(self.copying(source, target), (source,), (target,)))

    def copying(self, source: Cell, target: Cell) -> LaunchJob | CopyJob:
        """How to copy: bytes, or a kernel where strides matter."""
        mine, theirs = source.note, target.note
        if not mine.strided and not theirs.strided:
            return CopyJob()
        shape = mine.shape if mine.strided else theirs.shape  # bytes in order have any shape
        value = Value("x", TensorType(mine.dtype, shape))
        strided = frozenset([0]) if mine.strided else frozenset()
        region = Region((value,), (), (value,), strided, theirs.strided)
        return LaunchJob(self.kernels.ready(region), None, ((),))

    # -- results

    def plan(self, returns: Sequence[int] | None) -> ExecutionPlan:
        """The plan that returns the results at these positions."""
        tensors = [at for at, v in enumerate(self.graph.results) if isinstance(v.type, TensorType)]
        if returns is None:
            written = set(self.writes.values())
            returns = [at for at in tensors if at not in written]
        returned = self.outputs(returns)
        finals = self.finals()
        kept = [*[cell for cell, _ in returned], *[content for _, content in finals]]
        scheduled = schedule(needed(self.steps, kept), finals)
        assembled = Assembled(
            self.graph.name,
            tuple(self.params),
            self.variables,
            tuple(self.constants),
            self.symbols(),
            self.copying,
            self.kernels.made,
        )
        return PlanWriter(assembled, scheduled).plan(returned)

    def outputs(self, returns: Sequence[int]) -> list[tuple[Cell, bool]]:
        """The cell of each returned value, and whether it is of rank 0.

        Each is an array of its own, one that is listed twice as well.
        """
        found: list[tuple[Cell, bool]] = []
        for at in returns:
            if at < 0:
                found.append((self.params[-1 - at], False))
            else:
                value = self.graph.results[at]
                made = sum(cell.note.origin is Origin.OUTPUT for cell, _ in found)
                found.append((self.output(value, made), not value.tensor.shape))
        return found

    def output(self, value: Value, index: int) -> Cell:
        """An output that holds the value: its own cell where nothing else needs that."""
        cell = self.cells[value]
        note = cell.note
        type = value.tensor
        if cell.kind == TEMPORARY:
            cell.kind = OUTPUT
            cell.form = type
            cell.note = Note(type.dtype, type.shape, Origin.OUTPUT, index, value.name)
            return cell
        made = self.cell(type, OUTPUT, Origin.OUTPUT, index, note.name)
        self.copy(cell, made)
        if cell.kind in (TARGET, DEFERRED):  # what it holds before anything is written there
            self.steps.insert(0, self.steps.pop())
        return made

    def finals(self) -> list[tuple[Cell, Cell]]:
        """What variables and written arguments hold in the end."""
        found = [(self.variables[name], cell) for name, cell in self.current.items()]
        for at, position in self.writes.items():
            value = self.graph.results[position]
            found.append((self.params[at], self.cells[value]))
        changed = {target for target, content in found if content is not target}
        finals: list[tuple[Cell, Cell]] = []
        for target, content in found:
            if content is target:
                continue
            if content in changed or content in self.shared:  # read before targets are written
                kept = self.temporary(TensorType(content.note.dtype, content.note.shape))
                self.copy(content, kept)
                content = kept
            finals.append((target, content))
        return finals

    def symbols(self) -> dict[str, tuple[int, int]]:
        """For each dim symbol a parameter and an axis whose size is the bare symbol."""
        found: dict[str, tuple[int, int]] = {}
        for at, value in enumerate(self.graph.params):
            for axis, size in enumerate(value.tensor.shape):
                if isinstance(size, Dim) and size.name is not None:
                    found.setdefault(size.name, (at, axis))
        return found


def _uses(graph: Graph) -> Counter[Value]:
    """How many nodes and results need each value, those in regions of control flow included."""
    found: Counter[Value] = Counter()
    for at in _graphs(graph):
        found.update(at.results)
        for node in at.nodes:
            found.update({*node.operands})
    return found


def _last_uses(graph: Graph) -> dict[Value, Node | None]:
    """The last node that needs each value, in regions of control flow, too; None for results."""
    found: dict[Value, Node | None] = {}
    for at in _graphs(graph):
        for node in at.nodes:
            found.update(dict.fromkeys(node.operands, node))
        found.update(dict.fromkeys(at.results))
    return found


def _graphs(graph: Graph) -> list[Graph]:
    """The graph and the regions of its control flow, at any depth."""
    found = [graph]
    for at in found:
        for node in at.nodes:
            if node.op.structure is Structure.FLOW:
                found.extend(node.regions)
    return found


def _place(node: Node) -> ErrorPlace:
    code = node.attrs.get("code", node.op.failure)
    dtype = node.attrs.get("dtype")
    name = dtype.numpy.name if dtype else ""
    raised = node.attrs.get("raises", ""), node.attrs.get("arguments", "")
    return ErrorPlace(node.op.name, code, node.location, name, *raised)
