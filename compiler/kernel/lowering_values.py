"""Values of a region at an index: what must be computed so that one element is known.

`Values.at` answers with the name of a scalar of the kernel; asking twice gives the same name.
Elementwise ops, movement, creation, gathers, reductions and contractions are rows here, by
structure; movement goes through its own table.

Invariants: iterative except for one level of recursion per nested reduction; a masked value is
only computed from masked loads.
Not here: loops over results, stores (lowering.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as places
from typing import Any

from ..dims import Dim, Size
from ..ir.graph import Node, Value
from ..ops.definition import Structure
from ..ops.scalar import Scalar
from ..types import BOOL, I64, DType
from .blocks import Block, Writer
from .combining import combined
from .convolution import summed_extents, summed_places
from .kernel import Checked, Index, IndexValue, Let, Load, Reduce
from .monoids import Monoid, monoid_of, state_dtypes, widened
from .movement import Indices, Part, broadcast_index, movement_of
from .rolled import rolled
from .short import folded, is_short_fold

Key = tuple[Value, Indices, str | None]
# Structures of which an element needs the same element of each operand.
_BY_ELEMENT = (Structure.ELEMENTWISE, Structure.RANDOM, Structure.FLOW)
INNER = "r"


class Unlowered(Exception):
    """A region that cannot be lowered; says which op and why."""


class Values:
    """The scalars of one kernel, by (value, index, mask)."""

    def __init__(
        self, writer: Writer, buffers: dict[Value, str], notify: Callable[[Key, str], None]
    ) -> None:
        self.writer = writer
        self._buffers = buffers
        self._memo: dict[Key, str] = {}
        self._known: dict[tuple[Value, Indices], str] = {}
        self._loops: dict[tuple[Node, Indices, str | None], list[str]] = {}
        self._notify = notify

    def known(self, value: Value, index: Indices, name: str) -> None:
        """Say what an element is called that is there already, whatever mask holds."""
        self._known[(value, index)] = name

    def at(self, value: Value, index: Indices, mask: str | None = None) -> str:
        """The name of the element of `value` at `index`, valid where `mask` holds."""
        memo = self._memo
        wanted: Key = (value, index, mask)
        stack: list[tuple[Key, list[Key] | None]] = [(wanted, None)]
        while stack:
            key, needs = stack.pop()
            if key in memo:
                continue
            if needs is None:
                needs = self._needs(key)
                missing = [need for need in needs if need not in memo]
                if missing:
                    stack.append((key, needs))
                    stack.extend((need, None) for need in reversed(missing))
                    continue
            name = self._make(key, [memo[need] for need in needs])
            memo[key] = name
            self._notify(key, name)
        return memo[wanted]

    # -- what an element needs

    def _needs(self, key: Key) -> list[Key]:
        value, index, mask = key
        node = value.node
        if node is None or value in self._buffers or (value, index) in self._known:
            return []
        structure = node.op.structure
        if structure in _BY_ELEMENT:
            return [
                (v, broadcast_index(index, v.tensor.shape, value.tensor.shape), mask)
                for v in node.operands
            ]
        if structure is Structure.MOVEMENT:
            return [
                (node.operands[part.operand], part.index, self._part_mask(part, mask))
                for part in movement_of(node).parts(node, index)
            ]
        if structure is Structure.GATHER:
            at, shape = _gather_place(node, index)
            return [
                (v, broadcast_index(at, v.tensor.shape, shape), mask) for v in node.operands[1:]
            ]
        return []

    def _part_mask(self, part: Part, mask: str | None) -> str | None:
        """The condition under which a part's operand may be touched."""
        for index, extent in part.bounds:
            held = self._in_range(index, extent)
            mask = held if mask is None else self.writer.let("in", "and", (mask, held), BOOL)
        return mask

    def _in_range(self, index: Size, extent: Size) -> str:
        w = self.writer
        at = w.index_value(index)
        low = w.let("in", "le", (w.constant(0, I64), at), BOOL)
        size = w.constant(extent, I64) if isinstance(extent, int) else w.index_value(extent)
        return w.let("in", "and", (low, w.let("in", "lt", (at, size), BOOL)), BOOL)

    # -- making it

    def _make(self, key: Key, names: list[str]) -> str:
        value, index, mask = key
        node = value.node
        if (value, index) in self._known:
            return self._known[(value, index)]
        if node is None or value in self._buffers:
            return self._load(value, index, mask)
        structure = node.op.structure
        if structure is Structure.ELEMENTWISE or structure is Structure.RANDOM:
            return self._let(value, node, names)
        if structure is Structure.FLOW:
            return self._rolled(key, node, names)
        if structure is Structure.MOVEMENT:
            return self._moved(value, node, index, names)
        if structure is Structure.CREATION:
            return self._created(value, node, index)
        if structure is Structure.GATHER:
            return self._gathered(value, node, index, mask, names)
        if is_short_fold(node):
            return self._written_out(value, node, index, mask)
        if mask is not None:
            raise Unlowered(f"{node.op.name} under a mask")
        if structure is Structure.REDUCTION:
            return self._reduction(value, node, index)
        if structure is Structure.CONTRACTION:
            return self._contraction(value, node, index)
        raise Unlowered(f"{node.op.name} cannot be part of a larger kernel")

    def _load(self, value: Value, index: Indices, mask: str | None) -> str:
        buffer, dtype = self._buffer(value), value.tensor.dtype
        w = self.writer
        other = None if mask is None else w.constant(_zero(dtype), dtype, "zero")
        statement = Load(w.name(value.name), buffer, index, dtype, mask, other)
        return w.put(w.block_of(index, () if mask is None else (mask,)), statement)

    def _buffer(self, value: Value) -> str:
        """Where an array lies."""
        if value not in self._buffers:
            raise Unlowered(f"{value.name} is read when it is written over")
        return self._buffers[value]

    def _let(self, value: Value, node: Node, names: Sequence[str]) -> str:
        w = self.writer
        let = Let(
            w.name(value.name), node.op.name, tuple(names), value.tensor.dtype,
            node.attrs, node.location, value.index,
        )  # fmt: skip
        return w.put(w.block_of((), names), let)

    def _rolled(self, key: Key, node: Node, names: Sequence[str]) -> str:
        """A loop gives all its results at once."""
        value, index, mask = key
        place = (node, index, mask)
        if place not in self._loops:
            self._loops[place] = rolled(self.writer, node, names)
        return self._loops[place][value.index]

    def _moved(self, value: Value, node: Node, index: Indices, names: list[str]) -> str:
        parts = movement_of(node).parts(node, index)
        result = names[-1]
        for part, name in zip(reversed(parts[:-1]), reversed(names[:-1])):
            held = self._part_mask(part, None)
            if held is None:
                result = name
            else:
                args = (held, name, result)
                result = self.writer.let(value.name, "select", args, value.tensor.dtype)
        return result

    def _created(self, value: Value, node: Node, index: Indices) -> str:
        w = self.writer
        if "value" in node.attrs:
            array = node.attrs["value"]
            if array.size != 1:
                raise Unlowered("a constant array is a buffer of the plan")
            return w.constant(array.reshape(())[()].item(), value.tensor.dtype, value.name)
        return w.put(w.block_of(index), IndexValue(w.name(value.name), index[0]))

    def _gathered(
        self, value: Value, node: Node, index: Indices, mask: str | None, names: list[str]
    ) -> str:
        w, source, place = self.writer, *_gather_source(node, index, names)
        used = list(names)
        while source not in self._buffers and source.node is not None:
            inner = source.node  # a place along axes that it leaves is one of its own source
            if inner.op.structure is not Structure.GATHER:
                break
            at, shape = _gather_place(inner, place)
            found = [
                self.at(v, broadcast_index(at, v.tensor.shape, shape), mask)
                for v in inner.operands[1:]
            ]
            used += found
            source, place = _gather_source(inner, place, found)
        dtype = source.tensor.dtype
        other = None if mask is None else w.constant(_zero(dtype), dtype, "zero")
        load = Load(
            w.name(value.name), self._buffer(source), place, dtype, mask, other, node.location
        )
        sizes = [i for i in place if not isinstance(i, Checked)]
        return w.put(w.block_of(sizes, used if mask is None else (*used, mask)), load)

    # -- reductions

    def both(
        self, hint: str, monoid: Monoid, dtypes: tuple[DType, ...], states: Sequence[str]
    ) -> list[str]:
        """An earlier and a later state, side by side, as one."""
        w = self.writer

        def put(node: Scalar, args: tuple[str, ...]) -> str:
            if node.word == "const":
                return w.constant(node.attr, node.dtype)
            if node.attr is not None:
                raise Unlowered(f"{monoid.name} folds with {node.word}")
            return w.let(hint, node.word, args, node.dtype)

        if monoid.step is not None:
            return [w.let(hint, monoid.step, tuple(states), dtypes[0])]
        return combined(monoid.name, dtypes, states, put)

    def _written_out(self, value: Value, node: Node, index: Indices, mask: str | None) -> str:
        """Few elements, one after another in memory's order."""
        source, axes = node.operands[0], sorted(node.attrs["axes"])
        monoid = monoid_of(node.op.name)
        dtypes = state_dtypes(monoid, source.tensor.dtype)
        total: list[str] = []
        for at in places(*(range(folded((source.tensor.shape[axis],))) for axis in axes)):
            whole = list(index)
            for axis, i in zip(axes, at):
                whole.insert(axis, i)
            state = [self._lifted(self.at(source, tuple(whole), mask), source.tensor.dtype, monoid)]
            if monoid.indexed:
                state.append(self.writer.constant(at[0], I64))
            total = self.both(value.name, monoid, dtypes, [*total, *state]) if total else state
        return self._narrowed(total[-1], dtypes[-1], value)

    def _reduction(self, value: Value, node: Node, index: Indices) -> str:
        source = node.operands[0]
        axes = node.attrs["axes"]
        monoid = monoid_of(node.op.name)
        whole = list(index)
        for axis in sorted(axes):
            whole.insert(axis, 0)
        home = self.writer.block_of(index)

        def element(at: Sequence[Size]) -> list[str]:
            for axis, i in zip(axes, at):
                whole[axis] = i
            found = [self._lifted(self.at(source, tuple(whole)), source.tensor.dtype, monoid)]
            if monoid.indexed:
                found.append(self.writer.index_value(at[0]))
            return found

        extents = [source.tensor.shape[axis] for axis in axes]
        dtypes = state_dtypes(monoid, source.tensor.dtype)
        names = self._nest(value, node, monoid, home, extents, dtypes, element)
        picked, dtype = (names[1], I64) if monoid.indexed else (names[0], dtypes[0])
        return self._narrowed(picked, dtype, value)

    def _contraction(self, value: Value, node: Node, index: Indices) -> str:
        a, b = node.operands
        dtype = widened(value.tensor.dtype)
        home = self.writer.block_of(index)
        places = summed_places(node, index)

        def element(at: Sequence[Size]) -> list[str]:
            left, right = places(at)
            x = self._converted(self.at(a, left), a.tensor.dtype, dtype)
            y = self._converted(self.at(b, right), b.tensor.dtype, dtype)
            w = self.writer
            let = Let(w.name("product"), "mul", (x, y), dtype)
            return [w.put(w.block_of((), (x, y)), let)]

        extents = summed_extents(node)
        monoid = monoid_of("sum")
        if not extents:
            (name,) = element(())
            return self._narrowed(name, dtype, value)
        names = self._nest(value, node, monoid, home, extents, (dtype,), element, loose=True)
        return self._narrowed(names[0], dtype, value)

    def _nest(
        self,
        value: Value,
        node: Node,
        monoid: Monoid,
        home: Block,
        extents: Sequence[Size],
        dtypes: tuple[DType, ...],
        element: Callable[[Sequence[Size]], list[str]],
        loose: bool = False,
    ) -> tuple[str, ...]:
        """Nested loops over `extents` that fold what `element` gives."""
        w = self.writer
        blocks: list[Block] = []
        parent = home
        for extent in extents:
            parent = w.open(INNER, extent, parent)
            blocks.append(parent)
        names = element([Dim.symbol(block.axis) for block in blocks])
        for block in reversed(blocks):
            results = tuple(w.name(value.name) for _ in names)
            reduce = Reduce(
                results, monoid.name, block.axis, block.extent, tuple(block.out),
                tuple(names), dtypes, location=node.location, loose=loose,
            )  # fmt: skip
            assert block.parent is not None
            block.parent.out.append(reduce)
            for name in results:
                w.home[name] = block.parent
            names = list(results)
        return tuple(names)

    def _lifted(self, name: str, dtype: DType, monoid: Monoid) -> str:
        return self._converted(name, dtype, monoid.accumulate(dtype))

    def _converted(self, name: str, have: DType, want: DType) -> str:
        return name if have is want else self.writer.let("wide", "convert", (name,), want)

    def _narrowed(self, name: str, have: DType, value: Value) -> str:
        return self._converted(name, have, value.tensor.dtype)


