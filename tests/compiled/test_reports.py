"""What `TRACEMILL_LOG` and a long compilation show."""

from __future__ import annotations

import io
import itertools
import re
import threading

import numpy as np
import pytest

import tracemill as tm
from tracemill import progress
from tracemill.calls import dispatch

CODE = """
import sys
import numpy as np
import tracemill as tm
sys.stderr = sys.stdout

@tm.jit
def scaled(x):
    return (x - x.mean(axis=1, keepdims=True)) * 2.0

scaled(np.ones((9, 8)))
again = tm.jit(scaled.__wrapped__)
again(np.ones((9, 8)))
"""


def lines(run_python, tmp_path, topics):
    text = run_python(CODE, TRACEMILL_LOG=topics, TRACEMILL_CACHE=str(tmp_path / "cache"))
    return text.splitlines()


def test_nothing_is_logged_unasked(run_python, tmp_path):
    assert lines(run_python, tmp_path, "") == []


def test_the_graph_is_logged_after_tracing(run_python, tmp_path):
    shown = lines(run_python, tmp_path, "graph")
    assert shown[:2] == ["tracemill graph:", "graph @scaled(%x: f64[n, m]) -> f64[n, m] {"]
    assert shown.count("tracemill graph:") == 2


def test_kernels_are_logged_as_text(run_python, tmp_path):
    shown = lines(run_python, tmp_path, "kernels")
    assert shown[0] == "tracemill kernels:"
    assert shown[1].startswith("kernel @")
    assert any("parallel" in line for line in shown)


def test_each_pass_is_logged_with_its_nodes_and_time(run_python, tmp_path):
    shown = lines(run_python, tmp_path, "passes")
    form = re.compile(r"tracemill passes: scaled (\w+): (\d+) -> (\d+) nodes, \d+\.\d\d ms")
    rows = [form.fullmatch(line).groups() for line in shown]
    assert [name for name, _, _ in rows[:8]] == [
        "inline", "prune", "simplify", "fold", "simplify", "dedupe", "prune", "fuse",
    ]  # fmt: skip
    assert all(earlier[2] == later[1] for earlier, later in itertools.pairwise(rows[:8]))
    assert int(rows[7][2]) < int(rows[7][1])


def test_cache_hits_and_misses_are_logged_by_plan_and_kernel(run_python, tmp_path):
    first = lines(run_python, tmp_path, "cache")
    assert re.fullmatch(r"tracemill cache: miss plan [0-9a-f]{12}", first[0])
    assert re.fullmatch(r"tracemill cache: miss \w+ [0-9a-f]{12}", first[1])
    assert first[-1] == first[0].replace("miss", "hit")  # the same function, jitted again
    assert lines(run_python, tmp_path, "cache") == [first[-1]] * 2
    made = lines(run_python, tmp_path, "cache,kernels")  # kernels are shown where they are made
    shown = [line for line in made if line.startswith("tracemill cache:")]
    assert shown[0] == first[1].replace("miss", "hit")
    assert re.fullmatch(r"tracemill cache: hit \w+ [0-9a-f]{12}, in this process", shown[-1])


def test_recompiles_are_logged_with_their_reason(run_python, tmp_path):
    shown = lines(run_python, tmp_path, "recompiles")
    assert shown[0].startswith("tracemill recompiles: scaled 1. (x: f64[n, m]): first call (")


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Script:
    """Stands for time: each wait advances the clock and runs the next thing that happens."""

    def __init__(self, *happenings):
        self.now = 100.0
        self.happenings = list(happenings)

    def clock(self):
        return self.now

    def wait(self, seconds):
        if not self.happenings:
            return True
        self.now += seconds
        self.happenings.pop(0)()
        return False


def watched(stream, *happenings):
    """What a scripted compilation shows; each happening is given its progress."""
    script = Script(*[lambda happening=happening: happening(made) for happening in happenings])
    made = progress.Progress("train_step", clock=script.clock, stream=stream, wait=script.wait)
    made.begin("tracing")
    made.watch()
    return stream.getvalue()


def count_two(made):
    made.begin("machine code", 40)
    made.count += 2


def test_a_terminal_shows_one_line_that_is_rewritten():
    shown = watched(Terminal(), lambda made: None, count_two, lambda made: made.begin("tables"))
    rows = shown.split("\r")
    assert rows[0] == ""
    assert [row.rstrip() for row in rows[1:]] == [
        "tracemill: compiling train_step: tracing, 2.0 s",
        "tracemill: compiling train_step: machine code, 2 of 40 kernels, 2.2 s",
        "tracemill: compiling train_step: tables, 2.4 s",
        "tracemill: compiling train_step: 2.4 s in all",
    ]
    assert len(rows[3]) >= len(rows[2]), "a shorter line covers the longer one before it"


def test_elsewhere_each_phase_has_a_line():
    nothing = lambda made: None
    shown = watched(io.StringIO(), nothing, nothing, nothing, count_two, nothing)
    assert shown.splitlines() == [
        "tracemill: compiling train_step: tracing, 2.0 s",
        "tracemill: compiling train_step: machine code, 2 of 40 kernels, 2.6 s",
        "tracemill: compiling train_step: 2.8 s in all",
    ]


def test_a_fast_compilation_shows_nothing():
    assert watched(io.StringIO()) == ""


def test_a_slow_phase_of_a_real_compilation_is_shown(monkeypatch, capsys):
    shown = threading.Event()

    class Watched(io.StringIO):
        def flush(self):
            shown.set()

    stream = Watched()
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr("sys.stderr", stream)
    made = dispatch.build

    def slow(*arguments):
        progress.phase("a slow phase")
        assert shown.wait(60)
        return made(*arguments)

    monkeypatch.setattr(dispatch, "build", slow)
    np.testing.assert_array_equal(tm.jit(lambda x: x + 1)(np.ones(3)), np.full(3, 2.0))
    first, *_, last = stream.getvalue().splitlines()
    assert first.startswith("tracemill: compiling <lambda>: ")
    assert re.fullmatch(r"tracemill: compiling <lambda>: \d+\.\d s in all", last)


def test_a_compilation_that_fails_ends_its_line(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    with pytest.raises(ValueError, match="TM204"):
        tm.jit(lambda x: x + np.ones(7))(np.ones((3, 2)))
    assert stream.getvalue() == ""
    assert "tracemill progress" not in {thread.name for thread in threading.enumerate()}
