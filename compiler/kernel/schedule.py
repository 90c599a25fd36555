"""How a kernel runs on a target: pure functions Kernel -> Kernel, each with its legality test.

Law: a schedule never changes what a kernel computes; interpreting before and after agrees bit
for bit. It only writes marks (vector, unroll, threads) or moves loops.

Invariants: a schedule that is not legal raises `IllegalSchedule`; decisions ask for hints and
costs, never for facts they would need to be right.
Not here: what is legal to compute where (lowering), machine code.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..dims import Dim
from ..records import replace
from ..types import BOOL, DType
from .kernel import (
    Checked,
    Constant,
    For,
    IndexValue,
    Kernel,
    Let,
    Load,
    Loop,
    Parallel,
    Reduce,
    Scan,
    Statement,
    Store,
    Update,
    bodies,
    value_dtypes,
    walk,
)
from .monoids import MONOIDS
from .symbols import map_body
from .target import Target


class IllegalSchedule(Exception):
    """A step that would change what the kernel computes."""


def find_axis(kernel: Kernel, axis: str) -> Parallel | Reduce:
    """The loop over `axis`. Raises IllegalSchedule."""
    for statement in walk(kernel.body):
        if isinstance(statement, Parallel | Reduce) and statement.axis == axis:
            return statement
    raise IllegalSchedule(f"no parallel or reduce axis {axis}")


def vectorize(kernel: Kernel, axis: str, lanes: int) -> Kernel:
    """Run `lanes` iterations of an axis at once.

    Legal for a parallel axis with no other vector axis in or around it and no ordered loop that
    stores in it; for a reduce axis that is not inside a vector axis. No loop inside may depend
    on the axis: lanes go together.
    """
    loop = find_axis(kernel, axis)
    if any(getattr(s, "vector", 0) for s in walk(loop.body)):
        raise IllegalSchedule(f"{axis} has a vector axis inside")
    if any(getattr(s, "vector", 0) for s in _around(kernel, axis)):
        raise IllegalSchedule(f"{axis} is inside a vector axis")
    if is_ragged(loop):
        raise IllegalSchedule(f"loops inside {axis} differ from lane to lane")
    return _mark(kernel, axis, vector=lanes)


def unroll(kernel: Kernel, axis: str, times: int) -> Kernel:
    """Do `times` (vector) iterations of an axis in one pass of its loop."""
    find_axis(kernel, axis)
    return _mark(kernel, axis, unroll=times)


def parallelize(kernel: Kernel, axis: str) -> Kernel:
    """Spread an axis over threads: it must be the kernel's only outermost loop."""
    loops = [s for s in kernel.body if bodies(s)]
    if len(loops) != 1 or not isinstance(loops[0], Parallel) or loops[0].axis != axis:
        raise IllegalSchedule(f"{axis} is not the only outermost parallel axis")
    if any(isinstance(s, Store | Update) for s in kernel.body):
        raise IllegalSchedule(f"stores beside {axis} would run once per chunk")
    return _mark(kernel, axis, threads=True)


def _mark(kernel: Kernel, axis: str, **marks: object) -> Kernel:
    def change(statement: Statement) -> Statement:
        if isinstance(statement, Parallel | Reduce) and statement.axis == axis:
            return replace(statement, **marks)  # type: ignore[arg-type]
        return statement

    return replace(kernel, body=map_body(kernel.body, change))


def _around(kernel: Kernel, axis: str) -> list[Statement]:
    """The loops around an axis, the outermost first."""
    stack: list[tuple[tuple[Statement, ...], list[Statement]]] = [(kernel.body, [])]
    while stack:
        body, outer = stack.pop()
        for statement in body:
            if getattr(statement, "axis", None) == axis:
                return outer
            for inner in bodies(statement):
                stack.append((inner, [*outer, statement]))
    return []


# -- the default


