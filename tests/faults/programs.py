"""Small programs, each of a kind that compilers of array programs have got wrong.

A row is `name | arrays | statements`: the statements compute from the arrays and end with an
expression; `;` stands between them. Arrays are written `letter = dtype[numbers]`, rows of a matrix
apart by `/`.

Not here: what must come out: NumPy says that (test_programs.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

TABLE = """
unsigned meets narrower signed | a = u4[4294967295, 7]; b = i1[-3, 100] | a + b
unsigned beside a plain int | a = u8[1700000000987654321, 5] | c = a + np.uint64(9); (c >= a + 10, c == a + 9, a * 3 - 1)
large plain ints and unsigned | a = u8[123456, 9] | (10**14 + a) * 100
plain floats stay weak | a = f4[1, 2.5, -3] | (a - 1.0) * (0.25 + 3.0) / 7.0
every step wraps before a cast | a = u1[200, 90, 255] | (a + a + a * a).astype(np.int32)
absolute and negation of bytes | a = u1[190, 201, 3] | np.concatenate([-np.abs(a), a]).sum()
smallest signed byte | a = i1[-128, 127, 1] | (np.abs(a), -a, a // np.int8(-1), np.sign(a))
any is a bool, not a number | a = u1[0, 3] | np.any(a) * 150 + 100
comparison bytes are zero or one | a = i8[0, 1, 2, 3] | m = a < 2; (m.view(np.uint8), m.astype(np.int64).sum(), m + m, m * 3)
negative power of ints | a = i8[1, 2, 5] | a ** -1
negative power known late | a = i8[3, 2]; b = i8[2, -1] | a ** b
unsigned times a negative int | a = u4[0, 1, 2] | a * -2
int too large for the array | a = i1[1, 2] | a + 1000
int too large for any array | a = f8[1, 2] | a.astype(np.int64) + 2**70
true division of bytes | a = u1[15, 255] | (a / 100, a / 255, a // 7, a % 7)
negation of wide ints | a = i8[2147483647, 4294967295, 9223372036854775807, -9223372036854775808] | (-a, ~a, abs(a))
double asked for is double | a = f4[1, 2] | (np.ones(3, dtype=np.float64) + 0, a.astype(np.float64), np.add(a, a, dtype=np.float64))
bounds of clip beyond the dtype | a = i1[-128, 5, 127] | np.clip(a, -5000, 5000)
bound of clip beyond float32 | a = f4[1, -2] | np.clip(a, -1e39, 1e39)
half precision keeps its dtype | a = f2[1.5, 60000, 3] | (a * 2, a + np.float16(1), a.sum(), a.mean())
complex of two singles | a = f4[1, 2]; b = c8[1j, 2] | (a * b, a + 1j, b * 2.5, b == a)
int division by zero | a = i8[2, -7, 0, 9] | a // (a * 0)
int remainder by zero | a = i4[9, -5, 31]; b = i4[5, 0, 3] | (a % b, np.fmod(a, b))
least int over minus one | a = i8[-9223372036854775808, 7]; b = i8[-1, -1] | (a // b, a % b)
float division floors like fmod | a = f8[3, 2, 4, 1]; b = f8[0.1, 0.2, 0.4, 0.1] | (a // b, np.floor(a / b), a % b)
float floor division by zero | a = f8[1, -1, 0] | (np.floor_divide(a, 0.0), np.remainder(a, 0.0))
remainders of mixed signs | a = i4[7, -7, 7, -7]; b = i4[3, 3, -3, -3] | (a % b, a // b, np.fmod(a, b), np.divmod(a, b)[1])
wide index arithmetic | a = i8[1600000003] | np.arange(3, 9, dtype=np.int64) * a
powers wrap at sixteen bits | a = i2[250, -251] | (a ** 2, a ** 4, a ** 0)
shifts past the width | a = i4[1, -8, 5]; b = i4[31, 40, 2] | (a << b, a >> b)
argmax finds the first NaN | a = f8[3, nan, 1, nan] | (np.argmax(a), np.argmin(a), np.max(a), np.min(a))
NaN goes through maximum | a = f8[5, nan]; b = f8[nan, 1] | (np.maximum(a, b), np.minimum(b, a), np.fmax(a, b), np.fmin(a, b))
NaN made on the way to argmax | a = f8[-3, 100] | np.argmax(np.log1p(a))
zero over zero | a = f4[0, 1] | z = a * 0; (np.isnan(z / z), np.isinf(a / z), np.exp(a + 100))
least subnormal times infinity | a = f8[5e-324, 1] | (a * np.inf, a / 2, np.nextafter(a * 0, 1))
odd functions of odd values | a = f8[1.5, -1.5, 2.5, nan, -8, 27] | (np.fix(a), np.cbrt(a), np.sign(a), np.heaviside(a, 0.5), np.rint(a))
difference of equal squares | a = f4[0.1, 0.3, 100000000] | b = a + np.float32(0); b ** 2 - a ** 2
zero keeps its sign | a = f8[-0.0, 0.0, -1] | (a * 1, a + 0, a - 0, np.sqrt(a * 0), 1 / a, np.abs(a), -a)
no rewrite touches infinities | a = f8[inf, -inf, nan, 0] | (a - a, a * 0, a / a, 0 / a, a * 1 - a)
argmax of a part with nothing in it | a = f8[1, 2] | np.argmax(a[2:])
max of a part with nothing in it | a = f8[1, 2] | np.max(a[:0])
argmin over no rows | a = f8[1, 2, 3 / 4, 5, 6] | np.argmin(a[:0], axis=1).shape
sums of nothing | a = f8[1, 2 / 3, 4] | (a[:0].sum(), a[:0].sum(axis=0), a[:0].prod(), a[:0].any(), np.sum(a[:0], keepdims=True))
taking from nothing | a = f8[1] | np.take(a[1:], [0])
reducing a number's axes | a = f8[2, 3] | z = a[0, ...]; (np.sum(z, axis=0), np.sum(z, axis=-1), np.max(z, axis=0))
mean over an axis that is not there | a = f8[2, 3] | np.mean(a[0, ...], axis=0)
concatenating nothing | a = f8[1, 2] | np.concatenate([a[:0], a, a[2:]])
backward rows of a cube | a = f8[1, 2, 3 / 4, 5, 6] | c = a[None][:, ::-1, :][..., 0]; (c - 0.25, c.copy() - 0.25)
every second, plus | a = i8[0, 1, 2, 3, 4, 5] | (+a[::2], +a[::-2], -a[1::3])
shifted copy onto itself | a = i8[0, 1, 2, 3, 4] | a[1:] = a[:-1]; a
shifted copy backwards | a = i8[0, 1, 2, 3, 4] | a[:-1] = a[1:]; a
reversal onto itself | a = f8[1, 2, 3, 4] | a[:] = a[::-1]; a
adding the transpose in place | a = i8[1, 5 / 2, 7] | a += a.T; a
dividing by the first row in place | a = f8[4, 2 / 6, 3] | a /= a[0]; a
doubling through repeated rows | a = f8[1, 1 / 2, 2 / 3, 3] | i = np.array([[0, 0]]); a[i] += a[i]; a
writing through gaps | a = i8[1, 2, 3, 4, 5, 6, 7 / 8, 9, 10, 11, 12, 13, 14] | v = a[:, ::3]; v += v; a
column copied to column | a = i8[0, 1, 2 / 3, 4, 5 / 6, 7, 8] | a[:, 0] = a[:, 2]; a
two names, one array | a = i8[10, 20] | b = a; b += 5; c = b[1:]; c *= 2; (a, b is a)
old values read before a write | a = f8[0, 1, 2, 3] | r = a[::-1].copy(); s = a[1:].sum(); a[:] = a * 10; r + a + s
rows swapped | a = f8[1, 2 / 3, 4] | a[[0, 1]] = a[[1, 0]]; a
assigning through a mask | a = f8[1, -2, nan, 4] | a[a < 0] = 0; a[a != a] = -1; a
assigning a mask's own values | a = f8[1, -2, 3, -4] | a[a < 0] *= -1; a
where into an output | a = f8[1, 2, 3] | o = np.zeros(a.shape); np.multiply(a, 2, out=o, where=a > 1); o
take beyond the end | a = i8[0, 1, 2] | np.take(a, 10)
index before the start | a = i8[0, 1, 2] | a[np.array([-1, -4])]
index from the end | a = i8[0, 1, 2, 3, 4] | a[np.array([-1, -5])]
list index past an axis | a = f8[1, 2 / 3, 4] | a[:, [0, 2]]
plain index past an axis | a = f8[1, 2 / 3, 4] | a[5]
constant mask behind an ellipsis | a = i8[0, 1, 2, 3] | (a[..., np.array([False, True, True, False])], a[None, np.array([True, False, False, True])])
two index arrays apart | a = i8[0, 1, 2 / 3, 4, 5] | i = np.array([0, 1]); (a[None][:, i, i], a[None][i * 0, :, i])
clip and wrap modes of take | a = i8[5, 6, 7] | (np.take(a, [-1, 3, 9], mode="clip"), np.take(a, [-4, 3], mode="wrap"))
sums over axes of one | a = i8[3 / 4 / 5] | (a.sum(axis=1), a.prod(axis=1), a.T.sum(axis=0), a.max(axis=1))
extremes over two axes | a = i8[5, 1, 4 / 2, 9, 0] | c = np.stack([a, a + 3]); (c.min(axis=(0, 1)), np.max(c, axis=(-1, 0), initial=5, where=c % 2 == 0))
sums of bools and bytes | a = u1[250, 5, 9] | (a.sum(), (a > 5).sum(), np.sum(a, dtype=np.uint8), a.mean(), np.cumsum(a), np.prod(a > 0))
one element summed into | a = f8[1, 2 / 3, 4] | y = np.zeros(2); y[1] += (a - np.diag(np.diag(a))).sum(); y
neighbours of a running sum | a = f8[1, 1, 1, 1, 1, 1] | c = np.cumsum(a); c[1:] - c[:-1]
running sum backwards | a = i4[1, 2, 3, 4] | (np.cumsum(a[::-1])[::-1], np.cumprod(a, dtype=np.int64))
variance far from zero | a = f8[1000000004, 1000000007, 1000000013, 1000000016] | (a.var(), a.std(ddof=1))
sum of many singles | a = f4[0.1] | b = np.broadcast_to(a[:1], (100000,)); abs(float(b.sum()) / 10000 - 1) < 1e-5
sum of a sparse matrix | a = f8[1e-5] | m = np.zeros((3, 5000)); m[2] = a[0]; (abs(m.sum() - 5000 * a[0]) < 1e-12, abs(m.sum(axis=1)[2] - 5000 * a[0]) < 1e-12)
sines of large arguments | a = f8[1e22, 1152921504606846976, 100000.5] | (np.sin(a), np.cos(a), np.tan(a))
sines of large singles | a = f4[1e10, 3e20, 12345.678] | (np.sin(a), np.cos(a))
logarithm of a sum of nothing likely | a = f8[-inf, -inf] | m = a.max(); m = np.where(np.isfinite(m), m, 0); np.log(np.exp(a - m).sum()) + m
expm1 and log1p near zero | a = f8[1e-20, -1e-12, 1e-5] | (np.expm1(a), np.log1p(a), np.exp(a) - 1)
powers at zero | a = f8[0, 1, 2] | (np.power(a * 0, a), a ** 0, 0.0 ** a)
one value, computed twice | a = f8[100000000.3, 7, 2] | m = a / 3; ((m - m).argmax(), m.sum() == m.sum(), m)
arguments are not folded | a = i8[1, 1]; b = i8[1, 1] | a + b * 0 + b
effects run once | a = f8[0, 1, 2] | y = a + 1; y *= 2; (y.sum(), y.max(), a, y)
folded numbers keep their dtype | a = f4[1, 2] | k = np.float32(2) * np.float32(3); ((a * k).dtype == np.float32, a * k, a * np.float64(2))
a loop grows its type | a = f8[0.5, 0.25] | s = 0; for v in a: s = s + v; s
an outer product in a loop | a = f8[1, 2, 3] | o = np.zeros((3, 3)); for i in range(3): o[i, i:] = a[i] * a[i:]; o
a long chain | a = f8[1, 2] | for _ in range(3000): a = a * 1.0 + 0.0; a
searching in a slice | a = i8[0, 2, 5, 9] | np.searchsorted(a[1:], np.arange(8), side="right")
counting nothing | a = i8[1, 2] | np.bincount(a[:0], minlength=3)
sum of a sparse matrix in columns | a = f8[1e-5] | m = np.zeros((3, 100000), order="F"); m[2] = a.sum(); abs(m.sum(axis=1)[2] - 1) < 1e-12
what is left beside a mean | a = i8[576460752303423488, 576460752303423491, 576460752303423494, 576460752303423497, 576460752303423500, 576460752303423503, 576460752303423506] | m = np.sum(a / a.size); np.sum(a - m)
writing through swapped axes | a = i8[0, 1, 2, 3 / 4, 5, 6, 7] | v = a.reshape(2, 2, -1).swapaxes(0, 2)[::2]; v[...] = v[:, ::-1] + 1; (a, v.shape)
parts exchanged with copies | a = i8[0, 1, 2, 3, 4, 5, 6, 7] | a[2:8:2], a[1:7:2] = a[1:7:2].copy(), a[2:8:2].copy(); a
overlapping parts exchanged without | a = i8[0, 1, 2, 3, 4, 5, 6, 7] | a[2:8], a[:6] = a[:6], a[2:8]; a
two arrays exchanged without copies | a = f8[1, 2]; b = f8[3, 4] | a[:], b[:] = b, a; (a, b)
sorting in place along both axes | a = f8[3, 1 / 2, 4] | a.sort(axis=0); a.T.sort(axis=0); (a, np.argsort(a[:, 0])[::-1])
bytes seen as unsigned | a = i1[1, 2, 3] | v = a.view(np.uint8); v -= 2; (a, v)
the sign bit of singles | a = f4[1.5, -2.5] | v = a.view(np.int32); v ^= np.int32(-2**31); (a, v)
parts of complex numbers | a = c16[1+2j, 3-4j] | a.real[1:] = 7; a.imag *= 2; (a, a.conj().T, abs(a))
differences of bytes wrap | a = u1[1, 2, 250, 4] | (np.diff(a), np.diff(a, prepend=np.uint8(0)), a[1:] - a[:-1])
negative and wide shifts and bits | a = i8[-7, 7, 4611686018427387904] | (a >> 1, a & 255, a | 1, ~a, a // 3, a % -3, np.divmod(a, 4)[0])
a row less its mean, row by row | a = f8[0, 1, 5 / 3, 4, 5] | for row in a: row -= row.mean(); a
new names for old arrays | a = f8[1, 2, 3] | b = a; b = b * 2; a *= 3; (a, b)
flat copies and flat views | a = f8[0, 1 / 2, 3] | r = a.ravel(); r[0] = 9; f = a.flatten(); f[1] = 8; (a, r, f)
triangles and open meshes | a = f8[0, 0, 0 / 0, 0, 0 / 0, 0, 0] | a[np.triu_indices(3, 1)] = 5; a[np.ix_([0, 2], [0])] += 1; np.fill_diagonal(a, 2); a
repeated places added to | a = i8[1, 1, 0, 2] | t = np.zeros(3); np.add.at(t, a % 3, 1.5); t
halves up and down | a = f8[0.5, 1.5, 2.5, -0.5] | (np.round(a), np.trunc(a), np.ceil(a), a.astype(int), np.modf(a), np.ldexp(a, 3), np.frexp(a))
unsigned and signed of 64 bits | a = u8[2, 9223372036854775811]; b = i8[-1, 5] | (a < b, a == b, a + b, np.maximum(a, b))
parts split off are views | a = f8[0, 1, 2, 3, 4, 5, 6] | s = np.split(a, [2, 5]); s[1] *= -1; s[0][...] = s[2].sum(); (a, s)
columns through index arrays | a = f8[0, 1, 2 / 3, 4, 5 / 6, 7, 8] | i = np.array([0, 2]); a[i, :] = a[i[::-1], :] + 1; a[:, [0, 1]] = a[:, [1, 0]]; a
order of memory behind an index array | a = f8[0, 1, 2 / 3, 4, 5] | t = a[:, np.array([1, 0, 1])]; r = t.reshape(-1); r[1] = 99; (t, r, t.ravel("K"))
a star takes rows | a = f8[0, 1 / 2, 3 / 4, 5] | first, *others = a; first += others[0]; others[-1][:] = 0; (a, first, np.stack(others, -1))
steps backwards in place | a = i8[1, 2, 3] | a[1:] = a[1:][::-1]; a[-1:0:-1] += a[:2]; a
outputs that are inputs | a = f8[4, 9] | np.sqrt(a, out=a); np.add(a, 1, out=a[::-1]); b = np.empty_like(a); np.multiply(a, a, b); a.fill(b[0]); (a, b)
reductions into rows of their input | a = f8[0, 1, 2 / 3, 4, 5] | np.cumsum(a, axis=1, out=a); np.sum(a, axis=0, out=a[1]); np.clip(a, 1, 4, out=a); np.matmul(a[:, :2], a[:, :2], out=a[:, 1:]); a
integers in place through every operator | a = i4[1, 2 / 3, 4] | a += 5; a //= 2; a **= 2; a <<= 1; a %= 5; a ^= 3; a
floats into integers in place | a = i4[1, 2] | a += 1.5; a
windows of a row | a = f8[0, 1, 2, 3, 4, 5] | w = np.lib.stride_tricks.sliding_window_view(a, 3); (w.max(axis=1), w @ np.ones(3), w[::2, ::-1])
a part becomes its product | a = f8[1, 2, 3, 4] | a[1:3] = a[1:3] @ np.array([[0.0, 1.0], [1.0, 0.0]]); a[::3] -= np.dot(a, a); a
flags of a new array | a = f8[0, 1, 2 / 3, 4, 5] | b = a * 2; (b.flags.f_contiguous, b.flags.c_contiguous, b.ravel("K"), b.reshape(-1, order="A"), a.T.flatten("A"))
sum of Python over nothing | a = f8[3, 1] | (sum(a), sum(a[:0]), sum(a, 5))
extremes with a beginning | a = i8[0, 1, 2 / 3, 4, 5] | (a.max(initial=9), a.min(where=a > 2, initial=100), np.ptp(a, axis=1), np.average(a, weights=a + 1), np.count_nonzero(a, axis=0))
NaN through square and log | a = f8[2, 0] | np.log(-np.square(a)[:1])
"""


@dataclass(frozen=True)
class Fault:
    """A row of the table."""

    name: str
    arrays: dict[str, np.ndarray[Any, Any]]
    statements: tuple[str, ...]

    def source(self, parameters: list[str]) -> str:
        """A function of some of the arrays; the others are globals."""
        *body, last = self.statements
        rows = [f"def fault({', '.join(parameters)}):", *(f"    {s}" for s in body)]
        return "\n".join([*rows, f"    return {last}\n"])

    def function(self, captured: bool = False) -> tuple[Callable[..., Any], dict[str, Any]]:
        """The function, and the space its captured arrays are in."""
        space: dict[str, Any] = {"np": np}
        if captured:
            space |= {name: array.copy() for name, array in self.arrays.items()}
        parameters = [] if captured else list(self.arrays)
        exec(self.source(parameters), space)
        return space["fault"], space


def _array(text: str) -> np.ndarray[Any, Any]:
    code, _, numbers = text.strip().rstrip("]").partition("[")
    rows = [[_number(n) for n in row.split(",")] for row in numbers.split("/")]
    return np.array(rows if len(rows) > 1 else rows[0], np.dtype(code.strip()))


def _number(text: str) -> Any:
    text = text.strip()
    if "j" in text:
        return complex(text)
    return float(text) if set(text) & set(".enf") else int(text)


def faults() -> list[Fault]:
    """All rows."""
    made = []
    for row in TABLE.strip().split("\n"):
        name, arrays, statements = row.split(" | ", 2)
        pairs = (part.split("=") for part in arrays.split(";"))
        made.append(
            Fault(
                name.strip(),
                {letter.strip(): _array(text) for letter, text in pairs},
                tuple(s.strip() for s in statements.split(";")),
            )
        )
    return made
