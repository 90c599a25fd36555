"""Finished plans in the compile cache: what a process traces again, it need not compile again.

A plan follows from its traced graph, what is asked of it and the machine; these are its key. What
is kept is the plan's bytes and, for each of its kernels, where the kernel's code is.

Invariants: a found plan is the one compiling would give, code included; an entry that cannot be
read, or whose code is gone, is a miss; a plan without a written form is not kept.
Not here: the bytes of a plan (compiler/plan_bytes.py), the cache (runtime/cache.py).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np

from .. import engine
from ..backends.cpu.target import host_key
from ..compiler.ir.fingerprint import fingerprint
from ..compiler.plan import ExecutionPlan
from ..compiler.plan_bytes import PlanBytesError, places_of, plan_from_bytes, plan_to_bytes
from ..compiler.records import replace
from ..runtime.backend import LoadedKernels, StoredCode
from ..settings import log
from .outputs import returned, shared, strided
from .specialise import Traced

# Grows when what is kept beside a plan's bytes changes; the compiler's sources are in every key.
_FORMAT = 1


def find(traced: Traced) -> tuple[ExecutionPlan, LoadedKernels] | None:
    """The kept plan of a version with its code mapped, where there is one."""
    if engine.compile_cache() is None:
        return None
    key = _key(traced)
    entry = engine.code_store().get(key)
    found = None if entry is None else _read(traced, entry)
    log("cache", f"{'miss' if found is None else 'hit'} plan {key[-12:]}")
    return found


def keep(traced: Traced, plan: ExecutionPlan, stored: Sequence[StoredCode]) -> None:
    """Keep a plan for processes to come."""
    if engine.compile_cache() is None or len(stored) != len(plan.kernels):
        return
    try:
        data = plan_to_bytes(plan, places_of(traced.trace.graph)[0])
    except PlanBytesError:
        return
    codes = json.dumps([[code.kernel, code.key, code.words.hex()] for code in stored]).encode()
    engine.code_store().put(_key(traced), len(codes).to_bytes(8, "little") + codes + data)


def _read(traced: Traced, entry: bytes) -> tuple[ExecutionPlan, LoadedKernels] | None:
    graph = traced.trace.graph
    end = 8 + int.from_bytes(entry[:8], "little")
    try:
        rows = json.loads(entry[8:end])
        stored = [StoredCode(kernel, key, bytes.fromhex(words)) for kernel, key, words in rows]
        plan = plan_from_bytes(entry[end:], places_of(graph)[0])
    except (ValueError, TypeError):
        return None
    codes = engine.codes()
    if len(stored) != len(plan.kernel_names) or not codes.restore(stored, engine.code_store()):
        return None
    return replace(plan, name=graph.name), codes.loaded([code.kernel for code in stored], 0)


def _key(traced: Traced) -> str:
    """Everything a plan follows from. Hints are in it: they decide how kernels are split."""
    trace, target = traced.trace, engine.target()
    words = [
        _FORMAT,
        np.__version__,  # constants are folded by NumPy
        host_key(),
        (target.vector_bits, target.threads, target.name, sorted(target.features)),
        fingerprint(trace.graph),
        places_of(trace.graph)[1],
        sorted(trace.graph.hints.items()),
        [item.kind for item in trace.inputs],
        sorted(trace.writes.items()),
        returned(traced)[0],
        strided(traced),
        shared(traced),
    ]
    return "plan-" + hashlib.sha256(repr(words).encode()).hexdigest()
