"""Elementwise signatures: broadcasting of symbolic shapes, refusals that say what differs."""

from __future__ import annotations

import numpy as np
import pytest

from tracemill.compiler.dims import Dim
from tracemill.compiler.ops import ALL
from tracemill.compiler.ops.definition import SignatureError
from tracemill.compiler.ops.signature import broadcast_shapes, loops_of
from tracemill.compiler.types import BF16, BOOL, F32, F64, I32, I64, TOKEN, U64, TensorType

N, M = Dim.symbol("n"), Dim.symbol("m")


@pytest.mark.parametrize(
    ("shapes", "common"),
    [
        ([(3, 4), (3, 4)], (3, 4)), ([(3, 4), (4,)], (3, 4)), ([(3, 1), (1, 4)], (3, 4)),
        ([(), (2, 3)], (2, 3)), ([(N, 4), (N, 1)], (N, 4)), ([(N, 1), (1, M)], (N, M)),
        ([(1,), (N,)], (N,)), ([(0, 3), (1, 3)], (0, 3)), ([(N + 1,), (N + 1,), ()], (N + 1,)),
    ],
)  # fmt: skip
def test_shapes_broadcast_from_the_right(shapes, common):
    assert broadcast_shapes(shapes) == common


@pytest.mark.parametrize(
    ("shapes", "axis", "sizes"),
    [
        ([(64, 10), (32, 10)], 0, "64 against 32"), ([(3, 4), (3,)], 1, "4 against 3"),
        ([(N,), (5,)], 0, "n against 5"), ([(2, N), (2, M)], 1, "n against m"),
    ],
)  # fmt: skip
def test_the_message_names_the_dimension_that_differs(shapes, axis, sizes):
    with pytest.raises(SignatureError) as caught:
        broadcast_shapes(shapes)
    assert caught.value.code == "TM204"
    assert caught.value.detail == f"they differ in dimension {axis}: {sizes}"


def test_dtypes_are_exactly_numpys_loops():
    less = ALL["less"].signature
    mixed = less([TensorType(I64, (N,)), TensorType(U64, (N,))], {})
    assert mixed == (TensorType(BOOL, (N,)),)
    with pytest.raises(SignatureError) as caught:
        ALL["add"].signature([TensorType(F32, ()), TensorType(F64, ())], {})
    assert caught.value.code == "TM202"
    assert "f32 and f64" in caught.value.summary


def test_bf16_is_taken_where_f16_is():
    assert (BF16,) in dict(loops_of(np.exp))
    assert (BF16, I32) in dict(loops_of(np.ldexp))


def test_counts_tokens_and_attributes_are_judged():
    x = TensorType(F32, (3,))
    for operands, attrs, code in (([x], {}, "TM201"), ([x, TOKEN], {}, "TM201"),
                                  ([x, x], {"axis": 0}, "TM203")):  # fmt: skip
        with pytest.raises(SignatureError) as caught:
            ALL["add"].signature(operands, attrs)
        assert caught.value.code == code


def test_every_ufunc_that_is_not_about_dates_or_matrices_has_a_record():
    covered = {op.ufunc for op in ALL.values() if op.ufunc}
    names = {
        getattr(np, n).__name__ for n in dir(np) if isinstance(getattr(np, n), np.ufunc)
    }  # fmt: skip
    assert names - covered == {"isnat", "matmul", "matvec", "vecdot", "vecmat"}
