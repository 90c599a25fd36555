"""Kernels that differ only in constants: one of them is compiled, the others are copies.

A layer's scale, a rate, a number of the loop that was unrolled: traced programs are full of kernels
that are equal but for such numbers. A *template* is such a kernel with slots for its constants.

Invariants: a constant that code generation may look at stays in the template: integers, zeros,
ones and other powers of two, infinities, NaN. A copy computes the same bits as the kernel compiled
by itself.
Not here: how a slot is read (llvm/slots.py) and filled (`mapped`), when a template pays
(`backend`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...compiler.kernel.kernel import Constant, Kernel, Statement, body_fields
from ...compiler.records import dataclass, replace
from ...compiler.types import F32, F64
from ..llvm.slot import Slot

_FORMS = {F32: "<fxxxx", F64: "<d"}
_FEW = 4  # kernels that a template must serve: compiled by itself, one is a little faster


@dataclass(slots=True)
class Family:
    """A kernel to compile, and for each kernel it serves its key and its words."""

    kernel: Kernel
    members: list[tuple[str, bytes]]


def families(kernels: Mapping[str, Kernel], key_of: Callable[[Kernel], str]) -> dict[str, Family]:
    """What to compile for `kernels`, by key: templates of many, others as they are."""
    alone = {key: Family(kernel, [(key, b"")]) for key, kernel in kernels.items()}
    if len(kernels) < _FEW:
        return alone
    shared: dict[str, Family] = {}
    for key, kernel in kernels.items():
        with_slots, words = template(kernel)
        if words:
            family = shared.setdefault(key_of(with_slots), Family(with_slots, []))
            family.members.append((key, words))
    shared = {key: family for key, family in shared.items() if len(family.members) >= _FEW}
    served = {key for family in shared.values() for key, _ in family.members}
    return shared | {key: family for key, family in alone.items() if key not in served}


def template(kernel: Kernel) -> tuple[Kernel, bytes]:
    """The kernel with slots for its constants, and the words that make it this kernel; a template
    is its own, without words."""
    words: list[bytes] = []
    return replace(kernel, body=_with_slots(kernel.body, words)), b"".join(words)


def _with_slots(body: Sequence[Statement], words: list[bytes]) -> tuple[Statement, ...]:
    made: list[Statement] = []
    for statement in body:
        if isinstance(statement, Constant) and _may_vary(statement):
            word = struct.pack(_FORMS[statement.dtype], statement.value)
            words.append(word)
            made.append(replace(statement, value=Slot(len(words) - 1)))
            continue
        changed: dict[str, Any] = {
            name: _with_slots(getattr(statement, name), words) for name in body_fields(statement)
        }
        made.append(replace(statement, **changed) if changed else statement)
    return tuple(made)


def _may_vary(statement: Constant) -> bool:
    if statement.dtype not in _FORMS or isinstance(statement.value, Slot):
        return False
    value = float(statement.value)
    return math.isfinite(value) and value != 0 and abs(math.frexp(value)[0]) != 0.5
