"""The commit of a call: others see all that it writes or nothing, and versions say which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from interruption import interrupt_after
from native_kernels import KERNELS, array, function, launch
from tracemill.backends.llvm.native.commit import commit_of
from tracemill.backends.llvm.native.control import Control
from tracemill.backends.llvm.native.encoder import (
    CellSpec,
    Frame,
    Held,
    NativeSpecialisation,
    RowSpec,
)
from tracemill.backends.llvm.native.host import ArrayCall
from tracemill.backends.llvm.native.language import Ptr, i64, stack
from tracemill.backends.llvm.native.layout import Cell, RowKind
from tracemill.backends.llvm.native.memory import Record, Words

X = np.arange(8.0)
LONG = 10**9  # an estimate in nanoseconds, so that the GIL is given up


def lingers(ctl: Control, args: Ptr[i64], begin: i64, end: i64) -> None:
    """A quarter of a second, unless told to leave."""
    clock = stack(i64, 2)
    ctl.process.clock_gettime(1, clock)
    until = clock[0] * 1_000_000_000 + clock[1] + 250_000_000
    while ctl.poll(ctl) == 0:
        ctl.process.clock_gettime(1, clock)
        if clock[0] * 1_000_000_000 + clock[1] >= until:
            return


class Pair:
    """Two Variables, and functions that add to both with something between."""

    def __init__(self, runtime: Any, code: Any) -> None:
        self.runtime, self.code = runtime, code
        self.values = [np.zeros(8), np.zeros(8)]
        self.dims = Words((8,))
        self.cells = [Record(Cell) for _ in self.values]
        for cell, value in zip(self.cells, self.values, strict=True):
            cell["data"], cell["ndim"], cell["dims"] = value.ctypes.data, 1, self.dims.address

    def adds(self, order: str, host: Callable[..., None] | None = None) -> Any:
        """order: a, b add to a Variable, w waits, h calls back."""
        frame = Frame()
        x = array(frame, 0)
        uses = [
            CellSpec(c.address, 1, frame.slot(), frame.slot(), written=True) for c in self.cells
        ]
        call = ArrayCall(host or print, ((np.dtype(np.float64), 1),))
        rows = {
            "w": launch(self.code, "lingers", frame.constant(1)),
            "h": RowSpec(RowKind.HOST, words=(x.data, x.dims), callable=call),
        }
        for name, use in zip("ab", uses, strict=True):
            rows[name] = launch(self.code, "add", x.dims, use.data, x.data, use.data, visible=True)
        spec = NativeSpecialisation(
            frame,
            (x,),
            cells=tuple(uses),
            rows=tuple(rows[name] for name in order),
            work=frame.constant(LONG),
            result=Held(None),
            keep=(self,),
        )
        return function(self.runtime, "x", spec)

    def check(self, times: int) -> None:
        for cell, value in zip(self.cells, self.values, strict=True):
            np.testing.assert_array_equal(value, X * times)
            assert (cell["version"], cell["lock"] & 0xFFFFFFFF) == (times, 0)


@pytest.fixture
def pair(runtime: Any, compiled: Any) -> Pair:
    return Pair(runtime, compiled(*KERNELS, lingers))


@pytest.mark.parametrize(("order", "times"), [("wab", 0), ("awb", 1), ("abw", 1)])
def test_an_interruption_leaves_all_or_nothing(pair: Pair, order: str, times: int) -> None:
    f = pair.adds(order)

    def until_interrupted() -> None:
        f(X)
        while True:  # the signal may wait for the call to end
            pass

    with pytest.raises(KeyboardInterrupt), interrupt_after(0.12):
        until_interrupted()
    pair.check(times)
    f(X)
    pair.check(times + 1)


@pytest.mark.parametrize(("order", "times"), [("wab", 0), ("awb", 1), ("abw", 1)])
def test_a_time_limit_leaves_all_or_nothing(pair: Pair, order: str, times: int) -> None:
    f = pair.adds(order)
    pair.runtime.set_time_limit(f, 0.02)
    if order == "awb":
        assert f(X) is None  # it passed when nothing could be taken back
    else:
        with pytest.raises(ArithmeticError) as caught:
            f(X)
        assert caught.value.args[0] == -1
    pair.check(times)


@pytest.mark.parametrize(("order", "times"), [("hab", 0), ("ahb", 1), ("abh", 1), ("ahbh", 1)])
def test_a_host_call_that_raises_leaves_all_or_nothing(pair: Pair, order: str, times: int) -> None:
    def refuse(values: Any) -> None:
        raise LookupError("no")

    f = pair.adds(order, refuse)
    with pytest.raises(LookupError):
        f(X)
    pair.check(times)


def test_a_loop_is_in_the_commit_whole_or_not_at_all() -> None:
    def rows(text: str) -> list[RowSpec]:
        """v: visible, p: pure, s: swap, a digit: a jump to that row."""
        kinds = {"v": RowKind.LAUNCH, "p": RowKind.LAUNCH, "s": RowKind.SWAP}
        return [
            RowSpec(RowKind.JUMP, target=int(c))
            if c.isdigit()
            else RowSpec(kinds[c], visible=c == "v")
            for c in text
        ]

    expected = {
        "pp": (0, 0),
        "pvpvp": (1, 4),
        "ppsp": (2, 3),
        "ppv1p": (1, 4),
        "vpp1p": (0, 1),
        "pppvp21p": (1, 7),
    }
    for text, (begin, end) in expected.items():
        assert commit_of(rows(text)) == range(begin, end), text
