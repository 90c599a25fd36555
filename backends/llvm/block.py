"""Which emitter a statement has: the one table over all kinds of statements.

Invariants: `EMITTERS` names every member of `Statement`; a test says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...compiler.kernel.kernel import (
    Check,
    Constant,
    For,
    If,
    IndexValue,
    Let,
    Load,
    Local,
    Loop,
    Parallel,
    Reduce,
    Scan,
    Statement,
    Store,
    Update,
)  # fmt: skip
from .columns import emit_column_loop, is_column_loop
from .flat_columns import emit_flat_columns, is_flat
from .frame import Frame
from .interleaved import store_rows, whole_rows
from .loops import emit_for, emit_if, emit_loop, emit_parallel
from .reduce import emit_reduce
from .rows import emit_row_loop, is_row_loop
from .scan import (
    emit_scan,
    emit_scan_of_columns,
    emit_scan_of_rows,
    is_scan_of_columns,
    is_scan_of_rows,
)
from .statements import (
    emit_check,
    emit_constant,
    emit_index_value,
    emit_let,
    emit_load,
    emit_local,
    emit_store,
    emit_update,
)  # fmt: skip
from .vector_loop import emit_vector_loop


def _emit_parallel(frame: Frame, s: Parallel) -> None:
    """Vector loops have their own form, and so have those over columns or rows that reduce."""
    if is_row_loop(frame, s):
        emit_row_loop(frame, s)
    elif is_scan_of_rows(frame, s):
        emit_scan_of_rows(frame, s)
    elif is_scan_of_columns(frame, s):
        emit_scan_of_columns(frame, s)
    elif s.vector <= 1 or frame.lanes.width > 1:
        emit_parallel(frame, s)
    elif is_flat(frame, s):
        emit_flat_columns(frame, s, lambda: _emit_vectors(frame, s))
    else:
        _emit_vectors(frame, s)


def _emit_vectors(frame: Frame, s: Parallel) -> None:
    """A loop whose iterations are lanes, whatever its sizes."""
    if is_column_loop(frame, s, s.body):
        emit_column_loop(frame, s, s.body)
    else:
        emit_vector_loop(frame, s)


EMITTERS: Mapping[type[Any], Callable[..., None]] = {
    Let: emit_let,
    Constant: emit_constant,
    IndexValue: emit_index_value,
    Load: emit_load,
    Store: emit_store,
    Check: emit_check,
    Update: emit_update,
    Local: emit_local,
    Parallel: _emit_parallel,
    For: emit_for,
    Loop: emit_loop,
    If: emit_if,
    Reduce: emit_reduce,
    Scan: emit_scan,
}


def emit_block(frame: Frame, statements: Iterable[Statement]) -> None:
    """Emit statements in order; columns that fill rows are stored together."""
    block = tuple(statements)
    rows = whole_rows(frame, block) if frame.lanes.width > 1 else {}
    for statement in block:
        together = rows.get(id(statement))
        if together is None:
            EMITTERS[type(statement)](frame, statement)
        elif together:
            store_rows(frame, together)
