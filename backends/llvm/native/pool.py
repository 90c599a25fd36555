"""The thread pool: fork-join over a range of iterations, written in the native language.

One job runs at a time. Its owner publishes it in one word, `state`: a job number (epoch) in the
upper half, OPEN, and the number of workers inside. Workers enter by compare-and-swap while it is
OPEN; the owner takes part, closes the job when no iteration is left, and waits for those inside. A
worker that wakes late finds the job closed and goes back to sleep, so nobody waits for a sleeper.

Invariants: a caller that finds the pool taken (another Python thread, or a job inside a job) does
its own work alone, so nothing ever waits for the pool; the result of a job does not depend on how
it is divided. After a fork the child's pool has no workers and starts new ones on first use
(`runtime`).
Not here: how many threads to use and when to fork (`native.Runtime`), what a chunk computes
(kernels).
"""

from __future__ import annotations

from collections.abc import Callable

from .control import Control, Pool, Process, Timespec
from .language import (
    Ptr,
    Raw,
    cast,
    compare_exchange,
    exchange,
    fetch_add,
    function,
    i64,
    load_acquire,
    local,
    null,
    offset,
    pause,
    ref,
    stack,
    store_release,
)

_OPEN = 1 << 16
_INSIDE = _OPEN - 1
_SYS_FUTEX = 202
_FUTEX_WAIT_PRIVATE = 128
_FUTEX_WAKE_PRIVATE = 129
_UPPER_HALF = 4  # byte offset of a 64-bit word's upper half


def launch(
    ctl: Control,
    kernel: Callable[[Control, Ptr[i64], i64, i64], None],
    args: Ptr[i64],
    end: i64,
    grain: i64,
    threads: i64,
) -> None:
    """Run [0, end) in chunks of `grain` or more on at most `threads` threads (0: all there are)."""
    if end <= grain:
        if end > 0:
            kernel(ctl, args, 0, end)
        return
    pool = ctl.process.pool
    limit = pool.size
    if threads > 0 and threads < limit:
        limit = threads
    chunks = (end + grain - 1) // grain
    if chunks < limit:
        limit = chunks
    if limit > 1 and compare_exchange(ref(pool.owner), 0, 1):
        _fork_join(pool, ctl, kernel, args, end, grain, limit - 1)
        store_release(ref(pool.owner), 0)
        return
    _run_alone(ctl, kernel, args, end, grain)


def _run_alone(
    ctl: Control,
    kernel: Callable[[Control, Ptr[i64], i64, i64], None],
    args: Ptr[i64],
    end: i64,
    grain: i64,
) -> None:
    begin: i64 = 0
    while begin < end:
        kernel(ctl, args, begin, begin + grain if end - begin > grain else end)
        begin += grain
        if ctl.poll(ctl) != 0:
            return


def _fork_join(
    pool: Pool,
    ctl: Control,
    kernel: Callable[[Control, Ptr[i64], i64, i64], None],
    args: Ptr[i64],
    end: i64,
    grain: i64,
    workers: i64,
) -> None:
    if pool.started < pool.size - 1:
        _start_workers(pool, ctl.process)
    pool.kernel = kernel
    pool.ctl = ctl
    pool.args = args
    pool.end = end
    pool.grain = grain
    pool.limit = workers
    pool.next = 0
    epoch = (pool.state >> 32) + 1
    exchange(ref(pool.state), (epoch << 32) + _OPEN)
    if load_acquire(ref(pool.sleepers)) > 0:
        _wake(ctl.process, offset(ref(pool.state), _UPPER_HALF), workers)
    _take_chunks(pool, ctl)
    fetch_add(ref(pool.state), 0 - _OPEN)
    _wait_for_workers(pool, ctl)


