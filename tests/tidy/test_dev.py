"""dev.py says in one sentence what is wrong, and does again only what has changed."""

from __future__ import annotations

import ast
import errno
import importlib.util
import os
import sys
from collections import namedtuple
from pathlib import Path
from types import ModuleType

import pytest

from .checkout import ROOT


@pytest.fixture
def dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """dev.py, working on a small checkout of its own."""
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for folder in module.LAYERS.values():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text('"""Role."""\n')
    for name in ("setup.py", "README.md", "LICENSE"):
        (tmp_path / name).write_text("")
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    monkeypatch.setattr(module, "CHECKOUT", tmp_path)
    return module


class FakePip:
    """Stands in for the environment's pip: notes what was asked, fails where told to."""

    def __init__(self, dev: ModuleType, monkeypatch: pytest.MonkeyPatch):
        self.dev = dev
        self.asked: list[str] = []
        self.failing = ""
        monkeypatch.setattr(dev.Environment, "pip", lambda _, *arguments: self.pip(*arguments))
        monkeypatch.setattr(dev.Environment, "works", lambda _: True)
        monkeypatch.setattr(dev, "creation_command", lambda _: [sys.executable, "-c", ""])

    def pip(self, *arguments: str) -> None:
        line = " ".join(arguments)
        self.asked.append(line)
        if self.failing and self.failing in line:
            raise self.dev.Stop("the disk is full")
        if arguments[0] == "wheel":
            folder = Path(arguments[arguments.index("-w") + 1])
            folder.mkdir(exist_ok=True)
            (folder / "tracemill.whl").touch()


@pytest.fixture
def pip(dev: ModuleType, monkeypatch: pytest.MonkeyPatch) -> FakePip:
    return FakePip(dev, monkeypatch)


def test_it_parses_on_old_pythons() -> None:
    ast.parse((ROOT / "dev.py").read_text(encoding="utf-8"), feature_version=(3, 6))


@pytest.mark.parametrize(("found", "advice"), [(True, "python3.13 dev.py"), (False, "install a")])
def test_an_old_python_is_named_with_what_to_do(dev: ModuleType, found: bool, advice: str) -> None:
    with pytest.raises(dev.Stop, match=f"3.11 or newer and this is Python 3.9; .*{advice}"):
        dev.check_python((3, 9, 2), lambda _: found)
    dev.check_python((3, 11, 0), lambda _: found)


@pytest.mark.parametrize(
    ("output", "environ", "sentence"),
    [
        ("ERROR: Could not install: [Errno 28] No space left on device", {}, "the disk is full"),
        ("PermissionError: [Errno 13] Permission denied: 'x'", {}, "could not be written"),
        ("Retrying (Retry(total=4)) Name or service not known", {}, "could not be reached"),
        (
            "Retrying (Retry(total=0))\nERROR: No matching distribution found for numpy",
            {},
            "could not be reached",
        ),
        (
            "ERROR: No matching distribution found for numba>=9",
            {},
            "the package index has no numba",
        ),
        (
            "ERROR: No matching distribution found for numpy>=2.0",
            {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "wheels"},
            "no wheel of numpy>=2.0 for this Python in wheels",
        ),
        ("noise\nERROR: something new\nmore", {}, "pip failed: ERROR: something new"),
        ("", {}, "see its output"),
    ],
)
def test_a_failure_of_pip_becomes_one_sentence(
    dev: ModuleType, output: str, environ: dict[str, str], sentence: str
) -> None:
    said = dev.pip_sentence(output, environ)
    assert sentence in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "is full"),
        (errno.EACCES, "may not write"),
        (errno.EROFS, "may not write"),
        (errno.EIO, "could not write"),
    ],
)
def test_a_failure_of_the_file_system_becomes_one_sentence(
    dev: ModuleType,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    sentence: str,
) -> None:
    def fail(arguments: list[str]) -> int:
        raise OSError(number, os.strerror(number), "somewhere")

    monkeypatch.setitem(dev.COMMANDS, "clean", fail)
    monkeypatch.setattr(fail, "__doc__", "Fail.")
    assert dev.main(["clean"]) == 1
    said = capsys.readouterr().out
    assert sentence in said
    assert said.count("\n") == 1


