"""A disk in memory that can fill up, and lose its power between any two operations.

`MemoryFiles` keeps beside each file what has been synced of it, and the changes of names that no
directory sync has confirmed. `outcomes` lists disks that could be found after a power cut now:
any subset of the unconfirmed changes of names, and of each file what was synced, all of it, a
part of the rest, or its length with zeros. A rename is kept or lost as a whole.

Invariants: nothing outside the object is touched; the same calls give the same outcomes.
Not here: symbolic links and foreign owners (tests of those use the real disk).
"""

from __future__ import annotations

import errno
import itertools
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from .clock import Clock, ManualClock
from .files import Bytes, FileInfo

USER = 1000
_ROOT = 0


@dataclass
class _Entry:
    """A file (`data`, `synced`) or a directory (`names`, `durable_names`: name -> number)."""

    directory: bool
    mode: int
    modified: float = 0.0
    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    names: dict[str, int] = field(default_factory=dict)
    durable_names: dict[str, int] = field(default_factory=dict)


# One change of names, kept or lost as a whole: (directory, name, entry or None for removed).
_Change = tuple[tuple[int, str, int | None], ...]


class MemoryFiles:
    """A `Files` in memory. `capacity` bounds the bytes of all files, `read_only` all changes."""

    def __init__(
        self, capacity: int | None = None, read_only: bool = False, clock: Clock | None = None
    ) -> None:
        self.capacity = capacity
        self.read_only = read_only
        self._entries: dict[int, _Entry] = {_ROOT: _Entry(True, 0o700)}
        self._numbers = itertools.count(1)
        self._unconfirmed: list[_Change] = []
        self._locked: set[str] = set()
        self._clock = clock or ManualClock()

    def open(self, path: str) -> MemoryFile:
        """See `Files`."""
        entry = self._entry(path)
        if entry.directory:
            raise _os_error(errno.EISDIR, path)
        return MemoryFile(self, entry)

    def create(self, path: str, mode: int = 0o600) -> MemoryFile:
        """See `Files`."""
        entry = _Entry(False, mode, modified=self._clock.now())
        self._add(path, entry)
        return MemoryFile(self, entry)

    def mkdir(self, path: str, mode: int = 0o700) -> None:
        """See `Files`."""
        self._add(path, _Entry(True, mode))

    def rename(self, old: str, new: str) -> None:
        """See `Files`."""
        source, name = self._place(old)
        target, new_name = self._place(new)
        number = self._entries[source].names.get(name)
        if number is None:
            raise _os_error(errno.ENOENT, old)
        taken = self._entries[target].names.get(new_name)
        if taken is not None and self._entries[taken].directory:
            raise _os_error(errno.EISDIR, new)
        self._change(((source, name, None), (target, new_name, number)))

    def unlink(self, path: str) -> None:
        """See `Files`."""
        if self._entry(path).directory:
            raise _os_error(errno.EISDIR, path)
        directory, name = self._place(path)
        self._change(((directory, name, None),))

    def listdir(self, path: str) -> list[str]:
        """See `Files`."""
        entry = self._entry(path)
        if not entry.directory:
            raise _os_error(errno.ENOTDIR, path)
        return sorted(entry.names)

    def holds_more(self, path: str, count: int) -> bool:
        """See `Files`."""
        return len(self.listdir(path)) > count

    def stat(self, path: str) -> FileInfo:
        """See `Files`."""
        return _info(self._entry(path))

    def fsync_directory(self, path: str) -> None:
        """See `Files`."""
        number = self._number(path)
        waiting = self._unconfirmed
        self._unconfirmed = []
        for change in waiting:
            if any(directory == number for directory, _, _ in change):
                self._confirm(change)
            else:
                self._unconfirmed.append(change)

    def chmod(self, path: str, mode: int) -> None:
        """See `Files`."""
        self._check_writable(path)
        self._entry(path).mode = mode

    def utime(self, path: str, modified: float) -> None:
        """See `Files`."""
        self._check_writable(path)
        self._entry(path).modified = modified

    @contextmanager
    def lock(self, path: str) -> Iterator[None]:
        """See `Files`."""
        try:
            self.create(path).close()
        except FileExistsError:
            pass
        if path in self._locked:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
        self._locked.add(path)
        try:
            yield
        finally:
            self._locked.remove(path)

    def user(self) -> int:
        """See `Files`."""
        return USER

    def unused_name(self) -> str:
        """See `Files`."""
        return f"{next(self._numbers):016x}"

    def contents(self, path: str) -> bytearray:
        """The live bytes of a file, for a test to damage or cut."""
        return self._entry(path).data

    def outcomes(self, rng: random.Random, limit: int = 40) -> Iterator[MemoryFiles]:
        """Disks that a power cut now could leave; the two extremes first, then random ones."""
        changes, files = self._unconfirmed, self._unsynced()
        yield self._survivor([], dict.fromkeys(files, 0))
        yield self._survivor(changes, dict.fromkeys(files, 0))
        if not changes and not files:
            return
        yield self._survivor(changes, dict.fromkeys(files, 1))
        for _ in range(limit - 3):
            kept = [change for change in changes if rng.random() < 0.5]
            yield self._survivor(kept, {number: rng.randrange(4) for number in files})

    def _unsynced(self) -> list[int]:
        pairs = self._entries.items()
        return [n for n, e in pairs if not e.directory and bytes(e.data) != e.synced]

    def _survivor(self, kept: list[_Change], choices: dict[int, int]) -> MemoryFiles:
        disk = MemoryFiles(self.capacity, clock=self._clock)
        disk._numbers = self._numbers
        for number, entry in self._entries.items():
            data = entry.synced
            if number in choices:
                rest = bytes(entry.data[len(data) :])
                half = rest[: len(rest) // 2]
                data = (data, bytes(entry.data), data + half, data + bytes(len(rest)))[
                    choices[number]
                ]
            names = dict(entry.durable_names)
            disk._entries[number] = _Entry(
                entry.directory, entry.mode, entry.modified, bytearray(data), data, names, names
            )
        for change in kept:
            disk._confirm(change)
        for entry in disk._entries.values():
            entry.names = dict(entry.durable_names)
        return disk

    def _confirm(self, change: _Change) -> None:
        for directory, name, number in change:
            _set(self._entries[directory].durable_names, name, number)

    def _change(self, change: _Change) -> None:
        self._check_writable(change[0][1])
        for directory, name, number in change:
            _set(self._entries[directory].names, name, number)
        self._unconfirmed.append(change)

    def _add(self, path: str, entry: _Entry) -> None:
        directory, name = self._place(path)
        if name in self._entries[directory].names:
            raise _os_error(errno.EEXIST, path)
        number = next(self._numbers)
        self._check_writable(path)
        self._entries[number] = entry
        self._change(((directory, name, number),))

    def _check_writable(self, path: str) -> None:
        if self.read_only:
            raise _os_error(errno.EROFS, path)

    def _number(self, path: str) -> int:
        number = _ROOT
        for part in [p for p in path.split("/") if p]:
            entry = self._entries[number]
            if not entry.directory:
                raise _os_error(errno.ENOTDIR, path)
            if part not in entry.names:
                raise _os_error(errno.ENOENT, path)
            number = entry.names[part]
        return number

    def _entry(self, path: str) -> _Entry:
        return self._entries[self._number(path)]

    def _place(self, path: str) -> tuple[int, str]:
        parent, _, name = path.rstrip("/").rpartition("/")
        number = self._number(parent)
        if not name or not self._entries[number].directory:
            raise _os_error(errno.ENOTDIR, path)
        return number, name

    def _append(self, entry: _Entry, data: bytes) -> None:
        used = sum(len(e.data) for e in self._entries.values())
        room = len(data) if self.capacity is None else max(0, self.capacity - used)
        entry.data += data[:room]
        entry.modified = self._clock.now()
        if room < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class MemoryFile:
    """A `File` of a `MemoryFiles`."""

    def __init__(self, disk: MemoryFiles, entry: _Entry) -> None:
        self._disk = disk
        self._entry = entry

    def read_into(self, target: bytearray | memoryview, offset: int) -> int:
        """See `File`."""
        view = memoryview(target).cast("B")
        piece = self._entry.data[offset : offset + len(view)]
        view[: len(piece)] = piece
        return len(piece)

    def write(self, data: Bytes) -> None:
        """See `File`."""
        self._disk._append(self._entry, bytes(data))

    def fsync(self) -> None:
        """See `File`."""
        self._entry.synced = bytes(self._entry.data)

    def stat(self) -> FileInfo:
        """See `File`."""
        return _info(self._entry)

    def close(self) -> None:
        """See `File`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _set(names: dict[str, int], name: str, number: int | None) -> None:
    if number is None:
        names.pop(name, None)
    else:
        names[name] = number


def _info(entry: _Entry) -> FileInfo:
    kind = "directory" if entry.directory else "file"
    return FileInfo(kind, len(entry.data), entry.mode, USER, 1, entry.modified)


def _os_error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
