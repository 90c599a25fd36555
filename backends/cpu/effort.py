"""How much a kernel costs to compile, and which are worth the best code at once.

Optimised machine code takes many times as long to make as quick code. Where a list takes
long, what is short in the call at hand is compiled quickly and again, better, while it runs
(`improving`). What runs long gets the best code at once: kernels of much work in this call, matrix
products of some work, whose inner loops suffer most without it, and sorts.

Invariants: pure; the choice depends on kernels and times alone.
Not here: who compiles (`crew`, `improving`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...compiler.kernel.contraction import contraction_of
from ...compiler.kernel.kernel import For, Kernel, Loop, Parallel, Reduce, Scan, walk
from ...compiler.kernel.packing import packing_of
from ...compiler.kernel.sorting import is_sorting

LONG_LIST = 1.0  # seconds of work, from which on code is made quickly first
LONG_RUN = 1_000_000  # nanoseconds in a call that are worth the best code at once
SHORT_PRODUCT = 20_000  # the same of a matrix product, whose inner loops suffer most without it
_FEW_ITERATIONS = 16
_QUICKER = 25  # times


def seconds(kernels: Sequence[Kernel]) -> float:
    """What these take one after the other, roughly: by the statements of their text."""
    return sum(0.005 + 0.001 * sum(1 for _ in walk(kernel.body)) for kernel in kernels)


def quick_seconds(kernels: Sequence[Kernel]) -> float:
    """The same for quick code."""
    return seconds(kernels) / _QUICKER


def is_light(kernel: Kernel) -> bool:
    """Whether it does so little that optimising it takes longer than all its runs: a few scalars
    or a few iterations, whatever the sizes of the call."""
    iterations = 1
    if is_sorting(kernel):
        return False
    for statement in walk(kernel.body):
        if isinstance(statement, Parallel | For | Loop | Reduce | Scan):
            extent = statement.extent
            if not isinstance(extent, int):
                return False
            iterations *= max(extent, 1)
    return iterations <= _FEW_ITERATIONS


def quick_first(kernels: Mapping[str, Kernel], times: Mapping[str, int | None]) -> frozenset[str]:
    """Which of these kernels to compile are first compiled quickly, by key.

    times: nanoseconds in the call at hand, of those where they are known; 0: it does not run.
    """
    short = {
        key: kernel
        for key, kernel in kernels.items()
        if not _is_worth_it(kernel) and _is_short(kernel, times.get(key))
    }
    if seconds(list(short.values())) < LONG_LIST:
        return frozenset()
    return frozenset(short)


def _is_worth_it(kernel: Kernel) -> bool:
    """Whether any code but the best would be a loss: a sort, or light anyway."""
    return is_light(kernel) or is_sorting(kernel)


def _is_short(kernel: Kernel, time: int | None) -> bool:
    """Whether it takes so few nanoseconds that a call hardly feels what code it is. Of those whose
    time is not known products count as long."""
    if packing_of(kernel) is not None or contraction_of(kernel) is not None:
        return time is not None and time < SHORT_PRODUCT
    return time is None or time < LONG_RUN
