"""Reference counts and the memory a call borrows, in the native language.

Invariants: reference counts change with the GIL held; immortal objects (a negative lower half,
from CPython 3.12 on) are left alone. A block is either in flight or in its cache word, never both.
Not here: who owns what (`results`, `entry`).
"""

from __future__ import annotations

from .cabi import PyObject
from .control import Process
from .language import (
    Ptr,
    Raw,
    cast,
    exchange,
    i32,
    i64,
    is_null,
    null,
    offset,
    sizeof,
)
from .layout import Block
from .output_memory import LARGE, allocate, release


def take(thing: PyObject) -> PyObject:
    """A new reference to an object."""
    if i32(thing.ob_refcnt) >= 0:
        thing.ob_refcnt += 1
    return thing


def drop(process: Process, thing: PyObject) -> None:
    """Give up a reference; null is allowed."""
    if is_null(thing) or i32(thing.ob_refcnt) < 0:
        return
    thing.ob_refcnt -= 1
    if thing.ob_refcnt == 0:
        process._Py_Dealloc(thing)


def borrow_block(process: Process, cached: Ptr[Raw], size: i64) -> Raw:
    """Memory of at least this many bytes, 64-aligned: the cached block if it is large enough."""
    block = cast(Block, exchange(cached, null(Raw)))
    if not is_null(block):
        if block.size >= size:
            return offset(block, sizeof(Block))
        process.free(block)
    rounded = (size + sizeof(Block) + 63) // 64 * 64
    block = cast(Block, process.aligned_alloc(64, rounded))
    if is_null(block):
        return null(Raw)
    block.size = rounded - sizeof(Block)
    return offset(block, sizeof(Block))


def return_block(process: Process, cached: Ptr[Raw], memory: Raw) -> None:
    """Put a block back; of two calls that ran at once, the later one's block stays."""
    if is_null(memory):
        return
    other = exchange(cached, offset(memory, 0 - sizeof(Block)))
    if not is_null(other):
        process.free(other)


def borrow_arena(process: Process, cached: Ptr[Raw], size: i64) -> Raw:
    """Temporary memory of a call; a large piece is shared by all that need one of its size."""
    if size >= LARGE:
        return allocate(process.memory, size)
    return borrow_block(process, cached, size)


def return_arena(process: Process, cached: Ptr[Raw], memory: Raw, size: i64) -> None:
    """Give back what `borrow_arena` gave for this size; null is allowed."""
    if size < LARGE:
        return_block(process, cached, memory)
    elif not is_null(memory):
        release(process.memory, memory)
