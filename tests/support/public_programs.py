"""Programs as people write them, in plain NumPy and Python loops, with arguments for a size.

Not here: what they are compared with (tests/compiled/test_public_programs.py).
"""

from __future__ import annotations

import numpy as np


def mandelbrot(c, limit):
    z = np.zeros_like(c)
    counts = np.zeros(c.shape, np.int64)
    alive = np.ones(c.shape, bool)
    k = 0
    while k < limit and alive.any():
        z[alive] = z[alive] ** 2 + c[alive]
        alive = alive & (np.abs(z) <= 2)
        counts[alive] += 1
        k += 1
    return counts


def heat(u, steps, a):
    for _ in range(steps):
        u[1:-1, 1:-1] += a * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
    return u


def jacobi(u, f, steps):
    for _ in range(steps):
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - f[1:-1, 1:-1]
        )
        u = new
    return u


def nbody(p, v, m, dt, steps):
    for _ in range(steps):
        d = p[None] - p[:, None]
        r = (d * d).sum(-1) + 0.01
        a = (d * (m / (r * np.sqrt(r)))[..., None]).sum(1)
        v = v + a * dt
        p = p + v * dt
    return p, v


def kmeans(x, centers, steps):
    for _ in range(steps):
        d = ((x[:, None] - centers[None]) ** 2).sum(-1)
        label = d.argmin(1)
        for k in range(centers.shape[0]):
            mine = label == k
            count = mine.sum()
            if count > 0:
                centers[k] = (x * mine[:, None]).sum(0) / count
    return centers, label


def kalman(F, H, Q, R, x, P, zs):
    out = np.zeros((zs.shape[0], x.shape[0]))
    for i in range(zs.shape[0]):
        x = F @ x
        P = F @ P @ F.T + Q
        S = H @ P @ H.T + R
        K = P @ H.T @ np.linalg.inv(S)
        x = x + K @ (zs[i] - H @ x)
        P = P - K @ H @ P
        out[i] = x
    return out


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(xs, W, U, b, h, c):
    n = h.shape[-1]
    for t in range(xs.shape[0]):
        g = xs[t] @ W + h @ U + b
        i, f, o, u = (
            sigmoid(g[:, :n]),
            sigmoid(g[:, n : 2 * n]),
            sigmoid(g[:, 2 * n : 3 * n]),
            np.tanh(g[:, 3 * n :]),
        )
        c = f * c + i * u
        h = o * np.tanh(c)
    return h, c


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def norm(x, g, b):
    return g * (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) + b


