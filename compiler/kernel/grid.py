"""A kernel on a grid of thread blocks: which axes are blocks, which are threads, where they meet.

Three shapes. A nest whose points need nothing from each other: one thread a point, `POINTS` in a
block. Rows (a nest whose body reduces, or has several loops): one block of `ROW` threads a row,
its loops over the threads, its reductions in shared memory (block_reduce.py). All else: one
block, so that the phases of the kernel can wait for each other.

What is written on the kernel: ``bind grid.x`` on at most one outermost axis, whose iterations
are spread over the blocks; ``bind block.x`` on axes spread over a block's threads. Both are
strided, so any number of blocks and threads computes the same. Statements of a block outside
its ``block.x`` nests are done by every thread alike; they store nothing.

Barriers are not statements: `segments` says where they stand. A barrier follows every nest and
every run of common statements that loads; so what a thread stores, all others see afterwards.

Invariants: as for every schedule: interpreting before and after agrees bit for bit.
Not here: shared memory of reductions (block_reduce.py), code, the emulator (backends/cuda).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..dims import Dim, Size, minimum, product
from ..records import dataclass, replace
from .block_reduce import block_reduce
from .fresh import fresh
from .kernel import (
    Check,
    Constant,
    For,
    If,
    IndexValue,
    Kernel,
    Let,
    Load,
    Local,
    Loop,
    Parallel,
    Reduce,
    Scan,
    Statement,
    Store,
    Update,
    bodies,
    body_fields,
    walk,
)
from .library import call_of
from .schedule import IllegalSchedule
from .sorting import is_sorting
from .symbols import map_body, substitute_sizes
from .verifier import verify_kernel

Body = tuple[Statement, ...]
GRID, BLOCK = "grid.x", "block.x"
POINTS, ROW = 256, 64
_SMALL = 16  # elements of a reduction that one thread folds alone


@dataclass(frozen=True, slots=True)
class GridKernel:
    """A kernel with its axes bound; `blocks` have work (fewer compute it too), of `threads`."""

    kernel: Kernel
    blocks: Size
    threads: int


def map_to_grid(kernel: Kernel) -> GridKernel:
    """Bind the axes of a kernel, however it was scheduled before. Raises IllegalSchedule for a
    sort, a search or a call, which have no form on a grid."""
    if is_sorting(kernel) or call_of(kernel) is not None:
        raise IllegalSchedule(f"@{kernel.name} has no form on a grid")
    kernel = _without_marks(kernel)
    taken = _names(kernel)
    loops = [s for s in kernel.body if bodies(s)]
    alone = not any(isinstance(s, Store | Update | Check) for s in kernel.body)
    if len(loops) == 1 and isinstance(loops[0], Parallel) and alone:
        around = tuple(s for s in kernel.body if s is not loops[0])
        axes, body = _nest(loops[0])
        if _is_point(body):
            bound, blocks, threads = *_points(axes, body, taken), POINTS
        else:
            bound, blocks, threads = *_rows(axes, body, taken), ROW
        made = GridKernel(replace(kernel, body=(*around, bound)), blocks, threads)
    else:
        threads = POINTS if any(isinstance(s, Parallel) for s in walk(kernel.body)) else ROW
        made = GridKernel(replace(kernel, body=_in_block(kernel.body, taken)), 1, threads)
    verify_kernel(made.kernel)
    verify_binds(made.kernel)
    return made


def _without_marks(kernel: Kernel) -> Kernel:
    def change(s: Statement) -> Statement:
        if isinstance(s, Parallel):
            return replace(s, vector=0, unroll=1, threads=False, bind=None)
        return replace(s, vector=0, unroll=1) if isinstance(s, Reduce) else s

    return replace(kernel, body=map_body(kernel.body, change))


def _names(kernel: Kernel) -> set[str]:
    """Every name in use, of whatever kind."""
    found = {p.name for p in kernel.params} | set(kernel.dims)
    for s in walk(kernel.body):
        found.update(getattr(s, "names", ()))
        found.update(n for n in (getattr(s, "name", None), getattr(s, "axis", None)) if n)
    return found


# -- the three shapes

_VALUES = Let | Constant | IndexValue | Load


def _nest(loop: Parallel) -> tuple[list[Parallel], Body]:
    """The axes of loops that hold nothing but values and one loop, and what is inside all."""
    axes: list[Parallel] = []
    values: list[Statement] = []
    body: Body = (loop,)
    while body and isinstance(body[-1], Parallel):
        inner = body[-1]
        outer = {a.axis for a in axes}
        free = not isinstance(inner.extent, Dim) or outer.isdisjoint(inner.extent.symbols())
        if not free or not all(isinstance(s, _VALUES) for s in body[:-1]):
            break
        values += body[:-1]
        axes.append(inner)
        body = inner.body
    return axes, (*values, *body)


def _is_point(body: Body) -> bool:
    """Whether one thread should do this: no loop to spread, no reduction worth a block."""
    for s in walk(body):
        if isinstance(s, Parallel):
            return False
        if isinstance(s, Reduce) and not s.loose:
            if not isinstance(s.extent, int) or s.extent > _SMALL:
                return False
    return True


def _points(axes: list[Parallel], body: Body, taken: set[str]) -> tuple[Parallel, Size]:
    total = _product(axes)
    block, thread = fresh("block", taken), fresh("thread", taken)
    first = Dim.symbol(block) * POINTS
    body = substitute_sizes(body, _places(axes, first + Dim.symbol(thread)))
    whole = isinstance(total, int) and total % POINTS == 0
    count = POINTS if whole else minimum(total - first, POINTS)
    inner = Parallel(thread, count, body, bind=BLOCK)
    blocks = (total + POINTS - 1) // POINTS
    return Parallel(block, blocks, (inner,), bind=GRID), blocks


def _rows(axes: list[Parallel], body: Body, taken: set[str]) -> tuple[Parallel, Size]:
    row = fresh("row", taken)
    rows = _product(axes)
    body = _in_block(substitute_sizes(body, _places(axes, Dim.symbol(row))), taken)
    return Parallel(row, rows, body, bind=GRID), rows


def _product(axes: list[Parallel]) -> Size:
    return product(tuple(a.extent for a in axes))


def _places(axes: list[Parallel], point: Size) -> dict[str, Size]:
    """Each axis' index at the `point` of the nest, counted in row-major order."""
    found: dict[str, Size] = {}
    below: Size = 1
    for at, axis in reversed(list(enumerate(axes))):
        index = point // below
        found[axis.axis] = index % axis.extent if at else index
        below = below * axis.extent
    return found


