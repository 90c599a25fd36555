"""Constants that are filled in after compilation: kernels that differ in them share their code.

A `Constant` whose value is a `Slot` reads a word of the table `TABLE`, which lies among the
module's constants; whoever maps the code writes the words first.

Invariants: one kernel with slots in a module; a word holds the constant in its low bytes.
Not here: which constants may be slots, and what is written there (backends/cpu/templates.py).
"""

from __future__ import annotations

from llvmlite import ir

from ...compiler.kernel.kernel import Constant, walk
from ...compiler.types import DType
from .frame import Frame, constant
from .slot import TABLE, Slot
from .types import I64, Lane, register_type

_UNFILLED = 0x7FF4000000000000  # a signalling NaN, whose table cannot become zeroed memory


def slot_lane(frame: Frame, slot: Slot, dtype: DType) -> Lane:
    """What the word holds, the same in all lanes."""
    builder = frame.builder
    place = builder.gep(_table(frame), [constant(slot.number)], source_etype=I64)
    value = builder.load(place, typ=register_type(dtype))
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return Lane(dtype, (value,))


def _table(frame: Frame) -> ir.GlobalVariable:
    module = frame.builder.module
    if TABLE in module.globals:
        table: ir.GlobalVariable = module.globals[TABLE]
        return table
    slots = [
        s.value
        for s in walk(frame.kernel.body)
        if isinstance(s, Constant) and isinstance(s.value, Slot)
    ]
    typ = ir.ArrayType(I64, len(slots))
    table = ir.GlobalVariable(module, typ, TABLE)
    table.global_constant = True
    table.align = 64
    table.initializer = ir.Constant(typ, [_UNFILLED + slot.number for slot in slots])
    return table
