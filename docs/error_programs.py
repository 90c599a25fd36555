"""A failing and a repaired program for the errors met most often, shown in errors.md.

Invariants: each failing program raises its code, each repaired one runs (tests/docs); `np` and
`tm` are imported in all of them.
Not here: the texts beside them (compiler/error_help.py).
"""

from __future__ import annotations

PROGRAMS: dict[str, tuple[str, str]] = {
    "TM101": (
        """\
@tm.jit
def root(x):
    try:
        if x.min() < 0:
            raise ValueError("negative")
    except ValueError:
        x = -x
    return np.sqrt(x)

root(np.ones(5))""",
        """\
@tm.jit
def root(x):
    if x.min() < 0:
        x = -x
    return np.sqrt(x)

root(np.ones(5))""",
    ),
    "TM102": (
        """\
@tm.jit
def first(x, count):
    return np.arange(int(count.sum())) * x

first(2.0, np.array([1, 2]))""",
        """\
@tm.jit(static_argnames="count")
def first(x, count):
    return np.arange(count) * x

first(2.0, count=3)""",
    ),
    "TM103": (
        """\
kept = []

@tm.jit
def f(x):
    kept.append(x * 2)
    return x

f(np.ones(3))
kept[0] + 1""",
        """\
@tm.jit
def f(x):
    return x, x * 2

x, kept = f(np.ones(3))
kept + 1""",
    ),
    "TM104": (
        """\
@tm.jit(static_argnames="n")
def power(x, n=3):
    return x if n == 1 else x * power(x, n - 1)

power(np.ones(3))""",
        """\
@tm.jit(static_argnames="n")
def power(x, n=3):
    result = x
    for _ in range(n - 1):
        result = result * x
    return result

power(np.ones(3))""",
    ),
    "TM105": (
        """\
@tm.jit
def total(x, table):
    return np.add(x, table)

total(np.ones(3), {1, 2, 3})""",
        """\
@tm.jit
def total(x, table):
    return np.add(x, table)

total(np.ones(3), np.array([1, 2, 3]))""",
    ),
    "TM110": (
        """\
@tm.jit
def eigen(x):
    return np.linalg.eigvals(x @ x.T)

eigen(np.eye(3))""",
        """\
@tm.jit
def gram(x):
    return x @ x.T

np.linalg.eigvals(gram(np.eye(3)))""",
    ),
    "TM112": (
        """\
@tm.jit
def positive(x):
    return x[x > 0]

positive(np.array([-1.0, 2.0]))""",
        """\
@tm.jit
def positive_sum(x):
    return x[x > 0].sum()

positive_sum(np.array([-1.0, 2.0]))""",
    ),
    "TM120": (
        """\
def errors(w):
    return (w - 1) ** 2

tm.grad(errors)(np.zeros(3))""",
        """\
def error(w):
    return ((w - 1) ** 2).sum()

tm.grad(error)(np.zeros(3))""",
    ),
    "TM204": (
        """\
@tm.jit
def centred(x):
    return x - x.mean(axis=1)

centred(np.ones((3, 4)))""",
        """\
@tm.jit
def centred(x):
    return x - x.mean(axis=1, keepdims=True)

centred(np.ones((3, 4)))""",
    ),
    "TM210": (
        """\
@tm.jit
def double(x):
    return x * 2

double(np.array([1, 2.5], dtype=object))""",
        """\
@tm.jit
def double(x):
    return x * 2

double(np.array([1, 2.5], dtype=object).astype(float))""",
    ),
    "TM230": (
        """\
@tm.jit
def pick(x, i):
    return x[i]

pick(np.arange(4.0), np.array([0, 7]))""",
        """\
@tm.jit
def pick(x, i):
    return x[np.clip(i, 0, len(x) - 1)]

pick(np.arange(4.0), np.array([0, 7]))""",
    ),
    "TM248": (
        """\
@tm.jit
def shift(x):
    x += 0.5
    return x

shift(np.arange(3))""",
        """\
@tm.jit
def shift(x):
    return x + 0.5

shift(np.arange(3))""",
    ),
}
