"""Every tidy rule holds in the checkout, and every rule can be broken."""

from __future__ import annotations

import pytest

from . import import_rules, text_rules
from .checkout import Rule, Source, Violation, sources
from .exceptions import EXCEPTIONS, LONG_FILES
from .planted import PLANTED

RULES: dict[str, Rule] = {rule.__name__: rule for rule in import_rules.RULES + text_rules.RULES}


def violations(name: str) -> list[Violation]:
    return [violation for source in sources() for violation in RULES[name](source)]


@pytest.mark.parametrize("name", RULES)
def test_the_checkout_obeys(name: str) -> None:
    excepted = EXCEPTIONS.get(name, {})
    broken = [str(found) for found in sorted(violations(name)) if found.path not in excepted]
    assert not broken, "\n" + "\n".join(broken)


@pytest.mark.parametrize(("name", "path", "text", "report"), PLANTED)
def test_a_planted_violation_is_reported(name: str, path: str, text: str, report: str) -> None:
    found = [str(violation) for violation in RULES[name](Source(path, text))]
    assert found == ([f"{path}:{report}"] if report else [])


def test_every_rule_has_a_planted_violation() -> None:
    assert {name for name, _, _, report in PLANTED if report} == set(RULES)


def test_every_exception_is_still_needed_and_has_a_reason() -> None:
    assert set(EXCEPTIONS) <= set(RULES)
    for name, excepted in EXCEPTIONS.items():
        breaking = {violation.path for violation in violations(name)}
        for path, reason in excepted.items():
            assert path in breaking, f"{path} no longer breaks {name}: remove the exception"
            assert len(reason.split()) >= 3, f"{path} breaks {name} without a reason"


def test_every_long_file_is_still_long() -> None:
    lengths = {source.path: len(source.lines) for source in sources()}
    for path, (limit, reason) in LONG_FILES.items():
        assert lengths.get(path, 0) > text_rules.FILE_LINES, (
            f"{path} is short: remove the exception"
        )
        assert limit <= lengths[path] + 60, (
            f"{path} may have {limit} lines and needs fewer: lower it"
        )
        assert len(reason.split()) >= 3


def test_the_rules_see_the_whole_package() -> None:
    seen = {source.folder for source in sources() if source.in_package}
    assert seen == {"compiler", "runtime", "backends", "frontend"}
