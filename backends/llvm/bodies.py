"""Scalar bodies by name: what a `Let` or a monoid computes, traced once per dtypes.

Not here: emitting them (scalar.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any

from ...compiler.kernel.kernel import Let, Statement, walk
from ...compiler.kernel.monoids import named
from ...compiler.ops import ALL
from ...compiler.ops.scalar import Rarely, Scalar, ScalarFunction, trace_body
from ...compiler.types import DType

HOLE = "hole "  # begins the op of a `Let` that calls what is filled in later (skeletons.py)
_CALL = 64  # words that a call counts for: it is not worth a second copy


def body_of(
    op: str, dtypes: tuple[DType, ...], attrs: Mapping[str, Any], result: DType
) -> ScalarFunction:
    """The body of an elementwise op, or of one word of the scalar language."""
    return _traced(op, dtypes, tuple(sorted(attrs.items())), result)


@lru_cache(maxsize=4096)
def _traced(
    op: str, dtypes: tuple[DType, ...], attrs: tuple[tuple[str, Any], ...], result: DType
) -> ScalarFunction:
    record = ALL.get(op)
    if record is not None and record.scalar is not None:
        scalar, options = record.scalar, dict(attrs)
        return trace_body(lambda *args: scalar(*args, **options), dtypes)
    return trace_body(lambda *args: Scalar(op, args, result), dtypes)


@cache
def combine_of(
    monoid: str, dtypes: tuple[DType, ...], later: tuple[DType, ...] | None = None
) -> ScalarFunction:
    """The body of a monoid's `combine`: an earlier and a later state, side by side. later: the
    dtypes of the later one where they are others."""
    arity = len(dtypes)
    combine = named(monoid).combine
    return trace_body(lambda *s: combine(s[:arity], s[arity:]), dtypes + (later or dtypes))


@lru_cache(maxsize=4096)
def weight_of(body: ScalarFunction) -> int:
    """How many words a body is, rare regions left out."""
    seen: set[Scalar] = set()
    calls = 0
    stack = list(body.results)
    while stack:
        node = stack.pop()
        if node in seen or node.word in ("param", "const", "carried"):
            continue
        seen.add(node)
        calls += node.word.startswith(HOLE)
        stack.extend(node.args)
        if node.word == "result":
            region = node.attr[0]  # type: ignore[index]
            stack.extend(region.fast if isinstance(region, Rarely) else region.step)
    return len(seen) + calls * _CALL


def weight_of_block(block: Iterable[Statement], dtypes: Mapping[str, DType]) -> int:
    """How many words the statements of a block are, inner blocks included."""
    total = 0
    for s in walk(tuple(block)):
        if isinstance(s, Let):
            args = tuple(dtypes[a] for a in s.args)
            total += weight_of(body_of(s.op, args, s.attrs, s.dtype))
    return total
