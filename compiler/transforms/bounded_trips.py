"""Gradients through counting loops of which a bound of the number of trips is a size.

Such are loops in loops, as ``for j in range(i)``. What a trip leaves for the way back has a row in
stacks as long as the bound, which the loop fills as it goes:

    for i from a to b:    c, stacks[i - a] = ...
    for i from b down to a:    dc, dx = ... of stacks[i - a]

Not here: loops of a known number of trips (flow.py), or of any (unknown_trips.py).
"""

from __future__ import annotations

import numpy as np

from ..ir.attrs import freeze
from ..ir.builder import Builder
from ..ir.graph import Node, Value
from ..ops.creation import constant
from ..ops.movement import broadcast_to
from ..ops.shaping import zeros_like
from ..types import I64, TensorType
from .loops import Values, counting
from .reach import carried_between, carried_pairs, tensors_of
from .regions import Asked, Cotangents, add_results, copied, move_before
from .trips import Trip


def cotangents_of_bounded(builder: Builder, node: Node, asked: Asked) -> Cotangents:
    """The cotangents of the operands of a `for` that has the attribute `most`."""
    (region,) = node.regions
    cts, wanted = asked.arrived, asked.wanted
    carried, most, operands = node.attrs["carried"], node.attrs["most"], node.operands
    counter, *params = region.params
    tensors = tensors_of(region.results)
    carries = carried_between(
        region,
        {param for param, want in zip(params, wanted[2:]) if want},
        [made for made, ct in zip(tensors, cts) if ct is not None],
        carried_pairs(node),
    )
    uses = [at for at in range(carried, len(params)) if wanted[2 + at]]

    body = Trip(region, asked.gradients)
    body.turn(carries, [1 + at for at in uses])

    kept = [value for value in body.kept(1 + carried) if value is not counter]
    read = body.read([counter, *kept])
    rest = [at for at in range(carried, len(params)) if params[at] in read]
    turned = body.backward([counter, *kept, *[params[at] for at in rest], *body.added])
    stacks = _keep(builder, node, body, kept)

    def trip(inner: Builder, at: Value, sums: Values, given: Values) -> Values:
        begin, end, *others = given
        now = inner.sub(inner.sub(end, 1), at)
        row = inner.sub(now, begin)
        rows = [inner.gather(stack, row, axes=(0,))[0] for stack in others[: len(stacks)]]
        return copied(inner, turned, [now, *rows, *others[len(stacks) :], *sums])

    firsts = [cts[at] or zeros_like(builder, operands[2 + at]) for at in carries]
    firsts += [asked.start(builder, 2 + at, operands[2 + at]) for at in uses]
    begin, end = operands[:2]
    given = [begin, end, *stacks, *[operands[2 + at] for at in rest]]
    made = counting(builder, builder.sub(end, begin), firsts, given, trip, most)
    places = [2 + at for at in (*carries, *uses)]
    return asked.answer(builder, dict(zip(places, made)), places[len(carries) :])


def _keep(builder: Builder, node: Node, body: Trip, kept: Values) -> list[Value]:
    """Let the loop fill stacks of what is kept, which it carries behind the rest."""
    carried, most = node.attrs["carried"], node.attrs["most"]
    types = [TensorType(v.tensor.dtype, (most, *v.tensor.shape)) for v in kept]
    forward = body.forward(kept)
    inner = Builder.extending(forward)
    stacks = [inner.param("kept", typ) for typ in types]
    begin = inner.param("begin", TensorType(I64, ()))
    counter, *params = forward.params
    inner.params = [counter, *params[:carried], *stacks, *params[carried:], begin]
    row = inner.sub(counter, begin)
    filled = [inner.scatter(s, v, row, axes=(0,))[0] for s, v in zip(stacks, kept)]
    tensors = tensors_of(forward.results)
    tokens = forward.results[len(tensors) :]
    node.regions = (inner.finish([*tensors[:carried], *filled], tokens),)
    empty = [_zeros_before(builder, node, typ) for typ in types]
    begin, end, *operands = node.operands
    node.operands = (begin, end, *operands[:carried], *empty, *operands[carried:], begin)
    node.attrs = freeze({**node.attrs, "carried": carried + len(kept)})
    return add_results(builder, node, types)


def _zeros_before(builder: Builder, node: Node, typ: TensorType) -> Value:
    """Zeros that are made before a node, which is to use them."""
    start = len(builder.nodes)
    zero = builder.emit(constant, (), {"value": np.zeros((), typ.dtype.numpy)})
    made: Value = builder.emit(broadcast_to, (zero,), {"shape": typ.shape})
    move_before(builder, node, start)
    return made
