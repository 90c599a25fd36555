"""Memory of traced arrays: a base with versions, and views as chains of steps over it.

NumPy's arrays are windows on memory that changes. Here memory is a `Base`, which holds the
graph value that is its present content; writing makes a new value. A view is a chain of steps:
reading replays them on the present content, writing runs them backwards.

Invariants: a step reads a part of its parent's elements, each at most once unless the step is
read-only; steps are immutable.
Not here: what user code writes to get a view (numpy/indexing.py, numpy/movement.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from tracemill.compiler.dims import Size
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.records import dataclass
from tracemill.compiler.types import DType

if TYPE_CHECKING:
    from .state import Trace

Strides = tuple[Size, ...]
_LARGE = 1_000_003  # what a symbol is taken as where sizes are compared


class Base:
    """Memory of one array that `trace` made. `value` is its content in logical order.

    strides: in elements, None where C-contiguous. input: index of the trace input whose memory
    this is. writeable: False for read-only arguments. layout_of: inputs whose strides in the
    example call these strides come from, C order too. order_of: inputs of which only the order
    of their axes counts.
    """

    __slots__ = (
        "input", "layout_of", "order_of", "strides", "trace", "value", "version", "writeable"
    )  # fmt: skip

    def __init__(
        self,
        trace: Trace,
        value: Value,
        strides: Strides | None = None,
        input: int | None = None,
        writeable: bool = True,
        layout_of: frozenset[int] = frozenset(),
    ) -> None:
        self.trace = trace
        self.value = value
        self.layout_of = layout_of
        self.order_of: frozenset[int] = frozenset()
        self.version = 0
        self.strides = strides
        self.input = input
        self.writeable = writeable


class Step(Protocol):
    """One step of a view."""

    @property
    def writeable(self) -> bool: ...

    def read(self, trace: Trace, parent: Value) -> Value:
        """The part of the parent's content."""
        ...

    def write(self, trace: Trace, parent: Value, part: Value) -> Value:
        """The parent's content with that part replaced."""
        ...

    def strides(self, trace: Trace, shape: tuple[Size, ...], strides: Strides) -> Strides | None:
        """Strides in elements of the view, given its parent's; None where there are none."""
        ...


@dataclass(frozen=True, slots=True)
class Slice:
    """A region with a start, a size and a step for each axis."""

    start: tuple[Size, ...]
    size: tuple[Size, ...]
    step: tuple[int, ...]
    writeable: bool = True

    def read(self, trace: Trace, parent: Value) -> Value:
        value: Value = trace.emit(
            "slice",
            parent,
            start=_now(trace, self.start),
            size=_now(trace, self.size),
            step=self.step,
        )
        return value

    def write(self, trace: Trace, parent: Value, part: Value) -> Value:
        value: Value = trace.emit(
            "update_slice", parent, part, start=_now(trace, self.start), step=self.step
        )
        return value

    def strides(self, trace: Trace, shape: tuple[Size, ...], strides: Strides) -> Strides | None:
        return tuple(stride * step for stride, step in zip(strides, self.step))


@dataclass(frozen=True, slots=True)
class Transpose:
    """The axes in another order."""

    perm: tuple[int, ...]
    writeable: bool = True

    def read(self, trace: Trace, parent: Value) -> Value:
        value: Value = trace.emit("transpose", parent, perm=self.perm)
        return value

    def write(self, trace: Trace, parent: Value, part: Value) -> Value:
        back = tuple(sorted(range(len(self.perm)), key=self.perm.__getitem__))
        value: Value = trace.emit("transpose", part, perm=back)
        return value

    def strides(self, trace: Trace, shape: tuple[Size, ...], strides: Strides) -> Strides | None:
        return tuple(strides[axis] for axis in self.perm)


