"""NumPy expressions, one to a line, with the kinds of operands each takes.

A line is `kinds : expression`. Kinds name the operands `{0}`, `{1}`... one letter each: `b` bool,
`i` integer, `f` float, `c` complex, `r` real (b i f), `n` number (i f c), `x` float or complex,
`a` anything, `A` an array of at least one axis, `M` a matrix of numbers, `I` an array of numbers,
`w` an array of at least one axis to write to. Words in braces are chosen when the program is made
(`CHOICES`).

Invariants: EXACT lines give NumPy's bits for real operands; ROUNDED ones are within a few ulp;
SUMS differ by the order in which they add or multiply.
Not here: how lines become random programs, how results are compared (tests/differential).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import ufunc_lines

EXACT = """
aa: np.add({0}, {1})
aa: {0} * {1}
rr: np.maximum({0}, {1})
rr: np.minimum({0}, {1})
rr: np.fmax({0}, {1})
rr: np.fmin({0}, {1})
nn: {0} - {1}
nn: {0} / {1}
rr: {0} // {1}
rr: np.remainder({0}, {1})
rr: np.fmod({0}, {1})
rr: np.divmod({0}, {1})[0]
rr: np.divmod({0}, {1})[1]
n: -{0}
n: np.positive({0})
a: np.absolute({0})
f: np.fabs({0})
n: np.sign({0})
n: np.square({0})
f: np.reciprocal({0})
ff: np.heaviside({0}, {1})
ii: np.gcd({0}, {1})
ii: np.lcm({0}, {1})
aa: {0} == {1}
aa: {0} != {1}
rr: {0} < {1}
rr: {0} <= {1}
rr: {0} > {1}
rr: np.greater_equal({0}, {1})
aa: np.logical_and({0}, {1})
aa: np.logical_or({0}, {1})
aa: np.logical_xor({0}, {1})
a: np.logical_not({0})
a: np.isnan({0})
a: np.isinf({0})
a: np.isfinite({0})
ii: {0} & {1}
ii: {0} | {1}
ii: np.bitwise_xor({0}, {1})
bb: {0} ^ {1}
b: ~{0}
i: np.invert({0})
ii: {0} << ({1} % 5).astype({0}.dtype)
ii: np.right_shift({0}, ({1} % 5).astype({0}.dtype))
i: np.bitwise_count({0})
f: np.floor({0})
f: np.ceil({0})
f: np.trunc({0})
f: np.rint({0})
f: np.fix({0})
f: np.modf({0})[0]
f: np.modf({0})[1]
f: np.frexp({0})[0]
f: np.frexp({0})[1]
fi: np.ldexp({0}, ({1} % 7).astype(np.int32))
ff: np.nextafter({0}, {1})
f: np.spacing({0})
ff: np.copysign({0}, {1})
f: np.signbit({0})
f: np.sqrt({0})
x: np.conj({0})
c: {0}.real
c: np.imag({0})
i: {0} ** 2
f: {0} ** 2
r: {0} * {number}
r: {0} + {number}
n: {number} - {0}
r: {0} > {number}
r: np.clip({0}, 1, 3)
rrr: np.clip({0}, {1}, {2})
baa: np.where({0}, {1}, {2})
ba: np.where({0}, {1}, {number})
ba: np.where({0}, {number}, {1})
bra: np.select([{0}, {1} > 1], [{1}, {2}], 0)
f: np.nan_to_num({0})
f: np.round({0})
ff: np.isclose({0}, {1})
aa: np.array_equal({0}, {1})
r: np.isposinf({0})
A: np.sum({0} != 0, axis={axes}, keepdims={flag})
A: np.count_nonzero({0}, axis={axes})
A: np.any({0}, axis={axes}, keepdims={flag})
A: np.all({0}, axis={axes})
Ab: np.any({0}, where={1})
R: np.max({0}, axis={axes}, initial={integer}, keepdims={flag})
R: np.min({0}, axis={axis}, initial={integer})
R: {0}.max(axis={axes}, initial=0)
R: np.max({0}, axis={axis})
R: np.min({0})
R: np.argmax({0}, axis={axis})
R: np.argmin({0}, axis={axis}, keepdims={flag})
R: np.argmax({0})
R: np.ptp({0}, axis={axis})
Rb: np.max({0}, where={1}, initial=1)
I: np.sum({0}, axis={axes}, keepdims={flag})
I: np.prod({0}, axis={axis})
I: np.sum({0}, initial={integer})
A: np.transpose({0})
A: {0}.T
A: np.transpose({0}, {permutation})
A: {0}.reshape(-1)
A: {0}.ravel()
A: np.reshape({0}, (-1, {0}.shape[-1]))
A: np.reshape({0}, ({0}.shape[-1], -1))
A: {0}.reshape({0}.shape[::-1])
A: np.reshape({0}, -1, order="F")
A: np.moveaxis({0}, {axis}, {axis})
A: np.swapaxes({0}, {axis}, {axis})
A: np.expand_dims({0}, {axis})
A: {0}[None]
A: {0}[..., None]
A: np.squeeze({0})
A: np.flip({0}, {axis})
A: np.flip({0})
A: {0}[::-1]
A: {0}[1:]
A: {0}[:-1]
A: {0}[..., ::2]
A: {0}[..., ::-2]
A: {0}[1:-1]
A: {0}[-1:]
A: {0}[:{small}]
A: {0}[0]
A: {0}[-1]
A: {0}[..., 0]
A: {0}[{small}:, ...]
A: np.roll({0}, {integer}, axis={axis})
A: np.roll({0}, {integer})
A: np.tile({0}, 2)
A: np.tile({0}, (2, 1))
A: np.repeat({0}, 2, axis={axis})
A: np.repeat({0}, {small})
A: np.concatenate([{0}, {0}], axis={axis})
AA: np.concatenate([{0}, {1}], axis={axis})
AA: np.concatenate([{0}, {1}], axis=None)
AA: np.stack([{0}, {1}])
AA: np.stack([{0}, {1}], axis=-1)
AA: np.vstack([{0}, {1}])
AA: np.hstack([{0}, {1}])
A: np.split({0}, [1, 2], axis={axis})[1]
A: np.array_split({0}, 2)[0]
A: np.array_split({0}, 3, axis={axis})[2]
A: np.pad({0}, 1)
A: np.pad({0}, {small}, constant_values=1)
A: np.pad({0}, 1, mode="edge")
A: np.pad({0}, 1, mode="reflect")
A: np.pad({0}, 2, mode="wrap")
A: np.pad({0}, 2, mode="symmetric")
a: np.broadcast_to({0}, (2,) + {0}.shape)
AA: np.broadcast_arrays({0}, {1})[0]
A: np.take({0}, [0, -1, 0], axis={axis}) if {0}.size else {0}
A: np.take({0}, [5, -7, 1], axis={axis}, mode="wrap") if {0}.size else {0}
A: np.take({0}, [5, -7, 1], mode="clip") if {0}.size else {0}
A: {0}[np.array([0, -1])]
A: {0}[..., [-1, 0]]
Ai: {0}[{1} % len({0})]
A: {0}[np.arange(len({0}))[::-1]]
R: np.take_along_axis({0}, np.argmax({0}, axis=-1)[..., None], -1)
A: np.diff({0}[..., 1:] == {0}[..., :-1], axis={axis})
N: np.diff({0}, axis={axis})
A: np.tril({0})
A: np.triu({0}, 1)
A: np.diagonal({0})
A: np.diagonal({0}, {integer}).copy()
M: np.einsum("ij->ji", {0})
M: np.einsum("ii->i", {0}[: min({0}.shape), : min({0}.shape)])
A: np.diag({0}).copy()
R: np.sort({0}, axis={axis})
R: np.argsort({0}, axis={axis}, kind="stable")
RR: np.searchsorted(np.sort({0}, axis=None), {1}, side="right")
R: np.histogram({0}, 4, range=(-3, 5))[0]
A: np.rot90({0})
A: np.copy({0})
a: {0}.astype({dtype})
a: {0}.astype(bool)
a: {0}.astype({0}.dtype)
A: np.zeros({0}.shape)
A: np.zeros_like({0})
A: np.ones_like({0}, dtype={dtype})
A: np.full({0}.shape, 7)
A: np.full_like({0}, 3)
A: np.arange({0}.shape[0])
A: np.arange(1, {0}.size, 2)
A: np.arange({0}.shape[-1], dtype=np.float32)
A: np.eye({0}.shape[0])
A: np.eye({0}.shape[0], {0}.shape[-1], 1)
A: np.tri({0}.shape[0])
A: np.indices({0}.shape)[0]
AA: np.meshgrid({0}.ravel()[:3], {1}.ravel()[:4])[0]
A: {0}.shape[0] * 2
r: np.asarray({0}, dtype=np.float64)
r: {0} / 2
r: {0} * 1j
rr: np.array([{0}, {1}])
f: np.round({0}, 2)
A: np.linspace(0, 1, {0}.shape[0])
i: np.sqrt({0})
"""

ROUNDED = """
x: np.exp({0})
f: np.exp2({0})
f: np.expm1({0})
x: np.log({0})
f: np.log2(np.abs({0}))
f: np.log10({0})
f: np.log1p({0})
c: np.sqrt({0})
f: np.cbrt({0})
ff: np.power(np.abs({0}), {1})
rr: np.float_power({0}, 2)
ii: np.power({0}, np.abs({1}) % 5)
f: {0} ** 3
f: {0} ** 0.5
f: {0} ** -1
ff: np.hypot({0}, {1})
ff: np.logaddexp({0}, {1})
ff: np.logaddexp2({0}, {1})
x: np.sin({0})
x: np.cos({0})
f: np.tan({0})
f: np.arcsin({0})
f: np.arccos({0})
f: np.arctan({0})
ff: np.arctan2({0}, {1})
f: np.sinh({0})
f: np.cosh({0})
x: np.tanh({0})
f: np.arcsinh({0})
f: np.arccosh({0})
f: np.arctanh({0})
i: np.exp({0} % 5)
i: np.sin({0})
c: np.abs({0})
c: {0} * {0}
c: np.reciprocal({0})
c: np.angle({0})
"""

SUMS = """
R: np.sum({0}, axis={axes}, keepdims={flag})
R: np.sum({0})
R: {0}.sum(axis=0)
R: np.sum({0}, dtype=np.float64, axis={axis})
Nb: np.sum({0}, where={1})
N: np.sum({0}, axis={axes}, initial=2)
N: np.prod({0}, axis={axes})
N: np.mean({0}, axis={axes}, keepdims={flag})
N: {0}.mean()
Nb: np.mean({0}, where={1})
R: np.var({0}, axis={axes})
R: np.std({0}, axis={axis}, keepdims={flag})
R: np.var({0}, ddof=1)
NN: {0} @ {1}
NN: {0} @ {1}.T
NN: np.dot({0}, {1})
NN: np.matmul({0}, {1})
NN: np.inner({0}, {1})
NN: np.vdot({0}, {1})
NN: np.outer({0}, {1})
NN: np.tensordot({0}, {1}, axes=1)
NN: np.tensordot({0}, {1}, axes=([0], [0]))
MM: np.einsum("ij,ij->i", {0}, {1})
MM: np.einsum("ij,kj->ik", {0}, {1})
MM: np.einsum("ij,ij", {0}, {1})
M: np.einsum("ij->j", {0})
N: np.einsum("...i->...", {0})
NN: np.einsum("...i,...i->...", {0}, {1})
M: np.trace({0})
R: np.linalg.norm({0})
N: np.average({0}, axis=0)
"""

WRITES = """
wa: {0}[...] = {1}
w: {0}[1:] = {0}[:-1]
w: {0}[...] = {0}[::-1]
wa: {0} += {1}
wa: {0} *= {1}
w: {0}[::2] += 1
w: {0}[..., 0] = 1
w: {0}[{0} != {0}] = 0
w: {0}[{0} == 0] = 1
wa: {0}[{0} != 0] *= 2
w: {0}[np.array([0, 0, -1])] += 1
w: {0}[[0, -1]] = 2
w: {0}.fill(1)
wa: np.copyto({0}, {1})
wa: np.add({0}, {1}, out={0})
w: np.multiply({0}, 2, out={0}[...])
w: {0}[..., ::-1] *= 2
"""

DTYPES = (
    "np.int8", "np.int16", "np.int32", "np.int64", "np.uint8", "np.uint16", "np.uint32",
    "np.uint64", "np.float16", "np.float32", "np.float64", "np.complex64", "np.complex128",
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One expression (or statement, for noise "write") and the kinds of its operands."""

    text: str
    kinds: str
    noise: str


