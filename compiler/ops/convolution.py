"""Convolution: a contraction in which some axes of the first operand are seen through windows.

``y[batch, free a, free b, p...] = sum over axes and r of
a[..., p * stride + r * dilation, ...] * b[..., r, ...]``

The windows move over the operand as it is: padding is a `pad` before. A negative dilation turns
the window round: its last position comes first (what signal processing calls convolution). Batch
pairs are groups; axes may stand anywhere in both operands, so every layout is this op without
transposes.

Invariants: the result is the batch axes in the order of `batch`, the free axes of the first
operand, those of the second, then the windows in their order. Every window lies in its image.
Both gradients are convolutions: by the image with the cotangents spread out, by the weights with
the cotangents as weights.
Not here: the order of summation (kernels promise an error bound), padding, layouts by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from ..dims import Size, dim_text, floor_divide
from ..records import dataclass
from ..types import BF16, TensorType, Type
from .attributes import count, distinct_axes, dtype_kind, equal_sizes, exactly, same_dtype, tensor
from .batching import Each, Lanes, Operands, moved_axis
from .contraction import Pairs, free_axes, lanes_among_axes, pairs_of
from .definition import Attrs, OpDef, SignatureError, Structure
from .record import conjugate
from .shaping import flip, inverse, zeros_like
from .tangents import bilinear

Windows = Sequence[tuple[int, int, int, int]]
PHASES = 4  # strides up to this are taken apart in gradients; zeros stand between for others


def _convolve_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    count(operands, 2)
    a, b = tensor(operands, 0), tensor(operands, 1)
    axes, batch, windows = exactly(attrs, "axes", "batch", "windows")
    same_dtype(a, b)
    dtype_kind(a, "iufc", "numbers")
    pairs = (*pairs_of(batch, "batch"), *pairs_of(axes, "axes"))
    seen = _windows_of(windows)
    distinct_axes((*(p[0] for p in pairs), *(w[0] for w in seen)), a.rank, "axes of the image")
    distinct_axes((*(p[1] for p in pairs), *(w[1] for w in seen)), b.rank, "axes of the weights")
    for i, j in pairs:
        equal_sizes(a.shape[i], b.shape[j], f"in axes {i} and {j}, of {a} and {b}")
    used_a = [p[0] for p in pairs] + [w[0] for w in seen]
    used_b = [p[1] for p in pairs] + [w[1] for w in seen]
    return (TensorType(a.dtype, (
        *[a.shape[i] for i, _ in batch],
        *[a.shape[i] for i in free_axes(a.rank, used_a)],
        *[b.shape[j] for j in free_axes(b.rank, used_b)],
        *[_places(a.shape[i], b.shape[j], stride, dilation) for i, j, stride, dilation in seen],
    )),)  # fmt: skip


def _windows_of(value: object) -> Windows:
    if not isinstance(value, tuple) or not all(isinstance(w, tuple) and len(w) == 4 for w in value):
        raise SignatureError(
            "TM203", f"needs (image axis, weight axis, stride, dilation) as windows, got {value!r}"
        )
    for _, _, stride, dilation in value:
        if type(stride) is not int or type(dilation) is not int or stride < 1 or dilation == 0:
            raise SignatureError(
                "TM256",
                f"needs strides of at least 1 and dilations other than 0, got {stride} and "
                f"{dilation}",
            )
    return value


def _places(extent: Size, window: Size, stride: int, dilation: int) -> Size:
    """How often a window fits. Raises SignatureError where it is known not to fit once."""
    last = extent - (window - 1) * abs(dilation) - 1
    if isinstance(last, int) and last < 0 or window == 0:
        raise SignatureError(
            "TM207",
            f"has a window of {dim_text(window)} with dilation {dilation} that does not fit into "
            f"{dim_text(extent)}",
        )
    return floor_divide(last, stride) + 1


# -- reference


def _convolve(a: Any, b: Any, axes: Pairs, batch: Pairs, windows: Windows) -> Any:
    """Windows as a view of the image, then one sum of products by np.einsum."""
    seen = _seen(a, b, windows)
    b = np.flip(b, tuple([j for _, j, _, dilation in windows if dilation < 0]))
    letters = iter(range(1000))
    names_b = [next(letters) for _ in range(b.ndim)]
    names_a = [next(letters) for _ in range(a.ndim)]
    for i, j in (*axes, *batch):
        names_a[i] = names_b[j]
    used_a = [p[0] for p in (*axes, *batch)] + [w[0] for w in windows]
    used_b = [p[1] for p in (*axes, *batch)] + [w[1] for w in windows]
    out = [names_a[i] for i, _ in batch]
    out += [names_a[i] for i in free_axes(a.ndim, used_a)]
    out += [names_b[j] for j in free_axes(b.ndim, used_b)]
    out += [names_a[w[0]] for w in windows]
    wide = [x.astype(np.float32) if x.dtype == BF16.numpy else x for x in (seen, b)]
    with np.errstate(all="ignore"):
        made = np.einsum(
            wide[0], [*names_a, *(names_b[w[1]] for w in windows)], wide[1], names_b, out
        )
    return made.astype(a.dtype, copy=False)


def _seen(a: Any, b: Any, windows: Windows) -> Any:
    """`a` with its windowed axes as places, and the positions in each window as further axes."""
    shape, strides = list(a.shape), list(a.strides)
    for i, j, stride, dilation in windows:
        shape[i] = _places(a.shape[i], b.shape[j], stride, dilation)
        shape.append(b.shape[j])
        strides[i] = a.strides[i] * stride
        strides.append(a.strides[i] * abs(dilation))
    return np.lib.stride_tricks.as_strided(a, shape, strides, writeable=False)


# -- canonical form and gradients


def _sorted_pairs(emit: Any, operands: Sequence[Any], attrs: Attrs) -> Any:
    if not attrs["windows"]:
        return emit.contract(*operands, axes=attrs["axes"], batch=attrs["batch"])
    pairs = tuple(sorted(attrs["axes"]))
    if pairs == attrs["axes"]:
        return None
    return emit.convolve(*operands, axes=pairs, batch=attrs["batch"], windows=attrs["windows"])


def _convolve_gradient(emit: Any, node: Any, cts: Sequence[Any]) -> Sequence[Any]:
    return [_by_image(emit, node, cts[0]), _by_weights(emit, node, cts[0])]


def _free(node: Any) -> tuple[list[int], list[int]]:
    """The free axes of the image and of the weights."""
    a, b = node.operands
    pairs = (*node.attrs["axes"], *node.attrs["batch"], *(w[:2] for w in node.attrs["windows"]))
    return (
        free_axes(len(a.type.shape), [i for i, _ in pairs]),
        free_axes(len(b.type.shape), [j for _, j in pairs]),
    )


@dataclass(frozen=True, slots=True)
class _Phase:
    """Every `step`-th place of an image axis from `first` on, and what reaches it.

    positions: of the window, from `first` on by `step`; 0 of none. places: how many there are.
    """

    first: int
    step: int
    positions: Size
    places: Size


def _phases(extent: Size, window: Size, stride: int, dilation: int) -> list[_Phase]:
    """A stride leaves each place of the image to every stride-th position of the window only."""
    if stride == 1 or dilation != 1 or not isinstance(window, int) or stride > PHASES:
        return [_Phase(0, 1, window, extent)]
    return [
        _Phase(
            first, stride, (window - first + stride - 1) // stride,
            floor_divide(extent - first + stride - 1, stride),
        )
        for first in range(min(stride, window))
    ]  # fmt: skip


def _by_image(emit: Any, node: Any, ct: Any) -> Any:
    """The cotangents under windows turned round, phase by phase of the strides."""
    a, b = node.operands
    windows = node.attrs["windows"]
    weights = conjugate(emit, b)
    each = [_phases(a.type.shape[i], b.type.shape[j], s, d) for i, j, s, d in windows]
    total: Any = None
    for phases in product(*each):
        made = _one_phase(emit, node, ct, weights, phases)
        if all(phase.step == 1 for phase in phases):
            return made
        start, step = [0] * len(a.type.shape), [1] * len(a.type.shape)
        for (axis, *_), phase in zip(windows, phases):
            start[axis], step[axis] = phase.first, phase.step
        total = zeros_like(emit, a) if total is None else total
        total = emit.update_slice(total, made, start=tuple(start), step=tuple(step))
    return total


def _one_phase(emit: Any, node: Any, ct: Any, weights: Any, phases: Sequence[_Phase]) -> Any:
    """What reaches some places of the image, as an image of these places."""
    batch, windows = node.attrs["batch"], node.attrs["windows"]
    free_a, free_b = _free(node)
    first = len(batch) + len(free_a) + len(free_b)
    for at, ((_, j, stride, dilation), phase) in enumerate(zip(windows, phases)):
        if phase.step > 1:
            weights = _every(emit, weights, j, phase)
            stride = 1
        reach = (phase.positions - 1) * abs(dilation)
        ct = _spread(emit, ct, first + at, phase.places, reach, stride)
    made = emit.convolve(
        ct,
        weights,
        axes=tuple(zip(range(len(batch) + len(free_a), first), free_b)),
        batch=tuple((at, j) for at, (_, j) in enumerate(batch)),
        windows=tuple((first + at, w[1], 1, -w[3]) for at, w in enumerate(windows)),
    )
    # The result: batch axes, free axes, summed axes in the order of the weights, windows.
    mine = [i for i, _ in batch] + free_a
    mine += [i for i, _ in sorted(node.attrs["axes"], key=lambda pair: pair[1])]
    mine += [w[0] for w in windows]
    return emit.transpose(made, perm=inverse(mine))


def _every(emit: Any, weights: Any, axis: int, phase: _Phase) -> Any:
    """The positions of a window that belong to a phase."""
    shape = weights.type.shape
    here = [i == axis for i in range(len(shape))]
    return emit.slice(
        weights,
        start=tuple([phase.first if it else 0 for it in here]),
        size=tuple([phase.positions if it else size for it, size in zip(here, shape)]),
        step=tuple([phase.step if it else 1 for it in here]),
    )


def _spread(emit: Any, ct: Any, axis: int, places: Size, reach: Size, stride: int) -> Any:
    """`ct` with its elements `stride` apart along an axis, with so many zeros around them that
    a window that reaches so far beyond its first element has so many places in it."""
    shape = ct.type.shape
    low, high = reach, places - (shape[axis] - 1) * stride - 1
    here = [i == axis for i in range(len(shape))]
    if stride == 1:
        return emit.pad(
            ct,
            emit.constant(0, ct.type.dtype),
            low=tuple([low if it else 0 for it in here]),
            high=tuple([high if it else 0 for it in here]),
        )
    whole = tuple([places + low if it else size for it, size in zip(here, shape)])
    base = emit.broadcast_to(emit.constant(0, ct.type.dtype), shape=whole)
    return emit.update_slice(
        base,
        ct,
        start=tuple([low if it else 0 for it in here]),
        step=tuple([stride if it else 1 for it in here]),
    )


def _by_weights(emit: Any, node: Any, ct: Any) -> Any:
    """The image under the cotangents as weights, stride and dilation exchanged."""
    a, b = node.operands
    axes, batch, windows = (node.attrs[key] for key in ("axes", "batch", "windows"))
    free_a, free_b = _free(node)
    if any(size == 0 for size in ct.type.shape):
        return zeros_like(emit, b)
    first = len(batch) + len(free_a) + len(free_b)
    made = emit.convolve(
        conjugate(emit, a),
        ct,
        axes=tuple((i, len(batch) + at) for at, i in enumerate(free_a)),
        batch=tuple((i, at) for at, (i, _) in enumerate(batch)),
        windows=tuple((w[0], first + at, abs(w[3]), w[2]) for at, w in enumerate(windows)),
    )
    # The result: batch axes, summed axes in the order of the image, free axes, windows.
    mine = [j for _, j in batch] + [j for _, j in sorted(axes)] + free_b + [w[1] for w in windows]
    shape = tuple([b.type.shape[j] for j in mine])
    if made.type.shape != shape:  # places that the stride left out are no weights
        none = (0,) * len(shape)
        made = emit.slice(made, start=none, size=shape, step=(1,) * len(shape))
    for at, window in enumerate(windows):
        if window[3] < 0:
            made = flip(emit, made, first + at - len(free_a) + len(axes))
    return emit.transpose(made, perm=inverse(mine))


def _convolve_lanes(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    axes, batch, place = lanes_among_axes(node, operands)
    a, b = operands
    windows = tuple([(i + a.own, j + b.own, *rest) for i, j, *rest in node.attrs["windows"]])
    made = emit.convolve(a.value, b.value, axes=axes, batch=batch, windows=windows)
    return [Each(moved_axis(emit, made, place, 0), True)]


convolve = OpDef(
    name="convolve",
    signature=_convolve_type,
    reference=_convolve,
    gradient=_convolve_gradient,
    tangent=bilinear,
    batching=_convolve_lanes,
    canonical=_sorted_pairs,
    structure=Structure.CONTRACTION,
    doc="A contraction that sees axes of its first operand through windows: pairs in `axes` are "
    "summed, pairs in `batch` run together, and each of `windows` (image axis, weight axis, "
    "stride, dilation) moves a window of the size of the weight axis over the image axis; a "
    "negative dilation turns it round.",
)

CONVOLUTION: tuple[OpDef, ...] = (convolve,)
