"""Bitwise logic, shifts, counts; and the counter-based random bits.

A shift by a negative or too large count gives 0, or -1 for a negative signed left operand shifted
right. `philox` is the generator of Salmon et al. (2011): Philox4x32 with ten rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..types import U8, U64
from .definition import Facts, OpDef
from .record import record
from .scalar import Scalar, absolute, constant, convert, popcount
from .signature import loops

_LOGIC = Facts(commutative=True, associative=True, idempotent=True, differentiable=False)
_OR = Facts(commutative=True, associative=True, idempotent=True, differentiable=False,
            identity=0, identity_kinds="biu")  # fmt: skip
_XOR = Facts(commutative=True, associative=True, differentiable=False,
             identity=0, identity_kinds="biu")  # fmt: skip
_SHIFT = Facts(differentiable=False, identity=0, identity_kinds="iu")

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_LOW = 0xFFFFFFFF


def _bit_count(x: Scalar) -> Scalar:
    return convert(popcount(absolute(x) if x.dtype.kind == "i" else x), U8)


def _philox(counter: Scalar, key: Scalar) -> Scalar:
    """Ten rounds on the words (counter low, counter high, 0, 0); the first two come out."""
    zero = constant(0, U64)
    x0, x1, x2, x3 = counter & _LOW, counter >> 32, zero, zero
    k0, k1 = key & _LOW, key >> 32
    for turn in range(10):
        if turn:
            k0, k1 = (k0 + _KEY_STEPS[0]) & _LOW, (k1 + _KEY_STEPS[1]) & _LOW
        first, second = x0 * _MULTIPLIERS[0], x2 * _MULTIPLIERS[1]
        x0, x1, x2, x3 = (
            (second >> 32) ^ x1 ^ k0, second & _LOW, (first >> 32) ^ x3 ^ k1, first & _LOW,
        )  # fmt: skip
    return x0 | (x1 << 32)


def philox_bits(counter: Any, key: Any) -> Any:
    """The same stream in NumPy, in 32-bit words."""
    counter, key = np.broadcast_arrays(np.asarray(counter, np.uint64), np.asarray(key, np.uint64))
    words = [counter.astype(np.uint32), (counter >> np.uint64(32)).astype(np.uint32)]
    words += [np.zeros_like(words[0])] * 2
    keys = [key.astype(np.uint32), (key >> np.uint64(32)).astype(np.uint32)]
    for _ in range(10):
        a = words[0].astype(np.uint64) * np.uint64(_MULTIPLIERS[0])
        b = words[2].astype(np.uint64) * np.uint64(_MULTIPLIERS[1])
        highs = [(p >> np.uint64(32)).astype(np.uint32) for p in (a, b)]
        words = [highs[1] ^ words[1] ^ keys[0], b.astype(np.uint32),
                 highs[0] ^ words[3] ^ keys[1], a.astype(np.uint32)]  # fmt: skip
        keys = [k + np.uint32(step) for k, step in zip(keys, _KEY_STEPS)]
    return words[0].astype(np.uint64) | (words[1].astype(np.uint64) << np.uint64(32))


OPS: tuple[OpDef, ...] = (
    record("bitwise_and", np.bitwise_and, lambda a, b: a & b, "Bitwise and.", facts=_LOGIC),
    record("bitwise_or", np.bitwise_or, lambda a, b: a | b, "Bitwise or.", facts=_OR),
    record("bitwise_xor", np.bitwise_xor, lambda a, b: a ^ b, "Bitwise exclusive or.", facts=_XOR),
    record("invert", np.invert, lambda x: ~x, "Bitwise complement; `not` of bools.",
           facts=Facts(involution=True, differentiable=False)),
    record("left_shift", np.left_shift, lambda a, b: a << b,
           "Shift left; 0 where the count is negative or too large.", facts=_SHIFT),
    record("right_shift", np.right_shift, lambda a, b: a >> b,
           "Shift right, arithmetic for signed types; too large a count gives 0 or -1.",
           facts=_SHIFT),
    record("bitwise_count", np.bitwise_count, _bit_count,
           "The number of one bits in the operand's magnitude."),
    record("philox", philox_bits, _philox,
           "64 random bits of the stream `key` at place `counter`: Philox4x32-10, so any place "
           "can be computed anywhere.", taken=loops((U64, U64))),
)  # fmt: skip
