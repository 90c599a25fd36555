"""Movement ops as index maps: where an element of the result comes from.

One row per op, by name: this is the lowering table of the ops whose structure is MOVEMENT. A
row answers two questions: the exact one (`parts`, used by lowering: the operand elements, with
the ranges in which each applies) and the coarse one (`trace`, used by fusion: which loop axis
feeds each operand axis, without arithmetic).

Invariants: for a result index in range the first part whose bounds hold gives the element; the
last part does where no earlier one did.
Not here: loads, masks, loops.
"""

from __future__ import annotations

from collections.abc import Callable

from ..dims import Size, floor_divide, modulo
from ..ir.graph import Node
from ..ops.definition import Structure
from ..records import dataclass, replace

Shape = tuple[Size, ...]
Indices = tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """Operand element that gives a result element where ``0 <= i < n`` for each (i, n)."""

    operand: int
    index: Indices
    bounds: tuple[tuple[Size, Size], ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """For one operand: the result axis behind each of its axes, -1 for none, -2 for several.

    exact: every element of the operand is used, at that index (a permutation or broadcast).
    wasteful: evaluated at many points where it is not used.
    """

    axes: tuple[int, ...]
    exact: bool
    wasteful: bool = False


@dataclass(frozen=True, slots=True)
class Movement:
    """One row of the table."""

    parts: Callable[[Node, Indices], tuple[Part, ...]]
    trace: Callable[[Node], tuple[Trace, ...]]
    view: bool = False  # contiguous memory serves as it is


def segments(a: Shape, b: Shape) -> list[tuple[range, range]]:
    """Cut two shapes with equal numbers of elements into shortest runs of equal products."""
    cuts: list[tuple[range, range]] = []
    i = j = 0
    while i < len(a) or j < len(b):
        if i < len(a) and a[i] == 1:
            cuts.append((range(i, i + 1), range(j, j)))
            i += 1
        elif j < len(b) and b[j] == 1:
            cuts.append((range(i, i), range(j, j + 1)))
            j += 1
        else:
            ends = _run(a, b, i, j)
            cuts.append((range(i, ends[0]), range(j, ends[1])))
            i, j = ends
    return cuts


def _run(a: Shape, b: Shape, i: int, j: int) -> tuple[int, int]:
    """Ends of the shortest runs from i and j with equal products, or of everything."""
    left: Size = a[i] if i < len(a) else 1
    right: Size = b[j] if j < len(b) else 1
    i, j = min(i + 1, len(a)), min(j + 1, len(b))
    while left != right:
        grow_left = i < len(a) and (j == len(b) or _smaller(left, right))
        if grow_left:
            left, i = left * a[i], i + 1
        elif j < len(b):
            right, j = right * b[j], j + 1
        else:
            return len(a), len(b)
    return i, j


def _smaller(left: Size, right: Size) -> bool:
    if isinstance(left, int) and isinstance(right, int):
        return left < right
    return left != 0 and modulo(right, left) == 0  # of nothing, any run will do


def unflatten(linear: Size, shape: Shape) -> Indices:
    """The index tuple of the linear position in row-major order."""
    index: list[Size] = []
    rest = linear
    for at in range(len(shape) - 1, -1, -1):
        size = shape[at] or 1  # nothing is ever read along an empty axis
        index.append(rest if at == 0 else modulo(rest, size))
        rest = floor_divide(rest, size) if at else rest
    return tuple(reversed(index))


def flatten(index: Indices, shape: Shape) -> Size:
    """The linear position of an index tuple in row-major order."""
    linear: Size = 0
    for i, n in zip(index, shape):
        linear = linear * n + i
    return linear


def is_reindexing(operand: Shape, result: Shape) -> bool:
    """True for a reshape that splits axes or adds and drops axes of size 1, nothing else."""
    return all(len(mine) <= 1 for mine, _ in segments(operand, result))


def _reshape_parts(node: Node, index: Indices) -> tuple[Part, ...]:
    source: Shape = node.operands[0].tensor.shape
    target: Shape = node.result.tensor.shape
    out: list[Size] = [0] * len(source)
    for mine, theirs in segments(source, target):
        shape = tuple(target[t] for t in theirs)
        linear = flatten(tuple(index[t] for t in theirs), shape)
        inner = unflatten(linear, tuple(source[m] for m in mine))
        for at, value in zip(mine, inner):
            out[at] = value if source[at] != 1 else 0
    return (Part(0, tuple(out)),)


def _reshape_trace(node: Node) -> tuple[Trace, ...]:
    source, target = node.operands[0].tensor.shape, node.result.tensor.shape
    axes = [-1] * len(source)
    exact = True
    for mine, theirs in segments(source, target):
        if len(mine) == 1 and len(theirs) == 1:
            axes[mine[0]] = theirs[0]
        elif len(theirs):
            for at in mine:
                axes[at] = -2
                exact = False
    return (Trace(tuple(axes), exact),)


def _transpose_parts(node: Node, index: Indices) -> tuple[Part, ...]:
    out: list[Size] = [0] * len(index)
    for at, axis in enumerate(node.attrs["perm"]):
        out[axis] = index[at]
    return (Part(0, tuple(out)),)


def _transpose_trace(node: Node) -> tuple[Trace, ...]:
    axes = [0] * len(node.attrs["perm"])
    for at, axis in enumerate(node.attrs["perm"]):
        axes[axis] = at
    return (Trace(tuple(axes), True),)


def broadcast_index(index: Indices, source: Shape, target: Shape) -> Indices:
    """The operand index behind a result index when the operand broadcasts to the result."""
    if source == target:
        return index
    skip = len(target) - len(source)
    return tuple(
        0 if n == 1 and target[at + skip] != 1 else index[at + skip] for at, n in enumerate(source)
    )


def broadcast_axes(source: Shape, target: Shape) -> tuple[int, ...]:
    """The result axis behind each operand axis, -1 where the operand is stretched."""
    skip = len(target) - len(source)
    return tuple(
        -1 if n == 1 and target[at + skip] != 1 else at + skip for at, n in enumerate(source)
    )


def _broadcast_parts(node: Node, index: Indices) -> tuple[Part, ...]:
    source, target = node.operands[0].tensor.shape, node.result.tensor.shape
    return (Part(0, broadcast_index(index, source, target)),)


def _broadcast_trace(node: Node) -> tuple[Trace, ...]:
    axes = broadcast_axes(node.operands[0].tensor.shape, node.result.tensor.shape)
    return (Trace(axes, True),)


def _slice_parts(node: Node, index: Indices) -> tuple[Part, ...]:
    attrs = node.attrs
    out = tuple(a + i * s for i, a, s in zip(index, attrs["start"], attrs["step"]))
    return (Part(0, out),)


def _same_axes(node: Node, operand: int) -> tuple[int, ...]:
    return tuple(range(node.operands[operand].tensor.rank))


def _slice_trace(node: Node) -> tuple[Trace, ...]:
    whole = node.operands[0].tensor.shape == node.result.tensor.shape
    return (Trace(_same_axes(node, 0), whole and all(s == 1 for s in node.attrs["step"])),)


def _pad_parts(node: Node, index: Indices) -> tuple[Part, ...]:
    shape = node.operands[0].tensor.shape
    moved = tuple(i - low for i, low in zip(index, node.attrs["low"]))
    bounds = tuple(
        (i, n)
        for i, n, low, high in zip(moved, shape, node.attrs["low"], node.attrs["high"])
        if low != 0 or high != 0
    )
    return Part(0, moved, bounds), Part(1, ())


def _pad_trace(node: Node) -> tuple[Trace, ...]:
    return Trace(_same_axes(node, 0), False), Trace((), True)


def _concatenate_parts(node: Node, index: Indices) -> tuple[Part, ...]:
    axis = node.attrs["axis"]
    parts: list[Part] = []
    start: Size = 0
    for at, operand in enumerate(node.operands):
        size = operand.tensor.shape[axis]
        moved = (*index[:axis], index[axis] - start, *index[axis + 1 :])
        parts.append(Part(at, moved, ((index[axis] - start, size),)))
        start = start + size
    return tuple(parts)


def _concatenate_trace(node: Node) -> tuple[Trace, ...]:
    return tuple(Trace(_same_axes(node, at), False, True) for at in range(len(node.operands)))


def is_update(node: Node) -> bool:
    """True for a movement that replaces part of its first operand."""
    if node.op.structure is not Structure.MOVEMENT or len(node.operands) != 2:
        return False
    return "step" in node.attrs and "size" not in node.attrs


def update_position(node: Node, index: Indices) -> Indices:
    """Where an element of an update's value lands in its base."""
    return tuple(a + i * s for i, a, s in zip(index, node.attrs["start"], node.attrs["step"]))


def _update_parts(node: Node, index: Indices) -> tuple[Part, ...]:
    moved: list[Size] = []
    bounds: list[tuple[Size, Size]] = []
    base, value = (operand.tensor.shape for operand in node.operands)
    for i, start, step, n, whole in zip(
        index, node.attrs["start"], node.attrs["step"], value, base
    ):
        distance, stride = (i - start, step) if step > 0 else (start - i, -step)
        moved.append(floor_divide(distance, stride))
        if stride != 1:
            bounds.append((modulo(distance, stride), 1))
        if n != whole or start != 0 or stride != 1:
            bounds.append((moved[-1], n))
    if not bounds:
        return (Part(1, tuple(moved)),)
    return Part(1, tuple(moved), tuple(bounds)), Part(0, index)


def _update_trace(node: Node) -> tuple[Trace, ...]:
    axes = _same_axes(node, 0)
    return Trace(axes, True), Trace(axes, False, True)


def _slide_parts(node: Node, index: Indices) -> tuple[Part, ...]:
    axis, along = node.attrs["axes"]
    at = index[axis] * node.attrs["stride"] + index[along] * node.attrs["dilation"]
    return (Part(0, (*index[:axis], at, *index[axis + 1 :])),)


def _slide_trace(node: Node) -> tuple[Trace, ...]:
    axis = node.attrs["axes"][0]
    axes = tuple(-2 if i == axis else i for i in _same_axes(node, 0))
    return (Trace(axes, False),)


def _unslide_parts(node: Node, index: Indices) -> tuple[Part, ...]:
    axis, along = node.attrs["axes"]
    stride, places = node.attrs["stride"], node.operands[0].tensor.shape[axis]
    distance = index[axis] - index[along] * node.attrs["dilation"]
    at = floor_divide(distance, stride)
    exact = () if stride == 1 else ((modulo(distance, stride), 1),)
    moved = (*index[:axis], at, *index[axis + 1 :])
    return Part(0, moved, (*exact, (at, places))), Part(1, ())


def _unslide_trace(node: Node) -> tuple[Trace, ...]:
    return (*(replace(t, wasteful=True) for t in _slide_trace(node)), Trace((), True))


def is_join(node: Node) -> bool:
    """True for a movement of several whole arrays, each to its own place: made by storing."""
    return node.op.structure is Structure.MOVEMENT and "axis" in node.attrs


def join_starts(node: Node) -> list[Size]:
    """Where each operand of a join begins along the axis."""
    starts: list[Size] = [0]
    for operand in node.operands[:-1]:
        starts.append(starts[-1] + operand.tensor.shape[node.attrs["axis"]])
    return starts


MOVEMENTS: dict[str, Movement] = {
    "reshape": Movement(_reshape_parts, _reshape_trace, view=True),
    "transpose": Movement(_transpose_parts, _transpose_trace),
    "broadcast_to": Movement(_broadcast_parts, _broadcast_trace),
    "slice": Movement(_slice_parts, _slice_trace),
    "pad": Movement(_pad_parts, _pad_trace),
    "concatenate": Movement(_concatenate_parts, _concatenate_trace),
    "update_slice": Movement(_update_parts, _update_trace),
    "slide": Movement(_slide_parts, _slide_trace),
    "unslide": Movement(_unslide_parts, _unslide_trace),
}


def movement_of(node: Node) -> Movement:
    """The row of a movement node. Raises KeyError when it has none."""
    return MOVEMENTS[node.op.name]


def is_view(node: Node) -> bool:
    """True where the result is the operand's memory under another shape."""
    return node.op.structure is Structure.MOVEMENT and MOVEMENTS[node.op.name].view