@dataclass(frozen=True, slots=True)
class Reshape:
    """The same elements in order under another shape, where NumPy makes a view of it."""

    shape: tuple[Size, ...]
    writeable: bool = True

    def read(self, trace: Trace, parent: Value) -> Value:
        value: Value = trace.emit("reshape", parent, shape=_now(trace, self.shape))
        return value

    def write(self, trace: Trace, parent: Value, part: Value) -> Value:
        value: Value = trace.emit("reshape", part, shape=parent.tensor.shape)
        return value

    def strides(self, trace: Trace, shape: tuple[Size, ...], strides: Strides) -> Strides | None:
        wanted = _now(trace, self.shape)  # axes that match no run: of an empty or a plain array
        return reshaped_strides(shape, strides, wanted) or contiguous_strides(wanted)


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Elements repeated along axes; read-only."""

    shape: tuple[Size, ...]
    writeable: bool = False

    def read(self, trace: Trace, parent: Value) -> Value:
        value: Value = trace.emit("broadcast_to", parent, shape=_now(trace, self.shape))
        return value

    def write(self, trace: Trace, parent: Value, part: Value) -> Value:
        raise AssertionError("a broadcast view is read-only")

    def strides(self, trace: Trace, shape: tuple[Size, ...], strides: Strides) -> Strides | None:
        wanted = _now(trace, self.shape)
        lead = len(wanted) - len(shape)
        kept = tuple(s if mine == new else 0 for s, mine, new in zip(strides, shape, wanted[lead:]))
        return (0,) * lead + kept


@dataclass(frozen=True, slots=True)
class Part:
    """The real or the imaginary parts of complex elements."""

    name: str  # "real" or "imag"
    writeable: bool = True

    def read(self, trace: Trace, parent: Value) -> Value:
        value: Value = trace.emit(self.name, parent)
        return value

    def write(self, trace: Trace, parent: Value, part: Value) -> Value:
        real = part if self.name == "real" else trace.emit("real", parent)
        imag = part if self.name == "imag" else trace.emit("imag", parent)
        value: Value = trace.emit("complex", real, imag)
        return value

    def strides(self, trace: Trace, shape: tuple[Size, ...], strides: Strides) -> Strides | None:
        return tuple(2 * s for s in strides)


@dataclass(frozen=True, slots=True)
class Bits:
    """The same bytes as another element type of the same width."""

    dtype: DType
    writeable: bool = True

    def read(self, trace: Trace, parent: Value) -> Value:
        value: Value = trace.emit("bitcast", parent, dtype=self.dtype)
        return value

    def write(self, trace: Trace, parent: Value, part: Value) -> Value:
        value: Value = trace.emit("bitcast", part, dtype=parent.tensor.dtype)
        return value

    def strides(self, trace: Trace, shape: tuple[Size, ...], strides: Strides) -> Strides | None:
        return strides


def read_steps(trace: Trace, content: Value, steps: tuple[Step, ...]) -> Value:
    """The view's content."""
    for step in steps:
        content = step.read(trace, content)
    return content


def write_steps(trace: Trace, content: Value, steps: tuple[Step, ...], part: Value) -> Value:
    """The base's content with the view's content replaced by `part`."""
    parents = [content]
    for step in steps[:-1]:
        parents.append(step.read(trace, parents[-1]))
    for step, parent in zip(reversed(steps), reversed(parents)):
        part = step.write(trace, parent, part)
    return part


def contiguous_strides(shape: tuple[Size, ...]) -> Strides:
    """Strides in elements of a C-contiguous array."""
    strides: list[Size] = []
    step: Size = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def is_contiguous(shape: tuple[Size, ...], strides: Strides) -> bool:
    """True where the strides are those of a C-contiguous array (axes of size 1 aside)."""
    wanted = contiguous_strides(shape)
    return 0 in shape or all(size == 1 or a == b for size, a, b in zip(shape, strides, wanted))


