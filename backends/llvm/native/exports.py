"""The native functions the outside calls: the roots of the unit that `build` compiles.

Invariants: everything else of the native language is reached from these.
Not here: compiling (`build`); a warm start does not import this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import cells, control, function_type, output_memory, pool
from .entry import enter

EXPORTS: tuple[Callable[..., Any], ...] = (
    enter,
    pool.launch,
    cells.lock_cell,
    cells.unlock_cell,
    control.begin_control,
    function_type.traverse,
    function_type.clear,
    function_type.dealloc,
    function_type.descr_get,
    function_type.new_function,
    function_type.install,
    function_type.remove,
    function_type.set_time_limit,
    function_type.let_pass,
    function_type.release_blocks,
    output_memory.handler_malloc,
    output_memory.handler_calloc,
    output_memory.handler_realloc,
    output_memory.handler_free,
    output_memory.trim,
    output_memory.lock,
    output_memory.unlock,
)