# -- the code of a block


def _in_block(body: Body, taken: set[str]) -> Body:
    """A body as the common code of a block: loops over its threads, effects by one thread."""
    out: list[Statement] = []
    effects: list[Statement] = []

    def one_thread() -> None:
        if effects:
            out.append(Parallel(fresh("first", taken), 1, tuple(effects), bind=BLOCK))
            effects.clear()

    for s in body:
        if isinstance(s, Store | Update | Check | Scan) or _is_serial(s):
            effects.append(s)
            continue
        one_thread()
        if isinstance(s, Parallel):
            out.append(_threads(s, taken))
        elif isinstance(s, Reduce) and not s.tree:
            out += block_reduce(s, taken)
        elif isinstance(s, Local):
            out.append(replace(s, memory="shared"))
        elif isinstance(s, For | Loop | If):
            inner = {name: _in_block(getattr(s, name), taken) for name in body_fields(s)}
            out.append(replace(s, **inner))  # type: ignore[arg-type]
        else:
            out.append(s)
    one_thread()
    return tuple(out)


def _is_serial(s: Statement) -> bool:
    """An ordered loop with effects and nothing to spread over threads, nor a value for all."""
    if not isinstance(s, For | If) or (isinstance(s, If) and s.names):
        return False
    return not any(isinstance(inner, Parallel | Reduce) for inner in walk((s,)))


def _threads(loop: Parallel, taken: set[str]) -> Parallel:
    """A loop over threads; nested loops around nothing else become one."""
    axes, body = _nest(loop)
    if len(axes) == 1:
        return replace(loop, bind=BLOCK)
    thread = fresh("thread", taken)
    body = substitute_sizes(body, _places(axes, Dim.symbol(thread)))
    return Parallel(thread, _product(axes), body, bind=BLOCK)


# -- where threads meet


def is_nest(s: Statement) -> bool:
    """Whether a statement is spread over the threads of a block."""
    return isinstance(s, Parallel) and s.bind == BLOCK


def has_nest(s: Statement) -> bool:
    """Whether a statement of a block's common code contains code for its threads."""
    return any(is_nest(inner) or getattr(inner, "bind", None) == GRID for inner in walk((s,)))


def segments(body: Body, repeated: bool) -> Iterator[tuple[Body, bool]]:
    """A block's code in pieces, and whether a barrier follows each.

    repeated: the body of an ordered loop, whose iterations meet each other. A body that is one
    piece needs no barrier elsewhere: iterations of a grid axis are independent.
    """
    pieces: list[tuple[list[Statement], bool]] = []
    for s in body:
        if is_nest(s):
            pieces.append(([s], True))
        elif has_nest(s):
            pieces.append(([s], False))
        elif pieces and not has_nest(pieces[-1][0][0]):
            pieces[-1] = ([*pieces[-1][0], s], pieces[-1][1] or _loads(s))
        else:
            pieces.append(([s], _loads(s)))
    meeting = sum(barrier for _, barrier in pieces)
    for statements, barrier in pieces:
        yield tuple(statements), barrier and (repeated or meeting > 1)


def _loads(s: Statement) -> bool:
    return any(isinstance(inner, Load) for inner in walk((s,)))


def verify_binds(kernel: Kernel) -> None:
    """Raise IllegalSchedule where threads of a block could not meet, or would store alike."""
    _check_block(kernel.body, outermost=True)


def _check_block(body: Body, outermost: bool) -> None:
    for s in body:
        if isinstance(s, Store | Update | Check):
            raise IllegalSchedule("every thread of a block would store or check the same")
        if isinstance(s, Local) and s.memory != "shared":
            raise IllegalSchedule(f"local {s.name} of a block is not in shared memory")
        if is_nest(s):
            _check_thread(s)
        elif isinstance(s, Parallel):
            if s.bind != GRID or not outermost:
                raise IllegalSchedule(f"axis {s.axis} is bound to {s.bind} inside a block")
            _check_block(s.body, outermost=False)
        else:
            for inner in bodies(s):
                _check_block(inner, outermost=False)


def _check_thread(nest: Statement) -> None:
    for inner in bodies(nest):
        for s in walk(inner):
            if isinstance(s, Parallel) and s.bind is not None:
                raise IllegalSchedule(f"axis {s.axis} is bound inside one thread's code")
            if isinstance(s, Local) and s.memory == "shared":
                raise IllegalSchedule(f"local {s.name} of one thread is in shared memory")
