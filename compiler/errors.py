"""Every error a user can meet: a class, a stable code, a sentence, a place, a hint.

The text of an error has one form, the user's line first::

    ShapeError [TM204] at train.py:31, in loss
      sub needs equal or broadcastable shapes, got f32[64, 10] and f32[32, 10]
      they differ in dimension 0: 64 against 32
      hint: the batch size of `target` was fixed at 32 by the first call

Three families: the user's mistake (TM1 tracing, TM2 operands), the world (TM5 files, devices,
time), and our own bug (TM3 graphs, TM4 compilation). Where NumPy raises, the class here is a
subclass of the class NumPy raises.

Invariants: a code is in `CODES` once, with its class and the sentence of its page in the
documentation; a code never changes its meaning.
Not here: what to do about each (error_help.py); who raises what; the codes of the verifier
(V...: they speak about graphs, not about the user's program).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np

from .error_help import HELP
from .records import dataclass, replace

_DIGITS = 40  # of an integer in a message; longer ones have their middle left out
_MANY_DIGITS = re.compile(rf"\d{{{_DIGITS + 1},}}")


class TracemillError(Exception):
    """The root of all errors raised by tracemill.

    place: where in the user's program, anything whose text reads ``file:line, in function``.
    sizes: the two sizes that should be equal, for a trace that may still decide that they are.
    """

    def __init__(
        self,
        code: str,
        summary: str,
        *,
        place: object = None,
        detail: str = "",
        hint: str = "",
        sizes: tuple[object, object] | None = None,
    ) -> None:
        super().__init__(code, summary)
        self.code = code
        self.summary = summary
        self.place = place
        self.detail = detail
        self.hint = hint
        self.sizes = sizes

    def __str__(self) -> str:
        at = "" if self.place is None else f" at {self.place}"
        lines = [f"{type(self).__name__} [{self.code}]{at}"]
        for text in (self.summary, self.detail):
            lines.extend(f"  {line}" for line in text.splitlines())
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        place = None if self.place is None else str(self.place)
        return _rebuild, (type(self), self.code, self.summary, place, self.detail, self.hint)


class ShapeError(TracemillError, ValueError):
    """Shapes that do not fit each other or the op."""


class DTypeError(TracemillError, TypeError):
    """An element type that the op or the library does not take."""


class AxisError(TracemillError, np.exceptions.AxisError):
    """An axis that the array does not have, or named twice."""

    def __str__(self) -> str:
        return TracemillError.__str__(self)


class BoundsError(TracemillError, IndexError):
    """An index outside its axis."""


class ArgError(TracemillError, ValueError):
    """An argument with a value that is not allowed."""


class MatrixError(TracemillError, np.linalg.LinAlgError):
    """A matrix has no such factors, inverse or solution."""


class RangeError(TracemillError, OverflowError):
    """A Python integer that does not fit the element type it is used with."""


class DivisionError(TracemillError, ZeroDivisionError):
    """A division by zero for which Python and NumPy raise: of Python numbers, by weights."""


class LimitError(TracemillError, MemoryError, ValueError):
    """A request larger than what can be addressed or was allowed: NumPy raises either class."""


class TraceError(TracemillError, TypeError):
    """Python code that cannot be traced, or a traced value used where it has no meaning."""


class UnsupportedError(TracemillError, NotImplementedError):
    """Something correct that tracemill does not do; the message names what to use instead."""


class GradientError(TracemillError, TypeError):
    """A gradient of something that has none."""


class UnknownName(TracemillError, LookupError):
    """A variable or value named that the program does not have."""


class GraphError(TracemillError, ValueError):
    """A graph text that cannot be read, or a graph that is not well-formed."""


class BrokenGraph(TracemillError, RuntimeError):
    """Our own bug: a pass or builder made a graph that is not well-formed.

    The detail holds the printed graph, to attach to a report.
    """


class CompileError(TracemillError, RuntimeError):
    """Code generation failed; the detail says on what."""


class FormatError(TracemillError, ValueError):
    """A file that is not what it claims to be."""


class CorruptError(FormatError):
    """A file whose content does not match its checksum or sizes."""


class VersionError(FormatError):
    """A file of a version that this release does not read."""


class UnsafeError(FormatError):
    """A file that asks for something a reader must refuse."""


class CheckpointError(TracemillError, OSError):
    """A checkpoint that could not be written or found."""

    def __str__(self) -> str:
        return TracemillError.__str__(self)


class DataLossError(CheckpointError):
    """Stored bytes that are damaged."""


class MismatchError(CheckpointError):
    """A checkpoint that does not fit the variables it is loaded into."""


class QueueClosed(TracemillError, RuntimeError):
    """A queue was closed while or before something waited for it."""


class Cancelled(TracemillError, RuntimeError):
    """The call was cancelled."""


class DeadlineExceeded(TracemillError, TimeoutError):
    """The call ran past its deadline."""

    def __str__(self) -> str:
        return TracemillError.__str__(self)


class WorkerLost(TracemillError, ConnectionError):
    """A process that takes part in the run is gone."""

    def __str__(self) -> str:
        return TracemillError.__str__(self)


class DeviceError(TracemillError, RuntimeError):
    """A device that does not exist or failed."""


class ExportError(TracemillError, OSError):
    """A library that could not be linked or written."""

    def __str__(self) -> str:
        return TracemillError.__str__(self)


class CacheWarning(UserWarning):
    """A cache entry that could not be used; the call went on without it."""


@dataclass(frozen=True, slots=True)
class Code:
    """One row of the documentation: the class raised, what the code means, what to do."""

    error: type[TracemillError]
    title: str
    help: str = ""


_ROWS: Mapping[str, Code] = {
    # tracing
    "TM101": Code(TraceError, "A traced value was asked for its truth value."),
    "TM102": Code(TraceError, "A traced value was asked for its number."),
    "TM103": Code(TraceError, "A traced value was used after its trace had ended."),
    "TM104": Code(TraceError, "A compiled function called itself."),
    "TM105": Code(TraceError, "An argument or result is of a type that cannot be traced."),
    "TM106": Code(TraceError, "A traced value reached code that cannot be traced."),
    "TM107": Code(TraceError, "A number outside a compiled function is changed by it."),
    "TM110": Code(UnsupportedError, "A NumPy function is not supported."),
    "TM111": Code(UnsupportedError, "An option of a NumPy function is not supported."),
    "TM112": Code(UnsupportedError, "A kind of indexing is not supported."),
    "TM113": Code(UnsupportedError, "Something cannot be exported as a C library."),
    "TM120": Code(GradientError, "A gradient was asked for of something that has none."),
    "TM121": Code(GradientError, "A tangent or cotangent does not fit what it belongs to."),
    "TM122": Code(ArgError, "Axes to map over are missing, out of range or of other sizes."),
    "TM123": Code(UnsupportedError, "Something has no meaning for several lanes."),
    "TM130": Code(UnknownName, "A name that the program or store does not have."),
    # operands: shapes, element types, axes, indices, arguments, limits
    "TM201": Code(ArgError, "An op got the wrong number or kind of operands."),
    "TM202": Code(DTypeError, "An op does not take operands of these element types."),
    "TM203": Code(ArgError, "An attribute is missing, unknown or of the wrong kind."),
    "TM204": Code(ShapeError, "Shapes do not broadcast together."),
    "TM205": Code(ShapeError, "A shape cannot be broadcast to the shape asked for."),
    "TM206": Code(ShapeError, "A reshape does not keep the number of elements."),
    "TM207": Code(ShapeError, "A region lies outside its array."),
    "TM208": Code(ShapeError, "An operand has the wrong rank."),
    "TM209": Code(ShapeError, "Two sizes that an op needs equal are not."),
    "TM210": Code(DTypeError, "An array has an element type that tracemill does not have."),
    "TM220": Code(AxisError, "An axis is out of range."),
    "TM221": Code(AxisError, "An axis is named twice."),
    "TM230": Code(BoundsError, "An index is out of bounds."),
    "TM240": Code(ArgError, "There is no op of this name."),
    "TM241": Code(ShapeError, "A reduction without identity over an axis of size zero."),
    "TM242": Code(ShapeError, "A size or count is negative."),
    "TM243": Code(ArgError, "A slice step is zero."),
    "TM244": Code(ArgError, "A check written in the program failed."),
    "TM245": Code(ArgError, "An assigned value does not fit its variable."),
    "TM246": Code(RangeError, "A Python number does not fit the element type."),
    "TM247": Code(ArgError, "A read-only array was written."),
    "TM248": Code(DTypeError, "A result cannot be stored in the dtype of its target."),
    "TM249": Code(ArgError, "Integers to negative integer powers are not allowed."),
    "TM250": Code(LimitError, "An array is larger than memory can address."),
    "TM251": Code(ArgError, "math domain error"),
    "TM252": Code(DivisionError, "A Python number was divided by zero."),
    "TM253": Code(ArgError, "A negative Python number was raised to a fractional power."),
    "TM254": Code(ArgError, "Arrays share memory in a way that cannot be compiled."),
    "TM255": Code(BoundsError, "A slice leaves its axis, where it would be shorter."),
    "TM256": Code(ArgError, "A stride, dilation, padding or number of groups is out of range."),
    "TM257": Code(ArgError, "A number to be counted is negative or beyond the last place."),
    "TM258": Code(ArgError, "Bins or quantiles are not in order or not in range."),
    "TM259": Code(ArgError, "There are more results than `size=` makes room for."),
    "TM260": Code(TraceError, "The parts of a loop or branch do not fit each other."),
    "TM261": Code(ArgError, "The place of an extreme was asked for where all elements are NaN."),
    "TM262": Code(DivisionError, "The weights of an average sum to zero."),
    "TM263": Code(ArgError, "A geometric sequence begins or ends at zero."),
    "TM264": Code(ArgError, "NaN is no integer."),
    "TM265": Code(ArgError, "A place in a shape, or the number of a choice, is out of bounds."),
    "TM266": Code(ArgError, "An array that has to be finite has a NaN or an infinity."),
    "TM268": Code(TraceError, "A host call returned something else than was declared."),
    "TM267": Code(ArgError, "The bounds of random integers are not in order, or not in the type."),
    "TM270": Code(MatrixError, "Singular matrix"),
    "TM271": Code(MatrixError, "Matrix is not positive definite"),
    "TM272": Code(MatrixError, "Eigenvalues or singular values did not converge."),
    "TM273": Code(MatrixError, "Incorrect argument found while performing QR factorization"),
    "TM274": Code(MatrixError, "The matrix of a least-squares problem has no full rank."),
    "TM275": Code(MatrixError, "Array must not contain infs or NaNs"),
    # our own bugs
    "TM301": Code(GraphError, "A graph text cannot be read."),
    "TM302": Code(GraphError, "A graph is not well-formed."),
    "TM303": Code(BrokenGraph, "A pass made a graph that is not well-formed."),
    "TM304": Code(BrokenGraph, "A reference implementation contradicts its op's types."),
    "TM401": Code(CompileError, "An op cannot be lowered for this target."),
    "TM402": Code(CompileError, "Machine code could not be made."),
    # the world
    "TM501": Code(FormatError, "A file is not what it claims to be."),
    "TM502": Code(CorruptError, "A file is damaged."),
    "TM503": Code(VersionError, "A file is of another version."),
    "TM504": Code(UnsafeError, "A file asks for something unsafe."),
    "TM510": Code(CheckpointError, "A checkpoint could not be written or found."),
    "TM511": Code(DataLossError, "A checkpoint is damaged."),
    "TM512": Code(MismatchError, "A checkpoint does not fit the variables."),
    "TM520": Code(DeviceError, "A device does not exist or failed."),
    "TM530": Code(QueueClosed, "A queue was closed."),
    "TM531": Code(Cancelled, "The call was cancelled."),
    "TM532": Code(DeadlineExceeded, "The call ran past its deadline."),
    "TM533": Code(WorkerLost, "A process that takes part is gone."),
    "TM540": Code(ExportError, "A C library could not be linked or written."),
}
CODES: Mapping[str, Code] = {
    code: replace(row, help=HELP.get(code, "")) for code, row in _ROWS.items()
}


def error(
    code: str,
    summary: str = "",
    *,
    place: object = None,
    detail: str = "",
    hint: str = "",
    sizes: tuple[object, object] | None = None,
) -> TracemillError:
    """The exception for `code`; without `summary` it says the code's own sentence."""
    row = CODES[code]
    summary = _MANY_DIGITS.sub(lambda found: number_text(int(found.group())), summary or row.title)
    return row.error(code, summary, place=place, detail=detail, hint=hint, sizes=sizes)


def number_text(number: int) -> str:
    """The digits of an integer, the middle left out where they are many. (Python itself refuses
    to write out more than some thousand.)"""
    size = abs(number)
    if size < 10**_DIGITS:
        return str(number)
    count = int(size.bit_length() * math.log10(2))  # less than the number of digits, or equal
    while 10**count <= size:
        count += 1
    head, tail = size // 10 ** (count - 12), size % 10**12
    return f"{'-' if number < 0 else ''}{head}...{tail:012d} ({count} digits)"


def _rebuild(
    kind: type[TracemillError], code: str, summary: str, place: str | None, detail: str, hint: str
) -> TracemillError:
    return kind(code, summary, place=place, detail=detail, hint=hint)
