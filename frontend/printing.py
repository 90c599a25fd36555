"""`print`: show values of a compiled function each time it runs.

    tm.print("step {} has loss {:.4f}", step, loss)

Inside a compiled function this is an op, ordered by tokens, whose row calls back into Python;
anywhere else it prints at once.

Invariants: lines appear in the order the program has them, before the call returns; a value
shown is never changed by showing it, and gradients do not see it.
Not here: the template's rules and how values look (compiler/ops/effect.py), the row
(compiler/plan.py), calling back (backends/llvm/native/host.py).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import numpy as np

from .compiler.ir.graph import Graph
from .compiler.ops.definition import SignatureError
from .compiler.ops.effect import fill
from .loading import load
from .numpy.operands import value_of
from .tracing.state import Trace, current, fail
from .variable import Variable

_MARK = "\0"
_STATIC = (str, bytes, bool, int, float, complex, type(None))
_STATIC_KINDS = (np.dtype, type, Enum)


def print(template: str, *values: Any) -> None:
    """Print the template, each ``{}`` in it replaced by a value.

    values: arrays, numbers, Variables; inside a compiled function also anything that is known
    while tracing. ``{:.3f}`` formats each number of an array. ``{{`` is a brace.
    Raises ArgError where template and values do not fit.
    """
    trace = current()
    if trace is None:
        plain = [v.read() if isinstance(v, Variable) else v for v in values]
        builtins.print(_filled(template, plain))
    else:
        _emit(trace, template, values)


def callback(attributes: Mapping[str, Any], graph: Graph) -> Callable[..., object]:
    """The function of arrays that a host call of a plan stands for. graph: the traced one."""
    if "function" in attributes:
        made: Callable[..., object] = load("host_calls").callback(attributes, graph)
        return made
    text = attributes["text"]

    def show(*arrays: Any) -> None:
        builtins.print(fill(text, arrays))

    return show


def _emit(trace: Trace, template: str, values: tuple[Any, ...]) -> None:
    """A print op of the values known only when the function runs; the others are in its text."""
    text = _filled(template, [_Slot() if _runs(value) else value for value in values])
    literals = text.replace("{", "{{").replace("}", "}}").split(_MARK)
    text = "".join(f"{{{part}}}" if at % 2 else part for at, part in enumerate(literals))
    trace.emit("print", *[value_of(value) for value in values if _runs(value)], text=text)


def _runs(value: Any) -> bool:
    kind = type(value)  # traced numbers say that they are of Python's class
    return kind not in _STATIC and not issubclass(kind, _STATIC_KINDS)


class _Slot:
    """Stands for a value that is not known yet: its field is marked in the text."""

    def __format__(self, spec: str) -> str:
        return f"{_MARK}{':' if spec else ''}{spec}{_MARK}"


def _filled(template: str, values: list[Any]) -> str:
    try:
        return fill(template, values)
    except SignatureError as problem:
        raise fail(problem.code, f"print {problem.summary}") from None
