"""Train a classifier of handwritten digits, every step one compiled call.

Run by ``make demo``. The data are the 1,797 8x8 digits that ship with scikit-learn, a fixed
fifth of them held out. Prints the accuracy and the step time beside the same code in plain
NumPy, saves and restores the state, and writes one HTML report.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from digits_data import Split, load
from digits_numpy import NumPyModel
from digits_report import write_report
from tqdm import tqdm

import tracemill as tm

HIDDEN, BATCH, EPOCHS, RATE = 128, 64, 40, 2e-3
TARGET_ACCURACY = 0.97

rng = np.random.default_rng(7)
w1 = tm.Variable((rng.standard_normal((64, HIDDEN)) * 0.17).astype(np.float32), name="w1")
b1 = tm.Variable(np.zeros(HIDDEN, np.float32), name="b1")
w2 = tm.Variable((rng.standard_normal((HIDDEN, 10)) * 0.12).astype(np.float32), name="w2")
b2 = tm.Variable(np.zeros(10, np.float32), name="b2")
parameters = [w1, b1, w2, b2]
optimizer = tm.optim.Adam(parameters, lr=RATE)


def logits(x: np.ndarray) -> np.ndarray:
    """Two dense layers."""
    hidden = np.maximum(x @ w1 + b1, 0)
    return hidden @ w2 + b2


@tm.jit
def train_step(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """One step of Adam on the mean cross-entropy; returns the loss before the step."""
    loss = tm.nn.cross_entropy(logits(x), y)
    optimizer.apply(tm.gradients(loss, parameters))
    return loss


@tm.jit
def predict(x: np.ndarray) -> np.ndarray:
    """Class probabilities."""
    return tm.nn.softmax(logits(x))


def batches(data: Split, order: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """One epoch of shuffled batches, the last one smaller."""
    index = order.permutation(len(data.train_x))
    for start in range(0, len(index), BATCH):
        chosen = index[start : start + BATCH]
        yield data.train_x[chosen], data.train_y[chosen]


def train(data: Split) -> list[float]:
    """Train with a progress bar; returns the mean loss of each epoch."""
    order = np.random.default_rng(11)
    curve = []
    with tqdm(range(EPOCHS), desc="training", unit="epoch") as bar:
        for _ in bar:
            losses = [float(train_step(x, y)) for x, y in batches(data, order)]
            curve.append(float(np.mean(losses)))
            bar.set_postfix(
                loss=f"{curve[-1]:.4f}", accuracy=f"{accuracy(data):.3f}", refresh=False
            )
    return curve


def accuracy(data: Split) -> float:
    """Share of held-out digits that are named right."""
    return float(np.mean(predict(data.test_x).argmax(axis=1) == data.test_y))


def step_times(data: Split) -> tuple[float, float]:
    """Best seconds of one step, compiled and in plain NumPy, taken alternately.

    The compiled steps train on; the caller restores the state afterwards.
    """
    x, y = data.train_x[:BATCH], data.train_y[:BATCH]
    plain = NumPyModel([np.asarray(p) for p in parameters], RATE)
    samples: tuple[list[float], list[float]] = ([], [])
    for _ in range(300):
        for step, out in zip((train_step, plain.step), samples, strict=True):
            began = time.perf_counter()
            step(x, y)
            out.append(time.perf_counter() - began)
    compiled, numpy = (min(s) for s in samples)
    return compiled, numpy


def main() -> int:
    """Train, check, save, restore, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder written to")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    data = load()
    train_step(data.train_x[:BATCH], data.train_y[:BATCH])
    compiled_before = len(train_step.explain_recompiles())
    curve = train(data)
    if len(train_step.explain_recompiles()) != compiled_before:
        sys.exit(f"a training step was compiled again:\n{train_step.explain_recompiles()}")
    reached = accuracy(data)
    tm.save(out / "digits", [*parameters, *optimizer.slots])
    before = predict(data.test_x)
    compiled, numpy = step_times(data)
    tm.restore(out / "digits", [*parameters, *optimizer.slots])
    if not np.array_equal(before, predict(data.test_x)):
        sys.exit("the restored model predicts something else")
    print(f"held-out accuracy {reached:.1%} on {len(data.test_x)} digits (wanted: 97%)")
    print(f"one step, best of 300: {compiled * 1e6:.0f} us, in plain NumPy {numpy * 1e6:.0f} us")
    report = write_report(
        out / "report.html", data, curve, before, train_step, (compiled, numpy), reached
    )
    print(f"state saved and restored; report: {report}")
    return 0 if reached >= TARGET_ACCURACY else 1


if __name__ == "__main__":
    sys.exit(main())
