"""What a run is shown as: a table, a JSON file, a plot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from .harness import Measurement, Outcome
from .statistics import Estimate, geometric_mean


def line(outcome: Outcome) -> str:
    """One workload as a block of text."""
    sizes = ", ".join(f"{k}={v}" for k, v in outcome.sizes.items())
    rows = [f"{outcome.workload}  ({sizes})"]
    rows += [f"  {_measured(m)}" for m in outcome.measurements]
    if outcome.ratio is not None:
        r = outcome.ratio
        verdict = "met" if outcome.met else "not met"
        rows.append(
            f"  best peer {outcome.best_peer}: its time / ours = "
            f"{r.median:.2f} [{r.low:.2f}, {r.high:.2f}]  {verdict}"
        )
    if outcome.missing:
        rows.append(f"  not met: no figure of {', '.join(outcome.missing)}")
    rows.append(f"  {roofline(outcome)}")
    return "\n".join(rows)


def roofline(outcome: Outcome) -> str:
    """How near our time is to the limit that binds."""
    if outcome.roofline is None:
        return "too small for a roofline: what counts is the call"
    fraction, limit = outcome.roofline
    return f"{fraction:.0%} of the {limit}"


def summary(outcomes: Sequence[Outcome]) -> str:
    """The closing lines: how many met, the geometric mean."""
    ratios = [o.ratio.median for o in outcomes if o.ratio is not None]
    met = sum(o.met for o in outcomes)
    mean = f"{geometric_mean(ratios):.2f}" if ratios else "none"
    return (
        f"{met} of {len(outcomes)} workloads with all peers, at least as fast as the best peer "
        f"(95% interval included); geometric mean of ratios {mean}"
    )


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Everything measured, as JSON."""
    path.write_text(json.dumps(data, indent=1, default=_plain) + "\n")


def write_plot(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Ratio to the best peer per workload, with intervals, as a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [(o.workload, o.ratio) for o in outcomes if o.ratio is not None]
    figure, axes = pyplot.subplots(figsize=(8, 0.4 * len(shown) + 1.5))
    for row, (_, ratio) in enumerate(shown):
        colour = "tab:green" if ratio.low >= 1 else "tab:red"
        axes.barh(row, ratio.median, color=colour, alpha=0.7)
        axes.plot([ratio.low, ratio.high], [row, row], color="black", linewidth=1)
    axes.set_yticks(range(len(shown)), [name for name, _ in shown])
    axes.invert_yaxis()
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("time of the best peer / time of tracemill")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _measured(m: Measurement) -> str:
    if m.failed is not None or m.time is None:
        return f"{m.contender:16s} failed: {m.failed}"
    error = "" if m.error is None else f"error {m.error:.1e}"
    wrong = "" if m.accurate else "  INACCURATE"
    wrong += "  UNEQUAL NUMERICS, not compared" if m.unequal else ""
    first = "" if m.first_call is None else f"first call {m.first_call * 1e3:9.1f} ms"
    return f"{m.contender:16s} {_time(m.time)}  {first}  {error}{wrong}"


def _time(estimate: Estimate) -> str:
    unit, scale = ("ms", 1e3) if estimate.median >= 1e-3 else ("us", 1e6)
    values = (estimate.median, estimate.low, estimate.high)
    median, low, high = (v * scale for v in values)
    return f"{median:9.3f} {unit} [{low:.3f}, {high:.3f}]"


def _plain(value: Any) -> Any:
    if isinstance(value, Outcome):
        return value.as_json()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} in a report")
