"""A compiled function that other processes import by name.

Not here: who calls it (tests/interop/test_callers.py).
"""

from __future__ import annotations

from typing import Any

import tracemill as tm


@tm.jit
def standardised(x: Any) -> Any:
    """With mean zero and deviation one."""
    return (x - x.mean()) / x.std()
