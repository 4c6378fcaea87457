"""Sine, cosine and tangent.

Near 0 the angle is reduced by multiples of π/2 in parts (Cody & Waite, Software Manual for the Elementary Functions,
1980): each product by a fused operation, so that parts may have all bits. An angle from 2**16 on is multiplied by the
bits of 2/π that matter, in integers (Payne & Hanek, ACM SIGNUM Newsletter 18 (1983), 19). The polynomials for at most
π/4 are evaluated as in fdlibm. There is no table, and no f64.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import llvmlite.ir as ir

from fnad.backends.llvm.emitter import Builder
from fnad.backends.llvm.formulas import twofold
from fnad.backends.llvm.formulas.coefficients import table
from fnad.backends.llvm.formulas.twofold import Twofold, choose, polynomial
from fnad.backends.llvm.lane import FLOAT, Lane, where
from fnad.backends.llvm.scalar import call

WORD, LONG = ir.IntType(32), ir.IntType(64)

ROUNDING = 1.5 * 2.0**23
"""Added to an f32 below 2**22 it leaves the nearest integer in the last bits."""

HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
"""π/2 in f32 parts."""

LARGE = 2.0**16
"""The angles from which bits of 2/π are multiplied: below, π/2 in three parts leaves 30 bits of any remainder."""

TWO_OVER_PI = (0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB)
"""The first bits of 2/π in words, after a word of zeros."""


class Angle(NamedTuple):
    """A multiple of π/2, of which the last two bits matter, and the rest within [-π/4, π/4]."""

    quadrant: Lane
    rest: Twofold


def sin(x: Lane) -> Lane:
    """The sine of an f32."""
    angle = reduced(x)
    return where(abs(x) < 2.0**-12, x, sine_of(angle.quadrant, angle.rest))


def cos(x: Lane) -> Lane:
    """The cosine of an f32."""
    angle = reduced(x)
    return sine_of(angle.quadrant + 1, angle.rest)


def tan(x: Lane) -> Lane:
    """The tangent of an f32."""
    angle = reduced(x)
    sine, cosine = (twofold.sorted_sum(*wave) for wave in waves(angle.rest))
    is_odd = (angle.quadrant & 1) > 0
    ratio = choose(is_odd, cosine.negative(), sine).over(choose(is_odd, sine, cosine)).total()
    return where(abs(x) < 2.0**-13, x, ratio)


def sine_of(quadrant: Lane, rest: Twofold) -> Lane:
    """The sine of a multiple of π/2 and a rest."""
    sine, cosine = waves(rest)
    value = choose((quadrant & 1) > 0, cosine, sine).total()
    return (value.bits() ^ ((quadrant & 2) << 30)).as_float()


def waves(rest: Twofold) -> tuple[Twofold, Twofold]:
    """The sine and the cosine of at most π/4."""
    x, low = rest
    z = x * x
    half = z * 0.5
    sine = Twofold(x, (x * z).muladd(polynomial(table("sin", x), z), (-half).muladd(low, low)))
    whole = twofold.sorted_sum(x.number(1.0), -half)
    cosine = Twofold(whole.high, whole.low + (z * z).muladd(polynomial(table("cos", x), z), -(x * low)))
    return sine, cosine


def reduced(x: Lane) -> Angle:
    """The angle of an f32; nan of infinities."""
    builder = x.builder
    near, far, end = (builder.append_basic_block(label) for label in ("near", "far", "end"))
    builder.cbranch((abs(x) < LARGE).value, near, far)
    builder.position_at_end(near)
    small = by_parts(x)
    builder.branch(end)
    builder.position_at_end(far)
    large = by_bits(x)
    builder.branch(end)
    builder.position_at_end(end)
    quadrant, high, low = (
        joined(builder, {near: one, far: other})
        for one, other in zip((small.quadrant, *small.rest), (large.quadrant, *large.rest), strict=True)
    )
    return Angle(quadrant, Twofold(high, low))


def joined(builder: Builder, lanes: dict[ir.Block, Lane]) -> Lane:
    """The lane of the block that control comes from."""
    phi = builder.phi(next(iter(lanes.values())).value.type)
    for block, lane in lanes.items():
        phi.add_incoming(lane.value, block)
    return Lane(builder, phi)


def by_parts(x: Lane) -> Angle:
    """The angle of an f32 below `LARGE`."""
    with_rounding = x.fma(2 / math.pi, ROUNDING)
    k = with_rounding - ROUNDING
    first, second, third = HALF_PI
    high = k.fma(-first, x)
    product = twofold.exact_product(k, x.number(-second))
    total = twofold.exact_sum(high, product.high)
    rest = Twofold(total.high, total.low + k.fma(-third, product.low))
    return Angle(with_rounding.bits(), rest)


def by_bits(x: Lane) -> Angle:
    """The angle of an f32 from `LARGE` on."""
    bits = x.bits()
    exponent = (bits >> 23) & 0xFF
    mantissa = widened((bits & 0x7FFFFF) | 0x800000)
    # x is mantissa * 2**(exponent - 150). Bits of 2/π before `first` make multiples of 2π.
    first = exponent - (150 + 2 - 32)
    high, middle, low = (widened(word) for word in window(first))
    turns = (mantissa * high << 32) + mantissa * middle + (mantissa * low >> 32)
    quadrant = (turns + (1 << 61)) >> 62
    rest = turns - (quadrant << 62)
    top, *others = (as_f32(piece) for piece in (shifted(rest, 42), (rest >> 21) & PIECE, rest & PIECE))
    total = twofold.exact_sum(top * 2.0**42, others[0] * 2.0**21)
    parts = twofold.sorted_sum(total.high, total.low + others[1])
    angle = parts.times_twofold(twofold.constant(x, HALF_PI[0] * 2.0**-62, HALF_PI[1] * 2.0**-62))
    is_negative, nothing = x < 0.0, x - x  # 0, or nan of infinities
    quadrant = narrowed(quadrant)
    signed = twofold.choose(is_negative, angle.negative(), angle)
    return Angle(
        where(is_negative, quadrant.number(0) - quadrant, quadrant), Twofold(signed.high + nothing, signed.low)
    )


PIECE = 2**21 - 1
"""The bits of an integer that is exact in f32."""


def widened(word: Lane) -> Lane:
    return Lane(word.builder, word.builder.zext(word.value, LONG))


def narrowed(long: Lane) -> Lane:
    return Lane(long.builder, long.builder.trunc(long.value, WORD))


def shifted(long: Lane, count: int) -> Lane:
    """A signed integer over a power of two, rounded down."""
    return Lane(long.builder, long.builder.ashr(long.value, LONG(count)))


def as_f32(long: Lane) -> Lane:
    """A small signed integer as an f32."""
    return Lane(long.builder, long.builder.sitofp(narrowed(long).value, FLOAT))


def window(first: Lane) -> list[Lane]:
    """The 96 bits of 2/π from this one on, in words."""
    builder = first.builder
    words = [Lane(builder, WORD(word)) for word in TWO_OVER_PI]
    place = first >> 5
    for step in (4, 2, 1):
        is_set = (place & step) > 0
        ahead = [*words[step:], *words[-1:] * step]
        words = [where(is_set, after, word) for word, after in zip(words, ahead, strict=True)]
    shift = first & 31
    return [
        Lane(builder, call(builder, "llvm.fshl.i32", WORD, high.value, low.value, shift.value))
        for high, low in pairwise(words[:4])
    ]
