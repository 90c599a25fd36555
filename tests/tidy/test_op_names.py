"""An elementwise op is one record: nothing below the frontend is keyed by its name."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from tracemill.compiler.ops import ALL
from tracemill.compiler.ops.definition import Structure
from tracemill.compiler.ops.words import WORDS

# Words of the scalar language are what bodies are written in: each has one meaning for all.
NAMES = {
    name for name, op in ALL.items() if op.structure is Structure.ELEMENTWISE and name not in WORDS
}
FOLDERS = ("compiler/passes", "compiler/kernel", "compiler/ir", "backends", "runtime")
# `cast` is a type conversion the compiler itself writes; in the native language it is Python's
# typing notion, no op.
ALLOWED = {"backends/llvm/native/language/__init__.py": {"cast"}}


def mentions(files: Iterable[Path], root: Path) -> list[str]:
    """Each string that is exactly the name of an elementwise op."""
    found = []
    for path in files:
        place = path.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and node.value in NAMES:
                if node.value not in ALLOWED.get(place, set()):
                    found.append(f"{place}:{node.lineno}: names the op {node.value!r}")
    return found


def test_passes_kernels_and_back_ends_name_no_elementwise_op(checkout):
    files = [path for folder in FOLDERS for path in (checkout / folder).rglob("*.py")]
    assert len(files) > 100
    assert not mentions(files, checkout)


def test_a_planted_mention_is_found(tmp_path):
    planted = tmp_path / "bad.py"
    planted.write_text("TABLE = {'tanh': 1}\n")
    assert mentions([planted], tmp_path) == ["bad.py:1: names the op 'tanh'"]
