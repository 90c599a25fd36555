"""The count of tests that did not run fails a run that it should fail, with and without workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import accounting

CONFTEST = """
from pathlib import Path
import accounting

def pytest_configure(config):
    here = Path(__file__).parent
    config.pluginmanager.register(accounting.Accounting(here / "not_run.txt", "test"))
"""
TESTS = """
import pytest

def test_passes(): pass

@pytest.mark.parametrize("n", range(2))
def test_skipped(n): pytest.skip("no such tool")

@pytest.mark.xfail(reason="wrong today")
def test_expected(): assert False
"""
MODULE = 'import pytest\npytest.skip("no module", allow_module_level=True)\n'
ENOUGH = "test | 2 | no such tool\ntest | 1 | xfail: wrong today\ntest | 1 | no module\n"


def run(folder: Path, allowed: str, *arguments: str) -> tuple[int, str]:
    """Run the planted tests in a process of their own."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_planted.py").write_text(TESTS)
    (folder / "test_module.py").write_text(MODULE)
    (folder / "not_run.txt").write_text(allowed)
    support = Path(accounting.__file__).parent
    environ = {**os.environ, "PYTHONPATH": str(support)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_what_is_listed_passes_and_one_more_fails(tmp_path: Path, workers: tuple[str, ...]) -> None:
    status, output = run(tmp_path, ENOUGH, *workers)
    assert status == 0, output
    assert "not run: 2 (no such tool)" in output
    status, output = run(tmp_path, "test | 1 | no such tool\n", *workers)
    assert status == 1, output
    assert "2 not run, 1 allowed: no such tool" in output
    assert "1 not run, 0 allowed: xfail: wrong today" in output
    assert "1 not run, 0 allowed: no module" in output


def test_a_run_without_a_test_fails(tmp_path: Path) -> None:
    status, output = run(tmp_path, ENOUGH, "-k", "skipped")
    assert status == 1
    assert "no test ran" in output


def test_a_missing_or_unreadable_list_fails(tmp_path: Path) -> None:
    status, output = run(tmp_path, "two tests\n")
    assert status == 1
    assert "line 1 is not `tier | count | reason`" in output


def test_each_tier_has_its_own_counts() -> None:
    allowed = accounting.read_allowed("# comment\n\ntest | 3 | a | b\nnightly | 1 | c\n")
    assert allowed["test"] == {"a | b": 3}
    assert allowed["nightly"] == {"c": 1}
    with pytest.raises(ValueError, match="line 2 lists"):
        accounting.read_allowed("test | 1 | a\ntest | 2 | a\n")


def test_the_committed_list_can_be_read(checkout: Path) -> None:
    accounting.read_allowed((checkout / "tests" / "not_run.txt").read_text(encoding="utf-8"))
