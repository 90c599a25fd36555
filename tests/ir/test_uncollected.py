"""The garbage collector rests while modules load, and is as it was afterwards."""

from __future__ import annotations

import gc

import pytest

from tracemill.compiler.uncollected import here_to_stay, set_aside, uncollected


@pytest.fixture(autouse=True)
def collector():
    """The collector switched on, nothing frozen."""
    enabled = gc.isenabled()
    gc.enable()
    yield
    gc.unfreeze()
    (gc.enable if enabled else gc.disable)()


@pytest.mark.parametrize("resting", [uncollected, here_to_stay])
def test_the_collector_is_as_before_afterwards(resting):
    with resting():
        assert not gc.isenabled()
        with resting():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), resting():
        raise KeyError
    assert gc.isenabled()
    gc.disable()
    with resting():
        pass
    assert not gc.isenabled()


def test_what_is_here_to_stay_is_old_at_once():
    with here_to_stay():
        made = [[] for _ in range(10)]
    old = {id(thing) for thing in gc.get_objects(generation=2)}
    assert all(id(thing) in old for thing in made)
    assert gc.get_freeze_count() == 0


def test_what_somebody_froze_stays_frozen():
    gc.freeze()
    with here_to_stay():
        made = [[] for _ in range(10)]
    assert gc.get_freeze_count() > 0
    old = {id(thing) for thing in gc.get_objects(generation=2)}
    assert not any(id(thing) in old for thing in made)


def test_what_is_set_aside_comes_back():
    before = [[] for _ in range(10)]
    with set_aside():
        assert gc.get_freeze_count() > len(before)
        made = [[] for _ in range(10)]
        new = {id(thing) for at in range(3) for thing in gc.get_objects(generation=at)}
        assert all(id(thing) in new for thing in made)
        assert not any(id(thing) in new for thing in before)
        with set_aside():
            assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0
    with pytest.raises(KeyError), set_aside():
        raise KeyError
    assert gc.get_freeze_count() == 0
