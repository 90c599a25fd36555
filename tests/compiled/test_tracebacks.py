"""What a user sees of an error: his own lines."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill.tracing.source import OWN_FOLDERS

pytestmark = pytest.mark.cpu

Array = Any


def inner(x: Array) -> Array:
    return x + np.ones(7)


def misfit(x: Array) -> Array:
    return inner(x) * 2


def unsupported(x: Array) -> Array:
    return np.array_repr(x)


def condition(x: Array) -> Array:
    return 1 if x.sum() else 2


def own(x: Array) -> Array:
    raise KeyError("mine")


def out_of_bounds(x: Array) -> Array:
    return x[np.array([9]) + x.astype(int)[:1] * 0]


def python_s(x: Array) -> Array:
    return len(x.sum())


def with_a_cause(x: Array) -> Array:
    try:
        return inner(x)
    except ValueError as problem:
        raise RuntimeError("wrapped") from problem


CASES: dict[str, tuple[Callable[..., Any], type[Exception], list[str]]] = {
    "shapes": (misfit, ValueError, ["misfit", "inner"]),
    "unsupported": (unsupported, NotImplementedError, ["unsupported"]),
    "the user's own": (own, KeyError, ["own"]),
    "when it runs": (out_of_bounds, IndexError, []),
    "as Python": (python_s, TypeError, ["python_s"]),
    "a cause": (with_a_cause, RuntimeError, ["with_a_cause"]),
}


def frames_of(problem: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(problem.__traceback__))


@pytest.mark.parametrize("case", CASES)
def test_only_the_user_s_frames_are_shown(case: str) -> None:
    function, kind, names = CASES[case]
    compiled = tm.jit(function)
    for _ in range(2):
        with pytest.raises(kind) as caught:
            compiled(np.ones(3))
        here = [frame.name for frame in frames_of(caught.value)]
        assert here == ["test_only_the_user_s_frames_are_shown", *names]
        text = "".join(traceback.format_exception(caught.value))
        assert not any(folder in text for folder in OWN_FOLDERS)


def test_all_frames_are_kept_beside() -> None:
    with pytest.raises(ValueError) as caught:
        tm.jit(misfit)(np.ones(3))
    problem: Any = caught.value
    files = [f.filename for f in traceback.extract_tb(problem.full_traceback)]
    assert any(file.startswith(OWN_FOLDERS) for file in files)
    assert files[-1].startswith(OWN_FOLDERS)


@pytest.mark.parametrize(
    "act",
    [
        lambda: tm.jit(misfit).lower(np.ones(3)),
        lambda: tm.jit(lambda *xs: misfit(xs[0]))(np.ones(3)),
        lambda: tm.jit(misfit)(),
        lambda: tm.jit(misfit)(np.array(["a"])),
        lambda: tm.jit(lambda x: tm.jit(misfit)(x))(np.ones(3)),
        lambda: tm.Variable(np.ones(3)).assign(np.ones(4)),
        lambda: tm.Program(step=misfit).run("nothing", {}),
        lambda: tm.nn.relu("text"),
    ],
)
def test_so_it_is_at_every_door(act: Callable[[], Any]) -> None:
    with pytest.raises(Exception) as caught:
        act()
    assert not [f for f in frames_of(caught.value) if f.filename.startswith(OWN_FOLDERS)]


@pytest.mark.parametrize("part", ["calls.specialise.choose_shapes", "calls.dispatch.bind"])
def test_a_mistake_of_ours_keeps_its_frames(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"tracemill.{part}", None)
    with pytest.raises(TypeError, match="NoneType") as caught:
        tm.jit(lambda x: x * 2 - 1)(np.ones(3))
    assert frames_of(caught.value)[-1].filename.startswith(OWN_FOLDERS)


PROGRAM = """
import numpy as np, tracemill as tm
tm.jit(lambda x: x + np.ones(7))(np.ones(3))
"""


@pytest.mark.processes
@pytest.mark.parametrize(("log", "shown"), [("", False), ("recompiles", True)])
def test_the_log_switch_shows_all(log: str, shown: bool) -> None:
    environment = {**os.environ, "TRACEMILL_LOG": log}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ShapeError [TM204]" in run.stderr
    assert ("dispatch.py" in run.stderr) is shown


def test_plain_python_is_left_alone() -> None:
    with tm.disable_jit(), pytest.raises(ValueError) as caught:
        tm.jit(misfit)(np.ones(3))
    assert [f.name for f in frames_of(caught.value)][-2:] == ["misfit", "inner"]
    assert not hasattr(caught.value, "full_traceback")
