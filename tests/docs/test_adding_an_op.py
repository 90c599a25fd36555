"""The walk-through of CONTRIBUTING.md: the record it shows, put where it says, is an op."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from .blocks import Block, agrees, blocks_of

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "CONTRIBUTING.md"
HOME = "compiler/ops/elementwise_stable.py"


@pytest.fixture(scope="module")
def blocks() -> list[Block]:
    return blocks_of(GUIDE.read_text(encoding="utf-8"))


def no_source(folder: str, names: list[str]) -> list[str]:
    """What a copy of the package leaves out."""
    return [n for n in names if n == "__pycache__" or (Path(folder) / n).is_symlink()]


@pytest.fixture(scope="module")
def with_op(blocks: list[Block], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package in which the record is in its family's OPS."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(ROOT / "frontend", folder / "tracemill", ignore=no_source)
    for layer in ("compiler", "runtime", "backends"):
        shutil.copytree(ROOT / layer, folder / "tracemill" / layer, ignore=no_source)
    (record,) = [block.source for block in blocks if "softsign = record(" in block.source]
    assert HOME in GUIDE.read_text(encoding="utf-8")
    home = folder / "tracemill" / HOME
    home.write_text(f"{home.read_text()}\n\n{record}\nOPS = (*OPS, softsign)\n")
    return folder


@pytest.mark.processes
def test_the_op_of_the_walk_through_is_compiled_and_fused(
    blocks: list[Block], with_op: Path, run_python: Callable[..., str], tmp_path: Path
) -> None:
    (use,) = [block for block in blocks if block.after == "softsign"]
    program = tmp_path / "use.py"
    program.write_text(f"import numpy as np\n{use.source}\n")
    code = f"import runpy; runpy.run_path({str(program)!r})"
    printed = run_python(code, PYTHONPATH=str(with_op))
    assert use.shown is not None
    assert agrees(use.shown, printed), printed


TEXT = """
import tracemill
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.ir.printer import print_graph
text = '''graph @f(%x: f32[n]) -> f32[n] {
  %y = softsign %x : f32[n]
  return %y
}
'''
assert print_graph(parse_graph(text)) == text
print(tracemill.__path__[0])
"""


@pytest.mark.processes
def test_text_form_and_documentation_know_it(with_op: Path, run_python: Callable[..., str]) -> None:
    assert run_python(TEXT, PYTHONPATH=str(with_op)).strip() == str(with_op / "tracemill")
    shutil.copytree(ROOT / "docs", with_op / "docs")
    generate = str(with_op / "docs" / "generate.py")
    code = f"import runpy; runpy.run_path({generate!r}, run_name='__main__')"
    assert "operations.md written" in run_python(code, PYTHONPATH=str(with_op))
    page = (with_op / "docs" / "operations.md").read_text(encoding="utf-8")
    assert "| `softsign` |  | f32, f64 | yes | x / (1 + \\|x\\|): a smooth step" in page
