"""The file layer: the disk and the disk in memory behave alike, and what a power cut may keep."""

from __future__ import annotations

import os
import random

import pytest

from tracemill.runtime.clock import ManualClock
from tracemill.runtime.files import DiskFiles, read_all
from tracemill.runtime.interposed_files import Interposed
from tracemill.runtime.memory_files import MemoryFiles


@pytest.fixture(params=["disk", "memory", "interposed"])
def place(request, tmp_path):
    if request.param == "disk":
        return DiskFiles(), str(tmp_path)
    memory = MemoryFiles()
    memory.mkdir("/r")
    if request.param == "interposed":
        return Interposed(memory, lambda operation, path: True), "/r"
    return memory, "/r"


def write(files, path, data, sync=False):
    with files.create(path) as file:
        file.write(data)
        if sync:
            file.fsync()


def test_bytes_come_back(place):
    files, root = place
    with files.create(f"{root}/a") as file:
        file.write(b"hello ")
        file.write(memoryview(b"world"))
        file.fsync()
    files.fsync_directory(root)
    assert read_all(files, f"{root}/a", 100) == b"hello world"
    with files.open(f"{root}/a") as file:
        window = bytearray(10)
        assert file.read_into(window, 6) == 5
        assert bytes(window[:5]) == b"world"
        assert file.read_into(memoryview(window)[:2], 0) == 2
        assert (file.stat().kind, file.stat().size, file.stat().links) == ("file", 11, 1)
    assert files.stat(f"{root}/a").owner == files.user()
    with pytest.raises(OSError, match="too large"):
        read_all(files, f"{root}/a", 10)


def test_names(place):
    files, root = place
    write(files, f"{root}/a", b"1")
    with pytest.raises(FileExistsError):
        files.create(f"{root}/a")
    write(files, f"{root}/b", b"2")
    files.rename(f"{root}/a", f"{root}/b")
    files.mkdir(f"{root}/d")
    assert files.listdir(root) == ["b", "d"]
    assert read_all(files, f"{root}/b", 9) == b"1"
    assert files.stat(f"{root}/d").kind == "directory"
    files.unlink(f"{root}/b")
    assert files.listdir(root) == ["d"]
    for operation in (files.open, files.stat, files.unlink, files.listdir):
        with pytest.raises(FileNotFoundError):
            operation(f"{root}/none")
    with pytest.raises(FileExistsError):
        files.mkdir(f"{root}/d")
    with pytest.raises(OSError):
        files.create(f"{root}/none/x")
    with pytest.raises(OSError):
        files.unlink(f"{root}/d")


def test_modes_and_times(place):
    files, root = place
    write(files, f"{root}/a", b"")
    files.utime(f"{root}/a", 12345.0)
    assert files.stat(f"{root}/a").modified == 12345.0
    if os.name == "posix":
        files.chmod(f"{root}/a", 0o640)
        assert files.stat(f"{root}/a").mode == 0o640


def test_a_lock_is_held_by_one(place):
    files, root = place
    with files.lock(f"{root}/lock"):
        with pytest.raises(BlockingIOError):
            with files.lock(f"{root}/lock"):
                pass
    with files.lock(f"{root}/lock"):
        pass


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_a_link_is_not_followed(tmp_path):
    files = DiskFiles()
    (tmp_path / "real").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert files.stat(str(tmp_path / "link")).kind == "link"
    with pytest.raises(OSError):
        files.open(str(tmp_path / "link"))
    with pytest.raises(OSError):
        files.create(str(tmp_path / "link"))


def survivors(disk, path):
    found = set()
    for after in disk.outcomes(random.Random(3), limit=60):
        try:
            found.add(read_all(after, path, 100))
        except FileNotFoundError:
            found.add(None)
    return found


def test_a_power_cut_may_take_what_was_not_synced():
    disk = MemoryFiles()
    write(disk, "/a", b"12345678")
    assert survivors(disk, "/a") == {None, b"", b"1234", b"12345678", bytes(8)}
    disk.fsync_directory("/")
    assert survivors(disk, "/a") == {b"", b"1234", b"12345678", bytes(8)}
    disk.unlink("/a")
    write(disk, "/a", b"87654321", sync=True)
    disk.fsync_directory("/")
    assert survivors(disk, "/a") == {b"87654321"}


def test_a_rename_is_kept_or_lost_as_a_whole():
    disk = MemoryFiles()
    write(disk, "/a", b"old", sync=True)
    disk.fsync_directory("/")
    write(disk, "/b", b"new", sync=True)
    disk.fsync_directory("/")
    disk.rename("/b", "/a")
    states = {tuple(after.listdir("/")) for after in disk.outcomes(random.Random(1))}
    assert states == {("a", "b"), ("a",)}
    assert survivors(disk, "/a") == {b"old", b"new"}


def test_a_full_disk_keeps_the_part_that_fitted():
    disk = MemoryFiles(capacity=5)
    with pytest.raises(OSError, match="No space"):
        write(disk, "/a", b"1234567")
    assert disk.stat("/a").size == 5


def test_a_manual_clock_moves_when_told():
    clock = ManualClock(100.0)
    clock.advance(5)
    clock.set_back(50)
    assert (clock.now(), clock.monotonic()) == (55.0, 5.0)
    clock.sleep(0)
