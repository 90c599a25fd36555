"""Vector loops as code: whole vectors, a tail, and outputs that stream past the caches.

A loop is a main loop of whole vectors and a tail: one masked vector at a time where masked memory
is cheap, single elements elsewhere. A heavy body, or one with loops, is not worth a second copy:
all its vectors are masked, and only the last mask differs. Where a kernel touches more than the
caches keep, an output that it does not read and that lies on vector boundaries is stored straight
to memory: that saves reading what will be overwritten.

Invariants: streaming is decided at run time from sizes and addresses; a function that streams
ends with a store fence.
Not here: what the body's statements are (block.py).
"""

from __future__ import annotations

from llvmlite import ir

from ...compiler.dims import Dim, Size, product
from ...compiler.kernel.kernel import Checked, Parallel, Parameter, Store
from .access import resolve
from .bodies import weight_of_block
from .frame import Frame, Lanes, Streaming, constant
from .indices import scalar_size
from .invariants import split_invariant
from .loops import counted, mask_below, range_of, step_mask, stripped, tail_bits, work_of
from .types import I64, part_count

_HEAVY = 64  # words of a body that is not worth a second copy for the last vector
_TWICE = 16  # words of a body that is worth a copy for each kind of store
_CACHED = 40 << 20  # bytes: where a kernel touches more, the caches do not keep its outputs
_LEAST = 4 << 20  # bytes of an output that they would keep all the same


def emit_vector_loop(frame: Frame, s: Parallel) -> None:
    """A parallel loop whose iterations are lanes."""
    loop = _VectorLoop(frame, s)
    builder = frame.builder
    # What does not change is needed by all forms of the loop; at least one of them runs.
    ready, done = frame.block("any"), frame.block("none")
    builder.cbranch(builder.icmp_signed("<", loop.begin, loop.end), ready, done)
    builder.position_at_end(ready)
    frame.emit(loop.moved)
    loop.emit()
    builder.branch(done)
    builder.position_at_end(done)


