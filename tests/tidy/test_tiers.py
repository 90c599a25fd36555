"""A test that lacks what it needs is skipped for that reason, and runs where it has it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest


class Item:
    """As much of a pytest item as the decision looks at."""

    def __init__(self, *marks: pytest.MarkDecorator):
        self.marks = [decorator.mark for decorator in marks]

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return [mark for mark in self.marks if mark.name == name]

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next(iter(self.iter_markers(name)), None)


@pytest.fixture
def conftest(pytestconfig: pytest.Config, checkout: Path) -> ModuleType:
    """The conftest.py that this very run uses."""
    plugin = pytestconfig.pluginmanager.get_plugin(str(checkout / "tests" / "conftest.py"))
    assert isinstance(plugin, ModuleType)
    return plugin


def test_slow_tests_run_in_the_nightly_tier_alone(conftest: ModuleType) -> None:
    item = Item(pytest.mark.slow)
    reason = "slow: runs in `make nightly`"
    assert [conftest.missing_need(item, tier) for tier in ("test", "test-all")] == [reason] * 2
    assert conftest.missing_need(item, "nightly") is None


def test_a_missing_program_is_named(conftest: ModuleType) -> None:
    assert conftest.missing_need(Item(pytest.mark.tool(sys.executable)), "test") is None
    missing = Item(pytest.mark.tool(sys.executable), pytest.mark.tool("no-such-program"))
    assert conftest.missing_need(missing, "test-all") == "needs the program no-such-program"


@pytest.mark.parametrize(("present", "reason"), [(True, None), (False, "needs an NVIDIA GPU")])
def test_gpu_tests_run_where_a_gpu_is(
    conftest: ModuleType, monkeypatch: pytest.MonkeyPatch, present: bool, reason: str | None
) -> None:
    monkeypatch.setattr(conftest, "gpu_present", lambda: present)
    assert conftest.missing_need(Item(pytest.mark.gpu), "test") == reason
    assert conftest.missing_need(Item(), "test") is None


def test_a_run_meant_for_the_wheel_refuses_the_checkout(
    conftest: ModuleType, monkeypatch: pytest.MonkeyPatch, checkout: Path
) -> None:
    import tracemill

    monkeypatch.setattr(tracemill, "__path__", [str(checkout / "frontend")])
    with pytest.raises(pytest.UsageError, match="imported from the checkout"):
        conftest.require_installed()


def test_a_seed_differs_by_test_and_repeats(seed: int, pytestconfig: pytest.Config) -> None:
    assert isinstance(pytestconfig.option.seed, int)
    assert 0 <= seed < 2**32
