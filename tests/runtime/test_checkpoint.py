"""Checkpoints: what was saved comes back, or an error says what did not, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file

from tracemill.compiler.dims import Dim
from tracemill.compiler.errors import (
    ArgError,
    CheckpointError,
    DTypeError,
    MismatchError,
)
from tracemill.compiler.types import DTYPES, F32, F64, I64, TensorType, dtype_of
from tracemill.runtime.checkpoint import Checkpoint, compare, restore, save
from tracemill.runtime.files import DiskFiles
from tracemill.runtime.interposed_files import Interposed
from tracemill.runtime.memory_files import MemoryFiles

SMALL = {"w": np.array([1.5, -2.0], np.float32), "step": np.array(7)}


def types_of(tensors):
    return {name: TensorType(dtype_of(v.dtype), v.shape) for name, v in tensors.items()}


def back(path, tensors, **options):
    return restore(str(path), types_of(tensors), **options)


def assert_same(found, tensors):
    assert list(found) == list(tensors)
    for name, value in tensors.items():
        assert found[name].dtype == value.dtype
        assert found[name].shape == value.shape
        assert found[name].tobytes() == np.ascontiguousarray(value).tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3, 4)])
def test_every_dtype_comes_back_bit_for_bit(tmp_path, rng, shape):
    tensors = {}
    for dtype in DTYPES:
        raw = rng.integers(0, 2 if dtype.name == "bool" else 256, (*shape, dtype.itemsize))
        tensors[dtype.name] = raw.astype(np.uint8).reshape(-1).view(dtype.numpy).reshape(shape)
    save(str(tmp_path / "c"), tensors)
    assert_same(back(tmp_path / "c", tensors), tensors)


def test_strided_reversed_and_fortran_arrays_are_saved_as_they_read(tmp_path):
    base = np.arange(24.0).reshape(4, 6)
    tensors = {"a": base[::-1, ::2], "b": np.asfortranarray(base), "c": base.T, "d": base[1, 2:3]}
    save(str(tmp_path), tensors)
    assert_same(back(tmp_path, tensors), tensors)


def test_tensors_are_spread_over_data_files_that_other_tools_read(tmp_path):
    tensors = {f"t{i}": np.full(100, i, np.float64) for i in range(7)}
    save(str(tmp_path), tensors, data_file_bytes=2000)
    parts = [n for n in os.listdir(tmp_path) if n.endswith(".safetensors")]
    assert len(parts) == 4
    seen = {}
    for part in parts:
        seen |= load_file(str(tmp_path / part))
    assert_same({name: seen[name] for name in tensors}, tensors)
    assert_same(back(tmp_path, tensors), tensors)


def test_nothing_at_all_is_a_checkpoint(tmp_path):
    save(str(tmp_path), {})
    assert back(tmp_path, {}) == {}


NAMES = [
    "../../x", "/etc/passwd", "a/b", "", ".", "..", "nul\0", 'quo"te', "\\", "line\nbreak",
    "__metadata__", "%__metadata__", "%", "%25", "ü", "\ud800", "a" * 1_000_000,
    "a" * 999_999 + "b", "CON", "manifest.json", "data-0000000000000000-00000.safetensors",
]  # fmt: skip


def test_names_are_only_names(tmp_path):
    tensors = {name: np.array(i) for i, name in enumerate(NAMES)}
    save(str(tmp_path / "in" / "c"), tensors)
    assert_same(back(tmp_path / "in" / "c", tensors), tensors)
    everything = [os.path.join(d, f) for d, _, files in os.walk(tmp_path) for f in files]
    assert len(everything) == 3
    assert all(os.path.dirname(f) == str(tmp_path / "in" / "c") for f in everything)


def test_metadata_is_plain_json(tmp_path):
    save(str(tmp_path), SMALL, metadata={"epoch": 3, "lr": [0.1, None]})
    with Checkpoint(str(tmp_path)) as checkpoint:
        assert checkpoint.metadata == {"epoch": 3, "lr": [0.1, None]}
        assert checkpoint.types == types_of(SMALL)
    for bad in ({"x": object()}, {"x": float("nan")}, {"x": b""}):
        with pytest.raises(ArgError, match="JSON"):
            save(str(tmp_path), {}, metadata=bad)
    assert_same(back(tmp_path, SMALL), SMALL)


@pytest.mark.parametrize(
    "value", [np.array([{}], object), np.array(["a"]), np.array([1], ">f4"), np.zeros(1, "M8[s]")]
)
def test_what_cannot_be_saved_is_refused_before_anything_is_written(tmp_path, value):
    save(str(tmp_path), SMALL)
    with pytest.raises(DTypeError):
        save(str(tmp_path), {"ok": np.ones(3), "bad": value})
    assert_same(back(tmp_path, SMALL), SMALL)


def test_a_save_replaces_and_leaves_no_rubbish(tmp_path):
    for turn in range(3):
        (tmp_path / "data-00000000000000aa-00000.safetensors").write_bytes(b"left over")
        (tmp_path / "manifest.json.part").write_bytes(b"left over")
        (tmp_path / "notes.txt").write_text("mine")
        save(str(tmp_path), {"w": np.array(turn)})
        assert len(os.listdir(tmp_path)) == 4
    with Checkpoint(str(tmp_path)) as checkpoint:
        assert checkpoint.read("w") == 2
        assert checkpoint.manifest.sequence == 3


def test_a_damaged_checkpoint_can_be_saved_over(tmp_path):
    save(str(tmp_path), SMALL)
    (tmp_path / "manifest.json").write_bytes(b"{}")
    (tmp_path / "manifest.json.part").write_bytes(b"")
    save(str(tmp_path), SMALL)
    assert_same(back(tmp_path, SMALL), SMALL)


def test_a_copied_or_moved_directory_loads(tmp_path):
    save(str(tmp_path / "a"), SMALL)
    (tmp_path / "a").rename(tmp_path / "b.tmp")
    assert_same(back(tmp_path / "b.tmp", SMALL), SMALL)


# -- what does not fit


def test_a_missing_path_is_file_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        back(tmp_path / "none", SMALL)
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        back(tmp_path, SMALL)


def test_differences_are_listed_all_at_once(tmp_path):
    tensors = {"a": np.ones(2), "b": np.ones(2), "c": np.ones((2, 3), np.float32), "d": np.ones(1)}
    save(str(tmp_path), tensors)
    n = Dim.symbol("n")
    expected = {
        "a": TensorType(F32, (2,)), "b": TensorType(F64, (3,)), "c": TensorType(F32, (n, 3)),
        "x": TensorType(I64, ()), "y": TensorType(I64, ()),
    }  # fmt: skip
    with pytest.raises(MismatchError) as caught:
        restore(str(tmp_path), expected)
    text = str(caught.value)
    for part in ("missing from the checkpoint: 'x'", "'y'", "only in the checkpoint: 'd'",
                 "'a' is f64[2] in the checkpoint, expected f32[2]", "'b' is f64[2]"):  # fmt: skip
        assert part in text
    assert "'c'" not in text
    with Checkpoint(str(tmp_path)) as checkpoint:
        report = compare(checkpoint.types, expected)
    assert report.missing == ("x", "y")
    assert report.extra == ("d",)
    assert [row[0] for row in report.mismatched] == ["a", "b"]
    assert not compare(types_of(SMALL), types_of(SMALL))


# -- two at once


def test_a_second_saver_is_told(tmp_path):
    save(str(tmp_path), SMALL)
    with DiskFiles().lock(str(tmp_path / ".lock")):
        with pytest.raises(CheckpointError, match="somebody else"):
            save(str(tmp_path), SMALL)
    save(str(tmp_path), SMALL)


def test_a_reader_that_meets_a_saver_reads_one_state():
    disk = MemoryFiles()
    save("/c", {"w": np.array(1)}, files=disk)

    overtaken = []

    def hook(operation, path):
        """The checkpoint is replaced between reading the manifest and opening the data."""
        if operation == "open" and path.endswith(".safetensors") and not overtaken:
            overtaken.append(path)
            save("/c", {"w": np.array(2)}, files=disk)
        return True

    assert back("/c", {"w": np.array(0)}, files=Interposed(disk, hook))["w"] == 2
    assert overtaken


SAVER = """
import sys, numpy as np
from tracemill.runtime.checkpoint import save
turn = int(sys.argv[2])
print("ready", flush=True)
while True:
    save(sys.argv[1], {"a": np.full(20000, turn), "b": np.full(20000, -turn)}, data_file_bytes=1000)
    turn += 1
    print(turn, flush=True)
"""


@pytest.mark.processes
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_kill_at_any_moment_never_loses_the_state(tmp_path, rng):
    expected = types_of({"a": np.zeros(20000, int), "b": np.zeros(20000, int)})
    path = str(tmp_path / "c")
    saved = 1
    for _ in range(8):
        command = [sys.executable, "-P", "-c", SAVER, path, str(saved)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "ready\n"
        reported = int(child.stdout.readline()) - 1  # at least one save returned
        try:
            child.wait(timeout=rng.random() * 0.02)
        except subprocess.TimeoutExpired:
            pass
        child.send_signal(signal.SIGKILL)
        lines = child.communicate()[0].split()
        reported = int(lines[-1]) - 1 if lines else reported
        found = restore(path, expected)
        turn = int(found["a"][0])
        assert turn in (reported, reported + 1)
        assert (found["a"] == turn).all()
        assert (found["b"] == -turn).all()
        saved = turn + 1


def test_bf16_survives_without_its_own_library(tmp_path):
    value = np.array([1.5, float("nan"), -0.0], ml_dtypes.bfloat16)
    save(str(tmp_path), {"h": value})
    assert back(tmp_path, {"h": value})["h"].tobytes() == value.tobytes()
