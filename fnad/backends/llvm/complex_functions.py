"""Complex functions of real ones, on vectors where these are.

Branch cuts, the signs of zeros, and what infinities and nan give are those of C99, annex G; signs that it leaves open
are those of glibc, which NumPy calls. Inverse functions are those of Kahan (1987), "Branch cuts for complex elementary
functions".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from fnad.backends.llvm import complex_math
from fnad.backends.llvm.complex_math import Libm
from fnad.backends.llvm.emitter import Builder, Instructions, Kinds, Value, Values
from fnad.backends.llvm.lane import Lane
from fnad.backends.llvm.scalar import pair, parts

INFINITY = math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Real(Lane):
    """A float in a register, with the functions of a libm."""

    libm: Libm

    def with_value(self, value: Value) -> Real:
        return Real(self.builder, value, self.libm)

    def is_infinite(self) -> Lane:
        return abs(self).equals(INFINITY)

    def is_finite(self) -> Lane:
        return abs(self) < INFINITY

    def unless_nan(self, other: Real, condition: Lane) -> Real:
        """The value, but another one where a condition holds and it is nan."""
        return self.where(self.is_number(), other.where(condition, self))

    def where(self, condition: Lane, other: Any) -> Real:
        """The value where a condition holds, else another one."""
        return self.with_value(self.builder.select(condition.value, self.value, self.constant(other)))

    def call(self, symbol: str, *others: Real) -> Real:
        """A function of libm."""
        return self.with_value(self.libm(self.builder, symbol, self.value, *(other.value for other in others)))


Parts: TypeAlias = tuple[Real, Real]
"""A complex number."""


def times_i(z: Parts) -> Parts:
    return -z[1], z[0]


def over_i(z: Parts) -> Parts:
    return z[1], -z[0]


def product(z: Parts, w: Parts) -> Parts:
    return z[0] * w[0] - z[1] * w[1], z[0] * w[1] + z[1] * w[0]


def conjugate(z: Parts) -> Parts:
    return z[0], -z[1]


def negative(z: Parts) -> Parts:
    return -z[0], -z[1]


def plus_one(z: Parts) -> Parts:
    return z[0] + 1, z[1]


# ---- exponentials ------------------------------------------------------------------------------------------------

LARGEST = {"double": 709.0, "float": 88.0}
"""Numbers whose exponentials are finite, by LLVM's types."""


def in_two(a: Real) -> tuple[Real, Real]:
    """A number whose exponential is finite, and that of what is missing to |a|: 1, but for large numbers.

    Their product may be infinite where a third factor, a small sine, makes it finite.
    """
    limit = a.number(LARGEST[str(a.value.type)])
    is_large = abs(a) > limit
    rest = (abs(a) - limit).where(is_large, 0.0).call("exp")
    return limit.signed(a).where(is_large, a), rest


def exp(z: Parts) -> Parts:
    a, b = z
    part, rest = in_two(a)
    is_below = a < 0
    size, rest = a.where(is_below, part).call("exp"), a.number(1).where(is_below, rest)
    # Where the imaginary part is a zero, so is that of the result; at infinity the angle means nothing.
    is_real, is_zero = b.equals(0), a.equals(-INFINITY)
    real = (size * rest).where(is_real, size * b.call("cos") * rest)
    imaginary = b.where(is_real, size * b.call("sin") * rest)
    return real.unless_nan(size * rest, a.is_infinite()), imaginary.unless_nan(size.signed(b), is_zero)


def log(z: Parts) -> Parts:
    """The logarithm; near the unit circle by log1p of |z|² - 1, because log |z| would lose digits."""
    a, b = abs(z[0]), abs(z[1])
    a_is_larger = a > b
    large, small = a.where(a_is_larger, b), b.where(a_is_larger, a)
    near = above_one(large, small).call("log1p") * 0.5
    is_near = (large > 0.5) & (large < 2)
    scale, _, logarithm = scales(large)
    far = (a * scale).call("hypot", b * scale).call("log") - logarithm
    return near.where(is_near, far), z[1].call("atan2", z[0])


def above_one(a: Real, b: Real) -> Real:
    """The sum a² + b² - 1 of numbers near 1, with the rounding errors of its terms."""
    of_a, of_b = a * a, b * b
    rest = a.intrinsic("fma", a, -of_a) + b.intrinsic("fma", b, -of_b)
    less, error = sum_and_error(of_a, a.number(-1))
    found, last_error = sum_and_error(less, of_b)
    return found + (rest + error + last_error)