def reshaped_strides(
    shape: tuple[Size, ...], strides: Strides, new: tuple[Size, ...]
) -> Strides | None:
    """Strides of the array under shape `new` without a copy; None where that takes one.

    Runs of old axes are matched with runs of new axes of the same number of elements; the old
    axes of a run must lie in memory one after another.
    """
    old = [(size, stride) for size, stride in zip(shape, strides) if size != 1]
    made: list[Size] = []
    at = 0
    taken = 0
    while taken < len(new):
        if new[taken] == 1:
            made.append(0)
            taken += 1
            continue
        if at >= len(old):
            return None
        old_end, new_end, old_size, new_size = at + 1, taken + 1, old[at][0], new[taken]
        while old_size != new_size:
            if _smaller(old_size, new_size) and old_end < len(old):
                old_size = old_size * old[old_end][0]
                old_end += 1
            elif new_end < len(new):
                new_size = new_size * new[new_end]
                new_end += 1
            else:
                return None
        for left, right in zip(old[at : old_end - 1], old[at + 1 : old_end]):
            if left[1] != right[0] * right[1]:
                return None
        run: list[Size] = []
        step = old[old_end - 1][1]
        for size in reversed(new[taken:new_end]):
            run.append(step)
            step = step * size
        made.extend(reversed(run))
        at, taken = old_end, new_end
    return tuple(made)


def fresh_strides(
    shapes: Sequence[tuple[Size, ...]], strides: Sequence[Strides], shape: tuple[Size, ...]
) -> Strides | None:
    """Strides NumPy gives to a new result of these operands, which broadcast to `shape`.

    None stands for C-contiguous. Two axes are in the order in which an operand has them, but
    where operands disagree, in C order; an axis of size 1 or a stride of 0 has no say.
    """
    rank = len(shape)
    rows = [
        (*(0,) * (rank - len(own)), *(0 if n == 1 else abs_size(s) for n, s in zip(own, steps)))
        for own, steps in zip(shapes, strides)
    ]
    order: list[int] = []  # the fastest first
    for axis in reversed(range(rank)):
        place = len(order)
        for at in range(len(order) - 1, -1, -1):
            swap = _goes_before(rows, axis, order[at])
            if swap is False:
                break
            place = at if swap else place
        order.insert(place, axis)
    return laid_out(tuple(reversed(order)), shape)


def _goes_before(rows: Sequence[Strides], axis: int, other: int) -> bool | None:
    """Whether an axis moves in smaller steps than one further in; None where that is unclear."""
    found = None
    for row in rows:
        if row[axis] != 0 and row[other] != 0:
            if not _smaller(row[axis], row[other]):
                return False
            found = True
    return found


def laid_out(order: tuple[int, ...], shape: tuple[Size, ...]) -> Strides | None:
    """Strides of axes that lie in this order, the slowest first; None for C order."""
    if order == tuple(range(len(shape))):
        return None
    made: list[Size] = [0] * len(shape)
    step: Size = 1
    for axis in reversed(order):
        made[axis] = step
        step = step * shape[axis]
    return tuple(made)


def argument_strides(
    shape: tuple[Size, ...], strides: tuple[int, ...], sizes: tuple[int, ...]
) -> tuple[Strides, tuple[int, ...] | None]:
    """Strides of an argument, symbolic where it is contiguous in another order of its axes.

    sizes: the shape in the example call. Also that order, None where the argument has gaps.
    """
    order = tuple(sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis)))
    made: list[Size] = list(strides)
    step: Size = 1
    number = 1
    for axis in reversed(order):
        if strides[axis] != number and sizes[axis] != 1:
            return strides, None
        made[axis] = step
        step, number = step * shape[axis], number * sizes[axis]
    return tuple(made), order


def abs_size(size: Size) -> Size:
    """The magnitude of a stride; a symbolic one counts by its sign in its leading term."""
    if isinstance(size, int):
        return abs(size)
    return -size if size.terms[0][1] < 0 else size


def _smaller(a: Size, b: Size) -> bool:
    """Whether a is a smaller number of elements than b, symbols taken as large."""
    difference = b - a
    if isinstance(difference, int):
        return difference > 0
    return (
        difference.evaluate({s: _LARGE + at for at, s in enumerate(sorted(difference.symbols()))})
        > 0
    )


def compared(a: Size, b: Size) -> int:
    """Negative, zero or positive as a is smaller than, equal to or greater than b."""
    return 0 if a == b else -1 if _smaller(a, b) else 1


def _now(trace: Trace, sizes: tuple[Size, ...]) -> tuple[Size, ...]:
    """The sizes over the symbols that remain."""
    return tuple([size if type(size) is int else trace.sizes.normal(size) for size in sizes])
