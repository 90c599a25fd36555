"""Programs that once got another answer than NumPy's."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_another_result_beside_a_softmax(dtype: Any, rng: np.random.Generator) -> None:
    def function(x: Any) -> Any:
        e = np.exp(x)
        return x + 1, e / e.sum(axis=1, keepdims=True), x - 1

    x = rng.random((7, 9)).astype(dtype)
    for got, want in zip(tm.jit(function)(x), function(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5 if dtype is np.float32 else 1e-12)


def test_attention_heads_of_several_blocks(rng: np.random.Generator) -> None:
    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    def model(x: Any, weights: list[Any]) -> Any:
        for w in weights:
            q, k, v = np.split(x @ w, 3, axis=-1)
            mask = (1 - np.tri(len(x))) * -1e10
            heads = [
                softmax(a @ b.T / np.sqrt(a.shape[-1]) + mask) @ c
                for a, b, c in zip(*(np.split(m, 4, axis=-1) for m in (q, k, v)), strict=True)
            ]
            x = x + np.hstack(heads)
        return x

    x, weights = rng.normal(size=(7, 16)), [rng.normal(size=(16, 48)) * 0.3 for _ in range(2)]
    np.testing.assert_allclose(tm.jit(model)(x, weights), model(x, weights), rtol=1e-10)


def test_a_range_is_an_index() -> None:
    x = np.arange(12.0).reshape(4, 3)
    for function in (
        lambda x: x[range(2)],
        lambda x: x[range(1, len(x)), 0],
        lambda x: x[:, range(0)],
    ):
        np.testing.assert_array_equal(tm.jit(function)(x), function(x))


def test_an_empty_key_gives_the_number_of_an_array_without_axes() -> None:
    got = tm.jit(lambda x: (x[()], x[...]))(np.array(3.0))
    assert type(got[0]) is np.float64
    assert type(got[1]) is np.ndarray


def test_limits_of_halves() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1], np.float16)
    np.testing.assert_array_equal(tm.jit(lambda x: np.nan_to_num(x))(x), np.nan_to_num(x))


@pytest.mark.parametrize(
    "function",
    [
        lambda n, m: n / m,
        lambda n, m: n // m,
        lambda n, m: n % m,
        lambda n, m: divmod(n, m),
        lambda n, m: m**-1,
        lambda n, m: 1 / m + n,
    ],
)
@pytest.mark.parametrize("zero", [0, 0.0, False])
def test_python_numbers_divide_as_in_python(function: Any, zero: Any) -> None:
    compiled = tm.jit(function)
    assert compiled(7, 2) == function(7, 2)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match=r"\[TM252\] at .*test_answers.py"):
            compiled(7, zero)
    assert compiled(7, 3) == function(7, 3)


def test_sizes_divide_as_in_python() -> None:
    compiled = tm.jit(lambda x, n: x * (n / len(x)))
    assert compiled(np.ones(4), 2.0).tolist() == [0.5] * 4
    with pytest.raises(ZeroDivisionError):
        compiled(np.ones(0), 2.0)
    assert compiled(np.ones(2), 2.0).tolist() == [1, 1]


class Holder:
    def __init__(self, value: Any) -> None:
        self.value = value


def generate(x: Any) -> Any:
    yield x * 2


async def later(x: Any) -> Any:
    return x * 2


@pytest.mark.parametrize(
    "function",
    [
        generate,
        later,
        lambda x: map(abs, x),
        lambda x: zip(x, x),
        lambda x: (v * 2 for v in x),
        lambda x: iter([x]),
        lambda x: Holder(x * 2),
    ],
)
def test_results_that_cannot_be_made_again_are_refused(function: Any) -> None:
    compiled = tm.jit(function)
    for _ in range(2):
        with pytest.raises(TypeError, match=r"\[TM105\]"):
            compiled(np.ones(3))


def test_functions_placed_on_devices_do_all_that_others_do() -> None:
    def function(d: dict[str, Any], x: Any, n: int) -> Any:
        with tm.device("cpu:1"):
            y = x * n
            x += y
        d["y"] = y
        return y.sum(), x.shape, n * 2, {"x": x}, "text", None, len(x), np.array(1.0) * 2, y

    compiled = tm.jit(function)
    for size in (2, 3):
        mine, theirs = ({"d": {"k": 1}, "x": np.ones(size)} for _ in range(2))
        got = compiled(mine["d"], mine["x"], 3)
        with tm.disable_jit():
            want = compiled(theirs["d"], theirs["x"], 3)
        assert [type(part) for part in got] == [type(part) for part in want]
        assert got[1:3] == want[1:3]
        assert got[4:7] == want[4:7]
        assert got[3]["x"] is mine["x"]
        np.testing.assert_array_equal(mine["x"], theirs["x"])
        np.testing.assert_array_equal(mine["d"]["y"], theirs["d"]["y"])


def test_a_device_that_is_no_name() -> None:
    def function(x: Any) -> Any:
        with tm.device(1):  # type: ignore[arg-type]
            return x + 1

    with pytest.raises(TypeError, match="'cpu:1', got 1"):
        tm.jit(function)(np.ones(2))


def test_calls_from_an_event_loop() -> None:
    compiled = tm.jit(lambda x, k: x * k)

    async def run() -> list[Any]:
        calls = [asyncio.to_thread(compiled, np.ones(3), float(k)) for k in range(8)]
        return list(await asyncio.gather(*calls))

    for k, got in enumerate(asyncio.run(run())):
        assert got.tolist() == [k] * 3


def test_random_shapes_have_no_negative_sizes() -> None:
    for draw in (tm.random.Generator(seed=1).normal, tm.random.Generator(seed=1).integers):
        arguments = (0, 3) if draw.__name__ == "integers" else ()
        with pytest.raises(ValueError, match=r"\[TM242\]"):
            draw(*arguments, shape=(2, -1))


def test_what_is_fed_without_names_is_refused() -> None:
    program = tm.Program(twice=lambda x: x * 2)
    with pytest.raises(TypeError, match="fed by name"):
        program.run("twice", np.ones(3))  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [50, 5000])
def test_part_of_an_argument_changed_in_place(size: int) -> None:
    def function(x: Any) -> Any:
        part = x[10:]
        x[10:] *= 2
        x[1:-1] += x[2:] - x[:-2]
        x[3] -= x[4]
        return part * 1, x[10:]

    mine, theirs = np.arange(float(size)), np.arange(float(size))
    for got, want in zip(tm.jit(function)(mine), function(theirs), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(mine, theirs)
