"""What generated code says to its caller: failures, and whether to stop.

On a device the control block is one word: the least number of a failure so far. Nothing asks
there whether to stop.

Invariants: the layout is the head of the native `Control` block: a cancel word, then the
addresses of `poll` and `fail`. Code of the plan is the failure's number in the kernel plus 1.
Not here: what happens then (native/control.py).
"""

from __future__ import annotations

from llvmlite import ir

from .frame import Frame, constant, offset_bytes
from .types import I1, I32, I64, POINTER, VOID, any_lane, intrinsic, width_of

CANCEL, POLL, FAIL = 0, 8, 16
_POLL = ir.FunctionType(I64, [POINTER])
_FAIL = ir.FunctionType(VOID, [POINTER, I64, I64, I64, I64, I64])
WORK_BETWEEN_POLLS = 1 << 17


def fail_where(
    frame: Frame, bad: ir.Value, code: int, value: ir.Value | None, extent: ir.Value | None
) -> None:
    """Report failure `code` when some lane is `bad`, with the guilty value; where it is one for all
    lanes, leave the kernel, else go on."""
    builder = frame.builder
    if is_last(frame, bad):
        _end_where(frame, bad, code, value, extent)
        return
    cold, onward = frame.block("fail"), frame.block("onward")
    builder.cbranch(any_lane(builder, bad), cold, onward).set_weights([1, 100000])
    builder.position_at_end(cold)
    if frame.machine.is_device:
        builder.atomic_rmw("umin", frame.control, constant(code), "monotonic")
    else:
        _call_fail(frame, bad, code, value, extent)
    builder.branch(onward)
    builder.position_at_end(onward)


def _end_where(
    frame: Frame, bad: ir.Value, code: int, value: ir.Value | None, extent: ir.Value | None
) -> None:
    builder = frame.builder
    onward = frame.block("onward")
    frame.failed = frame.failed or frame.block("failed")
    words = (constant(code + 1), value or constant(0), extent or constant(0))
    frame.failures.append((builder.block, words))
    builder.cbranch(bad, frame.failed, onward).set_weights([1, 100000])
    builder.position_at_end(onward)


def emit_failures(frame: Frame) -> None:
    """What a kernel does where a failure is the last thing: one call for all of them."""
    if frame.failed is None:
        return
    builder = frame.builder
    builder.position_at_end(frame.failed)
    phis = [builder.phi(I64) for _ in range(3)]
    for block, words in frame.failures:
        for phi, word in zip(phis, words):
            phi.add_incoming(word, block)
    _tell(frame, *phis)
    builder.branch(frame.exit)


def is_last(frame: Frame, bad: ir.Value) -> bool:
    """Whether nothing is done after the failure of a condition. Threads of a device go on: others
    wait for them."""
    return width_of(bad) == 1 and not frame.machine.is_device


def _call_fail(
    frame: Frame, bad: ir.Value, code: int, value: ir.Value | None, extent: ir.Value | None
) -> None:
    word = constant(0) if value is None else _first_bad(frame, bad, value)
    _tell(frame, constant(code + 1), word, extent or constant(0))


def _tell(frame: Frame, code: ir.Value, value: ir.Value, extent: ir.Value) -> None:
    place = offset_bytes(frame, frame.control, FAIL)
    function = frame.builder.load(place, typ=POINTER)
    words = [code, constant(-1), value, extent, constant(0)]
    call_address(frame, function, _FAIL, [frame.control, *words])


def leave_if_cancelled(frame: Frame) -> None:
    """Leave the kernel when the call is cancelled; a plain load."""
    builder = frame.builder
    word = builder.load(offset_bytes(frame, frame.control, CANCEL), typ=I64)
    _leave_if(frame, word)


def poll(frame: Frame, work: ir.Value) -> None:
    """Count `work` done; after enough of it ask the caller, who looks at clock and signals."""
    if frame.machine.is_device:
        return
    builder = frame.builder
    if frame.work is None:
        frame.work = frame.stack_slot(I64)
        with frame.at_level(0):
            builder.store(constant(0), frame.work)
    if frame.site.routines is not None:
        args = [frame.control, frame.work, work]
        (word,) = frame.piece("poll", args, lambda there, given: [_asked(there, *given)])
        _leave_if(frame, word)
        return
    done = builder.add(builder.load(frame.work, typ=I64), work)
    builder.store(done, frame.work)
    ask, onward = frame.block("ask"), frame.block("onward")
    due = builder.icmp_signed(">", done, constant(WORK_BETWEEN_POLLS))
    builder.cbranch(due, ask, onward).set_weights([1, 1000])
    builder.position_at_end(ask)
    builder.store(constant(0), frame.work)
    _leave_if(frame, _answer(frame, frame.control))
    builder.branch(onward)
    builder.position_at_end(onward)


def _asked(frame: Frame, control: ir.Value, place: ir.Value, work: ir.Value) -> ir.Value:
    """The same where nothing can be left: what the caller answered, 0 where it was not asked."""
    builder = frame.builder
    done = builder.add(builder.load(place, typ=I64), work)
    builder.store(done, place)
    ask, onward = frame.block("ask"), frame.block("onward")
    before = builder.block
    due = builder.icmp_signed(">", done, constant(WORK_BETWEEN_POLLS))
    builder.cbranch(due, ask, onward).set_weights([1, 1000])
    builder.position_at_end(ask)
    builder.store(constant(0), place)
    answer = _answer(frame, control)
    builder.branch(onward)
    builder.position_at_end(onward)
    word = builder.phi(I64)
    word.add_incoming(constant(0), before)
    word.add_incoming(answer, ask)
    return word


def _answer(frame: Frame, control: ir.Value) -> ir.Value:
    function = frame.builder.load(offset_bytes(frame, control, POLL), typ=POINTER)
    return call_address(frame, function, _POLL, [control])


def _leave_if(frame: Frame, word: ir.Value) -> None:
    builder = frame.builder
    onward = frame.block("onward")
    stop = builder.icmp_signed("!=", word, constant(0))
    builder.cbranch(stop, frame.exit, onward).set_weights([1, 100000])
    builder.position_at_end(onward)


def call_address(
    frame: Frame, pointer: ir.Value, typ: ir.FunctionType, args: list[ir.Value]
) -> ir.Value:
    """Call an address that was loaded: llvmlite wants a callee that knows its type."""
    callee = _Callee(pointer, typ)
    return frame.builder.call(callee, args)


class _Callee:
    """An address with the type of the function that stands there."""

    def __init__(self, pointer: ir.Value, typ: ir.FunctionType) -> None:
        self.pointer = pointer
        self.function_type = typ
        self.type = pointer.type
        self.calling_convention = ""

    def get_reference(self) -> str:
        """The text of the address."""
        return str(self.pointer.get_reference())


def _first_bad(frame: Frame, bad: ir.Value, value: ir.Value) -> ir.Value:
    builder = frame.builder
    width = width_of(bad)
    if width == 1 or width_of(value) == 1:
        return value
    bits = builder.bitcast(bad, ir.IntType(width))
    lane = intrinsic(builder, "llvm.cttz", bits.type, [bits, ir.Constant(I1, 0)], bits.type)
    if width < 32:
        lane = builder.zext(lane, I32)
    elif width > 32:
        lane = builder.trunc(lane, I32)
    return builder.extract_element(value, lane)
