"""The code of the documentation runs, and prints what the pages say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import programs

from .blocks import Block, agrees, blocks_of

ROOT = Path(__file__).resolve().parents[2]
RUNNER = ROOT / "tests" / "support" / "page_runner.py"
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"))
    if blocks_of(path.read_text(encoding="utf-8"))
)


def run_page(name: str, blocks: list[Block], folder: Path) -> list[str]:
    """What is wrong with the blocks of a page."""
    blocks = [block for block in blocks if block.after is None]
    blocks = [block for block in blocks if block.needs is None or programs.find(block.needs)]
    listing = folder / f"{Path(name).stem}.json"
    listing.write_text(json.dumps([[block.line, block.source] for block in blocks]))
    done = subprocess.run(
        [sys.executable, "-P", str(RUNNER), str(listing)],
        cwd=folder,
        env={**os.environ, "TRACEMILL_LOG": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    wrong = []
    for block, (printed, problem) in zip(blocks, results, strict=True):
        place = f"{name}:{block.line}: "
        if (problem[0] if problem else None) != block.raises:
            got = problem[2] if problem else "nothing"
            wrong.append(f"{place}should raise {block.raises or 'nothing'}, raised {got}")
        elif block.shown is not None:
            text = printed or (problem[1] if problem else "")
            if not agrees(block.shown, text):
                wrong.append(f"{place}the page shows\n{block.shown}\nit prints\n{text}")
    return wrong


@pytest.mark.processes
@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(name: str, tmp_path: Path) -> None:
    wrong = run_page(name, blocks_of((ROOT / name).read_text(encoding="utf-8")), tmp_path)
    assert not wrong, "\n" + "\n".join(wrong)


def test_the_guides_have_code() -> None:
    expected = {"README.md", "CONTRIBUTING.md", "docs/first-hour.md", "docs/errors.md"}
    assert expected <= set(PAGES)


PAGE = """\
```python
import numpy as np
print(np.ones(2) / 3, "took 3.5 ms")
```

```
[0.33333333 0.33333333] took ... ms
```

Prose between: not its output.

```
other
```

```python raises=ValueError
raise ValueError("no")
```
"""


def test_blocks_are_found_with_their_lines_outputs_and_errors() -> None:
    first, second = blocks_of(PAGE)
    assert (first.line, first.shown) == (2, "[0.33333333 0.33333333] took ... ms")
    assert (second.line, second.raises, second.shown) == (17, "ValueError", None)


@pytest.mark.processes
def test_a_wrong_page_is_found_wrong(tmp_path: Path) -> None:
    assert run_page("right.md", blocks_of(PAGE), tmp_path) == []
    output = PAGE.replace("0.33333333 0", "0.33333444 0")
    assert "the page shows" in run_page("wrong.md", blocks_of(output), tmp_path)[0]
    broken = PAGE.replace("np.ones", "np.onse")
    assert "AttributeError" in run_page("broken.md", blocks_of(broken), tmp_path)[0]
    silent = PAGE.replace("raise ValueError", "str")
    assert "should raise ValueError" in run_page("silent.md", blocks_of(silent), tmp_path)[0]


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a  b", "a b\n", True), ("1.00000", "1.0", True), ("f(...) x", "f(1, 2) x", True),
        ("[1. 2.]", "[ 1.  2.]", True), ("1.01", "1.02", False), ("a", "a b", False),
        ("... end", "x\ny end", True), ("n 12", "n 13", False),
    ],
)  # fmt: skip
def test_outputs_are_compared_loosely_but_compared(shown: str, printed: str, same: bool) -> None:
    assert agrees(shown, printed) is same
