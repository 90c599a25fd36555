"""Where a product or convolution reads its operands, and in which order it sums.

Invariants: summed axes run in the order of the second operand's, as its elements lie; those of a
plain contraction in the order of its pairs. A windowed axis is read at
``place * stride + position * dilation``, for a negative dilation counted from the last position.
Not here: the sums themselves (lowering_values.py), how a convolution is launched (windows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dims import Size
from ..ir.graph import Node
from .movement import Indices

Places = Callable[[Sequence[Size]], tuple[Indices, Indices]]


def summed_extents(node: Node) -> list[Size]:
    """The sizes of the summed axes, the outermost first."""
    a, b = node.operands
    if "windows" not in node.attrs:
        return [a.tensor.shape[i] for i, _ in node.attrs["axes"]]
    return [b.tensor.shape[j] for j in _summed_of_weights(node)]


def summed_places(node: Node, index: Indices) -> Places:
    """The operand elements of a product, from the result index and the summed indices."""
    batch, axes = node.attrs["batch"], node.attrs["axes"]
    windows = node.attrs.get("windows", ())
    ranks = [operand.tensor.rank for operand in node.operands]
    seen = index[len(index) - len(windows) :] if windows else ()

    def places(at: Sequence[Size]) -> tuple[Indices, Indices]:
        out: list[list[Size | None]] = [[None] * rank for rank in ranks]
        for (i, j), position in zip(batch, index):
            out[0][i] = out[1][j] = position
        if windows:
            for j, position in zip(_summed_of_weights(node), at):
                out[1][j] = position
            for i, j in axes:
                out[0][i] = out[1][j]
            for (i, j, stride, dilation), place in zip(windows, seen):
                within = out[1][j]
                assert within is not None
                if dilation < 0:  # turned round
                    within = within - (node.operands[1].tensor.shape[j] - 1)
                out[0][i] = place * stride + within * dilation
        else:
            for (i, j), position in zip(axes, at):
                out[0][i] = out[1][j] = position
        rest = iter(index[len(batch) :])
        filled = [tuple(next(rest) if p is None else p for p in side) for side in out]
        return filled[0], filled[1]

    return places


def _summed_of_weights(node: Node) -> list[int]:
    """The summed axes of the second operand of a convolution, in its order."""
    pairs = [j for _, j in node.attrs["axes"]]
    return sorted([*pairs, *(window[1] for window in node.attrs["windows"])])
