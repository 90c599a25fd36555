"""Writes reach all views of the memory and the caller's arrays, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traced import assert_equal, assert_same, trace_function

Arrays = list[Any]


def _half(arrays: Arrays, a: Any, b: Any, k: int) -> None:
    arrays.append(a[abs(k) % 2 :: 2 if k < 0 else 1])


def _new(arrays: Arrays, a: Any, b: Any, k: int) -> None:
    made = np.zeros(a.shape)
    made[...] = a
    arrays.append(made)


def _add(arrays: Arrays, a: Any, b: Any, k: int) -> None:
    if b.ndim and b.shape == a.shape:
        a += b
    else:
        a += k


def _shift(arrays: Arrays, a: Any, b: Any, k: int) -> None:
    if len(a) > 1:
        a[1:] = a[:-1]


def _ends(arrays: Arrays, a: Any, b: Any, k: int) -> None:
    a[[0, -1]] = k


def _cut(arrays: Arrays, a: Any, b: Any, k: int) -> None:
    a[a > k] = k


def _raise(arrays: Arrays, a: Any, b: Any, k: int) -> None:
    a[a < k] += 2


def _first(arrays: Arrays, a: Any, b: Any, k: int) -> None:
    a[0] = a[-1]


STEPS: dict[str, Callable[[Arrays, Any, Any, int], Any]] = {
    "half": _half,
    "new": _new,
    "add": _add,
    "shift": _shift,
    "ends": _ends,
    "cut": _cut,
    "raise": _raise,
    "first": _first,
    "transpose": lambda arrays, a, b, k: arrays.append(a.T),
    "row": lambda arrays, a, b, k: arrays.append(a[0]),
    "column": lambda arrays, a, b, k: arrays.append(a[..., 0]),
    "reverse": lambda arrays, a, b, k: arrays.append(a[::-1]),
    "flip": lambda arrays, a, b, k: arrays.append(np.flip(a)),
    "reshape": lambda arrays, a, b, k: arrays.append(a.reshape(-1)),
    "ravel": lambda arrays, a, b, k: arrays.append(a.ravel()),
    "copy": lambda arrays, a, b, k: arrays.append(a.copy()),
    "alias": lambda arrays, a, b, k: arrays.append(a),
    "fresh": lambda arrays, a, b, k: arrays.append(a * 2 + k),
    "fill": lambda arrays, a, b, k: a.fill(k),
    "out": lambda arrays, a, b, k: np.add(a, k, out=a),
}
PROGRAMS = st.lists(
    st.tuples(
        st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9), st.integers(-3, 3)
    ),
    min_size=1,
    max_size=8,
)
LAYOUTS = {
    "plain": np.arange(12.0).reshape(3, 4),
    "fortran": np.arange(12.0).reshape(4, 3).T,
    "reversed": np.arange(24.0).reshape(6, 4)[::-2],
}


@given(PROGRAMS, st.sampled_from(sorted(LAYOUTS)))
def test_any_sequence_of_views_and_writes_equals_numpy(program: Any, layout: str) -> None:
    def function(x: Any, y: Any) -> Any:
        arrays = [x, y]
        for name, i, j, k in program:
            a = arrays[i % len(arrays)]
            if a.ndim:
                STEPS[name](arrays, a, arrays[j % len(arrays)], k)
        return tuple(arrays)

    assert_same(function, LAYOUTS[layout], np.arange(3.0) + 10)


def test_two_names_see_one_memory() -> None:
    def function(x: Any) -> Any:
        b = x
        b += 10
        c = x[1:]
        c *= 2
        r = x[::-1].copy()
        x[:] = x * 10
        return x + r

    assert_same(function, np.arange(6.0))


def test_an_argument_returned_is_the_caller_s_own_array() -> None:
    call = trace_function(lambda x: x.__setitem__(0, 5.0) or x, np.arange(3.0))
    (output,) = call.result.outputs
    assert (type(output).__name__, output.input) == ("InputOutput", 0)
    assert list(call.result.writes) == [0]
    assert not trace_function(lambda x: x + 1, np.arange(3.0)).result.writes


def test_captured_arrays_are_written_at_every_call() -> None:
    total = np.zeros(3)

    def function(x: Any) -> Any:
        nonlocal total
        total += x
        total[0] = -1
        return total * 2

    call = trace_function(function, np.ones(3))
    assert_equal(total, np.zeros(3))
    assert_equal(call(np.ones(3)), np.array([-2.0, 2.0, 2.0]))
    assert_equal(call(np.ones(3)), np.array([-2.0, 4.0, 4.0]))
    assert_equal(total, np.array([-1.0, 2.0, 2.0]))


def test_read_only_arrays_and_wrong_dtypes_are_refused() -> None:
    x = np.arange(3.0)
    x.flags.writeable = False

    def write(x: Any) -> None:
        x[0] = 1

    with pytest.raises(ValueError, match="read-only"):
        trace_function(write, x)
    with pytest.raises(ValueError, match="read-only"):
        trace_function(lambda x: np.broadcast_to(x, (2, 3)).fill(0), np.arange(3.0))
    with pytest.raises(TypeError, match="cannot store"):
        trace_function(lambda k: np.add(k, 0.5, out=k), np.arange(3))


def test_real_imaginary_and_byte_views_write_through() -> None:
    def function(z: Any, x: Any) -> Any:
        z.real = 1
        z.imag[1:] *= 2
        x.view(np.int64)[0] = 0
        w = np.zeros(2, complex)
        w.real += 3
        return w, z.T.imag

    z = np.arange(3) + 1j * np.arange(3, 6)
    assert_same(function, z, np.arange(3.0) + 1)
