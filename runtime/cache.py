"""The compile cache on disk: key -> bytes, shared by processes, never in the way.

An entry is one file, named by its key::

    magic 8 | key 32 | payload length 8, little-endian | sha256 of all other bytes 32 | payload

written under a name of its own and renamed. A reader believes nothing: an entry that is cut,
altered, misplaced or not a plain file of ours is a miss and a warning, and is written anew. No
operation here raises because of the disk; a cache that cannot be used says so once.

An entry is code. Whoever may write the directory may run code as us, and a checksum does not stop
him; so the directory is used only if it is a real directory, ours, and not writable by others.

Invariants: `get` returns exactly the bytes some `put` was given for that key, or None; the
directory stays near its bound; a kill at any moment leaves at worst an orphan that is swept later.
Not here: what goes into a key or a payload (the caller), where the directory is (the frontend).
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
import warnings
import zlib
from collections.abc import Iterable

from ..compiler.errors import CacheWarning
from ..compiler.records import dataclass
from .clock import Clock, SystemClock
from .files import DiskFiles, File, FileInfo, Files, read_all
from .forks import tell_after_forks

FORMAT = 1  # also the end of every entry's name: entries of another format are swept
SUFFIX = f".tm{FORMAT}"
DEFAULT_LIMIT = 1 << 30
ORPHAN_SECONDS = 3600.0  # an unfinished file this old belongs to nobody
_TOUCH_SECONDS = 3600.0  # a hit refreshes an entry's time at most this often
_FEW = 1024  # names that the first write of every process may look at
_SWEEPS = 64  # of a larger directory, while as much is written as the limit
_MAGIC = b"TMCACHE" + bytes([FORMAT])
_HEADER = len(_MAGIC) + 32 + 8 + 32


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What is on disk, and what this object has seen."""

    directory: str
    usable: bool
    entries: int
    bytes: int
    limit: int
    hits: int
    misses: int
    writes: int
    damaged: int
    evicted: int


