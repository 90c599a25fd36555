"""A process that compiles kernels for another one: what runs in it.

Invariants: standard output belongs to messages alone; Ctrl-C is the parent's business. The process
ends when the parent closes its end, is gone, or asks for nothing in `IDLE_SECONDS`.
Not here: messages (`wire`), the parent's side (`hands`).
"""

from __future__ import annotations

import os
import select
import signal
from typing import TYPE_CHECKING

from ...compiler.kernel.kernel import Kernel
from ..llvm.machine import host_machine
from ..llvm.module import compile_module
from ..llvm.native.objects import link
from ..llvm.skeletons import quick_code
from .effort import is_light
from .mapped import filled
from .templates import template
from .wire import DONE, FAILED, Effort, Request, read_frame, unpacked, write_frame

if TYPE_CHECKING:
    from ..llvm.machine import Machine

IDLE_SECONDS = 60.0
_LOOK_SECONDS = 2.0  # how often an idle process looks whether its parent is alive


def compiled(kernel: Kernel, machine: Machine) -> bytes:
    """The linked code of one kernel, as a store keeps it."""
    level = 0 if is_light(kernel) else 2
    return link(compile_module([kernel], machine, level=level).code).to_bytes()


def quickly_compiled(kernel: Kernel, machine: Machine) -> bytes:
    """Code that is there sooner, runs slower and computes the same bits. Kernels that are alike
    but for constants, too, share the loops that are compiled."""
    with_slots, words = template(kernel)
    return filled(quick_code(with_slots, machine).to_bytes(), words).to_bytes()


def answer(request: Request) -> bytes:
    """The code that is asked for."""
    make = quickly_compiled if request.effort is Effort.QUICK else compiled
    return make(request.kernel, request.machine or host_machine())


def serve(parent: int, nice: int = 0) -> None:
    """Answer requests from standard input until there will be no more."""
    os.nice(nice)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)
    os.close(nowhere)
    write_frame(answers, DONE + __file__.encode())
    while _awaited(requests, parent):
        data = read_frame(requests)
        if data is None:
            return
        write_frame(answers, _answer(data))


def _answer(data: bytes) -> bytes:
    try:
        return DONE + answer(unpacked(data))
    except Exception:  # noqa: BLE001 - whatever it is, the parent meets it again and says it
        return FAILED


def _awaited(requests: int, parent: int) -> bool:
    """Wait for a request; false if there will be none."""
    waited = 0.0
    while waited < IDLE_SECONDS and os.getppid() == parent:
        if select.select([requests], [], [], _LOOK_SECONDS)[0]:
            return True
        waited += _LOOK_SECONDS
    return False
