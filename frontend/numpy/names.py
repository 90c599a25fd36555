"""Names of functions that are known by name only.

Not here: NumPy's functions and their handlers (dispatch.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

# What `special` has under SciPy's names. It builds on dispatch, which cannot ask it.
SPECIAL = frozenset(
    ("betaln", "digamma", "entr", "erf", "erfc", "erfinv", "expit", "gammaln", "log_expit",
     "log_ndtr", "log_softmax", "logit", "logsumexp", "ndtr", "ndtri", "polygamma", "psi",
     "softmax", "softplus", "xlog1py", "xlogy")
)  # fmt: skip


def is_special(function: Any) -> bool:
    """Whether it is a function of SciPy's that `special` has."""
    parts = (getattr(function, "__module__", None) or "").split(".")
    return parts[:2] == ["scipy", "special"] and function.__name__ in SPECIAL


def ufunc_name(ufunc: np.ufunc) -> str:
    """A ufunc as the user wrote it; those of other libraries do not say where they are from."""
    name = ufunc.__name__
    return f"np.{name}" if getattr(np, name, None) is ufunc else f"the ufunc {name}"