def gpt(x, p):
    n, d = x.shape
    a = norm(x, *p["ln1"])
    heads = 4
    q, k, v = np.split(a @ p["qkv"], 3, axis=-1)
    outs = []
    mask = (1 - np.tri(n)) * -1e10
    for h in range(heads):
        s = slice(h * d // heads, (h + 1) * d // heads)
        outs.append(softmax(q[:, s] @ k[:, s].T / np.sqrt(d // heads) + mask) @ v[:, s])
    x = x + np.hstack(outs) @ p["o"]
    return x + gelu(norm(x, *p["ln2"]) @ p["up"]) @ p["down"]


def life(board, steps):
    for _ in range(steps):
        n = sum(
            np.roll(np.roll(board, i, 0), j, 1)
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if (i, j) != (0, 0)
        )
        board = ((n == 3) | ((board == 1) & (n == 2))).astype(board.dtype)
    return board


def raymarch(origin, dirs, steps):
    t = np.zeros(dirs.shape[0])
    for _ in range(steps):
        p = origin + dirs * t[:, None]
        d = np.minimum(np.sqrt((p**2).sum(-1)) - 1.0, p[:, 1] + 1.5)
        t = np.where(d > 1e-3, t + d, t)
        if t.min() > 100:
            break
    return t


def cholesky(A):
    n = A.shape[0]
    L = np.zeros_like(A)
    for i in range(n):
        for j in range(i + 1):
            s = A[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                L[i, j] = np.sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    return L


def floyd(d):
    n = d.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


def floyd2(d):
    for k in range(d.shape[0]):
        d = np.minimum(d, d[:, k][:, None] + d[k][None])
    return d


def sor(u, f, w, steps):
    n, m = u.shape
    for _ in range(steps):
        for color in range(2):
            for i in range(1, n - 1):
                for j in range(1 + (i + color) % 2, m - 1, 2):
                    u[i, j] += (
                        w
                        * 0.25
                        * (
                            u[i - 1, j]
                            + u[i + 1, j]
                            + u[i, j - 1]
                            + u[i, j + 1]
                            - 4 * u[i, j]
                            - f[i, j]
                        )
                    )
    return u


def gramschmidt(A):
    m, n = A.shape
    Q = np.zeros((m, n))
    R = np.zeros((n, n))
    for j in range(n):
        v = A[:, j].copy()
        for i in range(j):
            R[i, j] = Q[:, i] @ A[:, j]
            v -= R[i, j] * Q[:, i]
        R[j, j] = np.sqrt(v @ v)
        Q[:, j] = v / R[j, j]
    return Q, R


def gramschmidt2(A):
    m, n = A.shape
    Q = np.zeros((m, n))
    R = np.zeros((n, n))
    for k in range(n):
        R[k, k] = np.sqrt(np.sum(A[:, k] ** 2))
        Q[:, k] = A[:, k] / R[k, k]
        R[k, k + 1 :] = Q[:, k] @ A[:, k + 1 :]
        A[:, k + 1 :] -= np.outer(Q[:, k], R[k, k + 1 :])
    return Q, R


def lu(A):
    n = A.shape[0]
    for k in range(n):
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k, k + 1 :])
    return A


def lu2(A):
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            A[i, j] = (A[i, j] - A[i, :j] @ A[:j, j]) / A[j, j]
        for j in range(i, n):
            A[i, j] = A[i, j] - A[i, :i] @ A[:i, j]
    return A


def durbin(r):
    n = r.shape[0]
    y = np.zeros_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, n):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def spmv(A_row, A_col, A_val, x):
    y = np.zeros(A_row.shape[0] - 1)
    for i in range(A_row.shape[0] - 1):
        cols = A_col[A_row[i] : A_row[i + 1]]
        vals = A_val[A_row[i] : A_row[i + 1]]
        y[i] = vals @ x[cols]
    return y


def sinkhorn(a, b, M, reg, most):
    K = np.exp(-M / reg)
    u = np.ones_like(a)
    v = np.ones_like(b)
    trips = 0
    for _ in range(most):
        trips += 1
        last = u
        u = a / (K @ v)
        v = b / (K.T @ u)
        if np.abs(u - last).max() < 1e-9:
            break
    return u[:, None] * K * v[None], trips


def _numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def _uniform(*shape):
    return np.random.default_rng(sum(shape)).random(shape)


def _positive(n):
    a = _numbers(n, n)
    return a @ a.T + n * np.eye(n)


def _distances(n):
    d = 1 + 9 * _uniform(n, n)
    d[_uniform(n, n + 1)[:, 1:] < 0.5] = 100
    np.fill_diagonal(d, 0)
    return d


def _sparse(n):
    rng = np.random.default_rng(n)
    row = np.concatenate([[0], np.cumsum(rng.integers(0, 5, n))])
    return row, rng.integers(0, n, row[-1]), rng.standard_normal(row[-1]), rng.standard_normal(n)


def _block(d):
    part = lambda *shape: _numbers(*shape) * 0.1
    return {
        "ln1": (np.ones(d), np.zeros(d)), "ln2": (np.ones(d), np.zeros(d)), "qkv": part(d, 3 * d),
        "o": part(d, d), "up": part(d, 4 * d), "down": part(4 * d, d),
    }  # fmt: skip


def _plane(n):
    y, x = np.mgrid[-1.2 : 1.2 : n * 1j, -2 : 0.6 : n * 1j]
    return x + 1j * y


# function, arguments for a size, two sizes
PROGRAMS = [
    (mandelbrot, lambda n: (_plane(n), 30), (20, 31)),
    (heat, lambda n: (_numbers(n, n), 50, 0.1), (20, 33)),
    (jacobi, lambda n: (_numbers(n, n), _uniform(n, n), 50), (20, 33)),
    (nbody, lambda n: (_numbers(n, 3), _uniform(n, 3), _uniform(n), 0.01, 20), (20, 33)),
    (kmeans, lambda n: (_numbers(n, 3), _uniform(5, 3), 20), (50, 80)),
    (kalman, lambda n: (0.3 * _numbers(4, 4), _uniform(2, 4), np.eye(4), np.eye(2), _numbers(4),
                        np.eye(4), _numbers(n, 2)), (30, 44)),
    (lstm, lambda n: (_numbers(n, 3, 8), 0.2 * _numbers(8, 64), 0.2 * _numbers(16, 64),
                      _numbers(64), _numbers(3, 16), _uniform(3, 16)), (20, 31)),
    (gpt, lambda n: (_numbers(n, 32), _block(32)), (16, 25)),
    (life, lambda n: ((_uniform(n, n) < 0.4).astype(int), 30), (20, 33)),
    (raymarch, lambda n: (np.array([0.0, 0, -3]), _numbers(n, 3), 40), (50, 70)),
    (cholesky, lambda n: (_positive(n),), (18, 23)),
    (floyd, lambda n: (_distances(n),), (18, 21)),
    (floyd2, lambda n: (_distances(n),), (20, 33)),
    (sor, lambda n: (_numbers(n, n), _uniform(n, n), 1.5, 20), (18, 23)),
    (gramschmidt, lambda n: (_numbers(n + 5, n),), (20, 27)),
    (gramschmidt2, lambda n: (_numbers(n + 5, n),), (20, 27)),
    (lu, lambda n: (_positive(n),), (20, 27)),
    (lu2, lambda n: (_positive(n),), (20, 27)),
    (durbin, lambda n: (0.1 * _uniform(n) / np.arange(1, n + 1),), (20, 41)),
    (spmv, _sparse, (30, 50)),
    (sinkhorn, lambda n: (np.ones(n) / n, np.ones(n) / n, _uniform(n, n), 0.1, 200), (20, 33)),
]  # fmt: skip
