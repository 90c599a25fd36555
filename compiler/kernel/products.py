"""How a matrix product is launched: one kernel for small sizes, packing and product for large.

Large products read their right operand in panels: 128 bytes of a row of it, then the same
columns of the next row. Packing it so is a kernel of its own, ahead of the product, and both
are kernels of the ordinary language, `packed` a temporary of the plan. Where sizes are not known
while compiling, the launches of both ways stand in the plan, and those of the way not taken
have extent 0.

A product's kernel runs over tiles, not over its outermost axis: `extent` counts them. The tiles
depend on the sizes alone, never on the number of threads.

Invariants: every element of the result is the same sum in the same order either way.
Not here: what is a product (contraction.py), rows of the plan (compile.py), machine code.
"""

from __future__ import annotations

from ..dims import Dim, Size, minimum, product
from ..records import dataclass, replace
from ..types import DType
from . import windows
from .contraction import Axis, Contraction, Operand, computed, contraction_of, panel_columns
from .kernel import (
    Kernel,
    Let,
    Load,
    Parallel,
    Parameter,
    Reduce,
    Statement,
    walk,
)  # fmt: skip
from .packing import Packing, pack_kernel
from .symbols import kernel_dims
from .windows import windowed_of

EIGHTHS = 8  # iterations of a tile: chunks of equal iterations differ by a tile at most
STRIP = 12  # rows of a tile of the packed product: a multiple of every microkernel's rows
WIDE = 128  # panels of a tile at most
ROWS = 48  # rows of a tile of the direct product
COLUMN_BYTES = 512  # and the width of its columns
PACK_ROWS = 96  # rows that pay for packing a right operand that could be read as it lies,
PACK_BYTES = 512 << 10  # and bytes of it,
OTHER_ROWS, OTHER_ELEMENTS = 20, 512  # and what pays for packing any other
PACK_COLUMNS = 8

Body = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """One launch of a product.

    params: where the kernel's parameters are, counted through the parameters of the original
    kernel and then the split's temporaries. extent: iterations of the launch, 0 for a way not
    taken; work: picoseconds; grain: iterations that are worth a chunk.
    """

    kernel: Kernel
    params: tuple[int, ...]
    extent: Size
    work: Size
    grain: int = 1


@dataclass(frozen=True, slots=True)
class Split:
    """The launches of a product, in order, and the buffers between them."""

    temporaries: tuple[Parameter, ...]
    stages: tuple[Stage, ...]


def split_contraction(kernel: Kernel) -> Split | None:
    """The launches that do what `kernel` does; None for a kernel that is no product."""
    found = contraction_of(kernel)
    if found is None:
        return None
    every = tuple(range(len(kernel.params)))
    windowed = windowed_of(found)
    if windowed is not None:
        count = windows.tiles(windowed, panel_columns(computed(found.dtype))) * EIGHTHS
        return Split((), (Stage(kernel, every, count, _work(found)),))
    large = _large(kernel, found)
    stages: list[Stage] = []
    temporaries: tuple[Parameter, ...] = ()
    if large != 0:
        packed = _packed_parameter(kernel, found)
        temporaries = (replace(packed, shape=(large * packed.shape[0], *packed.shape[1:])),)
        at = _position(kernel, found.right.buffer)
        pack = _packing(kernel, found, packed)
        stages.append(Stage(
            pack, (at, len(every)), large * _panels_of(found), large * _bytes_of(found) * 100
        ))  # fmt: skip
        made = _over_panels(kernel, found, packed)
        names = {p.name for p in made.params}
        places = (*(at for at in every if kernel.params[at].name in names), len(every))
        stages.append(Stage(made, places, large * tiles(found, True), large * _work(found)))
    if large != 1:
        small = 1 - large
        stages.append(Stage(kernel, every, small * tiles(found, False), small * _work(found)))
    return Split(temporaries, tuple(stages))


def tiles(found: Contraction, packed: bool) -> Size:
    """Iterations of a product's kernel: outer points, column tiles and row tiles, in eighths.

    A range [begin, end) of them is the tiles from begin / 8 to end / 8, both rounded up.
    """
    rows, columns = tile_counts(found, packed)
    return product(tuple(a.extent for a in found.outer)) * columns * rows * EIGHTHS


