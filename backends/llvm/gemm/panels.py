"""The kernel that packs a right operand into panels.

Invariants: the range of a call is panels, outer point by outer point; each is written whole,
zeros beyond the last column included.
"""

from __future__ import annotations

from llvmlite import ir

from ....compiler.dims import product
from ....compiler.kernel.contraction import PANEL_BYTES, panel_columns
from ....compiler.kernel.packing import Packing
from ..control import WORK_BETWEEN_POLLS, poll
from ..frame import Frame, constant
from ..indices import scalar_size
from ..loops import counted
from .code import advance, least, number
from .copying import Copying
from .operands import at_outer, place_of
from .packed import copy_block


def emit_packing(frame: Frame, found: Packing, name: str) -> None:
    """The whole body of the kernel's function."""
    b = frame.builder
    panels = scalar_size(frame, found.panels)
    rows = scalar_size(frame, found.k.extent)
    passes = scalar_size(frame, product(tuple(a.extent for a in found.sums)))

    def panel(at: ir.Value, _: list[ir.Value]) -> tuple[()]:
        poll(frame, constant(WORK_BETWEEN_POLLS))

        def stretch(s: ir.Value, _: list[ir.Value]) -> tuple[()]:
            line = b.mul(b.add(b.mul(at, passes), s), rows)
            target = advance(
                b, frame.buffers[found.target].pointer, b.mul(line, number(PANEL_BYTES))
            )
            with at_outer(frame, found.sums, s):
                _pack(frame, found, b.urem(at, panels), target, name)
            return ()

        with at_outer(frame, found.outer, b.udiv(at, panels)):
            counted(frame, "(stretch)", number(0), passes, 1, stretch)
        return ()

    counted(frame, "(panel)", frame.begin, frame.end, 1, panel)


def _pack(frame: Frame, found: Packing, panel: ir.Value, target: ir.Value, name: str) -> None:
    """The rows of one panel, through k."""
    b = frame.builder
    columns = number(panel_columns(found.dtype))
    source = place_of(frame, (found.n, found.k), found.source)
    down, along = source.stride(frame, found.k), source.stride(frame, found.n)
    first = b.mul(panel, columns)
    width = least(b, b.sub(scalar_size(frame, found.n.extent), first), columns)
    start = advance(b, source.pointer, b.mul(first, along))
    copy_block(
        frame, name, Copying(source.dtype, found.dtype, PANEL_BYTES),
        (source.runs_along(found.n), source.runs_along(found.k)),
        [start, down, along, scalar_size(frame, found.k.extent), width, columns, target],
    )  # fmt: skip
