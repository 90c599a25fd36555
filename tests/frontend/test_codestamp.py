"""An edited compiler never meets code it made before."""

from __future__ import annotations

from tracemill.codestamp import _sources


def test_the_stamp_changes_with_any_source_and_with_nothing_else(tmp_path):
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops" / "math.py").write_text("a = 1\n")
    (tmp_path / "notes.txt").write_text("x")
    before = sorted(_sources(str(tmp_path)))
    assert sorted(_sources(str(tmp_path))) == before
    (tmp_path / "notes.txt").write_text("yy")
    assert sorted(_sources(str(tmp_path))) == before
    (tmp_path / "ops" / "math.py").write_text("a = 22\n")
    edited = sorted(_sources(str(tmp_path)))
    assert edited != before
    (tmp_path / "new.py").write_text("")
    assert sorted(_sources(str(tmp_path))) != edited
