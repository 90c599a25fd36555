"""Which sizes of the arguments stay open: a symbol for each, or a number.

Size 1 is a number, since it broadcasts; so are small sizes of inner axes, since unrolling pays.
All others get a symbol of their own; the trace finds out which are equal.

Not here: the comparison of a later call's sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

from tracemill.compiler.dims import Dim, Size

SMALL = 8  # inner axes below this are numbers

_LETTERS = "nmkpqrstuvwabcdefgh"


def choose_shapes(
    shapes: Mapping[int, Sequence[int]],
    pinned: Collection[tuple[int, int]] = (),
    freed: Collection[tuple[int, int]] = (),
) -> tuple[dict[int, tuple[Size, ...]], dict[str, int], dict[str, tuple[int, int]]]:
    """Shapes with symbols, their hints, and the (leaf, axis) each symbol stands for.

    shapes: by index of the flat argument. pinned: axes to keep as numbers; freed: axes to give a
    symbol although they are small (a second size was seen); size 1 is never freed.
    """
    names = _names()
    chosen: dict[int, tuple[Size, ...]] = {}
    hints: dict[str, int] = {}
    places: dict[str, tuple[int, int]] = {}
    for leaf, shape in shapes.items():
        sizes: list[Size] = []
        for axis, size in enumerate(shape):
            small = axis > 0 and 0 < size < SMALL and (leaf, axis) not in freed
            if size == 1 or small or (leaf, axis) in pinned:
                sizes.append(int(size))
                continue
            name = next(names)
            hints[name] = int(size)
            places[name] = (leaf, axis)
            sizes.append(Dim.symbol(name))
        chosen[leaf] = tuple(sizes)
    return chosen, hints, places


def _names() -> Iterator[str]:
    for number in itertools.count():
        for letter in _LETTERS:
            yield letter if number == 0 else f"{letter}{number}"
