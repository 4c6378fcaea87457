"""Random draws as arithmetic: from a key and a counter to bits, from bits to numbers, the same to the bit everywhere.

The generator is Philox4x32-10 (Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11): for
each key of 64 bits a permutation of the counters of 128 bits. A counter is an `index`, the element of an array, and a
`stream`, the purpose of the block; each of them, the key, and the two halves of the resulting block have 64 bits.
Element i of an array is drawn from the block of counter i alone, so that draws are independent and loops over elements
vectorise.

The functions are written once, over any arithmetic: NumPy's on arrays defines their meaning, LLVM's instructions are
their native code. Every operation is exact or rounded once, without contraction, and no library function is among them,
so the two agree to the bit. Integers are u64 and wrap; words of 32 bits are held in u64 too.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

Value: TypeAlias = Any
"""Numbers with Python's operators: u64 or f64, arrays of them or an instruction's result."""


class Arithmetic(Protocol):
    """The operations that have no operator."""

    def where(self, condition: Value, a: Value, b: Value) -> Value:
        """The number a where the condition is true, else b."""
        ...

    def sqrt(self, x: Value) -> Value:
        """The square root."""
        ...

    def real(self, n: Value) -> Value:
        """An integer below 2**53 as f64."""
        ...

    def bits(self, x: Value) -> Value:
        """The representation of an f64."""
        ...

    def number(self, bits: Value) -> Value:
        """The f64 with this representation."""
        ...


# ---- Philox ------------------------------------------------------------------------------------------------------

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10
WORD = 0xFFFFFFFF

DRAW, SPLIT, FOLD_IN = (purpose << 32 for purpose in range(3))
"""The streams: of draws, the first of 2**32; of keys derived by splitting, and by folding in a number.

They differ in the last word of the counter, so that no draw shares a block with a derived key.
"""


def block(index: Value, stream: int | Value, key: Value) -> tuple[Value, Value]:
    """The two halves of the block of a counter: words 0 and 1, words 2 and 3, the lower word first."""
    words = index & WORD, index >> 32, stream & WORD, stream >> 32
    keys = key & WORD, key >> 32
    for _ in range(ROUNDS):
        words = _round(words, keys)
        keys = (keys[0] + WEYL[0]) & WORD, (keys[1] + WEYL[1]) & WORD
    return words[0] | words[1] << 32, words[2] | words[3] << 32


def _round(words: tuple[Value, ...], keys: tuple[Value, Value]) -> tuple[Value, ...]:
    first, second = words[0] * MULTIPLIERS[0], words[2] * MULTIPLIERS[1]
    return (second >> 32) ^ words[1] ^ keys[0], second & WORD, (first >> 32) ^ words[3] ^ keys[1], first & WORD


# ---- elementary functions ----------------------------------------------------------------------------------------

LOG_SERIES = (
    *(0.6666666666666735, 0.3999999999940942, 0.2857142874366239, 0.22222198432149784, 0.1818357216161805),
    *(0.15313837699209373, 0.14798198605116586),
)
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
TO_SQRT_HALF = 0x0009_5F61_9980_C433
"""The difference of the representations of 1 and the root of 1/2."""

EXP_SERIES = (
    *(0.16666666666666602, -0.0027777777777015593, 6.613756321437934e-05, -1.6533902205465252e-06),
    4.1381367970572385e-08,
)
ROUNDING = 1.5 * 2.0**52
"""Added to a number below 2**51 it leaves the nearest integer in the last bits."""

LEAST_EXPONENT = -708.0

SINE_SERIES = (
    *(3.141592653589793, -5.167712780049969, 2.5501640398773007, -0.5992645293189447),
    *(0.0821458865731029, -0.007370430505916944, 0.0004662998161898394, -2.1903497074626018e-05, 7.697826768224191e-07),
)
"""The minimax polynomial of sin(πt)/t in t² for |t| <= 1/2, of relative error 7e-19."""


def polynomial(coefficients: tuple[float, ...], x: Value) -> Value:
    """The polynomial with these coefficients, the constant first, by Horner's rule."""
    *rest, last = coefficients
    return reduce(lambda value, coefficient: value * x + coefficient, rest[-2::-1], x * last + rest[-1])


