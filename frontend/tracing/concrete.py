"""Numbers that can be known while tracing.

`known` finds the content of a value made of constants alone. `concrete` also takes the numbers
of scalar arguments, sizes, and small captured arrays of integers or bools from the example call,
and guards them. `require` is a condition, looked at while tracing where it is known then.

Not here: folding of the finished graph (a pass does that).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.dims import Dim
from tracemill.compiler.ir.attrs import has_dims
from tracemill.compiler.ir.graph import Node, Value
from tracemill.compiler.ir.traversal import counted
from tracemill.compiler.ops.definition import Structure
from tracemill.compiler.types import TensorType

from .state import Input, Trace, fail

_LARGEST = 4096  # elements
_MOST_NODES = 2000
_PURE = frozenset(
    (
        Structure.ELEMENTWISE, Structure.CREATION, Structure.MOVEMENT, Structure.REDUCTION,
        Structure.SCAN, Structure.CONTRACTION,
    )
)  # fmt: skip


def known(trace: Trace, value: Value) -> Any:
    """The content as a NumPy array where it follows from constants alone, else None."""
    if value in trace.known:
        return trace.known[value]
    order = _needed(value, trace, fix=False)
    found = None if order is None else _evaluate(order, value, trace)
    trace.known[value] = found
    return found


def require(trace: Trace, ok: Value, code: str, text: str) -> None:
    """Fail now where it is known that a condition does not hold, else when the call runs."""
    found = known(trace, ok)
    if found is None:
        trace.emit("check", ok, code=code)
    elif not np.all(found):
        raise fail(code, text)


def concrete(trace: Trace, value: Value, reason: str) -> Any:
    """The number of a rank 0 value (or an array of one element), its sources guarded; or None."""
    if any(type(s) is not int or s != 1 for s in value.tensor.shape):
        return None
    found = known(trace, value)
    if found is not None:
        return found.reshape(())[()]
    order = _needed(value, trace, fix=True)
    if order is None:
        return None
    for item in order:
        if isinstance(item, Node):
            for size in _dims(item.attrs):
                trace.sizes.specialise(size, reason)
        else:
            source = trace.by_param[item]
            if source.kind == "outer":
                continue  # guarded there
            if source.leaf is None:
                trace.fix_captured(source, reason)
            else:
                trace.fix_leaf(source.leaf, source.value, reason)
    found = _evaluate(order, value, trace)
    return None if found is None else found.reshape(())[()]


def _needed(value: Value, trace: Trace, fix: bool) -> list[Node | Value] | None:
    """Nodes and scalar parameters that `value` is made of, operands first; None if impossible."""
    order: list[Node | Value] = []
    seen: set[int] = set()
    pending: list[tuple[Value, bool]] = [(value, False)]
    while pending:
        item, ready = pending.pop()
        node = item.node
        if ready:
            order.append(node if node is not None else item)
            continue
        if id(node or item) in seen:
            continue
        seen.add(id(node or item))
        if len(seen) > _MOST_NODES or not _small(item):
            return None
        pending.append((item, True))
        if node is None:
            source = trace.by_param.get(item)
            if not fix or source is None or not _is_number(trace, source):
                return None
            continue
        if node.op.structure is not Structure.GATHER and (
            node.op.structure not in _PURE or len(node.results) != 1
        ):
            return None
        if not fix and has_dims(node.attrs):
            return None
        if counted(item) is not None:  # however long the iota is
            continue
        pending.extend((operand, False) for operand in node.operands)
    return order


def can_be_fixed(trace: Trace, value: Value) -> bool:
    """Whether `concrete` would find the number, at the price of guards."""
    return _needed(value, trace, fix=True) is not None


def _is_number(trace: Trace, source: Input) -> bool:
    """Whether an input's content may be taken from the example call and guarded: a scalar's, or
    that of a captured array of what indices and flags are; of a body, what is such around it."""
    if source.kind == "outer":
        return trace.outer is not None and can_be_fixed(trace.outer, source.value)
    if source.kind == "captured":
        return source.value.dtype.kind in "biu"
    return source.leaf is not None and source.value is not None


def _small(value: Value) -> bool:
    if not isinstance(value.type, TensorType):
        return False
    count = 1
    for size in value.type.shape:
        if isinstance(size, Dim):
            # only sizes made into numbers have symbolic shapes here: iota(n + 1) and its slice
            return value.node is not None and value.node.op.structure is Structure.CREATION
        count *= size
    return count <= _LARGEST


def _evaluate(order: list[Node | Value], wanted: Value, trace: Trace) -> Any:
    content: dict[Value, Any] = {}
    with np.errstate(all="ignore"):
        for item in order:
            if isinstance(item, Value):
                source = trace.by_param[item]
                if source.kind == "outer":
                    content[item] = _outer_number(trace, source)
                    continue
                content[item] = np.asarray(source.value, item.tensor.dtype.numpy)
                continue
            size = counted(item.results[0])
            if size is not None:
                content[item.results[0]] = np.array([_number(size, trace)], np.int64)
                continue
            arrays = [content[operand] for operand in item.operands]
            made = item.op.reference(*arrays, **_numbers(item.attrs, trace))
            if item.op.structure is Structure.GATHER:
                made, out_of_bounds = made
                if out_of_bounds:
                    return None
            content[item.results[0]] = np.asarray(made)
    found = content[wanted]
    found.flags.writeable = False
    return found


def _outer_number(trace: Trace, source: Input) -> Any:
    """What a value around a body is in the example call, guarded there."""
    assert trace.outer is not None
    return np.asarray(concrete(trace.outer, source.value, "a body of control flow asks for it"))


def _numbers(attrs: Any, trace: Trace) -> dict[str, Any]:
    return {key: _number(item, trace) for key, item in attrs.items()}


def _number(item: Any, trace: Trace) -> Any:
    if isinstance(item, Dim):
        return trace.sizes.hint(trace.sizes.normal(item))
    if isinstance(item, tuple):
        return tuple(_number(part, trace) for part in item)
    return item


def _dims(item: Any) -> list[Dim]:
    if isinstance(item, Dim):
        return [item]
    if isinstance(item, dict):
        return [size for part in item.values() for size in _dims(part)]
    if isinstance(item, tuple):
        return [size for part in item for size in _dims(part)]
    return []
