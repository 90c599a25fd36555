"""What a compiled function shows of itself."""

from __future__ import annotations

import numpy as np
import pytest

import tracemill as tm

X = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_the_text_is_the_graph_with_the_lines_of_the_user():
    text = tm.jit(softmax).lower(X).text
    assert text.startswith("graph @softmax(%x: f32[n, 4])")
    assert "test_looking.py:" in text
    assert "in softmax" in text
    assert "%e = exp" in text


def test_kernels_llvm_and_assembly_are_texts():
    lowered = tm.jit(softmax).lower(X)
    assert "kernel @" in lowered.kernels
    assert "= exp sub" in lowered.kernels
    assert "define" in lowered.llvm
    assert "ret" in lowered.asm


def test_the_plan_prints_rows_and_buffers_and_knows_its_peak():
    lowered = tm.jit(lambda x: (x @ x.T) @ x).lower(np.ones((8, 16), np.float32))
    text = str(lowered.plan)
    assert "\n  launch " in text
    assert lowered.plan.peak_bytes(n=1000, m=16) >= 1000 * 1000 * 4


def test_looking_installs_and_compiles_nothing():
    f = tm.jit(softmax)
    f.lower(X)
    assert len(f.explain_recompiles()) == 0


def test_the_page_shows_nodes_beside_lines():
    page = tm.jit(softmax).lower(X)._repr_html_()
    assert "test_looking.py:" in page
    assert "<b>%e</b>" in page


def test_a_profile_times_every_launch():
    f = tm.jit(softmax)
    profile = f.profile(X)
    assert len(profile.rows) >= 1
    assert all(row.seconds > 0 and row.bytes > 0 for row in profile.rows)
    assert "GB/s" in str(profile)


def test_a_profile_times_what_a_call_runs():
    f = tm.jit(lambda x: x.sum(axis=0))
    profile = f.profile(np.ones((64, 128), np.float32))
    assert sum(row.seconds for row in profile.rows) < 50e-6  # in chunks of a column it is 200e-6
    f = tm.jit(lambda x, y: x @ y)
    assert f.profile(np.ones((0, 3)), np.ones((3, 4))).rows == ()


def test_the_version_is_an_attribute():
    assert tm.__version__ in tm.configuration.describe()
    assert "__version__" in dir(tm)


def test_guards_are_readable():
    f = tm.jit(lambda x, y: x + y)
    assert any("==" in guard for guard in f.lower(np.ones(9), np.ones(9)).guards)


def test_the_configuration_is_printed(capsys):
    tm.show_config()
    shown = capsys.readouterr().out
    assert "tracemill" in shown
    assert "numpy" in shown
    assert "cache" in shown


def test_a_bad_setting_is_refused_with_the_legal_values(run_python):
    with pytest.raises(AssertionError, match=r"TRACEMILL_THREADS='many' is not understood: .*1024"):
        run_python("import tracemill as tm; tm.jit(lambda x: x)(1.0)", TRACEMILL_THREADS="many")
