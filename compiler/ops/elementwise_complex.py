"""Complex numbers and their parts.

The cotangent of z = x + iy is dL/dx + i dL/dy, see record.py.
Not here: arithmetic on them (elementwise_arithmetic, math/complex_arithmetic).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..types import C64, C128, F32, F64
from .definition import Facts, OpDef
from .math.complex_arithmetic import conj_body
from .record import literal, record
from .scalar import complex_, imag, real
from .signature import loops
from .tangents import linear

Ct = Sequence[Any]


def _complex_of_parts(re: Any, im: Any) -> Any:
    made = np.empty(np.broadcast(re, im).shape, np.result_type(re, np.complex64))
    made.real, made.imag = re, im
    return made[()]


def _conj_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    return [emit.conj(cts[0])]


def _real_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    return [emit.complex(cts[0], literal(emit, cts[0], 0))]


def _imag_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    return [emit.complex(literal(emit, cts[0], 0), cts[0])]


def _complex_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    return [emit.real(cts[0]), emit.imag(cts[0])]


_PARTS = loops((C64,), result=F32) + loops((C128,), result=F64)
_PAIRS = loops((F32, F32), result=C64) + loops((F64, F64), result=C128)

OPS: tuple[OpDef, ...] = (
    record("conj", np.conjugate, conj_body, "The complex conjugate; a real operand stays.",
           gradient=_conj_gradient, tangent=linear(), facts=Facts(involution=True)),
    record("real", np.real, real, "The real part of a complex operand.",
           taken=_PARTS, gradient=_real_gradient, tangent=linear()),
    record("imag", np.imag, imag, "The imaginary part of a complex operand.",
           taken=_PARTS, gradient=_imag_gradient, tangent=linear()),
    record("complex", _complex_of_parts, complex_,
           "The complex number of a real and an imaginary part.",
           taken=_PAIRS, gradient=_complex_gradient, tangent=linear()),
)  # fmt: skip
