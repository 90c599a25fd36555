"""Order and memory of random steps: nothing live is overwritten, nothing is written too early.

Each step is modelled as reading all its cells and then writing fresh numbers; a cell's memory is
simulated. So any sharing that is wrong shows as a wrong number.

Not here: kernels.
"""

from __future__ import annotations

import itertools
import random

import pytest

from tracemill.compiler.passes.schedule import (
    FIXED,
    OUTPUT,
    TARGET,
    TEMPORARY,
    Cell,
    Schedule,
    Step,
    schedule,
)

SIZES = (64, 64, 128, 1000)


class Model:
    """Random steps over cells, and what each must read."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.value = itertools.count(1)
        self.inputs = [Cell(FIXED, "f", 64) for _ in range(2)]
        self.targets = [Cell(TARGET, "f", size) for size in SIZES[:3]]
        self.holds: dict[Cell, int] = {c: next(self.value) for c in [*self.inputs, *self.targets]}
        self.steps: list[Step] = []
        cells = [*self.inputs, *self.targets]
        for _ in range(self.rng.randint(1, 25)):
            cells += self._step(cells)
        made = [c for c in cells if c.kind == TEMPORARY]
        self.rng.shuffle(made)
        for cell in made[: self.rng.randint(0, 3)]:
            cell.kind = OUTPUT
        self.finals = []
        for target in self.targets:
            fitting = [c for c in made if c.size == target.size]
            if fitting and self.rng.random() < 0.7:
                self.finals.append((target, self.rng.choice(fitting)))

    def _step(self, cells: list[Cell]) -> list[Cell]:
        rng = self.rng
        reads = rng.sample(cells, min(len(cells), rng.randint(0, 3)))
        writes, bases, safe = [], [], set()
        for at in range(rng.randint(1, 2)):
            size = rng.choice(SIZES)
            base = None
            if rng.random() < 0.4:
                base = rng.choice(cells)
                size = base.size
            writes.append(Cell(TEMPORARY, rng.choice("fg") if base is None else base.form, size))
            bases.append(base)
            for i, cell in enumerate(reads):
                if cell.size == size and rng.random() < 0.5:
                    safe.add((i, at))
        step = Step(None, reads, writes, frozenset(safe), bases, rng.random() < 0.15)
        step.job = [next(self.value) for _ in writes]
        for cell, number in zip(writes, step.job):
            self.holds[cell] = number
        self.steps.append(step)
        return writes

    def run(self, found: Schedule) -> None:
        """Simulate the memory, row by row."""
        memory: dict[object, int] = {}
        for cell in [*self.inputs, *self.targets]:
            memory[self.place(cell)] = self.holds[cell]
        seen = set()
        for position, step in enumerate(found.steps):
            assert not step.fails or position < found.commit
            for at in step.copied:
                base = step.bases[at]
                assert base is not None
                self.store(memory, step.writes[at], memory[self.place(base)], position, found)
            for cell in step.reads:
                assert memory[self.place(cell)] == self.holds[cell], "read something else"
            for at, cell in enumerate(step.writes):
                base = step.bases[at]
                if base is not None:
                    assert memory[self.place(cell)] == self.holds[base], "base is gone"
                for i, source in enumerate(step.reads):
                    if self.place(source) == self.place(cell):
                        assert (i, at) in step.safe, "in place where it is not safe"
            places = [self.place(cell) for cell in step.writes]
            assert len(set(places)) == len(places)
            for cell, number in zip(step.writes, step.job):
                self.store(memory, cell, number, position, found)
            seen.add(step)
        assert seen == set(self.steps)
        for source, target in found.copies:
            memory[self.place(target)] = memory[self.place(source)]
        for target, content in self.finals:
            assert memory[self.place(target)] == self.holds[content]
        for target in self.targets:
            if target not in [t for t, _ in self.finals]:
                assert memory[self.place(target)] == self.holds[target]
        for cell in self.holds:
            if cell.kind == OUTPUT:
                assert memory[self.place(cell)] == self.holds[cell]
                assert cell.memory().form == cell.form

    def store(
        self, memory: dict[object, int], cell: Cell, number: int, position: int, found: Schedule
    ) -> None:
        place = cell.memory()
        assert place.kind != FIXED
        assert place.kind != TARGET or position >= found.commit, "written before the commit"
        memory[self.place(cell)] = number

    def place(self, cell: Cell) -> object:
        found = cell.memory()
        return ("slot", found.slot) if found.kind == TEMPORARY else found


@pytest.mark.parametrize("part", range(10))
def test_shared_memory_never_mixes_values(part: int) -> None:
    for seed in range(part * 150, part * 150 + 150):
        model = Model(seed)
        found = schedule(model.steps, model.finals)
        try:
            model.run(found)
        except AssertionError as problem:
            raise AssertionError(f"seed {seed}: {problem}") from None


def test_a_chain_lives_in_one_slot() -> None:
    start = Cell(FIXED, "f", 64)
    cells, steps = [start], []
    for _ in range(50):
        cells.append(Cell(TEMPORARY, "f", 64))
        steps.append(Step(None, [cells[-2]], [cells[-1]], frozenset([(0, 0)]), [None]))
    cells[-1].kind = OUTPUT
    assert schedule(steps, []).slots == ()


def test_a_variable_is_updated_where_it_is() -> None:
    variable, gradient = Cell(TARGET, "f", 64), Cell(FIXED, "f", 64)
    new = Cell(TEMPORARY, "f", 64)
    steps = [Step(None, [variable, gradient], [new], frozenset([(0, 0)]), [None])]
    found = schedule(steps, [(variable, new)])
    assert found.copies == ()
    assert new.memory() is variable


def test_a_variable_still_read_later_is_copied_to_at_the_end() -> None:
    variable = Cell(TARGET, "f", 64)
    new, other = Cell(TEMPORARY, "f", 64), Cell(OUTPUT, "f", 64)
    steps = [
        Step(None, [variable], [new], frozenset([(0, 0)]), [None]),
        Step(None, [variable, new], [other], frozenset(), [None]),
    ]
    assert schedule(steps, [(variable, new)]).copies == ((new, variable),)
