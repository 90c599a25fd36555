"""Bad input: an error of the class NumPy has for it, at the user's line; the next call works.

Not here: dtypes that cannot be compiled (tests/compiled), threads, files.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill.compiler.errors import LimitError, ShapeError, TraceError, TracemillError

X = np.arange(6.0).reshape(2, 3)
K = np.array([0, 2, 1])
LEAST = -(2**63)

# what NumPy refuses too: name -> (function, arguments)
AS_NUMPY: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "shapes that do not fit": (lambda x, y: x + y, (X, np.ones(4))),
    "inner sizes that differ": (lambda x, y: x @ y, (X, np.ones((2, 3)))),
    "a product with a number": (lambda x: x @ x.sum(), (X,)),
    "two open sizes": (lambda x: x.reshape(-1, -1), (X,)),
    "an open size beside a zero": (lambda x: x[:0].reshape(0, -1), (X,)),
    "another number of elements": (lambda x: x.reshape(4, 2), (X,)),
    "an axis named twice": (lambda x: np.transpose(x, (0, 0)), (X,)),
    "too few axes": (lambda x: np.transpose(x, (0,)), (X,)),
    "an axis equal to the rank": (lambda x: x.sum(axis=2), (X,)),
    "an axis far below": (lambda x: np.max(x, axis=-3), (X,)),
    "the least integer as axis": (lambda x: np.cumsum(x, axis=LEAST), (X,)),
    "summed twice over an axis": (lambda x: x.sum(axis=(0, 0)), (X,)),
    "nothing to concatenate": (lambda x: np.concatenate([]) + x, (X,)),
    "numbers to concatenate": (lambda x: np.concatenate([x.sum(), x.sum()]), (X,)),
    "unequal ranks": (lambda x: np.concatenate([x, x[0]]), (X,)),
    "unequal parts to stack": (lambda x: np.stack([x, x[:1]]), (X,)),
    "uneven parts": (lambda x: np.split(x, 2, axis=1), (X,)),
    "zero parts": (lambda x: np.array_split(x, 0), (X,)),
    "a negative number of copies": (lambda x: np.repeat(x, -1), (X,)),
    "a negative margin": (lambda x: np.pad(x, -1), (X,)),
    "margins of the wrong length": (lambda x: np.pad(x, ((1, 1), (1, 1), (1, 1))), (X,)),
    "an index beyond the end": (lambda x: x[2], (X,)),
    "an index array beyond the end": (lambda x, k: x[:, k + 1], (X, K)),
    "an index before the start": (lambda x, k: x[:, k - 4], (X, K)),
    "a write beyond the end": (lambda x, k: x.__setitem__((0, k + 1), 7.0), (X, K)),
    "the least integer as index": (lambda x: x[LEAST], (X,)),
    "a slice step of zero": (lambda x: x[::0], (X,)),
    "too many indices": (lambda x: x[0, 0, 0], (X,)),
    "a float as index": (lambda x: x[1.0], (X,)),
    "an empty einsum": (lambda x: np.einsum("", x), (X,)),
    "an unknown letter in einsum": (lambda x: np.einsum("ij->ik", x), (X,)),
    "a letter twice in a result": (lambda x: np.einsum("ij->ii", x), (X,)),
    "too few letters in einsum": (lambda x: np.einsum("i->i", x), (X,)),
    "a step of zero in arange": (lambda x: np.arange(0, 5, 0) + x, (X,)),
    "a negative size": (lambda x: np.zeros((-1, 3)) + x, (X,)),
    "the greatest of nothing": (lambda x: np.max(x[:0]), (X,)),
    "the place of the least of nothing": (lambda x: np.argmin(x[:0], axis=0), (X,)),
    "a target of another shape": (lambda x: x.__setitem__(0, np.ones(2)), (X,)),
    "an output of another shape": (lambda x: np.add(x, 1, out=np.zeros(3)), (X,)),
    "bits of a float": (lambda x: x & 1, (X,)),
    "a float shifted": (lambda x: x << 1, (X,)),
    "minus a bool": (lambda x: -(x > 1), (X,)),
    "an integer beyond 64 bits": (lambda x: x.astype(np.int64) + 2**64, (X,)),
    "an integer beyond the dtype": (lambda x: x.astype(np.uint8) + 256, (X,)),
    "broadcast to less": (lambda x: np.broadcast_to(x, (3,)), (X,)),
    "squeezing what is not one": (lambda x: np.squeeze(x, axis=0), (X,)),
    "rolling along no axis": (lambda x: np.roll(x, 1, axis=5), (X,)),
    "a dtype that there is not": (lambda x: x.astype("float99"), (X,)),
    "an unknown argument": (lambda x: np.sum(x, axes=0), (X,)),
    "an attribute that there is not": (lambda x: x.summ(), (X,)),
}


@pytest.mark.parametrize("what", AS_NUMPY)
def test_numpy_s_class_at_the_user_s_line(what: str) -> None:
    function, args = AS_NUMPY[what]
    with pytest.raises(Exception) as wanted, np.errstate(all="ignore"):
        function(*(np.copy(a) for a in args))
    compiled = tm.jit(function)
    for _ in range(2):  # it stays an error
        own = [np.copy(a) for a in args]
        with pytest.raises(type(wanted.value)) as got:
            compiled(*own)
        assert all(np.array_equal(a, b) for a, b in zip(own, args)), "an argument was changed"
    if isinstance(got.value, TracemillError):
        line = function.__code__.co_firstlineno
        assert f"test_bad_inputs.py:{line}" in str(got.value)


def test_after_an_error_the_same_function_works() -> None:
    compiled = tm.jit(lambda x, k: x[:, k])
    for bad, good in ((K + 1, K), (K - 9, K - 3)):
        with pytest.raises(IndexError):
            compiled(X, bad)
        assert np.array_equal(compiled(X, good), X[:, good])
    assert len(compiled.explain_recompiles()) == 1


# -- limits


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.zeros((2**32, 2**32)) + x[0, 0],
        lambda x: np.tile(x, 2**50),
        lambda x: np.repeat(x, 2**61),
        lambda x: np.broadcast_to(x[0, 0], (2**62, 2**62)) + 1,
        lambda x: np.arange(10**18) + x[0, 0],
        lambda x: np.pad(x, 2**61),
        lambda x: np.eye(2**40) * x[0, 0],
    ],
    ids=["zeros", "tile", "repeat", "broadcast", "arange", "pad", "eye"],
)
def test_more_than_memory_is_an_error_and_no_allocation(function: Callable[..., Any]) -> None:
    with pytest.raises((MemoryError, ValueError)):  # which of them is NumPy's choice
        tm.jit(function)(X)
    assert tm.jit(lambda x: x + 1)(X)[0, 0] == 1


def test_nothing_times_huge_is_nothing() -> None:
    compiled = tm.jit(lambda x: np.zeros((0, 2**40)).sum() + np.tile(x[:0], (1, 2**30)).size)
    assert compiled(X) == 0


# -- tracing


def test_a_condition_on_a_traced_value_names_its_line_and_the_function_to_use() -> None:
    def bad(x: Any) -> Any:
        total = x.sum()
        while total > len(locals()):
            total = total / 2
        return total

    with pytest.raises(TraceError) as caught:
        tm.jit(bad)(X)
    assert f"test_bad_inputs.py:{bad.__code__.co_firstlineno + 2}, in bad" in str(caught.value)
    assert "tm.while_loop" in str(caught.value)


def test_a_leaked_value_says_where_it_was_made() -> None:
    leak: list[Any] = []

    def leaky(x: Any) -> Any:
        leak.append(x + 1)
        return x

    tm.jit(leaky)(X)
    assert "test_bad_inputs.py" in repr(leak[0]) or "traced" in repr(leak[0])
    for use in (lambda: leak[0] + 1, lambda: np.sum(leak[0]), lambda: leak[0][0]):
        with pytest.raises(TraceError) as caught:
            use()
        assert f"{leaky.__code__.co_firstlineno + 1}" in str(caught.value)


def test_recursion_is_refused_at_once_and_a_cycle_of_two_as_well() -> None:
    @tm.jit
    def own(x: Any) -> Any:
        return own(x - 1)

    functions: dict[str, Any] = {}
    functions["even"] = tm.jit(lambda x: functions["odd"](x - 1))
    functions["odd"] = tm.jit(lambda x: functions["even"](x - 1))
    for function in (own, functions["even"]):
        with pytest.raises((TraceError, RecursionError), match=r"itself|recursion"):
            function(X)
    assert tm.jit(lambda x: x + 1)(X)[0, 0] == 1


def test_the_user_s_own_exception_passes_through_unchanged() -> None:
    class Mine(Exception):
        pass

    thrown = Mine("stop here")
    wanted = [True]

    def thrower(x: Any) -> Any:
        y = x + 1
        if wanted:
            raise thrown
        return y

    compiled = tm.jit(thrower)
    with pytest.raises(Mine) as caught:
        compiled(X)
    assert caught.value is thrown
    assert caught.traceback[-1].name == "thrower"
    wanted.clear()
    assert np.array_equal(compiled(X), X + 1)


def test_an_unsupported_function_names_what_to_do_instead() -> None:
    with pytest.raises(NotImplementedError, match=r"np\.array_repr is not supported") as caught:
        tm.jit(lambda x: np.array_repr(x))(X)
    assert "hint" in str(caught.value)


def test_python_s_own_complaints_stay_python_s() -> None:
    compiled = tm.jit(lambda x: np.add(x, 0.5, out=np.zeros((2, 3), int)))
    with pytest.raises(TypeError, match=r"int64|i64"):  # NumPy's class for it is private
        compiled(X)
    with pytest.raises(ShapeError):  # NumPy takes any negative size for an open one
        tm.jit(lambda x: x.reshape(-2, 3))(X)


# -- outputs


def test_a_read_only_argument_is_not_written() -> None:
    fixed = X.copy()
    fixed.flags.writeable = False

    def writes(x: Any) -> Any:
        x[0] = 5
        return x

    compiled = tm.jit(writes)
    with pytest.raises(ValueError, match="read-only"):
        compiled(fixed)
    own = X.copy()
    assert compiled(own) is own
    with pytest.raises(ValueError, match="read-only"):
        compiled(fixed)  # a version for arrays that can be written exists by now
    assert np.array_equal(fixed, X)


def test_arguments_that_share_memory_are_written_as_numpy_writes() -> None:
    def shift(x: Any, y: Any) -> Any:
        x[:] = y * 2 + 1
        return x.sum() + y.sum()

    compiled = tm.jit(shift)
    for first, second in (
        (slice(0, 4), slice(2, 6)),
        (slice(2, 6), slice(0, 4)),
        (slice(1, 5),) * 2,
    ):
        mine, theirs = np.arange(6.0), np.arange(6.0)
        got = compiled(mine[first], mine[second])
        want = shift(theirs[first], theirs[second])
        assert got == want
        assert np.array_equal(mine, theirs)


def test_an_array_with_itself_in_memory_is_read_right() -> None:
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(9.0), 4)
    zero = np.lib.stride_tricks.as_strided(np.arange(3.0), (3, 3), (0, 8))
    compiled = tm.jit(lambda x: (x * 2, x.sum(axis=0), x @ x.T))
    for array in (windows, zero, windows[::-1, ::-2]):
        for got, want in zip(compiled(array), compiled.__wrapped__(array), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-15)


# -- golden messages


def add(x, y):
    return x + y


def index(x, k):
    return x[k]


def branch(x):
    if x.sum() > 0:
        raise ValueError(x)
    return -x


def missing(x):
    return np.array_repr(x)


def overflow(x):
    return x + 300


GOLDEN: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "shapes": (add, (np.ones((64, 10), np.float32), np.ones((32, 10), np.float32))),
    "bounds": (index, (X, np.array([0, 5]))),
    "condition": (branch, (X,)),
    "unsupported": (missing, (X,)),
    "number": (overflow, (np.ones(3, np.uint8),)),
}


def test_the_five_commonest_messages(bless: bool) -> None:
    path = Path(__file__).with_name("messages.txt")
    shown = []
    for name, (function, args) in GOLDEN.items():
        with pytest.raises(TracemillError) as caught:
            tm.jit(function)(*args)
        text = re.sub(r"\S*test_bad_inputs\.py:\d+", "test_bad_inputs.py:LINE", str(caught.value))
        shown.append(f"# {name}\n{text}\n")
    made = "\n".join(shown)
    if bless:
        path.write_text(made)
    assert made == path.read_text()


def test_a_limit_error_is_a_memory_error_and_a_shape_error_a_value_error() -> None:
    assert issubclass(LimitError, MemoryError)
    assert issubclass(ShapeError, ValueError)
