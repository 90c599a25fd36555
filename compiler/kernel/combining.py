"""A monoid's `combine` as statements: words of the scalar language on named values, and updates.

Not here: what a monoid is (monoids.py), where its statements go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from ..ir.graph import Node
from ..ops.scalar import Scalar, ScalarFunction, trace_body
from ..types import DType
from .kernel import Index, Statement, Store, Update
from .monoids import combining, named

Put = Callable[[Scalar, tuple[str, ...]], str]


def combined(monoid: str, dtypes: tuple[DType, ...], states: Sequence[str], put: Put) -> list[str]:
    """The names of the state that an earlier and a later one (`states`, side by side) make.
    `put` writes one word, given the names of its operands, and names it."""
    body = _body(monoid, dtypes)
    names: dict[Scalar, str] = dict(zip(body.params, states))
    stack = list(reversed(body.results))
    while stack:
        node = stack[-1]
        missing = [n for n in node.args if n not in names]
        if node not in names and missing:
            stack.extend(missing)
            continue
        stack.pop()
        if node not in names:
            names[node] = put(node, tuple(names[a] for a in node.args))
    return [names[r] for r in body.results]


def written(buffer: str, node: Node, place: tuple[Index, ...], value: str) -> Statement:
    """How a scatter puts an element in its place: over the old one, or combined with it."""
    monoid = combining(node.op.name, node.attrs.get("step"))
    if monoid is None:
        return Store(buffer, place, value, None, node.location)
    return Update(buffer, place, monoid.name, value, node.location)


@lru_cache(maxsize=256)
def _body(monoid: str, dtypes: tuple[DType, ...]) -> ScalarFunction:
    arity = len(dtypes)
    join = named(monoid).combine
    return trace_body(lambda *x: join(x[:arity], x[arity:]), (*dtypes, *dtypes))
