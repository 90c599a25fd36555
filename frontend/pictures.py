"""A graph as a page a person can read: its text, grouped by the user's lines, coloured.

One self-contained piece of HTML: the user's file and line on the left, where they change; the
nodes made there on the right, names and types set apart.

Not here: the text itself (compiler/ir/printer.py).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from .compiler.ir.graph import Graph
from .compiler.ir.printer import print_graph

_STYLE = """<style>
.tm-graph{font:13px/1.5 ui-monospace,monospace;border:1px solid #ccc;border-radius:6px;
max-height:36rem;overflow:auto;background:#fff;color:#222}
.tm-graph table{border-collapse:collapse;width:100%}
.tm-graph td{padding:1px 10px;vertical-align:top;text-align:left;white-space:pre-wrap}
.tm-graph .at{color:#777;white-space:nowrap}.tm-graph .type{color:#06789b}
.tm-graph tr.group td{border-top:1px solid #e5e5e5}.tm-graph b{color:#7a3e00;font-weight:600}
</style>"""
_MADE = re.compile(r"^(\s*)((?:%[\w.]+(?:, )?)+) = (\w+)")
_TYPE = re.compile(r"\b((?:bool|[iufcb]f?\d+)\[[^\]]*\]|token)")


def graph_page(graph: Graph) -> str:
    """HTML for notebooks and reports."""
    rows = "".join(_rows(print_graph(graph, locations=True)))
    return f'{_STYLE}<div class="tm-graph"><table>{rows}</table></div>'


def _rows(text: str) -> Iterator[str]:
    before = ""
    for line in text.splitlines():
        code, _, place = line.partition("  // ")
        at = _short(place)
        group = ' class="group"' if at != before else ""
        shown = html.escape(at) if at != before else ""
        before = at
        yield f'<tr{group}><td class="at">{shown}</td><td>{_coloured(html.escape(code))}</td></tr>'


def _coloured(code: str) -> str:
    code = _TYPE.sub(r'<span class="type">\1</span>', code)
    return _MADE.sub(r"\1<b>\2</b> = <b>\3</b>", code)


def _short(place: str) -> str:
    return place.replace("\\", "/").rsplit("/", 1)[-1]
