"""Programs that others got wrong give NumPy's answers, however their arrays come.

As arguments in any layout, again with other values and sizes through the same compiled function,
and as arrays from outside the function.

Not here: faults whose right answer is not NumPy's (test_beyond_numpy.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from traced import assert_equal, outcome

from .programs import Fault, faults

FAULTS = faults()


def strided(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    wide: np.ndarray[Any, Any] = np.zeros([2 * n for n in array.shape], array.dtype)
    view = wide[(slice(None, None, 2),) * array.ndim]
    view[...] = array
    return view


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "plain": np.copy,
    "reversed": lambda a: np.flip(np.flip(a).copy()),
    "transposed": lambda a: a.T.copy().T,
    "strided": strided,
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "other values": lambda a: np.flip(a).copy(),
    "longer": lambda a: np.concatenate([a, np.flip(a)], axis=-1),
    "one": lambda a: a[..., :1].copy(),
    "empty": lambda a: a[..., :0].copy(),
    "first values": np.copy,
}


# What NumPy's answer is not the only right one for: a row and a way that give another answer.
UNSORTED = "a search in what is not sorted has no defined answer"
MORE_EXACT = "the sum without an axis is nearer to the true one than NumPy's"
ROUNDING = "sums of eight elements or more have an order of their own (docs/numerics.md)"
EXCEPTIONS = {
    **{("searching in a slice", way): UNSORTED
       for way in ("other values", "longer", "captured, other values")},
    ("what is left beside a mean", "longer"): ROUNDING,
    **{("sum of a sparse matrix in columns", way): MORE_EXACT
       for way in ("plain", "reversed", "transposed", "strided", "first values", "other values",
                   "one", "captured", "captured, other values", "first call")},
}  # fmt: skip


def compared(compiled: Callable[..., Any], fault: Fault, way: str, args: list[Any]) -> None:
    """The outcome is NumPy's, or differs where the row is listed as an exception."""
    if (fault.name, way) not in EXCEPTIONS:
        same_outcome(compiled, fault, args)
        return
    with pytest.raises(AssertionError):
        same_outcome(compiled, fault, args)


def same_outcome(compiled: Callable[..., Any], fault: Fault, args: list[Any]) -> None:
    """The compiled call and NumPy's: results or exceptions, and the arguments afterwards."""
    wanted, wanted_args = outcome(fault.function()[0], args)
    got, got_args = outcome(compiled, args)
    assert_alike(got, wanted)
    if not isinstance(wanted, Exception):
        assert_equal(got_args, wanted_args)


def assert_alike(got: Any, wanted: Any) -> None:
    """Two results are equal, or an exception was raised that is one of the wanted class."""
    if isinstance(wanted, Exception):
        public = TypeError if isinstance(wanted, TypeError) else type(wanted)
        assert isinstance(got, public), f"{wanted!r} was expected, got {got!r}"
        return
    if isinstance(got, Exception):
        raise got
    assert_equal(got, wanted)


def test_every_exception_is_of_a_row_and_a_way() -> None:
    ways = {*LAYOUTS, *OTHERS, "first call", "captured", "captured, other values"}
    assert {way for _, way in EXCEPTIONS} <= ways
    assert {name for name, _ in EXCEPTIONS} <= {fault.name for fault in FAULTS}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_arrays_as_arguments_in_every_layout(fault: Fault) -> None:
    compiled = tm.jit(fault.function()[0])
    for way, layout in LAYOUTS.items():
        compared(compiled, fault, way, [layout(array) for array in fault.arrays.values()])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_called_again_with_other_values_and_sizes(fault: Fault) -> None:
    compiled = tm.jit(fault.function()[0])
    compared(compiled, fault, "first call", list(fault.arrays.values()))
    for way, other in OTHERS.items():
        compared(compiled, fault, way, [other(array) for array in fault.arrays.values()])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_arrays_from_outside_the_function(fault: Fault) -> None:
    plain, its_space = fault.function(captured=True)
    function, space = fault.function(captured=True)
    compiled = tm.jit(function)
    for way in ("captured", "captured, other values"):
        wanted, _ = outcome(plain, [])
        if (fault.name, way) in EXCEPTIONS:
            with pytest.raises(AssertionError):
                assert_equal(compiled(), wanted)
        else:
            assert_alike(outcome(compiled, [])[0], wanted)
            for name in fault.arrays:
                assert_equal(space[name], its_space[name])
        for name in fault.arrays:
            flipped = np.flip(its_space[name]).copy()
            its_space[name][...] = space[name][...] = flipped


@pytest.mark.parametrize("values", [(1.0, 2.0, 3.0, 0.5), (2, 3.5, 7, -1.0), (True, 2, 0.5, 4)])
def test_plain_numbers_of_a_call_are_those_of_that_call(values: tuple[Any, ...]) -> None:
    def scaled(x: Any, t: Any) -> Any:
        return np.clip(x * t, -t, t), x - t, np.float32(3) * t

    compiled = tm.jit(scaled)
    for t in values:
        for x in (np.array([1.5, -4], np.float32), 5.0, 3):
            assert_equal(compiled(x, t), scaled(x, t))


def test_the_structure_of_a_result_is_that_of_its_own_call() -> None:
    def either(x: Any, y: Any) -> Any:
        return {"a": x + 1, "b": None} if y is None else [x, (y, x * 2)]

    compiled = tm.jit(either)
    for y in (0, None, 1, None):
        assert_equal(compiled(np.arange(3), y), either(np.arange(3), y))


def test_a_number_from_outside_is_the_number_it_is_now() -> None:
    space: dict[str, Any] = {}
    exec("rate = 10\ndef times(x): return x * rate\n", space)
    compiled = tm.jit(space["times"])
    assert compiled(2) == 20
    space["rate"] = 20
    assert compiled(2) == 40
    assert compiled(np.arange(2)).tolist() == [0, 20]
