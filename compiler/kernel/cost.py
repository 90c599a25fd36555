"""How long things take, roughly: what fusion, scheduling and the plan's work estimates ask.

Invariants: pure; counts words of scalar bodies, once per op and dtypes.
Not here: decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..dims import Dim, Size
from ..ops import ALL
from ..ops.definition import OpDef
from ..ops.scalar import Scalar, trace_body
from ..types import DType
from .kernel import (
    For,
    If,
    Kernel,
    Let,
    Load,
    Loop,
    Parallel,
    Reduce,
    Scan,
    Statement,
    Store,
    Update,
    value_dtypes,
    walk,
)

WORD = 60  # picoseconds of one word on one element, in vectors
TOUCH = 80  # picoseconds per byte loaded or stored
GRAIN_WORK = 20_000_000  # picoseconds that a chunk of a parallel axis should take at least
_HEAVY = {"div": 4, "sqrt": 4, "quot": 10, "rem": 10, "lookup": 3}
_cache: dict[Any, int] = {}


def words_of(op: OpDef, dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> int:
    """Words in the body of an elementwise op, slow ones counted several times."""
    key = (op, dtypes, tuple(attrs.items()))
    found = _cache.get(key)
    if found is None:
        found = _cache[key] = _count(op, dtypes, attrs)
    return found


def _count(op: OpDef, dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> int:
    body = op.scalar
    if body is None:
        return 1
    results = trace_body(lambda *xs: body(*xs, **attrs), dtypes).results
    seen: set[int] = set()
    stack: list[Scalar] = list(results)
    total = 0
    while stack:
        scalar = stack.pop()
        if id(scalar) in seen or scalar.word in ("param", "const"):
            continue
        seen.add(id(scalar))
        total += _HEAVY.get(scalar.word, 1)
        stack.extend(scalar.args)
        if scalar.word == "result" and isinstance(scalar.attr, tuple):
            region = scalar.attr[0]
            stack.extend(getattr(region, "fast", ()))
            stack.extend(getattr(region, "step", ()))
    return total


def kernel_work(kernel: Kernel) -> Size:
    """Estimated picoseconds of one run on one thread, over the kernel's dims."""
    dtypes = value_dtypes(kernel.body)
    first: dict[str, Size] = {
        s.axis: 0 for s in walk(kernel.body) if isinstance(s, Parallel | For | Reduce | Scan | Loop)
    }

    def often(times: Size, extent: Size) -> Size:
        """Iterations in all; an extent that depends on outer axes is taken at their start."""
        return times * (extent.substitute(first) if isinstance(extent, Dim) else extent)

    total: Size = 0
    stack: list[tuple[tuple[Statement, ...], Size]] = [(kernel.body, 1)]
    while stack:
        body, times = stack.pop()
        here = 0
        for s in body:
            if isinstance(s, Let):
                here += WORD * _let_words(s, dtypes)
            elif isinstance(s, Load):
                here += TOUCH * s.dtype.itemsize
            elif isinstance(s, Store | Update):
                here += TOUCH * 4
            elif isinstance(s, Parallel | For | Reduce):
                stack.append((s.body, often(times, s.extent)))
            elif isinstance(s, Scan):
                stack.append((s.body + s.then, often(times, s.extent) * 4))
            elif isinstance(s, If):
                stack += [(s.body, times), (s.otherwise, times)]
            elif isinstance(s, Loop):
                stack.append((s.body, often(times, 16 if s.extent is None else s.extent)))
        total = total + times * here
    return total


def _let_words(let: Let, dtypes: Mapping[str, DType]) -> int:
    op = ALL.get(let.op)
    if op is None:
        return _HEAVY.get(let.op, 1)
    return words_of(op, tuple(dtypes[a] for a in let.args), let.attrs)
