"""np.fft: discrete Fourier transforms, by the library that NumPy uses, and what goes with them.

Invariants: single precision is computed where NumPy does so: of operands that are just that, and
scaled; a number of points that comes from a shape stays open; of real transforms whether it is
even selects a version.
Not here: the routines (library.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracemill.compiler.dims import Size, modulo
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import C64, C128, F32, F64, DType

from ..tracing.integer import user_size
from ..tracing.state import Trace, require_dtype, running
from ..tracing.tensor import fresh
from .axes import one_axis, size_argument
from .creation import asarray
from .library import call_library
from .memory_order import in_order
from .operands import value_of
from .ranges import arange
from .ufuncs import deliver, out_array
from .words import transpose

_BACK = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _real_dtype(dtype: DType) -> DType:
    """That of the numbers of a transform."""
    return require_dtype(np.result_type(dtype.numpy.type(0).real.dtype, 1.0))


def _complex_dtype(value: Value) -> DType:
    """That of a spectrum."""
    return require_dtype(np.result_type(value.tensor.dtype.numpy, 1j))


def _require_shape(trace: Trace, out: Any, made: Value, axis: int) -> None:
    """An array to be written has the points and axes of the result; others broadcast."""
    shape, points = out_array(out).tensor_type.shape, made.tensor.shape[axis]
    same = len(shape) == made.tensor.rank
    if not (same and trace.sizes.equal(shape[axis], points, "out has the points of a transform")):
        raise ValueError("output array has wrong shape.")


def _transform(
    a: Any,
    n: Any,
    axis: Any,
    norm: Any,
    out: Any,
    kind: str,
    *,
    forward: bool,
    points: Size | None = None,
) -> Any:
    """One axis. kind: the op, or ``rfft``; points: of the result, where they are not n."""
    trace = running()
    value = value_of(a)
    place = one_axis(axis, value.tensor.rank)
    count = value.tensor.shape[place] if n is None else size_argument(n)
    if not trace.sizes.at_least(count, 1, "a transform has a point"):
        raise ValueError(f"Invalid number of FFT data points ({count}) specified.")
    real = _real_dtype(value.tensor.dtype)
    norm = norm if forward else _swapped(norm)
    half = kind == "rfft"
    if half and value.tensor.dtype.is_complex:
        raise TypeError("np.fft.rfft takes real numbers; np.fft.fft takes complex ones")
    narrow = value.tensor.dtype is (F32 if half else C64) and norm not in (None, "backward")
    factor = trace.cast(_factor(trace, count, real, norm), F32 if narrow else F64)
    if half:
        odd = trace.sizes.at_least(modulo(count, 2), 1, "the number of points is odd")
        kind = "rfft_odd" if odd else "rfft_even"
        points = count // 2 + 1
        value = trace.cast(value, F32 if narrow else F64)
    else:
        value = trace.cast(value, C64 if narrow else C128)
    rank = value.tensor.rank
    order = [at for at in range(rank) if at != place] + [place]
    rows = transpose(trace, value, order)
    made = call_library(trace, kind, [rows, factor], m=count if points is None else points)
    made = transpose(trace, made, [order.index(at) for at in range(rank)])
    if out is None:
        made = trace.cast(made, real if kind == "irfft" else _complex_dtype(value_of(a)))
        return in_order(fresh(trace, made), "K", a)
    _require_shape(trace, out, made, place)  # which decides how NumPy rounds
    return deliver(trace, made, out, True, "same_kind", kind)


def _swapped(norm: Any) -> Any:
    try:
        return _BACK[norm]
    except KeyError:
        raise _bad_norm(norm) from None


def _bad_norm(norm: Any) -> Exception:
    return ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')


def _factor(trace: Trace, count: Size, real: DType, norm: Any) -> Value:
    """What results are multiplied by."""
    if norm in (None, "backward"):
        return trace.literal(1, real)
    if norm not in ("ortho", "forward"):
        raise _bad_norm(norm)
    number = trace.cast(trace.size_value(count), real)
    if norm == "ortho":
        number = trace.emit("sqrt", number)
    made: Value = trace.emit("reciprocal", number)
    return made


def fft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """np.fft.fft"""
    return _transform(a, n, axis, norm, out, "fft", forward=True)


def ifft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """np.fft.ifft"""
    return _transform(a, n, axis, norm, out, "ifft", forward=False)


def rfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """np.fft.rfft"""
    return _transform(a, n, axis, norm, out, "rfft", forward=True)


def irfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """np.fft.irfft"""
    return _transform(a, _twice(a, n, axis), axis, norm, out, "irfft", forward=False)


def _twice(a: Any, n: Any, axis: Any) -> Any:
    """How many real points half a spectrum stands for."""
    if n is not None:
        return n
    shape = value_of(a).tensor.shape
    return user_size(running(), (shape[one_axis(axis, len(shape))] - 1) * 2)


def hfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """np.fft.hfft"""
    return irfft(np.conjugate(asarray(a)), _twice(a, n, axis), axis, _swapped(norm), out)


def ihfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """np.fft.ihfft"""
    return np.conjugate(rfft(a, n, axis, _swapped(norm), out), out=out)


def _several(
    a: Any, s: Any, axes: Any, half: bool = False
) -> tuple[Sequence[Any], tuple[int, ...]]:
    """The points and axes of a transform over several axes. half: of half a spectrum."""
    trace, shape = running(), value_of(a).tensor.shape
    rank = len(shape)
    if s is None:
        places = tuple(range(rank)) if axes is None else tuple(int(axis) for axis in axes)
        points: list[Any] = [user_size(trace, shape[axis]) for axis in places]
        if half and places:
            points[-1] = _twice(a, None, places[-1])
        return points, places
    points = list(s)
    places = tuple(range(-len(points), 0)) if axes is None else tuple(int(axis) for axis in axes)
    if len(points) != len(places):
        raise ValueError("Shape and axes have different lengths.")
    for at, (number, axis) in enumerate(zip(points, places)):
        if number is None or (isinstance(number, int) and number == -1):
            points[at] = user_size(trace, shape[axis])
    return points, places


def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """np.fft.fftn"""
    return _nested(a, s, axes, norm, out, fft)


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """np.fft.ifftn"""
    return _nested(a, s, axes, norm, out, ifft)


def _nested(a: Any, s: Any, axes: Any, norm: Any, out: Any, one: Callable[..., Any]) -> Any:
    points, places = _several(a, s, axes)
    made = asarray(a)
    for n, axis in reversed(list(zip(points, places))):
        made = one(made, n, axis, norm, out)
    return made


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """np.fft.rfftn"""
    points, places = _several(a, s, axes)
    made = rfft(a, points[-1], places[-1], norm, out)
    for n, axis in reversed(list(zip(points[:-1], places[:-1]))):
        made = fft(made, n, axis, norm, out)
    return made


def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """np.fft.irfftn"""
    points, places = _several(a, s, axes, half=True)
    made = asarray(a)
    for n, axis in zip(points[:-1], places[:-1]):
        made = ifft(made, n, axis, norm)
    return irfft(made, points[-1], places[-1], norm, out)


def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """np.fft.fft2"""
    return fftn(a, s, axes, norm, out)


def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """np.fft.ifft2"""
    return ifftn(a, s, axes, norm, out)


def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """np.fft.rfft2"""
    return rfftn(a, s, axes, norm, out)


def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """np.fft.irfft2"""
    return irfftn(a, s, axes, norm, out)


def fftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """np.fft.fftfreq"""
    trace, count = running(), _points(n)
    half = user_size(trace, (count - 1) // 2 + 1)
    rest = user_size(trace, count // 2)
    places = trace.dispatch.function(np.concatenate, ((arange(0, half), arange(-rest, 0)),), {})
    return places * (1.0 / (n * d))


def rfftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """np.fft.rfftfreq"""
    return arange(0, user_size(running(), _points(n) // 2 + 1)) * (1.0 / (n * d))


def _points(n: Any) -> Size:
    if isinstance(n, float):
        raise ValueError("n should be an integer")
    return size_argument(n)


def fftshift(x: Any, axes: Any = None) -> Any:
    """np.fft.fftshift"""
    return _shifted(x, axes, lambda size: size // 2)


def ifftshift(x: Any, axes: Any = None) -> Any:
    """np.fft.ifftshift"""
    return _shifted(x, axes, lambda size: -(size // 2))


def _shifted(x: Any, axes: Any, shift: Callable[[Size], Size]) -> Any:
    trace, shape = running(), value_of(x).tensor.shape
    listed = (
        range(len(shape)) if axes is None else axes if isinstance(axes, tuple | list) else (axes,)
    )
    places = tuple(one_axis(axis, len(shape)) for axis in listed)
    shifts = tuple(user_size(trace, shift(shape[axis])) for axis in places)
    return trace.dispatch.function(np.roll, (x, shifts, places), {})


FUNCTIONS: dict[Any, Any] = {
    np.fft.fft: fft, np.fft.ifft: ifft, np.fft.rfft: rfft, np.fft.irfft: irfft,
    np.fft.hfft: hfft, np.fft.ihfft: ihfft, np.fft.fftn: fftn, np.fft.ifftn: ifftn,
    np.fft.rfftn: rfftn, np.fft.irfftn: irfftn, np.fft.fft2: fft2, np.fft.ifft2: ifft2,
    np.fft.rfft2: rfft2, np.fft.irfft2: irfft2, np.fft.fftfreq: fftfreq,
    np.fft.rfftfreq: rfftfreq, np.fft.fftshift: fftshift, np.fft.ifftshift: ifftshift,
}  # fmt: skip
