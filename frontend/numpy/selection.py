"""What ``x[mask]`` is while its size is not known: the whole array and the mask.

Its size depends on data, so it cannot be an array of the graph. Elementwise arithmetic is done
on the whole array, reductions look at the mask, and ``x[mask] = y[mask]`` selects: so
``x[m] += 1``, ``x[m] = np.sqrt(x[m])`` and ``x[m].mean()`` mean what they mean in NumPy.

Invariants: immutable; two selections work together only if they have the same mask, which may
be written twice (``x[x > 1] = x[x > 1] * 2``).
Not here: everything that needs to know how many elements there are (a clear error).
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tracemill.compiler.dims import Size
from tracemill.compiler.ir.attrs import attrs_key
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.ops.definition import Structure
from tracemill.compiler.types import I64

from ..tracing.number import TracedNumber
from ..tracing.state import Trace, fail, running
from ..tracing.tensor import fresh, result
from . import reductions, statistics, ufuncs
from .unsized import Unsized, neutral_of, refuse_masks
from .words import reshape

_REPEATABLE = frozenset(
    (
        Structure.ELEMENTWISE,
        Structure.MOVEMENT,
        Structure.CREATION,
        Structure.REDUCTION,
        Structure.GATHER,
    )
)


class Selection(Unsized):
    """Elements of `whole` where `mask` holds; the mask covers the axes from `axis` on."""

    __slots__ = ("axis", "mask")

    def __init__(self, trace: Trace, whole: Value, mask: Value, axis: int) -> None:
        super().__init__(trace, whole)
        self.mask = mask
        self.axis = axis

    def array(self) -> Any:
        """Raises UnsupportedError."""
        raise self.size_error(self.mask)

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
        return Selection(self.tracing, whole, self.mask, self.axis)

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
        if method != "__call__":
            if method == "reduce":
                return _reduced(self, ufunc, keywords)
            raise self.size_error()
        return elementwise(ufunc, args, keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        handler = _REDUCTIONS.get(function)
        if handler is None or not args or type(args[0]) is not Selection:
            raise self.size_error()
        return handler(*args, **keywords)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        function = _METHODS.get(name)
        if function is None:
            raise self.size_error()
        return lambda *args, **keywords: function(self, *args, **keywords)

    def copy(self, order: str = "C") -> Selection:
        """Itself: selections never change."""
        return self

    def astype(self, dtype: Any, **_: Any) -> Selection:
        """Converted elements."""
        return self.like(fresh(self.tracing, self.whole).astype(dtype).value)

    def __getitem__(self, key: Any) -> NoReturn:
        raise self.size_error()

    def __len__(self) -> int:
        raise self.size_error()

    def __iter__(self) -> NoReturn:
        raise self.size_error()

    def __repr__(self) -> str:
        return f"<traced {self.whole.type!r} %{self.whole.name} selected by %{self.mask.name}>"


def elementwise(ufunc: np.ufunc, args: tuple[Any, ...], keywords: Any) -> Any:
    """A ufunc on selections by one mask, and on numbers or arrays that broadcast behind it."""
    first: Selection = next(item for item in args if type(item) is Selection)
    out = keywords.pop("out", None)
    if out is not None and out[0] is not first:
        raise first.size_error()
    operands = []
    for item in args:
        if type(item) is Selection:
            places = [s.axis - s.whole.tensor.rank for s in (item, first)]
            if not same_value(item.mask, first.mask) or places[0] != places[1]:
                raise refuse_masks("selected by different masks")
            operands.append(result(first.tracing, item.whole))
            continue
        behind = first.whole.tensor.rank - first.axis - first.mask.tensor.rank
        if getattr(item, "ndim", 0) > behind:
            raise first.size_error()
        operands.append(item)
    made = ufuncs.call(ufunc, tuple(operands), **keywords)
    if isinstance(made, tuple):
        return tuple(first.like(part.value) for part in made)
    return first.like(made.value)


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
        if not _axis_is_masked(selection, axis) or keywords.get("keepdims") is True:
            raise selection.size_error()
        if "where" in keywords or (extreme and keywords.get("initial") is not None):
            raise selection.size_error()
        trace = selection.tracing
        keywords = {k: v for k, v in keywords.items() if v is not None and k != "keepdims"}
        mask = fresh(trace, selection.full_mask())
        if extreme:
            some = trace.emit("any", selection.mask, axes=tuple(range(selection.mask.tensor.rank)))
            trace.emit("check", some, code="TM241")
            keywords["initial"] = neutral_of(selection, extreme)
        whole = result(trace, selection.whole)
        return function(whole, axis=_axes(selection, axis), where=mask, **keywords)

    return reducer


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


def same_value(a: Value, b: Value) -> bool:
    """Whether two values of the present trace are computed alike from the same ones."""
    return _are_same(running(), a, b)


def _are_same(trace: Trace, a: Value, b: Value) -> bool:
    if a is b:
        return True
    mine, other = a.node, b.node
    if mine is None and other is None:
        return _are_same_outside(trace, a, b)
    if mine is None or other is None or mine.op is not other.op or a.type != b.type:
        return False
    if mine.op.structure not in _REPEATABLE or mine.after or other.after:
        return False
    if mine.results.index(a) != other.results.index(b):
        return False
    if attrs_key(mine.attrs) != attrs_key(other.attrs):
        return False
    return len(mine.operands) == len(other.operands) and all(
        _are_same(trace, x, y) for x, y in zip(mine.operands, other.operands)
    )


def _are_same_outside(trace: Trace, a: Value, b: Value) -> bool:
    """The same for two values from around a body of control flow."""
    sources = [trace.by_param.get(value) for value in (a, b)]
    if trace.states is None or trace.outer is None:
        return False
    values = [source.value for source in sources if source is not None and source.kind == "outer"]
    return len(values) == 2 and _are_same(trace.outer, *values)


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
_METHODS: dict[str, Any] = {
    function.__name__: handler
    for function, handler in _REDUCTIONS.items()
    if function is not np.size
} | {"max": _REDUCTIONS[np.max], "min": _REDUCTIONS[np.min]}
