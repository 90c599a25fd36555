"""A loop whose body is elementwise is part of a kernel: what it carries stays in registers.

`for` over values of one shape: every element runs through all trips on its own. `while`: its
condition is one for all, so only where all values are single numbers.

Invariants: the same ops on the same values in the same order as trip by trip, so the same bits.
Not here: loops with other bodies, which are rows of the plan (assemble_flow.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from ..dims import Size
from ..ir.attrs import attrs_key
from ..ir.graph import Graph, Node, Value
from ..ops.creation import constant
from ..ops.definition import OpDef, Structure
from ..ops.flow import for_, while_
from ..types import BOOL, I64, DType, TensorType
from .blocks import Writer
from .kernel import Let, Loop, Statement

MOST = 300  # nodes of a body; larger ones are kernels of their own

Shape = tuple[Size, ...]
# The loops that may be in a kernel, and how many operands stand before what is carried.
_BEFORE: Mapping[OpDef, int] = {for_: 2, while_: 1}


def is_rolled(node: Node) -> bool:
    """True for a loop that can be a statement of a kernel."""
    before = _BEFORE.get(node.op)
    if before is None or not node.attrs["carried"]:
        return False
    shape = node.results[0].type.shape if isinstance(node.results[0].type, TensorType) else ()
    if node.op is while_ and shape:
        return False
    count = node.attrs["carried"]
    for at, value in enumerate(node.operands[before:]):
        if value.tensor.shape != shape and (at < count or value.tensor.shape):
            return False
    (region,) = node.regions
    found = list(_flat(region))
    return len(found) <= MOST and all(_is_simple(inner, shape) for inner in found)


def rolled(w: Writer, node: Node, names: Sequence[str]) -> list[str]:
    """Put the loop where its operands, of these names, are known. The names of its results."""
    (region,) = node.regions
    before, count = _BEFORE[node.op], node.attrs["carried"]
    head, carried, captured = names[:before], names[before:][:count], names[before:][count:]
    counted = node.op is for_
    init = (*head[:1], *carried) if counted else tuple(carried)
    dtypes = tuple([v.tensor.dtype for v in node.operands[before:][:count]])
    held = tuple([w.name(v.name) for v in region.params[: len(init)]])
    env = dict(zip(region.params, (*held, *captured), strict=True))
    body: list[Statement] = []
    _emit(w, region, env, body, {})
    made = [env[value] for value in region.results]
    if counted:
        following = _put(w, body, "next", "add", (held[0], w.constant(1, I64)), I64)
        until = _put(w, body, "last", "le", (head[1], following), BOOL)
        made, dtypes = [following, *made], (I64, *dtypes)
        some = w.let("some", "lt", (head[0], head[1]), BOOL)
    else:
        until = _put(w, body, "last", "not", (made.pop(0),), BOOL)
        some = head[0]
    block = w.block_of((), names)
    axis = w.name("trip")
    block.out.append(Loop(held, init, axis, None, tuple(body), tuple(made), until, dtypes))
    for name in held:
        w.home[name] = block
    ends, starts = held[len(held) - count :], init[len(init) - count :]
    return [
        w.let(result.name, "select", (some, end, start), result.tensor.dtype)
        for result, end, start in zip(node.results, ends, starts)
    ]


def _flat(region: Graph) -> Iterator[Node]:
    """The nodes of a region, those of fused ones in their place."""
    for node in region.nodes:
        if node.op.structure is Structure.CONTROL:
            yield from _flat(node.regions[0])
        else:
            yield node


def _is_simple(node: Node, shape: Shape) -> bool:
    if node.after or not all(isinstance(r.type, TensorType) for r in node.results):
        return False
    if any(r.tensor.shape not in (shape, ()) for r in node.results):
        return False
    return _is_number(node) or _is_repeat(node) or node.op.structure is Structure.ELEMENTWISE


def _is_number(node: Node) -> bool:
    return node.op is constant and node.attrs["value"].ndim == 0


def _is_repeat(node: Node) -> bool:
    """A number repeated over the shape."""
    one = len(node.operands) == 1 and not node.operands[0].tensor.shape
    return node.op.structure is Structure.MOVEMENT and one and node.attrs.keys() == {"shape"}


def _emit(
    w: Writer,
    region: Graph,
    env: dict[Value, str],
    body: list[Statement],
    made: dict[Hashable, str],
) -> None:
    """The statements of a region. env: names by value. made: names by what they are."""
    for node in region.nodes:
        names = tuple([env[v] for v in node.operands])
        if node.op.structure is Structure.CONTROL:
            (inner,) = node.regions
            inside = dict(zip(inner.params, names, strict=True))
            _emit(w, inner, inside, body, made)
            env.update(zip(node.results, [inside[v] for v in inner.results]))
        elif _is_number(node):
            result = node.results[0]
            env[result] = w.constant(node.attrs["value"][()].item(), result.tensor.dtype)
        elif _is_repeat(node):
            env[node.results[0]] = names[0]
        else:
            for r in node.results:
                key = (node.op, names, attrs_key(node.attrs), r.index)
                if key not in made:  # nodes of several kernels may be the same
                    made[key] = w.name(r.name)
                    body.append(
                        Let(
                            made[key],
                            node.op.name,
                            names,
                            r.tensor.dtype,
                            node.attrs,
                            node.location,
                            r.index,
                        )
                    )
                env[r] = made[key]


def _put(
    w: Writer, body: list[Statement], hint: str, word: str, names: tuple[str, ...], dtype: DType
) -> str:
    name = w.name(hint)
    body.append(Let(name, word, names, dtype))
    return name