def test_a_small_disk_is_noticed_before_the_download(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(dev.shutil, "disk_usage", lambda _: usage(10**8))
    with pytest.raises(dev.Stop, match=r"0\.1 GB free and this needs about"):
        dev.check_space(tmp_path, "test")


def test_without_venv_virtualenv_is_used_or_the_command_printed(dev: ModuleType) -> None:
    folder = Path("there")

    def command(modules: set[str], programs: set[str]) -> list[str]:
        made = dev.creation_command(
            folder, lambda n: n in modules, lambda n: n if n in programs else None
        )
        return list(made)

    assert command({"venv", "ensurepip"}, set())[1:] == ["-m", "venv", "there"]
    assert command({"venv", "virtualenv"}, set())[1:] == ["-m", "virtualenv", "there"]
    assert command({"venv"}, {"virtualenv"}) == ["virtualenv", "-p", sys.executable, "there"]
    with pytest.raises(dev.Stop, match=r"apt-get install python3\.\d+-venv"):
        command({"venv"}, {"apt-get"})
    with pytest.raises(dev.Stop, match="pip install --user virtualenv"):
        command(set(), set())


def test_nothing_is_done_twice_and_a_change_is_noticed(dev: ModuleType, pip: FakePip) -> None:
    dev.Environment(".venv").install("test")
    assert [line.split()[0] for line in pip.asked] == ["install", "wheel", "install", "install"]
    pip.asked.clear()
    dev.Environment(".venv").install("test")
    assert pip.asked == []
    (dev.CHECKOUT / "compiler" / "new.py").write_text('"""New."""\n')
    dev.Environment(".venv").install("test")
    assert [line.split()[0] for line in pip.asked] == ["wheel", "install"]
    pip.asked.clear()
    (dev.CHECKOUT / "pyproject.toml").open("a").write("# changed\n")
    dev.Environment(".venv").install("test")
    assert pip.asked[-1].endswith("tracemill.whl[test]")


def test_an_interrupted_install_goes_on_where_it_stopped(dev: ModuleType, pip: FakePip) -> None:
    pip.failing = "[test]"
    with pytest.raises(dev.Stop):
        dev.Environment(".venv").install("test")
    pip.failing = ""
    pip.asked.clear()
    dev.Environment(".venv").install("test")
    assert len(pip.asked) == 1
    assert pip.asked[0].endswith("[test]")


def test_an_environment_half_made_is_made_again(dev: ModuleType, pip: FakePip) -> None:
    environment = dev.Environment(".venv")
    environment.make()
    environment.remember(made=None)
    (environment.folder / "debris").touch()
    dev.Environment(".venv").make()
    assert not (environment.folder / "debris").exists()


def test_a_damaged_record_begins_afresh(dev: ModuleType, pip: FakePip) -> None:
    dev.Environment(".venv").install("test")
    dev.Environment(".venv").record_file.write_text('{"made": [')
    pip.asked.clear()
    dev.Environment(".venv").install("test")
    assert len(pip.asked) == 4


def test_the_checkers_leave_an_editable_install_alone(dev: ModuleType, pip: FakePip) -> None:
    dev.Environment(".venv").install("dev", editable=True)
    pip.asked.clear()
    dev.Environment(".venv").install_tools()
    assert pip.asked == []


def test_a_folder_that_is_not_ours_is_left_alone(dev: ModuleType, pip: FakePip) -> None:
    (dev.CHECKOUT / ".venv").mkdir()
    (dev.CHECKOUT / ".venv" / "precious").touch()
    with pytest.raises(dev.Stop, match="was not made by"):
        dev.Environment(".venv").make()
    assert (dev.CHECKOUT / ".venv" / "precious").exists()


def test_a_peer_that_cannot_be_installed_does_not_stop_the_others(
    dev: ModuleType, pip: FakePip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(dev.SPACE, "bench", 0)
    pip.failing = "[bench]"
    dev.Environment(".venv-bench").install("bench")
    wanted = dev.project()["project"]["optional-dependencies"]["bench"]
    assert [line.split(" ", 2)[2] for line in pip.asked[-len(wanted) :]] == wanted


def test_nothing_inherited_redirects_an_install_or_an_import(dev: ModuleType) -> None:
    environ = {"PYTHONPATH": "x", "PIP_USER": "1", "PIP_INDEX_URL": "mine", "PATH": "p"}
    kept = dev.clean_environ(environ)
    assert kept["PIP_INDEX_URL"] == "mine"
    assert not {"PYTHONPATH", "PIP_USER"} & set(kept)


def test_every_command_is_a_make_target(dev: ModuleType) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (targets,) = [line for line in makefile.splitlines() if line.startswith(".PHONY:")]
    assert targets.split()[1:] == ["help", *dev.COMMANDS]


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"]])
def test_without_a_command_the_commands_are_listed(
    dev: ModuleType, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert dev.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == list(dev.COMMANDS)


def test_a_command_there_is_not_is_named(
    dev: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dev.main(["tset"]) == 2
    assert "there is no command 'tset'" in capsys.readouterr().out