def _take_chunks(pool: Pool, ctl: Control) -> None:
    """Run chunks until none is left; the owner and the workers all do this."""
    end = pool.end
    args = pool.args
    while True:
        begin = load_acquire(ref(pool.next))
        size = _chunk_size(pool, end - begin)
        if size == 0:
            return
        if compare_exchange(ref(pool.next), begin, begin + size):
            pool.kernel(ctl, args, begin, begin + size)
            if ctl.poll(ctl) != 0:
                return


def _chunk_size(pool: Pool, left: i64) -> i64:
    """Half of a thread's share of what is left, but the grain at least: long stretches of memory
    first, and small ones to end together (guided self-scheduling, Polychronopoulos and Kuck 1987).
    """
    if left <= pool.grain:
        return left if left > 0 else 0
    share = left // (2 * (pool.limit + 1))
    return share if share > pool.grain else pool.grain


def _wait_for_workers(pool: Pool, ctl: Control) -> None:
    turns: i64 = 0
    while (load_acquire(ref(pool.state)) & _INSIDE) != 0:
        turns += 1
        if turns < pool.spins:
            pause()
        else:
            _sleep_until_joined(pool, ctl)


def _sleep_until_joined(pool: Pool, ctl: Control) -> None:
    """Sleep at most 20 ms, then look at signals; the last worker to leave wakes the owner."""
    exchange(ref(pool.joining), 1)
    state = load_acquire(ref(pool.state))
    if (state & _INSIDE) != 0:
        limit = local(Timespec)
        limit.seconds = 0
        limit.nanoseconds = 20_000_000
        _sleep(ctl.process, ref(pool.state), state & 0xFFFFFFFF, limit)
    store_release(ref(pool.joining), 0)
    ctl.poll(ctl)


def _start_workers(pool: Pool, process: Process) -> None:
    """Start what is missing. If the system refuses a thread, work goes on with those there are."""
    handle = stack(i64, 1)
    while pool.started < pool.size - 1:
        pool.started += 1
        if process.pthread_create(handle, null(Raw), function(_worker), process) != 0:
            pool.started -= 1
            pool.size = pool.started + 1
            return
        process.pthread_detach(handle[0])


def _worker(argument: Raw) -> Raw:
    """A worker's life: wait for a job it has not seen, enter, help, leave."""
    process = cast(Process, argument)
    pool = process.pool
    seen: i64 = 0
    while True:
        seen = _next_epoch(pool, process, seen)
        if _enter(pool, seen):
            _take_chunks(pool, pool.ctl)
            _leave(pool, process)


def _next_epoch(pool: Pool, process: Process, seen: i64) -> i64:
    """Wait until the job number differs: awake for a while, then in the kernel."""
    while True:
        for _ in range(pool.spins):
            epoch = load_acquire(ref(pool.state)) >> 32
            if epoch != seen:
                return epoch
            pause()
        fetch_add(ref(pool.sleepers), 1)
        upper = offset(ref(pool.state), _UPPER_HALF)
        _sleep(process, upper, seen & 0xFFFFFFFF, null(Timespec))
        fetch_add(ref(pool.sleepers), -1)


def _enter(pool: Pool, epoch: i64) -> bool:
    """Enter the job with this number, if it is still open and not full."""
    while True:
        state = load_acquire(ref(pool.state))
        if (state >> 32) != epoch or (state & _OPEN) == 0:
            return False
        if (state & _INSIDE) >= pool.limit:
            return False
        if compare_exchange(ref(pool.state), state, state + 1):
            return True


def _leave(pool: Pool, process: Process) -> None:
    before = fetch_add(ref(pool.state), -1)
    if (before & _INSIDE) == 1 and load_acquire(ref(pool.joining)) != 0:
        _wake(process, ref(pool.state), 1)


def _sleep(process: Process, word: Raw, expected: i64, limit: Timespec) -> None:
    process.syscall(_SYS_FUTEX, word, _FUTEX_WAIT_PRIVATE, expected, limit)


def _wake(process: Process, word: Raw, count: i64) -> None:
    process.syscall(_SYS_FUTEX, word, _FUTEX_WAKE_PRIVATE, count, null(Raw))
