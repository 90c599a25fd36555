"""Axes of a fixed size so small that what would be a loop over them is written out.

A sum over a few elements is a few operations, in order, wherever its value is needed: it costs
no loop and may stand in the body of another reduction. Where a reduction goes down the rows of
few columns, the columns are written out: their loops over the rows become one (reuse.py), and
what does not depend on the column is computed once. Rows of few elements that are folded are
written out whole, so that lanes run over rows.

Invariants: `FEW` elements or more are never written out, so the order is that of monoids.py.
Not here: which nodes share a kernel (passes/fuse_groups.py), writing them (lowering).
"""

from __future__ import annotations

from ..dims import Size
from ..ir.graph import Node
from ..ops.definition import Structure
from .monoids import FEW


def is_short(size: Size) -> bool:
    """True for a size of several elements, fewer than have lanes."""
    return isinstance(size, int) and 1 < size < FEW


def is_short_fold(node: Node) -> bool:
    """True for a reduction of few elements."""
    if node.op.structure is not Structure.REDUCTION:
        return False
    shape = node.operands[0].tensor.shape
    return 0 < folded(tuple(shape[axis] for axis in node.attrs["axes"])) < FEW


def folded(sizes: tuple[Size, ...]) -> int:
    """How many elements there are of these sizes; 0 where that is not known."""
    total = 1
    for size in sizes:
        if not isinstance(size, int):
            return 0
        total *= size
    return total


def folds_short_rows(node: Node) -> bool:
    """True for a reduction that is written out along the last axis alone."""
    last = node.operands[0].tensor.rank - 1 if node.operands else 0
    return is_short_fold(node) and tuple(node.attrs["axes"]) == (last,)


def has_short_columns(node: Node) -> bool:
    """True for a reduction down the rows of an array with few columns."""
    if node.op.structure is not Structure.REDUCTION or is_short_fold(node):
        return False
    source = node.operands[0].tensor
    last = source.rank - 1
    return last not in node.attrs["axes"] and is_short(source.shape[last])
