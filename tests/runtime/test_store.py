"""The variable store: one value at a time, whole, or none."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

from tracemill.backends.llvm.native.language import layout_of
from tracemill.backends.llvm.native.layout import Cell as NativeCell
from tracemill.compiler.dims import Dim
from tracemill.compiler.errors import ArgError, DTypeError, ShapeError, UnknownName
from tracemill.compiler.types import DTYPES, F32, F64, I64, TensorType
from tracemill.runtime.cells import CellLayout, PythonLocks
from tracemill.runtime.store import VariableStore

VECTOR = TensorType(F32, (3,))
ABC = np.arange(3, dtype=np.float32)


def test_a_variable_is_declared_then_initialised_then_read():
    store = VariableStore()
    cell = store.create("w", VECTOR)
    assert not cell.initialised
    with pytest.raises(UnknownName, match="'w' has no value yet"):
        store.read("w")
    store.assign("w", ABC)
    assert cell.initialised
    np.testing.assert_array_equal(store.read("w"), ABC)
    with pytest.raises(ArgError, match="already"):
        store.create("w", VECTOR)


def test_an_unknown_name_gets_a_hint():
    store = VariableStore()
    store.create("layer/weight", VECTOR)
    with pytest.raises(UnknownName, match="did you mean 'layer/weight'"):
        store.read("layer/weigth")


@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 0, 3), (2, 3)])
def test_every_dtype_and_rank_is_held_aligned(dtype, shape):
    store = VariableStore()
    value = np.ones(shape, dtype.numpy)
    cell = store.create("v", TensorType(dtype, shape), value)
    assert cell.layout.data % 64 == 0
    assert cell.layout.data != 0
    read = store.read("v")
    assert read.dtype == value.dtype
    assert read.shape == shape
    np.testing.assert_array_equal(read, value)


def test_a_reader_keeps_what_it_read_and_a_writer_may_reuse_its_array():
    store = VariableStore()
    value = ABC.copy()
    store.create("w", VECTOR, value)
    before = store.read("w")
    value[:] = 9
    store.assign("w", value)
    np.testing.assert_array_equal(before, ABC)
    value[:] = 0
    np.testing.assert_array_equal(store.read("w"), [9, 9, 9])


def test_a_value_that_does_not_fit_changes_nothing():
    store = VariableStore()
    cell = store.create("w", VECTOR, ABC)
    store.create("n", TensorType(I64, ()), np.int64(1) * np.ones((), np.int64))
    with pytest.raises(DTypeError, match="holds f32"):
        store.commit({"n": np.array(2), "w": ABC.astype(np.float64)})
    with pytest.raises(ShapeError, match="f32\\[3\\]"):
        store.commit({"n": np.array(2), "w": ABC[:2]})
    with pytest.raises(ShapeError):
        store.commit({"n": np.array(2)}, add={"w": ABC[:2]})
    with pytest.raises(UnknownName):
        store.commit({"n": np.array(2), "missing": ABC})
    assert store.read("n") == 1
    assert cell.version == 1


def test_a_symbolic_extent_may_change_but_is_one_number():
    store = VariableStore()
    n = Dim.symbol("n")
    cell = store.create("t", TensorType(F64, (n, n)), np.zeros((2, 2)))
    store.assign("t", np.ones((4, 4)))
    dims = (ctypes.c_int64 * 2).from_address(cell.layout.dims)
    assert list(dims) == [4, 4]
    with pytest.raises(ShapeError):
        store.assign("t", np.ones((4, 3)))
    with pytest.raises(ShapeError, match="to add"):
        store.add("t", np.ones((2, 2)))


def test_the_buffer_stays_in_place_and_the_version_counts():
    store = VariableStore()
    cell = store.create("w", VECTOR, ABC)
    address, data = cell.address, cell.layout.data
    for version in range(2, 5):
        store.assign("w", ABC)
        assert (cell.version, cell.address, cell.layout.data) == (version, address, data)


def test_a_reversed_or_overlapping_source_is_read_before_it_is_written():
    store = VariableStore()
    cell = store.create("w", VECTOR, ABC)
    store.assign("w", cell.array[::-1])
    np.testing.assert_array_equal(store.read("w"), [2, 1, 0])
    store.create("u", VECTOR, ABC)
    other = store.cell("u")
    store.commit({"w": other.array, "u": cell.array})  # an exchange
    np.testing.assert_array_equal(store.read("w"), ABC)
    np.testing.assert_array_equal(store.read("u"), [2, 1, 0])


def test_the_cell_shows_a_swap_done_behind_its_back():
    store = VariableStore()
    cell = store.create("w", VECTOR, ABC)
    cell.add_spare()
    layout = CellLayout.from_address(cell.address)
    spare = (ctypes.c_float * 3).from_address(layout.spare)
    spare[:] = [7, 8, 9]
    layout.data, layout.spare = layout.spare, layout.data
    np.testing.assert_array_equal(store.read("w"), [7, 8, 9])
    store.assign("w", ABC)
    np.testing.assert_array_equal(store.read("w"), ABC)


def test_a_deleted_variable_has_no_value_for_those_who_hold_its_cell():
    store = VariableStore()
    cell = store.create("w", VECTOR, ABC)
    store.delete("w")
    assert cell.layout.data == 0
    assert "w" not in store
    with pytest.raises(UnknownName):
        store.read("w")
    again = store.create("w", VECTOR, ABC + 1)
    assert again.address != cell.address


def test_containers_list_and_clear():
    store = VariableStore()
    for name, container in (("a", "main"), ("b", "eval"), ("c", "eval")):
        store.create(name, VECTOR, ABC, container)
    assert store.names("eval") == ["b", "c"]
    store.clear("eval")
    assert store.names() == ["a"]


def in_threads(count, work):
    errors = []

    def run(index):
        try:
            work(index)
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_no_addition_of_many_threads_is_lost():
    store = VariableStore()
    store.create("n", TensorType(I64, ()), np.zeros((), np.int64))
    in_threads(16, lambda _: [store.add("n", np.ones((), np.int64)) for _ in range(500)])
    assert store.read("n") == 8000


def test_snapshots_and_commits_are_whole():
    store = VariableStore()
    big = TensorType(I64, (2000,))
    for name in "ab":
        store.create(name, big, np.zeros(2000, np.int64))

    def work(index):
        for turn in range(60):
            if index % 2:
                value = np.full(2000, index * 1000 + turn)
                store.commit(
                    {"b": value, "a": value} if index % 4 == 1 else {"a": value, "b": value}
                )
            else:
                seen = store.snapshot(["b", "a"]).values
                assert (seen["a"] == seen["a"][0]).all()
                assert (seen["a"] == seen["b"]).all()

    in_threads(8, work)


def test_locks_are_handed_over_while_in_use():
    """Native code's locks replace Python's under running threads; no addition is lost."""
    store = VariableStore()
    store.create("n", TensorType(I64, ()), np.zeros((), np.int64))
    successor = PythonLocks()  # stands for the native ones: both keep the same words

    def work(index):
        for turn in range(300):
            store.add("n", np.ones((), np.int64))
            if index == 0 and turn == 50:
                store.use_locks(successor)

    in_threads(8, work)
    assert store.read("n") == 2400
    store.use_locks(successor)
    assert store.read("n") == 2400


def test_native_code_states_the_same_cell():
    theirs = layout_of(NativeCell)
    ours = {name: getattr(CellLayout, name).offset for name, _ in CellLayout._fields_}
    assert {name: field.offset for name, field in theirs.fields.items()} == ours
    assert theirs.size == ctypes.sizeof(CellLayout)


def test_a_snapshot_of_all_leaves_out_what_has_no_value():
    store = VariableStore()
    store.create("a", VECTOR, ABC)
    store.create("b", VECTOR)
    assert list(store.snapshot().values) == ["a"]
    assert store.snapshot().versions == {"a": 1}
    with pytest.raises(UnknownName):
        store.snapshot(["b"])


def test_a_released_variable_is_forgotten_and_its_name_is_free():
    store = VariableStore()
    first = store.create("w", VECTOR, ABC)
    store.release(first)
    assert store.names() == []
    second = store.create("w", VECTOR, ABC)
    store.release(first)  # another variable has the name by now
    assert store.names() == ["w"]
    assert store.cell("w") is second


def test_a_release_in_the_middle_of_another_call_waits_for_nobody():
    store = VariableStore()
    cell = store.create("w", VECTOR, ABC)
    with store._table:  # what a collection during any call of the store comes upon
        store.release(cell)
        assert "w" in store._cells
    assert store.names() == []
