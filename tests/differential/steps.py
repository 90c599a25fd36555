"""One step of a random program: an expression or a statement over numbered operands.

Not here: programs of steps (programs.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from beyond_numpy import PLAIN_NAMES

BF16 = np.dtype(ml_dtypes.bfloat16)
WRITTEN = object()  # in place of the value of a statement


@dataclass(frozen=True)
class Step:
    """`text` with its choices made, still with `{0}`, `{1}`... for the operands."""

    text: str
    operands: tuple[int, ...]
    noise: str
    line: str = ""  # the text before the choices

    @property
    def writes(self) -> bool:
        """Whether it is a statement."""
        return self.noise == "write"


@functools.cache
def step_function(text: str, count: int, statement: bool) -> Callable[..., Any]:
    """A step as a function of its operands."""
    names = [f"o{i}" for i in range(count)]
    space = dict(PLAIN_NAMES)
    body = text.format(*names)
    if not statement:
        made: Callable[..., Any] = eval(f"lambda {', '.join(names)}: {body}", space)
        return made
    exec(f"def run({', '.join(names)}):\n    {body}\n", space)
    run: Callable[..., Any] = space["run"]
    return run


def run_step(step: Step, operands: Sequence[Any]) -> Any:
    """What NumPy makes of it; an array in place of a Python bool or int."""
    return step_function(step.text, len(operands), step.writes)(*operands)
