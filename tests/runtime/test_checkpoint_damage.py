"""Damaged, forged and foreign checkpoints: refused, with the tensor named, and nothing run."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest

from tracemill.compiler.errors import (
    CheckpointError,
    DataLossError,
    FormatError,
    UnsafeError,
    VersionError,
)
from tracemill.compiler.types import TensorType, dtype_of
from tracemill.runtime.checkpoint import Checkpoint, restore, save
from tracemill.runtime.memory_files import MemoryFiles

SMALL = {"w": np.array([1.5, -2.0], np.float32), "step": np.array(7)}


def types_of(tensors):
    return {name: TensorType(dtype_of(v.dtype), v.shape) for name, v in tensors.items()}


def back(path, tensors, **options):
    return restore(str(path), types_of(tensors), **options)


def assert_same(found, tensors):
    assert {n: v.tobytes() for n, v in found.items()} == {
        n: v.tobytes() for n, v in tensors.items()
    }


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
        return (exec, ("import os; os.environ['TRACEMILL_WAS_FOOLED'] = 'yes'",))


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
    assert os.getenv("TRACEMILL_WAS_FOOLED") is None


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
