"""What a code object reads and writes by name.

Not here: its source.
"""

from __future__ import annotations

import dis
import functools
import itertools
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

# Ways to call a function of a module, or a method.
_CALLING = frozenset(("PUSH_NULL", "CACHE"))
_ALIKE = {"LOAD_METHOD": "LOAD_ATTR"}
_WRITING_GLOBALS = ("STORE_GLOBAL", "DELETE_GLOBAL")


def instructions(code: CodeType, *names: str) -> Iterator[dis.Instruction]:
    """The instructions of these names. Most code has none of them, which is seen at once."""
    wanted = {dis.opmap[name] for name in names if name in dis.opmap}
    if not wanted.isdisjoint(code.co_code[::2]):
        yield from (step for step in dis.get_instructions(code) if step.opname in names)


@functools.lru_cache(maxsize=2048)
def global_reads(code: CodeType) -> frozenset[str]:
    """Names of globals that `code` and the functions in it read and do not assign."""
    reads: set[str] = set()
    writes: set[str] = set()
    for inner in nested(code):
        reads.update(step.argval for step in instructions(inner, "LOAD_GLOBAL", "LOAD_NAME"))
        writes.update(step.argval for step in instructions(inner, *_WRITING_GLOBALS))
    return frozenset(reads - writes)


def global_writes(code: CodeType) -> bool:
    """True where `code` or a function in it assigns a global."""
    return any(any(instructions(inner, *_WRITING_GLOBALS)) for inner in nested(code))


@functools.lru_cache(maxsize=2048)
def cell_writes(code: CodeType) -> frozenset[str]:
    """Free variables that `code` or the functions in it assign."""
    return frozenset(
        step.argval for inner in nested(code) for step in instructions(inner, "STORE_DEREF")
    )


@functools.lru_cache(maxsize=2048)
def only_called(code: CodeType) -> frozenset[str]:
    """Names of globals and attributes that `code` reads only to call them at once."""
    called: set[str] = set()
    other: set[str] = set()
    for inner in nested(code):
        for step in instructions(inner, "LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD"):
            at_once = step.opname == "LOAD_METHOD" or _pushes_null(step.opname, step.arg or 0)
            (called if at_once else other).add(step.argval)
    return frozenset(called - other)


def _pushes_null(kind: str, argument: int) -> bool:
    """Whether a load prepares a call: its argument's low bit (for attributes since 3.12)."""
    return bool(argument & 1) and (kind == "LOAD_GLOBAL" or sys.version_info >= (3, 12))


def nested(code: CodeType) -> Iterator[CodeType]:
    """The code object and all inside it."""
    pending = [code]
    while pending:
        at = pending.pop()
        yield at
        pending.extend(const for const in at.co_consts if isinstance(const, CodeType))


def does_the_same(a: CodeType, b: CodeType) -> bool:
    """Whether two code objects of one name and line come from the same text. How names of modules
    are called depends on what else was compiled with them."""
    if a == b:
        return True
    if (a.co_name, a.co_firstlineno) != (b.co_name, b.co_firstlineno):
        return False
    pairs = itertools.zip_longest(_steps(a), _steps(b))
    return all(
        does_the_same(left[1], right[1])
        if left and right and isinstance(left[1], CodeType) and isinstance(right[1], CodeType)
        else left == right
        for left, right in pairs
    )


def _steps(code: CodeType) -> Iterator[tuple[str, Any]]:
    """What each instruction does, but for places in the code."""
    for step in dis.get_instructions(code):
        if step.opname not in _CALLING:
            jumps = step.opcode in dis.hasjrel or step.opcode in dis.hasjabs
            yield _ALIKE.get(step.opname, step.opname), None if jumps else step.argval
