"""Slices whose bounds are known only when the function runs: ``x[i:i + 5]``, ``x[:j]``.

    length        inside its axis                  becomes
    known         shown by the loop's range        a view (tracing/gathered.py)
    known         not shown                        that many elements, cut at their ends (cut.py)
    of the run    -                                the whole axis, cut

A cut array of known length that has to be whole, where an array is needed, fails the call if it is
not; but in the trip of a `for` it is refused instead, as the loop can run while tracing.

Bounds that could be guarded (an argument that is a Python number) are numbers here, as they
decide sizes.
Not here: slices of known bounds (keys.py).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracemill.compiler.dims import Size, floor_divide
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.records import dataclass
from tracemill.compiler.types import I64

from ..tracing.affine import Affine, Atom, affine_of
from ..tracing.concrete import can_be_fixed, concrete, known
from ..tracing.gathered import Window
from ..tracing.memory import around
from ..tracing.number import TracedNumber
from ..tracing.state import Trace, fail, running
from ..tracing.tensor import TracedArray, TracedScalar
from .cut import Axes, Cut, Ends
from .operands import value_of
from .selection import same_value

_SUMS = {"add": 1, "sub": -1}  # what the right operand counts
_REASON = "a slice of a loop's lies inside its axis"


@dataclass(frozen=True, slots=True)
class RunTimeSlice:
    """A slice of the axis that it is in the result of the rest of the key."""

    axis: int
    start: Any
    stop: Any
    step: int


def split(key: Any) -> tuple[Any, list[RunTimeSlice]]:
    """A key with ``:`` for the slices of the run, and those. Other keys stay as they are."""
    items = key if type(key) is tuple else (key,)
    if not any(type(item) is slice and _is_of_the_run(item) for item in items):
        return key, []
    found: list[RunTimeSlice] = []
    rest: list[Any] = []
    axis = 0
    for item in items:
        if type(item) is slice and _is_of_the_run(item):
            found.append(RunTimeSlice(axis, _integer(item.start), _integer(item.stop), _step(item)))
            item = slice(None)
        elif item is not None and not isinstance(item, slice | int | np.integer):
            raise _refused(key)  # an ellipsis, or arrays, which move axes
        rest.append(item)
        axis += item is None or isinstance(item, slice)
    return (tuple(rest) if type(key) is tuple else rest[0]), found


@dataclass(frozen=True, slots=True)
class Part:
    """Part of an array: all elements of a view, or those between the ends of its axes."""

    view: TracedArray
    axes: Axes

    @property
    def content(self) -> TracedArray | Cut:
        """What user code reads."""
        if not any(self.axes):
            return self.view
        return Cut(self.view.tracing, self.view.value, self.axes, self.view)


def taken(array: TracedArray, slices: Sequence[RunTimeSlice]) -> Part:
    """The part of an array."""
    axes: list[Ends | None] = [None] * array.ndim
    for item in slices:
        array, axes[item.axis] = _taken(running(), array, item)
    return Part(array, tuple(axes))


def _taken(trace: Trace, array: TracedArray, item: RunTimeSlice) -> tuple[TracedArray, Ends | None]:
    extent = array.tensor_type.shape[item.axis]
    ends = _affine(trace, item.start, 0, extent), _affine(trace, item.stop, extent, extent)
    start, stop = ends
    length = _without_twins(stop.plus(start, -1))
    at_least = trace.sizes.at_least
    if not length.terms and at_least(length.rest, 0, _REASON):
        count = trace.sizes.normal(floor_divide(length.rest + (item.step - 1), item.step))
        window = Window(item.axis, _value(trace, start, item.start), count, item.step)
        if _is_inside(trace, start, stop, extent):
            return array.view_by(window), None
        if at_least(extent, length.rest, _REASON) and item.step == 1:
            return _cut(trace, array, item, ends, count)
    if item.step != 1:
        raise fail(
            "TM102",
            "a slice with a step has a length that is known only when the function runs",
            hint="take the slice without its step, and np.where with a mask of it",
        )
    is_inside = _is_inside(trace, start, stop, extent) and _is_forward(trace, length)
    first, last = _bounds(trace, item, ends, extent)
    return array, Ends(first, last, length if is_inside else None)


def _is_inside(trace: Trace, start: Affine, stop: Affine, extent: Size) -> bool:
    """Whether a slice is shown to lie inside its axis on every trip."""
    low, high = start.low, stop.high
    if low is None or high is None:
        return False
    at_least = trace.sizes.at_least
    return at_least(low, 0, _REASON) and at_least(extent, high, _REASON)


def _is_forward(trace: Trace, length: Affine) -> bool:
    """Whether a slice is shown not to end before it begins."""
    low = length.low
    return low is not None and trace.sizes.at_least(low, 0, _REASON)


def _cut(
    trace: Trace, array: TracedArray, item: RunTimeSlice, ends: tuple[Affine, Affine], count: Size
) -> tuple[TracedArray, Ends]:
    """As many elements as the slice has at most, from a place on where the axis has so many."""
    extent = array.tensor_type.shape[item.axis]
    start, stop = _bounds(trace, item, ends, extent)
    zero, last = trace.size_value(0), trace.size_value(trace.sizes.normal(extent - count))
    begin = trace.emit("maximum", zero if start is None else start, zero)
    window = Window(item.axis, trace.emit("minimum", begin, last), count)
    first, final = (
        None if end is None else trace.emit("sub", end, window.start) for end in (start, stop)
    )
    return array.view_by(window), Ends(first, final, None, not _is_in_a_trip(trace))


def _bounds(
    trace: Trace, item: RunTimeSlice, ends: tuple[Affine, Affine], extent: Size
) -> tuple[Value | None, Value | None]:
    """Start and stop, counted from the front; None where the slice has none."""
    given = zip((item.start, item.stop), ends)
    start, stop = (
        None if given is None else _from_the_front(trace, given, bound, extent)
        for given, bound in given
    )
    return start, stop


def _from_the_front(trace: Trace, given: Any, bound: Affine, extent: Size) -> Value:
    """A bound counted from the front."""
    value = _value(trace, bound, given)
    low = bound.low
    if low is not None and trace.sizes.at_least(low, 0, _REASON):
        return value
    negative = trace.emit("less", value, trace.size_value(0))
    back = trace.emit("add", value, trace.size_value(extent))
    made: Value = trace.emit("select", negative, back, value)
    return made


def _affine(trace: Trace, given: Any, default: Size, extent: Size) -> Affine:
    """A bound; of numbers that can be guarded the number."""
    if given is None:
        return Affine({}, default)
    found = affine_of(given)
    assert found is not None
    for atom, times in list(found.terms.items()):
        value = value_of(atom.number)
        if not atom.is_counted and can_be_fixed(trace, value):
            number = concrete(trace, value, "it is a bound of a slice")
            found = found.plus(Affine({atom: 1}, 0), -times).plus(Affine({}, times * int(number)))
    if not found.terms and not trace.sizes.at_least(found.rest, 0, _REASON):
        return Affine({}, found.rest + extent)
    return found


def _value(trace: Trace, bound: Affine, given: Any) -> Value:
    """A bound as a number of the graph."""
    return value_of(given) if bound.terms else trace.size_value(trace.sizes.normal(bound.rest))


def _is_of_the_run(item: slice) -> bool:
    """Whether a bound of a slice is a number of the run that cannot be guarded."""
    return any(
        type(bound) in (TracedNumber, TracedScalar)
        and value_of(bound).tensor.dtype.kind in "iu"
        and not can_be_fixed(running(), value_of(bound))
        for bound in (item.start, item.stop)
        if bound is not None
    )


def _integer(bound: Any) -> Any:
    """A bound as a Python integer, known or not."""
    if type(bound) is TracedScalar:
        trace = running()
        number = trace.dispatch.python_number(value_of(bound))
        number.affine = _sum_of(trace, number.value)
        return number
    return bound if affine_of(bound) is not None or bound is None else operator.index(bound)


def _without_twins(length: Affine) -> Affine:
    """The same, where two atoms that are computed alike cancel out: ``x[i % 3 : i % 3 + 2]``."""
    for one, times in length.terms.items():
        for other, back in length.terms.items():
            if times == -back and same_value(value_of(one.number), value_of(other.number)):
                alike = Affine({one: times, other: back}, 0)
                return _without_twins(length.plus(alike, -1))
    return length


def _sum_of(trace: Trace, value: Value) -> Affine:
    """What a NumPy integer is made of, which keeps no account of it itself."""
    found = known(trace, value)
    if found is not None:
        return Affine({}, int(found))
    factor = None if value.node is None else _SUMS.get(value.node.op.name)
    if value.node is not None and factor is not None and value.tensor.dtype is I64:
        left, right = (_sum_of(trace, operand) for operand in value.node.operands)
        return left.plus(right, factor)
    atom = trace.atoms.get(value)
    if atom is None:
        atom = trace.atoms[value] = Atom(TracedNumber(trace, value, int))
    return Affine({atom: 1}, 0)


def _is_in_a_trip(trace: Trace) -> bool:
    return any(at.is_trip for at in around(trace))


def _step(item: slice) -> int:
    step = 1 if item.step is None else operator.index(item.step)
    if step < 1:
        raise _refused(item)
    return step


def _refused(key: Any) -> Exception:
    return fail(
        "TM102",
        f"a slice of which a bound is known only when the function runs stands in {key!r:.80}",
        "beside it integers, slices and None are understood, and its step is positive",
        "x[i + np.arange(n)] takes n elements from a place that is known only then",
    )
