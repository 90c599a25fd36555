"""Python's and NumPy's ways to the memory of an array, powers with a modulus, huge integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill.compiler.errors import error, number_text

pytestmark = pytest.mark.cpu
X = np.arange(5.0)
HUGE = int("9" * 400)
HERE = r"test_python_protocols\.py:\d+"


@pytest.mark.parametrize("way", [memoryview, bytes, bytearray])
@pytest.mark.parametrize("x", [X, np.float64(1.0)], ids=["array", "scalar"])
def test_builtins_that_read_memory_are_refused(way: Callable[[Any], Any], x: Any) -> None:
    with pytest.raises(TypeError, match=rf"TM102\] at .*{HERE}(.|\n)*hint: return the array"):
        tm.jit(lambda x: way(x))(x)


def test_builtins_that_read_memory_take_other_things() -> None:
    assert tm.jit(lambda x: x + len(bytes(3)) + memoryview(b"ab")[1])(1) == 1 + 3 + ord("b")


@pytest.mark.parametrize("name", ["__array_interface__", "__array_struct__", "__dlpack__", "data"])
def test_attributes_that_give_memory_are_refused(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"TM110\] at .*{HERE}(.|\n)*hint: it needs the data"):
        tm.jit(lambda x: getattr(x, name))(X)


@pytest.mark.parametrize(("shape", "code"), [(-1, "TM242"), ((2, -1), "TM242"), (10**30, "TM250")])
def test_shapes_that_no_array_has_are_refused(shape: Any, code: str) -> None:
    with pytest.raises(ValueError, match=rf"{code}\] at .*{HERE}"):
        tm.jit(lambda x: np.zeros(shape) + x)(X)


def test_a_range_longer_than_memory_is_refused() -> None:
    with pytest.raises(ValueError, match=rf"TM250\] at .*{HERE}"):
        tm.jit(lambda x: np.arange(HUGE) + x)(X)


def test_a_power_with_a_modulus_of_an_array_is_refused_as_by_numpy() -> None:
    with pytest.raises(TypeError, match=r"'numpy.ndarray', 'int', 'int'") as expected:
        pow(X, 2, 3)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=rf"TM202\] at .*{HERE}") as caught:
        tm.jit(lambda x: pow(x, 2, 3))(X)
    assert str(expected.value) in str(caught.value)


def test_a_power_with_a_modulus_of_a_size_is_python_s() -> None:
    compiled = tm.jit(lambda x: x * pow(x.shape[0], 2, 3))
    for n in (4, 5, 6):
        np.testing.assert_array_equal(compiled(np.ones(n)), np.ones(n) * pow(n, 2, 3))


@pytest.mark.parametrize("parts", [(0, 2, 3), (2, 0, 3), (2, 3, 0)])
def test_a_power_with_a_modulus_known_at_run_time_is_refused(parts: tuple[int, ...]) -> None:
    with pytest.raises(NotImplementedError, match=rf"TM111\] at .*{HERE}"):
        tm.jit(lambda n: pow(*[part or n for part in parts]))(5)


USES: dict[str, Callable[[Any], Any]] = {
    "index": lambda x: x[HUGE],
    "operand": lambda x: x.astype(int) + HUGE,
    "axis": lambda x: x.sum(axis=-HUGE),
    "shape": lambda x: np.zeros(HUGE),
    "reshape": lambda x: x.reshape(HUGE),
}


@pytest.mark.parametrize("name", USES)
def test_a_huge_integer_is_shortened_in_messages(name: str) -> None:
    with pytest.raises(Exception, match=r"9{12}\.\.\.9{12} \(400 digits\)") as caught:
        tm.jit(USES[name])(X)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", ["index", "operand", "axis"])
def test_an_integer_that_python_does_not_write_out_is_shortened(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "HUGE", 10**5000)
    with pytest.raises(Exception, match=r"10{11}\.\.\.0{12} \(5001 digits\)"):
        tm.jit(USES[name])(X)


def test_a_slice_bound_beyond_every_axis_is_its_end() -> None:
    def f(x: Any) -> Any:
        return x[:HUGE], x[-HUGE:], x[HUGE:], x[HUGE::-1]

    for n in (5, 6):
        for found, expected in zip(tm.jit(f)(np.arange(n)), f(np.arange(n)), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (-(10**39), "-1" + "0" * 39),
        (10**40, "100000000000...000000000000 (41 digits)"),
        (10**40 - 1, "9" * 40),
        (-(10**41) + 1, "-999999999999...999999999999 (41 digits)"),
    ],
)
def test_the_middle_of_a_number_is_left_out(number: int, text: str) -> None:
    assert number_text(number) == text
    assert error("TM230", f"index {number}").summary == f"index {text}"


def test_a_scalar_index_that_is_no_c_long_is_an_overflow() -> None:
    """An array of such indices wraps round, here as in NumPy."""
    compiled = tm.jit(lambda x, i: x[i])
    large = np.array([2**64 - 1], np.uint64)
    np.testing.assert_array_equal(compiled(X, large), X[large])
    assert compiled(X, np.uint64(4)) == 4
    with pytest.raises(OverflowError):
        X[large[0]]
    with pytest.raises(OverflowError, match=rf"TM246\] at .*{HERE}"):
        compiled(X, large[0])


def test_round_of_a_python_number_keeps_no_digits() -> None:
    """Python rounds the decimal form: round(2.675, 2) is 2.67, NumPy's is 2.68."""
    with pytest.raises(NotImplementedError, match=r"TM111(.|\n)*np\.round"):
        tm.jit(lambda x: round(x, 2))(2.675)
    assert tm.jit(lambda x: round(x))(2.5) == 2
    assert tm.jit(lambda x: np.round(x, 2))(2.675) == np.round(2.675, 2)


def test_a_list_of_numbers_known_later_is_an_index() -> None:
    def pivoted(a: np.ndarray, p: int) -> object:
        a[[0, p]] = a[[p, 0]]
        best = np.argmax(np.abs(a[:, 0]))
        a[[1, best], 1] += 1
        return a[[best, p], [p, 0]]

    compiled = tm.jit(pivoted)
    for p in (2, 0, -1):
        mine = np.arange(12.0).reshape(4, 3) - 7
        theirs = mine.copy()
        np.testing.assert_array_equal(compiled(mine, p), pivoted(theirs, p))
        np.testing.assert_array_equal(mine, theirs)
