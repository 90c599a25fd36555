"""Gradient rules of library ops.

With A^H for the conjugate transpose, X = inv(A) and G for the cotangent of a result:

    inv       -X^H G X^H
    solve     of b: D = solve(A^H, G); of a: -D x^H
    det       G conj(det A) X^H
    slogdet   of the logarithm: G X^H; of the sign of a complex one: i c X^H, c = Re(conj(G) i sign)
    cholesky  symmetric: (S + S^H) / 2, S = L^-H phi(L^H G) L^-1; phi: lower, half the diagonal
    eigh      V (diag(Gw) + V^H Gv * F) V^H, symmetric; F[i, j] = 1 / (w[j] - w[i]), 0 for i = j
    svd       U (diag(Gs) + (K S + S J) * F) V^H, K = U^H Gu and J = V^H Gv less their conjugate
              transposes, F[i, j] = 1 / (s[j]^2 - s[i]^2), 0 for i = j; complex: + diag(K) / 2S;
              + (1 - U U^H) Gu S^-1 V^H + U S^-1 Gv^H (1 - V V^H)
    fft       the transform with the other sign, cut or filled up with zeros

Sources: Giles, Collected Matrix Derivative Results (2008); Murray, Differentiation of the Cholesky
decomposition (2016); Wan and Zhang, Automatic Differentiation for Complex Valued SVD (2019).
Invariants: the first cotangent, of the table, is None; so is that of a transform's factor.
Not here: the ops (library.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import error
from ..types import C128
from .shaping import filled, zeros_like

Rule = Sequence[Any]


def turned(emit: Any, a: Any) -> Any:
    """The conjugate transpose of matrices."""
    rank = len(a.type.shape)
    made = emit.transpose(a, perm=(*range(rank - 2), rank - 1, rank - 2))
    return emit.conj(made) if a.type.dtype.is_complex else made


def product(emit: Any, a: Any, b: Any) -> Any:
    """Of matrices, problem by problem."""
    rank = len(a.type.shape)
    batch = tuple([(axis, axis) for axis in range(rank - 2)])
    return emit.contract(a, b, axes=((rank - 1, rank - 2),), batch=batch)


def conjugate(emit: Any, a: Any) -> Any:
    """Of a complex value; a real one is its own."""
    return emit.conj(a) if a.type.dtype.is_complex else a


def spread(emit: Any, number: Any, shape: Any) -> Any:
    """A number for each problem, at every place of its matrix."""
    kept = emit.reshape(number, shape=(*number.type.shape, 1, 1))
    return emit.broadcast_to(kept, shape=shape)


def mask(emit: Any, like: Any, op: str) -> Any:
    """Where a row's number compares so with its column's."""
    shape = like.type.shape
    size = shape[-1]
    numbers = emit.iota(size=size)
    rows = emit.broadcast_to(emit.reshape(numbers, shape=(size, 1)), shape=(size, size))
    columns = emit.broadcast_to(numbers, shape=(size, size))
    return emit.broadcast_to(getattr(emit, op)(rows, columns), shape=shape)


def inv(emit: Any, node: Any, cts: Rule) -> Rule:
    """Of the inverse."""
    back = turned(emit, node.results[0])
    made = product(emit, product(emit, back, cts[0]), back)
    return [None, emit.neg(made)]


def solve(emit: Any, node: Any, cts: Rule) -> Rule:
    """Of a solution."""
    table, a, _ = node.operands
    of_b = emit.solve(table, turned(emit, a), cts[0])[0]
    of_a = emit.neg(product(emit, of_b, turned(emit, node.results[0])))
    return [None, of_a, of_b]


def turned_inverse(emit: Any, node: Any) -> Any:
    """The conjugate transpose of the inverse; NaN where there is none."""
    table, a = node.operands
    return turned(emit, emit.inv_or_nan(table, a))


def det(emit: Any, node: Any, cts: Rule) -> Rule:
    """Of a determinant; NaN where there is no inverse."""
    inverse = turned_inverse(emit, node)
    factor = emit.mul(cts[0], conjugate(emit, node.results[0]))
    return [None, emit.mul(spread(emit, factor, inverse.type.shape), inverse)]


def slogdet(emit: Any, node: Any, cts: Rule) -> Rule:
    """Of sign and logarithm."""
    of_sign, of_log = cts
    inverse = turned_inverse(emit, node)
    dtype = inverse.type.dtype
    factor = None if of_log is None else emit.cast(of_log, dtype=dtype)
    if dtype.is_complex and of_sign is not None:
        turn = emit.constant(1j, dtype)
        part = emit.mul(emit.mul(emit.conj(of_sign), turn), node.results[0])
        along = emit.mul(emit.cast(emit.real(part), dtype=dtype), turn)
        factor = along if factor is None else emit.add(factor, along)
    if factor is None:
        return [None, zeros_like(emit, inverse)]
    return [None, emit.mul(spread(emit, factor, inverse.type.shape), inverse)]


def cholesky(emit: Any, node: Any, cts: Rule) -> Rule:
    """Of a lower factor."""
    return _of_factor(emit, node.operands[0], turned(emit, node.results[0]), cts[0])


def cholesky_upper(emit: Any, node: Any, cts: Rule) -> Rule:
    """Of an upper factor, which is the lower one turned."""
    return _of_factor(emit, node.operands[0], node.results[0], turned(emit, cts[0]))


def _of_factor(emit: Any, table: Any, upper: Any, of_factor: Any) -> Rule:
    phi = half_diagonal(emit, product(emit, upper, of_factor))
    left = emit.solve(table, upper, phi)[0]
    made = turned(emit, emit.solve(table, upper, turned(emit, left))[0])
    half = filled(emit, 0.5, phi.type.dtype, phi.type.shape)
    return [None, emit.mul(emit.add(made, turned(emit, made)), half)]


def half_diagonal(emit: Any, matrix: Any) -> Any:
    """The lower triangle, with half the diagonal."""
    half = filled(emit, 0.5, matrix.type.dtype, matrix.type.shape)
    lower = emit.select(mask(emit, matrix, "greater"), matrix, zeros_like(emit, matrix))
    return emit.select(mask(emit, matrix, "equal"), emit.mul(matrix, half), lower)


def eigh(emit: Any, node: Any, cts: Rule) -> Rule:
    """Of eigenvalues and vectors; of equal eigenvalues the vectors have no gradient, and what
    flows through them is infinite or NaN."""
    return _of_pairs(emit, node.results[:2], cts[:2])


def eigvalsh(emit: Any, node: Any, cts: Rule) -> Rule:
    """Of eigenvalues, whose vectors are computed for it."""
    whole = emit.eigh_upper if node.op.name == "eigvalsh_upper" else emit.eigh
    return _of_pairs(emit, whole(*node.operands)[:2], (cts[0], None))


def _of_pairs(emit: Any, pairs: Rule, cts: Rule) -> Rule:
    values, vectors = pairs
    of_values, of_vectors = cts
    dtype, shape = vectors.type.dtype, vectors.type.shape
    back = turned(emit, vectors)
    diagonal = mask(emit, vectors, "equal")
    inner = zeros_like(emit, vectors)
    if of_vectors is not None:
        inner = over_distances(emit, product(emit, back, of_vectors), values, diagonal)
    if of_values is not None:
        inner = emit.select(diagonal, across(emit, of_values, inner), inner)
    made = product(emit, product(emit, vectors, inner), back)
    half = filled(emit, 0.5, dtype, shape)
    return [None, emit.mul(emit.add(made, turned(emit, made)), half)]


def over_distances(emit: Any, matrix: Any, numbers: Any, diagonal: Any) -> Any:
    """Each element over what its column's number is more than its row's; 0 in the diagonal."""
    apart = emit.sub(across(emit, numbers, matrix), down(emit, numbers, matrix))
    safe = emit.select(diagonal, filled(emit, 1.0, apart.type.dtype, apart.type.shape), apart)
    return emit.select(diagonal, zeros_like(emit, matrix), emit.div(matrix, safe))


def across(emit: Any, numbers: Any, like: Any) -> Any:
    """A number for each column, as the elements of a matrix are."""
    return _placed(emit, numbers, like, (1, numbers.type.shape[-1]))


def down(emit: Any, numbers: Any, like: Any) -> Any:
    """A number for each row."""
    return _placed(emit, numbers, like, (numbers.type.shape[-1], 1))


def _placed(emit: Any, numbers: Any, like: Any, shape: Any) -> Any:
    wide = emit.cast(numbers, dtype=like.type.dtype)
    kept = emit.reshape(wide, shape=(*numbers.type.shape[:-1], *shape))
    return emit.broadcast_to(kept, shape=like.type.shape)


def svdvals(emit: Any, node: Any, cts: Rule) -> Rule:
    """Of singular values, whose vectors are computed for it."""
    return _of_triple(emit, thin(emit, node), (None, cts[0], None))


def svd(emit: Any, node: Any, cts: Rule) -> Rule:
    """Of a decomposition; of equal singular values the vectors have no gradient, and what flows
    through them is infinite or NaN."""
    return _of_triple(emit, node.results[:3], cts[:3])


def svd_full(emit: Any, node: Any, cts: Rule) -> Rule:
    """The vectors behind those of singular values are not determined, so they have none."""
    of_u, of_values, of_vh = cts[:3]
    m, n = node.operands[1].type.shape[-2:]
    if of_u is None and of_vh is None:
        return _of_triple(emit, thin(emit, node), (None, of_values, None))
    if m != n:
        raise error(
            "TM120",
            "the square factors of a matrix that is not square have no gradient",
            place=node.location,
            hint="np.linalg.svd(a, full_matrices=False) has one",
        )
    return _of_triple(emit, thin(emit, node), (of_u, of_values, of_vh))


def thin(emit: Any, node: Any) -> Rule:
    """As many vectors as there are values."""
    made: Rule = emit.svd(*node.operands, p=node.attrs["p"])[:3]
    return made


def _of_triple(emit: Any, triple: Rule, cts: Rule) -> Rule:
    u, values, vh = triple
    of_u, of_values, of_vh = cts
    uh, v = turned(emit, u), turned(emit, vh)
    inner = zeros_like(emit, product(emit, uh, u))
    diagonal = mask(emit, inner, "equal")
    of_left = None if of_u is None else _skew(emit, product(emit, uh, of_u))
    of_right = None if of_vh is None else _skew(emit, product(emit, vh, turned(emit, of_vh)))
    if of_left is not None:
        inner = emit.mul(of_left, across(emit, values, inner))
    if of_right is not None:
        inner = emit.add(inner, emit.mul(of_right, down(emit, values, inner)))
    if of_left is not None or of_right is not None:
        inner = over_distances(emit, inner, emit.mul(values, values), diagonal)
    if of_values is not None:
        inner = emit.select(diagonal, across(emit, of_values, inner), inner)
    if of_left is not None and of_right is not None and u.type.dtype.is_complex:
        twice = across(emit, emit.add(values, values), inner)
        turn = emit.select(diagonal, emit.div(of_left, twice), zeros_like(emit, inner))
        inner = emit.add(inner, turn)
    made = product(emit, product(emit, u, inner), vh)
    if of_u is not None and u.type.shape[-2] != u.type.shape[-1]:
        outside = emit.div(of_u, across(emit, values, of_u))
        within = product(emit, u, product(emit, uh, outside))
        made = emit.add(made, product(emit, emit.sub(outside, within), vh))
    if of_vh is not None and vh.type.shape[-2] != vh.type.shape[-1]:
        outside = emit.div(of_vh, down(emit, values, of_vh))
        within = product(emit, product(emit, outside, v), vh)
        made = emit.add(made, product(emit, u, emit.sub(outside, within)))
    return [None, made]


def _skew(emit: Any, matrix: Any) -> Any:
    return emit.sub(matrix, turned(emit, matrix))


def fft(emit: Any, node: Any, cts: Rule) -> Rule:
    """Of a transform."""
    table, x, factor = node.operands
    made = emit.ifft(table, cts[0], factor, m=cts[0].type.shape[-1])
    return [None, _fitted(emit, made, x.type.shape[-1]), None]


def ifft(emit: Any, node: Any, cts: Rule) -> Rule:
    """Of the transform with the other sign."""
    table, x, factor = node.operands
    made = emit.fft(table, cts[0], factor, m=cts[0].type.shape[-1])
    return [None, _fitted(emit, made, x.type.shape[-1]), None]


def rfft(emit: Any, node: Any, cts: Rule) -> Rule:
    """Of half a transform: the other half has no cotangent."""
    table, x, factor = node.operands
    points = (cts[0].type.shape[-1] - 1) * 2 + (1 if node.op.name == "rfft_odd" else 0)
    made = emit.real(emit.ifft(table, cts[0], factor, m=points))
    return [None, _fitted(emit, made, x.type.shape[-1]), None]


def irfft(emit: Any, node: Any, cts: Rule) -> Rule:
    """Of real rows: all but the first point, and the last of an even number, count twice."""
    table, x, factor = node.operands
    points = cts[0].type.shape[-1]
    half = points // 2 + 1
    whole = emit.fft(table, emit.cast(cts[0], dtype=C128), factor, m=points)
    shape = (*whole.type.shape[:-1], half)
    rank = len(shape)
    made = emit.slice(whole, start=(0,) * rank, size=shape, step=(1,) * rank)
    numbers = emit.iota(size=half)
    zero, one, two = (filled(emit, n, numbers.type.dtype, (half,)) for n in (0, 1, 2))
    twice = emit.mul(numbers, two)
    count = emit.broadcast_to(_size(emit, points), shape=(half,))
    single = emit.logical_or(emit.equal(numbers, zero), emit.equal(twice, count))
    weights = emit.cast(emit.select(single, one, two), dtype=C128)
    made = emit.mul(made, emit.broadcast_to(weights, shape=shape))
    return [None, _fitted(emit, made, x.type.shape[-1]), None]


def _size(emit: Any, size: Any) -> Any:
    """A size as a value: the last element of an iota."""
    numbers = emit.iota(size=size + 1)
    return emit.reshape(emit.slice(numbers, start=(size,), size=(1,), step=(1,)), shape=())


def _fitted(emit: Any, made: Any, size: Any) -> Any:
    """Rows cut or filled up with zeros to a size."""
    shape = made.type.shape
    if shape[-1] == size:
        return made
    rank = len(shape)
    low, high = (0,) * rank, (*(0,) * (rank - 1), size)
    filled_up = emit.pad(made, emit.constant(0, made.type.dtype), low=low, high=high)
    return emit.slice(filled_up, start=low, size=(*shape[:-1], size), step=(1,) * rank)
