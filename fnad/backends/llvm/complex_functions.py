"""Complex functions of real ones, for targets without a complex libm.

Branch cuts and the signs of zeros are those of C99, annex G, and so are infinities where the formulas give them by
themselves. Inverse functions are those of Kahan (1987), "Branch cuts for complex elementary functions".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from fnad.backends.llvm import complex_math
from fnad.backends.llvm.complex_math import Libm
from fnad.backends.llvm.emitter import Builder, Emit, Instructions, Kinds, Value, Values
from fnad.backends.llvm.scalar import absolute, call, overloaded, pair, parts
from fnad.records import dataclass

INFINITY = math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Real:
    """A float in a register, with Python's operators and the functions of a libm."""

    builder: Builder
    libm: Libm
    value: Value

    def _new(self, value: Value) -> Real:
        return Real(self.builder, self.libm, value)

    def of(self, other: Any) -> Value:
        """The value of another one, or a number as a value."""
        return other.value if isinstance(other, Real) else self.value.type(float(other))

    def __add__(self, other: Any) -> Real:
        return self._new(self.builder.fadd(self.value, self.of(other)))

    def __sub__(self, other: Any) -> Real:
        return self._new(self.builder.fsub(self.value, self.of(other)))

    def __rsub__(self, other: Any) -> Real:
        return self._new(self.builder.fsub(self.of(other), self.value))

    def __mul__(self, other: Any) -> Real:
        return self._new(self.builder.fmul(self.value, self.of(other)))

    def __truediv__(self, other: Any) -> Real:
        return self._new(self.builder.fdiv(self.value, self.of(other)))

    def __rtruediv__(self, other: Any) -> Real:
        return self._new(self.builder.fdiv(self.of(other), self.value))

    def __neg__(self) -> Real:
        return self._new(self.builder.fneg(self.value))

    def __abs__(self) -> Real:
        return self._new(absolute(self.builder, self.value))

    def test(self, sign: str, other: Any) -> Value:
        """A comparison; with nan it is false."""
        return self.builder.fcmp_ordered(sign, self.value, self.of(other))

    def where(self, condition: Value, other: Any) -> Real:
        """The value where a condition holds, else another one."""
        return self._new(self.builder.select(condition, self.value, self.of(other)))

    def call(self, symbol: str, *others: Real) -> Real:
        """A function of libm."""
        return self._new(self.libm(self.builder, symbol, self.value, *(other.value for other in others)))

    def intrinsic(self, name: str, *others: Any) -> Real:
        type_ = self.value.type
        return self._new(call(self.builder, overloaded(name, type_), type_, self.value, *map(self.of, others)))

    def sqrt(self) -> Real:
        return self.intrinsic("llvm.sqrt")

    def signed(self, other: Real) -> Real:
        """The magnitude with the sign of another value."""
        return self.intrinsic("llvm.copysign", other)


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


def exp(z: Parts) -> Parts:
    a, b = z
    size = a.call("exp")
    # Where the imaginary part is a zero, so is that of the result; where the size is 0, the angle means nothing.
    is_real, is_zero = b.test("==", 0), size.test("==", 0)
    real = size.where(a.builder.or_(is_real, is_zero), size * b.call("cos"))
    return real, b.where(is_real, size.where(is_zero, size * b.call("sin")))


def log(z: Parts) -> Parts:
    """The logarithm; near the unit circle log |z|² / 2 by log1p, since log |z| would lose digits."""
    a, b = abs(z[0]), abs(z[1])
    a_is_larger = a.test(">", b)
    large, small = a.where(a_is_larger, b), b.where(a_is_larger, a)
    near = ((large - 1) * (large + 1) + small * small).call("log1p") * 0.5
    is_near = a.builder.and_(large.test(">", 0.5), large.test("<", 2))
    return near.where(is_near, a.call("hypot", b).call("log")), z[1].call("atan2", z[0])


def sinh(z: Parts) -> Parts:
    a, b = z
    is_real = b.test("==", 0)
    real, imaginary = a.call("sinh") * b.call("cos"), a.call("cosh") * b.call("sin")
    return a.call("sinh").where(is_real, (a * b).where(a.test("==", 0), real)), b.where(is_real, imaginary)


