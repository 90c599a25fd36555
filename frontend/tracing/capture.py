"""Arrays and values from outside that a trace uses: hidden inputs of its graph.

Invariants: one input for one array object; a view of a captured array is another input, so a
captured array is only written when no other captured array may share its memory.
Not here: guards of captured Python values (paths.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import TensorType

from .access import Access, HeldObject
from .number import TracedNumber
from .source import user_location
from .state import Input, Trace, fail, require_dtype
from .tensor import TracedArray, fresh
from .views import Base

_FOLDED = 256  # elements of a read-only array that becomes a constant


def capture(trace: Trace, array: np.ndarray[Any, Any]) -> TracedArray:
    """The traced array for a NumPy array that the trace did not make."""
    found = trace.captured.get(id(array))
    if found is not None:
        made: TracedArray = found[1]
        return made
    if isinstance(array, np.ma.MaskedArray | np.matrix):
        raise fail(
            "TM105",
            f"{type(array).__name__} cannot be compiled",
            hint="pass plain arrays (for a masked array, its data and its mask)",
        )
    dtype = require_dtype(array.dtype)
    constant = _constant(trace, array)
    if constant is not None:
        made = constant
    else:
        source = trace.paths.source_of(array) if trace.paths is not None else None
        name, read = source or ("captured", Access(HeldObject(array)))
        item = Input("captured", name, None, read, array, user_location())
        value = trace.add_input(item, TensorType(dtype, array.shape))
        made = TracedArray(
            trace,
            Base(value, element_strides(array), len(trace.inputs) - 1, array.flags.writeable),
        )
    trace.captured[id(array)] = (array, made)
    return made


def element_strides(array: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    """Strides in elements, None where C-contiguous."""
    if array.flags.c_contiguous:
        return None
    return tuple(stride // array.itemsize for stride in array.strides)


def refuse_shared_memory(trace: Trace, input: int) -> None:
    """Refuse to write a captured array that another captured array may overlap."""
    mine = trace.inputs[input]
    if mine.kind == "outer":
        raise fail(
            "TM106",
            f"{mine.name} belongs to the enclosing function and is written in an inner one",
            hint="return the new value from the inner function",
        )
    if mine.kind != "captured":
        return
    for other in trace.inputs:
        if (
            other is not mine
            and other.kind == "captured"
            and np.may_share_memory(mine.value, other.value)
        ):
            raise fail(
                "TM106",
                f"{mine.name} is written and shares memory with {other.name}, "
                "which the function also uses",
                hint="use one of the two arrays and take views of it inside the function",
            )


def lift(trace: Trace, item: Any) -> Value:
    """A value of an enclosing trace as an input of this one. Raises TraceError for others."""
    chain = [trace]
    while chain[-1] is not item.tracing:
        outer = chain[-1].outer
        if outer is None:
            item.tracing.check_alive(item.made)
            raise fail(
                "TM103",
                f"{item!r} belongs to another trace that is still running",
                hint="pass it as an argument",
            )
        chain.append(outer)
    item.tracing.check_alive(item.made)
    value: Value = item.value
    for inner in reversed(chain[:-1]):
        found = inner.captured.get(value)
        if found is None:
            source = Input("outer", value.name, value=value, location=user_location())
            found = inner.add_input(source, value.tensor)
            inner.captured[value] = found
        value = found
    return value


def lifted_number(trace: Trace, item: TracedNumber) -> TracedNumber:
    """A weak number of an enclosing trace."""
    return TracedNumber(trace, lift(trace, item), item.kind)


def _constant(trace: Trace, array: np.ndarray[Any, Any]) -> TracedArray | None:
    """A small array that nobody can write, as a constant."""
    if array.flags.writeable or not array.flags.owndata or array.size > _FOLDED:
        return None
    made = fresh(trace, trace.builder.constant(array))
    made.base_memory.writeable = False
    return made
