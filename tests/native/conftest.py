"""What the native tests share: the code of the package, compiled once, and its runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tracemill.backends.llvm.native.build import native_blob
from tracemill.backends.llvm.native.language.unit import compile_unit
from tracemill.backends.llvm.native.loader import Loaded, load
from tracemill.backends.llvm.native.objects import link
from tracemill.backends.llvm.native.runtime import NativeRuntime


@pytest.fixture(scope="session")
def runtime() -> NativeRuntime:
    return NativeRuntime(native_blob({}), threads=2)


@pytest.fixture(scope="session")
def compiled() -> Callable[..., Loaded]:
    """Compile native functions and load them, once for each set."""
    made: dict[tuple[Any, ...], Loaded] = {}

    def compile_once(*functions: Callable[..., Any]) -> Loaded:
        if functions not in made:
            made[functions] = load(link(compile_unit(functions)))
        return made[functions]

    return compile_once
