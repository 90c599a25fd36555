"""What an export writes: symbols, header, names, no trace of this machine; and what it refuses."""

from __future__ import annotations

import itertools
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tracemill as tm
from tracemill.compiler.compile import compile_graph
from tracemill.compiler.errors import TracemillError
from tracemill.compiler.ir.parser import parse_graph
from tracemill.export import refuse_host_calls

pytestmark = [pytest.mark.cpu, pytest.mark.tool("cc")]
_fresh = itertools.count()
_C_LIBRARY = re.compile(r"(\w+)@GLIBC_[\d.]+")


@tm.jit
def everything(x, i, flag, half, z, table):
    """Most element types, a gather, a reduction and a matrix product."""
    chosen = table[i] * np.where(flag, x, half)
    return chosen @ table, (z * z).sum(), np.exp(x)


def examples() -> list[np.ndarray]:
    n = 16
    return [
        np.ones(n), np.arange(n, dtype=np.int32), np.ones(n, bool), np.ones(n, np.float16),
        np.ones(n, np.complex64), np.ones(n),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory):
    return everything.export(tmp_path_factory.mktemp("everything") / "libevery.so", *examples())


def dynamic_symbols(library: Path) -> dict[str, str]:
    lines = subprocess.run(
        ["nm", "-D", str(library)], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return {line.split()[-1]: line.split()[-2] for line in lines}


def test_undefined_symbols_are_those_of_libc_and_libm(made) -> None:
    symbols = dynamic_symbols(made.library)
    undefined = {name for name, kind in symbols.items() if kind not in "TD"}
    assert undefined
    assert all(_C_LIBRARY.fullmatch(name) for name in undefined), undefined
    defined = {name for name, kind in symbols.items() if kind in "TD"}
    functions = {"create", "destroy", "run", "output_size", "error_message"}
    assert defined == {f"every_{name}" for name in functions}


def test_the_oldest_baseline_needs_nothing_more(tmp_path: Path) -> None:
    made = everything.export(tmp_path / "libevery.so", *examples(), features="x86-64-v2")
    for name, kind in dynamic_symbols(made.library).items():
        assert kind == "T" or _C_LIBRARY.fullmatch(name), name


@pytest.mark.parametrize(
    "compiler",
    [
        ("cc", "-xc", "-std=c11"),
        pytest.param(("c++", "-xc++", "-std=c++17"), marks=pytest.mark.tool("c++")),
    ],
)
def test_the_header_is_valid_c_and_cpp(made, tmp_path: Path, compiler: tuple[str, ...]) -> None:
    source = tmp_path / "twice.c"
    source.write_text(f'#include "{made.header}"\n#include "{made.header}"\nint x = EVERY_OK;\n')
    strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]
    done = subprocess.run([*compiler, *strict, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_two_exports_are_equal_and_name_no_folder(made, tmp_path: Path) -> None:
    again = everything.export(tmp_path / "libevery", *examples())
    assert again.library == tmp_path / "libevery.so"
    assert again.header == tmp_path / "every.h"
    for first, second in ((made.library, again.library), (made.header, again.header)):
        assert first.read_bytes() == second.read_bytes()
    for folder in (tmp_path, Path(__file__).parent, Path(np.__file__).parent):
        assert str(folder).encode() not in again.library.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["every.h", "libevery.so"]


def test_an_export_installs_no_version() -> None:
    assert not everything.explain_recompiles()


def test_names_that_c_would_not_take_are_changed(tmp_path: Path) -> None:
    def f(int, größe, instance, n):
        return int + größe + instance + n

    made = tm.jit(f).export(tmp_path / "libf.so", *np.ones((4, 9)))
    header = made.header.read_text()
    assert header.isascii()
    for declaration in ("*int_2,", "*gr_e,", "*instance_2,", "*n,", "int64_t n_2,"):
        assert declaration in header, header


def refused(function, *args, **options) -> str:
    with pytest.raises(TracemillError) as caught:
        function.export(*args, **options)
    return str(caught.value)


def test_what_needs_python_is_refused_by_name(tmp_path: Path) -> None:
    table = np.arange(3.0)

    @tm.jit
    def writes(x):
        table[0] = x.sum()
        return x

    @tm.jit
    def placed(x):
        with tm.device("cpu:1"):
            return x + 1

    x = np.ones(20)
    text = refused(writes, tmp_path / "libw.so", x)
    assert "[TM113]" in text
    assert f"test_files.py:{writes.__wrapped__.__code__.co_firstlineno + 2}, in writes" in text
    assert "tm.Variable" in text
    assert "cpu:1" in refused(placed, tmp_path / "libw.so", x)
    assert not list(tmp_path.iterdir())


def test_a_call_back_into_python_is_refused() -> None:
    graph = parse_graph(
        """graph @f(%x: f32[n]) -> f32[n] {
          %token = print %x {text="{}"} : token
          return %x, %token
        }"""
    )
    with pytest.raises(TracemillError, match="TM113") as caught:
        refuse_host_calls(compile_graph(graph))
    assert "text='{}'" in str(caught.value)


def test_what_the_system_lacks_is_said_with_the_fix(tmp_path: Path) -> None:
    x = np.ones(20)
    f = tm.jit(lambda x: x + 1)
    text = refused(f, tmp_path / "libf.so", x, cc="no-such-compiler")
    assert "[TM540]" in text
    assert "no-such-compiler" in text
    assert "apt-get install gcc" in text
    assert "[TM540]" in refused(f, tmp_path / "missing" / "libf.so", x)
    assert "could not link" in refused(f, tmp_path / "libf.so", x, cc="false")
    assert "x86-64-v3" in refused(f, tmp_path / "libf.so", x, features="avx9000")
    for name in ("lib.so", "lib9.so", "libint.so", "lib-x.so", "libgröße.so"):
        assert "[TM113]" in refused(f, tmp_path / name, x)
    assert not list(tmp_path.iterdir())
