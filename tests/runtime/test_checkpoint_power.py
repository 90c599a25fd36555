"""Saving on a disk that fails or loses power: one of the two states, always.

The disk is in memory (`MemoryFiles`): after a cut it holds any subset of the changes of names that
no directory sync confirmed and, of files, what was synced and any part of the rest.
"""

from __future__ import annotations

import errno
import os
import random

import numpy as np
import pytest

from tracemill.compiler.errors import CheckpointError, TracemillError
from tracemill.compiler.types import F64, TensorType
from tracemill.runtime.checkpoint import restore, save
from tracemill.runtime.interposed_files import Interposed
from tracemill.runtime.memory_files import MemoryFiles

EXPECTED = {"a": TensorType(F64, (6,)), "b": TensorType(F64, (6,))}
OLD, NEW = 1.0, 2.0


class PowerCut(BaseException):
    """The machine is off: no cleaning up happens."""


def state(value):
    return {"a": np.full(6, value), "b": np.full(6, -value)}


def store(value, disk):
    save("/run/c", state(value), files=disk, data_file_bytes=48)  # two data files


def loaded(disk):
    """Which state loads; None for no checkpoint at all."""
    try:
        found = restore("/run/c", EXPECTED, files=disk)
    except FileNotFoundError:
        return None
    except CheckpointError as problem:
        if "holds no checkpoint" in str(problem):
            return None
        raise
    (value,) = set(found["a"])
    assert (found["b"] == -value).all()
    return value


class Cut:
    """Lets `after` operations pass, then the power is gone; may leave out one sync."""

    def __init__(self, after, without=None):
        self.left = after
        self.without = without
        self.syncs = 0

    def __call__(self, operation, path):
        if self.left == 0:
            raise PowerCut
        self.left -= 1
        if operation in ("fsync", "fsync_directory"):
            self.syncs += 1
            return self.syncs - 1 != self.without
        return True


def prepared(first):
    """A disk with the old state on it for certain, or with nothing."""
    disk = MemoryFiles()
    disk.mkdir("/run")
    disk.fsync_directory("/")
    if not first:
        store(OLD, disk)
    return disk


def losses(first, without=None):
    """Crash after every number of operations; the outcomes that are wrong, and syncs seen."""
    wrong, after, syncs = [], 0, 0
    while True:
        disk = prepared(first)
        hook = Cut(after, without)
        returned = True
        try:
            store(NEW, Interposed(disk, hook))
        except PowerCut:
            returned = False
        right = {NEW} if returned else {NEW, None if first else OLD}
        for outcome in disk.outcomes(random.Random(after)):
            try:
                found = loaded(outcome)
            except TracemillError as problem:
                found = str(problem)
            if found not in right:
                wrong.append((after, found))
        syncs = max(syncs, hook.syncs)
        if returned:
            return wrong, syncs, after
        after += 1


@pytest.mark.parametrize("first", [True, False])
def test_power_lost_after_any_operation_loses_no_state(first):
    wrong, _, operations = losses(first)
    assert wrong == []
    assert operations > 15


@pytest.mark.parametrize("first", [True, False])
def test_no_sync_can_be_left_out(first):
    _, syncs, _ = losses(first)
    assert syncs == (6 if first else 5)
    for left_out in range(syncs):
        wrong, _, _ = losses(first, without=left_out)
        assert wrong, f"nobody noticed that sync {left_out} was left out"


@pytest.mark.parametrize("first", [True, False])
def test_a_save_goes_through_after_any_crash(first):
    after = 0
    while True:
        disk = prepared(first)
        try:
            store(NEW, Interposed(disk, Cut(after)))
            break
        except PowerCut:
            pass
        for outcome in disk.outcomes(random.Random(after), limit=8):
            store(3.0, outcome)
            assert loaded(outcome) == 3.0
            names = outcome.listdir("/run/c")
            assert len(names) == 4, names  # two data files, the manifest, the lock
        after += 1


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("forever", [False, True])
def test_the_kth_operation_may_fail_for_every_k(number, forever):
    k = 0
    while True:
        disk = prepared(first=False)
        calls = 0
        committing = False

        def hook(operation, path, at=k):
            nonlocal calls, committing
            calls += 1
            committing |= operation == "rename"
            if calls == at + 1 or (forever and calls > at):
                raise OSError(number, os.strerror(number), path)
            return True

        try:
            store(NEW, Interposed(disk, hook))
        except CheckpointError as problem:
            assert problem.__cause__.errno == number  # noqa: PT017 (raised for some k only)
            assert loaded(disk) in ({OLD, NEW} if committing else {OLD})
            if not forever and not committing:
                assert len(disk.listdir("/run/c")) == 4  # nothing of the failed save is left
        else:
            assert loaded(disk) == NEW
            if calls <= k:
                break
        store(3.0, disk)
        assert loaded(disk) == 3.0
        k += 1
    assert k > 15


@pytest.mark.parametrize("room", range(0, 2200, 50))
def test_a_full_disk_keeps_the_old_state(room):
    disk = prepared(first=False)
    used = sum(len(disk.contents(f"/run/c/{name}")) for name in disk.listdir("/run/c"))
    disk.capacity = used + room
    try:
        store(NEW, disk)
    except CheckpointError as problem:
        assert problem.__cause__.errno == errno.ENOSPC  # noqa: PT017 (only without room)
        assert loaded(disk) == OLD
        assert len(disk.listdir("/run/c")) == 4
    else:
        assert loaded(disk) == NEW
        assert room > 500


def test_a_read_only_disk_says_so():
    disk = prepared(first=False)
    disk.read_only = True
    with pytest.raises(CheckpointError, match="Read-only"):
        store(NEW, disk)
    assert loaded(disk) == OLD
