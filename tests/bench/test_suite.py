"""The benchmark suite itself: its list is complete, nobody is left out silently, tables are made.

Not here: any time that it measures.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

NAMES = (Path(__file__).parent / "workloads.txt").read_text().split()


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch, checkout: Path) -> Iterator[ModuleType]:
    """The `benchmarks` package of the checkout, forgotten afterwards."""
    monkeypatch.syspath_prepend(str(checkout))
    monkeypatch.chdir(checkout)
    importlib.import_module("benchmarks.worker")
    yield importlib.import_module("benchmarks.__main__")
    for name in [n for n in sys.modules if n.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]


def outcome_of(suite: ModuleType, peer_times: list[float] | None, **changes: object):
    """Two contenders on the first workload: ours takes 1 ms, the peer so long or fails."""
    harness = sys.modules["benchmarks.harness"]
    ours = harness.Measurement("tracemill", accurate=True, blocks=[[1e-3], [1e-3], [1e-3]])
    peer = harness.Measurement("jax", accurate=True)
    if peer_times is None:
        peer.failed = "ModuleNotFoundError: No module named 'jax'"
    else:
        peer.blocks = [[t] for t in peer_times]
    numpy = harness.Measurement("numpy", accurate=True, blocks=[[5e-3]] * 3)
    outcome = harness.judged(suite.ALL[NAMES[0]], {"n": 8}, [ours, numpy, replace(peer, **changes)])
    return outcome


def test_the_list_of_workloads_is_complete(suite: ModuleType) -> None:
    assert list(suite.ALL) == NAMES


def test_every_peer_that_has_a_form_is_run(suite: ModuleType) -> None:
    packages = sys.modules["benchmarks.worker"].PACKAGES
    for workload in suite.ALL.values():
        assert set(workload.peers) <= set(suite.PEERS), workload.name
        assert {*workload.peers, *workload.unequal} <= set(packages), workload.name
        assert "tensorflow" in workload.peers, workload.name


def test_every_workload_has_a_roofline_but_the_tiny_ones(suite: ModuleType) -> None:
    for name, workload in suite.ALL.items():
        limited = workload.traffic is not None or workload.flops is not None
        assert limited != name.startswith("tiny"), name


def test_forms_with_looser_numerics_are_never_the_best_peer(suite: ModuleType) -> None:
    outcome = outcome_of(suite, [1e-4] * 3, unequal=True)
    assert (outcome.best_peer, outcome.met) == ("numpy", True)
    assert "UNEQUAL" in suite.report.line(outcome)


def test_a_missing_peer_is_reported_and_counts_as_not_met(suite: ModuleType) -> None:
    assert outcome_of(suite, [2e-3] * 3).met
    outcome = outcome_of(suite, None)
    assert outcome.ratio.low >= 1.0
    assert (outcome.missing, outcome.met) == (["jax"], False)
    assert "not met: no figure of jax" in suite.report.line(outcome)
    assert suite.report.summary([outcome]).startswith("0 of 1 ")


def test_a_faster_peer_counts_as_not_met(suite: ModuleType) -> None:
    outcome = outcome_of(suite, [2e-3, 5e-4, 5e-4])
    assert (outcome.best_peer, outcome.met) == ("jax", False)


@pytest.mark.processes
def test_a_contender_that_cannot_start_is_a_missing_peer(suite: ModuleType) -> None:
    tiny = suite.ALL["tiny-2"]
    strange = replace(tiny, peers={"stranger": tiny.peers["jax"]})
    outcome = suite.run_workload(strange, ["stranger"], seed=1, blocks=1, seconds=0.0)
    ours, numpy, stranger = outcome.measurements
    assert ours.accurate
    assert ours.time is not None
    assert numpy.time is not None
    assert "stranger" in (stranger.failed or "")
    assert (outcome.missing, outcome.met) == (["stranger"], False)


def test_the_roofline_is_the_nearer_limit(suite: ModuleType) -> None:
    outcome = outcome_of(suite, [2e-3] * 3)
    assert suite.report.roofline(outcome).startswith("too small")
    outcome.bandwidth_fraction, outcome.flops_fraction = 0.25, 0.5
    assert suite.report.roofline(outcome) == "50% of the FMA peak"


def test_double_precision_has_half_of_the_peak(suite: ModuleType) -> None:
    limits = suite.machine.Machine("any", 2, 512, copy=1e9, fma32=4e9)
    outcome = replace(outcome_of(suite, [2e-3] * 3), workload="n-body", sizes={"n": 10})
    suite.fractions(outcome, limits)
    assert outcome.flops_fraction == pytest.approx(20.0 * 100 / 1e-3 / 2e9)


def test_only_the_figures_of_a_markdown_file_change(suite: ModuleType, checkout: Path) -> None:
    limits = suite.machine.Machine("any", 2, 512, copy=1e9, fma32=4e9)
    text = (checkout / "benchmarks" / "README.md").read_text()
    outcomes = [outcome_of(suite, [2e-3] * 3), outcome_of(suite, None)]
    once = suite.table.renewed(text, limits, outcomes)
    assert suite.table.renewed(once, limits, outcomes) == once
    begin, end = suite.table.BEGIN, suite.table.END
    assert once.partition(begin)[0] == text.partition(begin)[0]
    assert once.partition(end)[2] == text.partition(end)[2]
    rows = [line for line in once.splitlines() if line.startswith(f"| {NAMES[0]} ")]
    assert len(rows) == 2
    assert "| jax | 2.00 [2.00, 2.00] |" in rows[0]
    assert "(not met)" in rows[1]
    assert "jax missing" in rows[1]
    with pytest.raises(ValueError, match="no place"):
        suite.table.renewed("nothing", limits, outcomes)


def test_errors_are_relative_to_the_largest_value(suite: ModuleType) -> None:
    worker = sys.modules["benchmarks.worker"]
    want = np.array([1.0, -4.0])
    assert worker.relative_error(want + [0.5, 0.0], want) == pytest.approx(0.125)
    with pytest.raises(ValueError, match="shape"):
        worker.relative_error(want[:1], want)
