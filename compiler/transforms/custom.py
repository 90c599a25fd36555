"""Functions with a derivative that the user wrote: what the transforms make of their nodes.

A rule is put where it is asked for, as ordinary nodes, so a derivative of second order goes through
it. Reverse mode through a rule of forward mode is that rule turned round: it is linear in the
tangents, so its gradient by them, wherever they are, is its transpose.

Invariants: operands behind the first `inputs` get nothing.
Not here: lanes (vmap_flow.py), what is computed again (flow.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.builder import Builder
from ..ir.graph import Node, Value
from ..ir.inlining import inline
from ..ops.shaping import zeros_like
from ..types import TensorType
from .reach import carries, tensors_of

Maybe = Sequence[Value | None]
Gradients = Callable[[Builder, Sequence[Value], Sequence[Value], Maybe], list[Value | None]]


def custom_vjp_cotangents(
    builder: Builder, node: Node, cts: Maybe, wanted: Sequence[bool], gradients: Gradients
) -> Maybe:
    """What the user's rule makes of the cotangents of the results."""
    count = node.attrs["inputs"]
    seeds = [
        _or_zeros(builder, ct, result) for ct, result in zip(cts, node.results) if carries(result)
    ]
    operands = [*node.operands[:count], *seeds, *node.operands[count:]]
    made = tensors_of(inline(builder, node.regions[1], operands))
    return [*made, *[None] * (len(node.operands) - count)]


def custom_jvp_cotangents(
    builder: Builder, node: Node, cts: Maybe, wanted: Sequence[bool], gradients: Gradients
) -> Maybe:
    """The transpose of the user's rule, which is linear in the tangents."""
    count = node.attrs["inputs"]
    own = node.operands[:count]
    seeds = [builder.emit("alias", (zeros_like(builder, x),)) for x in own]
    made = inline(builder, node.regions[1], [*own, *seeds, *node.operands[count:]])
    results = tensors_of(node.results)
    weights = [ct for ct, result in zip(cts, results) if carries(result)]
    outputs = tensors_of(made)[len(results) :]
    pairs = [(out, ct) for out, ct in zip(outputs, weights) if ct is not None]
    found = gradients(builder, [out for out, _ in pairs], seeds, [ct for _, ct in pairs])
    return [*found, *[None] * (len(node.operands) - count)]


def custom_jvp_tangents(
    builder: Builder, node: Node, operands: Sequence[Value], tangents: Maybe
) -> tuple[list[Value], list[Value | None]]:
    """The results of the user's rule and their tangents; in place of the function's own."""
    count = node.attrs["inputs"]
    given = zip(tangents[:count], operands)
    seeds = [_or_zeros(builder, tangent, x) for tangent, x in given]
    made = inline(builder, node.regions[1], [*operands[:count], *seeds, *operands[count:]])
    results = tensors_of(node.results)
    values = list(made[: len(results)])
    moved = iter(tensors_of(made)[len(results) :])
    found = [next(moved) if carries(value) else None for value in results]
    tokens = [value for value in made if not isinstance(value.type, TensorType)]
    own = len(node.results) - len(results)
    return [*values, *tokens[-1:][:own]], [*found, *[None] * min(own, len(tokens))]


def _or_zeros(builder: Builder, given: Value | None, like: Value) -> Value:
    if given is not None:
        return given
    made: Value = zeros_like(builder, like)
    return made
