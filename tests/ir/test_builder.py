"""The builder: what it makes is canonical, ordered, named, placed; what it refuses has a place.

Not here: each op's own signature and canonical form (tests/ops, tests/passes/simplify.mill).
"""

from __future__ import annotations

import numpy as np
import pytest

from tracemill.compiler.dims import Dim
from tracemill.compiler.errors import ArgError, DTypeError, ShapeError
from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.graph import Location
from tracemill.compiler.ir.printer import print_graph
from tracemill.compiler.ir.verifier import verify
from tracemill.compiler.types import BOOL, F32, I64, TOKEN, TensorType

N, M = Dim.symbol("n"), Dim.symbol("m")


@pytest.fixture
def b() -> Builder:
    return Builder("f", lambda: Location("train.py", 31, "loss"))


def test_constants_stand_right_in_commutative_ops(b: Builder) -> None:
    x = b.param("x", TensorType(F32, (N,)))
    y, z = b.add(1.0, x), b.sub(1.0, x)
    assert y.node.operands[0] is x
    assert z.node.operands[1] is x


def test_a_number_takes_the_dtype_of_the_last_value(b: Builder) -> None:
    p, x = b.param("p", TensorType(BOOL, (N,))), b.param("x", TensorType(F32, (N,)))
    assert b.select(p, x, 0).node.operands[2].type == TensorType(F32, ())
    assert b.mul(2, x).node.operands[1].node.attrs["value"].dtype == np.float32


def test_a_number_is_made_once(b: Builder) -> None:
    x = b.param("x", TensorType(F32, (N,)))
    b.add(x, 1.0), b.mul(x, 1.0), b.mul(x, -0.0), b.mul(x, 0.0)
    assert sum(node.op.name == "constant" for node in b.nodes) == 3


def test_forms_that_do_nothing_are_not_made(b: Builder) -> None:
    x = b.param("x", TensorType(F32, (2, N)))
    assert b.reshape(x, shape=(2, N)) is x
    assert b.transpose(x, perm=(0, 1)) is x
    assert b.broadcast_to(x, shape=(2, N)) is x
    assert b.slice(x, start=(0, 0), size=(2, N), step=(1, 1)) is x
    assert b.cast(x, dtype=F32) is x
    assert b.max(x, axes=()) is x
    assert b.concatenate(x, axis=1) is x
    assert b.nodes == []


def test_names_are_hints_made_unique_and_legal(b: Builder) -> None:
    x = b.param("x", TensorType(F32, ()))
    names = [b.neg(v, name=n).name for v, n in [(x, "h"), (x, "h"), (x, "h1"), (x, "h1")]]
    assert names == ["h", "h0", "h1", "h1_0"]
    assert b.abs(x).name == "abs"
    assert b.abs(x, name="a[0]").name == "a_0"
    assert b.abs(x, name="2x").name == "_2x"


def test_nodes_have_the_users_place(b: Builder) -> None:
    x = b.param("x", TensorType(F32, ()))
    assert b.neg(x).node.location == Location("train.py", 31, "loss")


def test_a_refusal_has_class_code_place_and_sizes(b: Builder) -> None:
    x, y = b.param("x", TensorType(F32, (N, 3))), b.param("y", TensorType(F32, (M, 3)))
    with pytest.raises(ShapeError) as caught:
        b.sub(x, y)
    assert caught.value.code == "TM204"
    assert caught.value.sizes == (N, M)
    assert str(caught.value).splitlines()[:2] == [
        "ShapeError [TM204] at train.py:31, in loss",
        "  sub needs equal or broadcastable shapes, got [n, 3] and [m, 3]",
    ]
    with pytest.raises(DTypeError, match="TM202"):
        b.add(x, b.iota(size=3))
    with pytest.raises(ArgError, match="TM240"):
        b.emit("nothing", (x,))
    with pytest.raises(AttributeError):
        b.nothing(x)
    assert b.nodes[-1].op.name == "iota", "a refused node is not in the graph"