def log(a: Arithmetic, x: Value) -> Value:
    """The logarithm of a positive normal number, to one unit in the last place (the algorithm of fdlibm).

    With x = 2**k (1 + f), 1 + f between the roots of 1/2 and 2, and s = f / (2 + f) it is k log 2 + 2 artanh s.
    """
    bits = a.bits(x)
    exponent = (bits + TO_SQRT_HALF) >> 52
    f = a.number((bits + (1023 << 52)) - (exponent << 52)) - 1.0
    k = a.real(exponent) - 1023.0
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    rest = s * (half_square + z * polynomial(LOG_SERIES, z)) + k * LN2_LOW
    return k * LN2_HIGH - ((half_square - rest) - f)


def exp(a: Arithmetic, x: Value) -> Value:
    """The exponential of a number below 0, to one unit in the last place (the algorithm of fdlibm).

    Results below the normal numbers are 0.
    """
    within = a.where(x > LEAST_EXPONENT, x, LEAST_EXPONENT)
    shifted = within * (1.0 / math.log(2.0)) + ROUNDING
    k = shifted - ROUNDING
    high, low = within - k * LN2_HIGH, k * LN2_LOW
    r = high - low
    z = r * r
    c = r - z * polynomial(EXP_SERIES, z)
    y = ((r * c) / (c * -1.0 + 2.0) - low) + high + 1.0
    scaled = a.number(a.bits(y) + (a.bits(shifted) << 52))
    return a.where(x > LEAST_EXPONENT, scaled, 0.0)


def sin_pi(t: Value) -> Value:
    """The sine of πt for |t| <= 1/2."""
    return t * polynomial(SINE_SERIES, t * t)


# ---- distributions -----------------------------------------------------------------------------------------------


def open_unit(a: Arithmetic, half: Value) -> Value:
    """An odd multiple of 2**-53 in (0, 1), all equally likely."""
    return a.real((half >> 11) | 1) * 2.0**-53


def exponential_of(a: Arithmetic, half: Value) -> Value:
    """The exponential variable -log u."""
    return log(a, open_unit(a, half)) * -1.0


def normal_of(a: Arithmetic, low: Value, high: Value) -> Value:
    """The normal variable √(-2 log u) sin θ, θ uniform in ±π/2 (Box & Muller, Ann. Math. Statist. 29 (1958), 610)."""
    return a.sqrt(exponential_of(a, low) * 2.0) * sin_pi(open_unit(a, high) - 0.5)


def exponential(a: Arithmetic, index: Value, key: Value) -> Value:
    return exponential_of(a, block(index, DRAW, key)[0])


def normal(a: Arithmetic, index: Value, key: Value) -> Value:
    return normal_of(a, *block(index, DRAW, key))


def gumbel(a: Arithmetic, index: Value, key: Value) -> Value:
    """The Gumbel variable -log(-log u)."""
    return log(a, exponential(a, index, key)) * -1.0


def laplace(a: Arithmetic, index: Value, key: Value) -> Value:
    """An exponential draw with either sign."""
    low, high = block(index, DRAW, key)
    magnitude = exponential_of(a, low)
    return a.where(high < 1 << 63, magnitude, magnitude * -1.0)


def cauchy(a: Arithmetic, index: Value, key: Value) -> Value:
    """The Cauchy variable tan(πt) = sin(πt) / sin(π/2 - π|t|), t uniform in (-1/2, 1/2)."""
    t = open_unit(a, block(index, DRAW, key)[1]) - 0.5
    return sin_pi(t) / sin_pi(a.where(t < 0.0, t, t * -1.0) + 0.5)