def default_schedule(kernel: Kernel, target: Target) -> Kernel:
    """Threads over the only outermost parallel axis; vectors where memory is contiguous."""
    loops = [s for s in kernel.body if bodies(s)]
    if len(loops) == 1 and isinstance(loops[0], Parallel):
        if not any(isinstance(s, Store | Update) for s in kernel.body):
            kernel = parallelize(kernel, loops[0].axis)
    if target.vector_bits:
        for axis, times in _vector_axes(kernel.body, target.vector_bits // 64):
            kernel = vectorize(kernel, axis, vector_lanes(find_axis(kernel, axis), target))
            if times > 1:
                kernel = unroll(kernel, axis, times)
    return kernel


def vector_lanes(loop: Parallel | Reduce, target: Target) -> int:
    """Lanes of a vector of the widest type among the loop's values; bools, literals and what
    only says where to load do not count."""
    dtypes = value_dtypes((loop,))
    aside = {s.name for s in walk(loop.body) if isinstance(s, IndexValue | Constant)}
    for s in walk((loop,)):
        if isinstance(s, Reduce) and MONOIDS[s.monoid].indexed:
            aside |= set(s.names[1::2])  # where the value is
        if isinstance(s, Load | Store | Update):
            aside |= {i.value for i in s.index if isinstance(i, Checked)}
    bits = [d.bits for name, d in dtypes.items() if name not in aside and d.bits > 1]
    widest = max((b // 2 if b == 128 else b for b in bits), default=_bits_of_nothing(dtypes))
    return target.vector_bits // widest


def _bits_of_nothing(dtypes: Mapping[str, DType]) -> int:
    """Where nothing has a width: bools alone are bytes in memory."""
    return 8 if BOOL in dtypes.values() else 64


Choice = tuple[str, int]  # axis, unrolling
COLUMNS = 8  # vectors of columns that a column reduction over all of them takes at once
RESULTS = 4  # vectors of results of a row that are reduced side by side


def _vector_axes(body: tuple[Statement, ...], lanes: int, outermost: bool = True) -> list[Choice]:
    """The axes to vectorise: in each nest the innermost that most accesses run along."""
    found: list[Choice] = []
    for statement in body:
        if isinstance(statement, Parallel | Reduce):
            found.extend(_in_nest(statement, lanes, outermost))
        elif bodies(statement):
            for inner in bodies(statement):
                found.extend(_vector_axes(inner, lanes, False))
    return found


def _in_nest(loop: Parallel | Reduce, lanes: int, outermost: bool) -> list[Choice]:
    inner = [s for s in loop.body if bodies(s)]
    small = isinstance(loop.extent, int) and loop.extent < max(2, lanes // 2)
    if isinstance(loop, Reduce):
        good = outermost or _runs_along(loop)
        return [(loop.axis, 1)] if good and not small and _is_plain(loop) else []
    if not inner:
        return [] if small else [(loop.axis, 1)]
    below = _vector_axes(loop.body, lanes, False)
    if below or small:
        return below
    if is_ragged(loop):
        return [(s.axis, 1) for s in inner if isinstance(s, Reduce) and _is_plain(s)]
    if all(isinstance(s, Loop) for s in inner):
        return [(loop.axis, RESULTS)]  # several vectors hide how long one trip takes
    if all(isinstance(s, Scan) for s in inner):
        return [(loop.axis, COLUMNS)] if outermost and _lies_along(loop) else []
    if all(isinstance(s, Parallel | Reduce) for s in inner):
        light = sum(isinstance(s, Let) for s in walk(loop.body)) <= 8
        if not any(isinstance(s, Reduce) for s in inner):
            return [(loop.axis, 1)]
        if outermost:
            return [(loop.axis, COLUMNS if light else 2)]
        return [(loop.axis, RESULTS if light else 1)]
    return []


def _is_plain(loop: Reduce) -> bool:
    return not loop.tree and not any(bodies(s) for s in loop.body)


def is_ragged(loop: Parallel | Reduce) -> bool:
    """True where a loop inside is longer in some iterations than in others."""
    sizes = [s.extent for s in walk(loop.body) if isinstance(s, Parallel | For | Reduce | Scan)]
    return any(isinstance(size, Dim) and loop.axis in size.symbols() for size in sizes)


def _lies_along(loop: Parallel) -> bool:
    """True where all that an iteration touches lies beside what the next one does."""
    for statement in walk(loop.body):
        if isinstance(statement, Load | Store | Update):
            *outer, last = statement.index or (0,)
            used = [i for i in outer if isinstance(i, Dim) and loop.axis in i.symbols()]
            if used or any(isinstance(i, Checked) for i in statement.index):
                return False
            if not isinstance(last, Dim) or last.coefficient(loop.axis) != 1:
                return False
    return True


def _runs_along(loop: Parallel | Reduce) -> bool:
    """True where no access steps over memory in big strides along the loop's axis."""
    for statement in walk(loop.body):
        if isinstance(statement, Load | Store | Update):
            for at, index in enumerate(statement.index):
                last = at == len(statement.index) - 1
                if isinstance(index, Dim) and loop.axis in index.symbols() and not last:
                    return False
                if isinstance(index, Checked) and not last:
                    return False
    return True
