"""Counts the tests that did not run, by reason, and compares with the committed list.

Invariants: a reason that is not listed, or one test more than is listed for it, fails the run, and
so does a run in which no test ran at all. A skipped module counts as one. Works the same under
pytest-xdist, where the workers report and the controlling process judges.

Not here: the decision to skip (tests/conftest.py, and the tests themselves).
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

TIERS = ("test", "test-all", "nightly")


def read_allowed(text: str) -> dict[str, Counter[str]]:
    """Parse lines of the form `tier | count | reason`; `#` starts a comment line."""
    allowed: dict[str, Counter[str]] = {tier: Counter() for tier in TIERS}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("|", 2)]
        if len(fields) != 3 or fields[0] not in TIERS or not fields[1].isdecimal():
            raise ValueError(f"line {number} is not `tier | count | reason`: {line}")
        if fields[2] in allowed[fields[0]]:
            raise ValueError(f"line {number} lists a reason of {fields[0]} twice: {fields[2]}")
        allowed[fields[0]][fields[2]] = int(fields[1])
    return allowed


def complaints(found: Counter[str], allowed: Counter[str]) -> list[str]:
    """One sentence for each reason that more tests give than the list allows."""
    return [
        f"{count} not run, {allowed[reason]} allowed: {reason}"
        for reason, count in sorted(found.items())
        if count > allowed[reason]
    ]


class Accounting:
    """The pytest plugin: gathers reports while the tests run and judges at the end."""

    def __init__(self, list_file: Path, tier: str):
        self.list_file = list_file
        self.tier = tier
        self.reasons: dict[str, str] = {}  # test or module -> why it did not run
        self.ran = 0
        self.complaints: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped:
            expected = getattr(report, "wasxfail", None)
            reason = skip_reason(report) if expected is None else f"xfail: {expected}"
            self.reasons[report.nodeid] = reason
        elif report.when == "call" or report.failed:
            self.ran += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.reasons[report.nodeid] = skip_reason(report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """A worker of pytest-xdist tells which modules it skipped; nobody else would."""
        self.reasons.update(getattr(node, "workeroutput", {}).get("skipped modules", {}))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["skipped modules"] = dict(self.reasons)
            return
        if session.config.option.collectonly:
            return
        try:
            allowed = read_allowed(self.list_file.read_text(encoding="utf-8"))[self.tier]
        except (OSError, ValueError) as problem:
            self.complaints = [f"{self.list_file.name}: {problem}"]
        else:
            self.complaints = complaints(Counter(self.reasons.values()), allowed)
        if not self.ran:
            self.complaints.append("no test ran")
        if self.complaints and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for reason, count in sorted(Counter(self.reasons.values()).items()):
            terminalreporter.write_line(f"not run: {count} ({reason})")
        for complaint in self.complaints:
            terminalreporter.write_line(f"FAILED by {self.list_file.name}: {complaint}", red=True)


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The reason given to pytest.skip, without pytest's own prefix."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ").strip()
