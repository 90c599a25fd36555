"""What libraries compute: decompositions and solvers of LAPACK, and Fourier transforms.

They are the libraries that ship with NumPy, so answers are NumPy's bit for bit. The first operand
of every op is the table of its library's routines in the process that runs, read when the graph
runs: two words for each routine and dtype, the code and what it wants to be handed. So plans and
machine code that are kept hold no address.

Invariants: problems are counted by the leading axes, which are the same for all operands but the
table and those of core rank alone, which all problems share.
Not here: NumPy's functions made of these and where routines are (frontend/numpy/library.py),
gradients (library_gradients.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..dims import Size
from ..types import C64, C128, F32, F64, I32, TOKEN, U64, DType, TensorType, Type, dtype_of
from . import library_gradients as gradients
from . import library_tangents as tangents
from .attributes import exactly, sizes, tensor
from .batching import Each, Lanes, Operands, aligned, same
from .definition import (
    Attrs,
    Facts,
    Gradient,
    OpDef,
    Routine,
    SignatureError,
    Structure,
    Tangent,
)
from .tangents import linear

DTYPES = (F32, F64, C64, C128)  # that routines take
Choice = Callable[[DType], DType]


def _same(dtype: DType) -> DType:
    return dtype


def _real(dtype: DType) -> DType:
    return F32 if dtype in (F32, C64) else F64


def _complex(dtype: DType) -> DType:
    return C64 if dtype in (F32, C64) else C128


def _count(dtype: DType) -> DType:
    return I32


def _judge(
    routine: Routine, dtypes: Sequence[Choice], operands: Sequence[Type], attrs: Attrs
) -> tuple[tuple[Size, ...], dict[str, Size], DType]:
    """How many problems there are, the sizes of the core axes, and the dtype of the first
    operand."""
    opened = _open(routine)
    given = sizes(tuple(exactly(attrs, *opened)), "sizes") if opened else ()
    if not opened:
        exactly(attrs)
    if len(operands) != len(routine.takes) + 1:
        raise SignatureError(
            "TM201", f"needs a table and {len(routine.takes)} arrays, got {len(operands)} operands"
        )
    table = tensor(operands, 0)
    if table.dtype is not U64 or table.rank != 2 or table.shape[1] != 2:
        raise SignatureError("TM202", f"needs a table of routines, got {table!r}")
    first = tensor(operands, 1).dtype
    if first not in DTYPES:
        raise SignatureError("TM202", f"needs f32, f64, c64 or c128, got {first.name}")
    found: dict[str, Size] = dict(zip(opened, given))
    batch: tuple[Size, ...] = ()
    for at, core in enumerate(routine.takes):
        typ = tensor(operands, at + 1)
        wanted = dtypes[at](first)
        if typ.dtype is not wanted:
            raise SignatureError("TM202", f"needs {wanted.name}, got {typ.dtype.name}")
        if typ.rank < len(core):
            raise SignatureError("TM208", f"needs {len(core)} axes, got {typ!r}")
        before = typ.shape[: typ.rank - len(core)]
        if at == 0:
            batch = before
        elif before and before != batch:
            raise SignatureError("TM209", f"has problems of {batch} and {before}")
        for name, size in zip(core, typ.shape[len(before) :]):
            known = found.setdefault(name, size)
            if known != size:
                raise SignatureError(
                    "TM209", f"needs one size for {name}, got {known} and {size}",
                    sizes=(known, size),
                )  # fmt: skip
    return batch, found, first


def _open(routine: Routine) -> tuple[str, ...]:
    """Core axes that results alone have, whose sizes are attributes."""
    taken = {name for core in routine.takes for name in core}
    return tuple(sorted({n for core in routine.gives for n in core if n not in taken}))


def _op(
    name: str,
    module: str,
    ufunc: str,
    core: str,
    doc: str,
    *,
    takes: Sequence[Choice] = (),
    gives: Sequence[Choice] = (),
    failure: str = "",
    writes: bool = False,
    gradient: Gradient | None = None,
    tangent: Tangent | None = None,
) -> OpDef:
    """core: axes by letter, of each operand and result. takes, gives: dtypes, from that of the
    first operand; the same where none are given. failure: the code of what can go wrong."""
    left, right = core.split("->")
    routine = Routine(module, ufunc, _cores(left), _cores(right), bool(failure), writes)
    taken = tuple(takes) or (_same,) * len(routine.takes)
    given = tuple(gives) or (_same,) * len(routine.gives)

    def signature(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        batch, found, first = _judge(routine, taken, operands, attrs)
        made = [
            TensorType(dtype(first), (*batch, *[found[n] for n in axes]))
            for dtype, axes in zip(given, routine.gives)
        ]
        return (*made, *([TOKEN] if failure else []))

    return OpDef(
        name=name,
        signature=signature,
        reference=_Reference(routine, given),
        doc=doc,
        structure=Structure.LIBRARY,
        gradient=gradient,
        tangent=tangent,
        batching=_problems,
        facts=Facts(can_fail=bool(failure)),
        routine=routine,
        failure=failure or "TM230",
    )


def _problems(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    """Lanes are further problems. What all of them share is repeated, but for what all problems
    share in one lane already. Routines that can fail take a matrix first."""
    table, *arrays = operands
    if node.op.facts.can_fail and lanes.active is not None:
        arrays[0] = _harmless(emit, arrays[0], lanes)
        operands = [table, *arrays]
    if not any(each.own for each in arrays):
        made = emit.emit(node.op, [each.value for each in operands], node.attrs)
        return [Each(value, False) for value in (made if isinstance(made, tuple) else (made,))]
    cores = node.op.routine.takes
    leading = arrays[0].value.type.shape[arrays[0].own : arrays[0].rank + arrays[0].own]
    batch = leading[: len(leading) - len(cores[0])]
    values = [table.value]
    for at, (each, core) in enumerate(zip(arrays, cores)):
        if at and not each.own and each.rank == len(core):
            values.append(each.value)
            continue
        own = each.value.type.shape[len(each.value.type.shape) - len(core) :]
        value = aligned(emit, each, len(batch) + len(core))
        values.append(emit.broadcast_to(value, shape=(lanes.size, *batch, *own)))
    tokens = [not isinstance(result.type, TensorType) for result in node.results]
    made = same(emit, node, values)
    return [Each(each.value, not token) for each, token in zip(made, tokens)]


def _harmless(emit: Any, each: Each, lanes: Lanes) -> Each:
    """A matrix that every routine takes, the identity, where no lane is active to see it."""
    shape = each.value.type.shape
    rows, columns = (emit.iota(size=size) for size in shape[-2:])
    diagonal = emit.equal(emit.reshape(rows, shape=(shape[-2], 1)), columns)
    identity = emit.cast(diagonal, dtype=each.value.type.dtype)
    active = lanes.active if each.own else emit.any(lanes.active, axes=(0,))
    if each.own:
        active = aligned(emit, Each(active, True), each.rank)
    return Each(emit.select(active, each.value, identity), each.own)


def _cores(text: str) -> tuple[tuple[str, ...], ...]:
    """From such as ``mm mn``, with a dot for a number."""
    return tuple(tuple(word.strip(".")) for word in text.split())


def ufunc_of(routine: Routine) -> np.ufunc:
    """NumPy's ufunc whose inner loop a routine is."""
    module = functools.reduce(getattr, routine.module.split("."), np)
    found: np.ufunc = getattr(module, routine.ufunc)
    return found