# ---- the gamma distribution --------------------------------------------------------------------------------------
# G. Marsaglia & W. W. Tsang, "A simple method for generating gamma variables", ACM Trans. Math. Softw. 26 (2000), 363.
# Stream 0 is for the boost, streams 2j + 1 and 2j + 2 are for attempt j.

ATTEMPTS = 64
"""An attempt fails with a probability below 0.05, so all of them with one below 1e-83."""


class Candidate(NamedTuple):
    """A candidate d v, v = (1 + x / √(9 d))³, from a normal draw x, and the uniform draw u that decides on it."""

    d: Value
    x: Value
    v: Value
    u: Value
    is_positive: Value


def gamma_candidate(a: Arithmetic, index: Value, key: Value, shape: Value, stream: Value) -> Candidate:
    """A candidate for a gamma variable of at least 1 in shape; for one that is not positive, v is 1."""
    x = normal_of(a, *block(index, stream, key))
    u = open_unit(a, block(index, stream + 1, key)[0])
    d = shape - 1.0 / 3.0
    root = x / a.sqrt(d * 9.0) + 1.0
    cube = root * root * root
    is_positive = cube > 0.0
    return Candidate(d, x, a.where(is_positive, cube, 1.0), u, is_positive)


def gamma_surely(candidate: Candidate) -> Value:
    """True if a candidate is accepted by the bound without logarithms, as most are."""
    square = candidate.x * candidate.x
    return candidate.is_positive & (candidate.u < square * square * -0.0331 + 1.0)


def gamma_accepted(a: Arithmetic, candidate: Candidate) -> Value:
    """True if a candidate is accepted."""
    d, x, v, u, is_positive = candidate
    return is_positive & (log(a, u) < x * x * 0.5 + (d - d * v + d * log(a, v)))


def gamma_shape(a: Arithmetic, shape: Value) -> Value:
    """The shape that candidates are drawn with."""
    return a.where(shape < 1.0, shape + 1.0, shape)


def gamma_boost(a: Arithmetic, index: Value, key: Value, shape: Value) -> Value:
    """The factor from a candidate to the requested shape: u**(1/shape) for a shape below 1; nan for an invalid one."""
    power = exp(a, log(a, open_unit(a, block(index, DRAW, key)[0])) / a.where(shape < 1.0, shape, 1.0))
    return a.where(shape > 0.0, a.where(shape < 1.0, power, 1.0), math.nan)


# ---- in NumPy ----------------------------------------------------------------------------------------------------

CHUNK = 1 << 13
"""The number of elements drawn at once, whose temporaries fit into the cache."""


class OfNumpy:
    """NumPy's arithmetic."""

    def where(self, condition: Value, a: Value, b: Value) -> Value:
        return np.where(condition, a, b)

    def sqrt(self, x: Value) -> Value:
        return np.sqrt(x)

    def real(self, n: Value) -> Value:
        return np.asarray(n).astype(np.float64)

    def bits(self, x: Value) -> Value:
        return np.asarray(x).view(np.uint64)

    def number(self, bits: Value) -> Value:
        return np.asarray(bits).view(np.float64)


NUMPY: Arithmetic = OfNumpy()


def gamma_array(a: Arithmetic, index: Value, key: Value, shape: Value) -> Value:
    """Gamma draws of one-dimensional arrays; each attempt is for the elements not accepted yet."""
    candidates = np.full(index.shape, math.nan)
    pending = np.arange(index.size)
    wanted = gamma_shape(a, shape)
    for attempt in range(ATTEMPTS):
        candidate = gamma_candidate(a, index[pending], key[pending], wanted[pending], 2 * attempt + 1)
        accepted = gamma_surely(candidate) | gamma_accepted(a, candidate)
        candidates[pending[accepted]] = (candidate.d * candidate.v)[accepted]
        pending = pending[~accepted]
        if not pending.size:
            break
    return candidates * gamma_boost(a, index, key, shape)
