"""Calling compiled functions: every way to pass an argument, and what is compiled for it."""

from __future__ import annotations

import dataclasses
import functools
import pickle
from collections import namedtuple

import numpy as np
import pytest

import tracemill as tm

X = np.arange(12.0).reshape(3, 4)


def same(got: object, want: object) -> None:
    """Equal type, dtype, shape and bits."""
    assert type(got) is type(want)
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)


def test_positional_keyword_and_default_arguments_are_one_call():
    f = tm.jit(lambda x, y=2.0, *, z=3.0: x * y + z)
    for call in (
        lambda g: g(X),
        lambda g: g(X, 5.0),
        lambda g: g(X, y=5.0),
        lambda g: g(x=X, z=-1.0, y=0.5),
    ):
        same(call(f), call(f.__wrapped__))
    assert len(f.explain_recompiles()) == 1


def test_wrong_arguments_raise_as_the_function_would():
    f = tm.jit(lambda x, y: x + y)
    with pytest.raises(TypeError, match="missing a required argument"):
        f(X)
    with pytest.raises(TypeError, match="too many positional"):
        f(X, X, X)
    with pytest.raises(TypeError, match="unexpected keyword"):
        f(X, X, z=X)
    same(f(X, X), X + X)


@dataclasses.dataclass
class Point:
    x: np.ndarray
    y: float


Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    "tree",
    [
        {"a": X, "b": [X + 1, (X + 2, 4.0)]},
        [X, X],
        (X, {"k": 1.5}),
        Point(X, 2.0),
        Pair(X, X * 2),
        {"inner": Point(X, 3.0), "none": None},
    ],
    ids=["dict", "list", "tuple", "dataclass", "namedtuple", "nested"],
)
def test_containers_go_in_and_come_out(tree):
    def double(t):
        import optree

        return optree.tree_map(lambda leaf: leaf * 2, t, namespace="tracemill")

    tm.jit(lambda t: 0)(tree)  # registers the dataclass
    f = tm.jit(double)
    got, want = f(tree), double(tree)
    assert type(got) is type(want)
    import optree

    for a, b in zip(
        optree.tree_leaves(got, namespace="tracemill"),
        optree.tree_leaves(want, namespace="tracemill"),
        strict=True,
    ):
        same(a, b)
    f(tree)
    assert len(f.explain_recompiles()) == 1


def test_the_structure_of_results_belongs_to_the_version():
    f = tm.jit(lambda x, y: (x + 1, x) if y is None else (x, None))
    assert f(X, 0)[1] is None
    same(f(X, None)[0], X + 1)
    assert f(X, 0)[1] is None
    assert len(f.explain_recompiles()) == 2


def test_python_numbers_are_weak_and_never_recompile():
    x = np.ones(3, np.float32)
    f = tm.jit(lambda x, h: (x - h) * (0.5 + h))
    for h in (1.0, 2.5, -0.0, float("inf"), 1e300):
        with np.errstate(all="ignore"):
            same(f(x, h), f.__wrapped__(x, h))
    assert len(f.explain_recompiles()) == 1


def test_a_number_of_another_type_is_another_version():
    f = tm.jit(lambda x, t: np.clip(x * t, -t, t))
    for t in (1.0, 2, 3.0, 0.5, 7, True):
        same(f(5.0, t), np.asarray(f.__wrapped__(5.0, t))[()])
    assert len(f.explain_recompiles()) <= 3


def test_numpy_scalars_keep_their_dtype():
    f = tm.jit(lambda x, s: x * s)
    same(f(np.ones(2, np.float32), np.float64(2)), np.full(2, 2.0))
    same(f(np.ones(2, np.float32), np.float32(2)), np.full(2, 2, np.float32))
    same(f(np.float32(3), np.float32(2)), np.float32(6))


def test_a_static_argument_is_compared_by_value():
    calls = []

    @tm.jit
    def f(x, mode):
        calls.append(mode)
        return np.maximum(x, 0) if mode == "relu" else x

    same(f(-X, "relu"), np.maximum(-X, 0))
    same(f(-X, "".join(["re", "lu"])), np.maximum(-X, 0))
    same(f(-X, "none"), -X)
    assert calls == ["relu", "none"]


def test_static_argnames_hand_the_value_itself():
    f = tm.jit(lambda x, n: sum(x * i for i in range(n)), static_argnames="n")
    same(f(X, 3), X * 0 + X * 1 + X * 2)
    same(f(X, 2), X * 0 + X * 1)
    with pytest.raises(TypeError, match="no parameter named 'm'"):
        tm.jit(lambda n: n, static_argnames=("m",))


def test_methods_classmethods_partials_and_lambdas():
    class Model:
        scale = 2.0

        def __init__(self, offset):
            self.offset = offset

        @tm.jit
        def apply(self, x):
            return x * self.scale + self.offset

        @tm.jit
        @classmethod
        def of_class(cls, x):
            return x * cls.scale

        @tm.jit
        @staticmethod
        def plain(x):
            return x - 1

    same(Model(3.0).apply(X), X * 2.0 + 3.0)
    same(Model(4.0).apply(X), X * 2.0 + 4.0)
    model = Model(5.0)
    same(model.apply(X), X * 2.0 + 5.0)
    model.offset = 6.0
    same(model.apply(X), X * 2.0 + 6.0)
    same(Model.of_class(X), X * 2.0)
    same(Model.plain(X), X - 1)
    same(tm.jit(functools.partial(lambda a, b: a - b, b=1.0))(X), X - 1.0)