class _Reference:
    """The ufunc itself. What cannot be solved is said where the token is."""

    def __init__(self, routine: Routine, dtypes: Sequence[Choice]) -> None:
        self.routine = routine
        self.dtypes = dtypes

    def __call__(self, _: Any, *arrays: Any, **attrs: int) -> Any:
        routine = self.routine
        found: dict[str, int] = dict(attrs)
        for core, array in zip(routine.takes, arrays):
            found.update(zip(core, array.shape[array.ndim - len(core) :]))
        batch = arrays[0].shape[: arrays[0].ndim - len(routine.takes[0])]
        first = dtype_of(arrays[0].dtype)
        assert first is not None
        made = [
            np.empty((*batch, *[found[n] for n in core]), dtype(first).numpy)
            for dtype, core in zip(self.dtypes, routine.gives)
        ]
        results = made
        if routine.writes:
            made[0][...] = arrays[0]
            arrays, results = (made[0], *arrays[1:]), made[1:]
        failed: list[str] = []
        ufunc = ufunc_of(routine)
        with np.errstate(all="ignore", invalid="call", call=lambda *_: failed.append("it failed")):
            ufunc(*arrays, out=tuple(results))
        if routine.fails:
            return (*made, failed[0] if failed else None)
        return tuple(made) if len(made) > 1 else made[0]


_LAPACK = "linalg._umath_linalg"
_FFT = "fft._pocketfft_umath"

