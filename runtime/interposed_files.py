"""A file layer that shows every operation to a hook before it happens.

The hook may raise (a failing disk, a process killed at that moment) or, for a sync, have it
skipped (a mutation that a power-loss test must notice).

Invariants: an operation whose hook raised did not happen, except that a file is closed.
Not here: what to fail and when (tests).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from .files import Bytes, File, FileInfo, Files

# Shown (operation, path) before each operation; may raise. False from a sync skips it.
Hook = Callable[[str, str], bool]


class Interposed:
    """A `Files` that asks `hook` before every operation, on names and on open files."""

    def __init__(self, files: Files, hook: Hook) -> None:
        self._files = files
        self._hook = hook

    def open(self, path: str) -> File:
        """See `Files`."""
        self._hook("open", path)
        return _InterposedFile(self._files.open(path), self._hook, path)

    def create(self, path: str, mode: int = 0o600) -> File:
        """See `Files`."""
        self._hook("create", path)
        return _InterposedFile(self._files.create(path, mode), self._hook, path)

    def rename(self, old: str, new: str) -> None:
        """See `Files`."""
        self._hook("rename", old)
        self._files.rename(old, new)

    def unlink(self, path: str) -> None:
        """See `Files`."""
        self._hook("unlink", path)
        self._files.unlink(path)

    def mkdir(self, path: str, mode: int = 0o700) -> None:
        """See `Files`."""
        self._hook("mkdir", path)
        self._files.mkdir(path, mode)

    def listdir(self, path: str) -> list[str]:
        """See `Files`."""
        self._hook("listdir", path)
        return self._files.listdir(path)

    def holds_more(self, path: str, count: int) -> bool:
        """See `Files`."""
        self._hook("listdir", path)
        return self._files.holds_more(path, count)

    def stat(self, path: str) -> FileInfo:
        """See `Files`."""
        self._hook("stat", path)
        return self._files.stat(path)

    def fsync_directory(self, path: str) -> None:
        """See `Files`."""
        if self._hook("fsync_directory", path):
            self._files.fsync_directory(path)

    def chmod(self, path: str, mode: int) -> None:
        """See `Files`."""
        self._hook("chmod", path)
        self._files.chmod(path, mode)

    def utime(self, path: str, modified: float) -> None:
        """See `Files`."""
        self._hook("utime", path)
        self._files.utime(path, modified)

    def lock(self, path: str) -> AbstractContextManager[None]:
        """See `Files`."""
        self._hook("lock", path)
        return self._files.lock(path)

    def user(self) -> int:
        """See `Files`."""
        return self._files.user()

    def unused_name(self) -> str:
        """See `Files`."""
        return self._files.unused_name()


class _InterposedFile:
    def __init__(self, file: File, hook: Hook, path: str) -> None:
        self._file = file
        self._hook = hook
        self._path = path

    def read_into(self, target: bytearray | memoryview, offset: int) -> int:
        self._hook("read", self._path)
        return self._file.read_into(target, offset)

    def write(self, data: Bytes) -> None:
        self._hook("write", self._path)
        self._file.write(data)

    def fsync(self) -> None:
        if self._hook("fsync", self._path):
            self._file.fsync()

    def stat(self) -> FileInfo:
        self._hook("fstat", self._path)
        return self._file.stat()

    def close(self) -> None:
        try:
            self._hook("close", self._path)
        finally:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
