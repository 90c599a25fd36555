"""What is installed is what the checkout holds: by wheel, and by sdist and then wheel."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from .checkout import PACKAGES, ROOT, files

BUILD = "import sys, setuptools.build_meta as m; print(getattr(m, sys.argv[1])(sys.argv[2]))"


def packaged() -> set[str]:
    """The files of the four folders, as they are named once installed."""
    names = set()
    for folder, package in PACKAGES.items():
        root = Path(*package.split("."))
        names |= {
            (root / path.relative_to(ROOT / folder)).as_posix() for path in files(ROOT / folder)
        }
    return names


def build(kind: str, source: Path, out: Path) -> Path:
    """Call setuptools as pip does and return the archive."""
    out.mkdir(exist_ok=True)
    command = [sys.executable, "-c", BUILD, kind, str(out)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist, unpacked; made from a copy because setuptools leaves traces where it works."""
    folder = tmp_path_factory.mktemp("sdist")
    for path in files(ROOT):
        copy = folder / "checkout" / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    archive = build("build_sdist", folder / "checkout", folder / "out")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def test_the_installed_package_holds_every_file_of_the_four_folders() -> None:
    for folder, package in PACKAGES.items():
        (place,) = importlib.import_module(package).__path__
        for path in files(ROOT / folder):
            name = path.relative_to(ROOT / folder)
            assert (Path(place) / name).is_file(), f"{folder}/{name} is not installed"


def test_the_sdist_builds_the_same_wheel_and_carries_the_tests(sdist: Path, tmp_path: Path) -> None:
    for name in ("dev.py", "Makefile", "tests/conftest.py", "LICENSE", "pyproject.toml"):
        assert (sdist / name).is_file(), f"{name} is not in the sdist"
    with zipfile.ZipFile(build("build_wheel", sdist, tmp_path)) as wheel:
        built = {name for name in wheel.namelist() if ".dist-info/" not in name}
    forgotten = sorted(packaged() - built)
    assert not forgotten, f"not in the wheel (no __init__.py beside it?): {', '.join(forgotten)}"
    assert built == packaged()


def test_the_metadata_tells_the_licence_the_oldest_python_and_the_command() -> None:
    about = metadata.metadata("tracemill")
    assert about["License-Expression"] == "Apache-2.0 WITH LLVM-exception"
    assert about["Requires-Python"] == ">=3.11"
    scripts = metadata.entry_points(group="console_scripts", name="tracemill")
    assert [script.value for script in scripts] == ["tracemill.cli:main"]
