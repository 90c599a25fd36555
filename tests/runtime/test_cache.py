"""The compile cache: what a reader finds is what a writer gave, whatever the disk does."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
import warnings

import pytest

from tracemill.compiler.errors import CacheWarning
from tracemill.runtime.cache import ORPHAN_SECONDS, SUFFIX, CompileCache, cache_key
from tracemill.runtime.clock import ManualClock
from tracemill.runtime.files import DiskFiles
from tracemill.runtime.interposed_files import Interposed
from tracemill.runtime.memory_files import MemoryFiles

KEY = cache_key(["graph", "cpu"])
CODE = b"\x90" * 21


def in_memory(**options):
    disk = MemoryFiles(**options)
    return disk, CompileCache("/home/cache", files=disk, clock=ManualClock())


def entry_path(key=KEY):
    return f"/home/cache/{key}{SUFFIX}"


def test_an_entry_comes_back_for_its_key_only():
    _, cache = in_memory()
    assert cache.get(KEY) is None
    assert cache.put(KEY, CODE)
    assert cache.get(KEY) == CODE
    assert cache.get(cache_key(["graph", "gpu"])) is None
    assert (cache.stats().hits, cache.stats().misses, cache.stats().entries) == (1, 2, 1)


@pytest.mark.parametrize("payload", [b"", b"\x00", bytes(range(256)) * 50])
def test_any_payload_round_trips(payload):
    _, cache = in_memory()
    assert cache.put(KEY, payload)
    assert cache.get(KEY) == payload


def test_the_split_into_parts_is_part_of_the_key():
    assert len({cache_key(p) for p in (["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""])}) == 4


@pytest.mark.parametrize("missing", range(5))
def test_a_key_changes_with_each_of_its_parts(missing):
    parts = ["graph", hashlib.sha256(b"constant").digest(), "+avx2", "0.1.0", "llvmlite 0.50"]
    changed = parts.copy()
    changed[missing] = b"other"
    assert cache_key(parts) != cache_key(changed)


def test_every_truncation_is_a_miss_and_a_warning_and_is_repaired():
    disk, cache = in_memory()
    cache.put(KEY, CODE)
    whole = bytes(disk.contents(entry_path()))
    for length in range(len(whole)):
        disk.contents(entry_path())[:] = whole[:length]
        with pytest.warns(CacheWarning, match="damaged"):
            assert cache.get(KEY) is None
        assert cache.put(KEY, CODE)
        assert cache.get(KEY) == CODE


def test_every_flipped_bit_is_a_miss_and_a_warning():
    disk, cache = in_memory()
    cache.put(KEY, CODE)
    data = disk.contents(entry_path())
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        with pytest.warns(CacheWarning, match="damaged"):
            assert cache.get(KEY) is None
        data[bit // 8] ^= 1 << bit % 8
    assert cache.get(KEY) == CODE
    assert cache.stats().damaged == 8 * len(data)


def test_bytes_after_the_end_and_an_entry_under_another_name_are_refused():
    disk, cache = in_memory()
    other = cache_key(["other"])
    cache.put(KEY, CODE)
    disk.contents(entry_path()).extend(b"x")
    with pytest.warns(CacheWarning):
        assert cache.get(KEY) is None
    cache.put(KEY, CODE)
    disk.rename(entry_path(), entry_path(other))
    with pytest.warns(CacheWarning):
        assert cache.get(other) is None


def test_a_pickle_is_not_an_entry():
    disk, cache = in_memory()
    cache.put(KEY, CODE)
    disk.contents(entry_path())[:] = b"\x80\x04cos\nsystem\n."
    with pytest.warns(CacheWarning):
        assert cache.get(KEY) is None


def use(cache):
    """One life of a cache: every kind of call, with a sweep in it."""
    seen = [cache.get(KEY), cache.put(KEY, CODE), cache.get(KEY)]
    cache.stats(), cache.verify(), cache.clear()
    assert seen[0] is None
    assert seen[2] in (None, CODE)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EACCES, errno.ENOENT])
@pytest.mark.parametrize("forever", [False, True])
def test_the_kth_call_to_the_disk_may_fail_for_every_k(number, forever):
    k = 0
    while True:
        calls = 0

        def hook(operation, path, at=k):
            nonlocal calls
            calls += 1
            if calls == at + 1 or (forever and calls > at):
                raise OSError(number, os.strerror(number), path)
            return True

        disk = MemoryFiles()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            use(CompileCache("/home/cache", files=Interposed(disk, hook), clock=ManualClock()))
        assert len(said) <= 1, [str(w.message) for w in said]
        fresh = CompileCache("/home/cache", files=disk, clock=ManualClock())
        assert fresh.get(KEY) in (None, CODE)
        assert fresh.put(KEY, CODE)
        assert fresh.get(KEY) == CODE
        if calls <= k:
            break
        k += 1
    assert k > 12


@pytest.mark.parametrize("options", [{"read_only": True}, {"capacity": 40}])
def test_a_read_only_or_full_disk_costs_one_warning(options):
    disk, cache = in_memory(**options)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for attempt in range(5):
            key = cache_key([str(attempt)])
            assert not cache.put(key, CODE)
            assert cache.get(key) is None
    assert len(said) == 1
    assert issubclass(said[0].category, CacheWarning)
    assert not options.get("capacity") or disk.listdir("/home/cache") == []


def test_the_least_recently_used_entries_make_room():
    clock = ManualClock()
    disk = MemoryFiles(clock=clock)
    cache = CompileCache("/c", files=disk, clock=clock, limit=2000)
    keys = [cache_key([str(i)]) for i in range(6)]
    for key in keys:
        cache.put(key, bytes(300))
        clock.advance(2 * 3600.0)
        cache.get(keys[0])  # stays young
    kept = [key for key in keys if cache.get(key) is not None]
    assert keys[0] in kept
    assert keys[-1] in kept
    assert keys[1] not in kept
    assert cache.stats().bytes <= 2000
    assert not cache.put(cache_key(["huge"]), bytes(3000))


def test_a_sweep_removes_orphans_and_other_formats_but_no_stranger():
    clock = ManualClock()
    disk = MemoryFiles(clock=clock)
    disk.mkdir("/c")
    for name in ("0af.part", "77.tm0", "notes.txt"):
        disk.create(f"/c/{name}").close()
    clock.advance(ORPHAN_SECONDS + 1)
    disk.create("/c/young.part").close()
    CompileCache("/c", files=disk, clock=clock).put(KEY, CODE)
    assert disk.listdir("/c") == sorted([f"{KEY}{SUFFIX}", "notes.txt", "young.part"])


def test_a_process_that_writes_little_does_not_read_a_large_directory():
    disk = MemoryFiles()
    looked_at = []

    def hook(operation, path):
        looked_at.append(operation)
        return True

    disk.mkdir("/c")
    for number in range(3000):
        disk.create(f"/c/{number:x}{SUFFIX}").close()
    cache = CompileCache("/c", files=Interposed(disk, hook))
    assert cache.put(KEY, CODE)
    assert len(looked_at) < 20
    assert cache.get(KEY) == CODE


def test_many_short_processes_keep_the_bound_together():
    disk = MemoryFiles()
    for number in range(6000):
        cache = CompileCache("/home/cache", files=disk, limit=200_000)
        cache.put(cache_key([str(number)]), bytes(60))
    assert 100_000 < CompileCache("/home/cache", files=disk).stats().bytes < 220_000


def test_clear_and_verify():
    disk, cache = in_memory()
    keys = [cache_key([str(i)]) for i in range(4)]
    for key in keys:
        cache.put(key, CODE)
    disk.contents(entry_path(keys[2]))[-1] ^= 1
    assert cache.verify() == [keys[2]]
    assert cache.verify() == []
    assert cache.clear() == 3
    assert cache.stats().entries == 0


def test_a_directory_wiped_while_in_use_is_made_again(tmp_path):
    cache = CompileCache(str(tmp_path / "a" / "cache"))
    assert cache.put(KEY, CODE)
    os.unlink(tmp_path / "a" / "cache" / (KEY + SUFFIX))
    os.rmdir(tmp_path / "a" / "cache")
    assert cache.get(KEY) is None
    assert cache.put(KEY, CODE)
    assert cache.get(KEY) == CODE


def unusable(directory):
    cache = CompileCache(str(directory))
    with pytest.warns(CacheWarning, match="is not used"):
        assert not cache.put(KEY, CODE)
    assert cache.get(KEY) is None
    assert not cache.stats().usable


@pytest.mark.skipif(os.name != "posix", reason="permission bits")
def test_a_directory_others_may_write_or_a_link_is_not_used(tmp_path):
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    unusable(open_to_all)
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(real)
    unusable(tmp_path / "link")
    (tmp_path / "file").write_text("")
    unusable(tmp_path / "file")
    unusable("relative/path")
    unusable("")


@pytest.mark.skipif(os.name != "posix", reason="owners")
def test_a_directory_of_another_user_is_not_used(tmp_path):
    class Foreign(DiskFiles):
        def user(self):
            return super().user() + 1

    tmp_path.chmod(0o700)
    cache = CompileCache(str(tmp_path), files=Foreign())
    with pytest.warns(CacheWarning, match="another user"):
        assert not cache.put(KEY, CODE)


@pytest.mark.skipif(os.name != "posix", reason="permission bits")
def test_our_directory_is_made_private(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine").chmod(0o755)
    for directory in (tmp_path / "mine", tmp_path / "new" / "deep"):
        assert CompileCache(str(directory)).put(KEY, CODE)
        assert directory.stat().st_mode & 0o777 == 0o700
        (entry,) = directory.iterdir()
        assert entry.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_an_entry_that_is_a_link_is_not_followed(tmp_path):
    cache = CompileCache(str(tmp_path / "c"))
    cache.put(KEY, CODE)
    entry = tmp_path / "c" / (KEY + SUFFIX)
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(CacheWarning, match="plain file"):
        assert cache.get(KEY) is None
    entry.unlink()
    os.link(tmp_path / "elsewhere", entry)
    with pytest.warns(CacheWarning, match="plain file"):
        assert cache.get(KEY) is None


WORKER = """
import sys, warnings, hashlib
warnings.simplefilter("error")
from tracemill.runtime.cache import CompileCache, cache_key
cache = CompileCache(sys.argv[1], limit=6000)
for turn in range(120):
    key = cache_key([str(turn % 7)])
    payload = hashlib.sha256(key.encode()).digest() * 40
    found = cache.get(key)
    assert found in (None, payload)
    if found is None:
        assert cache.put(key, payload)
"""


@pytest.mark.processes
def test_eight_processes_share_a_directory(tmp_path):
    command = [sys.executable, "-P", "-c", WORKER, str(tmp_path / "c")]
    workers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(8)]
    for worker in workers:
        _, complaint = worker.communicate(timeout=120)
        assert worker.returncode == 0, complaint
    names = os.listdir(tmp_path / "c")
    assert names
    assert all(name.endswith(SUFFIX) for name in names)


@pytest.mark.processes
def test_a_writer_killed_at_any_call_leaves_a_cache_that_works():
    class Killed(BaseException):
        pass

    for at in range(20):
        disk = MemoryFiles()
        calls = 0

        def hook(operation, path, at=at):
            nonlocal calls
            calls += 1
            if calls > at:
                raise Killed
            return True

        try:
            CompileCache("/c", files=Interposed(disk, hook), clock=ManualClock()).put(KEY, CODE)
        except Killed:
            pass
        after = CompileCache("/c", files=disk, clock=ManualClock())
        assert after.get(KEY) in (None, CODE)
        assert after.put(KEY, CODE)
        assert after.get(KEY) == CODE