def sum_and_error(a: Real, b: Real) -> Parts:
    """A sum and its rounding error (Knuth, "The Art of Computer Programming", volume 2, 4.2.2, theorem B)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def sinh(z: Parts) -> Parts:
    a, b = z
    part, rest = in_two(a)
    is_real, sine = b.equals(0), part.call("sinh")
    real = (sine * rest).where(is_real, sine * b.call("cos") * rest)
    imaginary = b.where(is_real, part.call("cosh") * b.call("sin") * rest)
    is_zero = a.equals(0)
    return real.unless_nan(a.where(is_zero, abs(a)), is_zero | a.is_infinite()), imaginary


def cosh(z: Parts) -> Parts:
    a, b = z
    part, rest = in_two(a)
    is_real, size = b.equals(0), part.call("cosh")
    real = (size * rest).where(is_real, size * b.call("cos") * rest)
    sign = a.number(1).signed(a).where(a.is_number(), 1)
    imaginary = (b * sign).where(is_real, part.call("sinh") * b.call("sin") * rest)
    return real.unless_nan(abs(a), a.is_infinite()), imaginary.unless_nan(abs(a), a.equals(0))


def tanh(z: Parts) -> Parts:
    a, b = z
    tangent, s = b.call("tan"), a.call("sinh")
    beta = tangent * tangent + 1
    below = beta * s * s + 1
    far, is_infinite = abs(a) > 20, a.is_infinite()
    one = a.number(1).signed(a)
    decay = b.call("sin") * b.call("cos") * (abs(a) * -2).call("exp") * 4
    real = one.where(far, beta * (s * s + 1).sqrt() * s / below)
    real = a.where(a.equals(0), real.where(is_infinite | b.is_finite(), b - b))
    imaginary = decay.unless_nan(a.number(0).signed(b), is_infinite).where(far, tangent / below)
    return real, b.where(b.equals(0), imaginary)


# ---- roots -------------------------------------------------------------------------------------------------------

LARGE, SMALL = 2.0**120, 2.0**-100
"""Sizes from which, and up to which, numbers are scaled: sums would overflow, or lose digits."""


def scales(size: Real) -> tuple[Real, Real, Real]:
    """A power of 4 for numbers of this size, 1 for most, its square root, and its logarithm."""
    is_large, is_small = size > LARGE, size < SMALL

    def choose(for_large: float, for_small: float, for_others: float) -> Real:
        return size.number(for_large).where(is_large, size.number(for_small).where(is_small, for_others))

    return choose(0.25, 2.0**108, 1), choose(0.5, 2.0**54, 1), choose(-math.log(4), 108 * math.log(2), 0)


def sqrt(z: Parts) -> Parts:
    scale, its_root, _ = scales(abs(z[0]).intrinsic("maxnum", abs(z[1])))
    a, b = z[0] * scale, z[1] * scale
    root = (abs(a) * 0.5 + a.call("hypot", b) * 0.5).sqrt()
    other = b / (root * 2)
    is_right = a >= 0
    real, imaginary = root.where(is_right, abs(other)) / its_root, other.where(is_right, root.signed(b)) / its_root
    is_zero, is_infinite = root.equals(0), b.is_infinite()
    real = abs(b).where(is_infinite, (root * 0).where(is_zero, real))
    return real, z[1].where(is_zero | is_infinite, imaginary)


# ---- inverse functions -------------------------------------------------------------------------------------------


def direction(x: Real) -> Real:
    """A part of a number that is infinite: 1 or 0, with its sign."""
    return x.number(1).signed(x).where(x.is_infinite(), x * 0)


def is_infinite(z: Parts) -> Lane:
    return z[0].is_infinite() | z[1].is_infinite()


def infinity(sign: Real) -> Real:
    return sign.number(INFINITY).signed(sign)


def arcsin(z: Parts) -> Parts:
    a, b = z
    left, right = sqrt(plus_one(negative(z))), sqrt(plus_one(z))
    at_infinity, is_far = direction(a).call("atan2", abs(direction(b))), is_infinite(z)
    real = at_infinity.where(is_far, a.call("atan2", product(left, right)[0]))
    imaginary = infinity(b).where(is_far, product(conjugate(left), right)[1].call("asinh"))
    return a.where(a.equals(0), real), imaginary


def arccos(z: Parts) -> Parts:
    a, b = z
    left, right = sqrt(plus_one(negative(z))), sqrt(plus_one(z))
    at_infinity, is_far = abs(direction(b)).call("atan2", direction(a)), is_infinite(z)
    real = at_infinity.where(is_far, left[0].call("atan2", right[0]) * 2)
    imaginary = infinity(-b).where(is_far, product(conjugate(right), left)[1].call("asinh"))
    return a.number(math.pi / 2).where(a.equals(0), real), imaginary


def arccosh(z: Parts) -> Parts:
    a, b = z
    left, right = sqrt((a - 1, b)), sqrt(plus_one(z))
    at_infinity, is_far = direction(b).call("atan2", direction(a)), is_infinite(z)
    real = a.number(INFINITY).where(is_far, product(conjugate(left), right)[0].call("asinh"))
    imaginary = at_infinity.where(is_far, left[1].call("atan2", right[0]) * 2)
    return real, imaginary.unless_nan(a.number(math.pi / 2).signed(b), a.equals(0))


def arctanh(z: Parts) -> Parts:
    """The inverse of tanh; of large numbers, whose squares may overflow, the real part of 1/z, and a right angle."""
    a, b = z
    side, other = abs(a), abs(b)
    real = (side * 4 / ((1 - side) * (1 - side) + b * b)).call("log1p") * 0.25
    is_near = side.equals(1) & (other < 1e-9)  # a pole: the square may underflow
    real = ((math.log(2) - other.call("log")) * 0.5).where(is_near, real)
    imaginary = (b * 2).call("atan2", (1 - a) * (a + 1) - b * b) * 0.5
    large = side.intrinsic("maxnum", other)
    small = side.intrinsic("minnum", other) / large
    far = (side / large / (small * small + 1) / large).where(large.is_finite(), 0)
    right_angle = a.number(math.pi / 2).signed(b).where(b.is_number(), b)
    is_far = is_infinite(z) | ((large > 1e18) & a.compared("ord", b))
    real, imaginary = far.where(is_far, real), right_angle.where(is_far, imaginary)
    return a.where(a.equals(0), real.signed(a)), imaginary


# ---- the table ---------------------------------------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[[Parts], Parts]] = {
    **{f.__name__: f for f in (exp, log, sqrt, sinh, cosh, tanh, arcsin, arccos, arccosh, arctanh)},
    "sin": lambda z: times_i(sinh(over_i(z))),
    "cos": lambda z: cosh(times_i(z)),
    "tan": lambda z: over_i(tanh(times_i(z))),
    "arcsinh": lambda z: over_i(arcsin(times_i(z))),
    "arctan": lambda z: over_i(arctanh(times_i(z))),
    "exp2": lambda z: exp((z[0] * math.log(2), z[1] * math.log(2))),
    "log2": lambda z: scaled(log(z), 1 / math.log(2)),
    "log10": lambda z: scaled(log(z), 1 / math.log(10)),
}


def scaled(z: Parts, factor: float) -> Parts:
    return z[0] * factor, z[1] * factor


def instructions(libm: Libm) -> Instructions:
    """The emitters of complex functions, with the real ones of a libm."""
    return {
        **{name: partial(emit, function, libm) for name, function in FUNCTIONS.items()},
        "expm1": partial(complex_math.expm1, libm),
        "log1p": partial(complex_math.log1p, libm),
        "power": partial(complex_math.power, partial(general_power, libm)),
        "abs": complex_math.absolute(libm),
    }


def emit(function: Callable[[Parts], Parts], libm: Libm, builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Emit a function of one complex number."""
    real, imaginary = function(complex_of(builder, libm, values[0]))
    return pair(builder, real.value, imaginary.value)


def general_power(libm: Libm, builder: Builder, kinds: Kinds, values: Values) -> Value:
    """Emit exp(exponent · log base)."""
    base, exponent = (complex_of(builder, libm, value) for value in values)
    real, imaginary = exp(product(exponent, log(base)))
    return pair(builder, real.value, imaginary.value)


def complex_of(builder: Builder, libm: Libm, value: Value) -> Parts:
    real, imaginary = parts(builder, value)
    return Real(builder, real, libm), Real(builder, imaginary, libm)