def cache_key(parts: Iterable[bytes | str]) -> str:
    """The key for everything an entry depends on; the split into parts matters too."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


class CompileCache:
    """The cache in one directory; every method may be called from any thread."""

    def __init__(
        self,
        directory: str,
        *,
        files: Files | None = None,
        clock: Clock | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        self.directory = directory
        self.limit = limit
        self._files = files or DiskFiles()
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        tell_after_forks(self)
        self._checked: bool | None = None
        self._said = False
        self._is_fresh = True  # nothing has been written
        self._since_sweep = 0
        self._hits = self._misses = self._writes = self._damaged = self._evicted = 0

    def after_fork(self) -> None:
        """Forget that a thread of the parent was counting."""
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        """The bytes stored for `key`, or None."""
        payload, problem = self._read(key) if self._usable() else (None, None)
        with self._lock:
            self._hits += payload is not None
            self._misses += payload is None
            self._damaged += problem is not None
        if problem is not None:
            where = f"entry {key[:16]} in {self.directory}"
            message = f"compile cache: {where} is damaged ({problem}); compiling again"
            warnings.warn(message, CacheWarning, stacklevel=2)
        return payload

    def put(self, key: str, payload: bytes) -> bool:
        """Store `payload`; False when that could not be done."""
        size = len(payload) + _HEADER
        if not self._usable() or size > self.limit:
            return False
        try:
            self._write(key, payload)
        except OSError as error:
            self._say(f"{self.directory} could not be written: {error}")
            return False
        if self._is_due(key, size):
            self._sweep()
        return True

    def _is_due(self, key: str, size: int) -> bool:
        """Whether a write is followed by a sweep: after an eighth of the limit, and by chance, so
        that many short processes together sweep as often as they must and not at every start.
        A small directory is swept by the first write, too."""
        with self._lock:
            self._writes += 1
            self._since_sweep += size
            is_first, self._is_fresh = self._is_fresh, False
            due = self._since_sweep >= self.limit // 8
            due = due or zlib.crc32(key.encode()) * self.limit < (size * _SWEEPS) << 32
            due = due or (is_first and not self._holds_more(_FEW))
            if due:
                self._since_sweep = 0
        return due

    def _holds_more(self, count: int) -> bool:
        try:
            return self._files.holds_more(self.directory, count)
        except OSError:
            return True  # nothing to sweep

    def stats(self) -> CacheStats:
        """Counts and sizes as of now."""
        usable = self._usable()
        entries = self._entries() if usable else []
        return CacheStats(
            self.directory,
            usable,
            len(entries),
            sum(info.size for _, info in entries),
            self.limit,
            self._hits,
            self._misses,
            self._writes,
            self._damaged,
            self._evicted,
        )

    def verify(self) -> list[str]:
        """Read every entry; remove the damaged ones and give their keys."""
        if not self._usable():
            return []
        keys = [name.removesuffix(SUFFIX) for name, _ in self._entries()]
        bad = [key for key in keys if self._read(key)[1] is not None]
        return [key for key in bad if self._remove(key + SUFFIX)]

    def clear(self) -> int:
        """Remove all entries and orphans; give the number of files removed."""
        if not self._usable():
            return 0
        return sum(self._remove(name) for name in self._ours())

    def _read(self, key: str) -> tuple[bytes | None, str | None]:
        """The payload, or what is wrong with the entry; neither when there is none."""
        path = self._path(key + SUFFIX)
        try:
            info = self._files.stat(path)
            if not self._is_own_file(info):
                return None, "it is not a plain file of this user"
            data = read_all(self._files, path, self.limit)
        except FileNotFoundError:
            return None, None
        except OSError as error:
            self._say(f"an entry in {self.directory} could not be read: {error}")
            return None, None
        payload = _opened(key, data)
        if payload is None:
            return None, "its checksum does not match"
        if self._clock.now() - info.modified > _TOUCH_SECONDS:
            self._touch(path)
        return payload, None

    def _write(self, key: str, payload: bytes) -> None:
        temporary = f"{self._files.unused_name()}.part"
        try:
            with self._create(temporary) as file:
                file.write(_sealed(key, payload))
            self._files.rename(self._path(temporary), self._path(key + SUFFIX))
        except OSError:
            self._remove(temporary)
            raise

    def _create(self, name: str) -> File:
        try:
            return self._files.create(self._path(name))
        except FileNotFoundError:  # somebody removed the directory while we were running
            with self._lock:
                self._checked = None
            if not self._usable():
                raise
            return self._files.create(self._path(name))

    def _touch(self, path: str) -> None:
        try:
            self._files.utime(path, self._clock.now())
        except OSError:
            pass  # the entry only looks older than it is

    def _sweep(self) -> None:
        """Remove orphans and other formats, then the least recently used above the limit."""
        now = self._clock.now()
        for name in self._ours():
            if not name.endswith((SUFFIX, ".part")) or self._is_orphan(name, now):
                self._remove(name)
        entries = sorted(self._entries(), key=lambda entry: entry[1].modified)
        total = sum(info.size for _, info in entries)
        for name, info in entries:
            if total <= self.limit:
                return
            if self._remove(name):
                total -= info.size
                with self._lock:
                    self._evicted += 1

    def _is_orphan(self, name: str, now: float) -> bool:
        if not name.endswith(".part"):
            return False
        info = self._stat(name)
        return info is not None and now - info.modified > ORPHAN_SECONDS

    def _entries(self) -> list[tuple[str, FileInfo]]:
        found = [(n, self._stat(n)) for n in self._ours() if n.endswith(SUFFIX)]
        return [(name, info) for name, info in found if info is not None and info.kind == "file"]

    def _ours(self) -> list[str]:
        """Names in the directory that some version of this cache has made."""
        try:
            names = self._files.listdir(self.directory)
        except OSError:
            return []
        return [n for n in names if n.endswith(".part") or n.partition(".")[2].startswith("tm")]

    def _stat(self, name: str) -> FileInfo | None:
        try:
            return self._files.stat(self._path(name))
        except OSError:
            return None

    def _remove(self, name: str) -> bool:
        try:
            self._files.unlink(self._path(name))
        except OSError:
            return False
        return True

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def _is_own_file(self, info: FileInfo) -> bool:
        """Links: none when another process replaces the entry just now, never two."""
        return info.kind == "file" and info.owner == self._files.user() and info.links <= 1

    def _usable(self) -> bool:
        """Whether the directory is there and fit to be trusted; looked at once, then believed."""
        with self._lock:
            if self._checked is not None:
                return self._checked
            try:
                problem = _make_private(self._files, self.directory)
            except OSError as error:
                problem = str(error)
            self._checked = problem is None
        if problem is not None:
            self._say(f"{self.directory} is not used: {problem}")
        return problem is None

    def _say(self, problem: str) -> None:
        """Warn, once in the life of this cache."""
        with self._lock:
            said, self._said = self._said, True
        if not said:
            message = f"compile cache: {problem}; going on without it"
            warnings.warn(message, CacheWarning, stacklevel=2)


def _sealed(key: str, payload: bytes) -> bytes:
    head = _MAGIC + bytes.fromhex(key) + len(payload).to_bytes(8, "little")
    return head + hashlib.sha256(head + payload).digest() + payload


def _opened(key: str, data: bytes) -> bytes | None:
    """The payload of an entry, None unless every byte of it is as it was written for `key`."""
    payload = data[_HEADER:]
    return payload if len(data) >= _HEADER and _sealed(key, payload) == data else None


def _make_private(files: Files, directory: str) -> str | None:
    """Make `directory`, mode 0700, where it is missing; say what is wrong with it, if anything."""
    if not directory or not os.path.isabs(directory):
        return "its path is not absolute"
    _make_directories(files, directory)
    info = files.stat(directory)
    if info.kind != "directory":
        return "it is a symbolic link" if info.kind == "link" else "it is not a directory"
    if info.owner != files.user():
        return "it belongs to another user"
    if os.name == "posix" and info.mode & 0o022:
        return "other users may write in it"
    if os.name == "posix" and info.mode & 0o077:
        files.chmod(directory, 0o700)
    return None


def _make_directories(files: Files, directory: str) -> None:
    """Make `directory` and the parents it lacks."""
    missing = []
    at = directory.rstrip("/")
    while True:
        try:
            files.stat(at)
            break
        except FileNotFoundError:
            missing.append(at)
            parent = os.path.dirname(at)
            if parent == at:
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), directory) from None
            at = parent
    for path in reversed(missing):
        try:
            files.mkdir(path)
        except FileExistsError:
            pass  # another process was faster
