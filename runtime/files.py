"""The file layer: the one place below which files are touched.

Everything that reads or writes a disk takes a `Files`, so a test can fail the k-th call, cut the
power between two calls, or keep a disk in memory (`memory_files.py`).

Invariants: paths are strings; opening and creating never follow a symbolic link in the last
component; `create` makes a file that did not exist; `rename` replaces its target atomically;
failures are `OSError`s with an errno. What has not been synced may be lost with the power: the
bytes of a file until `File.fsync`, names until `fsync_directory` of the folder that holds them.
Not here: where a cache or a checkpoint lives (the frontend says so).
"""

from __future__ import annotations

import errno
import io
import itertools
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Protocol, Self

from ..compiler.records import dataclass

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

Bytes = bytes | bytearray | memoryview

_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOINHERIT", 0)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What a name stands for. `kind` is ``file``, ``directory``, ``link`` or ``other``."""

    kind: str
    size: int
    mode: int
    owner: int
    links: int
    modified: float


class File(Protocol):
    """An open file; used by one thread at a time."""

    def read_into(self, target: bytearray | memoryview, offset: int) -> int:
        """Fill `target` from `offset` on; give the bytes read, fewer only at the file's end."""
        ...

    def write(self, data: Bytes) -> None:
        """Append all of `data`."""
        ...

    def fsync(self) -> None:
        """Return when the file's bytes are on the disk."""
        ...

    def stat(self) -> FileInfo:
        """What was opened, whatever its name means by now."""
        ...

    def close(self) -> None:
        """Give the file back; errors of delayed writes may show here."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Files(Protocol):
    """The operations on names."""

    def open(self, path: str) -> File:
        """Open an existing file for reading."""
        ...

    def create(self, path: str, mode: int = 0o600) -> File:
        """Make a file for writing; FileExistsError when the name is taken."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Give the file `old` the name `new`, in place of what had it."""
        ...

    def unlink(self, path: str) -> None:
        """Remove the name of a file."""
        ...

    def mkdir(self, path: str, mode: int = 0o700) -> None:
        """Make one directory; its parent exists."""
        ...

    def listdir(self, path: str) -> list[str]:
        """Names in a directory, sorted."""
        ...

    def holds_more(self, path: str, count: int) -> bool:
        """Whether a directory has more than so many names, without reading them all."""
        ...

    def stat(self, path: str) -> FileInfo:
        """What a name stands for, a link for itself."""
        ...

    def fsync_directory(self, path: str) -> None:
        """Return when the names in a directory are on the disk."""
        ...

    def chmod(self, path: str, mode: int) -> None:
        """Set the permission bits of a directory or file."""
        ...

    def utime(self, path: str, modified: float) -> None:
        """Set the time of the last modification."""
        ...

    def lock(self, path: str) -> AbstractContextManager[None]:
        """Hold the lock that `path` stands for, until left or dead; BlockingIOError if held."""
        ...

    def user(self) -> int:
        """The number that `FileInfo.owner` shows for files of this process's user."""
        ...

    def unused_name(self) -> str:
        """16 hexadecimal digits that no other call, in any process, gives."""
        ...


def read_all(files: Files, path: str, limit: int) -> bytes:
    """The bytes of a file of at most `limit` bytes; OSError (EFBIG) for a larger one.

    The size is looked at before anything is allocated.
    """
    with files.open(path) as file:
        size = file.stat().size
        if size > limit:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
        data = bytearray(size)
        count = file.read_into(data, 0)
    return bytes(data[:count])


class DiskFile:
    """A `File` over a descriptor of the operating system."""

    def __init__(self, descriptor: int, mode: str) -> None:
        self._raw = io.FileIO(descriptor, mode)

    def read_into(self, target: bytearray | memoryview, offset: int) -> int:
        """See `File`."""
        view = memoryview(target).cast("B")
        self._raw.seek(offset)
        done = 0
        while done < len(view):
            count = self._raw.readinto(view[done:])
            if not count:
                break
            done += count
        return done

    def write(self, data: Bytes) -> None:
        """See `File`."""
        view = memoryview(data).cast("B")
        done = 0
        while done < len(view):
            done += self._raw.write(view[done:])

    def fsync(self) -> None:
        """See `File`."""
        os.fsync(self._raw.fileno())

    def stat(self) -> FileInfo:
        """See `File`."""
        return _info(os.fstat(self._raw.fileno()))

    def close(self) -> None:
        """See `File`."""
        self._raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class DiskFiles:
    """The files of the operating system."""

    def open(self, path: str) -> DiskFile:
        """See `Files`."""
        return DiskFile(os.open(path, os.O_RDONLY | _BINARY | _NO_FOLLOW), "r")

    def create(self, path: str, mode: int = 0o600) -> DiskFile:
        """See `Files`."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY | _NO_FOLLOW
        return DiskFile(os.open(path, flags, mode), "w")

    def rename(self, old: str, new: str) -> None:
        """See `Files`."""
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        """See `Files`."""
        os.unlink(path)

    def mkdir(self, path: str, mode: int = 0o700) -> None:
        """See `Files`."""
        os.mkdir(path, mode)

    def listdir(self, path: str) -> list[str]:
        """See `Files`."""
        return sorted(os.listdir(path))

    def holds_more(self, path: str, count: int) -> bool:
        """See `Files`."""
        with os.scandir(path) as names:
            return next(itertools.islice(names, count, None), None) is not None

    def stat(self, path: str) -> FileInfo:
        """See `Files`."""
        return _info(os.lstat(path))

    def fsync_directory(self, path: str) -> None:
        """See `Files`. Windows cannot, and commits names by itself."""
        if sys.platform == "win32":
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def chmod(self, path: str, mode: int) -> None:
        """See `Files`."""
        os.chmod(path, mode)

    def utime(self, path: str, modified: float) -> None:
        """See `Files`."""
        os.utime(path, (modified, modified))

    @contextmanager
    def lock(self, path: str) -> Iterator[None]:
        """See `Files`. A lock on the open file: gone when the process is, however it ends."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _BINARY | _NO_FOLLOW, 0o600)
        try:
            _lock_descriptor(descriptor)
            yield
        finally:
            os.close(descriptor)

    def user(self) -> int:
        """See `Files`."""
        return os.geteuid() if hasattr(os, "geteuid") else 0

    def unused_name(self) -> str:
        """See `Files`."""
        return os.urandom(8).hex()


def _lock_descriptor(descriptor: int) -> None:
    if sys.platform == "win32":
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(errno.EAGAIN, str(error)) from error
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _info(result: os.stat_result) -> FileInfo:
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
    return FileInfo(
        kind=kinds.get(stat.S_IFMT(result.st_mode), "other"),
        size=result.st_size,
        mode=stat.S_IMODE(result.st_mode),
        owner=result.st_uid,
        links=result.st_nlink,
        modified=result.st_mtime,
    )
