"""What ``x[mask]`` is while its size is not known: the whole array and the mask.

Its size depends on data, so it cannot be an array of the graph. Elementwise arithmetic is done
on the whole array, reductions look at the mask, and ``x[mask] = y[mask]`` selects: so
``x[m] += 1``, ``x[m] = np.sqrt(x[m])`` and ``x[m].mean()`` mean what they mean in NumPy.

Invariants: immutable; two selections work together only if they have the same mask, which may
be written twice (``x[x > 1] = x[x > 1] * 2``).
Not here: everything that needs to know how many elements there are (a clear error).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from tracemill.compiler.dims import Size
from tracemill.compiler.ir.attrs import attrs_key
from tracemill.compiler.ir.graph import Location, Value
from tracemill.compiler.ops.definition import Structure
from tracemill.compiler.types import BOOL, I64

from ..tracing.number import TracedNumber
from ..tracing.state import Trace, fail
from ..tracing.tensor import Traced, TracedScalar, fresh, result
from . import linear, reductions, statistics, ufuncs
from .operands import integer_limits
from .words import reshape

_REPEATABLE = frozenset(
    (Structure.ELEMENTWISE, Structure.MOVEMENT, Structure.CREATION, Structure.REDUCTION)
)


class Selection(Traced):
    """Elements of `whole` where `mask` holds; the mask covers the axes from `axis` on.

    is_cut: most likely these are all: where they need to be, the run fails if they are not.
    """

    __slots__ = ("axis", "is_cut", "mask", "whole")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, trace: Trace, whole: Value, mask: Value, axis: int, is_cut: bool = False
    ) -> None:
        self.tracing = trace
        self.whole = whole
        self.mask = mask
        self.axis = axis
        self.is_cut = is_cut

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return np.ndarray

    @property
    def value(self) -> Value:
        """All of it, where its size is taken to be known. Raises UnsupportedError."""
        if not self.is_cut:
            raise self.size_error()
        axes = tuple(range(self.mask.tensor.rank))
        self.tracing.emit("check", self.tracing.emit("all", self.mask, axes=axes), code="TM255")
        return self.whole

    def array(self) -> Any:
        """The same as an array. Raises UnsupportedError."""
        return fresh(self.tracing, self.value)

    def _last_value(self) -> Value:
        return self.whole

    @property
    def made(self) -> Location | None:
        """Where the whole array was computed."""
        return None if self.whole.node is None else self.whole.node.location

    @property
    def dtype(self) -> Any:
        """The NumPy dtype."""
        return self.whole.tensor.dtype.numpy

    @property
    def ndim(self) -> int:
        """Number of axes: those of the mask count as one."""
        return self.whole.tensor.rank - self.mask.tensor.rank + 1

    @property
    def size(self) -> Any:
        """The number of elements, a run-time number."""
        trace = self.tracing
        count = self._count()
        for n in self.rest:
            count = trace.emit("mul", count, trace.size_value(n))
        return TracedNumber(trace, count, int)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The run-time number of selected elements beside the other sizes."""
        shape = list(fresh(self.tracing, self.whole).shape)
        shape[self.axis : self.axis + self.mask.tensor.rank] = [
            TracedNumber(self.tracing, self._count(), int)
        ]
        return tuple(shape)

    @property
    def rest(self) -> tuple[Size, ...]:
        """Sizes of the axes that the mask does not cover."""
        shape = self.whole.tensor.shape
        return shape[: self.axis] + shape[self.axis + self.mask.tensor.rank :]

    def _count(self) -> Value:
        axes = tuple(range(self.mask.tensor.rank))
        made: Value = self.tracing.emit("sum", self.tracing.cast(self.mask, I64), axes=axes)
        return made

    def full_mask(self) -> Value:
        """The mask, broadcastable to the whole array."""
        behind = self.whole.tensor.rank - self.axis - self.mask.tensor.rank
        return reshape(self.tracing, self.mask, (*self.mask.tensor.shape, *(1,) * behind))

    def like(self, whole: Value) -> Selection:
        """Another selection by the same mask."""
        return Selection(self.tracing, whole, self.mask, self.axis, self.is_cut)

    def size_error(self, culprit: Value | None = None) -> Exception:
        """The error for a use that needs the number of elements, at this line or `culprit`'s."""
        problem = fail(
            "TM112",
            "an array selected by a mask has a size that is known only at run time",
            "elementwise arithmetic, sum, mean, min, max, any, all and assignment to the same "
            "mask work on it",
            "write np.where(mask, a, b), or a reduction with where=mask",
        )
        if culprit is not None and culprit.node is not None:
            problem.place = culprit.node.location or problem.place
        return problem

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **keywords: Any) -> Any:
        if ufunc is np.matmul and method == "__call__" and not keywords:
            return matmul(*args)
        if method != "__call__":
            if method == "reduce":
                return _reduced(self, ufunc, keywords)
            return self.tracing.dispatch.ufunc(ufunc, method, _arrays(args), keywords)
        return elementwise(ufunc, args, keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        handler = _FUNCTIONS.get(function)
        if handler is None or not args:
            return self.tracing.dispatch.function(function, _arrays(args), keywords)
        return handler(*args, **keywords)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        function = _METHODS.get(name)
        if function is None:
            return getattr(self.array(), name)
        return lambda *args, **keywords: function(self, *args, **keywords)

    def astype(self, dtype: Any, **_: Any) -> Selection:
        """Converted elements."""
        return self.like(fresh(self.tracing, self.whole).astype(dtype).value)

    def copy(self, order: str = "C") -> Selection:
        """Itself: selections never change."""
        return self

    def __getitem__(self, key: Any) -> Any:
        return self.array()[key]

    def __setitem__(self, key: Any, item: Any) -> NoReturn:
        raise self.size_error()

    def __len__(self) -> int:
        return len(self.array())

    def __iter__(self) -> Any:
        return iter(self.array())

    def __repr__(self) -> str:
        return f"<traced {self.whole.type!r} %{self.whole.name} selected by %{self.mask.name}>"


def elementwise(ufunc: np.ufunc, args: tuple[Any, ...], keywords: Any) -> Any:
    """A ufunc on selections by one mask, and on numbers or arrays that broadcast behind it."""
    first: Selection = next(item for item in args if type(item) is Selection)
    behind = first.whole.tensor.rank - first.axis - first.mask.tensor.rank
    if any(type(item) is not Selection and getattr(item, "ndim", 0) > behind for item in args):
        return ufuncs.call(ufunc, _arrays(args), **keywords)
    out = keywords.pop("out", None)
    if out is not None and out[0] is not first:
        raise first.size_error()
    operands = []
    for item in args:
        if type(item) is Selection:
            if not _is_by_one_mask(item, first) or item.axis != first.axis:
                if item.is_cut and first.is_cut:
                    return ufuncs.call(ufunc, _arrays(args), **keywords)
                raise fail(
                    "TM112",
                    "two arrays selected by different masks are combined",
                    hint="use one mask for both, or np.where on the whole arrays",
                )
            wrap = fresh if item.whole.tensor.rank else TracedScalar
            operands.append(wrap(first.tracing, item.whole))
            continue
        operands.append(item)
    made = ufuncs.call(ufunc, tuple(operands), **keywords)
    if isinstance(made, tuple):
        return tuple(first.like(part.value) for part in made)
    return first.like(made.value)


def matmul(a: Any, b: Any) -> Any:
    """``a @ b`` of vectors and matrices, of which one or both are cut to an unknown length: along
    the axis that is summed over both by one mask, or along another one."""
    first: Selection = a if type(a) is Selection else b
    trace = first.tracing
    ranks = [_rank(item) for item in (a, b)]
    if not all(0 < rank < 3 for rank in ranks) or (
        any(type(item) is Selection and item.mask.tensor.rank > 1 for item in (a, b))
    ):
        return linear.matmul(*_arrays((a, b)))
    summed = ranks[0] - 1, max(ranks[1] - 2, 0)
    cut = [type(item) is Selection and item.axis == at for item, at in zip((a, b), summed)]
    if cut[0] != cut[1] or (all(cut) and not _is_by_one_mask(a, b)):
        return linear.matmul(*_arrays((a, b)))
    if all(cut):
        return linear.matmul(*[fresh(trace, _zeroed(item)) for item in (a, b)])
    if type(a) is type(b):
        return linear.matmul(*_arrays((a, b)))
    whole = [fresh(trace, i.whole) if type(i) is Selection else i for i in (a, b)]
    made = linear.matmul(*whole).value
    axis = first.axis if first is a else made.tensor.rank - 1
    return Selection(trace, made, first.mask, axis, first.is_cut)


def _rank(item: Any) -> int:
    return item.ndim if type(item) is Selection else np.ndim(item)


def _zeroed(selection: Selection) -> Value:
    """The whole array, zero where it is not selected."""
    trace = selection.tracing
    zero = trace.literal(0, selection.whole.tensor.dtype)
    made: Value = trace.emit("select", selection.full_mask(), selection.whole, zero)
    return made


def _dot(a: Any, b: Any) -> Any:
    both = _rank(a) and _rank(b)
    return matmul(a, b) if both else elementwise(np.multiply, (a, b), {})


def _axis_is_masked(selection: Selection, axis: Any) -> bool:
    if axis is None:
        return True
    rank = selection.ndim
    return bool((axis + rank if axis < 0 else axis) == selection.axis)


def _axes(selection: Selection, axis: Any) -> tuple[int, ...] | None:
    if axis is None:
        return None
    return tuple(range(selection.axis, selection.axis + selection.mask.tensor.rank))


def _masked_reduction(function: Any, extreme: str = "") -> Any:
    def reducer(selection: Selection, axis: Any = None, **keywords: Any) -> Any:
        if type(selection) is not Selection:  # an array, reduced where a selection tells
            raise next(k for k in keywords.values() if type(k) is Selection).size_error()
        if not _axis_is_masked(selection, axis) or keywords.get("keepdims") is True:
            raise selection.size_error()
        trace = selection.tracing
        keywords = {k: v for k, v in keywords.items() if v is not None and k != "keepdims"}
        mask = fresh(trace, selection.full_mask())
        if extreme:
            some = trace.emit("any", selection.mask, axes=tuple(range(selection.mask.tensor.rank)))
            trace.emit("check", some, code="TM241")
            keywords["initial"] = _least(selection, extreme)
        whole = result(trace, selection.whole)
        return function(whole, axis=_axes(selection, axis), where=mask, **keywords)

    return reducer


def _least(selection: Selection, extreme: str) -> Any:
    """The value no element loses against."""
    dtype = selection.whole.tensor.dtype
    if dtype is BOOL:
        return extreme == "min"
    if dtype.is_integer:
        limits = integer_limits(dtype)
        number: Any = limits.min if extreme == "max" else limits.max
    else:
        number = -np.inf if extreme == "max" else np.inf
    return result(selection.tracing, selection.tracing.literal(number, dtype))


def _reduced(selection: Selection, ufunc: Any, keywords: Any) -> Any:
    function = {
        np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min,
        np.logical_and: np.all, np.logical_or: np.any,
    }.get(ufunc)  # fmt: skip
    if function is None:
        raise selection.size_error()
    return _REDUCTIONS[function](selection, **keywords)


def assigned(selection: Selection, target: Value, mask: Value) -> Value | None:
    """The whole array to assign where `mask` holds, if the selection is by that mask."""
    if not same_value(selection.mask, mask) or selection.whole.tensor.shape != target.tensor.shape:
        return None
    return selection.whole


def _arrays(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments with arrays for selections. Raises UnsupportedError."""
    return tuple([item.array() if type(item) is Selection else item for item in args])


def _is_by_one_mask(a: Selection, b: Selection) -> bool:
    """Whether both select the same places; of axes that are equally long in the example call."""
    mine, other = a.mask.tensor.shape, b.mask.tensor.shape
    equal = a.tracing.sizes.equal
    return (
        len(mine) == len(other)
        and all(equal(m, n, "arrays are selected by one mask") for m, n in zip(mine, other))
        and same_value(a.mask, b.mask)
    )


def same_value(a: Value, b: Value) -> bool:
    """Whether two values are computed alike from the same ones."""
    if a is b:
        return True
    mine, other = a.node, b.node
    if mine is None or other is None or mine.op is not other.op or a.type != b.type:
        return False
    if mine.op.structure not in _REPEATABLE or mine.after or other.after:
        return False
    if mine.results.index(a) != other.results.index(b):
        return False
    if attrs_key(mine.attrs) != attrs_key(other.attrs):
        return False
    return len(mine.operands) == len(other.operands) and all(
        same_value(x, y) for x, y in zip(mine.operands, other.operands)
    )


def _size(selection: Selection) -> Any:
    return selection.size


_REDUCTIONS: dict[Any, Any] = {
    np.sum: _masked_reduction(reductions.sum_),
    np.prod: _masked_reduction(reductions.prod),
    np.mean: _masked_reduction(statistics.mean),
    np.var: _masked_reduction(statistics.var),
    np.std: _masked_reduction(statistics.std),
    np.any: _masked_reduction(reductions.any_),
    np.all: _masked_reduction(reductions.all_),
    np.max: _masked_reduction(reductions.amax, "max"),
    np.min: _masked_reduction(reductions.amin, "min"),
    np.size: _size,
}
_FUNCTIONS = _REDUCTIONS | {np.dot: _dot}
_METHODS: dict[str, Any] = {
    function.__name__: handler
    for function, handler in _REDUCTIONS.items()
    if function is not np.size
} | {"max": _REDUCTIONS[np.max], "min": _REDUCTIONS[np.min], "dot": _dot}
