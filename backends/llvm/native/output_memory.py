"""Memory of large arrays, taken back when they go: a call that makes one need not fault in pages.

A `Chunk` is a mapping of its own: a head of 64 bytes at the end of one page, then the memory, which
begins on a page (on 2 MiB where it is large enough for huge pages). Freed chunks wait in one list
for each size class, eight classes to a doubling, and in one list by age; above the limit the oldest
go back to the system.

Invariants: a chunk is handed out or in both lists, never both; the lock is held for a few loads and
stores, never while the system is asked; kept bytes are at most the limit once `release` returns.
Any thread may call, with or without the GIL.
Not here: what NumPy is told (`memory_handler`), blocks of small calls (`counting`).
"""

from __future__ import annotations

from .control import Chunk, Memory
from .language import (
    Raw,
    address,
    cast,
    clear_bytes,
    compare_exchange,
    copy_bytes,
    i64,
    is_null,
    null,
    offset,
    pause,
    pointer,
    ref,
    sizeof,
    store_release,
)

LARGE = 256 << 10  # arrays and arenas from this size on
_PAGE = 4096
_SMALLEST = 64 << 10
_HUGE = 2 << 20
_HUGE_FROM = 4 << 20
_MOST = 1 << 47  # no process can address more
_TURNS = 100  # of waiting awake for the lock

_SYS_SCHED_YIELD = 24
_READ_WRITE = 3
_PRIVATE_ANONYMOUS = 0x22
_ADVICE_HUGE = 14


def allocate(memory: Memory, size: i64) -> Raw:
    """At least this many bytes, not cleared, beginning on a page; null if there is no memory."""
    if size < 0 or size > _MOST:
        return null(Raw)
    power: i64 = _SMALLEST
    kind: i64 = 0
    while power * 2 < size:
        power = power * 2
        kind += 8
    step = power // 8
    steps: i64 = 0
    if size > power:
        steps = (size - power + step - 1) // step
    kind += steps
    chunk = _kept_chunk(memory, kind)
    if is_null(chunk):
        chunk = _map(memory, power + steps * step)
        if is_null(chunk):
            trim(memory, 0)
            chunk = _map(memory, power + steps * step)
            if is_null(chunk):
                return null(Raw)
        chunk.kind = kind
    return offset(chunk, sizeof(Chunk))


def release(memory: Memory, data: Raw) -> None:
    """Take memory back that `allocate` gave."""
    chunk = _head(data)
    if chunk.size > memory.limit:
        _unmap(memory, chunk)
        return
    lock(memory)
    first = pointer(Chunk, memory.heads[chunk.kind])
    chunk.before = null(Chunk)
    chunk.next = first
    if not is_null(first):
        first.before = chunk
    memory.heads[chunk.kind] = address(chunk)
    chunk.newer = null(Chunk)
    chunk.older = memory.newest
    if is_null(memory.newest):
        memory.oldest = chunk
    else:
        memory.newest.newer = chunk
    memory.newest = chunk
    memory.kept += chunk.size
    unlock(memory)
    if memory.kept > memory.limit:
        trim(memory, memory.limit)


def trim(memory: Memory, most: i64) -> None:
    """Give the oldest chunks back to the system until at most so many bytes are kept."""
    while True:
        lock(memory)
        chunk = null(Chunk)
        if memory.kept > most:
            chunk = memory.oldest
            _unlink(memory, chunk)
        unlock(memory)
        if is_null(chunk):
            return
        _unmap(memory, chunk)


def lock(memory: Memory) -> None:
    """Nobody else changes the lists until `unlock`; also held across a fork."""
    turns: i64 = 0
    while not compare_exchange(ref(memory.lock), 0, 1):
        pause()
        turns += 1
        if turns > _TURNS:
            memory.process.syscall(_SYS_SCHED_YIELD, null(Raw), 0, 0, null(Raw))


def unlock(memory: Memory) -> None:
    """End what `lock` began."""
    store_release(ref(memory.lock), 0)


def _head(data: Raw) -> Chunk:
    return cast(Chunk, offset(data, 0 - sizeof(Chunk)))


def _kept_chunk(memory: Memory, kind: i64) -> Chunk:
    lock(memory)
    chunk = pointer(Chunk, memory.heads[kind])
    if is_null(chunk):
        memory.mapped += 1
    else:
        memory.reused += 1
        _unlink(memory, chunk)
    unlock(memory)
    return chunk


def _unlink(memory: Memory, chunk: Chunk) -> None:
    """Take a chunk out of both lists."""
    if is_null(chunk.before):
        memory.heads[chunk.kind] = address(chunk.next)
    else:
        chunk.before.next = chunk.next
    if not is_null(chunk.next):
        chunk.next.before = chunk.before
    if is_null(chunk.newer):
        memory.newest = chunk.older
    else:
        chunk.newer.older = chunk.older
    if is_null(chunk.older):
        memory.oldest = chunk.newer
    else:
        chunk.older.newer = chunk.newer
    memory.kept -= chunk.size


def _map(memory: Memory, size: i64) -> Chunk:
    """A new mapping with a chunk of this size, a multiple of pages."""
    process = memory.process
    slack: i64 = _HUGE if size >= _HUGE_FROM else 0
    length = size + _PAGE + slack
    start = process.mmap(null(Raw), length, _READ_WRITE, _PRIVATE_ANONYMOUS, -1, 0)
    if start == -1:
        return null(Chunk)
    data = start + _PAGE
    if slack > 0:
        data = (data + _HUGE - 1) // _HUGE * _HUGE
        unused = data - _PAGE - start
        if unused > 0:
            process.munmap(start, unused)
        end = start + length
        start = data - _PAGE
        if end > data + size:
            process.munmap(data + size, end - data - size)
        length = size + _PAGE
        process.madvise(data, size, _ADVICE_HUGE)
    chunk = pointer(Chunk, data - sizeof(Chunk))
    chunk.size = size
    chunk.start = start
    chunk.length = length
    return chunk


def _unmap(memory: Memory, chunk: Chunk) -> None:
    memory.process.munmap(chunk.start, chunk.length)


# -- the four functions of NumPy's handler


def handler_malloc(memory: Memory, size: i64) -> Raw:
    """PyDataMem_Handler.malloc"""
    return allocate(memory, size)


def handler_calloc(memory: Memory, count: i64, size: i64) -> Raw:
    """PyDataMem_Handler.calloc"""
    if count < 0 or size < 0 or (size > 0 and count > _MOST // size):
        return null(Raw)
    made = allocate(memory, count * size)
    if not is_null(made):
        clear_bytes(made, count * size)
    return made


def handler_realloc(memory: Memory, data: Raw, size: i64) -> Raw:
    """PyDataMem_Handler.realloc: in place while it fits and less than half would be wasted."""
    if is_null(data):
        return allocate(memory, size)
    chunk = _head(data)
    if size >= 0 and size <= chunk.size and (size * 2 >= chunk.size or chunk.size <= _SMALLEST):
        return data
    made = allocate(memory, size)
    if not is_null(made):
        copy_bytes(made, data, size if size < chunk.size else chunk.size)
        release(memory, data)
    return made


def handler_free(memory: Memory, data: Raw, size: i64) -> None:
    """PyDataMem_Handler.free; the size NumPy says is not needed."""
    if not is_null(data):
        release(memory, data)
