"""Where extremes are, in arrays that are cut along axes.

Not here: the extremes themselves (cut_functions.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..tracing.state import running
from ..tracing.tensor import fresh, result
from .axes import one_axis
from .cut import Cut, of_whole
from .operands import value_of
from .words import broadcast_to


def place_of(extreme: Callable[..., Any], whole: Callable[..., Any]) -> Callable[..., Any]:
    """np.argmax and np.argmin: the first place along an axis at which the extreme is found.
    extreme: the reduction to it. whole: the same function of arrays that are not cut."""

    def place(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        if out is not None or keepdims is True or (axis is None and a.ndim != 1):
            raise a.size_error()
        trace = running()
        at = 0 if axis is None else one_axis(axis, a.ndim)
        ends = a.axes[at]
        rest = tuple([other for other in range(a.ndim) if other != at])
        cut = tuple([a.axes[other] for other in rest])
        array = fresh(trace, a.whole)
        if ends is None:
            return of_whole(trace, value_of(whole(array, axis=at)), cut)
        best = extreme(a, axis=at, keepdims=True)
        best = fresh(trace, best.whole) if type(best) is Cut else best
        found: Any = array == best
        if array.dtype.kind in "fc":
            found = found | ((array != array) & (best != best))
        mask = a.mask((at,))
        assert mask is not None
        there = fresh(trace, broadcast_to(trace, mask, a.whole.tensor.shape))
        places = np.argmax(found & there, axis=at)
        if ends.start is not None:
            places = places - result(trace, ends.start)
        return of_whole(trace, value_of(places), cut)

    return place
