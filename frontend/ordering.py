"""Functions of order whose results have a size that is given: top_k, unique.

They work inside compiled functions and, compiled by themselves, on plain arrays.

Not here: what NumPy has (np.sort, np.partition, np.median, ...): it is compiled as it stands.
"""

from __future__ import annotations

from typing import Any

from .compiler.kernel.sorting import SELECTED
from .lifted import lifted, read
from .numpy.axes import one_axis, size_argument
from .numpy.distinct import distinct
from .numpy.operands import value_of
from .numpy.sorting import places_along, take_places
from .numpy.words import flip, slice_axis, transpose
from .tracing.state import fail, running
from .tracing.tensor import fresh


@lifted
def top_k(x: Any, k: int, axis: int = -1) -> Any:
    """The k greatest elements along an axis, greatest first, and where they are (int64).

    Of equal elements the first ones count. NaN is greater than everything, as in a sort.
    """
    trace = running()
    value = value_of(read(x))
    place = one_axis(axis, value.tensor.rank)
    count, wanted = value.tensor.shape[place], size_argument(k)
    if isinstance(wanted, int) and wanted < 0:
        raise fail("TM242", f"top_k cannot give {wanted} elements")
    if not trace.sizes.at_least(count, wanted, "top_k needs so many elements"):
        raise fail("TM203", f"top_k cannot give {wanted} of {trace.sizes.hint(count)} elements")
    rank = value.tensor.rank
    last = [*(a for a in range(rank) if a != place), place]
    rows = transpose(trace, value, last)
    if isinstance(wanted, int) and wanted <= SELECTED and not value.tensor.dtype.is_complex:
        best = trace.emit("greatest", rows, size=wanted)
    else:
        # Sorted backwards and read from the end: so equal elements come in their order.
        order = places_along(trace, flip(trace, rows, (rank - 1,)), rank - 1)
        best = slice_axis(trace, flip(trace, order, (rank - 1,)), rank - 1, 0, wanted)
        best = trace.emit("sub", trace.size_value(count - 1), best)
    found = take_places(trace, rows, best)
    back = [last.index(a) for a in range(rank)]
    return tuple([fresh(trace, transpose(trace, part, back)) for part in (found, best)])


@lifted
def unique(
    x: Any,
    size: int,
    *,
    fill_value: Any = None,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Any:
    """np.unique with a result of `size` elements: the distinct ones in order, then `fill_value`
    (by default the least of them). It is an error if there are more.

    The arrays asked for besides are NumPy's, with zeros for what is filled up.
    """
    trace = running()
    length = size_argument(size)
    if isinstance(length, int) and length < 1:
        raise fail("TM242", f"unique needs a size of at least 1, got {length}")
    values, *more = distinct(trace, value_of(read(x)), length, fill_value)
    asked = (return_index, return_inverse, return_counts)
    found = [values, *[part for part, wanted in zip(more, asked) if wanted]]
    made = tuple([fresh(trace, part) for part in found])
    return made if len(made) > 1 else made[0]
