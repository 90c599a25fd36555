"""A monoid's `combine` as statements: words of the scalar language on named values.

Not here: what a monoid is (monoids.py), where its statements go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from ..ops.scalar import Scalar, ScalarFunction, trace_body
from ..types import DType
from .monoids import named

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


@lru_cache(maxsize=256)
def _body(monoid: str, dtypes: tuple[DType, ...]) -> ScalarFunction:
    arity = len(dtypes)
    join = named(monoid).combine
    return trace_body(lambda *x: join(x[:arity], x[arity:]), (*dtypes, *dtypes))
