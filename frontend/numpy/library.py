"""Ops that a library computes: where their routines are, and how many problems they are given.

The routines are the inner loops of the generalized ufuncs in NumPy's own modules. A ufunc is a C
structure with a table of them, one for each list of dtypes (`PyUFuncObject` in NumPy's C API).
The addresses are captured as an array, so they are read when a compiled function runs, and no plan
or machine code that is kept holds one.

Not here: which ops there are (compiler/ops/library.py), NumPy's functions made of them.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracemill.compiler.dims import Size
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.ops import ALL
from tracemill.compiler.ops.definition import OpDef
from tracemill.compiler.ops.library import rows_of, ufunc_of
from tracemill.compiler.types import DType

from ..tracing.capture import capture
from ..tracing.state import Trace
from .words import broadcast_shapes, broadcast_to


class _Ufunc(ctypes.Structure):
    """The head of NumPy's PyUFuncObject."""

    _fields_ = (
        ("head", ctypes.c_char * object.__basicsize__),
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
    )


@functools.cache
def _table(module: str) -> np.ndarray[Any, Any]:
    """The routines of a library: for each op and dtype the code, and what it is handed."""
    return np.array([_routine(op, dtype) for op, dtype in rows_of(module)], np.uint64)


def _routine(op: OpDef, dtype: DType) -> tuple[int, int]:
    """Zeros where there is none for that dtype."""
    routine = op.routine
    assert routine is not None
    ufunc = ufunc_of(routine)
    first = dtype.numpy.char
    wide = [at for at, types in enumerate(ufunc.types) if types[0] == first and "g" not in types]
    if not wide:
        return 0, 0
    found = _Ufunc.from_address(id(ufunc))
    data = found.data[wide[0]] if found.data else None
    return found.functions[wide[0]] or 0, data or 0


def call_library(trace: Trace, name: str, operands: Sequence[Value], **sizes: Size) -> Any:
    """The tensors of a library op, one or a tuple; the axes before the core ones broadcast."""
    op = ALL[name]
    routine = op.routine
    assert routine is not None
    ranks = [len(core) for core in routine.takes]
    shapes = [v.tensor.shape[: v.tensor.rank - rank] for v, rank in zip(operands, ranks) if rank]
    batch = broadcast_shapes(trace, shapes)
    given = [
        broadcast_to(trace, v, (*batch, *v.tensor.shape[v.tensor.rank - rank :])) if rank else v
        for v, rank in zip(operands, ranks)
    ]
    table = capture(trace, _table(routine.module))
    made = trace.emit(name, table.value, *given, **sizes)
    if not routine.fails:
        return made
    tensors = made[:-1]
    return tensors if len(tensors) > 1 else tensors[0]
