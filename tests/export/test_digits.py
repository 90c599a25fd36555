"""A trained model, exported, called from a C program: its prediction is Python's bit for bit."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits

import tracemill as tm
from c_programs import CProgram

pytestmark = [pytest.mark.cpu, pytest.mark.tool("cc")]
_fresh = itertools.count()
PREDICT = """
    int64_t n = get_size();
    float *x = get_array(n * 64, 4), *out = malloc(n * 10 * 4);
    digits *model = digits_create();
    int code = digits_run(model, x, n, out, n * 10);
    if (code) { fprintf(stderr, "%s\\n", digits_error_message(code)); return 1; }
    put(out, n * 10 * 4);
    digits_destroy(model);
    free(x); free(out);
"""


@pytest.fixture(scope="module")
def model() -> SimpleNamespace:
    """Two dense layers after a few steps of Adam."""
    data = load_digits()
    images = (data.data / 16).astype(np.float32)
    rng = np.random.default_rng(5)
    name = f"digits {next(_fresh)}"
    w1 = tm.Variable((rng.standard_normal((64, 32)) * 0.2).astype("f4"), name=f"{name} w1")
    b1 = tm.Variable(np.zeros(32, np.float32), name=f"{name} b1")
    w2 = tm.Variable((rng.standard_normal((32, 10)) * 0.2).astype("f4"), name=f"{name} w2")
    b2 = tm.Variable(np.zeros(10, np.float32), name=f"{name} b2")
    optimizer = tm.optim.Adam([w1, b1, w2, b2], lr=5e-3)

    def logits(x):
        return np.maximum(x @ w1 + b1, 0) @ w2 + b2

    @tm.jit
    def train(x, y):
        loss = tm.nn.cross_entropy(logits(x), y)
        optimizer.apply(tm.gradients(loss, [w1, b1, w2, b2]))
        return loss

    @tm.jit
    def digits(x):
        return tm.nn.softmax(logits(x))

    for start in range(0, 1536, 64):
        rows = slice(start, start + 64)
        train(images[rows], data.target[rows])
    return SimpleNamespace(
        predict=digits, train=train, images=images[1536:], labels=data.target[1536:], bias=b1
    )


def test_the_prediction_from_c_is_pythons_bit_for_bit(tmp_path: Path, model) -> None:
    made = model.predict.export(tmp_path / "libdigits.so", model.images, features="host")
    program = CProgram(tmp_path, made, PREDICT)
    for count in (1, 2, 64, len(model.images)):
        images = model.images[:count]
        expected = model.predict(images)
        found = np.frombuffer(program.run(count, images), np.float32).reshape(count, 10)
        np.testing.assert_array_equal(found, expected, strict=True)
    assert np.mean(found.argmax(axis=1) == model.labels) > 0.5
    assert made.library.stat().st_size < 100_000


def test_a_baseline_library_predicts_the_same_within_rounding(tmp_path: Path, model) -> None:
    made = model.predict.export(tmp_path / "libdigits.so", model.images)
    count = len(model.images)
    found = np.frombuffer(CProgram(tmp_path, made, PREDICT).run(count, model.images), np.float32)
    np.testing.assert_allclose(found.reshape(count, 10), model.predict(model.images), rtol=1e-4)


def test_training_continues_in_c_as_in_python(tmp_path: Path, model) -> None:
    x, y = model.images[:64], model.labels[:64]
    made = model.train.export(tmp_path / "libtrain.so", x, y, features="host")
    program = CProgram(
        tmp_path,
        made,
        f"""
        float *x = get_array(64 * 64, 4), loss, bias[32];
        int64_t *y = get_array(64, 8);
        train *step = train_create();
        for (int k = 0; k < 5; k++) {{
            if (train_run(step, x, y, 64, &loss, 1)) return 1;
            put(&loss, 4);
        }}
        if (train_get(step, "{model.bias.name}", bias, sizeof bias)) return 2;
        put(bias, sizeof bias);
        """,
    )
    found = np.frombuffer(program.run(x, y), np.float32)
    losses = np.array([model.train(x, y) for _ in range(5)])
    np.testing.assert_array_equal(found[:5], losses)
    np.testing.assert_array_equal(found[5:], np.asarray(model.bias))
    assert losses[-1] < losses[0]


def test_the_example_names_a_digit(tmp_path: Path, model, checkout: Path) -> None:
    made = model.predict.export(tmp_path / "libdigits.so", model.images, features="host")
    source = checkout / "examples" / "export_digits.c"
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{tmp_path}", "-o"]
    binary = tmp_path / "digits"
    rest = [str(source), str(made.library), f"-Wl,-rpath,{tmp_path}"]
    subprocess.run([*command, str(binary), *rest], check=True)
    image = model.images[:1]
    pixels = " ".join(str(value) for value in image[0] * 16)
    told = subprocess.run([binary], input=pixels, capture_output=True, text=True, check=True).stdout
    lines = dict(line.split(": ") for line in told.splitlines() if line[:1].isdigit())
    np.testing.assert_array_equal(np.array(list(lines.values()), "f4"), model.predict(image)[0])
    assert told.endswith(f"this is a {model.predict(image)[0].argmax()}\n")
    short = subprocess.run([binary], input="1 2 99", capture_output=True, text=True)
    assert (short.returncode, short.stderr) == (1, "expected 64 numbers from 0 to 16, got 2\n")


@pytest.mark.tool("valgrind")
def test_valgrind_finds_no_fault_in_the_exported_model(tmp_path: Path, model) -> None:
    """The baseline has no AVX-512, which valgrind does not know."""
    made = model.predict.export(tmp_path / "libdigits.so", model.images)
    program = CProgram(tmp_path, made, PREDICT)
    tool = ("valgrind", "-q", "--error-exitcode=77", "--leak-check=full", "--show-leak-kinds=all")
    program.run(3, model.images[:3], tool=tool)
