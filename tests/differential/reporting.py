"""A failing program made small, as text to paste into a file and run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import tracemill as tm
from tracemill.calls.build import Optimisation

from . import judge
from .programs import NAMES, Program
from .steps import WRITTEN


def smallest(
    program: Program,
    optimisation: Optimisation,
    argument_sets: Sequence[Sequence[Any]],
    args: Sequence[Any],
    found: Sequence[str],
) -> str:
    """The first value of the program that is wrong, with what it needs and the arguments."""
    count = len(program.parameters)
    values = judge.expected(program, args, np.random.default_rng(0)).values
    for at in range(count, count + len(program.steps)):
        if values[at] is WRITTEN:
            continue
        part = program.returning(at)
        wrong = _wrong(part, optimisation, [argument_sets[0], args])
        if wrong:
            return script(part, args, wrong)
    return script(program, args, found)


def _wrong(
    program: Program, optimisation: Optimisation, argument_sets: Sequence[Sequence[Any]]
) -> list[str]:
    call = tm.jit(program.function())
    call.dispatcher.optimisation = optimisation  # type: ignore[attr-defined]
    for args in argument_sets:
        wanted = judge.expected(program, args, np.random.default_rng(0))
        found = judge.check(program, call, args, wanted)
        if found:
            return found
    return []


def script(program: Program, args: Sequence[Any], found: Iterable[str]) -> str:
    """The program, its arguments and what was wrong."""
    rows = [*found, program.source]
    for name, parameter, arg in zip(NAMES, program.parameters, args):
        rows.append(f"# {parameter}, {np.shape(arg)}")
        with np.printoptions(threshold=200):
            rows.append(
                f"{name} = np.{arg!r}" if isinstance(arg, np.ndarray) else f"{name} = {arg!r}"
            )
    return "\n".join(rows)