def test_sizes_found_equal_while_tracing_are_replaced_everywhere() -> None:
    asked: list[tuple[object, object]] = []

    def unify(left: object, right: object) -> bool:
        asked.append((left, right))
        b.substitute({"m": N})
        return True

    b = Builder("f", None, unify)
    x, y = b.param("x", TensorType(F32, (N, 3))), b.param("y", TensorType(F32, (M, 3)))
    rows = b.iota(size=M)
    tall = b.reshape(y, shape=(3, M))
    z = b.add(x, y)
    assert asked == [(N, M)]
    assert z.type == TensorType(F32, (N, 3))
    assert y.type == TensorType(F32, (N, 3))
    assert rows.type == TensorType(I64, (N,))
    assert rows.node.attrs == {"size": N}
    assert tall.node.attrs == {"shape": (3, N)}
    verify(b.finish([z, rows, tall]))


def test_unifying_stops_where_the_trace_says_no() -> None:
    b = Builder("f", None, lambda left, right: False)
    x, y = b.param("x", TensorType(F32, (N,))), b.param("y", TensorType(F32, (M,)))
    with pytest.raises(ShapeError):
        b.add(x, y)


def test_state_is_ordered(b: Builder) -> None:
    b.variable("w", TensorType(F32, ()))
    w = b.emit("read", (), variable="w", name="w")
    assert b.emit("read", (), variable="w") is w, "nothing was written between"
    first = b.emit("assign", (b.add(w, 1.0),), variable="w", name="first")
    second = b.emit("assign", (b.constant(5.0, F32),), variable="w", name="second")
    again = b.emit("read", (), variable="w", name="again")
    third = b.emit("assign", (b.add(again, 1.0),), variable="w", name="third")
    assert [v.node.after for v in (w, first, second, again, third)] == [
        (), (w,), (first,), (second,), (again,)
    ]  # fmt: skip
    graph = b.finish([again])
    verify(graph)
    store = {"w": np.float32(1)}
    assert evaluate(graph, [], store) == (5,)
    assert store["w"] == 6


def test_prints_are_ordered_and_checks_are_not(b: Builder) -> None:
    x = b.param("x", TensorType(BOOL, ()))
    first, second = (b.print(x, text="{}") for _ in "ab")
    check = b.check(x, code="TM244")
    assert second.node.after == (first,)
    assert check.node.after == ()
    assert b.finish([]).results == (first, second, check), "every effect is kept"
    assert b.finish([x], [second]).results == (x, second), "or those that are named"


def test_a_value_may_be_returned_twice_and_a_token_is_kept_once(b: Builder) -> None:
    x = b.param("x", TensorType(BOOL, ()))
    check = b.check(x, code="TM244")
    assert b.finish([x, x]).results == (x, x, check)
    assert b.finish([x, check], [check]).results == (x, check)


def test_variables_are_declared_once(b: Builder) -> None:
    b.variable("w", TensorType(F32, ()))
    b.variable("w", TensorType(F32, ()))
    with pytest.raises(ArgError, match="TM245"):
        b.variable("w", TensorType(F32, (3,)))
    with pytest.raises(ArgError, match="names no variable"):
        b.emit("read", (), variable="v")


def test_a_region_stands_for_its_operands(b: Builder) -> None:
    x, y = (b.param(name, TensorType(F32, (N,))) for name in "xy")
    inner = b.region((x, y))
    total = inner.add(*inner.params, name="t")
    made = b.emit("fused", (x, y), regions=[inner.finish([total])])
    graph = b.finish([made])
    verify(graph)
    assert (
        "  %fused = fused %x, %y : f32[n] {\n    %t = add %x, %y : f32[n]\n    yield %t\n  }\n"
        in (print_graph(graph))
    )
    ones = np.ones(3, np.float32)
    np.testing.assert_array_equal(evaluate(graph, [ones, ones])[0], 2 * ones)


def test_a_graph_is_extended_without_changing_it(b: Builder) -> None:
    x = b.param("x", TensorType(F32, (N,)))
    graph = b.finish([b.mul(x, 2.0, name="y")])
    text = print_graph(graph)
    more = Builder.extending(graph)
    y = graph.results[0]
    longer = more.finish([more.mul(y, 2.0, name="y")])
    verify(longer)
    assert print_graph(graph) == text
    assert longer.results[0].name == "y0"
    assert sum(node.op.name == "constant" for node in longer.nodes) == 1


def test_tokens_are_tensors_nowhere(b: Builder) -> None:
    with pytest.raises(TypeError, match="is a token"):
        _ = b.check(b.param("x", TensorType(BOOL, ())), code="TM244").tensor
    assert repr(TOKEN) == "token"
