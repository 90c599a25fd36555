"""How an elementwise record is made: NumPy's loops, halves in f32, quiet NumPy reference.

f16 and bf16 are computed in f32 and rounded once per op, in the body and, for bf16, in the
reference: `halves_in_f32` is the one place that says so. Ops that look at the bits of a number
say `exact_halves` and get the half itself.

Also here: the few words gradient rules are written with. The cotangent of a complex value z =
x + iy of a real loss L is dL/dx + i dL/dy (it points uphill), so a holomorphic f passes back
ct * conj(f').

Invariants: a record's `reference` and `scalar` both take operands by position and attributes by
keyword. A gradient rule is written as if all shapes were equal; the transform undoes
broadcasting.
Not here: the records, the scalar language.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..types import BF16, C64, C128, F16, F32, DType
from .batching import elementwise as batch_elementwise
from .definition import Canonical, Facts, Gradient, OpDef, Signature, Tangent
from .scalar import Scalar, convert
from .signature import Loop, elementwise, loops_of

Body = Callable[..., Any]


def record(
    name: str,
    function: Callable[..., Any],
    scalar: Body,
    doc: str,
    *,
    taken: Sequence[Loop] | None = None,
    signature: Signature | None = None,
    gradient: Gradient | None = None,
    tangent: Tangent | None = None,
    canonical: Canonical | None = None,
    facts: Facts | None = None,
    ufunc: np.ufunc | None = None,
    exact_halves: bool = False,
) -> OpDef:
    """An elementwise record. `function` is its NumPy meaning, usually the ufunc itself.

    taken: the dtypes where they are not the ufunc's own. signature: where the op has attributes.
    ufunc: the one users call, where `function` is something around it. tangent: where it is not
    `pointwise(gradient)`.
    """
    if isinstance(function, np.ufunc):
        ufunc = function
    if signature is None:
        if taken is None:
            assert ufunc is not None, f"{name}: say which dtypes it takes"
            taken = loops_of(ufunc)
        signature = elementwise(taken)
    return OpDef(
        name=name,
        signature=signature,
        reference=quiet(function, exact_halves),
        doc=doc,
        scalar=scalar if exact_halves else halves_in_f32(scalar),
        gradient=gradient,
        tangent=tangent or (pointwise(gradient) if gradient else None),
        batching=batch_elementwise,
        canonical=canonical,
        facts=facts or (Facts() if gradient else Facts(differentiable=False)),
        ufunc=ufunc.__name__ if ufunc else None,
    )


def halves_in_f32(body: Body) -> Body:
    """The body with f16 and bf16 operands widened to f32 and f32 results rounded back."""

    def lifted(*operands: Scalar, **attrs: Any) -> Any:
        half = next((x.dtype for x in operands if x.dtype in (F16, BF16)), None)
        if half is None:
            return body(*operands, **attrs)
        made = body(*(convert(x, F32) if x.dtype is half else x for x in operands), **attrs)
        if isinstance(made, tuple):
            return tuple(_narrowed(x, half) for x in made)
        return _narrowed(made, half)

    return lifted


def real_or_complex(real_body: Body, complex_body: Body) -> Body:
    """The one body for real operands, the other for complex ones."""
    return lambda x: complex_body(x) if x.dtype.is_complex else real_body(x)


def quiet(function: Callable[..., Any], exact_halves: bool) -> Callable[..., Any]:
    """The NumPy function without warnings; bf16 by way of f32, unless it takes them exactly."""

    def reference(*operands: Any, **attrs: Any) -> Any:
        arrays = [np.asarray(x) for x in operands]
        halves = [x.dtype == BF16.numpy and not exact_halves for x in arrays]
        with np.errstate(all="ignore"):
            if not any(halves):
                return function(*arrays, **attrs)
            wide = [x.astype(np.float32) if half else x for x, half in zip(arrays, halves)]
            made = function(*wide, **attrs)
            if isinstance(made, tuple):
                return tuple(_narrowed_array(x) for x in made)
            return _narrowed_array(made)

    return reference


# -- words of gradient rules


def literal(emit: Any, like: Any, number: complex | float) -> Any:
    """A rank 0 constant of the dtype of the value `like`."""
    return emit.constant(value=np.asarray(number, dtype_of_value(like).numpy)[()])


def dtype_of_value(value: Any) -> DType:
    """The element type of a graph value."""
    dtype: DType = value.type.dtype
    return dtype


def conjugate(emit: Any, value: Any) -> Any:
    """The conjugate of a complex value; a real one is its own."""
    return emit.conj(value) if dtype_of_value(value) in (C64, C128) else value


def where_zero(emit: Any, condition: Any, value: Any) -> Any:
    """`value` where `condition` holds, zero elsewhere (also where `value` is not finite)."""
    return emit.select(condition, value, literal(emit, value, 0))


def through(derivative: Callable[[Any, Any, Any], Any]) -> Gradient:
    """The rule of a unary op with f' = ``derivative(emit, x, y)``, y being the result.

    Nothing is done about a zero cotangent where the slope is infinite: the transform knows which
    zeros come from a branch not taken and keeps those.
    """

    def rule(emit: Any, node: Any, cts: Sequence[Any]) -> Sequence[Any]:
        slope = derivative(emit, node.operands[0], node.results[0])
        return [emit.mul(cts[0], conjugate(emit, slope))]

    return rule


def pointwise(gradient: Gradient) -> Tangent:
    """The forward rule of an elementwise op, from its reverse one.

    Element by element the derivative is one number, so multiplying by it is its own transpose: the
    reverse rule applied to a tangent. Of a holomorphic function the reverse rule multiplies by the
    conjugate of that number, hence the conjugates. Not for ops that are smooth in the parts of a
    complex number alone, or change the dtype.
    """

    def rule(emit: Any, node: Any, tangents: Sequence[Any]) -> Sequence[Any]:
        made: list[Any] = [None] * len(node.results)
        for at in range(len(node.results)):
            for place, tangent in enumerate(tangents):
                if tangent is None or dtype_of_value(node.results[at]).kind not in "fc":
                    continue
                weights = [None] * len(node.results)
                weights[at] = conjugate(emit, tangent)
                part = gradient(emit, node, weights)[place]
                if part is not None:
                    part = conjugate(emit, part)
                    made[at] = part if made[at] is None else emit.add(made[at], part)
        return made

    return rule


def _narrowed(x: Scalar, half: DType) -> Scalar:
    return convert(x, half) if x.dtype is F32 else x


def _narrowed_array(x: Any) -> Any:
    array = np.asarray(x)
    return array.astype(BF16.numpy) if array.dtype == np.float32 else array
