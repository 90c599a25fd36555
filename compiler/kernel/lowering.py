"""Region to kernel: loops over the results, and in them what the results need.

The results of the largest shape are the main nest; a smaller result that is computed on the way
is stored where it is computed (row sums beside the rows); what is left gets a nest of its own.
An update or scatter of a whole parameter writes only what changes, into memory that holds the
parameter's content already.

Invariants: any region lowers or raises `Unlowered`; names come from the region.
Not here: what a value needs (lowering_values.py), schedules, memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dims import Dim, Size
from ..ir.graph import Node, Value
from ..ops.definition import Structure
from ..records import dataclass
from ..types import TensorType
from .aliasing import safe_pairs
from .blocks import Block, Writer
from .collapse import collapse
from .combining import written
from .cost import words_of
from .kernel import (
    Check,
    Checked,
    For,
    Kernel,
    Parallel,
    Parameter,
    Store,
)
from .library import is_library, lower_library
from .lowering_values import Key, Values
from .movement import (
    Indices,
    broadcast_index,
    is_join,
    is_update,
    join_starts,
    update_position,
)
from .nest import is_nest, lower_nest
from .region import Lowered, Region, kernel_name
from .reuse import reuse
from .scanning import scanning
from .short import folded, folds_short_rows, has_short_columns, is_short
from .sorting import is_sort, lower_sort
from .symbols import kernel_dims, used_buffers

Emit = Callable[[Indices, Block], None]
AXES = "ijklabcdefgh"
WRITTEN_OUT = 400  # words that a kernel has at most when its columns are written out


@dataclass(frozen=True, slots=True)
class _Sink:
    """One thing to do at every index of `domain`."""

    domain: tuple[Size, ...]
    emit: Emit


def lower(region: Region) -> Lowered:
    """The kernel of a region. Raises Unlowered."""
    if is_sort(region):
        return lower_sort(region)
    if is_library(region):
        return lower_library(region)
    if is_nest(region):
        return lower_nest(region)
    return _Lowering(region).run()


class _Lowering:
    def __init__(self, region: Region) -> None:
        self.region = region
        dims = {
            symbol
            for value in _all_values(region)
            for size in _shape(value)
            if isinstance(size, Dim)
            for symbol in size.symbols()
        }
        self.writer = Writer(dims)
        params = {v: self.writer.name(v.name) for v in region.params}
        self.buffers = {v: params[v] for v in region.params}
        self.outputs = [
            self.writer.name(f"{r.name}_out" if r in params else f"out_{r.name}")
            for r in region.results
        ]
        self.bases: list[int | None] = [None] * len(region.results)
        self.waiting: dict[Value, list[int]] = {}
        self.bound: dict[str, Size] = {}
        self.values = Values(self.writer, self.buffers, self._made)

    def run(self) -> Lowered:
        """Nest after nest until every result is stored."""
        for at, result in enumerate(self.region.results):
            if not self._in_place(result) and not self._is_joined(result):
                self.waiting.setdefault(result, []).append(at)
        for domain, sinks in self._special():
            self._nest(domain, sinks)
        while self.waiting:
            main = max(self.waiting, key=lambda r: _rank(_shape(r)))
            domain = _shape(main)
            mains = [r for r in self.waiting if _shape(r) == domain]
            for r in mains:
                self.waiting[r].append(-1)  # stored by its own sink, not on the way
            self._nest(domain, [_Sink(domain, self._storing(r)) for r in mains])
            for r in mains:
                del self.waiting[r]
        return self._finish()

    # -- sinks

    def _is_joined(self, result: Value) -> bool:
        """True for many arrays one after another, alone in their kernel."""
        node = result.node
        return node is not None and len(self.region.nodes) == 1 and is_join(node)

    def _in_place(self, result: Value) -> bool:
        """True for a result that continues a parameter's content."""
        node = result.node
        if node is None:
            return False
        if node.op.structure is Structure.SCATTER or node.op.structure is Structure.SCAN:
            return True
        return is_update(node) and node.operands[0].node is None

    def _joining(self, at: int, node: Node) -> list[tuple[tuple[Size, ...], list[_Sink]]]:
        """A nest for each operand of a join of many. Where it begins is a symbol of its own, so
        that equal operands have equal kernels."""
        axis = node.attrs["axis"]

        def nest(operand: int, start: Size) -> tuple[tuple[Size, ...], list[_Sink]]:
            value = node.operands[operand]
            symbol = self.writer.name("start")
            self.bound[symbol] = start

            def emit(index: Indices, block: Block) -> None:
                begin = index[axis] + Dim.symbol(symbol)
                place = (*index[:axis], begin, *index[axis + 1 :])
                block.out.append(Store(self.outputs[at], place, self.values.at(value, index)))

            return _shape(value), [_Sink(_shape(value), emit)]

        return [nest(operand, start) for operand, start in enumerate(join_starts(node))]

    def _special(self) -> list[tuple[tuple[Size, ...], list[_Sink]]]:
        found: list[tuple[tuple[Size, ...], list[_Sink]]] = []
        for at, result in enumerate(self.region.results):
            if self._is_joined(result):
                assert result.node is not None
                found.extend(self._joining(at, result.node))
            elif self._in_place(result):
                assert result.node is not None
                found.append(self._special_sink(at, result.node))
        for node in self.region.nodes:
            if node.op.structure is Structure.EFFECT:
                domain = _shape(node.operands[0])
                found.append((domain, [_Sink(domain, self._checking(node))]))
        return found

    def _special_sink(self, at: int, node: Node) -> tuple[tuple[Size, ...], list[_Sink]]:
        result = node.results[0]
        if node.op.structure is Structure.SCAN:
            axis = node.attrs["axis"]
            outer = tuple(n for a, n in enumerate(_shape(result)) if a != axis)
            emit = scanning(self.writer, self.values, self.outputs[at], node)
            return outer, [_Sink(outer, emit)]
        base = node.operands[0]
        self.bases[at] = self.region.params.index(base)
        if node.op.structure is Structure.SCATTER:
            first = node.attrs["axes"][0]
            outer = _shape(base)[:first]
            return outer, [_Sink(outer, self._scattering(at, node))]
        domain = _shape(node.operands[1])
        return domain, [_Sink(domain, self._updating(at, node))]

    def _updating(self, at: int, node: Node) -> Emit:
        def emit(index: Indices, block: Block) -> None:
            name = self.values.at(node.operands[1], index)
            block.out.append(Store(self.outputs[at], update_position(node, index), name))

        return emit

    def _storing(self, result: Value) -> Emit:
        def emit(index: Indices, block: Block) -> None:
            name = self.values.at(result, index)
            for at in self.waiting.get(result, ()):
                if at >= 0:
                    block.out.append(Store(self.outputs[at], index, name))

        return emit

    def _checking(self, node: Node) -> Emit:
        def emit(index: Indices, block: Block) -> None:
            name = self.values.at(node.operands[0], index)
            block.out.append(Check(name, None, node.location))

        return emit

    def _scattering(self, at: int, node: Node) -> Emit:
        def emit(index: Indices, block: Block) -> None:
            w, base, value = self.writer, node.operands[0], node.operands[1]
            axes = node.attrs["axes"]
            middle = value.tensor.rank - base.tensor.rank + len(axes)
            shape = _shape(value)
            blocks = [block]
            place: list[Size] = list(index)
            for a in range(len(index), len(shape)):
                if shape[a] == 1:
                    place.append(0)
                    continue
                blocks.append(w.open("s", shape[a], blocks[-1]))
                place.append(Dim.symbol(blocks[-1].axis))
            ordered = {b.axis for b in blocks[1:]} & {
                str(p) for p in place[axes[0] : axes[0] + middle]
            }
            among = tuple(place[axes[0] : axes[0] + middle])
            region = shape[axes[0] : axes[0] + middle]
            checked = tuple(
                Checked(self.values.at(v, broadcast_index(among, _shape(v), region)), extent)
                for v, extent in zip(node.operands[2:], _shape(base)[axes[0] :])
            )
            name = self.values.at(value, tuple(place))
            target = (*place[: axes[0]], *checked, *place[axes[0] + middle :])
            blocks[-1].out.append(written(self.outputs[at], node, target, name))
            for inner in reversed(blocks[1:]):
                kind = For if inner.axis in ordered else Parallel
                assert inner.parent is not None
                inner.parent.out.append(kind(inner.axis, inner.extent, tuple(inner.out)))

        return emit

    # -- nests

    def _nest(self, domain: tuple[Size, ...], sinks: Sequence[_Sink]) -> None:
        """One loop per axis of `domain`, `sinks` innermost; short columns written out."""
        blocks = [self.writer.root]
        index: list[Size] = []
        columns = folded(domain[-1:]) if self._has_columns(domain) else 0
        for at, extent in enumerate(domain[:-1] if columns else domain):
            if extent == 1:
                index.append(0)
                continue
            blocks.append(self.writer.open(AXES[at % len(AXES)], extent, blocks[-1]))
            index.append(Dim.symbol(blocks[-1].axis))
        whole = [(*index, column) for column in range(columns)] or [tuple(index)]
        for place in whole:
            for sink in sinks:
                sink.emit(place, blocks[-1])
        for block in reversed(blocks[1:]):
            assert block.parent is not None
            block.parent.out.append(Parallel(block.axis, block.extent, tuple(block.out)))

    def _has_columns(self, domain: tuple[Size, ...]) -> bool:
        nodes = self.region.nodes
        if not domain or not is_short(domain[-1]):
            return False
        words = sum(_words(n) for n in nodes)
        if words * folded(domain[-1:]) > WRITTEN_OUT:
            return False  # compiling it would take longer than it gains
        whole = _extents(domain)
        return any(
            (has_short_columns(n) and _extents(_shape(n.results[0])) == whole)
            or (folds_short_rows(n) and _extents(_shape(n.operands[0])) == whole)
            for n in nodes
        )

    def _made(self, key: Key, name: str) -> None:
        """Store a waiting result where all of it comes by, each element once."""
        value, index, mask = key
        waiting = self.waiting.get(value)
        if waiting is None or mask is not None or waiting[-1] == -1:
            return
        axes: list[str] = []
        for position, size in zip(index, _shape(value)):
            if size == 1:
                continue
            axis = position.name if isinstance(position, Dim) else None
            if axis is None or axis in axes:
                return
            axes.append(axis)
        block = self.writer.block_of(index)
        sizes = [size for size in _shape(value) if size != 1]
        if set(block.axes()) != set(axes) or any(
            self.writer.extent_of(axis) != size for axis, size in zip(axes, sizes)
        ):
            return
        for at in self.waiting.pop(value):
            block.out.append(Store(self.outputs[at], index, name))

    # -- the kernel

    def _finish(self) -> Lowered:
        region = self.region
        body = tuple(self.writer.root.out)
        used = used_buffers(body)
        inputs = [at for at, v in enumerate(region.params) if self.buffers[v] in used]
        params = [
            _parameter(self.buffers[region.params[at]], region.params[at], "in",
                       at in region.strided)
            for at in inputs
        ]  # fmt: skip
        params += [
            _parameter(name, result, "out" if base is None else "inout", region.strided_results)
            for name, result, base in zip(self.outputs, region.results, self.bases)
        ]
        kernel = reuse(collapse(Kernel(kernel_name(region.nodes), tuple(params), (), body)))
        kernel = Kernel(kernel.name, kernel.params, kernel_dims(kernel), kernel.body)
        return Lowered(
            kernel, tuple(inputs), tuple(range(len(region.results))), tuple(self.bases),
            safe_pairs(kernel), self.bound,
        )  # fmt: skip


def _parameter(name: str, value: Value, mode: str, strided: bool = False) -> Parameter:
    return Parameter(name, value.tensor.dtype, _shape(value), mode, strided)


def _shape(value: Value) -> tuple[Size, ...]:
    return value.type.shape if isinstance(value.type, TensorType) else ()


def _words(node: Node) -> int:
    if node.op.structure is not Structure.ELEMENTWISE:
        return 1
    return words_of(node.op, tuple(v.tensor.dtype for v in node.operands), node.attrs)


def _extents(shape: tuple[Size, ...]) -> tuple[Size, ...]:
    return tuple(size for size in shape if size != 1)


def _rank(shape: tuple[Size, ...]) -> tuple[int, int]:
    loops = _extents(shape)
    known = 1
    for size in loops:
        known *= size if isinstance(size, int) else 1 << 20
    return len(loops), known


def _all_values(region: Region) -> list[Value]:
    return [*region.params, *(r for node in region.nodes for r in node.results)]
