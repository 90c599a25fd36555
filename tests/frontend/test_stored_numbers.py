"""Numbers known while tracing that are stored in elements: NumPy's values and NumPy's refusals.

The kind of value decides: NumPy makes elements of Python numbers and of what lists hold one by
one, so a NaN is no integer; it casts arrays, and its own scalars where it casts those.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = [
    pytest.mark.cpu,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning"),
]

NAN, INF = float("nan"), float("inf")
NUMBERS: dict[str, Any] = {
    "nan": NAN,
    "inf": -INF,
    "large": 1e300,
    "fraction": 2.75,
    "complex": 1j,
    "int": 10**30,
    "f8 nan": np.float64(NAN),
    "f4 inf": np.float32(INF),
    "f8 large": np.float64(1e300),
    "0-d nan": np.array(NAN),
    "0-d inf": np.array(INF, np.float32),
}


def item(x: Any, value: Any) -> Any:
    """One element."""
    x[0] = value
    return x


def place(x: Any, value: Any) -> Any:
    """One element, at a place known at run time."""
    x[x.argmax()] = value
    return x


def part(x: Any, value: Any) -> Any:
    """A slice."""
    x[1:] = value
    return x


def mask(x: Any, value: Any) -> Any:
    """Elements selected by a mask."""
    x[x > 0] = value
    return x


def fancy(x: Any, value: Any) -> Any:
    """Elements selected by an array of indices."""
    x[np.array([1])] = value
    return x


def fill(x: Any, value: Any) -> Any:
    """All elements."""
    x.fill(value)
    return x


def put(x: Any, value: Any) -> Any:
    """np.put"""
    np.put(x, [1], value)
    return x


def copyto(x: Any, value: Any) -> Any:
    """np.copyto by its default rule."""
    np.copyto(x, value)
    return x


def cast_to(x: Any, value: Any) -> Any:
    """np.copyto that casts whatever comes."""
    np.copyto(x, value, casting="unsafe")
    return x


def full(x: Any, value: Any) -> Any:
    """np.full, which casts."""
    return np.full(3, value, x.dtype) + x


def full_like(x: Any, value: Any) -> Any:
    """np.full_like"""
    return np.full_like(x, value)


def array(x: Any, value: Any) -> Any:
    """np.array of one number."""
    return np.array(value, x.dtype) + x


def listed(x: Any, value: Any) -> Any:
    """np.array of a list."""
    return np.array([[1, value, 0]], x.dtype) + x


def from_list(x: Any, value: Any) -> Any:
    """A list assigned to a slice."""
    x[:2] = [1, value]
    return x


def mixed(x: Any, value: Any) -> Any:
    """A list that holds traced values beside the number."""
    x[:2] = [x[1], value]
    return x


def ours_and_numpys(f: Callable[..., Any], x: Any, value: Any) -> None:
    """The same result, or an error of NumPy's class with a code and the line."""

    def known(x: Any) -> Any:
        return f(x, value)

    try:
        expected = known(x.copy())
    except (ValueError, TypeError, OverflowError) as problem:
        kinds = (ValueError, TypeError, OverflowError)
        kind = next(k for k in kinds if isinstance(problem, k))
        with pytest.raises(kind, match=r"\[TM2\d\d\] at .*test_stored_numbers") as caught:
            tm.jit(known)(x.copy())
        assert not any(isinstance(caught.value, k) for k in kinds if k is not kind)
        return
    found = tm.jit(known)(x.copy())
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


WAYS = (
    item, place, part, mask, fancy, fill, put, copyto, cast_to, full, full_like, array, listed,
    from_list, mixed,
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["i8", "u1", "i2", "f4"])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_stored_or_refused_as_numpy_does(name: str, dtype: str) -> None:
    for way in WAYS:
        if name == "int" and (dtype == "f4" or way is mixed):
            continue  # NumPy makes an object array first
        ours_and_numpys(way, np.arange(3).astype(dtype), NUMBERS[name])


def test_the_message_says_the_number_and_the_dtype() -> None:
    @tm.jit
    def large(x: Any) -> None:
        x[0] = -1e300

    @tm.jit
    def none(x: Any) -> None:
        x[0] = NAN

    with pytest.raises(OverflowError, match=r"Python float -1e\+300 out of bounds for int32"):
        large(np.arange(3, dtype=np.int32))
    with pytest.raises(ValueError, match="cannot convert float NaN to integer, got one for uint8"):
        none(np.arange(3, dtype=np.uint8))
