"""Sizes that are computed read back from the text: quotients, remainders, extremes, products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracemill as tm
from tracemill.compiler.dims import Dim, dim_text, parse_dim
from tracemill.compiler.errors import GraphError
from tracemill.compiler.ir.fingerprint import fingerprint
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.ir.printer import print_graph

Sized = Callable[[Any, Any], Any]

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "max": max,
    "min": min,
}


def built(tree: Any, n: Any, m: Any) -> Any:
    """The size that a tree of operations describes."""
    if isinstance(tree, tuple):
        operation, left, right = tree
        return OPERATIONS[operation](built(left, n, m), built(right, n, m))
    return {"n": n, "m": m}.get(tree, tree)


def trees(divisors: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Trees over n, m and small numbers."""
    leaves = st.sampled_from(["n", "m", 1, 2, 3])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(["+", "-", "*", "max", "min"]), inner, inner),
            st.tuples(st.sampled_from(["//", "%"]), inner, divisors),
        ),
        max_leaves=6,
    )


@given(trees(st.sampled_from([2, 3, 7, "n", ("+", "m", 1)])))
def test_a_traced_function_of_computed_sizes_reads_back(tree: Any) -> None:
    """The size is made positive by a remainder, so that it is one for the example call."""

    def f(x: Any, y: Any) -> Any:
        size = built(tree, x.shape[0], y.shape[0])
        return np.zeros(size % 5 + 1) + x.sum(), np.ones((size * size, 2)).T

    graph = tm.jit(f).lower(np.ones(7), np.ones(4)).graph
    text = print_graph(graph)
    again = parse_graph(text)
    assert print_graph(again) == text
    assert fingerprint(again) == fingerprint(graph)


@pytest.mark.parametrize(
    "size",
    [
        lambda n: n // 2,
        lambda n: (n + 1) // 2 * 3,
        lambda n: n // 2 // 3,
        lambda n: (n * n + 1) // 3 % 4,
        lambda n: -(-n // 4),
        lambda n: n % 3 - n // 5,
    ],
)
def test_a_size_reads_back(size: Callable[[Any], Any]) -> None:
    made = size(Dim.symbol("n"))
    assert parse_dim(dim_text(made)) == made


@pytest.mark.parametrize("comment", ["// half of n", "  // f64[n", "//"])
def test_a_comment_stands_outside_of_brackets(comment: str) -> None:
    text = """\
graph @f(%x: f64[n]) -> f64[(n // 2)] {
  %y = slice %x {size=[(n // 2)], start=[0], step=[1]} : f64[(n // 2)] COMMENT
  return %y
}
"""
    plain = parse_graph(text.replace(" COMMENT", ""))
    assert print_graph(parse_graph(text.replace("COMMENT", comment))) == print_graph(plain)


def test_a_comment_does_not_close_a_bracket() -> None:
    with pytest.raises(GraphError):
        parse_graph("graph @f(%x: f64[n // a comment\n) -> f64[] {\n  return %x\n}")
