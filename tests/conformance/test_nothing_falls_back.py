"""Compiled calls compute in their kernels: not with NumPy, not with the reference evaluator.

Once a function is compiled, everything in NumPy that computes and the evaluator are replaced by
functions that raise, and a profiler watches for any Python or C function: the call must give the
right answer all the same, and its plan must launch kernels.

Not here: accuracy (tests/ops), random programs (tests/differential).
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from numpy_lines import CHOICES, KINDS, Line, lines
from traced import assert_leaf_equal
from tracemill.compiler.ir import evaluator
from tracemill.compiler.plan import Launch
from tracemill.numpy.promotion import OP_OF

DTYPES = ("?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16")
UFUNCS = sorted(name for name in OP_OF if isinstance(getattr(np, name, None), np.ufunc))
LEAVING = {"_GeneratorContextManager.__exit__", "next", "only_kernels", "setprofile"}
GROUP = 8  # ufuncs compiled in one function


class FellBack(AssertionError):
    """Something computed outside the kernels."""


@contextmanager
def only_kernels() -> Iterator[list[str]]:
    """NumPy and the evaluator raise; yields the functions that a profiler saw."""
    with pytest.MonkeyPatch.context() as patch:
        # Looked up before anything is replaced: some parts of NumPy are loaded when asked for.
        there = [(place, name, getattr(place, name)) for place in (np, np.linalg, np.fft)
                 for name in place.__all__]  # fmt: skip
        for place, name, found in there:
            if callable(found) and not isinstance(found, type):
                patch.setattr(place, name, _raising(name))
        for module in list(sys.modules.values()):
            for name in ("evaluate", "evaluate_node"):
                if vars(module).get(name, 0) is getattr(evaluator, name, None):
                    patch.setattr(module, name, _raising(name))
        seen: list[str] = []

        def watch(frame: FrameType, event: str, what: Any) -> None:
            if event in ("call", "c_call"):
                seen.append(getattr(what, "__qualname__", frame.f_code.co_qualname))

        gc.disable()  # whose callbacks are not the call's
        sys.setprofile(watch)
        try:
            yield seen
        finally:
            sys.setprofile(None)
            gc.enable()


def _raising(name: str) -> Callable[..., Any]:
    def function(*_: Any, **__: Any) -> Any:
        raise FellBack(f"{name} was called")

    return function


def compiled_alone(function: Callable[..., Any], args: list[Any], again: list[Any]) -> None:
    """Compile for `args`, then compare a call with `again` where only kernels can compute."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = function(*again)
    compiled = tm.jit(function)
    compiled(*args)
    with only_kernels() as seen:
        got = compiled(*again)
    assert set(seen) <= LEAVING, seen
    rows = compiled.lower(*args).plan.rows
    assert any(isinstance(row, Launch) for row in rows), rows
    for mine, theirs in zip(got, wanted, strict=True):
        assert_leaf_equal(mine, theirs)


