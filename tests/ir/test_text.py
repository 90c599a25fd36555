"""The text form: what is printed reads back to the same graph, and the same text.

Not here: what the passes' cases show about it.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from random_graphs import random_graph
from tracemill.compiler.dims import Dim
from tracemill.compiler.errors import GraphError
from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.ir.fingerprint import fingerprint
from tracemill.compiler.ir.graph import Location
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.ir.printer import print_graph
from tracemill.compiler.ir.verifier import verify
from tracemill.compiler.types import DTYPES, F32, DType, TensorType


def test_random_graphs_read_back(seed: int) -> None:
    for i in range(40):
        graph = random_graph(seed + i)
        verify(graph)
        text = print_graph(graph)
        again = parse_graph(text)
        verify(again)
        assert print_graph(again) == text, seed + i


GRAPH = """var @w: f32[784, 10] on cuda:0

graph @train_step(%x: f32[n, 784], %target: f32[n, 10]) -> f32[], token {
  %w = read @w : f32[784, 10] on cuda:0
  %y = contract %x, %w {axes=[[1, 0]], batch=[]} : f32[n, 10] on cuda:0
  %err = fused %y, %target : f32[n, 10] {
    %e = sub %y, %target : f32[n, 10]
    %half = mul %e, 0.5 : f32[n, 10]
    yield %half
  }
  %loss = sum %err {axes=[0, 1]} : f32[]
  %grad = contract %x, %err {axes=[[0, 0]], batch=[]} : f32[784, 10]
  %next = sub %w, %grad : f32[784, 10]
  %done = assign @w, %next : token on cuda:0 after %w
  return %loss, %done
}
"""


def test_a_graph_with_state_devices_and_a_region_reads_back() -> None:
    graph = parse_graph(GRAPH)
    verify(graph)
    assert print_graph(graph) == GRAPH


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numbers_read_back_bit_for_bit(dtype: DType, rng: np.random.Generator) -> None:
    raw = rng.integers(0, 256, 40 * dtype.itemsize, np.uint8).tobytes()
    numbers = np.frombuffer(raw, dtype.numpy) if dtype.kind != "b" else rng.integers(0, 2, 40) > 0
    for array in (numbers, numbers.reshape(4, 10), numbers[:1].reshape(()), numbers[:0]):
        builder = Builder("numbers")
        made = builder.constant(array)
        graph = parse_graph(print_graph(builder.finish([made])))
        read = graph.nodes[0].attrs["value"]
        assert read.dtype == array.dtype
        assert read.shape == array.shape
        assert read.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "number", [0.1, 1e-45, 3.4e38, -0.0, np.nan, np.inf, 1 / 3, 5e-324, 65504.0]
)
@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_literals_print_short_and_read_back(number: float, kind: type) -> None:
    with np.errstate(all="ignore"):
        array = np.asarray(number, kind)
    builder = Builder("literal")
    graph = builder.finish([builder.constant(array)])
    text = print_graph(graph)
    assert "bytes" not in text
    assert parse_graph(text).nodes[0].attrs["value"].tobytes() == array.tobytes()


def test_a_literal_is_typed_where_its_neighbours_do_not_say() -> None:
    builder = Builder("typed")
    x = builder.param("x", TensorType(F32, (Dim.symbol("n"),)))
    p = builder.less(x, 0.5, name="p")
    y = builder.select(p, builder.constant(1.0, F32), builder.constant(0.0, F32), name="y")
    text = print_graph(builder.finish([y]))
    assert "%p = less %x, 0.5 : bool[n]" in text
    assert "%y = select %p, 1.0:f32, 0.0:f32 : f32[n]" in text
    assert print_graph(parse_graph(text)) == text


def test_places_print_behind_the_nodes() -> None:
    builder = Builder("places", lambda: Location("train.py", 31, "loss"))
    x = builder.param("x", TensorType(F32, ()))
    text = print_graph(builder.finish([builder.neg(x, name="y")]), locations=True)
    assert "  %y = neg %x : f32[]  // train.py:31, in loss\n" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph @f() -> () {", "the text ends inside a graph"),
        ("graph @f(%x f32[]) -> () {\nreturn\n}", "line 1: expected ':'"),
        ("graph @f() -> () {\n%a = nothing : f32[]\nreturn\n}", "no op named 'nothing'"),
        ("graph @f() -> () {\n%a = iota {size=} : i64[3]\nreturn\n}", "line 2: expected a size"),
        ("graph @f(%x: f99[]) -> () {\nreturn\n}", "expected a type instead of 'f99'"),
        ("graph @f() -> () {\n%a = neg 1.0 : f32[]\nreturn\n}", "a literal with a type"),
        (
            "graph @f() -> () {\n%a = constant {value=[1, 2]} : i64[3]\nreturn\n}",
            "literal that fits",
        ),
        ("graph @f() -> () {\nreturn\n}\n}", "line 4: expected the end"),
        ("graph @f() -> () {\n%a, %b = neg 1.0:f32 : f32[]\nreturn\n}", "2 types"),
    ],
)
def test_bad_text_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises((GraphError, ValueError), match="TM") as caught:
        parse_graph(text)
    assert message in str(caught.value)


def test_the_fingerprint_looks_through_names_and_places() -> None:
    renamed = GRAPH.replace("%err", "%error").replace("%x", "%input").replace("@train_step", "@s")
    print_of = fingerprint(parse_graph(GRAPH))
    assert fingerprint(parse_graph(renamed)) == print_of
    for old, new in [
        ("0.5", "0.25"), ("sub %w, %grad", "add %w, %grad"), ("axes=[0, 1]", "axes=[1, 0]"),
        ("sub %y, %target", "sub %target, %y"), ("@w", "@v"), ("%loss, %done", "%done"),
        ("cuda:0", "cuda:1"), ("f32[n", "f32[m"),
    ]:  # fmt: skip
        assert fingerprint(parse_graph(GRAPH.replace(old, new))) != print_of, old


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    text = "graph @f(%x: f32[n]) -> f32[n] {\n  %y = mul %x, 0.5 : f32[n]\n  return %y\n}\n"
    known = "1b34f03e587961758c51c418019d476bf14c25d9aa2a94cd10dc7674c81d16c5"
    assert fingerprint(parse_graph(text)) == known


def test_random_graphs_keep_their_fingerprint(seed: int) -> None:
    for i in range(20):
        graph = parse_graph(print_graph(random_graph(seed + i)))
        assert fingerprint(parse_graph(print_graph(graph))) == fingerprint(graph)
