"""What a scan needs: a loop in order that carries the prefix, or, along a short axis, no loop.

Invariants: prefixes are made from the first element to the last, each from the one before, in
the element's own type: halves are rounded at every step, as NumPy does.
Not here: reductions (lowering_values.py), which rows scan side by side (back ends).
"""

from __future__ import annotations

from collections.abc import Callable

from ..dims import Dim, Size
from ..ir.graph import Node
from .blocks import Block, Writer
from .kernel import Scan, Store
from .lowering_values import Values
from .monoids import FEW, monoid_of
from .movement import Indices
from .short import folded


def scanning(
    w: Writer, values: Values, output: str, node: Node
) -> Callable[[Indices, Block], None]:
    """Stores all prefixes of the row at an index, which lacks the scanned axis."""
    axis = node.attrs["axis"]
    size = node.operands[0].tensor.shape[axis]

    def emit(index: Indices, block: Block) -> None:
        if 0 < folded((size,)) < FEW:
            _written_out(w, values, output, node, index, block)
        else:
            _looped(w, values, output, node, index, block)

    return emit


def _written_out(
    w: Writer, values: Values, output: str, node: Node, index: Indices, block: Block
) -> None:
    axis, source = node.attrs["axis"], node.operands[0]
    dtype = source.tensor.dtype
    monoid = monoid_of(node.op.name, node.attrs.get("step", node.op.step))
    hint = node.results[0].name
    prefix = ""
    for at in range(folded((source.tensor.shape[axis],))):
        whole: tuple[Size, ...] = (*index[:axis], at, *index[axis:])
        name = values.at(source, whole)
        if prefix:
            (name,) = values.both(hint, monoid, (dtype,), (prefix, name))
        prefix = name
        block.out.append(Store(output, whole, name))


def _looped(
    w: Writer, values: Values, output: str, node: Node, index: Indices, block: Block
) -> None:
    axis, source = node.attrs["axis"], node.operands[0]
    dtype = source.tensor.dtype
    monoid = monoid_of(node.op.name, node.attrs.get("step", node.op.step))
    inner = w.open("s", source.tensor.shape[axis], block)
    whole = (*index[:axis], Dim.symbol(inner.axis), *index[axis:])
    name = values.at(source, whole)
    body = tuple(inner.out)
    inner.out.clear()
    prefix = w.name(node.results[0].name)
    w.home[prefix] = inner
    inner.out.append(Store(output, whole, prefix))
    scan = Scan(
        (prefix,), monoid.name, inner.axis, inner.extent, body, (name,), tuple(inner.out), (dtype,)
    )  # fmt: skip
    block.out.append(scan)
