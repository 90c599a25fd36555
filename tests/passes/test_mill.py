"""The developer's command line: text in, passes, text out.

Not here: what the passes do.
"""

from __future__ import annotations

import io

import pytest

from tracemill.compiler.errors import ArgError
from tracemill.compiler.mill import main, pass_named
from tracemill.compiler.passes.fold import Fold

BEFORE = """graph @f(%x: f32[n]) -> f32[n] {
  %two = add 1.0:f32, 1.0:f32 : f32[]
  %y = mul %x, %two : f32[n]
  return %y
}
"""


def run(monkeypatch: pytest.MonkeyPatch, text: str, *arguments: str) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    return main(arguments)


def test_named_passes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, BEFORE, "fold", "prune") == 0
    shown = capsys.readouterr().out
    assert "  %y = mul %x, 2.0 : f32[n]\n" in shown
    assert "%two" not in shown


def test_the_whole_pipeline_step_by_step(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, BEFORE, "--each") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("// inline\ngraph @f")
    assert "// fold\n" in shown


def test_a_wrong_graph_is_reported_with_its_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, BEFORE.replace("%two :", "%three :"), "prune") == 1
    assert "error[V201]: %three is not defined here" in capsys.readouterr().err


def test_passes_take_options() -> None:
    assert pass_named("fold(limit=2)") == Fold(limit=2)
    with pytest.raises(ArgError, match="the passes are inline, prune, simplify, fold"):
        pass_named("melt")
