"""What is asked of a traced value: whether it is true.

A test that follows from constants is known. One that is made of Python bools among the arguments
alone is known too, and guarded: they are options, on which a function is compiled anew. All
others are for the run.

Not here: what happens then (branches.py, python_loops.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiler.ir.graph import Value
from ..intercept.python_functions import REPLACEMENTS
from ..numpy.operands import value_of
from ..numpy.unsized import Unsized
from ..tracing.capture import capture
from ..tracing.concrete import known
from ..tracing.number import TracedNumber
from ..tracing.state import Trace, running

_LOGIC = frozenset(("logical_not", "logical_and", "logical_or"))


def truth(test: Any) -> Any:
    """The truth value: a bool where it is known, else a traced one. Raises ValueError for arrays
    of several elements."""
    trace = running()
    if type(test) is np.ndarray:
        test = capture(trace, test)
    elif issubclass(type(test), Unsized):
        return bool(test)
    elif hasattr(type(test), "traced"):  # a Variable
        test = test.read()
    test.tracing.check_alive(test.made)
    found = REPLACEMENTS[bool](test)
    value = value_of(found)
    number = known(trace, value)
    if number is not None:
        return bool(number)
    if _is_option(trace, value):
        return bool(found)
    return TracedNumber(trace, value, bool)


def negation(test: TracedNumber) -> TracedNumber:
    """``not test``"""
    trace = running()
    return TracedNumber(trace, trace.emit("logical_not", value_of(test)), bool)


def _is_option(trace: Trace, value: Value) -> bool:
    """Whether a truth value is made of bools among the arguments."""
    if value.node is not None:
        logical = value.node.op.name in _LOGIC
        return logical and all(_is_option(trace, item) for item in value.node.operands)
    source = trace.by_param.get(value)
    if source is None:
        return False
    if source.kind == "outer":
        assert trace.outer is not None
        return _is_option(trace.outer, source.value)
    return source.kind == "scalar" and type(source.value) is bool