class _VectorLoop:
    def __init__(self, frame: Frame, s: Parallel) -> None:
        self.frame = frame
        self.s = s
        self.begin, self.end = range_of(frame, s.axis, s.extent)
        self.moved, self.kept = split_invariant(s.body, s.axis)
        self.work = work_of(frame, self.kept)
        # Copies of a body with loops would run one after another: wider lanes run together.
        joined = self.work is not None
        self.width = s.vector * (max(1, s.unroll) if joined else 1)
        self.copies = 1 if joined else max(1, s.unroll)
        self.weight = weight_of_block(self.kept, frame.dtypes)

    def emit(self) -> None:
        """The loop in the form that its body deserves."""
        frame, builder = self.frame, self.frame.builder
        streaming = self._streaming()
        heavy = self.weight > _HEAVY or self.work is not None
        if frame.machine.has_masked_memory and heavy:
            self._all_masked(streaming)
            return
        stride = self.width * self.copies
        length = builder.sub(self.end, self.begin)
        middle = builder.add(self.begin, builder.sub(length, _remainder(frame, length, stride)))
        stripped(
            frame, self.begin, middle, stride, self.kept,
            lambda first, last, work, _: self._main(first, last, work, streaming),
        )  # fmt: skip
        static = isinstance(self.s.extent, int) and self.s.axis != frame.thread_axis
        if not static or self.s.extent % stride:
            self._tail(middle)

    def _main(
        self, begin: ir.Value, end: ir.Value, work: Size | None, streaming: Streaming | None
    ) -> None:
        """Whole vectors; a light body once for each kind of store."""
        frame, builder = self.frame, self.frame.builder
        if streaming is None or self.weight > _TWICE:
            self._whole(begin, end, work, streaming)
            return
        past, through, after = map(frame.block, ("past", "through", "after"))
        assert streaming.when is not None
        builder.cbranch(streaming.when, past, through)
        for block, kind in ((past, Streaming(streaming.buffers, None)), (through, None)):
            builder.position_at_end(block)
            self._whole(begin, end, work, kind)
            builder.branch(after)
        builder.position_at_end(after)

    def _whole(
        self, begin: ir.Value, end: ir.Value, work: Size | None, streaming: Streaming | None
    ) -> None:
        frame = self.frame

        def step(index: ir.Value, _: list[ir.Value]) -> None:
            with frame.vectorised(Lanes(self.s.axis, self.width)), frame.streaming(streaming):
                frame.emit(self.kept)
                for copy in range(1, self.copies):
                    with frame.iteration(self.s.axis, index, copy * self.width):
                        frame.emit(self.kept)

        stride = self.width * self.copies
        counted(frame, self.s.axis, begin, end, stride, step, work=work)

    def _tail(self, middle: ir.Value) -> None:
        """The rest: masked vectors, or single elements."""
        frame = self.frame
        masked = frame.machine.has_masked_memory

        def rest(index: ir.Value, _: list[ir.Value]) -> None:
            lanes = Lanes()
            if masked:
                mask = mask_below(frame, index, self.end, self.width)
                lanes = Lanes(self.s.axis, self.width, mask)
            with frame.vectorised(lanes):
                frame.emit(self.kept)

        step = self.width if masked else 1
        counted(frame, self.s.axis, middle, self.end, step, rest, work=self.work)

    def _all_masked(self, streaming: Streaming | None) -> None:
        frame, builder = self.frame, self.frame.builder
        tail = tail_bits(frame, self.begin, self.end, self.width)

        def step(index: ir.Value, _: list[ir.Value]) -> None:
            mask = step_mask(frame, index, self.end, self.width, tail)
            kind = streaming
            if streaming is not None:
                next_index = builder.add(index, constant(self.width))
                whole = builder.icmp_signed("<=", next_index, self.end)
                kind = Streaming(streaming.buffers, builder.and_(whole, streaming.when))
            with (
                frame.vectorised(Lanes(self.s.axis, self.width, mask)),
                frame.streaming(kind),
            ):
                frame.emit(self.kept)

        stripped(
            frame, self.begin, self.end, self.width, self.kept,
            lambda first, last, work, _: counted(
                frame, self.s.axis, first, last, self.width, step, work=work
            ),
        )  # fmt: skip

    def _streaming(self) -> Streaming | None:
        """Which stores may go past the caches, and when; None if none may."""
        frame, builder = self.frame, self.frame.builder
        if not frame.machine.is_x86 or self.width * 8 > 512:
            return None
        chosen = [x for x in self.kept if isinstance(x, Store) and self._may_stream(x)]
        if not chosen:
            return None
        when = self._touches(_CACHED, *frame.parameters.values())
        for store in chosen:
            parameter = frame.parameters[store.buffer]
            large = self._touches(_LEAST, parameter)
            index = tuple(i for i in store.index if not isinstance(i, Checked))
            lanes = Lanes(self.s.axis, self.width)
            with frame.iteration(self.s.axis, self.begin), frame.vectorised(lanes):
                place = resolve(frame, frame.buffers[store.buffer], index, [], None)
                address = builder.ptrtoint(place.pointer, I64)
            across = min(64, self.width * parameter.dtype.itemsize)
            low = builder.and_(address, constant(across - 1))
            fits = builder.and_(large, builder.icmp_signed("==", low, constant(0)))
            when = builder.and_(when, fits)
        frame.streams = True
        return Streaming(frozenset(x.buffer for x in chosen), when)

    def _touches(self, least: int, *parameters: Parameter) -> ir.Value:
        """Whether arrays are so many bytes together."""
        size: Size = 0
        for p in parameters:
            size = size + _bytes(p)
        return self.frame.builder.icmp_signed(">=", scalar_size(self.frame, size), constant(least))

    def _may_stream(self, s: Store) -> bool:
        parameter = self.frame.parameters.get(s.buffer)
        if parameter is None or parameter.strided or s.mask is not None:
            return False
        if s.buffer in self.frame.loaded:
            return False
        if part_count(parameter.dtype) != 1 or any(isinstance(i, Checked) for i in s.index):
            return False
        size = _bytes(parameter)
        if isinstance(size, int) and size < _LEAST:
            return False
        last = s.index[-1] if s.index else 0
        others = s.index[:-1]
        along = isinstance(last, Dim) and last.coefficient(self.s.axis) == 1
        return along and not any(isinstance(i, Dim) and self.s.axis in i.symbols() for i in others)


def _bytes(parameter: Parameter) -> Size:
    return product(parameter.shape) * parameter.dtype.itemsize


def _remainder(frame: Frame, length: ir.Value, stride: int) -> ir.Value:
    """length % stride of a length that is not negative."""
    if stride & (stride - 1) == 0:
        return frame.builder.and_(length, constant(stride - 1))
    return frame.builder.urem(length, constant(stride))
