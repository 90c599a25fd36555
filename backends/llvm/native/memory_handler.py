"""NumPy's memory handler over `output_memory`: the capsule arrays refer to, and its limit.

An array that owns its data names the handler that frees it (NEP 49). Ours is never the current
one: NumPy's own arrays keep NumPy's memory, and only results of compiled calls name ours.

Invariants: what an array may still refer to when everything else is gone (code, tables, capsule) is
never freed. `handler_unsupported` has looked at the running NumPy before the field of an array is
trusted; where it says no, NumPy allocates results of every size.
Not here: the lists (`output_memory`), the arrays (`results`).
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .cabi import NPY_OWNDATA, PyArrayObject
from .control import Memory
from .language import layout_of
from .loader import Loaded
from .memory import Record
from .process import numpy_table

_KEPT_AT_MOST = 512 << 20
_SHARE = 8  # of the machine's memory, or of what the control group allows
_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_GET_HANDLER = 305  # PyDataMem_GetHandler in NumPy's table
_VERSION = 1
_CAPSULE = ctypes.c_char_p(b"mem_handler")
_FUNCTIONS = ("handler_malloc", "handler_calloc", "handler_realloc", "handler_free")


class MemoryUse(NamedTuple):
    """What the memory of large results and temporaries has done so far.

    kept: bytes waiting for the next call; limit: what they may grow to. mapped: pieces the system
    was asked for; reused: pieces it was not asked for. refused: why NumPy's own memory is used
    for results, if it is.
    """

    kept: int
    limit: int
    mapped: int
    reused: int
    refused: str | None


class _Handler(ctypes.Structure):
    """PyDataMem_Handler"""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        *[(name, ctypes.c_void_p) for name in _FUNCTIONS],
    ]


def handler_unsupported() -> str | None:
    """Why arrays of this NumPy must not be given memory of ours; None if they may."""
    current = ctypes.PYFUNCTYPE(ctypes.py_object)(
        ctypes.c_int64.from_address(numpy_table() + 8 * _GET_HANDLER).value
    )()
    array = np.empty(3)
    view = array[1:]
    place = layout_of(PyArrayObject).fields["mem_handler"].offset
    if ctypes.c_int64.from_address(id(array) + place).value != id(current):
        return "ndarray keeps its memory handler elsewhere"
    if ctypes.c_int64.from_address(id(view) + place).value != 0:
        return "a view of an array has a memory handler"
    if array.flags.num & NPY_OWNDATA == 0 or view.flags.num & NPY_OWNDATA != 0:
        return "OWNDATA is another flag"
    return None


def new_memory() -> Record:
    """The lists of a process, empty; `process` is for the caller to fill in."""
    record = Record(Memory)
    record["limit"] = min(_KEPT_AT_MOST, _memory_size() // _SHARE)
    keep_forever(record)
    return record


def new_capsule(code: Loaded, memory: Record) -> object:
    """A handler whose functions are `code` and whose context is `memory`."""
    addresses = [code.address_of(name) for name in _FUNCTIONS]
    handler = _Handler(b"tracemill", _VERSION, memory.address, *addresses)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule: object = new(ctypes.addressof(handler), _CAPSULE, None)
    for thing in (code, handler, capsule):
        keep_forever(thing)
    return capsule


def keep_forever(thing: object) -> None:
    """Let an object outlive the interpreter: arrays may be freed after everything else."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _memory_size() -> int:
    """Bytes this process may use, as far as the system says."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in _GROUP_LIMITS:
        try:
            text = Path(name).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            found = min(found, int(text))
    return found
