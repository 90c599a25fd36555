"""The code blocks of a page, and whether an output is what the page shows.

A block fenced as ``python`` is code; ``python raises=TM204`` must raise that, ``python needs=cc``
runs where that program is installed, ``python after=name`` once an op of that name is in the table
(test_adding_an_op.py). A block without a
language, or fenced as ``text``, that follows one directly is what it prints.

Not here: running them (tests/support/page_runner.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

FENCE = re.compile(r"^```(.*)$")
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[+-]?\d+)?(?!\w)")


@dataclass(frozen=True)
class Block:
    """Code of a page. line: of its first line. raises: a code or a class. shown: its output."""

    line: int
    source: str
    raises: str | None = None
    shown: str | None = None
    needs: str | None = None
    after: str | None = None


def blocks_of(text: str) -> list[Block]:
    """All code blocks of a page, in order."""
    found: list[Block] = []
    follows = False
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if fence is None:
            follows = follows and not lines[at].strip()
            at += 1
            continue
        end = next(i for i in range(at + 1, len(lines)) if lines[i].startswith("```"))
        body, info = "\n".join(lines[at + 1 : end]), fence.group(1).split()
        if info[:1] == ["python"]:
            options = dict(word.split("=") for word in info[1:])
            found.append(Block(at + 2, body, **options))
        elif info in ([], ["text"]) and follows:
            found.append(replace(found.pop(), shown=body))
        follows = info[:1] == ["python"]
        at = end + 1
    return found


def agrees(shown: str, printed: str) -> bool:
    """Whether output is what is shown: spaces aside, ``...`` is anything, numbers to 7 digits."""
    wanted = re.sub(r"(?:\\ )?(?:\\\.){3}(?:\\ )?", ".*?", re.escape(_plain(shown)))
    return re.fullmatch(wanted, _plain(printed), re.DOTALL) is not None


def _plain(text: str) -> str:
    rounded = NUMBER.sub(lambda found: f"{float(found.group()):.7g}", text)
    return " ".join(re.sub(r"([\[\](),])", r" \1 ", rounded).split())
