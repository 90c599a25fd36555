"""Arrays that are cut along axes to lengths of the run: what ``x[:j]`` and ``a[i:, k:]`` are.

A whole array, and for each axis that is cut where its elements begin and end. Arithmetic is done
on wholes; two cut axes meet where they begin and end at the same places, or, if they are known to
be equally long, once one is moved to where the other is. What sums over a cut axis has a mask
of it.

    a[i, :j] @ a[:j, j]        both cut from 0 to j:  masked, then a product of the wholes
    np.flip(r[:k]) * y[:k]     cut from n - k to n, and from 0 to k:  the first is moved

Invariants: what was computed never changes; places count from 0 along the whole's axis; elements
outside are anything.
Not here: how slices become such (run_time_slices.py), arithmetic (cut_functions.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracemill.compiler.dims import Size
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.records import dataclass
from tracemill.compiler.types import I64

from ..tracing.affine import Affine
from ..tracing.memory import lifted_value
from ..tracing.number import TracedNumber
from ..tracing.operators import InPlaceOperators
from ..tracing.state import Trace, fail, running
from ..tracing.tensor import TracedArray, fresh, result
from .selection import same_value
from .unsized import Unsized
from .words import expand, reshape


@dataclass(frozen=True, slots=True)
class Ends:
    """Where the elements of a cut axis begin and end. None: where the axis does.

    length: between both, where that is shown to be so. is_likely: most likely the axis is whole;
    where it needs to be, the run fails if it is not.
    """

    start: Value | None
    stop: Value | None
    length: Affine | None = None
    is_likely: bool = False


Axes = tuple[Ends | None, ...]


class Cut(InPlaceOperators, Unsized):
    """See the module. axes: for each axis of the whole its ends, None where it is not cut.

    view: the array of the user's that the whole is, with its memory; None for what was computed.
    """

    __slots__ = ("axes", "view")
    __hash__ = None

    def __init__(
        self, trace: Trace, whole: Value, axes: Axes, view: TracedArray | None = None
    ) -> None:
        super().__init__(trace, whole)
        self.axes = axes
        self.view = view

    def here(self) -> Cut:
        """The same as the present trace sees it now: a view of what its memory holds."""
        trace, view = running(), self.view
        if trace is self.tracing and (view is None or view.value is self.whole):
            return self
        if trace is not self.tracing and not trace.is_inside(self.tracing):
            raise fail("TM103", f"{self!r} belongs to another trace")
        whole = self._lifted(trace, self.whole) if view is None else view.value
        axes = [None if ends is None else Ends(
            self._lifted(trace, ends.start), self._lifted(trace, ends.stop), ends.length,
            ends.is_likely,
        ) for ends in self.axes]  # fmt: skip
        seen = None if view is None else view.seen_by(trace)
        return Cut(trace, whole, tuple(axes), seen)

    def _lifted(self, trace: Trace, value: Value | None) -> Any:
        return None if value is None else lifted_value(trace, value, self.tracing)

    @property
    def value(self) -> Value:
        """All of it, where every cut axis is likely whole. Raises UnsupportedError."""
        now = self.here()
        if now is not self:
            return now.value
        trace = self.tracing
        if not all(ends is None or ends.is_likely for ends in self.axes):
            raise self.size_error()
        for axis, ends in enumerate(self.axes):
            if ends is not None:
                whole = trace.emit("all", self.mask_of(axis), axes=(0,))
                trace.emit("check", whole, code="TM255")
        return self.whole

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.whole.tensor.rank

    @property
    def shape(self) -> tuple[Any, ...]:
        """Sizes, those of cut axes run-time numbers."""
        now = self.here()
        if now is not self:
            return now.shape
        shape = list(fresh(self.tracing, self.whole).shape)
        for axis, ends in enumerate(self.axes):
            if ends is not None:
                shape[axis] = self.length(axis)
        return tuple(shape)

    @property
    def size(self) -> Any:
        """The number of elements."""
        total: Any = 1
        for size in self.shape:
            total = total * size
        return total

    @property
    def T(self) -> Any:
        """The axes in reverse order."""
        now = self.here()
        if now is not self:
            return now.T
        return self.through(lambda array: array.T, self.axes[::-1])

    def length(self, axis: int) -> TracedNumber:
        """The number of elements along a cut axis."""
        trace, ends = self.tracing, self.axes[axis]
        assert ends is not None
        count = trace.emit("sum", trace.cast(self.mask_of(axis), I64), axes=(0,))
        return TracedNumber(trace, count, int, ends.length)

    def extent(self, axis: int) -> Size:
        """The size of the whole's axis."""
        size: Size = self.tracing.sizes.normal(self.whole.tensor.shape[axis])
        return size

    def mask_of(self, axis: int) -> Value:
        """Which elements along a cut axis are there."""
        trace, ends = self.tracing, self.axes[axis]
        assert ends is not None
        return mask_between(trace, self.extent(axis), ends)

    def mask(self, axes: Sequence[int] | None = None) -> Value | None:
        """Which elements are there, for some of the axes; broadcastable to the whole array."""
        trace, rank = self.tracing, self.ndim
        made: Value | None = None
        for axis in range(rank) if axes is None else axes:
            if self.axes[axis] is not None:
                shape: list[Size] = [1] * rank
                shape[axis] = self.extent(axis)
                part = reshape(trace, self.mask_of(axis), shape)
                made = part if made is None else trace.emit("logical_and", made, part)
        return made

    def zeroed(self) -> Value:
        """The whole array, zero where no element is."""
        trace, mask = self.tracing, self.mask()
        assert mask is not None
        zero = trace.literal(0, self.whole.tensor.dtype)
        made: Value = trace.emit("select", mask, self.whole, zero)
        return made

    def moved(self, axis: int, to: Ends, extent: Size) -> Cut:
        """The same elements between other ends, which are equally long, of an axis of `extent`."""
        trace, ends = self.tracing, self.axes[axis]
        assert ends is not None
        zero, last = trace.size_value(0), trace.size_value(self.extent(axis) - 1)
        mine, other = (zero if e.start is None else e.start for e in (ends, to))
        shift = expand(trace, trace.emit("sub", mine, other), (0,))
        places = trace.emit("add", trace.emit("iota", size=extent), shift)
        places = trace.emit("minimum", trace.emit("maximum", places, zero), last)
        whole = trace.emit("gather", self.whole, places, axes=(axis,))[0]
        return self.with_ends(whole, axis, to)

    def flipped(self, axis: int) -> Cut:
        """The elements along an axis in reverse order."""
        trace, ends = self.tracing, self.axes[axis]
        key = (*[slice(None)] * axis, slice(None, None, -1))
        axes = self.axes
        if ends is not None:
            extent = trace.size_value(self.extent(axis))
            start = None if ends.stop is None else trace.emit("sub", extent, ends.stop)
            stop = None if ends.start is None else trace.emit("sub", extent, ends.start)
            there = Ends(start, stop, ends.length, ends.is_likely)
            axes = (*axes[:axis], there, *axes[axis + 1 :])
        made: Cut = self.through(lambda array: array[key], axes)
        return made

    def through(self, view: Callable[[TracedArray], Any], axes: Axes) -> Any:
        """What a function that takes a view makes of the whole: a view of what this is one of."""
        trace = self.tracing
        made = view(fresh(trace, self.whole) if self.view is None else self.view)
        if not any(axes):
            return made
        return Cut(trace, made.value, axes, None if self.view is None else made)

    def copy(self, order: str = "C") -> Cut:
        """The elements as they are now, in memory of their own."""
        now = self.here()
        own = fresh(now.tracing, now.whole)
        return Cut(now.tracing, own.value, now.axes, own)

    def taking(self, array: Any) -> Any:
        """``array[self]``, of integers."""
        return running().dispatch.cut.taken_by(array, self.here())

    def with_ends(self, whole: Value, axis: int, ends: Ends) -> Cut:
        """Another whole, that is cut along one axis in another way."""
        return Cut(self.tracing, whole, (*self.axes[:axis], ends, *self.axes[axis + 1 :]))

    def size_error(self, culprit: Value | None = None) -> Exception:
        return fail(
            "TM112",
            "a slice whose bounds are known only when the function runs has a length that is, too",
            "arithmetic of such slices of the same bounds, sum, mean, min, max, argmin, argmax, "
            "any, all, @, np.outer, np.flip, indexing and assignment work on it",
            "use the whole array, with np.where or a reduction with where=mask",
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **keywords: Any) -> Any:
        return running().dispatch.cut.ufunc(ufunc, method, here(args), keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        return running().dispatch.cut.function(function, here(args), keywords)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        method = self.tracing.dispatch.cut.METHODS.get(name)
        if method is None:
            return getattr(self.array(), name)
        return lambda *args, **keywords: method(self.here(), *here(args), **keywords)

    def __getitem__(self, key: Any) -> Any:
        return running().dispatch.cut.getitem(self.here(), key)

    def __setitem__(self, key: Any, item: Any) -> None:
        running().dispatch.cut.setitem(self.here(), key, item)

    def __len__(self) -> int:
        return len(self.array())

    def __iter__(self) -> Any:
        return iter(self.array())

    def __repr__(self) -> str:
        return f"<traced {self.whole.type!r} %{self.whole.name}, cut to lengths of the run>"


def here(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments as the present trace sees them."""
    return tuple([item.here() if type(item) is Cut else item for item in args])


def mask_between(trace: Trace, extent: Size, ends: Ends) -> Value:
    """Which places of an axis lie between these."""
    places = trace.emit("iota", size=extent)
    made: Value | None = None
    for end, op in ((ends.start, "greater_equal"), (ends.stop, "less")):
        if end is not None:
            part = trace.emit(op, places, expand(trace, end, (0,)))
            made = part if made is None else trace.emit("logical_and", made, part)
    if made is None:  # all of them
        made = trace.emit("greater_equal", places, trace.size_value(0))
    return made


def are_same(trace: Trace, a: Cut, at: int, b: Cut, bt: int) -> bool:
    """Whether two cut axes begin and end at the same places of equally long axes."""
    one, other = a.axes[at], b.axes[bt]
    assert one is not None
    assert other is not None
    return (
        trace.sizes.equal(a.extent(at), b.extent(bt), "slices of one length are combined")
        and _is_same_place(one.start, other.start)
        and _is_same_place(one.stop, other.stop)
    )


def _is_same_place(a: Value | None, b: Value | None) -> bool:
    return a is b or (a is not None and b is not None and same_value(a, b))


def are_equally_long(a: Ends, b: Ends) -> bool:
    """Whether that is known."""
    if a.length is None or b.length is None:
        return False
    difference = a.length.plus(b.length, -1)
    return not difference.terms and difference.rest == 0


def of_whole(trace: Trace, value: Value, axes: Axes) -> Any:
    """A result: cut where one of its axes is."""
    return Cut(trace, value, axes) if any(axes) else result(trace, value)
