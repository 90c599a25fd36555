"""How arrays of a call lie in memory they share: a box, and each array as a region of it.

The box is a grid of places in memory, its axes those along which the arrays walk: for two windows
of one matrix its rows and columns. Only the example call's numbers decide which grid it is; what
must hold for a later call to lie in the same one is a list of tests over addresses, strides and
sizes, which Python and native code evaluate alike.

Invariants: immutable. Where all tests hold, two places of the box are two places in memory, and
arrays of different `groups` have none in common. Places and steps are whole numbers; sizes stay
open.
Not here: what a trace makes of it (box.py), which arrays are looked at (calls/specialise.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tracemill.compiler.dims import Dim, Size
from tracemill.compiler.records import dataclass

from .guards import RELATIONS

Array = np.ndarray[Any, Any]


class Measure(NamedTuple):
    """A number that a call's array has: its ``data`` address, or a ``stride`` in bytes or the
    ``size`` of an axis."""

    member: int
    what: str
    axis: int = 0

    def of(self, arrays: Sequence[Array]) -> int:
        """The number in these arrays."""
        array = arrays[self.member]
        if self.what == "data":
            return int(array.__array_interface__["data"][0])
        return array.strides[self.axis] if self.what == "stride" else array.shape[self.axis]


class Run(NamedTuple):
    """Neighbouring axes of an array whose elements lie one after another, `step` places apart,
    along one axis of the box."""

    axes: tuple[int, ...]
    box: int
    step: int


@dataclass(frozen=True, slots=True)
class Region:
    """Where an array lies. start: the lowest place. Axes in no run have one element, or repeat
    it. width: places that an element takes along the last axis."""

    start: tuple[int, ...]
    runs: tuple[Run, ...]
    width: int

    @property
    def is_box(self) -> bool:
        """True where each run has an axis of the box to itself, so that slicing it is enough."""
        return len({run.box for run in self.runs}) == len(self.runs)

    def ends(self, shape: Sequence[Size]) -> tuple[Size, ...]:
        """Behind the last place, for each axis of the box."""
        found: list[Size] = [first + 1 for first in self.start]
        found[-1] = found[-1] + self.width - 1
        for run in self.runs:
            found[run.box] = found[run.box] + (count(shape, run) - 1) * abs(run.step)
        return tuple(found)


class Test(NamedTuple):
    """``left relation right``; their symbols are those of `Sharing.measures`."""

    left: Size
    relation: str
    right: Size


@dataclass(frozen=True, slots=True)
class Sharing:
    """See the module.

    keys: what each array is in the call: the index of a leaf, or a captured array (as an object
    that is equal to itself only). groups: which of them have places in common.
    """

    keys: tuple[Any, ...]
    regions: tuple[Region, ...]
    longest: tuple[int, ...]  # for each axis of the box, the array that ends last
    groups: tuple[tuple[int, ...], ...]
    measures: Mapping[str, Measure]
    tests: tuple[Test, ...]

    def holds(self, arrays: Sequence[Array]) -> bool:
        """Whether these arrays lie to each other as those of the example call."""
        known = {name: measure.of(arrays) for name, measure in self.measures.items()}

        def number(size: Size) -> int:
            return size.evaluate(known) if isinstance(size, Dim) else size

        return all(RELATIONS[t.relation](number(t.left), number(t.right)) for t in self.tests)


def count(shape: Sequence[Size], run: Run) -> Size:
    """Elements of a run."""
    total: Size = 1
    for axis in run.axes:
        total = total * shape[axis]
    return total


def share(keys: Sequence[Any], arrays: Sequence[Array]) -> Sharing:
    """How these arrays, none of them empty, share memory."""
    units, regions = _grid(arrays)
    ends = [region.ends(array.shape) for region, array in zip(regions, arrays, strict=True)]
    longest = tuple(
        max(range(len(arrays)), key=lambda m: (ends[m][d], -m)) for d in range(len(units))
    )
    made = _Tests(arrays, regions, units, longest)
    made.write()
    groups = made.groups(ends)
    return Sharing(
        tuple(keys), tuple(regions), longest, groups, made.measures, tuple(made.tests)
    )  # fmt: skip


# -- finding the grid


def _grid(arrays: Sequence[Array]) -> tuple[list[int], list[Region]]:
    """Bytes between neighbours along each axis of the box, longest first; and the regions.

    Every stride is a candidate; one along which the arrays would run into the next is left out,
    and what steps by it takes larger steps along a shorter one.
    """
    lows = [_lowest(array) for array in arrays]
    offsets = [low - min(lows) for low in lows]
    strides = {abs(s) for a in arrays for n, s in zip(a.shape, a.strides) if n > 1 and s}
    smallest = math.gcd(*strides, *offsets, *[a.itemsize for a in arrays])
    units = sorted({*strides, smallest}, reverse=True)
    while True:
        crossed = 0
        for place in (_floored, _balanced):
            regions = _placed(arrays, offsets, units, place)
            crossed = _crossed(arrays, regions, units)
            if not crossed and (len(units) == 1 or all(region.is_box for region in regions)):
                return units, regions
        del units[max(crossed - 1, 0)]


def _lowest(array: Array) -> int:
    """The address of the element that lies first."""
    back: int = sum((n - 1) * s for n, s in zip(array.shape, array.strides) if s < 0)
    return int(array.__array_interface__["data"][0]) + back


def _floored(offset: int, units: Sequence[int]) -> list[int]:
    """Bytes as a place in the box."""
    found = []
    for unit in units:
        found.append(offset // unit)
        offset %= unit
    return found


def _balanced(offset: int, units: Sequence[int]) -> list[int]:
    """The same, where a row begins further left than the one before."""
    found = []
    for unit in units[:-1]:
        found.append((2 * offset + unit) // (2 * unit))
        offset -= found[-1] * unit
    return [*found, offset // units[-1]]


def _placed(
    arrays: Sequence[Array], offsets: Sequence[int], units: Sequence[int], place: Any
) -> list[Region]:
    starts = [place(offset, units) for offset in offsets]
    first = [min(axis) for axis in zip(*starts)]
    return [
        Region(
            tuple(a - b for a, b in zip(start, first)),
            _runs(array, units),
            array.itemsize // units[-1],
        )
        for start, array in zip(starts, arrays)
    ]


def _runs(array: Array, units: Sequence[int]) -> tuple[Run, ...]:
    """The axes of more than one element, each along the longest unit that divides its stride."""
    runs: list[Run] = []
    for axis, (size, stride) in enumerate(zip(array.shape, array.strides)):
        if size == 1 or stride == 0:
            continue
        box = next(d for d, unit in enumerate(units) if stride % unit == 0)
        step = stride // units[box]
        if runs and runs[-1].box == box and runs[-1].step == step * size:
            if runs[-1].axes[-1] == axis - 1:
                runs[-1] = Run((*runs[-1].axes, axis), box, step)
                continue
        runs.append(Run((axis,), box, step))
    return tuple(runs)


def _crossed(arrays: Sequence[Array], regions: Sequence[Region], units: Sequence[int]) -> int:
    """The first axis along which the box is longer than one step of the axis before; 0: none."""
    ends = [region.ends(array.shape) for region, array in zip(regions, arrays, strict=True)]
    extents = [max(axis) for axis in zip(*ends)]
    for d in range(1, len(units)):
        if sum((e - 1) * u for e, u in zip(extents[d:], units[d:])) >= units[d - 1]:
            return d
    return 0


# -- what must hold


class _Tests:
    """Writes the tests of one `Sharing`."""

    def __init__(
        self,
        arrays: Sequence[Array],
        regions: Sequence[Region],
        units: Sequence[int],
        longest: Sequence[int],
    ) -> None:
        self.arrays = arrays
        self.regions = regions
        self.longest = longest
        self.measures: dict[str, Measure] = {}
        self.tests: list[Test] = []
        self.units = [self._unit(d, units[d]) for d in range(len(units))]
        self.ends = [r.ends(self.shape(m)) for m, r in enumerate(regions)]

    def measure(self, member: int, what: str, axis: int = 0) -> Dim:
        """The symbol of a measure."""
        name = f"{what}{axis}.{member}"
        self.measures[name] = Measure(member, what, axis)
        return Dim.symbol(name)

    def shape(self, member: int) -> tuple[Size, ...]:
        """Sizes of an array, those of one element as numbers."""
        shape = self.arrays[member].shape
        return tuple(1 if n == 1 else self.measure(member, "size", d) for d, n in enumerate(shape))

    def test(self, left: Size, relation: str, right: Size) -> None:
        """Something that must hold, unless it always does."""
        if isinstance(left - right, Dim):
            self.tests.append(Test(left, relation, right))

    def _unit(self, d: int, unit: int) -> Size:
        """Bytes of a step along an axis of the box: a stride that is one such step, or a number."""
        for member, region in enumerate(self.regions):
            for run in region.runs:
                if run.box == d < len(region.start) - 1 and abs(run.step) == 1:
                    return self.measure(member, "stride", run.axes[-1]) * run.step
        return unit

    def write(self) -> None:
        """All tests but those that keep groups apart."""
        for member in range(len(self.arrays)):
            self._lies(member)
        extents = [self.ends[m][d] for d, m in enumerate(self.longest)]
        for ends in self.ends:
            for extent, end in zip(extents, ends):
                self.test(extent, ">=", end)
        for d in range(1, len(self.units)):
            reach: Size = 0
            for extent, unit in zip(extents[d:], self.units[d:]):
                reach = reach + (extent - 1) * unit
            self.test(reach, "<", self.units[d - 1])

    def _lies(self, member: int) -> None:
        """The array is where its region says."""
        array, region, shape = self.arrays[member], self.regions[member], self.shape(member)
        running = {axis for run in region.runs for axis in run.axes}
        for axis, size in enumerate(shape):
            self.test(size, ">=", 1)
            if axis not in running and array.shape[axis] > 1:
                self.test(self.measure(member, "stride", axis), "==", 0)
        for run in region.runs:
            last = run.axes[-1]
            self.test(self.measure(member, "stride", last), "==", self.units[run.box] * run.step)
            for outer, inner in itertools.pairwise(run.axes):
                stride = self.measure(member, "stride", inner)
                self.test(self.measure(member, "stride", outer), "==", stride * shape[inner])
        if member:
            distance = self._low(member) - self._low(0)
            starts = zip(region.start, self.regions[0].start, self.units)
            wanted: Size = 0
            for mine, first, unit in starts:
                wanted = wanted + unit * (mine - first)
            self.test(distance, "==", wanted)

    def _low(self, member: int) -> Size:
        """The address of the element that lies first."""
        low: Size = self.measure(member, "data")
        for run in self.regions[member].runs:
            if run.step < 0:
                unit = self.units[run.box]
                low = low + (count(self.shape(member), run) - 1) * unit * run.step
        return low

    def groups(self, ends: Sequence[Sequence[Size]]) -> tuple[tuple[int, ...], ...]:
        """Arrays that have places in common, directly or through others; and what keeps the
        rest apart is tested."""
        group = list(range(len(self.arrays)))
        apart: list[tuple[int, int, int]] = []
        for a, b in itertools.combinations(range(len(self.arrays)), 2):
            gap = self._gap(ends, a, b)
            if gap is None:
                old, new = group[b], group[a]
                group = [new if g == old else g for g in group]
            else:
                apart.append(gap)
        for low, high, d in apart:
            if group[low] != group[high]:
                self.test(self.ends[low][d], "<", self.regions[high].start[d] + 1)
        return tuple(
            tuple(m for m, g in enumerate(group) if g == leader) for leader in dict.fromkeys(group)
        )

    def _gap(self, ends: Sequence[Sequence[Size]], a: int, b: int) -> tuple[int, int, int] | None:
        """(the lower array, the higher one, the axis along which they are apart)."""
        for d in range(len(self.units)):
            for low, high in ((a, b), (b, a)):
                beyond: Any = ends[low][d]
                if beyond <= self.regions[high].start[d]:
                    return low, high, d
        return None
