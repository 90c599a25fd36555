"""A branch becomes one step around the scheduled steps of its two regions.

A result that one region writes over an operand, or hands through, lies in that operand's memory
if nothing after the branch needs the operand and the other region can do the same. So a region
that changes nothing does nothing, and one that writes an element writes an element:

    %y = cond %p, %x ...          if p {
      then: scatter %x, ...  ->     launch scatter(x)
      else: yield %x              }

As for loops, the step around has the operand as the base of its write: whether it dies there is
seen when the graph around is scheduled, and if it does not it is copied before the branch.

Invariants: a result lies in the memory of at most one operand, an operand in that of one result.
Not here: regions (assemble_region.py), loops (assemble_flow.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .assemble_region import Scope, inside, region_steps, result_apart, scratch, tensors
from .ir.graph import Graph, Node
from .jobs import BranchJob
from .passes.schedule import (
    CARRIED,
    FIXED,
    OUTPUT,
    TEMPORARY,
    Cell,
    Step,
    base_of,
    schedule_body,
    written_over,
)
from .plan import Origin
from .records import dataclass

_TEST = 0  # position among what the step reads


@dataclass(slots=True)
class _Arm:
    """A region being put together. made: its results, params: its parameters that may be written
    over, by operand."""

    region: Graph
    params: dict[int, Cell]
    steps: list[Step]
    made: list[Cell]


def branch_step(assembly: Scope, node: Node) -> None:
    """Append the step of a `cond`: one region runs and writes the results."""
    test = assembly.contiguous(node.operands[0])
    operands = [assembly.cells[v] for v in node.operands[1:]]
    ending = [
        at
        for at, value in enumerate(node.operands[1:])
        if operands[at].kind in (TEMPORARY, CARRIED) and assembly.last[value] is node
    ]
    arms = [_arm(assembly, region, operands, ending) for region in node.regions]
    over = _settle(arms, node)
    results = tensors(node.results)
    writes = [assembly.temporary(r.tensor, r.name) for r in results]
    for arm in arms:
        _place(assembly, arm, operands, writes, over)
    bodies = [schedule_body(arm.steps, ()) for arm in arms]
    between = scratch(assembly, bodies)
    assembly.cells.update(zip(results, writes))
    bases = [operands[over[at]] if at in over else None for at in range(len(writes))]
    reads = [cell for at, cell in enumerate(operands) if at not in over.values()]
    assembly.steps.append(
        Step(
            BranchJob(node, test, bodies[0].steps, bodies[1].steps),
            [test, *reads],
            [*writes, *between],
            frozenset([(_TEST, at) for at in over]),  # looked at before a region runs
            [*bases, *[None] * len(between)],
            fails=True,
        )
    )


def _arm(assembly: Scope, region: Graph, operands: Sequence[Cell], ending: Sequence[int]) -> _Arm:
    """A region whose parameters at `ending` may be written over; a result that is one of them
    stays there, the first that is."""
    cells = [inside(cell) for cell in operands]
    for at in ending:
        value = region.params[at]
        cells[at] = assembly.cell(value.tensor, CARRIED, Origin.VIEW, 0, value.name)
    results = tensors(region.results)
    through = [region.params[at] for at in ending if region.params[at] in results]
    kept = {results.index(value) for value in through}
    steps, made = region_steps(assembly, region, cells, kept)
    for step in steps:
        for cell in step.writes:
            cell.maker = step
    return _Arm(region, {at: cells[at] for at in ending}, steps, made)


def _settle(arms: Sequence[_Arm], node: Node) -> dict[int, int]:
    """The results that lie in the memory of an operand: which result in which."""
    chosen: dict[int, int] = {}
    for at, operand in _candidates(arms, node):
        if at not in chosen and operand not in chosen.values():
            chosen[at] = operand
    for arm in arms:
        for at, cell in enumerate(arm.made):
            if at not in chosen and cell.kind == TEMPORARY:
                cell.kind = OUTPUT  # lives to the end, so that no later content is written over it
    pairs = [[(arm.params[chosen[at]], arm.made[at]) for at in chosen] for arm in arms]
    found = written_over([(arm.steps, ends) for arm, ends in zip(arms, pairs)])
    return {at: chosen[at] for place, at in enumerate(chosen) if place in found}


def _candidates(arms: Sequence[_Arm], node: Node) -> Iterator[tuple[int, int]]:
    """Results with the operand whose content they change or are: first those of which both
    regions say so, then those that one of them makes anew."""
    roots = [[_root(arm, cell) for cell in arm.made] for arm in arms]
    types = [value.tensor for value in tensors(node.results)]
    for agreeing in (True, False):
        for at, (then, other) in enumerate(zip(*roots)):
            operand = other if then is None else then
            if operand is None or types[at] != node.operands[1 + operand].type:
                continue
            if then == other if agreeing else None in (then, other):
                yield at, operand


def _root(arm: _Arm, cell: Cell) -> int | None:
    """The operand that a result of a region is, or is a changed version of."""
    known = {param: at for at, param in arm.params.items()}
    found: Cell | None = cell
    while found is not None and found not in known:
        found = base_of(found)
    return None if found is None else known[found]


def _place(
    assembly: Scope,
    arm: _Arm,
    operands: Sequence[Cell],
    writes: Sequence[Cell],
    over: dict[int, int],
) -> None:
    """Say where a region's parameters and results lie; a parameter that is a result but not in
    its memory is copied."""
    places = {operand: writes[at] for at, operand in over.items()}
    for at, param in arm.params.items():
        param.source = places.get(at, operands[at])
        if at not in places:
            param.kind = FIXED
    for at, value in enumerate(tensors(arm.region.results)):
        if at in over:
            continue
        cell = arm.made[at]
        if cell in arm.params.values():
            cell = result_apart(assembly, arm.steps, value, cell)
        cell.kind, cell.source = OUTPUT, writes[at]
