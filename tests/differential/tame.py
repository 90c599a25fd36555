"""Which steps of a random program say nothing about a compiler, each with its reason.

Where C, the order of a sum or another library's rules decide the result, NumPy's is one of
several right ones.

Not here: how far results may be apart (judge.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from numpy_lines import kind_of

from .steps import BF16, Step

_PRODUCT = re.compile(r"@|dot\(|matmul|inner\(")
_ARITHMETIC = re.compile(r"[*/]|square|absolute|sum|prod|1j|diff|reciprocal|sign")


def is_complex_arithmetic(step: Step, operands: Sequence[Any]) -> bool:
    """Whether complex numbers are computed with, not only moved or compared."""
    moves = step.noise == "exact" and not _ARITHMETIC.search(step.text)
    return not moves and any(kind_of(o) == "c" for o in operands)


def is_laid_out_by_numpy(step: Step, operands: Sequence[Any]) -> bool:
    """Whether it is up to the memory order NumPy chose for a result if this is a view."""
    first = operands[0]
    while isinstance(first, np.ndarray) and isinstance(first.base, np.ndarray):
        first = first.base
    reshapes = "reshape" in step.text or "ravel" in step.text
    return reshapes and isinstance(first, np.ndarray) and not first.flags.c_contiguous


def is_tame(step: Step, operands: Sequence[Any]) -> bool:
    """Whether the C language and the order of sums leave the result alone."""
    arrays = [np.asarray(o) for o in operands]
    if re.search(r"\b(tm|also)\.", step.text) and not all(a.ndim for a in arrays):
        return False  # whether an array of no axes stays one is another matter for loops
    if ".view(" in step.text and any(np.isnan(a).any() for a in arrays):
        return False  # the bits of a NaN are nobody's
    if step.writes or step.noise == "exact" and re.search(r"(astype\(|dtype=)np\.", step.text):
        return _casts_tame(step, arrays)
    if is_complex_arithmetic(step, arrays) and not all(np.isfinite(x).all() for x in arrays):
        return False  # C leaves open which part becomes NaN
    if "frexp" in step.text:
        return bool(np.isfinite(arrays[0]).all())  # C leaves the exponent open
    if "np.sign(" in step.text and arrays[0].dtype == BF16:
        return bool((arrays[0] != 0).all())  # ml_dtypes keeps the sign of a zero, NumPy does not
    if "signbit" in step.text or "copysign" in step.text:
        return not any(bool(np.isnan(a).any()) for a in arrays)  # the sign of NaN is nobody's
    if _has_no_common_dtype(step, arrays) or _is_unordered(step, arrays):
        return False
    if step.noise != "sum":
        return True
    finite = all(np.isfinite(a).all() for a in arrays)
    if "einsum" in step.text and not finite:
        return False  # it takes factors out of sums, infinite ones too
    if re.search(r"np\.(convolve|correlate)", step.text) and not finite:
        return False  # multiplied by the zeros around the other array, which NumPy leaves out
    if _PRODUCT.search(step.text) and not finite and any((a == 0).any() for a in arrays):
        return False  # BLAS may leave a factor of zero out, of NaN too
    if re.search(r"np\.(linalg|fft)\.", step.text):
        if not finite or any(a.dtype == BF16 for a in arrays):
            return False  # a library's matter; it takes bfloat16 for float64
    for array in arrays:
        if kind_of(array) == "i" and (np.abs(array.astype(np.float64)) > 2.0**40).any():
            return False  # as floats they lose digits, which ones depends on the order
        if kind_of(array) in "fc":
            bits = np.finfo(array.dtype).maxexp if array.dtype != BF16 else 128
            with np.errstate(all="ignore"):
                size = np.abs(array).astype(np.float64)
                size = size[np.isfinite(size)]
                high = 2.0 ** (2 if "prod" in step.text else bits // 4)
                if (size > high).any() or ((size < 1 / high) & (size > 0)).any():
                    return False
                deviation = "var" in step.text or "std" in step.text
                if array.itemsize == 2 and (array.size > 64 or deviation):
                    return False  # NumPy rounds after each: always the same way, small ones go
                if "prod" in step.text and array.size > bits // 2:
                    return False
    return True


def _has_no_common_dtype(step: Step, arrays: Sequence[np.ndarray[Any, Any]]) -> bool:
    """Whether NumPy computes with Python objects, as it does for bfloat16 and wide integers."""
    if not any(word in step.text for word in ("dot(", "inner(", "searchsorted(")):
        return False
    try:
        np.result_type(*arrays)
    except TypeError:
        return True
    return False


def _is_unordered(step: Step, arrays: Sequence[np.ndarray[Any, Any]]) -> bool:
    """Whether ml_dtypes sorts NaN, which it leaves anywhere."""
    if not re.search(r"sort\(|top_k\(|partition\(", step.text):
        return False
    return any(a.dtype == BF16 and np.isnan(a.astype(np.float32)).any() for a in arrays)


def _casts_tame(step: Step, arrays: Sequence[np.ndarray[Any, Any]]) -> bool:
    """Floats that become integers must fit."""
    if step.writes:
        target = arrays[0].dtype
        return all(np.can_cast(a.dtype, target, "same_kind") for a in arrays[1:])
    integers = [name for name in ("int8", "int16", "int32", "int64") if name in step.text]
    if not integers or kind_of(arrays[0]) not in "fc":
        return True
    with np.errstate(all="ignore"):
        real = arrays[0].real.astype(np.float64)
        low = 0 if "uint" in step.text else -127
        return bool(np.isfinite(real).all() and (real >= low).all() and (real < 127).all())
