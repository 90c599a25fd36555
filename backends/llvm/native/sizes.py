"""The size program: sizes, addresses and the guards between them, one row after another.

Invariants: rows read slots written before them; `//` and `%` by zero is a miss, not a trap; a
failing test ends the program.
Not here: where the first slots come from (`matching`), what the results are used for (`walker`).
"""

from __future__ import annotations

from .language import Ptr, Raw, address, at, cast, i64, offset, pointer, u8
from .layout import Size, SizeRow


def run_sizes(rows: SizeRow, count: i64, slots: Ptr[i64]) -> bool:
    """Run the rows; false if a test failed."""
    for number in range(count):
        row = at(rows, number)
        a = slots[row.a]
        b = slots[row.b]
        if row.op >= Size.EQUAL:
            if not _holds(row.op, a, b):
                return False
        elif row.op == Size.FLOORDIV or row.op == Size.MOD:
            if b == 0:
                return False
            slots[row.target] = a // b if row.op == Size.FLOORDIV else a % b
        elif row.op == Size.ADDRESS:
            slots[row.target] = address(offset(slots, row.a * 8))
        else:
            slots[row.target] = _result(row.op, a, b)
    return True


def _result(op: i64, a: i64, b: i64) -> i64:
    if op == Size.ADD:
        return a + b
    if op == Size.SUB:
        return a - b
    if op == Size.MUL:
        return a * b
    if op == Size.MAX:
        return a if a > b else b
    if op == Size.MIN:
        return a if a < b else b
    if op == Size.ALIGN:
        return (a + 63) // 64 * 64
    if op == Size.LOAD:
        return pointer(Ptr[i64], a)[0]
    return i64(cast(Ptr[u8], pointer(Raw, a))[0])


def _holds(op: i64, a: i64, b: i64) -> bool:
    if op == Size.EQUAL:
        return a == b
    if op == Size.DIFFERENT:
        return a != b
    if op == Size.LESS:
        return a < b
    if op == Size.LESS_EQUAL:
        return a <= b
    return b != 0 and a % b == 0
