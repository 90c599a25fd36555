"""Sites: where in a kernel's loops a value is needed.

A kernel has root loops (the axes of its domain, numbered from 0) and one context of loops for
each reduction in it: the root loops its result is computed in, then the reduced axes. Loops that
lowering writes out (kernel/short.py) are no loops of a context. A site is
a context and, per axis of the value, the loop that runs along it.

Invariants: coarse but safe: what cannot be said exactly (slices, merged axes) is said to be
inexact and gets a tag, so that different uses are different sites.
Not here: what fusion does with it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from math import prod
from typing import NamedTuple

from ..dims import Size
from ..ir.graph import Node, Value
from ..kernel.movement import broadcast_axes, movement_of
from ..kernel.short import folded, has_short_columns
from ..ops.definition import Structure

ROOT = 0
SHORT = 1 << 32  # and above: the loop is written out, `loop - SHORT` elements


class Site(NamedTuple):
    """context: ROOT or a reduction's number. axes: per axis of the value the loop along it, -1
    where none is, -2 where several are. exact: every element once per visit, else `tag` tells
    uses apart. wasteful: visited where it is not used. moves: only movement may come in here.
    """

    context: int
    axes: tuple[int, ...]
    tag: Hashable = None
    wasteful: bool = False
    moves: bool = False

    @property
    def exact(self) -> bool:
        """True where the value's elements are met at plain loop positions."""
        return self.tag is None


def operand_sites(node: Node, site: Site) -> Iterator[tuple[Value, Site]]:
    """Where the operands of an elementwise, movement or gather node are needed."""
    structure = node.op.structure
    if structure is Structure.MOVEMENT:
        yield from _movement_sites(node, site)
        return
    if structure is Structure.GATHER:
        yield from _index_sites(node, site)
        return
    shape = node.results[0].tensor.shape
    for operand in node.operands:
        mine = operand.tensor.shape
        if mine == shape:
            yield operand, site
        else:
            axes = broadcast_axes(mine, shape)
            yield operand, site._replace(axes=_follow(axes, site.axes))


def _movement_sites(node: Node, site: Site) -> Iterator[tuple[Value, Site]]:
    for at, (operand, trace) in enumerate(zip(node.operands, movement_of(node).trace(node))):
        tag = site.tag if trace.exact else (site.tag, node.results[0], at)
        wasteful = site.wasteful or trace.wasteful
        yield operand, Site(site.context, _follow(trace.axes, site.axes), tag, wasteful, site.moves)


def _index_sites(node: Node, site: Site) -> Iterator[tuple[Value, Site]]:
    first = node.attrs["axes"][0]
    source, result = node.operands[0].tensor, node.results[0].tensor
    rank = result.rank - (source.rank - len(node.attrs["axes"]))
    shape = result.shape[first : first + rank]
    for operand in node.operands[1:]:
        axes = broadcast_axes(operand.tensor.shape, shape)
        moved = tuple(a if a < 0 else a + first for a in axes)
        yield operand, site._replace(axes=_follow(moved, site.axes))


def reduced_site(node: Node, site: Site, context: int, first_loop: int) -> Site:
    """Where the operand of a reduction is needed, the reduced axes being new loops."""
    axes = list(site.axes)
    for number, axis in enumerate(sorted(node.attrs["axes"])):
        axes.insert(axis, first_loop + number)
    return Site(context, tuple(axes))


def folded_site(node: Node, site: Site) -> Site:
    """Where the operand of a reduction that is written out is needed."""
    axes = list(site.axes)
    for axis in sorted(node.attrs["axes"]):
        axes.insert(axis, short_loop(folded(node.operands[0].tensor.shape[axis : axis + 1])))
    return site._replace(axes=tuple(axes))


def with_short_columns(node: Node, site: Site, loops: list[int]) -> Site:
    """The site of a reduction, its last axis written out where lowering does so."""
    if not has_short_columns(node) or not loops or site.axes[-1] != loops[-1]:
        return site
    size = folded(node.results[0].tensor.shape[-1:])
    return site._replace(axes=(*site.axes[:-1], short_loop(size)))


def short_loop(size: int) -> int:
    """The loop of a written out axis. All axes of one size have one: where such a loop is, all
    its elements are."""
    return SHORT + size


def copies(site: Site) -> int:
    """How often a value at a site is written out."""
    return prod([axis - SHORT for axis in site.axes if axis >= SHORT])


def _follow(axes: tuple[int, ...], outer: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([outer[a] if a >= 0 else a for a in axes])


def used_loops(site: Site, shape: tuple[Size, ...]) -> list[int] | None:
    """The loops along the value's axes that are not of size 1; None where not one each."""
    used = [axis for axis, size in zip(site.axes, shape) if size != 1]
    return None if any(axis < 0 for axis in used) else used
