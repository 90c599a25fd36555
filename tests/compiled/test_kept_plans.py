"""Plans that the cache keeps: found by equal programs, wrong for none."""

from __future__ import annotations

import textwrap
from typing import NamedTuple

import pytest

PROGRAM = """
import sys
import numpy as np
import tracemill as tm
sys.stderr = sys.stdout

rng = np.random.default_rng(0)
w = tm.Variable(np.ones((5, 3)), name="w")
table = np.arange(12.0).reshape(4, 3)
scale = 2.0

{lines}
@tm.jit
def step(x, i, rate, out):
    h = np.tanh(x @ w) * scale + table[i]
    w.assign(w - rate * (x.T @ h))
    out[...] = h.sum(axis=0) + np.array([1.5, -0.0, 3.0])
    tm.print("first {{:.3f}}", h[0, 0])
    return h[:, ::-1], x.shape[0], h.std()

x = rng.standard_normal((7, 10))[:, ::2]
i = rng.integers(0, 4, 7)
for _ in range(2):
    out = np.zeros(3)
    made = step(x, i, 0.01, out)
    print(*[np.asarray(m).tobytes().hex() for m in (*made, out, w.read())])
print("compiled", step.explain_recompiles()[0].compiled)
try:
    step(x, i + 9, 0.01, out)
except IndexError as problem:
    print(problem)
"""


class Outcome(NamedTuple):
    """What a run of the program said. found: ``hit`` or ``miss``, for its plan. compiled: how many
    of its kernels were. lines: all else."""

    found: str
    compiled: int
    lines: list[str]


@pytest.fixture
def outcome(run_python, tmp_path):
    """Run the program, these lines before it, in a process of its own."""

    def run(lines: str = "", **environment: str) -> Outcome:
        (tmp_path / "program.py").write_text(PROGRAM.format(lines=lines))
        code = f"import runpy; runpy.run_path({str(tmp_path / 'program.py')!r})"
        settings = {"TRACEMILL_CACHE": str(tmp_path / "cache"), "TRACEMILL_LOG": "cache"}
        text = run_python(code, **(settings | environment)).splitlines()
        (found,) = [line.split()[2] for line in text if " plan " in line]
        (compiled,) = [line.split()[1] for line in text if line.startswith("compiled ")]
        rest = [line for line in text if not line.startswith(("tracemill", "compiled "))]
        return Outcome(found, int(compiled), rest)

    return run


def test_a_kept_plan_computes_the_same_bits(outcome):
    cold, warm = outcome(), outcome()
    assert (cold.found, warm.found) == ("miss", "hit")
    assert cold.compiled > 0
    assert warm.compiled == 0
    assert warm.lines == cold.lines


def test_errors_of_a_kept_plan_name_today_s_line(outcome):
    before, after = outcome(), outcome("# a comment\n" * 5)
    assert after.found == "hit"
    (first,) = [line for line in before.lines if "program.py:" in line]
    (second,) = [line for line in after.lines if "program.py:" in line]
    number = int(first.split("program.py:")[1].split(",")[0])
    assert second == first.replace(f"program.py:{number},", f"program.py:{number + 5},")


def test_a_kept_plan_without_its_code_is_made_again(outcome, tmp_path):
    cold = outcome()
    # Kernels are the entries that hold code; the largest is the native runtime's.
    entries = sorted((tmp_path / "cache").iterdir(), key=lambda entry: entry.stat().st_size)
    code = [entry for entry in entries[:-1] if b"TMBLOB" in entry.read_bytes()]
    assert len(code) == cold.compiled
    code[0].unlink()
    again = outcome()
    assert (again.found, again.compiled) == ("miss", 1)
    assert again.lines == cold.lines
    assert outcome().found == "hit"


@pytest.mark.parametrize(
    "environment",
    [{"TRACEMILL_THREADS": "3"}, {"OTHER": "1"}],
    ids=["threads", "nothing"],
)
def test_a_plan_is_kept_for_one_machine(outcome, environment):
    outcome(TRACEMILL_THREADS="2")
    found = outcome(**({"TRACEMILL_THREADS": "2"} | environment)).found
    assert found == ("miss" if "TRACEMILL_THREADS" in environment else "hit")


CASES = {
    "dtype": "x.astype(np.float32)",
    "rank": "x[0]",
    "size": "x[:3]",
    "layout": "x[:, ::2]",
}


@pytest.mark.parametrize("other", CASES)
def test_other_arguments_have_other_plans(run_python, tmp_path, other):
    code = textwrap.dedent(
        f"""
        import sys
        import numpy as np
        import tracemill as tm
        sys.stderr = sys.stdout
        x = np.arange(40.0).reshape(4, 10)
        f = lambda x: (x * x).sum(axis=-1) + 1
        for argument in (x, {CASES[other]}):
            assert np.array_equal(tm.jit(f)(argument), f(argument))
        """
    )
    settings = {"TRACEMILL_CACHE": str(tmp_path / "cache"), "TRACEMILL_LOG": "cache"}
    lines = run_python(code, **settings).splitlines()
    assert [line.split()[2] for line in lines if " plan " in line] == ["miss", "miss"]
    lines = run_python(code, **settings).splitlines()
    assert [line.split()[2] for line in lines if " plan " in line] == ["hit", "hit"]
    assert len({line.split()[-1] for line in lines}) == 2


FLOW = """
import sys
import numpy as np
import tracemill as tm
sys.stderr = sys.stdout

w = tm.Variable(np.full(3, 0.5), name="w")

@tm.jit
def repeated(x, n):
    def body(carried):
        i, y = carried
        w.assign(w * 1.5)
        return i + 1, np.tanh(y) + w
    return tm.while_loop(lambda carried: carried[0] < n, body, (0, x))

@tm.jit
def chosen(x, p):
    return tm.cond(p > 0, lambda x: np.sort(x) * 2, lambda x: x - 1, x)

x = np.array([3.0, 1.0, 2.0])
print(*repeated(x, 4), w.read(), chosen(x, 1), chosen(x, -1))
"""


def test_plans_with_loops_and_branches_are_kept(run_python, tmp_path):
    settings = {"TRACEMILL_CACHE": str(tmp_path / "cache"), "TRACEMILL_LOG": "cache"}
    cold, warm = (run_python(FLOW, **settings).splitlines() for _ in range(2))
    assert [line.split()[2] for line in cold if " plan " in line] == ["miss", "miss"]
    assert [line.split()[2] for line in warm if "tracemill" in line] == ["hit", "hit"]
    assert cold[-1] == warm[-1]


def test_without_a_cache_no_plan_is_looked_for(run_python):
    code = "import numpy as np, tracemill as tm; print(tm.jit(np.tanh)(np.zeros(3)).sum())"
    assert run_python(code, TRACEMILL_CACHE="off", TRACEMILL_LOG="cache").split() == ["0.0"]
