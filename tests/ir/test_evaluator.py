"""The evaluator: the oracle binds sizes, orders effects, and fails as a compiled call does.

Not here: what each op computes (tests/ops).
"""

from __future__ import annotations

import numpy as np
import pytest

from tracemill.compiler.errors import ArgError, BoundsError, BrokenGraph, TracemillError
from tracemill.compiler.ir.evaluator import bind_sizes, evaluate
from tracemill.compiler.ir.parser import parse_graph


def floats(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_sizes_come_from_arguments_also_inside_expressions() -> None:
    graph = parse_graph("""graph @f(%x: f32[2*n + 1], %y: f32[n, m]) -> i64[n*m] {
      %i = iota {size=n*m} : i64[n*m]
      return %i
    }""")
    assert bind_sizes(graph, [floats(7), floats(3, 2)]) == {"n": 3, "m": 2}
    np.testing.assert_array_equal(evaluate(graph, [floats(7), floats(3, 2)])[0], np.arange(6))
    alone = parse_graph("graph @f(%x: f32[2*n + 1]) -> f32[2*n + 1] {\nreturn %x\n}")
    assert bind_sizes(alone, [floats(7)]) == {"n": 3}


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ([floats(3, 2)], "TM201"),
        ([floats(3, 2), floats(2).astype(np.float64)], "TM202"),
        ([floats(6), floats(2)], "TM208"),
        ([floats(3, 2), floats(3)], "TM209"),
        ([floats(4, 2), floats(2)], "TM209"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(args: list[np.ndarray], code: str) -> None:
    graph = parse_graph("graph @f(%x: f32[3, n], %y: f32[n]) -> f32[n] {\nreturn %y\n}")
    with pytest.raises(TracemillError, match=code):
        evaluate(graph, args)


def test_arguments_are_not_changed_and_results_are_fresh() -> None:
    graph = parse_graph("graph @f(%x: f32[n]) -> f32[n] {\nreturn %x\n}")
    x = floats(3)
    (y,) = evaluate(graph, [x])
    y[0] = 9
    assert x[0] == 0


STATEFUL = """var @w: f32[2]

graph @f(%x: f32[2], %i: i64[1]) -> f32[2], token, token {
  %old = read @w : f32[2]
  %next = add %old, %x : f32[2]
  %done = assign @w, %next : token after %old
  %now = read @w : f32[2] after %done
  %y, %ok = gather %now, %i {axes=[0]} : f32[1], token
  return %now, %done, %ok
}
"""


def test_writes_are_seen_later_in_the_graph_and_outside_at_the_end() -> None:
    store = {"w": floats(2)}
    (now,) = evaluate(parse_graph(STATEFUL), [floats(2), np.array([1])], store)
    np.testing.assert_array_equal(now, 2 * floats(2))
    np.testing.assert_array_equal(store["w"], now)


def test_nothing_is_written_where_a_check_fails() -> None:
    store = {"w": floats(2)}
    with pytest.raises(BoundsError) as caught:
        evaluate(parse_graph(STATEFUL), [floats(2), np.array([2])], store)
    assert str(caught.value) == (
        "BoundsError [TM230] at text:8, in f\n  index 2 is out of bounds for axis 0 with size 2"
    )
    assert isinstance(caught.value, IndexError)
    np.testing.assert_array_equal(store["w"], floats(2))


def test_a_check_fails_with_its_own_code() -> None:
    graph = parse_graph("""graph @f(%p: bool[n]) -> token {
      %ok = check %p {code="TM244"} : token
      return %ok
    }""")
    assert evaluate(graph, [np.array([True, True])]) == ()
    with pytest.raises(ArgError, match=r"TM244\] at text:2"):
        evaluate(graph, [np.array([True, False])])


def test_an_effect_whose_token_is_not_kept_is_none() -> None:
    graph = parse_graph("""graph @f(%p: bool[n]) -> bool[n] {
      %ok = check %p {code="TM244"} : token
      %s = print %p {text="{}"} : token
      return %p
    }""")
    shown: list[str] = []
    evaluate(graph, [np.array([False])], show=shown.append)
    assert shown == []


def test_prints_show_their_text_in_order() -> None:
    graph = parse_graph("""graph @f(%x: i64[2]) -> token, token {
      %s = print %x, %x {text="{} and {}!"} : token
      %t = print {text="%n%s"} : token after %s
      return %s, %t
    }""")
    shown: list[str] = []
    evaluate(graph, [np.arange(2)], show=shown.append)
    assert shown == ["[0 1] and [0 1]!", "%n%s"]


def test_a_sent_value_is_received_by_its_key() -> None:
    graph = parse_graph("""graph @f(%x: f32[n]) -> f32[n] {
      %s = send %x {key="k", to="cpu:1"} : token on cpu:0
      %y = recv {dtype=f32, key="k", shape=[n], source="cpu:0"} : f32[n] on cpu:1 after %s
      return %y
    }""")
    np.testing.assert_array_equal(evaluate(graph, [floats(3)])[0], floats(3))


def test_every_value_can_be_watched() -> None:
    graph = parse_graph("""graph @f(%x: f32[n]) -> f32[n] {
      %y = neg %x : f32[n]
      %z = abs %y : f32[n]
      return %z
    }""")
    seen = {}
    evaluate(graph, [floats(2)], watch=lambda value, array: seen.setdefault(value.name, array))
    assert list(seen) == ["y", "z"]


def test_a_reference_that_contradicts_its_type_is_our_bug() -> None:
    graph = parse_graph("graph @f(%x: f32[3]) -> f32[4] {\n%y = neg %x : f32[4]\nreturn %y\n}")
    with pytest.raises(BrokenGraph, match="TM304"):
        evaluate(graph, [floats(3)])


def test_a_variable_must_be_in_the_store() -> None:
    with pytest.raises(LookupError, match="TM130"):
        evaluate(parse_graph(STATEFUL), [floats(2), np.array([1])], {})
