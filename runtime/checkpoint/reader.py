"""Restoring: judge the whole manifest, open every data file, then read what is asked for.

A saver may replace the checkpoint while it is being opened; the reader then finds a data file
gone and a new manifest in place of the old, and starts again with that. Once open, it has all
files in hand and reads one state.

Invariants: a tensor is given only after its checksum; memory is allocated only for bytes that are
there; `restore` gives everything or raises.
Not here: putting values into variables (the store's `commit`, all or nothing).
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import numpy as np

from ...compiler.errors import TracemillError, error
from ...compiler.records import dataclass
from ...compiler.types import BOOL, TensorType
from ..files import DiskFiles, File, Files, read_all
from .manifest import MAX_BYTES, NAME, DataFile, Manifest, Tensor, damaged, decode, refuse_foreign

Array = np.ndarray[Any, Any]

_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class Report:
    """How a checkpoint differs from what is expected: names missing from it, names it has too
    many, and (name, expected, found) where types differ."""

    missing: tuple[str, ...]
    extra: tuple[str, ...]
    mismatched: tuple[tuple[str, TensorType, TensorType], ...]

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra or self.mismatched)

    def __str__(self) -> str:
        lines = [f"missing from the checkpoint: {name!r}" for name in self.missing]
        lines += [f"only in the checkpoint: {name!r}" for name in self.extra]
        lines += [
            f"{name!r} is {found!r} in the checkpoint, expected {expected!r}"
            for name, expected, found in self.mismatched
        ]
        return "\n".join(lines)


class Checkpoint:
    """An open checkpoint; used by one thread, closed by `close` or as a context manager.

    FileNotFoundError where `path` does not exist, CheckpointError where it holds no checkpoint,
    DataLossError where it is damaged, UnsafeError where it is a pickle or an archive.
    """

    def __init__(self, path: str, *, files: Files | None = None) -> None:
        self.path = path
        self._disk = files or DiskFiles()
        self._stack = ExitStack()
        self._open: list[File] = []
        self._judge_path()
        self.manifest = self._load()
        self._tensors = {tensor.name: tensor for tensor in self.manifest.tensors}

    @property
    def types(self) -> dict[str, TensorType]:
        """The type of every tensor, in the order they were saved."""
        return {tensor.name: tensor.type for tensor in self.manifest.tensors}

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What was saved beside the tensors."""
        return self.manifest.metadata

    def read(self, name: str) -> Array:
        """One tensor, checked. KeyError for a name that is not there."""
        tensor = self._tensors[name]
        raw = np.empty(tensor.size, np.uint8)
        if tensor.size:
            try:
                count = self._open[tensor.file].read_into(raw.data, tensor.offset)
            except OSError as problem:
                raise self._loss(tensor, f"it could not be read: {problem}") from problem
            if count != tensor.size:
                raise self._loss(tensor, f"only {count} of its {tensor.size} bytes are there")
        if hashlib.sha256(raw.data if tensor.size else b"").hexdigest() != tensor.sha256:
            raise self._loss(tensor, "its checksum does not match")
        if tensor.type.dtype is BOOL and tensor.size and int(raw.max()) > 1:
            raise self._loss(tensor, "it has a bool that is neither 0 nor 1")
        return raw.view(tensor.type.dtype.numpy).reshape(_extents(tensor.type))

    def values(self, expected: Mapping[str, TensorType]) -> dict[str, Array]:
        """The value of every name in `expected`, if the checkpoint has exactly those.

        MismatchError lists every difference; nothing has been read then.
        """
        report = compare(self.types, expected)
        if report:
            raise error(
                "TM512",
                f"the checkpoint in {self.path} does not fit; nothing was restored",
                detail=str(report),
            )
        return {name: self.read(name) for name in expected}

    def close(self) -> None:
        """Close the data files."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _judge_path(self) -> None:
        info = self._disk.stat(self.path)
        if info.kind == "link":  # a link to a directory is the user's own way to say "latest"
            return
        if info.kind != "directory":
            with self._disk.open(self.path) as file:
                head = bytearray(8)
                count = file.read_into(head, 0)
            refuse_foreign(bytes(head[:count]), self.path)
            raise error("TM501", f"{self.path} is a file; a checkpoint is a directory")

    def _load(self) -> Manifest:
        """The manifest, with all its data files open."""
        for _ in range(_ATTEMPTS):
            data = self._manifest_bytes()
            manifest = decode(data, os.path.join(self.path, NAME))
            try:
                self._open = [self._open_file(i, manifest) for i in range(len(manifest.files))]
            except FileNotFoundError as problem:
                self.close()
                if self._manifest_bytes() == data:
                    raise self._lost_file(problem, manifest) from problem
            except BaseException:
                self.close()
                raise
            else:
                return manifest
        raise error("TM510", f"{self.path} is replaced faster than it can be opened")

    def _manifest_bytes(self) -> bytes:
        try:
            return read_all(self._disk, os.path.join(self.path, NAME), MAX_BYTES)
        except FileNotFoundError:
            raise error("TM510", f"{self.path} holds no checkpoint: it has no {NAME}") from None
        except OSError as problem:
            if problem.errno == errno.EFBIG:
                raise damaged(NAME, "it is larger than any manifest") from None
            raise error("TM510", f"{self.path} could not be read: {problem}") from problem

    def _open_file(self, index: int, manifest: Manifest) -> File:
        """Data file `index`, its size and header checked."""
        described = manifest.files[index]
        inside = [tensor for tensor in manifest.tensors if tensor.file == index]
        try:
            file = self._stack.enter_context(
                self._disk.open(os.path.join(self.path, described.name))
            )
            info = file.stat()
            if info.kind != "file" or info.size != described.size:
                why = f"it has {info.size} bytes, {described.size} were written"
                raise damaged(described.name, f"{why}; {_named(inside, info.size)}")
            header = bytearray(described.header)
            file.read_into(header, 0)
        except FileNotFoundError:
            raise
        except OSError as problem:
            if isinstance(problem, TracemillError):
                raise
            why = f"could not be read: {problem}"
            raise damaged(described.name, f"{why}; {_named(inside)}") from problem
        if hashlib.sha256(header).hexdigest() != described.sha256:
            raise damaged(
                described.name, f"the checksum of its header does not match; {_named(inside)}"
            )
        return file

    def _lost_file(self, problem: OSError, manifest: Manifest) -> TracemillError:
        name = os.path.basename(str(problem.filename))
        index = [file.name for file in manifest.files].index(name)
        inside = [tensor for tensor in manifest.tensors if tensor.file == index]
        return damaged(name, f"it is missing; {_named(inside)}")

    def _loss(self, tensor: Tensor, why: str) -> TracemillError:
        file: DataFile = self.manifest.files[tensor.file]
        return damaged(file.name, f"tensor {tensor.name!r} is damaged: {why}")


def compare(found: Mapping[str, TensorType], expected: Mapping[str, TensorType]) -> Report:
    """How the tensors found differ from those expected; a symbolic extent fits any number."""
    return Report(
        tuple(name for name in expected if name not in found),
        tuple(name for name in found if name not in expected),
        tuple(
            (name, type, found[name])
            for name, type in expected.items()
            if name in found and not _fits(type, found[name])
        ),
    )


def restore(
    path: str, expected: Mapping[str, TensorType], *, files: Files | None = None
) -> dict[str, Array]:
    """The value of every name in `expected`, if the checkpoint has exactly those.

    MismatchError lists every difference; nothing has been read then.
    """
    with Checkpoint(path, files=files) as checkpoint:
        return checkpoint.values(expected)


def _fits(expected: TensorType, found: TensorType) -> bool:
    if expected.dtype != found.dtype or expected.rank != found.rank:
        return False
    pairs = zip(expected.shape, found.shape)
    return all(want == have or not isinstance(want, int) for want, have in pairs)


def _extents(type: TensorType) -> tuple[int, ...]:
    return tuple(size for size in type.shape if isinstance(size, int))


def _named(tensors: Iterable[Tensor], size: int = 0) -> str:
    """The tensors lost with a file of which `size` bytes can be believed, for a message."""
    inside = [(t.offset + t.size, repr(t.name)) for t in tensors]
    lost = [name for end, name in inside if end > size] or [name for _, name in inside]
    more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
    return f"tensor {', '.join(lost[:3])}{more} cannot be restored"
