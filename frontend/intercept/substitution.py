"""Functions without source: their code runs on globals and builtins that show the stand-ins.

Python looks names up through ``__getitem__`` of a globals mapping that is not a plain dict, so
each name is replaced as it is read. Calls of methods and of callables in containers are not
seen; plain dispatch remains for those.

Invariants: the function's own globals are never changed.
Not here: what stands for what (callee.py).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ..tracing.capture import capture
from ..tracing.state import Trace
from .bytecode import cell_writes, global_writes, only_called

Callee = Callable[[Any], Any]
Show = Callable[[Any, str], Any]


class _ShownModule:
    """A module whose functions are shown as their stand-ins."""

    def __init__(self, module: ModuleType, show: Show) -> None:
        self._module = module
        self._show = show

    def __getattr__(self, name: str) -> Any:
        return self._show(getattr(self._module, name), name)


class _ShownGlobals(dict[str, Any]):
    """Reads go to the real globals and are shown; nothing is stored here but the builtins."""

    def __init__(self, real: dict[str, Any], show: Show, names: dict[str, Any]) -> None:
        super().__init__(__builtins__=names)
        self.real = real
        self.show = show

    def __getitem__(self, name: str) -> Any:
        return self.show(self.real[name], name)


def substituted(function: FunctionType, callee: Callee, trace: Trace) -> Any:
    """The function on shown globals; itself where it assigns globals."""
    code = function.__code__

    called = only_called(code)

    def show(item: Any, name: str) -> Any:
        if isinstance(item, ModuleType):
            return _ShownModule(item, show)
        if type(item) is np.ndarray:
            return capture(trace, item)
        if isinstance(item, type | np.ufunc) and name not in called:
            return item  # such as dtype=np.float32, np.add.reduce
        return callee(item) if callable(item) else item

    if global_writes(code):
        return function
    names = {name: getattr(builtins, name) for name in dir(builtins)}
    for name in ("len", "int", "float", "complex", "bool", "range", "min", "max", "sum", "any",
                 "all", "map", "filter", "sorted"):  # fmt: skip
        if name in called or not isinstance(names[name], type):
            names[name] = callee(names[name])
    written = cell_writes(code)
    cells = tuple(
        cell if name in written else _shown_cell(cell, name, show)
        for name, cell in zip(code.co_freevars, function.__closure__ or ())
    )
    shown = _ShownGlobals(function.__globals__, show, names)
    copy = FunctionType(code, shown, function.__name__, function.__defaults__, cells)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _shown_cell(cell: CellType, name: str, show: Show) -> CellType:
    try:
        return CellType(show(cell.cell_contents, name))
    except ValueError:  # still empty
        return cell
