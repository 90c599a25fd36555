"""A folded size program computes what the whole one does."""

from __future__ import annotations

import numpy as np
import pytest

from tracemill.backends.export.folding import Slots, folded, live
from tracemill.backends.llvm.native.encoder import Frame, SizeSpec
from tracemill.backends.llvm.native.layout import Size

_STEPS = {
    Size.ADD: lambda a, b: a + b,
    Size.SUB: lambda a, b: a - b,
    Size.MUL: lambda a, b: a * b,
    Size.FLOORDIV: lambda a, b: a // b,
    Size.MOD: lambda a, b: a % b,
    Size.MAX: max,
    Size.MIN: min,
    Size.ALIGN: lambda a, b: -(-a // 64) * 64,
}
_TESTS = {
    Size.EQUAL: lambda a, b: a == b,
    Size.DIFFERENT: lambda a, b: a != b,
    Size.LESS: lambda a, b: a < b,
    Size.LESS_EQUAL: lambda a, b: a <= b,
    Size.DIVISIBLE: lambda a, b: b != 0 and a % b == 0,
}


def run(rows: list[SizeSpec], values: dict[int, int], slots: Slots) -> dict[int, int] | None:
    """What native code computes; None where a test fails."""
    values = dict(values)

    def value(handle: int) -> int:
        fixed = slots.frame.constant_value(handle)
        return values[handle] if fixed is None else fixed

    for row in rows:
        a, b = value(row.a), value(row.b)
        if row.op in (Size.FLOORDIV, Size.MOD) and b == 0:
            return None
        if row.op in _STEPS:
            values[row.target] = _STEPS[row.op](a, b)
        elif not _TESTS[row.op](a, b):
            return None
    return values


@pytest.mark.parametrize("known_share", [0.0, 0.5, 1.0])
def test_random_programs(rng: np.random.Generator, known_share: float) -> None:
    for _ in range(100):
        frame = Frame()
        inputs = [frame.slot() for _ in range(4)]
        start = {handle: int(rng.integers(-3, 9)) for handle in inputs}
        known = {h: v for h, v in start.items() if rng.random() < known_share}
        handles = [*inputs, *(frame.constant(int(c)) for c in (0, 1, 5))]
        rows = []
        for _ in range(20):
            a, b = (handles[i] for i in rng.integers(0, len(handles), 2))
            if rng.random() < 0.15:
                rows.append(SizeSpec(list(_TESTS)[rng.integers(len(_TESTS))], a, b))
            else:
                handles.append(frame.slot())
                op = list(_STEPS)[rng.integers(len(_STEPS))]
                rows.append(SizeSpec(op, a, b, handles[-1]))
        slots = Slots(frame, dict(known))
        needed = {handles[-1], handles[-2]}
        whole = run(rows, start, slots)
        left = live(folded(rows, slots), needed)
        part = run(left, {**start, **slots.values}, slots)
        if whole is not None:
            assert part is not None
            assert all(part.get(h, slots.value(h)) == whole.get(h, slots.value(h)) for h in needed)
        if known_share == 1.0 and whole is not None:
            assert not left


def test_a_failing_test_stays() -> None:
    frame = Frame()
    slots = Slots(frame)
    row = SizeSpec(Size.EQUAL, frame.constant(1), frame.constant(2))
    assert folded([row], slots) == [row]