def lines() -> list[Line]:
    """The whole catalogue."""
    exact, rounded = EXACT + ufunc_lines.EXACT, ROUNDED + ufunc_lines.ROUNDED
    sums, writes = SUMS + ufunc_lines.SUMS, WRITES + ufunc_lines.WRITES
    return lines_of({"exact": exact, "rounded": rounded, "sum": sums, "write": writes})


def lines_of(sections: Mapping[str, str]) -> list[Line]:
    """The lines of sections of text, each named by its noise."""
    return [
        Line(text, kinds.strip(), noise)
        for noise, section in sections.items()
        for kinds, text in (row.split(": ", 1) for row in section.strip().split("\n"))
    ]


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0


def _writeable(value: Any) -> bool:
    with warnings.catch_warnings():  # NumPy warns where broadcast_arrays made it
        warnings.simplefilter("ignore")
        return bool(value.flags.writeable)


def kind_of(value: Any) -> str:
    """b, i, f or c."""
    kind = np.asarray(value).dtype.kind
    return {"u": "i", "V": "f"}.get(kind, kind)


KINDS: Mapping[str, Callable[[Any], bool]] = {
    "a": lambda v: True,
    "b": lambda v: kind_of(v) == "b",
    "i": lambda v: kind_of(v) == "i",
    "f": lambda v: kind_of(v) == "f",
    "c": lambda v: kind_of(v) == "c",
    "r": lambda v: kind_of(v) in "bif",
    "n": lambda v: kind_of(v) in "ifc",
    "x": lambda v: kind_of(v) in "fc",
    "A": _is_array,
    "R": lambda v: _is_array(v) and kind_of(v) in "if",
    "N": lambda v: _is_array(v) and kind_of(v) in "ifc",
    "I": lambda v: _is_array(v) and kind_of(v) in "bi",
    "M": lambda v: _is_array(v) and v.ndim == 2 and kind_of(v) in "ifc",
    "w": lambda v: _is_array(v) and 0 not in v.strides and _writeable(v),
}

CHOICES: Mapping[str, Callable[[np.random.Generator, Any], str]] = {
    "axis": lambda rng, v: str(rng.integers(-np.ndim(v), np.ndim(v))),
    "axes": lambda rng, v: str(rng.choice(["None", str(rng.integers(np.ndim(v))), _pair(rng, v)])),
    "permutation": lambda rng, v: str(tuple(int(i) for i in rng.permutation(np.ndim(v)))),
    "flag": lambda rng, v: str(rng.choice(["True", "False"])),
    "integer": lambda rng, v: str(rng.integers(-3, 6)),
    "small": lambda rng, v: str(rng.integers(0, 4)),
    "number": lambda rng, v: str(rng.choice(["2", "0", "1", "-1", "0.5", "-1.5", "3.0", "True"])),
    "dtype": lambda rng, v: str(rng.choice(DTYPES)),
}


def _pair(rng: np.random.Generator, value: Any) -> str:
    axes = rng.permutation(np.ndim(value))[:2]
    return str(tuple(int(axis) for axis in axes))
