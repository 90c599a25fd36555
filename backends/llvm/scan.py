"""Scans as code: prefixes in order, each consumed where it is made.

Invariants: the order is the axis' own (backwards for `reverse`), one element at a time; lanes of
an enclosing vector loop scan side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ...compiler.kernel.kernel import Scan
from .folding import Folding, flat, unflat
from .frame import Frame, constant
from .indices import scalar_size
from .loops import counted, work_of


def emit_scan(frame: Frame, s: Scan) -> None:
    """Carry the prefix through a counted loop."""
    folding = Folding(frame, s.monoid, s.dtypes, frame.lanes.width)
    neutral = folding.neutral()
    end = scalar_size(frame, s.extent)

    def step(index: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
        if not s.reverse:
            return body(carried)
        last = frame.builder.sub(end, constant(1))
        with frame.iteration(s.axis, frame.builder.sub(last, index)):
            return body(carried)

    def body(carried: list[ir.Value]) -> Sequence[ir.Value]:
        frame.emit(s.body)
        element = folding.element((frame.values[y] for y in s.yields), folding.width)
        state = folding.combine(unflat(carried, neutral), element)
        frame.values.update(zip(s.names, state))
        frame.emit(s.then)
        return flat(state)

    work = work_of(frame, (*s.body, *s.then)) or 1
    counted(frame, s.axis, constant(0), end, 1, step, flat(neutral), work=work)
