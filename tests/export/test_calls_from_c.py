"""Exported functions called from C programs: values, sizes, state, errors."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import tracemill as tm
from c_programs import CProgram

pytestmark = [pytest.mark.cpu, pytest.mark.tool("cc")]
_fresh = itertools.count()


@tm.jit
def blend(x, y, a):
    return np.tanh(x) * y + a - np.sqrt(np.abs(x))


@tm.jit
def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@tm.jit
def lookup(table, index):
    return table[index] * 2.0


def matrix(rng, rows, columns, dtype=np.float32):
    return rng.standard_normal((rows, columns)).astype(dtype)


def test_one_library_serves_every_size_bit_for_bit(tmp_path: Path, rng) -> None:
    x = rng.standard_normal(100)
    made = blend.export(tmp_path / "libblend.so", x, x, 2.5, features="host")
    program = CProgram(
        tmp_path,
        made,
        """
        int64_t n = get_size();
        double a, *x = get_array(n, 8), *y = get_array(n, 8), *out = malloc(n * 8 + 1);
        get(&a, sizeof a);
        blend *instance = blend_create();
        if (blend_output_size(instance, 0, n) != n) return 1;
        if (blend_run(instance, x, y, a, n, out, n) != BLEND_OK) return 2;
        put(out, n * 8);
        blend_destroy(instance);
        free(x); free(y); free(out);
        """,
    )
    for n in (0, 1, 7, 64, 1000):
        x, y = rng.standard_normal((2, n))
        made = np.frombuffer(program.run(n, x, y, np.float64(-0.75)))
        np.testing.assert_array_equal(made, blend(x, y, -0.75), strict=True)


def test_a_baseline_library_agrees_within_the_stated_accuracy(tmp_path: Path, rng) -> None:
    made = softmax.export(tmp_path / "libsoft.so", matrix(rng, 9, 33))
    program = CProgram(
        tmp_path,
        made,
        """
        int64_t n = get_size(), m = get_size();
        float *x = get_array(n * m, 4), *out = malloc(n * m * 4);
        soft *instance = soft_create();
        if (soft_run(instance, x, n, m, out, n * m)) return 1;
        put(out, n * m * 4);
        """,
    )
    for n, m in ((1, 33), (5, 8), (40, 100)):
        x = matrix(rng, n, m)
        made = np.frombuffer(program.run(n, m, x), np.float32).reshape(n, m)
        np.testing.assert_allclose(made, softmax(x), rtol=2e-6)


def test_each_instance_has_its_own_variables(tmp_path: Path) -> None:
    total = tm.Variable(np.array([1.0, 2.0]), name=f"total {next(_fresh)}")

    @tm.jit
    def add(x):
        total.assign(total + x)
        return total.read()

    made = add.export(tmp_path / "libadd.so", np.zeros(2))
    np.testing.assert_array_equal(np.asarray(total), [1.0, 2.0])
    text = CProgram(
        tmp_path,
        made,
        f"""
        double x[2] = {{10, 20}}, out[2], kept[2];
        add *one = add_create(), *two = add_create();
        for (int k = 0; k < 3; k++) if (add_run(one, x, out, 2)) return 1;
        if (add_run(two, x, out, 2)) return 2;
        if (add_get(one, "{total.name}", kept, sizeof kept)) return 3;
        printf("%g %g, %g %g\\n", kept[0], kept[1], out[0], out[1]);
        if (add_set(two, "{total.name}", kept, sizeof kept)) return 4;
        if (add_run(two, x, out, 2)) return 5;
        printf("%g %g\\n", out[0], out[1]);
        printf("%d %d %d\\n", add_get(one, "no", kept, 16), add_get(one, "{total.name}", kept, 8),
               add_set(one, NULL, kept, 16));
        add_destroy(one); add_destroy(two); add_destroy(NULL);
        """,
    ).text()
    assert text == "31 62, 11 22\n41 82\n5 2 1\n"
    np.testing.assert_array_equal(np.asarray(total), [1.0, 2.0])


def test_null_and_sizes_that_do_not_fit_return_codes(tmp_path: Path) -> None:
    @tm.jit
    def ends(x, y):
        return x[:4] * y, x + 1.0

    made = ends.export(tmp_path / "libends.so", np.ones(64), np.ones(1))
    text = CProgram(
        tmp_path,
        made,
        """
        double x[8] = {1, 2, 3, 4, 2, 2, 2, 2}, y = 0.5, out0[4] = {7}, out1[8] = {7};
        ends *instance = ends_create();
        const int codes[] = {
            ends_run(NULL, x, &y, 8, out0, 4, out1, 8),
            ends_run(instance, NULL, &y, 8, out0, 4, out1, 8),
            ends_run(instance, x, &y, 8, out0, 4, NULL, 8),
            ends_run(instance, x, &y, 3, out0, 4, out1, 8),
            ends_run(instance, x, &y, -8, out0, 4, out1, 8),
            ends_run(instance, x, &y, INT64_MAX, out0, 4, out1, 8),
            ends_run(instance, x, &y, INT64_MIN, out0, 4, out1, 8),
            ends_run(instance, x, &y, 8, out0, 3, out1, 8),
            ends_run(instance, x, &y, 8, out0, 4, out1, 7),
            ends_run(instance, x, &y, 8, out0, -4, out1, 8),
            (int)-ends_output_size(instance, 2, 8),
            (int)-ends_output_size(instance, -1, 8),
            (int)-ends_output_size(instance, 0, 2),
            (int)-ends_output_size(NULL, 0, 8)};
        for (size_t k = 0; k < sizeof codes / sizeof *codes; k++) printf("%d ", codes[k]);
        if (out0[0] != 7 || out1[0] != 7) return 1;
        puts("");
        if (ends_run(instance, x, &y, 8, out0, 4, out1, 8)) return 2;
        printf("%g %g %g\\n", out0[0], out0[3], out1[7]);
        for (int code = -1; code < 7; code++) puts(ends_error_message(code));
        """,
    ).text()
    codes, values, *messages = text.splitlines()
    assert codes.split() == "1 1 1 2 2 2 2 3 3 3 5 5 2 1".split()
    assert values == "0.5 2 3"
    assert messages[1] == "no error"
    assert messages[4] == "an output has too little room"
    assert messages[0] == messages[7] == "an unknown code"


def test_an_index_out_of_bounds_names_the_users_line_and_leaves_state(tmp_path: Path) -> None:
    calls = tm.Variable(np.zeros(1), name=f"calls {next(_fresh)}")

    @tm.jit
    def counted(table, index):
        calls.assign(calls + 1.0)
        return table[index]

    table = np.arange(10.0)
    made = counted.export(tmp_path / "libcounted.so", table, np.arange(9))
    text = CProgram(
        tmp_path,
        made,
        f"""
        double table[3] = {{1, 2, 3}}, out[2], count;
        int64_t good[2] = {{2, -3}}, bad[2] = {{0, 3}};
        counted *instance = counted_create();
        if (counted_run(instance, table, good, 3, 2, out, 2)) return 1;
        printf("%g %g\\n", out[0], out[1]);
        int code = counted_run(instance, table, bad, 3, 2, out, 2);
        if (code < COUNTED_FIRST_PLACE) return 2;
        puts(counted_error_message(code));
        if (counted_run(instance, table, good, 3, 2, out, 2)) return 3;
        if (counted_get(instance, "{calls.name}", &count, sizeof count)) return 4;
        printf("%g\\n", count);
        """,
    ).text()
    values, message, count = text.splitlines()
    assert values == "3 1"
    line = counted.__wrapped__.__code__.co_firstlineno + 3
    assert message.startswith(f"test_calls_from_c.py:{line}, in counted: gather: An index is out")
    assert count == "2"
    assert message in made.header.read_text()


def test_a_library_keeps_captured_arrays_and_fixed_numbers(tmp_path: Path) -> None:
    scale = np.array([1.0, 2.0, 3.0])

    @tm.jit
    def scaled(x, times):
        for _ in [None] * times:  # Python needs the number
            x = x * scale
        return x

    made = scaled.export(tmp_path / "libscaled.so", np.ones((20, 3)), 2)
    scale[:] = 0
    assert "times" not in made.header.read_text()
    text = CProgram(
        tmp_path,
        made,
        """
        double x[6] = {1, 1, 1, 2, 2, 2}, out[6];
        scaled *instance = scaled_create();
        if (scaled_run(instance, x, 2, out, 6)) return 1;
        for (int k = 0; k < 6; k++) printf("%g ", out[k]);
        """,
    ).text()
    assert text == "1 4 9 2 8 18 "


def test_trees_written_arguments_and_several_results(tmp_path: Path) -> None:
    @tm.jit
    def step(state, flag, z):
        state["x"][1:] += state["w"][0][0]
        x = state["x"]
        return {"sum": x.sum(), "sign": flag, "z": z * 2, "x": x}, x > 2, len(x) - 1, "text"

    example = {"x": np.ones(20), "w": [np.ones(20)]}
    made = step.export(tmp_path / "libstep.so", example, np.True_, 1 + 2j)
    header = made.header.read_text()
    assert " *   out[0]['x']: the argument state_x itself\n" in header
    assert " *   out[3]: always 'text'\n" in header
    assert " *   out[2]: the size m - 1\n" in header
    text = CProgram(
        tmp_path,
        made,
        """
        double x[3] = {1, 2, 3}, w[2] = {10, 20}, sum, z[2];
        bool flag = true, sign, large[3];
        step *instance = step_create();
        int code = step_run(instance, w, x, &flag, 1.0, -0.5, 2, 3, &sign, 1, &sum, 1, z, 1,
                            large, 3);
        printf("%d %g %g %g %d %g %g %g %d%d%d\\n", code, x[0], x[1], x[2], sign, sum, z[0], z[1],
               large[0], large[1], large[2]);
        """,
    ).text()
    assert text == "0 1 12 13 1 26 2 -1 011\n"
