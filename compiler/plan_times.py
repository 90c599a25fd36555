"""How long each kernel of a plan takes in one call, as its rows estimate, for sizes that are given.

Invariants: pure; what depends on a size that is not given is left out, and so is what a branch may
skip: None is the time of a kernel that has no other launches. 0 is that of one that this call does
not run, such as the form of a product that larger sizes take.
Not here: where the estimates come from (kernel/cost.py), what is made of them (the back ends).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from .dims import Dim, Size
from .plan import BufferSpec, ExecutionPlan, Launch, Loop, Origin, Row

_ANY_TRIPS = 100  # of a loop that data ends
_OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "max": max,
    "min": min,
}
_GIVEN = (Origin.ARGUMENT, Origin.CAPTURED, Origin.SCALAR)


def kernel_times(
    plan: ExecutionPlan, params: Sequence[Sequence[Size]], hints: Mapping[str, int]
) -> list[int | None]:
    """Nanoseconds on one thread, for each kernel, None where they are not known. params: the shapes
    of the plan's inputs over the symbols whose sizes in this call `hints` gives."""
    sizes = _sizes(plan, params, hints)
    times: list[int | None] = [None] * len(plan.kernels)
    for row, trips in _launches(plan.rows, sizes, 1):
        work = sizes[row.work]
        if work is not None:
            times[row.kernel] = (times[row.kernel] or 0) + trips * work
    return times


def _launches(
    rows: Iterable[Row], sizes: Sequence[int | None], trips: int
) -> Iterable[tuple[Launch, int]]:
    for row in rows:
        if isinstance(row, Launch):
            yield row, trips
        elif isinstance(row, Loop):
            known = None if row.length is None else sizes[row.length]
            inner = _ANY_TRIPS if known is None else known
            yield from _launches(row.body, sizes, trips * inner)


def _sizes(
    plan: ExecutionPlan, params: Sequence[Sequence[Size]], hints: Mapping[str, int]
) -> list[int | None]:
    """The slots of the plan's size program, None where a size is not given."""
    slots: list[int | None] = []
    for row in plan.sizes:
        if row.op == "const":
            slots.append(row.a)
        elif row.op == "extent":
            slots.append(_extent(plan.buffers[row.a], row.b, params, hints))
        else:
            a = slots[row.a]
            if row.op == "align":
                slots.append(None if a is None else -(-a // 64) * 64)
                continue
            b = slots[row.b]
            operation = _OPERATIONS[row.op]
            slots.append(None if a is None or b is None else operation(a, b))
    return slots


def _extent(
    buffer: BufferSpec, axis: int, params: Sequence[Sequence[Size]], hints: Mapping[str, int]
) -> int | None:
    if buffer.origin not in _GIVEN or buffer.index >= len(params):
        return None
    shape = params[buffer.index]
    if axis >= len(shape):
        return None
    size = shape[axis]
    if not isinstance(size, Dim):
        return size
    return size.evaluate(hints) if size.symbols() <= hints.keys() else None
