"""Ops that are not elementwise: every one, at every dtype it takes, against plain loops.

The evaluator compares dtype and shape of each reference with its signature; here the values are
compared with statements of the meaning that are not NumPy's vector code.

Not here: elementwise ops, back ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tracemill.compiler.dims import Dim
from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.verifier import verify
from tracemill.compiler.ops import ALL
from tracemill.compiler.ops.definition import Structure
from tracemill.compiler.types import DTYPES, I64, DType, TensorType, TokenType
from window_loops import loop_convolve, loop_slide, loop_unslide

Array = np.ndarray[Any, Any]
N = Dim.symbol("n")


def positions(shape: tuple[int, ...]) -> Any:
    return itertools.product(*map(range, shape))


def filled(shape: tuple[int, ...], like: Array, element: Callable[..., Any]) -> Array:
    """The array of `shape` whose element at each position is ``element(*position)``."""
    made = np.zeros(shape, like.dtype)
    for place in positions(shape):
        made[place] = element(*place)
    return made


def loop_reshape(x: Array, shape: tuple[int, ...]) -> Array:
    flat = [x[place] for place in positions(x.shape)]
    made = np.zeros(shape, x.dtype)
    for number, place in zip(flat, positions(shape)):
        made[place] = number
    return made


def loop_transpose(x: Array, perm: tuple[int, ...]) -> Array:
    shape = tuple(x.shape[axis] for axis in perm)
    return filled(shape, x, lambda *at: x[tuple(at[perm.index(i)] for i in range(x.ndim))])


def loop_broadcast(x: Array, shape: tuple[int, ...]) -> Array:
    def element(*at: int) -> Any:
        mine = at[len(at) - x.ndim :]
        return x[tuple(0 if n == 1 else i for i, n in zip(mine, x.shape))]

    return filled(shape, x, element)


def loop_slice(x: Array, size: Any, start: Any, step: Any) -> Array:
    return filled(size, x, lambda *at: x[tuple(a + i * s for i, a, s in zip(at, start, step))])


def loop_concatenate(x: Array, y: Array, axis: int) -> Array:
    shape = list(x.shape)
    shape[axis] += y.shape[axis]

    def element(*at: int) -> Any:
        if at[axis] < x.shape[axis]:
            return x[at]
        return y[(*at[:axis], at[axis] - x.shape[axis], *at[axis + 1 :])]

    return filled(tuple(shape), x, element)


def loop_pad(x: Array, fill: Array, high: Any, low: Any) -> Array:
    def element(*at: int) -> Any:
        mine = tuple(i - a for i, a in zip(at, low))
        return x[mine] if all(0 <= i < n for i, n in zip(mine, x.shape)) else fill

    return filled(tuple(a + n + b for a, n, b in zip(low, x.shape, high)), x, element)


def loop_update(base: Array, value: Array, start: Any, step: Any) -> Array:
    made = base.copy()
    for at in positions(value.shape):
        made[tuple(a + i * s for i, a, s in zip(at, start, step))] = value[at]
    return made


def loop_fold(combine: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    def fold(x: Array, axes: tuple[int, ...]) -> Array:
        kept = [axis for axis in range(x.ndim) if axis not in axes]
        made: dict[tuple[int, ...], Any] = {}
        for at in positions(x.shape):
            key = tuple(at[axis] for axis in kept)
            made[key] = x[at] if key not in made else combine(made[key], x[at])
        return filled(tuple(x.shape[axis] for axis in kept), x, lambda *at: made[at])

    return fold


def loop_scan(combine: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    def scan(x: Array, axis: int, step: Any = None) -> Array:
        made = x.copy()
        for at in positions(x.shape):
            if at[axis]:
                before = (*at[:axis], at[axis] - 1, *at[axis + 1 :])
                made[at] = combine(made[before], x[at])
        return made

    return scan


def loop_index(better: Callable[[Any, Any], bool]) -> Callable[..., Array]:
    def search(x: Array, axes: tuple[int]) -> Array:
        (axis,) = axes
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        made = np.zeros(shape, np.int64)
        for at in positions(shape):
            row = [x[(*at[:axis], i, *at[axis:])] for i in range(x.shape[axis])]
            best = 0
            for i, number in enumerate(row):
                best = i if better(number, row[best]) else best
            made[at] = best
        return made

    return search


def loop_contract(a: Array, b: Array, axes: Any, batch: Any) -> Array:
    left, right = [p[0] for p in (*batch, *axes)], [p[1] for p in (*batch, *axes)]
    free_a = [i for i in range(a.ndim) if i not in left]
    free_b = [j for j in range(b.ndim) if j not in right]
    shape_k = tuple(a.shape[i] for i, _ in axes)
    shape = (*(a.shape[i] for i, _ in batch), *(a.shape[i] for i in free_a),
             *(b.shape[j] for j in free_b))  # fmt: skip
    made = np.zeros(shape, a.dtype)
    for at in positions(shape):
        total: Any = a.dtype.type(0)
        for k in positions(shape_k):
            to_a = dict(zip([*(i for i, _ in batch), *free_a], at[: a.ndim - len(axes)]))
            to_b = dict(zip([j for _, j in batch], at[: len(batch)]))
            to_b.update(zip(free_b, at[len(at) - len(free_b) :]))
            to_a.update({i: n for (i, _), n in zip(axes, k)})
            to_b.update({j: n for (_, j), n in zip(axes, k)})
            x = a[tuple(to_a[i] for i in range(a.ndim))]
            total = total + x * b[tuple(to_b[j] for j in range(b.ndim))]
        made[at] = total
    return made


def loop_gather(x: Array, i: Array, j: Array, axes: Any) -> Array:
    i, j = np.broadcast_arrays(i, j)
    shape = (x.shape[0], *i.shape)
    return filled(shape, x, lambda k, *at: x[k, i[at] % x.shape[1], j[at] % x.shape[2]])


def loop_scatter(add: bool) -> Callable[..., Array]:
    def scatter(base: Array, value: Array, i: Array, axes: Any, step: Any = None) -> Array:
        made = base.copy()
        for place, index in enumerate(i):
            for k in range(base.shape[0]):
                at = (k, int(index) % base.shape[1])
                made[at] = made[at] + value[k, place] if add else value[k, place]
        return made

    return scatter


def loop_places(x: Array) -> Array:
    """By insertion: each element goes before the first greater one."""
    made = np.zeros(x.shape, np.int64)
    for row in positions(x.shape[:-1]):
        order: list[int] = []
        for i, number in enumerate(x[row]):
            at = next((n for n, other in enumerate(order) if number < x[row][other]), len(order))
            order.insert(at, i)
        made[row] = order
    return made


NUMBERS = tuple(dtype for dtype in DTYPES if dtype.kind in "iufc")
BOOLS = tuple(dtype for dtype in DTYPES if dtype.kind == "b")
REAL = tuple(dtype for dtype in DTYPES if dtype.kind in "biuf")
I = np.array([[0], [-1]])
J = np.array([1, -2, 0])
K = np.array([2, 0, -1, 0])

# op -> (dtypes, operand shapes, index arrays, attributes, the meaning in loops)
Example = tuple[tuple[DType, ...], tuple[Any, ...], tuple[Array, ...], dict[str, Any], Any]
EXAMPLES: dict[str, list[Example]] = {
    "reshape": [(DTYPES, ((2, 3),), (), {"shape": (3, 1, 2)}, loop_reshape)],
    "transpose": [(DTYPES, ((2, 3, 4),), (), {"perm": (2, 0, 1)}, loop_transpose)],
    "broadcast_to": [(DTYPES, ((3, 1),), (), {"shape": (2, 3, 4)}, loop_broadcast)],
    "slice": [
        (DTYPES, ((5, 4),), (), {"start": (1, 3), "size": (2, 4), "step": (3, -1)}, loop_slice),
        (DTYPES, ((5,),), (), {"start": (0,), "size": (0,), "step": (1,)}, loop_slice),
    ],
    "concatenate": [(DTYPES, ((2, 3), (2, 1)), (), {"axis": 1}, loop_concatenate)],
    "pad": [(DTYPES, ((2, 3), ()), (), {"low": (1, 0), "high": (0, 2)}, loop_pad)],
    "update_slice": [
        (DTYPES, ((5, 4), (2, 2)), (), {"start": (4, 1), "step": (-2, 2)}, loop_update)
    ],
    "sum": [(NUMBERS, ((2, 3, 4),), (), {"axes": (0, 2)}, loop_fold(lambda a, b: a + b))],
    "prod": [(NUMBERS, ((2, 3),), (), {"axes": (1,)}, loop_fold(lambda a, b: a * b))],
    "min": [(REAL, ((3, 4),), (), {"axes": (0,)}, loop_fold(lambda a, b: b if b < a else a))],
    "max": [(REAL, ((3, 4),), (), {"axes": (1,)}, loop_fold(lambda a, b: b if b > a else a))],
    "any": [(BOOLS, ((3, 4),), (), {"axes": (0,)}, loop_fold(lambda a, b: a | b))],
    "all": [(BOOLS, ((3, 4),), (), {"axes": (1,)}, loop_fold(lambda a, b: a & b))],
    "argmin": [(REAL, ((3, 4),), (), {"axes": (1,)}, loop_index(lambda a, b: bool(a < b)))],
    "argmax": [(REAL, ((3, 4),), (), {"axes": (0,)}, loop_index(lambda a, b: bool(a > b)))],
    "cumsum": [(NUMBERS, ((3, 4),), (), {"axis": 1}, loop_scan(lambda a, b: a + b))],
    "cumprod": [(NUMBERS, ((4, 2),), (), {"axis": 0}, loop_scan(lambda a, b: a * b))],
    "cummin": [(REAL, ((3, 4),), (), {"axis": 1}, loop_scan(min))],
    "cummax": [(REAL, ((4, 2),), (), {"axis": 0}, loop_scan(max))],
    "accumulate": [
        (NUMBERS, ((3, 4),), (), {"axis": 1, "step": "sub"}, loop_scan(lambda a, b: a - b)),
    ],
    "scatter_step": [
        (DTYPES, ((2, 3), (2, 4)), (K,), {"axes": (1,), "step": "add"}, loop_scatter(True)),
    ],
    "contract": [
        (NUMBERS, ((2, 3), (3, 4)), (), {"axes": ((1, 0),), "batch": ()}, loop_contract),
        (
            NUMBERS, ((2, 3, 4, 2), (4, 3, 2, 5)), (),
            {"axes": ((0, 2), (2, 0)), "batch": ((1, 1),)}, loop_contract,
        ),
        (NUMBERS, ((2,), (3,)), (), {"axes": (), "batch": ()}, loop_contract),
    ],
    "slide": [
        (
            DTYPES, ((2, 7, 3),), (), {"axes": (1, 2), "dilation": 2, "size": 2, "stride": 2},
            loop_slide,
        ),
    ],
    "unslide": [
        (
            DTYPES, ((3, 2, 3), ()), (), {"axes": (0, 2), "dilation": 1, "size": 8, "stride": 2},
            loop_unslide,
        ),
    ],
    "convolve": [
        (
            NUMBERS, ((2, 2, 8), (3, 2, 3)), (),
            {"axes": ((1, 1),), "batch": (), "windows": ((2, 2, 2, 2),)}, loop_convolve,
        ),
        (
            NUMBERS, ((1, 2, 6), (3, 2, 3)), (),
            {"axes": ((1, 1),), "batch": (), "windows": ((2, 2, 1, -2),)}, loop_convolve,
        ),
    ],
    "gather": [(DTYPES, ((2, 3, 4),), (I, J), {"axes": (1, 2)}, loop_gather)],
    "scatter": [(DTYPES, ((2, 3), (2, 4)), (K,), {"axes": (1,)}, loop_scatter(False))],
    "sort": [(REAL, ((3, 7),), (), {}, lambda x: np.take_along_axis(x, loop_places(x), -1))],
    "greatest": [
        (REAL, ((2, 9),), (), {"size": 4},
         lambda x, size: 8 - loop_places(x[:, ::-1])[:, ::-1][:, :size]),
    ],
    "argsort": [(REAL, ((2, 2, 9),), (), {}, loop_places)],
    "scatter_add": [(NUMBERS, ((2, 3), (2, 4)), (K,), {"axes": (1,)}, loop_scatter(True))],
}  # fmt: skip
# Ops without operands to compute on; where their meaning is tested.
ELSEWHERE = {
    "searchsorted": "tests/backends/test_sorting.py",
    "constant": "tests/ir/test_text.py", "iota": "here", "read": "tests/ir/test_evaluator.py",
    "assign": "tests/ir/test_evaluator.py", "check": "tests/ir/test_evaluator.py",
    "print": "tests/ir/test_evaluator.py", "fused": "tests/ir/test_builder.py",
    "host_call": "tests/ir/test_host_call.py",
    "send": "tests/ir/test_evaluator.py", "recv": "tests/ir/test_evaluator.py",
    "cond": "tests/ir/test_flow.py", "while": "tests/ir/test_flow.py",
    "for": "tests/ir/test_flow.py", "scan": "tests/ir/test_flow.py",
    "recompute": "tests/passes/inline.mill", "custom_vjp": "tests/passes/inline.mill",
    "custom_jvp": "tests/passes/inline.mill",
}  # fmt: skip


def test_every_op_that_is_not_elementwise_is_tested() -> None:
    # Those of libraries are in test_library.py, which looks that all are.
    derived = (Structure.ELEMENTWISE, Structure.RANDOM, Structure.LIBRARY)
    structured = {name for name, op in ALL.items() if op.structure not in derived}
    assert structured == set(EXAMPLES) | set(ELSEWHERE)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_reference_is_what_loops_compute(name: str, rng: np.random.Generator) -> None:
    for dtypes, shapes, indices, attrs, meaning in EXAMPLES[name]:
        for dtype in dtypes:
            arrays = [small_numbers(rng, dtype, shape) for shape in shapes]
            got = run(name, [*arrays, *indices], attrs)
            with np.errstate(all="ignore"):
                expected = np.asarray(meaning(*arrays, *indices, **attrs))
            assert got.dtype == expected.dtype
            if dtype.kind in "fc":
                close = 1e-2 if dtype.bits == 16 else 1e-5
                wide = np.complex128 if dtype.kind == "c" else np.float64
                np.testing.assert_allclose(got.astype(wide), expected.astype(wide), close, close)
            else:
                np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", EXAMPLES)
def test_dtypes_not_in_the_example_are_refused(name: str) -> None:
    dtypes, shapes, indices, attrs, _ = EXAMPLES[name][0]
    for dtype in set(DTYPES) - set(dtypes):
        if dtype.is_complex and ALL[name].structure in (Structure.REDUCTION, Structure.SCAN):
            continue  # taken: NumPy orders complex numbers by parts
        b = Builder("refused")
        operands = [b.param("x", TensorType(dtype, shape)) for shape in shapes]
        with pytest.raises(TypeError, match="TM202"):
            b.emit(name, [*operands, *map(b.constant, indices)], attrs)


def test_iota_counts() -> None:
    b = Builder("iota")
    x = b.param("x", TensorType(I64, (N,)))
    graph = b.finish([b.iota(size=2 * N + 1)])
    np.testing.assert_array_equal(evaluate(graph, [np.zeros(2, np.int64)])[0], np.arange(5))
    assert x.tensor.shape == (N,)


@pytest.mark.parametrize("index", [3, -4, 2**62])
@pytest.mark.parametrize("name", ["gather", "scatter", "scatter_add"])
def test_an_index_out_of_bounds_fails(name: str, index: int) -> None:
    value = [] if name == "gather" else [np.zeros(1)]
    with pytest.raises(IndexError, match=f"index {index} is out of bounds for axis 0 with size 3"):
        run(name, [np.zeros(3), *value, np.array([index])], {"axes": (0,)})


def test_nothing_can_be_gathered_from_an_empty_axis_but_nothing() -> None:
    empty = np.zeros((0, 2))
    assert run("gather", [empty, np.zeros(0, np.int64)], {"axes": (0,)}).shape == (0, 2)
    with pytest.raises(IndexError):
        run("gather", [empty, np.zeros(1, np.int64)], {"axes": (0,)})


@pytest.mark.parametrize("name", ["min", "max", "argmin", "argmax"])
def test_an_empty_axis_has_no_extreme(name: str) -> None:
    with pytest.raises(ValueError, match="TM241"):
        run(name, [np.zeros((2, 0))], {"axes": (1,)})


@pytest.mark.parametrize(("name", "value"), [("sum", 0), ("prod", 1)])
def test_an_empty_axis_has_the_identity(name: str, value: int) -> None:
    np.testing.assert_array_equal(run(name, [np.zeros((2, 0))], {"axes": (1,)}), [value, value])


def test_nan_wins_an_extreme_and_comes_first() -> None:
    row = np.array([1, np.nan, 3, np.nan], np.float32)
    assert np.isnan(run("max", [row], {"axes": (0,)}))
    assert np.isnan(run("min", [row], {"axes": (0,)}))
    assert run("argmax", [row], {"axes": (0,)}) == 1
    assert run("argmin", [row], {"axes": (0,)}) == 1


def test_sums_of_halves_are_as_good_as_numpys() -> None:
    ones = np.ones(4096, np.float16)
    assert run("sum", [ones], {"axes": (0,)}) == np.sum(ones) == 4096


def run(name: str, arrays: list[Array], attrs: dict[str, Any]) -> Array:
    """One op on `arrays`, by way of a verified graph."""
    b = Builder(name)
    params = [b.param(f"p{i}", type_of(array)) for i, array in enumerate(arrays)]
    made = b.emit(name, params, attrs)
    values = made if isinstance(made, tuple) else (made,)
    graph = b.finish([v for v in values if not isinstance(v.type, TokenType)])
    verify(graph)
    (result,) = evaluate(graph, arrays)
    return result


def type_of(array: Array) -> TensorType:
    dtype = next(d for d in DTYPES if d.numpy == array.dtype)
    return TensorType(dtype, array.shape)


def small_numbers(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Numbers that stay finite and, up to rounding, exact in the loops and in NumPy."""
    numbers = rng.integers(0 if dtype.kind in "bu" else -2, 3, shape)
    if dtype.is_complex:
        return (numbers + 1j * rng.integers(-2, 3, shape)).astype(dtype.numpy)
    return np.asarray(numbers).astype(dtype.numpy)
