"""How a file looks: sizes, docstrings, names, and words that belong to one machine.

Invariants: a rule looks at one file at a time and says the line.

Not here: what ruff checks (pyproject.toml); exceptions and their reasons (exceptions.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .checkout import PYTHON_FOLDERS, Rule, Source, Violation
from .exceptions import LONG_FILES

FILE_LINES = 400
FUNCTION_LINES = 60
LINE_CHARACTERS = 100
VAGUE = re.compile(r"^(utils?|helpers?|common|misc)$|^new_|_v\d+$")

# Spelled in pieces, so that this file does not break its own rule.
MACHINE = re.compile(r"(?<![\w.~*\]})])/(?:home|root|opt|mnt|work|tmp|Users)/\w")
REGISTRY = re.compile(r"(?:pypi|pytorch|pythonhosted|anaconda)" + r"\.(?:org|com)\b")


def file_size(source: Source) -> Iterator[Violation]:
    """A file is short enough to be read in one sitting."""
    limit = LONG_FILES[source.path][0] if source.path in LONG_FILES else FILE_LINES
    if source.is_python and len(source.lines) > limit:
        yield Violation(source.path, limit + 1, f"{len(source.lines)} lines, at most {limit}")


def function_size(source: Source) -> Iterator[Violation]:
    """A function fits on a screen."""
    if not source.in_package:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                sentence = f"{node.name}() has {lines} lines, at most {FUNCTION_LINES}"
                yield Violation(source.path, node.lineno, sentence)


def module_docstring(source: Source) -> Iterator[Violation]:
    """A module opens by saying its role."""
    if source.is_python and not ast.get_docstring(source.tree):
        yield Violation(source.path, 1, "the module has no docstring: say its role")


def line_length(source: Source) -> Iterator[Violation]:
    """A line of code fits beside another file; a long address may stand alone on its line."""
    if not source.is_python:
        return
    for number, line in enumerate(source.lines, 1):
        if len(line) > LINE_CHARACTERS and "://" not in line:
            sentence = f"{len(line)} characters, at most {LINE_CHARACTERS}"
            yield Violation(source.path, number, sentence)


def names_that_say_something(source: Source) -> Iterator[Violation]:
    """A file or folder is named for what it holds."""
    if source.folder not in PYTHON_FOLDERS:
        return
    for part in source.path.split("/"):
        if VAGUE.search(part.split(".")[0]):
            yield Violation(source.path, 1, f"{part} does not say what it holds: rename it")


def no_machine_paths(source: Source) -> Iterator[Violation]:
    """Nothing names a folder of one machine or a registry's host: pip's settings decide those."""
    for number, line in enumerate(source.lines, 1):
        for pattern, what in ((MACHINE, "a path of one machine"), (REGISTRY, "a registry's host")):
            found = pattern.search(line)
            if found:
                yield Violation(source.path, number, f"{found.group()}: {what}")


def no_sleep_in_tests(source: Source) -> Iterator[Violation]:
    """A test waits for an event, not for the clock."""
    if source.folder != "tests" or not source.is_python:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"time.sleep", "sleep"}:
            yield Violation(
                source.path, node.lineno, "a test may not sleep: wait for the event itself"
            )


RULES: tuple[Rule, ...] = (
    file_size,
    function_size,
    module_docstring,
    line_length,
    names_that_say_something,
    no_machine_paths,
    no_sleep_in_tests,
)
