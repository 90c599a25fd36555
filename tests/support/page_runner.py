"""Runs the code blocks of a page in order, in one namespace, as a program of its own.

Called with a JSON file that lists [first line, source]; writes to standard output, as JSON, for
each block what it printed and what it raised: null, or [code or class, text].

Invariants: a block's lines have the numbers they have on the page, in a file that exists, so that
errors and traces show them.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import traceback
import types
from pathlib import Path


def main(listing: str) -> None:
    """Run the blocks of the listing."""
    blocks = json.loads(Path(listing).read_text())
    page = Path(listing).with_suffix(".py")
    lines: list[str] = []
    for line, source in blocks:
        lines += [""] * (line - 1 - len(lines)) + source.splitlines()
    page.write_text("\n".join(lines) + "\n")
    module = sys.modules["page"] = types.ModuleType("page")
    print(json.dumps([run(page, line, source, vars(module)) for line, source in blocks]))


def run(page: Path, line: int, source: str, namespace: dict[str, object]) -> list[object]:
    """What one block printed, and what it raised."""
    shown = io.StringIO()
    problem = None
    with contextlib.redirect_stdout(shown):
        try:
            exec(compile("\n" * (line - 1) + source, str(page), "exec"), namespace)
        except Exception as error:  # noqa: BLE001  reported to the test
            name = getattr(error, "code", type(error).__name__)
            problem = [name, str(error), traceback.format_exc()]
    return [shown.getvalue(), problem]


if __name__ == "__main__":
    main(sys.argv[1])
