"""Which kernels are matrix products: the roles of their axes and operands.

A contraction is a nest of parallel axes around one loose sum of products of two loads, with
straight-line statements (the epilogue) before and after it. Its axes play roles: `n` runs along
lanes and belongs to `right`, `m` to `left`, `k` is summed; everything else is a loop around.
So ``out[i, j]`` stored along `j` has rows `m` = i; a transposed store swaps the operands; a
matrix times a vector is a product with one row, whose right operand is the matrix.

Invariants: pure facts about the kernel; a kernel that is not recognised is still right, as
plain loops. Operand indices are affine in the axes with coefficients that name no axis.
Not here: packing and the choice by size (products.py), machine code (backends/llvm/gemm).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..dims import Dim, Size
from ..records import dataclass
from ..types import F32, I32, U32, DType
from .kernel import (
    Check,
    Checked,
    Constant,
    Index,
    IndexValue,
    Kernel,
    Let,
    Load,
    Parallel,
    Reduce,
    Statement,
    Store,
    bodies,
)  # fmt: skip

Body = tuple[Statement, ...]
PANEL_BYTES = 128
FEW_OUTPUTS = 4  # of a convolution that is no matrix product


@dataclass(frozen=True, slots=True)
class Axis:
    """A named loop."""

    name: str
    extent: Size


@dataclass(frozen=True, slots=True)
class Operand:
    """A factor: ``load buffer[index]``, converted to the product's dtype where it differs.

    panels: the number of columns of a panel, for a right operand in panels, which is indexed
    ``[outer..., n // panels, sums..., k, n % panels]``; 0 for one that lies as it lies.
    """

    buffer: str
    index: tuple[Size, ...]
    dtype: DType
    panels: int = 0


@dataclass(frozen=True, slots=True)
class Contraction:
    """``result = sum over sums and k of left * right``, for all of outer, m and n.

    shared: statements outside all loops. around: those between the loops, the outermost first.
    after: those that use the result. m, n: None where an operand has no axis of its own.
    loops: all axes of the result, the outermost first. fastest: along which it is stored.
    """

    outer: tuple[Axis, ...]
    m: Axis | None
    n: Axis | None
    sums: tuple[Axis, ...]
    k: Axis
    left: Operand
    right: Operand
    dtype: DType
    result: str
    shared: Body
    around: Body
    after: Body
    loops: tuple[Axis, ...]
    fastest: Axis | None

    @property
    def rows(self) -> Size:
        """The extent of m."""
        return 1 if self.m is None else self.m.extent

    @property
    def columns(self) -> Size:
        """The extent of n."""
        return 1 if self.n is None else self.n.extent


def computed(dtype: DType) -> DType:
    """The dtype in which products of `dtype` are multiplied and summed."""
    if dtype.is_integer and dtype.bits < 32:
        return I32 if dtype.kind == "i" else U32
    return F32 if dtype.is_float and dtype.bits < 32 else dtype


def panel_columns(dtype: DType) -> int:
    """Columns of a panel of packed elements: `PANEL_BYTES` of a row."""
    return PANEL_BYTES // dtype.itemsize


@dataclass(slots=True)
class _Nest:
    """The kernel, taken apart."""

    parallel: list[Axis]
    reduced: list[Axis]
    shared: Body
    around: Body
    after: Body
    inner: Reduce
    result: str


def contraction_of(kernel: Kernel) -> Contraction | None:
    """The roles in a kernel that is a matrix product, else None."""
    nest = _take_apart(kernel)
    if nest is None:
        return None
    factors = _factors(nest.inner)
    if factors is None:
        return None
    left, right = (_in_panels(f, nest) for f in factors)
    names = [axis.name for axis in nest.parallel + nest.reduced]
    if any(_mentions(axis.extent, names) for axis in nest.parallel + nest.reduced):
        return None
    if not all(f.panels or _is_affine(f.index, names) for f in (left, right)):
        return None
    if _has_few_outputs(nest, left, right):
        return None
    return _roles(nest, left, right)


def is_windowed(operand: Operand, loops: Sequence[Axis], sums: Iterable[str]) -> bool:
    """True where an index runs along an axis of the result and a summed one together."""
    summed = set(sums)
    around = [axis.name for axis in loops]
    return any(_mentions(i, summed) and _mentions(i, around) for i in operand.index)


def _has_few_outputs(nest: _Nest, left: Operand, right: Operand) -> bool:
    """True for a convolution whose image is read by few outputs: depthwise, or one output.

    Nothing is gained by packing elements that are used so seldom.
    """
    sums = [axis.name for axis in nest.reduced]
    seen = [is_windowed(side, nest.parallel, sums) for side in (left, right)]
    if seen[0] == seen[1]:
        return False
    image, weights = (left, right) if seen[0] else (right, left)
    own = [a for a in nest.parallel if has_axis(weights, a) and not has_axis(image, a)]
    extent = own[-1].extent if own else 1
    return isinstance(extent, int) and extent < FEW_OUTPUTS


def _take_apart(kernel: Kernel) -> _Nest | None:
    parallel: list[Axis] = []
    around: list[Statement] = []
    shared: Body = ()
    body = kernel.body
    while True:
        before, loop, after = _split(body)
        if loop is None or not all(
            isinstance(s, Let | Constant | IndexValue | Load) for s in before
        ):
            return None
        if parallel:
            around.extend(before)
        else:
            shared = tuple(before)
        if isinstance(loop, Reduce):
            break
        if after or not isinstance(loop, Parallel):
            return None
        parallel.append(Axis(loop.axis, loop.extent))
        body = loop.body
    if not all(isinstance(s, Let | Constant | IndexValue | Load | Store | Check) for s in after):
        return None
    inner, reduced = _reduced(loop)
    if inner is None or any(isinstance(s, Check) or _can_fail(s) for s in (*shared, *around)):
        return None
    if not parallel:
        shared, around = (), list(shared)
    return _Nest(parallel, reduced, shared, tuple(around), tuple(after), inner, loop.names[0])


def _split(body: Body) -> tuple[Body, Statement | None, Body]:
    """Statements before the one loop of a body, the loop, statements after it."""
    at = [number for number, s in enumerate(body) if bodies(s)]
    if len(at) != 1:
        return body, None, ()
    return body[: at[0]], body[at[0]], body[at[0] + 1 :]


def _reduced(loop: Reduce) -> tuple[Reduce | None, list[Axis]]:
    """The innermost of nested sums, and their axes."""
    reduced: list[Axis] = []
    while True:
        if loop.monoid != "sum" or not loop.loose or len(loop.names) != 1:
            return None, reduced
        reduced.append(Axis(loop.axis, loop.extent))
        if len(loop.body) != 1 or not isinstance(loop.body[0], Reduce):
            return loop, reduced
        if loop.body[0].names != loop.yields:
            return None, reduced
        loop = loop.body[0]


def _factors(inner: Reduce) -> tuple[Operand, Operand] | None:
    """The two loads whose product is summed."""
    made = {getattr(s, "name", ""): s for s in inner.body}
    product = made.get(inner.yields[0])
    if not isinstance(product, Let) or product.op != "mul" or len(product.args) != 2:
        return None
    used = {product.name}
    found = []
    for name in product.args:
        s = made.get(name)
        used.add(name)
        if isinstance(s, Let) and s.op == "convert" and s.dtype is product.dtype:
            (name,) = s.args
            used.add(name)
            s = made.get(name)
        if not isinstance(s, Load) or s.mask is not None or _can_fail(s):
            return None
        found.append(Operand(s.buffer, _sizes(s.index), s.dtype))
    if used != set(made):
        return None
    return found[0], found[1]


def _in_panels(operand: Operand, nest: _Nest) -> Operand:
    """The operand with `panels` set where its index says that it lies in panels."""
    count = len(nest.reduced)
    if len(operand.index) < count + 2:
        return operand
    columns = panel_columns(operand.dtype)
    place = operand.index[-1]
    for axis in nest.parallel:
        n = Dim.symbol(axis.name)
        sums = tuple(Dim.symbol(a.name) for a in nest.reduced)
        if place == n % columns and operand.index[-2 - count : -1] == (n // columns, *sums):
            return Operand(operand.buffer, operand.index, operand.dtype, columns)
    return operand


def _roles(nest: _Nest, left: Operand, right: Operand) -> Contraction:
    store = _place_of_result(nest)
    free_left = [a for a in nest.parallel if has_axis(left, a) and not has_axis(right, a)]
    free_right = [a for a in nest.parallel if has_axis(right, a) and not has_axis(left, a)]
    fastest = _fastest(store, nest.parallel)
    swap = not free_right if left.panels == right.panels == 0 else bool(left.panels)
    if fastest in free_left and not right.panels:
        swap = True
    if swap:
        left, right, free_left, free_right = right, left, free_right, free_left
    n = fastest if fastest in free_right else _innermost(store, free_right)
    m = _innermost(store, free_left)
    return Contraction(
        outer=tuple(a for a in nest.parallel if a not in (m, n)),
        m=m, n=n, sums=tuple(nest.reduced[:-1]), k=nest.reduced[-1], left=left, right=right,
        dtype=nest.inner.dtypes[0], result=nest.result,
        shared=nest.shared, around=nest.around, after=nest.after,
        loops=tuple(nest.parallel), fastest=fastest,
    )  # fmt: skip


def _place_of_result(nest: _Nest) -> tuple[Size, ...]:
    for s in nest.after:
        if isinstance(s, Store):
            return tuple(0 if isinstance(i, Checked) else i for i in s.index)
    return ()


def _fastest(store: Sequence[Size], axes: Iterable[Axis]) -> Axis | None:
    """The axis along which the result is stored side by side."""
    last = store[-1] if store else 0
    if not isinstance(last, Dim):
        return None
    return next((a for a in axes if last.coefficient(a.name) == 1), None)


def _innermost(store: Sequence[Size], axes: Sequence[Axis]) -> Axis | None:
    """Of some axes the one that moves fastest through the result."""
    for place in reversed(store):
        for axis in axes:
            if _mentions(place, [axis.name]):
                return axis
    return axes[-1] if axes else None


def has_axis(operand: Operand, axis: Axis) -> bool:
    """Whether an operand's elements change along an axis."""
    return any(_mentions(i, [axis.name]) for i in operand.index)


def _mentions(size: Size, names: Iterable[str]) -> bool:
    return isinstance(size, Dim) and not size.symbols().isdisjoint(names)


def _is_affine(index: Sequence[Size], names: Sequence[str]) -> bool:
    for part in index:
        for name in names:
            factor = part.coefficient(name) if isinstance(part, Dim) else 0
            if factor is None or _mentions(factor, names):
                return False
    return True


def _can_fail(s: Statement) -> bool:
    return isinstance(s, Load | Store) and any(isinstance(i, Checked) for i in s.index)


def _sizes(index: tuple[Index, ...]) -> tuple[Size, ...]:
    return tuple(i for i in index if not isinstance(i, Checked))
