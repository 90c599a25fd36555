"""Order and memory: in which order steps run, and which values may share memory.

The compiler hands over steps that read and write cells (pieces of memory, one per value). Here
they get an order, cells that may be one memory are merged, and temporaries get slots.

* Order: what can fail, and what that needs, comes first, in program order; behind it lies the
  commit point, then the rest in program order. Only steps behind it write a target (memory that
  is seen outside) in place.
* A step may work in place on a temporary that dies there, where the kernel allows it.
* A target is written in place when nobody needs its old content any more; else the new content
  is copied at the end.
* Temporaries whose lifetimes do not overlap share slots of provably equal size (a static one
  also a larger static slot).

Laws (tests/kernels): live cells never share memory; every read sees what program order says.
Not here: kernels, size slots, rows (compile.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import field
from typing import Any

from ..dims import Size
from ..records import dataclass

FIXED, TARGET, OUTPUT, TEMPORARY = "fixed", "target", "output", "temporary"
CARRIED = "carried"  # in the region of a loop: what it carries, at the start of a trip
DEFERRED = "deferred"  # a target that is written at the end: strided, or seen as others, too


class Cell:
    """Memory that holds one value. kind: FIXED (never written), TARGET, OUTPUT, TEMPORARY.

    form: what it looks like from outside (a tensor type), None if mixed; size: its bytes. rep:
    the cell whose memory this one shares, itself at first. slot: the arena slot of a temporary
    representative. source: for a representative in a region of control flow, the cell around the
    region in whose memory it lies.
    """

    __slots__ = (
        "first", "form", "kind", "last", "maker", "note", "rep", "size", "slot", "source",
    )  # fmt: skip

    def __init__(self, kind: str, form: Hashable, size: Size, note: Any = None) -> None:
        self.kind = kind
        self.form = form
        self.size = size
        self.note = note
        self.rep: Cell = self
        self.maker: Step | None = None
        self.first = -1
        self.last = -1
        self.slot = -1
        self.source: Cell | None = None

    def memory(self) -> Cell:
        """The cell that stands for the memory."""
        cell = self
        while cell.rep is not cell:
            cell.rep = cell.rep.rep
            cell = cell.rep
        return cell

    def home(self) -> Cell:
        """The same, whatever regions this is in: the outermost cell."""
        cell = self.memory()
        while cell.source is not None:
            cell = cell.source.memory()
        return cell


@dataclass(eq=False, slots=True)
class Step:
    """One row to be: reads and writes cells.

    safe: (position in reads, position in writes) that may share memory. bases: per write, the
    cell whose content the memory must hold before. fails: may fail or is seen outside, so that
    it comes before the commit point. job: what the compiler makes of it.
    copied: writes whose base must be copied first (an answer).
    """

    job: Any
    reads: Sequence[Cell]
    writes: Sequence[Cell]
    safe: frozenset[tuple[int, int]] = frozenset()
    bases: Sequence[Cell | None] = ()
    fails: bool = False
    position: int = -1
    copied: list[int] = field(default_factory=list)

    def sources(self) -> Iterable[Cell]:
        """All cells whose content the step needs."""
        yield from self.reads
        for base in self.bases:
            if base is not None:
                yield base


@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps in order, the commit point before position `commit`, the slots of the arena, and
    the copies (source, target) to make at the end."""

    steps: tuple[Step, ...]
    commit: int
    slots: tuple[Size, ...]
    copies: tuple[tuple[Cell, Cell], ...]


def needed(steps: Sequence[Step], kept: Iterable[Cell]) -> list[Step]:
    """The steps without those that only make what nobody reads. kept: cells that are results."""
    wanted = {*kept}
    found: list[Step] = []
    for step in reversed(steps):
        if step.fails or not wanted.isdisjoint(step.writes):
            wanted.update(step.sources())
            found.append(step)
    return found[::-1]