def tile_counts(found: Contraction, packed: bool) -> tuple[Size, Size]:
    """Row tiles and column tiles of one product."""
    if not packed:
        wide = max(1, COLUMN_BYTES // computed(found.dtype).itemsize)
        return _ceil(found.rows, ROWS), _ceil(found.columns, wide)
    strips = _ceil(found.rows, STRIP)
    panels = _ceil(found.columns, panel_columns(computed(found.dtype)))
    return strips, _ceil(panels, tile_panels(strips))


def tile_panels(strips: Size) -> Size:
    """Panels of a column tile: few where there are few strips, so that there are enough tiles."""
    return minimum(WIDE, 4 * strips + 1)


def _large(kernel: Kernel, found: Contraction) -> Size:
    """1 where packing pays, 0 where not: a size.

    A right operand whose rows can be read as they lie is packed when the cache does not hold
    it and enough rows share the copy.
    """
    sums = product(tuple(a.extent for a in found.sums)) * found.k.extent
    rows, elements = OTHER_ROWS, OTHER_ELEMENTS
    if _reads_in_rows(kernel, found):
        rows, elements = PACK_ROWS, PACK_BYTES // found.right.dtype.itemsize
    return (
        minimum(1, found.rows // rows)
        * minimum(1, found.columns // PACK_COLUMNS)
        * minimum(1, sums * found.columns // elements)
    )


def _reads_in_rows(kernel: Kernel, found: Contraction) -> bool:
    """True where columns of the right operand are neighbours, and need no conversion."""
    right = found.right
    source = next(p for p in kernel.params if p.name == right.buffer)
    if source.strided or found.n is None or right.dtype is not computed(found.dtype):
        return False
    n = found.n.name
    *outside, last = [i.coefficient(n) if isinstance(i, Dim) else 0 for i in right.index]
    return last == 1 and not any(outside)


def _work(found: Contraction) -> Size:
    """Picoseconds of the product on one thread: arithmetic, and memory seen once."""
    size = computed(found.dtype).itemsize
    count = product(tuple(a.extent for a in found.outer)) * found.rows * found.columns
    sums = product(tuple(a.extent for a in found.sums)) * found.k.extent
    return count * sums * 4 * size + count * 100 + _bytes_of(found) * 20


def _bytes_of(found: Contraction) -> Size:
    sums = product(tuple(a.extent for a in found.sums)) * found.k.extent
    outer = product(tuple(a.extent for a in _outer_of(found, found.right)))
    return outer * sums * found.columns * computed(found.dtype).itemsize


def _panels_of(found: Contraction) -> Size:
    outer = product(tuple(a.extent for a in _outer_of(found, found.right)))
    return outer * _ceil(found.columns, panel_columns(computed(found.dtype)))


def _outer_of(found: Contraction, operand: Operand) -> tuple[Axis, ...]:
    """The loops around the product in which an operand changes."""
    used = {s for i in operand.index if isinstance(i, Dim) for s in i.symbols()}
    return tuple(a for a in found.outer if a.name in used)


def _packed_parameter(kernel: Kernel, found: Contraction) -> Parameter:
    dtype = computed(found.dtype)
    columns = panel_columns(dtype)
    shape = (
        *(a.extent for a in _outer_of(found, found.right)),
        _ceil(found.columns, columns),
        *(a.extent for a in found.sums),
        found.k.extent,
        columns,
    )
    return Parameter(_free("packed", kernel), dtype, shape, "out")


def _packing(kernel: Kernel, found: Contraction, packed: Parameter) -> Kernel:
    """The kernel that packs the right operand."""
    source = next(p for p in kernel.params if p.name == found.right.buffer)
    n = Axis("(n)", 1) if found.n is None else found.n
    outer = _outer_of(found, found.right)
    packing = Packing(outer, n, found.sums, found.k, found.right, packed.name, packed.dtype)
    return pack_kernel(packing, source, packed)


def _over_panels(kernel: Kernel, found: Contraction, packed: Parameter) -> Kernel:
    """The kernel with its right operand read from panels."""
    columns, wide = packed.shape[-1], packed.dtype
    n = Dim.symbol("" if found.n is None else found.n.name)
    index = (
        *(Dim.symbol(a.name) for a in _outer_of(found, found.right)),
        n // columns,
        *(Dim.symbol(a.name) for a in (*found.sums, found.k)),
        n % columns,
    )
    body: list[Statement] = [
        Load("left", found.left.buffer, found.left.index, found.left.dtype),
        Load("right", packed.name, index, wide),
    ]
    factor = "left"
    if found.left.dtype is not wide:
        body.append(Let("wide_left", "convert", (factor,), wide))
        factor = "wide_left"
    body.append(Let("product", "mul", (factor, "right"), wide))
    after, result = found.after, found.result
    if wide is not found.dtype:
        result = "total"
        after = (Let(found.result, "convert", (result,), found.dtype), *after)
    inner = _summed(found, tuple(body), result, wide)
    nest = _around(kernel.body, (*found.around, inner, *after))
    used = {s.buffer for s in walk((*found.shared, *nest)) if isinstance(s, Load)}
    params = [p for p in kernel.params if p.mode != "in" or p.name in used]
    made = Kernel(kernel.name, (*params, replace(packed, mode="in")), (), (*found.shared, *nest))
    return replace(made, dims=kernel_dims(made))


def _summed(found: Contraction, body: Body, result: str, dtype: DType) -> Statement:
    """The sums around a product, the last named `result`."""
    value = "product"
    axes = (found.k, *reversed(found.sums))
    for number, axis in enumerate(axes):
        name = result if axis is axes[-1] else f"part{number}"
        made = Reduce((name,), "sum", axis.name, axis.extent, body, (value,), (dtype,), loose=True)
        body, value = (made,), name
    return body[0]


def _around(body: Body, inner: Body) -> Body:
    """The parallel loops of `body` with only `inner` in them."""
    loop = next((s for s in body if isinstance(s, Parallel)), None)
    if loop is None:
        return inner
    return (replace(loop, body=_around(loop.body, inner), vector=0, unroll=1),)


def _position(kernel: Kernel, name: str) -> int:
    return next(at for at, p in enumerate(kernel.params) if p.name == name)


def _free(hint: str, kernel: Kernel) -> str:
    """A name for a buffer or axis that the kernel does not use."""
    taken = {p.name for p in kernel.params} | set(kernel.dims)
    taken |= {s.axis for s in walk(kernel.body) if isinstance(s, Parallel | Reduce)}
    while hint in taken:
        hint += "_"
    return hint


def _ceil(a: Size, b: Size) -> Size:
    return (a + b - 1) // b