LIBRARY: tuple[OpDef, ...] = (
    _op("solve", _LAPACK, "solve", "mm mn -> mn", "The x of a @ x = b, columns of b apart.",
        failure="TM270", gradient=gradients.solve, tangent=tangents.solve),
    _op("inv", _LAPACK, "inv", "mm -> mm", "The inverse of a matrix.", failure="TM270",
        gradient=gradients.inv, tangent=tangents.inv),
    _op("inv_or_nan", _LAPACK, "inv", "mm -> mm", "The inverse, NaN where a matrix has none.",
        gradient=gradients.inv, tangent=tangents.inv),
    _op("det", _LAPACK, "det", "mm -> .", "The determinant of a matrix.",
        gradient=gradients.det, tangent=tangents.det),
    _op("slogdet", _LAPACK, "slogdet", "mm -> . .", "The sign of the determinant, and the "
        "logarithm of its size.", gives=(_same, _real),
        gradient=gradients.slogdet, tangent=tangents.slogdet),
    _op("cholesky", _LAPACK, "cholesky_lo", "mm -> mm", "The lower triangular factor of a positive "
        "definite matrix, whose lower triangle is read.", failure="TM271",
        gradient=gradients.cholesky, tangent=tangents.cholesky),
    _op("cholesky_upper", _LAPACK, "cholesky_up", "mm -> mm", "The upper triangular factor; the "
        "upper triangle is read.", failure="TM271",
        gradient=gradients.cholesky_upper, tangent=tangents.cholesky_upper),
    _op("eigh", _LAPACK, "eigh_lo", "mm -> m mm", "Eigenvalues, in ascending order, and "
        "eigenvectors of a Hermitian matrix, whose lower triangle is read.",
        gives=(_real, _same), failure="TM272", gradient=gradients.eigh, tangent=tangents.eigh),
    _op("eigvalsh", _LAPACK, "eigvalsh_lo", "mm -> m", "Eigenvalues of a Hermitian matrix, in "
        "ascending order.", gives=(_real,), failure="TM272",
        gradient=gradients.eigvalsh, tangent=tangents.eigvalsh),
    _op("eigh_upper", _LAPACK, "eigh_up", "mm -> m mm", "As eigh, reading the upper triangle.",
        gives=(_real, _same), failure="TM272", gradient=gradients.eigh, tangent=tangents.eigh),
    _op("eigvalsh_upper", _LAPACK, "eigvalsh_up", "mm -> m", "As eigvalsh, reading the upper "
        "triangle.", gives=(_real,), failure="TM272",
        gradient=gradients.eigvalsh, tangent=tangents.eigvalsh),
    _op("eig", _LAPACK, "eig", "mm -> m mm", "Eigenvalues and eigenvectors of a matrix.",
        gives=(_complex, _complex), failure="TM272"),
    _op("eigvals", _LAPACK, "eigvals", "mm -> m", "Eigenvalues of a matrix.", gives=(_complex,),
        failure="TM272"),
    _op("svd", _LAPACK, "svd_s", "mn -> mp p pn", "Singular value decomposition, as many vectors "
        "as there are values.", gives=(_same, _real, _same), failure="TM272",
        gradient=gradients.svd, tangent=tangents.svd),
    _op("svd_full", _LAPACK, "svd_f", "mn -> mm p nn", "Singular value decomposition, square "
        "factors.", gives=(_same, _real, _same), failure="TM272",
        gradient=gradients.svd_full, tangent=tangents.svd_full),
    _op("svdvals", _LAPACK, "svd", "mn -> p", "Singular values, in descending order.",
        gives=(_real,), failure="TM272", gradient=gradients.svdvals, tangent=tangents.svdvals),
    _op("qr_raw", _LAPACK, "qr_r_raw", "mn -> mn p", "R above the diagonal, the reflectors whose "
        "product is Q below it, and their scales.", failure="TM273", writes=True),
    _op("qr_reduced", _LAPACK, "qr_reduced", "mn k -> mk", "The first columns of Q.",
        failure="TM273"),
    _op("qr_complete", _LAPACK, "qr_complete", "mn n -> mm", "All columns of Q.", failure="TM273"),
    _op("lstsq", _LAPACK, "lstsq", "mn mr . -> nr r . p", "The x for which a @ x is nearest to b, "
        "the squares of what is left, the rank of a and its singular values.",
        takes=(_same, _same, _real), gives=(_same, _real, _count, _real), failure="TM272"),
    _op("fft", _FFT, "fft", "n . -> m", "Fourier transform of rows, times a number.",
        takes=(_same, _real), gradient=gradients.fft, tangent=linear(1)),
    _op("ifft", _FFT, "ifft", "n . -> m", "The same with the opposite sign in the exponent.",
        takes=(_same, _real), gradient=gradients.ifft, tangent=linear(1)),
    _op("rfft_even", _FFT, "rfft_n_even", "n . -> m", "The first half of the transform of real "
        "rows of an even number of points.", gives=(_complex,),
        gradient=gradients.rfft, tangent=linear(1)),
    _op("rfft_odd", _FFT, "rfft_n_odd", "n . -> m", "The first half of the transform of real rows "
        "of an odd number of points.", gives=(_complex,),
        gradient=gradients.rfft, tangent=linear(1)),
    _op("irfft", _FFT, "irfft", "n . -> m", "The real rows of which this is the first half of the "
        "transform.", takes=(_same, _real), gives=(_real,),
        gradient=gradients.irfft, tangent=linear(1)),
)  # fmt: skip


def rows_of(module: str) -> list[tuple[OpDef, DType]]:
    """What the rows of a library's table are: ops, each for all dtypes."""
    mine = [op for op in LIBRARY if op.routine is not None and op.routine.module == module]
    return [(op, dtype) for op in mine for dtype in DTYPES]


ROWS: Mapping[tuple[str, DType], int] = {
    (op.name, dtype): row
    for module in (_LAPACK, _FFT)
    for row, (op, dtype) in enumerate(rows_of(module))
}
