"""Saving: write beside, sync, rename once, sync, only then remove what was replaced.

The order matters, and each sync has a power-loss test that fails without it:

1. data files, each synced; the manifest under a temporary name, synced;
2. the directory, so that the new names are on the disk before the rename can be;
3. the rename of the manifest: the commit;
4. the directory, so that the rename is on the disk before anything it replaced is removed.

A failure before the commit removes what was written; one at or after it removes nothing, since
the disk may hold either state. A sync that failed is not tried again: its data may be gone.

Invariants: one saver at a time; files that no manifest names are removed by the next save, and
only files with names that a save gives.
Not here: taking the values out of variables (a snapshot, before).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from safetensors.numpy import save as to_safetensors

from ...compiler.errors import TracemillError, error
from ...compiler.types import DType, TensorType, dtype_of, real_part_of
from ..files import Bytes, DiskFiles, Files, read_all
from .manifest import DATA_NAME, MAX_BYTES, NAME, DataFile, Manifest, Tensor, decode, encode
from .names import key_of

Array = np.ndarray[Any, Any]

LOCK = ".lock"
DATA_FILE_BYTES = 1 << 28
_TEMPORARY = f"{NAME}.part"
_NOTHING = Manifest(0, (), ())


def save(
    path: str,
    tensors: Mapping[str, Array],
    *,
    metadata: Mapping[str, Any] | None = None,
    files: Files | None = None,
    data_file_bytes: int = DATA_FILE_BYTES,
) -> None:
    """Make the directory `path` hold `tensors` (and plain JSON `metadata`), or raise.

    CheckpointError for what the disk refuses: the checkpoint that was there still loads.
    """
    disk = files or DiskFiles()
    values = {name: _stored(name, value) for name, value in tensors.items()}
    encode(Manifest(0, (), (), metadata or {}))  # judges the metadata before anything is written
    try:
        _make_directory(disk, path)
        with disk.lock(os.path.join(path, LOCK)):
            _Save(disk, path).run(values, metadata or {}, data_file_bytes)
    except BlockingIOError as problem:
        raise error("TM510", f"somebody else is saving to {path} now") from problem
    except OSError as problem:
        if isinstance(problem, TracemillError):
            raise
        raise error(
            "TM510",
            f"could not save to {path}: {problem}",
            hint="what was saved before still loads",
        ) from problem


class _Save:
    """One save into a directory whose lock is held."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._written: list[str] = []
        self._committing = False

    def run(self, values: Mapping[str, _Stored], metadata: Mapping[str, Any], limit: int) -> None:
        old = self._current()
        self._sweep(None if old is None else {file.name for file in old.files})
        old = old or _NOTHING
        try:
            self._write(values, metadata, limit, old.sequence + 1)
        except BaseException:
            if not self._committing:
                for name in self._written:
                    self._discard(name)
            raise
        for file in old.files:
            self._discard(file.name)

    def _write(
        self,
        values: Mapping[str, _Stored],
        metadata: Mapping[str, Any],
        limit: int,
        sequence: int,
    ) -> None:
        nonce = self._files.unused_name()
        files: list[DataFile] = []
        tensors: list[Tensor] = []
        for group in _groups(values, limit):
            name = f"data-{nonce}-{len(files):05}.safetensors"
            data = to_safetensors({key_of(v.name): v.array for v in group})
            file, placed = _described(name, data, group, len(files))
            self._write_file(name, data)
            files.append(file)
            tensors.extend(placed)
        order = {name: index for index, name in enumerate(values)}
        tensors.sort(key=lambda tensor: order[tensor.name])
        manifest = Manifest(sequence, tuple(files), tuple(tensors), metadata)
        self._write_file(_TEMPORARY, encode(manifest))
        self._files.fsync_directory(self._path)
        self._committing = True
        self._files.rename(self._place(_TEMPORARY), self._place(NAME))
        self._files.fsync_directory(self._path)

    def _write_file(self, name: str, data: Bytes) -> None:
        file = self._files.create(self._place(name))
        self._written.append(name)
        with file:
            file.write(data)
            file.fsync()

    def _current(self) -> Manifest | None:
        """The manifest to be replaced; None for one that cannot be read."""
        try:
            return decode(read_all(self._files, self._place(NAME), MAX_BYTES), NAME)
        except FileNotFoundError:
            return _NOTHING
        except TracemillError:
            return None

    def _sweep(self, kept: set[str] | None) -> None:
        """Remove what a save that did not end has left; no data where it may be of use still."""
        for name in self._files.listdir(self._path):
            orphan = kept is not None and DATA_NAME.fullmatch(name) and name not in kept
            if name == _TEMPORARY or orphan:
                self._discard(name)

    def _discard(self, name: str) -> None:
        try:
            self._files.unlink(self._place(name))
        except OSError:
            pass  # an orphan; the next save tries again

    def _place(self, name: str) -> str:
        return os.path.join(self._path, name)


class _Stored:
    """A tensor as it is stored: complex numbers as pairs of reals in a last axis of two."""

    __slots__ = ("array", "name", "type")

    def __init__(self, name: str, type: TensorType, array: Array) -> None:
        self.name = name
        self.type = type
        self.array = array


def _stored(name: str, value: Array) -> _Stored:
    dtype = _element_type(name, value)
    flat = np.ascontiguousarray(value).reshape(-1)
    shape = value.shape
    if dtype.is_complex:
        flat, shape = flat.view(real_part_of(dtype).numpy), (*shape, 2)
    return _Stored(name, TensorType(dtype, value.shape), flat.reshape(shape))


def _element_type(name: str, value: Array) -> DType:
    dtype = dtype_of(value.dtype)
    if dtype is None:
        raise error("TM210", f"{name!r} is an array of {value.dtype}, which cannot be saved")
    return dtype


def _groups(values: Mapping[str, _Stored], limit: int) -> Iterator[list[_Stored]]:
    """Tensors for one data file each: about `limit` bytes, or one tensor."""
    group: list[_Stored] = []
    size = 0
    for value in values.values():
        if group and size + value.array.nbytes > limit:
            yield group
            group, size = [], 0
        group.append(value)
        size += value.array.nbytes
    if group:
        yield group


def _described(
    name: str, data: bytes, group: list[_Stored], index: int
) -> tuple[DataFile, list[Tensor]]:
    """What the manifest says about a data file and the tensors in it."""
    header = 8 + int.from_bytes(data[:8], "little")
    places = json.loads(data[8:header])
    view = memoryview(data)
    tensors = []
    for value in group:
        begin, end = places[key_of(value.name)]["data_offsets"]
        digest = hashlib.sha256(view[header + begin : header + end]).hexdigest()
        tensors.append(Tensor(value.name, value.type, index, header + begin, end - begin, digest))
    file = DataFile(name, len(data), header, hashlib.sha256(view[:header]).hexdigest())
    return file, tensors


def _make_directory(files: Files, path: str) -> None:
    """Have a real directory at `path`, its name on the disk."""
    try:
        info = files.stat(path)
    except FileNotFoundError:
        parent = os.path.dirname(path.rstrip("/")) or "."
        try:
            files.stat(parent)
        except FileNotFoundError:
            _make_directory(files, parent)
        try:
            files.mkdir(path)
        except FileExistsError:
            pass  # another saver was faster; its directory is as good
        files.fsync_directory(parent)
        info = files.stat(path)
    if info.kind != "directory":
        raise error("TM510", f"{path} is a {info.kind}, not a directory")
