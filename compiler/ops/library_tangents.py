"""Forward rules of library ops.

With T for the tangent of a matrix, S for (T + T^H) / 2 and X = inv(A):

    inv       -X T X
    solve     solve(A, Tb - T x)
    det       det A * trace(X T)
    slogdet   of the logarithm: Re trace(X T); of the sign of a complex one: i Im trace(X T) sign
    cholesky  L phi(L^-1 S L^-H); phi: lower, half the diagonal
    eigh      P = V^H S V; of the values its diagonal, of the vectors V (F * P);
              F[i, j] = 1 / (w[j] - w[i]), 0 for i = j
    svd       P = U^H T V; of the values Re of its diagonal; F[i, j] = 1 / (s[j]^2 - s[i]^2);
              U (F * (P S + S P^H)) + (1 - U U^H) T V S^-1, V (F * (S P + P^H S)) + (1 - V V^H)
              T^H U S^-1; complex: + U diag(i Im P) S^-1
    fft       the transform of the tangent

Sources: as library_gradients.py, whose transposes these are.
Invariants: the first tangent, of the table, is None; so is that of a transform's factor.
Not here: the ops (library.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .library_gradients import (
    across,
    conjugate,
    down,
    half_diagonal,
    mask,
    over_distances,
    product,
    thin,
    turned,
    turned_inverse,
)
from .shaping import filled, zeros_like

Rule = Sequence[Any]


def inv(emit: Any, node: Any, tangents: Rule) -> Rule:
    """Of the inverse."""
    inverse = node.results[0]
    return [emit.neg(product(emit, product(emit, inverse, tangents[1]), inverse))]


def solve(emit: Any, node: Any, tangents: Rule) -> Rule:
    """Of a solution."""
    table, a, _ = node.operands
    _, of_a, of_b = tangents
    right = of_b
    if of_a is not None:
        moved = product(emit, of_a, node.results[0])
        right = emit.neg(moved) if of_b is None else emit.sub(of_b, moved)
    return [emit.solve(table, a, right)[0]]


def _trace(emit: Any, node: Any, tangent: Any) -> Any:
    """Of the inverse times the tangent."""
    rank = len(tangent.type.shape)
    terms = emit.mul(conjugate(emit, turned_inverse(emit, node)), tangent)
    return emit.sum(terms, axes=(rank - 2, rank - 1))


def det(emit: Any, node: Any, tangents: Rule) -> Rule:
    """Of a determinant; NaN where there is no inverse."""
    return [emit.mul(node.results[0], _trace(emit, node, tangents[1]))]


def slogdet(emit: Any, node: Any, tangents: Rule) -> Rule:
    """Of sign and logarithm."""
    trace, sign = _trace(emit, node, tangents[1]), node.results[0]
    if not trace.type.dtype.is_complex:
        return [None, trace]
    turn = emit.complex(zeros_like(emit, node.results[1]), emit.imag(trace))
    return [emit.mul(sign, turn), emit.real(trace)]


def cholesky(emit: Any, node: Any, tangents: Rule) -> Rule:
    """Of a lower factor."""
    return [_of_factor(emit, node.operands[0], node.results[0], tangents[1])]


def cholesky_upper(emit: Any, node: Any, tangents: Rule) -> Rule:
    """Of an upper factor, which is the lower one turned."""
    lower = turned(emit, node.results[0])
    return [turned(emit, _of_factor(emit, node.operands[0], lower, tangents[1]))]


def _of_factor(emit: Any, table: Any, lower: Any, tangent: Any) -> Any:
    left = emit.solve(table, lower, _symmetric(emit, tangent))[0]
    inner = emit.solve(table, lower, turned(emit, left))[0]
    return product(emit, lower, half_diagonal(emit, inner))


def _symmetric(emit: Any, tangent: Any) -> Any:
    half = filled(emit, 0.5, tangent.type.dtype, tangent.type.shape)
    return emit.mul(emit.add(tangent, turned(emit, tangent)), half)


def eigh(emit: Any, node: Any, tangents: Rule) -> Rule:
    """Of eigenvalues and vectors; of equal eigenvalues the vectors have none, and what flows
    through them is infinite or NaN."""
    values, vectors = node.results[:2]
    inner = _turned_into(emit, vectors, _symmetric(emit, tangents[1]), vectors)
    diagonal = mask(emit, inner, "equal")
    moved = over_distances(emit, inner, values, diagonal)
    return [_diagonal(emit, inner), product(emit, vectors, moved)]


def eigvalsh(emit: Any, node: Any, tangents: Rule) -> Rule:
    """Of eigenvalues, whose vectors are computed for it."""
    whole = emit.eigh_upper if node.op.name == "eigvalsh_upper" else emit.eigh
    vectors = whole(*node.operands)[1]
    return [_diagonal(emit, _turned_into(emit, vectors, _symmetric(emit, tangents[1]), vectors))]


def _turned_into(emit: Any, left: Any, matrix: Any, right: Any) -> Any:
    return product(emit, product(emit, turned(emit, left), matrix), right)


def _diagonal(emit: Any, matrix: Any) -> Any:
    """The real parts of the diagonal."""
    kept = emit.select(mask(emit, matrix, "equal"), matrix, zeros_like(emit, matrix))
    made = emit.sum(kept, axes=(len(matrix.type.shape) - 1,))
    return emit.real(made) if made.type.dtype.is_complex else made


def svdvals(emit: Any, node: Any, tangents: Rule) -> Rule:
    """Of singular values, whose vectors are computed for it."""
    u, _, vh = thin(emit, node)
    return [_diagonal(emit, _turned_into(emit, u, tangents[1], turned(emit, vh)))]


def svd_full(emit: Any, node: Any, tangents: Rule) -> Rule:
    """The vectors behind those of singular values are not determined: NaN for all of them where
    there are such."""
    m, n = node.operands[1].type.shape[-2:]
    if m == n:
        return svd(emit, node, tangents)
    nothing = [filled(emit, float("nan"), r.type.dtype, r.type.shape) for r in node.results[:3]]
    return [nothing[0], svdvals(emit, node, tangents)[0], nothing[2]]


def svd(emit: Any, node: Any, tangents: Rule) -> Rule:
    """Of a decomposition; of equal singular values the vectors have none, and what flows through
    them is infinite or NaN."""
    u, values, vh = node.results[:3]
    tangent, v = tangents[1], turned(emit, vh)
    inner = _turned_into(emit, u, tangent, v)
    back = turned(emit, inner)
    diagonal = mask(emit, inner, "equal")
    squares = emit.mul(values, values)
    columns, rows = across(emit, values, inner), down(emit, values, inner)
    left = emit.add(emit.mul(inner, columns), emit.mul(rows, back))
    right = emit.add(emit.mul(rows, inner), emit.mul(back, columns))
    turn_u = over_distances(emit, left, squares, diagonal)
    turn_v = over_distances(emit, right, squares, diagonal)
    if inner.type.dtype.is_complex:
        phase = emit.complex(zeros_like(emit, emit.real(inner)), emit.imag(inner))
        own = emit.div(phase, columns)
        turn_u = emit.add(turn_u, emit.select(diagonal, own, zeros_like(emit, own)))
    of_u = _moved(emit, u, turn_u, product(emit, tangent, v), values)
    of_v = _moved(emit, v, turn_v, product(emit, turned(emit, tangent), u), values)
    return [of_u, _diagonal(emit, inner), turned(emit, of_v)]


def _moved(emit: Any, vectors: Any, turn: Any, image: Any, values: Any) -> Any:
    """The vectors turned among each other, and out of the space they span where it is not all."""
    made = product(emit, vectors, turn)
    shape = vectors.type.shape
    if shape[-2] == shape[-1]:
        return made
    within = product(emit, vectors, product(emit, turned(emit, vectors), image))
    outside = emit.div(emit.sub(image, within), across(emit, values, image))
    return emit.add(made, outside)
