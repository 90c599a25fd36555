"""Quick code of kernels that do different things in the same loops: the loops are compiled once.

A *skeleton* is a kernel whose ops are holes. The layers of a program are often alike but for an
activation here and a function there: their skeleton is one piece of code that calls a routine for
each hole, and a kernel's quick code is the skeleton linked with its own routines.

Invariants: the skeleton says all about a kernel but what its holes compute, so equal skeletons and
machines are equal code. Light ops of two operands (sums, products) stay: a call costs more than
they do. The sums of a matrix product stay whole: they are recognised by their ops.
Not here: routines (outlined.py), the call in a hole's place (statements.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from ...compiler.kernel.contraction import contraction_of
from ...compiler.kernel.fingerprint import identity
from ...compiler.kernel.kernel import Kernel, Let, Reduce, Statement, body_fields, value_dtypes
from ...compiler.ops import ALL
from ...compiler.records import dataclass, replace
from ...compiler.types import DType
from .bodies import HOLE, body_of, weight_of
from .emission import emitted
from .machine import Machine
from .module import build_module
from .native.objects import CodeBlob, link
from .outlined import Hole, Routines
from .statements import routine_of

_LONG = 6  # words of a body of several operands that is a hole


@dataclass(frozen=True, slots=True, eq=False)
class _Skeleton:
    """A kernel with holes; equal where its text and the order of its sizes are."""

    kernel: Kernel
    machine: Machine
    key: tuple[str, tuple[int, ...]]

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Skeleton):
            return False
        return self.key == other.key and self.machine == other.machine


@dataclass(frozen=True, slots=True)
class _Code:
    """The object code of a skeleton, what it calls, and the routine that each hole needs."""

    code: bytes
    called: Mapping[str, tuple[CodeBlob, str]]
    holes: Mapping[str, Hole]


def quick_code(kernel: Kernel, machine: Machine) -> CodeBlob:
    """Code of one kernel that is there soon. It computes the bits of the optimised code."""
    lets: list[Let] = []
    whole = (Reduce,) if contraction_of(kernel) is not None else ()
    body = _with_holes(kernel.body, value_dtypes(kernel.body), lets, whole)
    skeleton = replace(kernel, body=body)
    text, order = identity(skeleton)
    key = text, (len(kernel.dims), *order)
    made = _compiled(_Skeleton(skeleton, machine, key))
    filled = {
        symbol: routine_of(machine, lets[hole.number], hole.operands).linkable
        for symbol, hole in made.holes.items()
    }
    return link(made.code, {**made.called, **filled})


@lru_cache(maxsize=1024)
def _compiled(skeleton: _Skeleton) -> _Code:
    routines = Routines()
    module, _ = build_module([skeleton.kernel], skeleton.machine, routines=routines)
    return _Code(emitted(module, skeleton.machine, 0), routines.codes(), routines.holes)


def _with_holes(
    body: Sequence[Statement],
    dtypes: Mapping[str, DType],
    lets: list[Let],
    whole: tuple[type, ...],
) -> tuple[Statement, ...]:
    """The ops of statements as holes, added to `lets`; statements of the kinds in `whole` stay."""
    made: list[Statement] = []
    for statement in body:
        if isinstance(statement, Let):
            if _is_hole(statement, dtypes):
                hole = f"{HOLE}{len(lets)}"
                lets.append(statement)
                statement = replace(statement, op=hole, attrs={}, result=0)
            made.append(statement)
            continue
        if isinstance(statement, whole):
            made.append(statement)
            continue
        changed: dict[str, Any] = {
            name: _with_holes(getattr(statement, name), dtypes, lets, whole)
            for name in body_fields(statement)
        }
        made.append(replace(statement, **changed) if changed else statement)
    return tuple(made)


def _is_hole(let: Let, dtypes: Mapping[str, DType]) -> bool:
    if let.op not in ALL:
        return False
    if len(let.args) == 1:
        return True
    body = body_of(let.op, tuple(dtypes[a] for a in let.args), let.attrs, let.dtype)
    return weight_of(body) >= _LONG
