"""The developer's command line: a graph's text in, passes, text out.

    python -m tracemill.compiler.mill simplify prune < graph.mill
    python -m tracemill.compiler.mill "fold(limit=8)" < graph.mill
    python -m tracemill.compiler.mill --each < graph.mill      # the whole pipeline, step by step

Invariants: reads the standard input, writes the standard output and error; judges the graph
before, between and after.
Not here: what passes there are (passes/__init__.py), tracing.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import re
import sys
from collections.abc import Sequence
from typing import Any

from .errors import TracemillError, error
from .ir.graph import Graph
from .ir.parser import parse_graph
from .ir.printer import print_graph
from .passes import PASSES, PIPELINE
from .passes.base import Pass, run_passes

_PASS = re.compile(r"(\w+)(?:\((.*)\))?")


def pass_named(text: str) -> Pass:
    """The pass that ``name`` or ``name(option=value, ...)`` spells. Raises ArgError."""
    found = _PASS.fullmatch(text.strip())
    if found is None or found.group(1) not in PASSES:
        known = ", ".join(PASSES)
        raise error("TM203", f"{text!r} is not a pass", hint=f"the passes are {known}")
    step: Any = PASSES[found.group(1)]
    call = ast.parse(f"f({found.group(2) or ''})", mode="eval").body
    assert isinstance(call, ast.Call)
    options = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg is not None}
    made: Pass = dataclasses.replace(step, **options)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 1 where the text or a pass is wrong."""
    parser = argparse.ArgumentParser(prog="mill", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("passes", nargs="*", help="in order; none for the whole pipeline")
    parser.add_argument("--each", action="store_true", help="print the graph after each pass")
    parser.add_argument("--places", action="store_true", help="print the user's line beside nodes")
    asked = parser.parse_args(arguments)

    def show(name: str, graph: Graph) -> None:
        if asked.each:
            print(f"// {name}\n{print_graph(graph, locations=asked.places)}")

    try:
        steps = [pass_named(text) for text in asked.passes] or PIPELINE
        ticket = run_passes(parse_graph(sys.stdin.read()), steps, show)
    except TracemillError as problem:
        print(problem, file=sys.stderr)
        return 1
    if not asked.each:
        print(print_graph(ticket.graph, locations=asked.places), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