def cosh(z: Parts) -> Parts:
    a, b = z
    size, is_real = a.call("cosh"), b.test("==", 0)
    imaginary = (b * (b * 0 + 1).signed(a)).where(is_real, a.call("sinh") * b.call("sin"))
    return size.where(is_real, size * b.call("cos")), imaginary


def tanh(z: Parts) -> Parts:
    a, b = z
    tangent, s = b.call("tan"), a.call("sinh")
    beta = tangent * tangent + 1
    below = beta * s * s + 1
    far = abs(a).test(">", 20)
    one = (abs(a) * 0 + 1).signed(a)
    decay = b.call("sin") * b.call("cos") * (abs(a) * -2).call("exp") * 4
    real = one.where(far, beta * (s * s + 1).sqrt() * s / below)
    is_real = b.test("==", 0)
    return real, b.where(is_real, decay.where(far, tangent / below))


# ---- roots -------------------------------------------------------------------------------------------------------


def sqrt(z: Parts) -> Parts:
    a, b = z
    root = (abs(a) * 0.5 + a.call("hypot", b) * 0.5).sqrt()
    other = b / (root * 2)
    is_right = a.test(">=", 0)
    real, imaginary = root.where(is_right, abs(other)), other.where(is_right, root.signed(b))
    is_zero, is_infinite = root.test("==", 0), abs(b).test("==", INFINITY)
    real = abs(b).where(is_infinite, (root * 0).where(is_zero, real))
    return real, b.where(a.builder.or_(is_zero, is_infinite), imaginary)


# ---- inverse functions -------------------------------------------------------------------------------------------


def arcsin(z: Parts) -> Parts:
    left, right = sqrt(plus_one(negative(z))), sqrt(plus_one(z))
    return z[0].call("atan2", product(left, right)[0]), product(conjugate(left), right)[1].call("asinh")


def arccos(z: Parts) -> Parts:
    left, right = sqrt(plus_one(negative(z))), sqrt(plus_one(z))
    return left[0].call("atan2", right[0]) * 2, product(conjugate(right), left)[1].call("asinh")


def arccosh(z: Parts) -> Parts:
    left, right = sqrt((z[0] - 1, z[1])), sqrt(plus_one(z))
    return product(conjugate(left), right)[0].call("asinh"), left[1].call("atan2", right[0]) * 2


def arctanh(z: Parts) -> Parts:
    a, b = z
    side = abs(a)
    real = (side * 4 / ((1 - side) * (1 - side) + b * b)).call("log1p") * 0.25
    return real.signed(a), (b * 2).call("atan2", (1 - a) * (a + 1) - b * b) * 0.5


# ---- the table ---------------------------------------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[[Parts], Parts]] = {
    "exp": exp,
    "log": log,
    "sqrt": sqrt,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "sin": lambda z: over_i(sinh(times_i(z))),
    "cos": lambda z: cosh(times_i(z)),
    "tan": lambda z: over_i(tanh(times_i(z))),
    "arcsin": arcsin,
    "arccos": arccos,
    "arccosh": arccosh,
    "arctanh": arctanh,
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
        **{name: emitter(function, libm) for name, function in FUNCTIONS.items()},
        "expm1": complex_math.expm1(libm),
        "log1p": complex_math.log1p(libm),
        "power": complex_math.power(general_power(libm)),
        "abs": complex_math.absolute(libm),
    }


def emitter(function: Callable[[Parts], Parts], libm: Libm) -> Emit:
    """The emitter of a function of one complex number."""

    def emit(builder: Builder, kinds: Kinds, values: Values) -> Value:
        real, imaginary = function(complex_of(builder, libm, values[0]))
        return pair(builder, real.value, imaginary.value)

    return emit


def general_power(libm: Libm) -> Emit:
    """The emitter of exp(exponent · log base)."""

    def emit(builder: Builder, kinds: Kinds, values: Values) -> Value:
        base, exponent = (complex_of(builder, libm, value) for value in values)
        real, imaginary = exp(product(exponent, log(base)))
        return pair(builder, real.value, imaginary.value)

    return emit


def complex_of(builder: Builder, libm: Libm, value: Value) -> Parts:
    real, imaginary = parts(builder, value)
    return Real(builder, libm, real), Real(builder, libm, imaginary)
