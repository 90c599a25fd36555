"""The demo's report: one HTML file that needs nothing else."""

from __future__ import annotations

import html
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from digits_data import Split

matplotlib.use("Agg")
from matplotlib import pyplot

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<title>Handwritten digits with tracemill</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}
pre{{background:#f4f4f2;padding:1rem;overflow:auto;font-size:13px;max-height:28rem}}
h2{{margin-top:2.5rem}}svg{{max-width:100%;height:auto}}</style>
<h1>Handwritten digits</h1>
<p>{accuracy:.1%} of {count} held-out digits are named right. One training step takes
{compiled:.0f}&nbsp;µs compiled and {numpy:.0f}&nbsp;µs in plain NumPy (the best of 300).</p>
<h2>Loss</h2>{curve}
<h2>Some held-out digits</h2><p>Green: right. Red: what the model says, and what it is.</p>{digits}
<h2>Where the time went</h2>{profile}
<h2>The compiled training step</h2>{graph}
<h2>Its plan</h2><pre>{plan}</pre></html>
"""


def write_report(
    path: Path,
    data: Split,
    curve: list[float],
    probabilities: np.ndarray,
    train_step: Callable[..., Any],
    seconds: tuple[float, float],
    accuracy: float,
) -> Path:
    """Write the page and return its path."""
    lowered = train_step.lower(data.train_x[:64], data.train_y[:64])  # type: ignore[attr-defined]
    profile = train_step.profile(data.train_x[:64], data.train_y[:64])  # type: ignore[attr-defined]
    folder = f"{Path(__file__).resolve().parent}{os.sep}"
    page = _PAGE.format(
        accuracy=accuracy,
        count=len(data.test_x),
        compiled=seconds[0] * 1e6,
        numpy=seconds[1] * 1e6,
        curve=_curve(curve),
        digits=_digits(data, probabilities),
        profile=profile._repr_html_(),
        graph=lowered._repr_html_(),
        plan=html.escape(str(lowered.plan).replace(folder, "")),
    )
    path.write_text(page, encoding="utf-8")
    return path


def _curve(losses: list[float]) -> str:
    figure, axes = pyplot.subplots(figsize=(8, 3))
    axes.semilogy(range(1, len(losses) + 1), losses)
    axes.set_xlabel("epoch")
    axes.set_ylabel("mean loss")
    axes.grid(alpha=0.3)
    return _svg(figure)


def _digits(data: Split, probabilities: np.ndarray) -> str:
    named = probabilities.argmax(axis=1)
    wrong = np.flatnonzero(named != data.test_y)[:8]
    right = np.flatnonzero(named == data.test_y)[: 24 - len(wrong)]
    figure, axes = pyplot.subplots(3, 8, figsize=(8, 3.6))
    for panel, index in zip(axes.flat, [*wrong, *right], strict=False):
        panel.imshow(data.test_x[index].reshape(8, 8), cmap="gray_r")
        is_right = named[index] == data.test_y[index]
        title = f"{named[index]}" if is_right else f"{named[index]}, is {data.test_y[index]}"
        panel.set_title(title, color="green" if is_right else "red", fontsize=10)
    for panel in axes.flat:
        panel.axis("off")
    return _svg(figure)


def _svg(figure: Any) -> str:
    text = io.StringIO()
    figure.tight_layout()
    figure.savefig(text, format="svg")
    pyplot.close(figure)
    return text.getvalue()[text.getvalue().index("<svg") :]