def test_variadic_functions():
    f = tm.jit(lambda *xs, scale=1.0, **more: sum(xs) * scale + sum(more.values()))
    same(f(X, X), (X + X) * 1.0 + 0)
    same(f(X, X, X, scale=2.0), (X + X + X) * 2.0 + 0)
    same(f(X, a=X, b=X), X * 1.0 + (X + X))


@tm.jit
def documented(x: np.ndarray, factor: float = 2.0) -> np.ndarray:
    """Multiply."""
    return x * factor


def test_the_decorated_function_keeps_its_face():
    import inspect

    assert documented.__name__ == "documented"
    assert documented.__doc__ == "Multiply."
    assert list(inspect.signature(documented).parameters) == ["x", "factor"]
    assert documented.__annotations__ == documented.__wrapped__.__annotations__
    assert "documented" in repr(documented)


def test_it_pickles_by_reference():
    class Module:
        pass

    import sys

    sys.modules.setdefault(documented.__module__, Module())
    sys.modules[documented.__module__].documented = documented
    assert pickle.loads(pickle.dumps(documented)) is documented


def test_one_hundred_sizes_compile_at_most_twice_per_pattern():
    f = tm.jit(lambda x, y: (x * y).sum(axis=0) + x[0])
    for n in range(1, 101):
        x, y = np.random.default_rng(n).standard_normal((2, n, n + 3))
        np.testing.assert_allclose(f(x, y), f.__wrapped__(x, y), rtol=1e-12, atol=1e-12)
    # size 1 broadcasts and is a pattern of its own, as are inner sizes small enough to unroll
    assert len(f.explain_recompiles()) <= 4


def test_sizes_that_came_apart_are_told_apart():
    f = tm.jit(lambda x, y: (x + y) if x.shape == y.shape else (x.sum() + y.sum()))
    same(f(np.ones(5), np.ones(5)), np.full(5, 2.0))
    same(f(np.ones(5), np.ones(6)), np.float64(11.0))
    same(f(np.ones(9), np.ones(9)), np.full(9, 2.0))
    assert len(f.explain_recompiles()) == 2


def test_recompiles_are_explained():
    f = tm.jit(lambda x: x + 1)
    f(np.ones(3))
    f(np.ones(3, np.float32))
    f(np.ones((3, 3), np.float32))
    first, second, third = f.explain_recompiles()
    assert "first call" in str(first)
    assert "x has dtype float32 instead of float64" in str(second)
    assert "x has rank 2 instead of 1" in str(third)


def test_the_table_of_versions_is_bounded():
    from tracemill.calls.dispatch import LIMIT

    f = tm.jit(lambda x, mode: x + 1)
    for i in range(LIMIT + 5):
        f(X, f"mode {i}")
    assert len(f.dispatcher.versions) == LIMIT
    same(f(X, "mode 0"), X + 1)


def test_clear_cache_forgets_versions():
    f = tm.jit(lambda x: x + 1)
    f(X)
    f.clear_cache()
    same(f(X), X + 1)
    assert len(f.explain_recompiles()) == 2


def test_disable_jit_runs_the_plain_function():
    seen = []

    @tm.jit
    def f(x):
        seen.append(type(x))
        return x + 1

    with tm.disable_jit():
        same(f(X), X + 1)
    assert seen == [np.ndarray]


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[::2],
        lambda a: a[::-1],
        lambda a: a.T,
        lambda a: a[:, 1:3],
        lambda a: np.broadcast_to(a[0], (5, 6)),
        lambda a: np.asfortranarray(a),
        lambda a: np.frombuffer(b"\0" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
    ],
    ids=["rows", "reversed", "transposed", "columns", "stride 0", "fortran", "unaligned"],
)
def test_any_layout_of_an_argument(view):
    a = np.random.default_rng(0).standard_normal((6, 6))
    x = view(a)
    f = tm.jit(lambda x: (x * 2 - 1, x.sum(axis=0), np.tanh(x)))
    for got, want in zip(f(x), f.__wrapped__(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-14)
    assert f(x)[0].flags.owndata or f(x)[0].base is not x


def test_results_do_not_share_memory_with_arguments_unless_they_are_them():
    f = tm.jit(lambda x: (x, x + 0, x[1:]))
    whole, copy, part = f(X)
    assert whole is X
    assert not np.shares_memory(copy, X)
    assert not np.shares_memory(part, X)


def test_subclasses_of_ndarray_are_taken_as_arrays(tmp_path):
    mapped = np.memmap(tmp_path / "m", np.float64, "w+", shape=(4,))
    mapped[:] = 3
    same(tm.jit(lambda x: x + 1)(mapped), np.full(4, 4.0))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.array([1, None], object), "object"),
        (np.array(["a"]), "<U1"),
        (np.array(["2020-01-01"], "M8[D]"), "datetime64"),
        (np.zeros(2, ">f8"), "foreign byte order"),
        (np.zeros(2, [("a", int)]), "structured"),
        (np.ma.masked_array([1.0], [True]), "MaskedArray"),
    ],
    ids=["object", "string", "datetime", "big endian", "structured", "masked"],
)
def test_arrays_that_cannot_be_compiled_are_refused(bad, message):
    f = tm.jit(lambda x: x)
    with pytest.raises(TypeError, match=message):
        f(bad)
    assert f(X) is X