def schedule(steps: Sequence[Step], finals: Sequence[tuple[Cell, Cell]]) -> Schedule:
    """Order the steps and share memory. finals: (target, the cell with its final content)."""
    ordered, commit = _order(steps)
    _lifetimes(ordered, finals)
    copies = _targets(ordered, commit, finals)
    for step in ordered:
        _work_in_place(step)
    slots = _place(ordered)
    return Schedule(tuple(ordered), commit, slots, tuple(copies))


@dataclass(frozen=True, slots=True)
class BodySchedule:
    """The steps of a region in order and the slots of its temporaries. apart: positions among
    what it carries whose new content is not written over the old."""

    steps: tuple[Step, ...]
    slots: tuple[Size, ...]
    apart: frozenset[int]


def schedule_body(steps: Sequence[Step], carried: Sequence[tuple[Cell, Cell]]) -> BodySchedule:
    """Share memory in a region, which runs in program order and writes nothing others see.

    carried: (cell at the start of a trip, cell with the content at its end).
    """
    apart = {*range(len(carried))} - written_over([(steps, carried)])
    for at in apart:
        carried[at][1].kind = OUTPUT
    for step in steps:
        _work_in_place(step)
    return BodySchedule(tuple(steps), _place(steps), frozenset(apart))


def written_over(regions: Sequence[tuple[Sequence[Step], Sequence[tuple[Cell, Cell]]]]) -> set[int]:
    """The positions among pairs (a cell before the region, the cell with what it holds after it)
    at which each of the regions writes the new content over the old, or leaves it; these cells
    become one memory."""
    found: set[int] = set()
    readers: list[dict[Cell, list[int]]] = []
    for steps, pairs in regions:
        for position, step in enumerate(steps):
            step.position = position
            for cell in step.writes:
                cell.maker = step
        _lifetimes(steps, pairs)
        readers.append(_readers(steps, pairs))
    for at in range(len(regions[0][1])):
        ends = [pairs[at] for _, pairs in regions]
        chains = [_chain(old, new, known[old], 0) for (old, new), known in zip(ends, readers)]
        if not all(chain or old is new for (old, new), chain in zip(ends, chains)):
            continue
        found.add(at)
        for (steps, _), (old, _), chain in zip(regions, ends, chains):
            for cell in chain:
                cell.rep = old
                cell.last = len(steps)
    return found


def base_of(cell: Cell) -> Cell | None:
    """The cell whose content the memory of this one must hold before it is written."""
    step = cell.maker
    return step.bases[step.writes.index(cell)] if step is not None and step.bases else None


def _order(steps: Sequence[Step]) -> tuple[list[Step], int]:
    for step in steps:
        for cell in step.writes:
            cell.maker = step
    early: set[Step] = set()
    pending = [step for step in steps if step.fails]
    while pending:
        step = pending.pop()
        if step in early:
            continue
        early.add(step)
        pending.extend([c.maker for c in step.sources() if c.maker is not None])
    ordered = [s for s in steps if s in early] + [s for s in steps if s not in early]
    for position, step in enumerate(ordered):
        step.position = position
    return ordered, len(early)


def _lifetimes(steps: Sequence[Step], finals: Sequence[tuple[Cell, Cell]]) -> None:
    for position, step in enumerate(steps):
        for cell in step.sources():
            cell.last = position
        for cell in step.writes:
            cell.first = position
            cell.last = max(cell.last, position)
    for _, content in finals:
        content.last = len(steps)
    for step in steps:
        for cell in step.writes:
            if cell.kind != TEMPORARY:
                cell.last = len(steps)


# -- targets


def _targets(
    steps: Sequence[Step], commit: int, finals: Sequence[tuple[Cell, Cell]]
) -> list[tuple[Cell, Cell]]:
    readers = _readers(steps, finals)
    copies: list[tuple[Cell, Cell]] = []
    for target, content in finals:
        if content is target:
            continue
        chain = [] if target.kind == DEFERRED else _chain(target, content, readers[target], commit)
        for cell in chain:
            cell.rep = target
            cell.last = len(steps)
        if not chain:
            copies.append((content, target))
    return copies