def _gather_source(
    node: Node, index: Sequence[Index], names: Sequence[str]
) -> tuple[Value, tuple[Index, ...]]:
    """What a gather reads and where, with the names of its index arrays' elements."""
    source, axes = node.operands[0], node.attrs["axes"]
    rank = node.results[0].tensor.rank - (source.tensor.rank - len(axes))
    shape = source.tensor.shape
    checked = [Checked(name, shape[axis]) for name, axis in zip(names, axes)]
    return source, (*index[: axes[0]], *checked, *index[axes[0] + rank :])


def _gather_place(node: Node, index: Sequence[Index]) -> tuple[Indices, tuple[Size, ...]]:
    """The part of a gather's result index that indexes the index arrays, and its shape."""
    first = node.attrs["axes"][0]
    result = node.results[0].tensor
    rank = result.rank - (node.operands[0].tensor.rank - len(node.attrs["axes"]))
    part = [i for i in index[first : first + rank] if not isinstance(i, Checked)]
    if len(part) < rank:
        raise Unlowered("a place that is a value is looked up in an array of places")
    return tuple(part), result.shape[first : first + rank]


def _zero(dtype: DType) -> Any:
    if dtype.is_complex:
        return 0j
    return 0.0 if dtype.is_float else False if dtype is BOOL else 0
