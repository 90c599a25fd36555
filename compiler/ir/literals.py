"""The text of attribute values and literals; `parser.py` reads it back, bit for bit.

A float prints as the shortest text that reads back as itself. An array of more than 64 elements,
or with a NaN of unusual bits, prints its bytes: ``bytes"..."`` in base 64.

Invariants: text has no address, counter or hash; reading back gives equal bits.
Not here: nodes and graphs (printer.py).
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from ..dims import Dim, dim_text
from ..types import DType, dtype_of

_LONGEST = 64


def literal_text(value: Any) -> str:
    """The text of an attribute value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Dim):
        return dim_text(value)
    if isinstance(value, float):
        return _float_text(value, str(value))
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, DType):
        return value.name
    if isinstance(value, tuple):
        return f"[{', '.join(map(literal_text, value))}]"
    if isinstance(value, np.ndarray):
        return array_text(value)
    raise TypeError(f"an attribute cannot be {value!r}")


def array_text(array: np.ndarray[Any, Any]) -> str:
    """The text of a constant's array, without its type."""
    if array.size <= _LONGEST and is_plain(array):
        return _nested(array)
    return f'bytes"{base64.b64encode(array.tobytes()).decode()}"'


def is_plain(array: np.ndarray[Any, Any]) -> bool:
    """True where numbers say all there is: no NaN of unusual bits."""
    if array.dtype.kind not in "fcV":
        return True
    flat = np.ravel(array)
    parts = flat.view(flat.real.dtype) if array.dtype.kind == "c" else flat
    usual = np.array(np.nan, parts.dtype).tobytes()
    return all(parts[i].tobytes() == usual for i in np.flatnonzero(np.isnan(parts)))


def number_text(number: Any) -> str:
    """The text of one NumPy scalar."""
    kind = number.dtype.kind
    if kind == "b":
        return "true" if number else "false"
    if kind in "iu":
        return str(int(number))
    if kind == "c":
        return f"complex({number_text(number.real)}, {number_text(number.imag)})"
    if dtype_of(number.dtype) is not None and kind == "V":
        with np.errstate(all="ignore"):
            return number_text(np.float32(number))
    return _float_text(float(number), str(number))


def array_from_literal(value: Any, dtype: DType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The array that text stands for. Raises ValueError where it does not fit the type."""
    if isinstance(value, bytes):
        array = np.frombuffer(value, dtype.numpy).reshape(shape)
    else:
        flat = np.array(_flat(value), object).reshape(-1)
        numbers: Any = flat.astype(np.float64) if dtype.is_float else flat
        if dtype.is_float and dtype.itemsize < 4:
            with np.errstate(all="ignore"):
                numbers = numbers.astype(np.float32)
        with np.errstate(all="ignore"):
            array = np.array(numbers).astype(dtype.numpy).reshape(shape)
    result = np.array(array, order="C")
    result.flags.writeable = False
    return result


def _flat(value: Any) -> list[Any]:
    return [x for item in value for x in _flat(item)] if isinstance(value, tuple) else [value]


def _nested(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 0:
        return number_text(array[()])
    return f"[{', '.join(_nested(array[i]) for i in range(array.shape[0]))}]"


def _float_text(value: float, text: str) -> str:
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return text if "." in text or "e" in text else f"{text}.0"
