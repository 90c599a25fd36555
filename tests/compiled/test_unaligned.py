"""Arrays that kernels cannot take as they are: not aligned, or of a subclass of NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu

Array = Any


def crooked(values: Any) -> Array:
    """An array that is not aligned."""
    values = np.asarray(values)
    made = np.zeros(values.nbytes + 1, np.uint8)[1:].view(values.dtype).reshape(values.shape)
    made[...] = values
    assert not made.flags.aligned
    return made


def test_a_copy_made_for_alignment_is_refused_where_a_write_would_be_missed() -> None:
    raw = np.zeros(8 * 9 + 1, np.uint8)
    inside = raw[1:].view(np.float64)
    act = tm.jit(lambda x, b: (b.__iadd__(1), x.sum()))
    with pytest.raises(ValueError, match=r"TM254(.|\n)*x is not aligned"):
        act(inside, raw)
    act(inside, np.zeros(3))
    with pytest.raises(ValueError, match=r"TM254(.|\n)*x is not aligned"):
        tm.jit(lambda x, y: x.__setitem__(0, y[1]))(inside[:-1], inside[1:])
    read = tm.jit(lambda x, y: x + y)
    assert read(inside[:-1], inside[1:]).tolist() == [0] * 8


def test_an_array_that_is_not_aligned_is_written_as_another() -> None:
    def act(x: Array, tree: Any) -> Any:
        x[1:] += tree["by"] * 2
        tree["kept"] = x
        return x, x[:2] * 1, tree["by"]

    compiled = tm.jit(act)
    for size in (4, 4, 9):
        mine, theirs = crooked(np.arange(size) / 2), crooked(np.arange(size) / 2)
        by, trees = crooked(np.arange(size - 1) - 1.5), ({}, {})
        for tree in trees:
            tree["by"] = by
        got, want = compiled(mine, trees[0]), act(theirs, trees[1])
        np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(got[1], want[1])
        assert got[0] is mine
        assert trees[0]["kept"] is mine
        assert got[2] is by


def test_an_array_that_is_not_aligned_may_be_passed_twice() -> None:
    x = crooked(np.arange(4))
    compiled = tm.jit(lambda x, y: (x.__setitem__(0, y[1] + 6), y[0] + 1)[1])
    assert compiled(x, x) == 8
    assert x.tolist() == [7, 1, 2, 3]


def test_a_failed_call_leaves_an_array_that_is_not_aligned() -> None:
    x, fixed = crooked(np.arange(4)), crooked(np.arange(4))
    fixed.flags.writeable = False
    compiled = tm.jit(lambda x, k: (x.__setitem__(0, 5), x[k])[1])
    with pytest.raises(IndexError):
        compiled(x, np.array([9]))
    assert x.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match=r"TM247"):
        compiled(fixed, np.array([0]))
    assert compiled(x, np.array([0])).tolist() == [5]
    assert x.tolist() == [5, 1, 2, 3]


def test_an_instance_of_a_subclass_that_is_returned_is_itself() -> None:
    class Named(np.ndarray):
        pass

    x = np.arange(3.0).view(Named)
    compiled = tm.jit(lambda x: (x.__iadd__(1), x * 2)[0])
    assert compiled(x) is x
    assert x.tolist() == [1, 2, 3]