def _readers(steps: Sequence[Step], finals: Sequence[tuple[Cell, Cell]]) -> dict[Cell, list[int]]:
    """Positions of the steps that need what a target holds at first."""
    readers: dict[Cell, list[int]] = {target: [] for target, _ in finals}
    for position, step in enumerate(steps):
        for cell in step.sources():
            if cell in readers:
                readers[cell].append(position)
    return readers


def _chain(target: Cell, content: Cell, readers: list[int], commit: int) -> list[Cell]:
    """The cells that can be the target's own memory, the final content first; [] if none can."""
    chain: list[Cell] = []
    cell = content
    later = cell.last
    while True:
        step = cell.maker
        if cell.kind != TEMPORARY or cell.rep is not cell or step is None:
            return []
        if step.position < commit or (chain and cell.last > later):
            return []
        chain.append(cell)
        at = step.writes.index(cell)
        base = step.bases[at] if step.bases else None
        if base is not None and not _may_share(step, base, at):
            return []
        if base is None or base is target:
            others = [p for p in readers if p != step.position]
            free = all(p < step.position for p in others) and _may_share(step, target, at)
            return chain if free else []
        cell, later = base, step.position


def _may_share(step: Step, source: Cell, at: int) -> bool:
    """True if the step may write `at` over `source`, wherever it reads that."""
    return all(
        (i, at) in step.safe
        for i, cell in enumerate(step.reads)
        if cell.memory() is source.memory()
    )


# -- temporaries


def _work_in_place(step: Step) -> None:
    """Merge writes with operands that die here."""
    taken: set[Cell] = set()
    for at, cell in enumerate(step.writes):
        base = step.bases[at] if step.bases else None
        if base is not None and base.memory() is cell.memory():
            continue  # a target written in place
        if cell.memory().kind in (OUTPUT, TEMPORARY):
            candidates = [base] if base is not None else [step.reads[i] for i in _safe(step, at)]
            for source in candidates:
                memory = source.memory()
                if (
                    memory not in taken
                    and _dies(memory, step, cell)
                    and _may_share(step, source, at)
                ):
                    _merge(memory, cell.memory())
                    taken.add(cell.memory())
                    break
            else:
                if base is not None:
                    step.copied.append(at)
        elif base is not None:
            step.copied.append(at)


def _safe(step: Step, at: int) -> list[int]:
    return sorted(i for i, o in step.safe if o == at)


def _dies(memory: Cell, step: Step, cell: Cell) -> bool:
    return (
        memory.kind == TEMPORARY
        and memory.last == step.position
        and memory.first < step.position
        and memory is not cell.memory()
        and memory.size == cell.size
        and (cell.memory().kind == TEMPORARY or memory.form == cell.memory().form)
    )


def _merge(old: Cell, new: Cell) -> None:
    """`old` and all that shares its memory move into the memory of `new`."""
    old.rep = new
    if old.form != new.form:
        new.form = None  # no longer one type: only the arena may hold it
    new.first = min(new.first, old.first) if new.first >= 0 else old.first
    new.last = max(new.last, old.last)


def _place(steps: Sequence[Step]) -> tuple[Size, ...]:
    """Slots of the arena for the temporaries, reused as they die."""
    slots: list[Size] = []
    free: dict[Hashable, list[int]] = {}
    dying: dict[int, list[Cell]] = {}
    for position, step in enumerate(steps):
        for cell in step.writes:
            memory = cell.memory()
            if memory.kind == TEMPORARY and memory.slot < 0:
                memory.slot = _take(memory.size, slots, free)
                dying.setdefault(memory.last, []).append(memory)
        for memory in dying.pop(position, ()):
            free.setdefault(slots[memory.slot], []).append(memory.slot)
    return tuple(slots)


def _take(size: Size, slots: list[Size], free: dict[Hashable, list[int]]) -> int:
    found = free.get(size)
    if not found and isinstance(size, int):
        fitting = [s for s, f in free.items() if isinstance(s, int) and f and size < s <= 2 * size]
        found = free[min(fitting)] if fitting else None
    if found:
        return found.pop()
    slots.append(size)
    return len(slots) - 1
