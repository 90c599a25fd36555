"""Families of functions that few programs call: named here, loaded by the first call of one.

A first call of any program loads the families of dispatch.py; these cost nothing until then.

Invariants: FUNCTIONS of the module that a family is named after holds exactly the functions named
here; a test looks.
Not here: the handlers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..loading import load
from ..tracing.state import running

# module of NumPy -> family -> its functions
NAMED: Mapping[str, Mapping[str, str]] = {
    "numpy": {
        "interpolation": "interp unwrap",
        "membership": "isin",
        "grids": "histogram2d histogramdd",
        "index_arrays": "choose ix_ ravel_multi_index unravel_index diag_indices diag_indices_from "
                        "tril_indices tril_indices_from triu_indices triu_indices_from",
        "windows": "hanning hamming blackman bartlett kaiser i0",
        "polynomials": "polyadd polysub polyder polyint poly polyfit",
        "bits": "packbits unpackbits",
        "placing": "put place putmask fill_diagonal",
        "known_only": "unique unique_all unique_counts unique_inverse unique_values union1d "
                      "intersect1d setdiff1d setxor1d argwhere flatnonzero trim_zeros polymul "
                      "polydiv extract compress",
        "forms": "dsplit row_stack require asarray_chkfinite real_if_close array_equiv isfortran "
                 "ndenumerate",
        "type_questions": "promote_types issubdtype isdtype typename common_type mintypecode "
                          "isscalar iterable",
        "nan_order": "nanmedian nanpercentile nanquantile",
    },
    "numpy.linalg": {
        "decompositions": "cholesky eigh eigvalsh eig eigvals svd svdvals qr",
        "solving": "solve inv det slogdet lstsq cond matrix_rank pinv tensorinv tensorsolve",
        "norms": "norm vector_norm matrix_norm matrix_power",
    },
    "numpy.fft": {
        "fourier": "fft ifft rfft irfft hfft ihfft fftn ifftn rfftn irfftn fft2 ifft2 rfft2 irfft2 "
                   "fftfreq rfftfreq fftshift ifftshift",
    },
}  # fmt: skip

_FAMILY: Mapping[tuple[str, str], str] = {
    (module, name): family
    for module, families in NAMED.items()
    for family, names in families.items()
    for name in names.split()
}


def handler_of(function: Any) -> Callable[..., Any] | None:
    """The handler of a function named here."""
    module, name = getattr(function, "__module__", None), getattr(function, "__name__", "")
    family = _FAMILY.get((module or "", name))
    if family is None or getattr(sys.modules.get(module or ""), name, None) is not function:
        return None
    found: Callable[..., Any] | None = load(f"numpy.{family}").FUNCTIONS.get(function)
    return found


def _choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """ndarray.choose"""
    return running().dispatch.function(np.choose, (a, choices, out, mode), {})


def _compress(a: Any, condition: Any, axis: Any = None, out: Any = None) -> Any:
    """ndarray.compress"""
    return running().dispatch.function(np.compress, (condition, a, axis, out), {})


def _put(a: Any, indices: Any, values: Any, mode: str = "raise") -> Any:
    """ndarray.put"""
    return running().dispatch.function(np.put, (a, indices, values, mode), {})


METHODS: Mapping[str, Callable[..., Any]] = {
    "choose": _choose, "compress": _compress, "put": _put,
}  # fmt: skip
