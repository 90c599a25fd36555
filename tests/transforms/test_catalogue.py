"""Transforms of the catalogue of NumPy expressions, and of programs as people write them.

Lanes are compared with the compiled expression lane by lane; the two modes of derivatives with each
other, by a product that is the same in both: so neither kinks nor steps of differences matter.
"""

from __future__ import annotations

import copy
import linecache
import re

import numpy as np
import pytest

import numpy_lines
import tracemill as tm
from beyond_numpy import TRACED_NAMES
from numpy_lines import CHOICES
from public_programs import PROGRAMS

pytestmark = pytest.mark.cpu

LINES = [line for line in numpy_lines.lines() if "w" not in line.kinds]
KINDS = {"a": "bifc", "b": "b", "i": "i", "f": "f", "c": "c", "r": "bif", "n": "ifc", "x": "fc",
         "A": "bifc", "R": "if", "N": "ifc", "I": "bi", "M": "ifc"}  # fmt: skip
PARTS = 8
PICKED = 12
WITHOUT = r"\.(accumulate|reduce|reduceat|at)\("  # by steps of any kind: TM120
LONG = {"mandelbrot", "gpt"}  # whose machine code takes 5 s and more


def operand(kind, shape, rng):
    numbers = rng.standard_normal(shape)
    if kind == "b":
        return numbers > 0
    if kind == "i":
        return rng.integers(-4, 5, shape)
    return numbers + 1j * rng.standard_normal(shape) if kind == "c" else numbers


def drawn(part, rng):
    """Functions of some lines of a part, each with three rows of operands NumPy takes."""
    lines = LINES[part::PARTS]
    for at in rng.permutation(len(lines))[:PICKED]:
        line = lines[at]
        kinds = [str(rng.choice(list(KINDS[k]))) for k in line.kinds]
        shape = (4, 4) if "M" in line.kinds else [(4,), (3, 4)][rng.integers(2)]
        rows = [[operand(kind, shape, rng) for kind in kinds] for _ in range(3)]
        text = line.text
        for name in re.findall(r"\{([a-z]+)\}", text):
            text = text.replace(f"{{{name}}}", CHOICES[name](rng, rows[0][0]), 1)
        names = "abcdef"[: len(kinds)]
        source = f"def program({', '.join(names)}):\n    return {text.format(*names)}\n"
        file = f"<line {part} {at} {abs(hash(source)):x}>"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        space = dict(TRACED_NAMES)
        exec(compile(source, file, "exec"), space)
        try:
            with np.errstate(all="ignore"):
                for row in rows:
                    space["program"](*row)
        except (ValueError, TypeError, ArithmeticError, IndexError, np.linalg.LinAlgError):
            continue  # NumPy does not take these operands
        yield source, space["program"], kinds, rows


def leaves(nest):
    if isinstance(nest, tuple | list):
        return [leaf for part in nest for leaf in leaves(part)]
    return [nest]


def weighted(nest, rng):
    """Cotangents for a nest of results."""
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return type(nest)(*[weighted(part, rng) for part in nest])
    if isinstance(nest, tuple | list):
        return type(nest)(weighted(part, rng) for part in nest)
    array = np.asarray(nest)
    if array.dtype.kind not in "fc":
        return None
    made = operand(array.dtype.kind, array.shape, rng)
    return np.asarray(made).astype(array.dtype)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.filterwarnings("ignore")
def test_expressions_for_lanes(part, rng):
    for source, program, kinds, rows in drawn(part, rng):
        own = rng.random(len(kinds)) < 0.7
        own[rng.integers(len(kinds))] = True
        rows = [[a if it else b for a, b, it in zip(row, rows[0], own)] for row in rows]
        stacks = [np.stack([row[i] for row in rows]) if it else rows[0][i]
                  for i, it in enumerate(own)]  # fmt: skip
        compiled = tm.jit(program)
        want = zip(*[leaves(compiled(*row)) for row in rows], strict=True)
        got = leaves(tm.vmap(program, tuple(0 if it else None for it in own))(*stacks))
        for lanes, each in zip(got, want, strict=True):
            wanted = np.stack([np.asarray(item) for item in each])
            assert np.asarray(lanes).dtype == wanted.dtype, source
            np.testing.assert_allclose(lanes, wanted, rtol=1e-9, atol=1e-9, err_msg=source)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.filterwarnings("ignore")
def test_modes_agree_about_expressions(part, rng):
    for source, program, kinds, (row, *_) in drawn(part, rng):
        moves = tuple(operand(k, a.shape, rng) if k in "fc" else None for k, a in zip(kinds, row))
        try:
            value, tangent = tm.jvp(program, tuple(row), moves)
            weights = weighted(value, rng)
            slopes = tm.vjp(program, *row)[1](weights)
        except tm.TracemillError as problem:
            if problem.code == "TM120" and re.search(WITHOUT, source):
                continue
            raise
        ahead, back = (
            sum(
                (np.conj(w) * np.asarray(t)).real.sum()
                for w, t in zip(leaves(left), leaves(right), strict=True)
                if w is not None and t is not None
            )
            for left, right in ((weights, tangent), (slopes, moves))
        )
        if np.isfinite(ahead) and np.isfinite(back):
            sums = [np.asarray(item).dtype for nest in (tangent, slopes) for item in leaves(nest)]
            bound = 1e-5 if any(dtype in (np.float32, np.complex64) for dtype in sums) else 1e-8
            np.testing.assert_allclose(ahead, back, rtol=bound, atol=bound, err_msg=source)


def scaled(argument, number):
    is_smooth = isinstance(argument, np.ndarray) and argument.dtype.kind in "fc"
    return argument * (1 + number / 50) if is_smooth else copy.deepcopy(argument)


CASES = [(f, make, size) for f, make, (size, _) in PROGRAMS if f.__name__ not in LONG]


@pytest.mark.parametrize(
    ("program", "arguments", "size"), CASES, ids=[f.__name__ for f, *_ in CASES]
)
def test_programs_for_lanes(program, arguments, size):
    given = arguments(size)
    rows = [[scaled(argument, lane) for argument in given] for lane in range(3)]
    own = [isinstance(a, np.ndarray) and a.dtype.kind in "fc" for a in given]
    own[0] = own[0] or not any(own)
    stacks = [np.stack([row[i] for row in rows]) if it else given[i] for i, it in enumerate(own)]
    got = leaves(tm.vmap(program, tuple(0 if it else None for it in own))(*copy.deepcopy(stacks)))
    want = [leaves(program(*row)) for row in rows]
    for at, lanes in enumerate(got):
        np.testing.assert_allclose(lanes, [w[at] for w in want], rtol=1e-7, atol=1e-9)
