"""Mathematics in the scalar language: range reductions, polynomials, functions of a real.

A function here takes and returns `Scalar`s of f32 or f64 (halves are widened before) and is
right to 2 ulp for every input. Coefficients come from tests/ops/derive_coefficients.py.
Not here: records, NumPy.
"""
