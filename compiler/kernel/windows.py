"""Which products read an operand through windows, and the tiles of those: convolutions.

An operand is seen through windows where one of its indices runs along an axis of the result and a
summed axis together (``y + ky``). Such an operand is not packed ahead: its elements would be
copied once for every place in a window. Its columns, all axes of the result that it alone has,
are packed panel by panel as they are multiplied, by the rows of the other operand.

    columns  the image's axes in the result (batch, places), the last one fastest
    rows     the weights' axis in the result (output channels)
    sums     the summed axes (channels, positions in the window), one after another
    outer    loops around: groups

Invariants: pure facts; tiles depend on sizes alone. Each sum is one chain in the order of `sums`.
Not here: machine code (backends/llvm/gemm/windowed.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dims import Size, maximum, minimum, product
from ..records import dataclass
from .contraction import Axis, Contraction, Operand, has_axis, is_windowed

ROWS = 96  # rows of a tile
PANELS = 8  # panels of a tile at most,
ENOUGH = 16  # and fewer where there would not be so many tiles


@dataclass(frozen=True, slots=True)
class Windowed:
    """A product by its roles. along_rows: the result lies along `rows` (channels last)."""

    outer: tuple[Axis, ...]
    rows: Axis
    columns: tuple[Axis, ...]
    sums: tuple[Axis, ...]
    image: Operand
    weights: Operand
    along_rows: bool

    @property
    def column_count(self) -> Size:
        """How many columns there are."""
        return product(tuple(axis.extent for axis in self.columns))


def windowed_of(found: Contraction) -> Windowed | None:
    """The roles in a product that reads one operand through windows; None for any other."""
    names = {axis.name for axis in (*found.sums, found.k)}
    left, right = (is_windowed(side, found.loops, names) for side in (found.left, found.right))
    if left == right or found.right.panels or found.dtype.is_complex:
        return None
    image, weights = (found.left, found.right) if left else (found.right, found.left)
    columns = tuple(a for a in found.loops if has_axis(image, a) and not has_axis(weights, a))
    own = [a for a in found.loops if has_axis(weights, a) and not has_axis(image, a)]
    if not columns or not own:
        return None
    rows = own[-1]
    outer = tuple(a for a in found.loops if a is not rows and a not in columns)
    return Windowed(
        outer, rows, columns, (*found.sums, found.k), image, weights, found.fastest == rows
    )


def tile_counts(found: Windowed, columns: int) -> tuple[Size, Size]:
    """Row tiles and column tiles for one point of the outer axes; `columns` of a panel."""
    strips = _ceil(found.rows.extent, ROWS)
    return strips, _ceil(_ceil(found.column_count, columns), tile_panels(found, columns))


def tile_panels(found: Windowed, columns: int) -> Size:
    """Panels of a column tile: as many as leave enough tiles."""
    strips = _ceil(found.rows.extent, ROWS)
    panels = _ceil(found.column_count, columns)
    points = product(tuple(axis.extent for axis in found.outer))
    return maximum(1, minimum(PANELS, points * strips * panels // ENOUGH))


def tiles(found: Windowed, columns: int) -> Size:
    """Tiles of the whole product."""
    strips, across = tile_counts(found, columns)
    return product(tuple(axis.extent for axis in found.outer)) * strips * across


def merged(axes: Sequence[tuple[Size, Size]]) -> list[tuple[Size, Size]]:
    """Axes as (extent, stride), neighbours that one stride leads through as one."""
    made: list[tuple[Size, Size]] = []
    for extent, stride in reversed(axes):
        if made and made[0][0] * made[0][1] == stride:
            made[0] = (extent * made[0][0], made[0][1])
        else:
            made.insert(0, (extent, stride))
    return made


def _ceil(a: Size, b: Size) -> Size:
    return (a + b - 1) // b
