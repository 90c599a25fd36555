"""Rendezvous: a value and its receiver meet once, whoever is first, or the step's error does."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

from tracemill.runtime.transport import DuplicateTransferError, Key, LocalTransport


def collect(into):
    return lambda value, error: into.append((value, error))


@pytest.mark.parametrize("send_first", [True, False])
def test_the_value_itself_is_handed_over(send_first):
    transport, got, value = LocalTransport(), [], np.arange(4)
    if send_first:
        transport.send(Key("e", 1), value)
    transport.receive_then(Key("e", 1), collect(got))
    if not send_first:
        assert got == []
        transport.send(Key("e", 1), value)
    assert got[0][0] is value
    assert transport.traffic() == {"e": (1, value.nbytes)}


def test_edges_steps_and_iterations_do_not_mix():
    transport = LocalTransport()
    keys = [Key(e, s, i) for e in "ab" for s in (1, 2) for i in ((), (0,), (1,), (0, 1))]
    shuffled = random.Random(1).sample(keys, len(keys))
    for key in shuffled:
        transport.send(key, key)
    assert [transport.receive(key) for key in keys] == keys


def test_a_second_send_or_receive_is_refused_even_after_the_pair_was_made():
    transport = LocalTransport()
    transport.send(Key("e", 1), 1)
    assert transport.receive(Key("e", 1)) == 1
    with pytest.raises(DuplicateTransferError):
        transport.send(Key("e", 1), 1)
    with pytest.raises(DuplicateTransferError):
        transport.receive(Key("e", 1))


def test_abort_fails_one_step_now_and_later():
    transport, got = LocalTransport(), []
    error = RuntimeError("kernel failed")
    for step in (1, 2):
        transport.receive_then(Key("e", step), collect(got))
    transport.abort(1, error)
    assert got == [(None, error)]
    transport.send(Key("f", 1), 0)
    with pytest.raises(RuntimeError, match="kernel failed"):
        transport.receive(Key("f", 1))
    transport.send(Key("e", 2), 5)
    assert got[1] == (5, None)


def test_a_receive_in_vain_ends_at_its_deadline_and_may_be_tried_again():
    transport = LocalTransport()
    with pytest.raises(TimeoutError, match="edge='e'"):
        transport.receive(Key("e", 1), timeout=0.01)
    transport.send(Key("e", 1), 3)
    assert transport.receive(Key("e", 1)) == 3


def test_finish_forgets_the_step_and_wakes_who_still_waits():
    transport, got = LocalTransport(), []
    transport.receive_then(Key("e", 1), collect(got))
    transport.finish(1)
    assert isinstance(got[0][1], RuntimeError)
    transport.send(Key("e", 1), 4)
    assert transport.receive(Key("e", 1)) == 4


def test_a_thousand_waiting_receives_need_no_thread():
    transport, got = LocalTransport(), []
    before = threading.active_count()
    for i in range(1000):
        transport.receive_then(Key("e", 1, (i,)), collect(got))
    assert threading.active_count() == before
    for i in range(1000):
        transport.send(Key("e", 1, (i,)), i)
    assert sorted(value for value, _ in got) == list(range(1000))


def test_threads_meet():
    transport = LocalTransport()
    results = []

    def pull():
        results.extend(transport.receive(Key("e", 1, (i,)), timeout=20) for i in range(300))

    thread = threading.Thread(target=pull)
    thread.start()
    for i in range(300):
        transport.send(Key("e", 1, (i,)), i)
    thread.join()
    assert results == list(range(300))
