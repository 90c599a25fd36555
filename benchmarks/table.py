"""The table of figures in a Markdown file, made from a run and never typed.

Invariants: only what stands between the two marks changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from .harness import Measurement, Outcome
from .machine import Machine
from .report import roofline, summary

BEGIN = "<!-- figures: written by `python -m benchmarks --markdown` -->"
END = "<!-- end of figures -->"


def renewed(text: str, limits: Machine, outcomes: Sequence[Outcome]) -> str:
    """`text` with the figures of this run. Raises ValueError where the marks are missing."""
    before, first, rest = text.partition(BEGIN)
    _, last, after = rest.partition(END)
    if not first or not last:
        raise ValueError(f"no place for figures: {BEGIN} and {END} mark it")
    return f"{before}{BEGIN}\n\n{figures(limits, outcomes)}\n\n{END}{after}"


def figures(limits: Machine, outcomes: Sequence[Outcome]) -> str:
    """Machine, table, summary."""
    rows = [
        "| workload | ours | best peer | its time / ours | limit reached | other peers |",
        "|---|---|---|---|---|---|",
        *map(_row, outcomes),
    ]
    return "\n".join([f"Machine: {limits.described}.", "", *rows, "", f"{summary(outcomes)}."])


def _row(outcome: Outcome) -> str:
    sizes = ", ".join(f"{k} = {v}" for k, v in outcome.sizes.items())
    ours, *peers = outcome.measurements
    others = [m for m in peers if m.contender != outcome.best_peer]
    ratio = "none"
    if outcome.ratio is not None:
        r = outcome.ratio
        ratio = f"{r.median:.2f} [{r.low:.2f}, {r.high:.2f}]"
    if not outcome.met:
        ratio += " (not met)"
    cells = (
        f"{outcome.workload} ({sizes})", _time(ours), outcome.best_peer or "none", ratio,
        roofline(outcome), "; ".join(f"{m.contender} {_time(m)}" for m in others),
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _time(measurement: Measurement) -> str:
    if measurement.time is None:
        return "missing"
    seconds = measurement.time.median
    shown = f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.2f} us"
    return f"{shown} (unequal numerics)" if measurement.unequal else shown
