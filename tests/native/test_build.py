"""The package's own code: built once, then taken from the cache; refused where it cannot run."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tracemill.backends.llvm.native.build import NativeCode, native_blob, native_key
from tracemill.backends.llvm.native.language import unit
from tracemill.backends.llvm.native.objects import CodeBlob, LinkError
from tracemill.backends.llvm.native.process import (
    LayoutUnsupported,
    fill_process,
    layout_supported,
    unsupported_reason,
)

_WARM = """
import sys
from pathlib import Path
from tracemill.backends.llvm.native.build import native_blob, native_key
from tracemill.backends.llvm.native.runtime import NativeRuntime, Parameter

runtime = NativeRuntime(native_blob({native_key(): Path(sys.argv[1]).read_bytes()}), 2)
f = runtime.new_function([Parameter("x")], lambda x: x + 1, print)
assert f(1) == 2
assert not any(name.partition(".")[0] == "llvmlite" for name in sys.modules)
"""


def test_a_warm_process_does_not_load_llvm(tmp_path: Path) -> None:
    cache: dict[str, bytes] = {}
    blob = native_blob(cache)
    (tmp_path / "blob").write_bytes(cache[native_key()])
    subprocess.run([sys.executable, "-c", _WARM, tmp_path / "blob"], check=True)
    assert native_blob(cache) == blob


def test_a_damaged_cache_entry_is_made_again() -> None:
    cache = {native_key(): b"damaged"}
    blob = native_blob(cache)
    assert CodeBlob.from_bytes(cache[native_key()]) == blob


def test_the_same_source_gives_the_same_code() -> None:
    assert native_blob({}) == native_blob({})


def test_this_process_is_supported() -> None:
    assert layout_supported(), unsupported_reason()


@pytest.mark.parametrize(
    ("thing", "name", "value", "reason"),
    [
        (platform, "machine", lambda: "riscv64", "expected Linux on x86-64"),
        (sys, "platform", "win32", "expected Linux on x86-64"),
        (np, "__version__", "1.26.4", "expected NumPy 2"),
    ],
)
def test_another_layout_is_a_named_error(
    monkeypatch: pytest.MonkeyPatch, thing: object, name: str, value: object, reason: str
) -> None:
    monkeypatch.setattr(thing, name, value)
    assert not layout_supported()
    with pytest.raises(LayoutUnsupported, match=reason):
        fill_process(0, 0)


def test_native_code_is_there_or_made_beside():
    cache: dict[str, bytes] = {}
    made = NativeCode(cache)
    blob = made.blob()
    assert not made.is_being_made
    assert made.blob() is blob
    there = NativeCode(cache)
    assert not there.is_being_made
    assert there.blob() == blob


def test_a_failure_of_the_thread_is_raised_where_the_code_is_asked_for(monkeypatch):
    monkeypatch.setattr(unit, "compile_text", lambda text: b"no object code")
    made = NativeCode({})
    for _ in range(2):
        with pytest.raises(LinkError):
            made.blob()


FORKED = """
import os
from tracemill.backends.llvm.native.build import NativeCode
made = NativeCode({})
child = os.fork()
if child == 0:
    os._exit(0 if made.blob().symbols else 1)
print(os.waitpid(child, 0)[1], len(made.blob().symbols) > 0)
"""


def test_a_child_forked_while_native_code_is_made_has_it_too(run_python):
    assert run_python(FORKED).split() == ["0", "True"]
