"""The generated pages are those of today's code."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from tracemill.compiler.errors import CODES

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def rows(text: str) -> dict[str, str]:
    """Name -> status on numpy-support.md."""
    return dict(re.findall(r"^\| `([\w.]+)` \| (\w+) \|$", text, re.MULTILINE))


@pytest.mark.parametrize("name", ["errors.md", "operations.md"])
def test_the_page_is_up_to_date(generate: ModuleType, name: str) -> None:
    assert page(name) == generate.PAGES[name](), "run `python dev.py docs`"


def test_the_page_on_numpy_is_up_to_date(generate: ModuleType) -> None:
    committed, made = page("numpy-support.md"), generate.numpy_page()
    if generate.numpy_line() in committed:
        assert committed == made, "run `python dev.py docs`"
    else:  # another NumPy than the page is about: what both have must agree
        theirs = rows(made)
        different = {n: s for n, s in rows(committed).items() if theirs.get(n, s) != s}
        assert different == {}


def test_every_code_has_an_anchor() -> None:
    text = page("errors.md")
    for code in CODES:
        assert text.count(f'<a id="{code.lower()}"></a>') == 1
        assert f"[{code}](#{code.lower()})" in text


def test_every_program_speaks_about_a_code(generate: ModuleType) -> None:
    assert set(generate.PROGRAMS) <= set(CODES)
    assert len(generate.PROGRAMS) >= 10


def test_stale_pages_are_named_and_rewritten(
    generate: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setattr(generate, "FOLDER", tmp_path)
    monkeypatch.setattr(generate, "PAGES", {"one.md": lambda: "one\n", "two.md": lambda: "two\n"})
    (tmp_path / "one.md").write_text("one\n")
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().out == "not up to date: two.md; run `python dev.py docs`\n"
    assert not (tmp_path / "two.md").exists()
    assert generate.main([]) == 0
    assert (tmp_path / "two.md").read_text() == "two\n"
    assert generate.main(["--check"]) == 0


def links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_links_of_the_pages_lead_somewhere(path: Path) -> None:
    for link in links(path.read_text(encoding="utf-8")):
        assert "://" in link or (path.parent / link).exists(), link
