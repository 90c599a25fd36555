"""Every word of the scalar language, every dtype and width: machine code equals the evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from lanes import operand_lanes, same_bits
from tracemill.backends.llvm.machine import host_machine, level_machine
from tracemill.compiler.ops import scalar
from tracemill.compiler.ops.scalar import WORDS, Scalar, ScalarFunction, trace_body
from tracemill.compiler.ops.scalar_reference import evaluate
from tracemill.compiler.types import BF16, BOOL, C64, C128, DTYPES, F16, F32, F64, I32, I64
from word_runner import Words

pytestmark = pytest.mark.cpu

REAL = [d for d in DTYPES if not d.is_complex]
_ALLOWED = {
    "same": lambda d: not d.is_complex and d is not BOOL,
    "float": lambda d: d.is_float,
    "int": lambda d: d.is_integer,
    "bits": lambda d: d.is_integer or d is BOOL,
    "compare": lambda d: not d.is_complex,
}


def _word(word, dtypes, result, attr=None):
    params = tuple(Scalar("param", (), d, i) for i, d in enumerate(dtypes))
    return ScalarFunction(params, (Scalar(word.name, params, result, attr),))


def _cases(word):
    """(label, function) for each admissible dtype."""
    if word.rule in _ALLOWED:
        for d in filter(_ALLOWED[word.rule], DTYPES):
            if word.name in ("fma", "scale") and d.bits == 16:
                continue  # bodies compute halves in f32; see test_fma_of_halves_rounds_once
            result = BOOL if word.rule == "compare" else d
            yield d.name, _word(word, [d] * word.arity, result)
    elif word.rule == "select":
        for d in REAL:
            yield d.name, _word(word, [BOOL, d, d], d)
    elif word.rule == "convert":
        for a in REAL:
            for b in REAL:
                if a is not b and b is not BOOL:
                    yield f"{a.name}-{b.name}", _word(word, [a], b)
    elif word.rule == "bitcast":
        for a in REAL:
            for b in REAL:
                if a is not b and a.bits == b.bits:
                    yield f"{a.name}-{b.name}", _word(word, [a], b)
    elif word.rule == "lookup":
        for index in (I32, I64):
            for d in (F32, F64, I32, I64):
                table = [3, 1, 4, 1, 5, 9, 2, 6]
                body = lambda i, d=d, table=table, k=index: scalar.lookup(
                    i & scalar.constant(7, k), table, d
                )
                yield f"{index.name}-{d.name}", trace_body(body, [index])
    elif word.rule == "part":
        for c, p in ((C64, F32), (C128, F64)):
            yield c.name, _word(word, [c], p)
    else:
        assert word.rule == "complex"
        for c, p in ((C64, F32), (C128, F64)):
            yield c.name, _word(word, [p, p], c)


def _operands(word, function):
    rng = np.random.default_rng(7)
    lanes = operand_lanes([p.dtype for p in function.params], 500, rng)
    if word.name == "scale":
        wide = np.trunc(np.nan_to_num(lanes[1].astype(np.float64), posinf=200, neginf=-200))
        exponent = np.clip(wide, -2300, 2300)
        lanes[1] = exponent.astype(lanes[1].dtype)
        lanes[1] = np.where(np.isfinite(lanes[1]), lanes[1], 0).astype(lanes[1].dtype)
    if word.rule == "shift":
        lanes[1] = lanes[1] % 70
    return lanes


def _expected(word, function, operands):
    if word.name == "popcount" and operands[0].dtype.kind == "i":
        # NumPy counts the bits of the magnitude, the word those of the two's complement.
        unsigned = operands[0].view(f"u{operands[0].itemsize}")
        return np.bitwise_count(unsigned).astype(operands[0].dtype)
    return evaluate(function, operands)[0]


def _tame(operands, got, want):
    """Where f64 fma in software is exact: on machines without it, and in the evaluator."""
    a, b, c = (np.abs(x) for x in operands)
    with np.errstate(all="ignore"):
        tame = (a * b > 2.0**-900) & (a * b < 2.0**1020) & (c < 2.0**1020)
    tame &= (a < 2.0**990) & (b < 2.0**990)
    return [x[tame] for x in operands], got[tame], want[tame]


MACHINES = {
    "host": host_machine,
    "no avx512": lambda: host_machine(without=frozenset({"avx512"})),
    "v3": lambda: level_machine("x86-64-v3"),
    "v2": lambda: level_machine("x86-64-v2"),
}


@pytest.mark.parametrize("width", [1, 4, 8, 16])
@pytest.mark.parametrize("machine", MACHINES)
def test_words_mean_what_the_evaluator_says(machine, width):
    labelled = [(w, label, f) for w in WORDS.values() for label, f in _cases(w)]
    words = Words([f for _, _, f in labelled], width, MACHINES[machine]())
    wrong = []
    for number, (word, label, function) in enumerate(labelled):
        operands = _operands(word, function)
        (got,) = words.run(number, operands)
        want = _expected(word, function, operands)
        if word.name == "fma" and label == "f64":
            operands, got, want = _tame(operands, got, want)
        bad = np.flatnonzero(~same_bits(got, want))
        if len(bad):
            at = bad[0]
            shown = [x[at] for x in operands]
            wrong.append(f"{word.name} {label}{shown}: {got[at]!r}, want {want[at]!r} ({len(bad)})")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", [F16, BF16])
def test_fma_of_halves_rounds_once(dtype):
    words = Words([_word(WORDS["fma"], [dtype] * 3, dtype)], 16, host_machine())
    rng = np.random.default_rng(3)
    a, b, c = (rng.standard_normal(5000).astype(dtype.numpy) for _ in range(3))
    (got,) = words.run(0, [a, b, c])
    # The product is exact in f64 and, for these magnitudes, so is the sum.
    want = (a.astype(float) * b.astype(float) + c.astype(float)).astype(np.float64)
    scale = np.exp2(np.floor(np.log2(np.abs(want))) - (10 if dtype is F16 else 7))
    assert np.all(np.abs(got.astype(float) - want) <= scale / 2)
