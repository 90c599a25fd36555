"""Checkpoints: what was saved comes back, or an error says what did not, and nothing else."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import zipfile

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file

from tracemill.compiler.dims import Dim
from tracemill.compiler.errors import (
    ArgError,
    CheckpointError,
    DataLossError,
    DTypeError,
    FormatError,
    MismatchError,
    UnsafeError,
    VersionError,
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


# -- damage


def saved_in_memory():
    disk = MemoryFiles()
    save("/c", SMALL, files=disk)
    return disk, [f"/c/{name}" for name in disk.listdir("/c") if name != ".lock"]


def damage_is_seen(disk, path):
    with pytest.raises(DataLossError) as caught:
        back("/c", SMALL, files=disk)
    text = str(caught.value)
    assert ("'w'" in text or "'step'" in text) if "data-" in path else "manifest" in text


def test_every_truncation_is_refused():
    disk, paths = saved_in_memory()
    for path in paths:
        whole = bytes(disk.contents(path))
        for length in range(len(whole)):
            disk.contents(path)[:] = whole[:length]
            damage_is_seen(disk, path)
        disk.contents(path)[:] = whole + b"\0"
        damage_is_seen(disk, path)
        disk.contents(path)[:] = whole
    assert_same(back("/c", SMALL, files=disk), SMALL)


def test_every_flipped_bit_is_refused():
    disk, paths = saved_in_memory()
    for path in paths:
        data = disk.contents(path)
        for bit in range(8 * len(data)):
            data[bit // 8] ^= 1 << bit % 8
            try:
                back("/c", SMALL, files=disk)
            except DataLossError as problem:
                text = str(problem)
                named = "'w'" in text or "'step'" in text
                assert named if "data-" in path else "manifest" in text
            else:
                raise AssertionError(f"bit {bit} of {path} was not missed")
            data[bit // 8] ^= 1 << bit % 8
    assert_same(back("/c", SMALL, files=disk), SMALL)


def test_damage_is_told_of_the_tensor_that_has_it(tmp_path):
    tensors = {"good": np.arange(50.0), "bad": np.arange(50.0, 100.0)}
    save(str(tmp_path), tensors)
    (part,) = tmp_path.glob("*.safetensors")
    data = bytearray(part.read_bytes())
    at = data.index(np.float64(70.0).tobytes())
    data[at] ^= 1
    part.write_bytes(data)
    with pytest.raises(DataLossError, match="tensor 'bad' is damaged"):
        back(tmp_path, tensors)
    with Checkpoint(str(tmp_path)) as checkpoint:
        np.testing.assert_array_equal(checkpoint.read("good"), tensors["good"])
    part.unlink()
    with pytest.raises(DataLossError, match=r"missing[\s\S]*'good', 'bad'"):
        back(tmp_path, tensors)


def test_a_data_file_of_another_save_is_refused(tmp_path):
    for name in "ab":
        save(str(tmp_path / name), {"w": np.array([ord(name)])})
    (a,), (b,) = (list((tmp_path / n).glob("*.safetensors")) for n in "ab")
    a.write_bytes(b.read_bytes())
    with pytest.raises(DataLossError, match="'w'"):
        back(tmp_path / "a", {"w": np.array([1])})


def sealed(body: bytes) -> bytes:
    return b'{"checksum":"%s","content":%s}\n' % (hashlib.sha256(body).hexdigest().encode(), body)


def contents(change=lambda content: None) -> bytes:
    """A manifest that is sealed properly, after `change`."""
    disk, _ = saved_in_memory()
    content = json.loads(disk.contents("/c/manifest.json"))["content"]
    change(content)
    return json.dumps(content).encode()


def set_tensor(index, field, value):
    def change(content):
        content["tensors"][index][field] = value

    return change


FORGED = {
    "not JSON": b"{",
    "not UTF-8": b'{"\xff":1}',
    "a list": b"[]",
    "duplicate key": contents().replace(b'"version": 1', b'"version": 1, "version": 1'),
    "deep": b'{"metadata":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "huge integer": contents().replace(b'"version": 1', b'"version": 1' + b"0" * 5000),
    "nan": contents().replace(b'"sequence": 1', b'"sequence": NaN'),
    "true for a number": contents().replace(b'"sequence": 1', b'"sequence": true'),
    "overlap": contents(set_tensor(0, 4, 200)),
    "negative offset": contents(set_tensor(0, 4, -8)),
    "misfit of shape": contents(set_tensor(0, 2, [3])),
    "overflow": contents(set_tensor(0, 2, [1 << 62, 4])),
    "unknown dtype": contents(set_tensor(0, 1, "object")),
    "dtype of another kind": contents(set_tensor(0, 1, [])),
    "file out of range": contents(set_tensor(0, 3, 9)),
    "two of one name": contents(set_tensor(0, 0, "step")),
    "path as file": contents(lambda c: c["files"][0].__setitem__(0, "../../etc/passwd")),
    "absolute file": contents(lambda c: c["files"][0].__setitem__(0, "/etc/passwd")),
    "hole": contents(lambda c: c["files"][0].__setitem__(1, c["files"][0][1] + 1)),
    "missing row": contents(lambda c: c["tensors"][0].pop()),
    "no metadata": contents(lambda c: c.pop("metadata")),
}


@pytest.mark.parametrize("body", FORGED.values(), ids=FORGED.keys())
def test_a_manifest_with_a_proper_checksum_is_still_judged(body):
    disk, _ = saved_in_memory()
    disk.contents("/c/manifest.json")[:] = sealed(body)
    with pytest.raises(DataLossError):
        back("/c", SMALL, files=disk)


def test_a_claimed_size_is_compared_before_memory_is_taken(tmp_path):
    def grow(content):
        content["tensors"] = [["w", "f64", [1 << 40], 0, content["files"][0][2], 8 << 40, "0" * 64]]
        content["files"][0][1] = content["files"][0][2] + (8 << 40)

    disk, _ = saved_in_memory()
    disk.contents("/c/manifest.json")[:] = sealed(contents(grow))
    with pytest.raises(DataLossError):
        Checkpoint("/c", files=disk)


def test_a_newer_version_is_told_apart():
    disk, _ = saved_in_memory()
    body = contents(lambda c: c.__setitem__("version", 2))
    disk.contents("/c/manifest.json")[:] = sealed(body)
    with pytest.raises(VersionError, match="version 2"):
        back("/c", SMALL, files=disk)


class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("/tmp/tracemill-was-fooled",))


def dangerous():
    archive, arrays = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr("data.pkl", pickle.dumps(Bomb()))
    np.savez(arrays, a=np.array([Bomb()], object))
    array = io.BytesIO()
    np.save(array, np.array([Bomb()], object), allow_pickle=True)
    return [pickle.dumps(Bomb()), archive.getvalue(), arrays.getvalue(), array.getvalue()]


@pytest.mark.parametrize("data", dangerous(), ids=["pickle", "zip", "npz", "npy"])
def test_pickles_and_archives_are_not_opened(tmp_path, data):
    (tmp_path / "model.pt").write_bytes(data)
    with pytest.raises(UnsafeError):
        back(tmp_path / "model.pt", SMALL)
    save(str(tmp_path / "c"), SMALL)
    (tmp_path / "c" / "manifest.json").write_bytes(data)
    with pytest.raises(UnsafeError):
        back(tmp_path / "c", SMALL)
    assert not os.path.exists("/tmp/tracemill-was-fooled")


def test_another_file_is_no_checkpoint(tmp_path):
    (tmp_path / "x").write_text("hello")
    with pytest.raises(FormatError, match="is a directory"):
        back(tmp_path / "x", SMALL)
    with pytest.raises(CheckpointError, match="not a directory"):
        save(str(tmp_path / "x"), SMALL)
    with pytest.raises(CheckpointError):
        save(str(tmp_path / "x" / "y"), SMALL)


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_a_link_is_read_but_not_saved_through(tmp_path):
    save(str(tmp_path / "real"), SMALL)
    (tmp_path / "latest").symlink_to(tmp_path / "real")
    assert_same(back(tmp_path / "latest", SMALL), SMALL)
    with pytest.raises(CheckpointError, match="link"):
        save(str(tmp_path / "latest"), SMALL)
    (part,) = (tmp_path / "real").glob("*.safetensors")
    part.rename(tmp_path / "elsewhere")
    part.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataLossError):
        back(tmp_path / "real", SMALL)


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
    for _ in range(12):
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