def values(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Any:
    """Small numbers that no op finds odd."""
    made = rng.integers(1, 4, shape)
    return made.astype(dtype) if np.dtype(dtype).kind in "?biu" else (made / 4).astype(dtype)


def fits(ufunc: np.ufunc, dtype: str) -> bool:
    """Whether NumPy has a loop for operands of this dtype."""
    try:
        ufunc.resolve_dtypes((np.dtype(dtype),) * ufunc.nin + (None,) * ufunc.nout)
    except TypeError:
        return False
    return True


def calling(names: list[str]) -> Callable[..., Any]:
    """A function that returns the first result of each ufunc."""
    calls = []
    for name in names:
        ufunc = getattr(np, name)
        first = "[0]" if ufunc.nout > 1 else ""
        calls.append(f"np.{name}({', '.join('xy'[: ufunc.nin])}){first}")
    made: Callable[..., Any] = eval(f"lambda x, y: ({', '.join(calls)},)", {"np": np})
    return made


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_ufunc_on_every_dtype_runs_in_kernels(dtype: str, rng: np.random.Generator) -> None:
    names = [n for n in UFUNCS if fits(getattr(np, n), dtype) and getattr(np, n).signature is None]
    assert len(names) > 30
    for start in range(0, len(names), GROUP):
        args = [[values(rng, dtype, (n, 3)) for _ in "xy"] for n in (4, 6)]
        compiled_alone(calling(names[start : start + GROUP]), *args)


def expressions() -> list[Line]:
    """The lines that compute something new: no views, no writes, no plain operators."""
    words = ("np.sum(", "prod(", "mean(", "var(", "std(", "max(", "min(", "argm", "cum", "any(",
             "all(", "@", "dot(", "einsum", "matmul", "inner", "outer", "tensordot", "concatenate",
             "stack", "pad(", "roll", "tile", "repeat", "where(", "take", "clip", "astype", "diff",
             "tril", "eye", "arange", "linspace", "indices", "round", "norm", "sort", "partition",
             "search", "digitize", "histogram", "bincount", "median", "quantile")  # fmt: skip
    found = [line for line in lines() if line.noise != "write"]
    return [line for line in found if any(word in line.text for word in words)]


@pytest.mark.parametrize("line", expressions(), ids=lambda line: line.text)
def test_other_functions_run_in_kernels(line: Line, rng: np.random.Generator) -> None:
    dtypes = {"b": "?", "i": "i8", "c": "c16", "I": "i4", "M": "f4"}
    shapes = {"b": (3, 3), "M": (3, 3)}
    args = [values(rng, dtypes.get(k, "f8"), shapes.get(k, (3, 3))) for k in line.kinds]
    again = [values(rng, dtypes.get(k, "f8"), shapes.get(k, (3, 3))) for k in line.kinds]
    assert all(KINDS[kind](arg) for kind, arg in zip(line.kinds, args))
    text = line.text
    for word, choice in CHOICES.items():
        text = text.replace("{" + word + "}", choice(rng, args[0]))
    letters = "xyz"[: len(args)]
    body = text.format(*letters)
    function = eval(f"lambda {', '.join(letters)}: ({body} + 0,)", {"np": np})
    compiled_alone(function, args, again)


@pytest.mark.parametrize("body", [
    "np.partition(x, 1)", "np.median(x, axis=0)", "np.quantile(x, [0.2, 0.5])", "np.lexsort(x)",
    "np.percentile(x, 30, axis=1, method='midpoint')", "np.digitize(x, [0, 1])",
    "np.bincount((4 * x[0]).astype(int), minlength=9)", "np.histogram(x, 4)[0]",
    "tm.unique(x, 9)", "tm.top_k(x, 2)[0]", "np.searchsorted(np.sort(x[0]), x)",
    "np.sort(x * 1j, axis=0)", "tm.nonzero(x, 9)[1]", "tm.argwhere(x, 9)", "tm.flatnonzero(x, 9)",
])  # fmt: skip
def test_functions_of_order_run_in_kernels(body: str, rng: np.random.Generator) -> None:
    function = eval(f"lambda x: ({body} + 0,)", {"np": np, "tm": tm})
    compiled_alone(function, *[[values(rng, "f8", (3, 3))] for _ in range(2)])


@pytest.mark.parametrize("body", [
    "tm.nn.conv(x, w, padding=1)", "tm.nn.conv(x, w, stride=2)", "tm.nn.max_pool(x, 2)",
    "tm.nn.conv(x, w[:, :1], groups=4)", "tm.nn.conv_transpose(x, w, stride=2)",
    "tm.nn.avg_pool(x, 3, stride=1, padding=1)", "tm.nn.group_norm(x, 2)",
    "tm.grad(lambda x: np.sum(tm.nn.conv(x, w, stride=2) ** 2))(x)",
    "tm.grad(lambda w: np.sum(tm.nn.conv(x, w, stride=2) ** 2))(w)",
    "tm.grad(lambda x: np.sum(tm.nn.max_pool(x, 2) ** 2))(x)",
])  # fmt: skip
def test_functions_of_images_run_in_kernels(body: str, rng: np.random.Generator) -> None:
    function = eval(f"lambda x, w: ({body} + 0,)", {"np": np, "tm": tm})
    args = [[values(rng, "f8", s) for s in ((n, 4, 9, 8), (4, 4, 3, 3))] for n in (2, 3)]
    compiled_alone(function, *args)


@pytest.mark.parametrize("body", [
    "np.linalg.solve(a, x)", "np.linalg.inv(a)", "np.linalg.det(a)", "np.linalg.cholesky(a)",
    "np.linalg.eigh(a)[0]", "np.linalg.svd(x)[1]", "np.linalg.qr(x)[1]", "np.linalg.pinv(x)",
    "np.linalg.lstsq(x, x[:, 0], rcond=None)[0]", "np.linalg.norm(x, 2)", "np.fft.fft(x)",
    "np.fft.irfft2(np.fft.rfft2(x))", "np.fft.fftshift(x)",
    "tm.grad(lambda a: np.linalg.slogdet(a)[1])(a)",
    "tm.grad(lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 2))(x)",
])  # fmt: skip
def test_libraries_are_called_without_numpy(body: str, rng: np.random.Generator) -> None:
    """What NumPy ships with computes, but none of NumPy's own functions, nor Python, is asked."""
    function = eval(f"lambda x, a: ({body} + 0,)", {"np": np, "tm": tm})
    arrays = [rng.standard_normal((3, 3)) for _ in range(2)]
    compiled_alone(function, *[[x, x @ x.T + np.eye(3)] for x in arrays])


@pytest.mark.parametrize("body", [
    "steps(x, 3.0)", "first_large(x)", "chosen(x)", "tm.grad(steps)(x, 3.0)",
])  # fmt: skip
def test_statements_run_in_kernels(body: str, rng: np.random.Generator) -> None:
    function = eval(
        f"lambda x: ({body} + 0,)",
        {"tm": tm, "steps": steps, "first_large": first_large, "chosen": chosen},
    )
    compiled_alone(function, *[[rng.standard_normal(5)] for _ in range(2)])


def steps(x: Any, limit: float) -> Any:
    if x.sum() > limit:
        return (x * limit).sum()
    return (x**2).sum()


def chosen(x: Any) -> Any:
    return x * 2 if x.sum() > 0 else -x


def first_large(x: Any) -> Any:
    total, k = 0.0, 0
    while k < len(x):
        total += x[k]
        if total > 1:
            break
        k += 1
    return total


def test_the_watch_sees_a_function_that_falls_back() -> None:
    with pytest.raises(FellBack, match="add was called"), only_kernels():
        np.add(1, 2)
    with only_kernels() as seen:
        (lambda: None)()
        [].append(1)
    assert {"test_the_watch_sees_a_function_that_falls_back.<locals>.<lambda>", "list.append"} <= {
        *seen
    }
