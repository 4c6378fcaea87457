"""Powers, and the polar coordinates that are made of them.

Where the usual formulas are 0 * inf, the value is defined: x**0 has derivative 0 everywhere in x, 0**y has derivative
0 in y for y >= 0, and `hypot` and `arctan2` have derivative 0 at the origin. Products with `strong_mul` and quotients
with `strong_div` say so without hiding the second derivatives, which are infinite there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fnad.errors import DomainError
from fnad.ir.axes import Elementwise
from fnad.ir.primitive import Library, NonDifferentiable, Partials, Push, Sample, Scalar, declare
from fnad.ir.ranges import NONNEGATIVE, NONZERO, POSITIVE, Range, Singular, always
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, is_inexact
from fnad.ops.arithmetic import add, mul, neg, strong_div, strong_mul
from fnad.ops.comparison import bitwise_and, bitwise_or, eq, gt, lt, select
from fnad.ops.constructors import (
    INEXACT,
    INTEGERS,
    LINE,
    NUMBERS,
    REALS,
    by_name,
    check_dtype,
    elementwise,
    infer_elementwise,
    primitive,
)
from fnad.ops.conversion import real
from fnad.ops.elementary import log
from fnad.ops.shape import full_like, ones_like, sample, zeros_like

INF, NAN = float("inf"), float("nan")

# ---- x ** y ------------------------------------------------------------------------------------------------------


def _push_pow(results: Any, primals: Any, tangents: Any) -> list[Symbol | None]:
    """Multiply the tangent of x plainly, that of y strongly, since its partial is nan where x < 0."""
    (z,), (x, y), (dx, dy) = results, primals, tangents
    along_x = None if dx is None else mul(dx, strong_mul(y, pow_(x, y - 1.0)))
    along_y = None if dy is None else strong_mul(dy, log_partial(z, x, y))
    if along_x is None or along_y is None:
        return [along_y if along_x is None else along_x]
    return [add(along_x, along_y)]


def log_partial(z: Symbol, x: Symbol, y: Symbol) -> Symbol:
    """x**y log x; 0 at x = 0 for y = 0 and y > 1, where it is flat, so that derivatives meet no inf.

    It is 0 at x = inf for y < 0 too. Where 0 < y <= 1 it is infinitely steep in x at 0 and flat in y: as x log x, which
    does not have y, is. For x < 0 it is nan, even where x**y underflows to 0.
    """
    real_y, at_zero = y if y.dtype in REALS else real(y), eq(x, zeros_like(x))
    flat_at_zero = bitwise_or(eq(y, zeros_like(y)), gt(real_y, ones_like(real_y)))
    flat_at_inf = bitwise_and(eq(x, full_like(x, INF)), lt(real_y, zeros_like(real_y)))
    flat = bitwise_or(bitwise_and(at_zero, flat_at_zero), flat_at_inf)
    steep = bitwise_and(at_zero, gt(real_y, zeros_like(real_y)))
    if x.dtype in REALS:
        z = z * select(lt(x, zeros_like(x)), full_like(x, NAN), ones_like(x))
    return strong_mul(select(steep, x, z), log(select(flat, ones_like(x), x)))


def _pow_samples() -> Iterable[Sample]:
    for dtype in by_name(INEXACT):
        yield Sample((sample((2, 3), dtype), sample((2, 3), dtype, 1)))
    x = np.array([0.0, 0.0, 0.0, 0.0, -2.0, -2.0, 2.0, INF, -INF, -2.0, -INF, -0.0])
    y = np.array([0.0, 1.0, 2.0, -1.0, 3.0, 0.5, 0.0, -2.0, -INF, -2000.0, 0.5, 0.5])
    yield Sample((x, y), smooth=False)


def _finite_pow(x: Range, y: Range) -> Range | None:
    """Above 0; at 0 too if the exponent is 1 or more; everywhere if that is a positive integer."""
    if y.low == y.high and y.low >= 0 and y.low.is_integer():
        return None
    return NONNEGATIVE if y.low >= 1 else POSITIVE


@primitive(
    infer_elementwise("pow", 2, INEXACT, None),
    Push(_push_pow),
    Scalar("power({0}, {1})", 40),
    _pow_samples,
    bounds=lambda x, y: POSITIVE if x.is_positive else NONNEGATIVE if x.low >= 0 else Range(),
    singular=(Singular(0, _finite_pow, "x**y is nan for x < 0, and it or its derivative is infinite at 0"),),
)
def pow_(x: Any, y: Any) -> Any:
    """x**y of floating-point numbers; nan for x < 0 and y no integer. Both x**0 and 0**y have derivative 0."""
    # NumPy's power, of arrays: of a repeated 0.5 it takes square roots, which differ at -0.0 and -inf.
    return np.power(np.atleast_1d(x), np.ascontiguousarray(y)).reshape(x.shape)


UNROLLED = 64
"""The largest exponent that multiplications are written out for."""


def _product(factor: str, exponent: int) -> str:
    """The expression of a power as a balanced product, whose equal halves a compiler computes once."""
    if exponent == 1:
        return factor
    half = exponent // 2
    return f"({_product(factor, exponent - half)} * {_product(factor, half)})"


def _integer_pow_template(*, exponent: int) -> str:
    if exponent == 0:
        return "{dtype}(1)"
    product = _product("{0}", abs(exponent))
    return product if exponent > 0 else f"{{dtype}}(1) / {product}"


def _infer_integer_pow(x: Aval, *, exponent: int) -> Aval:
    check_dtype("integer_pow", x.dtype, NUMBERS)
    if exponent < 0 and not is_inexact(x.dtype):
        raise DomainError(
            f"Integers to negative integer powers are not allowed: {x} to the power {exponent}",
            remedy="convert the base, np.float64(x) ** n",
        )
    if abs(exponent) > UNROLLED:
        raise DomainError(f"integer_pow takes exponents up to {UNROLLED}, got {exponent}", remedy="use pow")
    return x


def _integer_pow(x: Any, *, exponent: int) -> Any:
    if exponent < 0:
        return np.true_divide(x.dtype.type(1), _integer_pow(x, exponent=-exponent))
    if exponent < 2:
        return np.copy(x) if exponent else np.ones_like(x)
    half = exponent // 2
    return np.multiply(_integer_pow(x, exponent=exponent - half), _integer_pow(x, exponent=half))


def _integer_pow_partial(y: Symbol, x: Symbol, *, exponent: int) -> Symbol:
    if exponent in (0, 1):
        return full_like(x, exponent)
    return exponent * (x if exponent == 2 else integer_pow(x, exponent=exponent - 1))


def _integer_pow_samples() -> Iterable[Sample]:
    for dtype in by_name(NUMBERS):
        yield Sample((sample((2, 3), dtype),), {"exponent": 3})
    for exponent in (-3, -1, 0, 1, 2, 7):
        yield Sample((np.array([-1.5, 0.7]),), {"exponent": exponent})
        yield Sample((np.array([0.0]),), {"exponent": exponent}, smooth=exponent >= 0)


integer_pow = declare(
    "integer_pow",
    _infer_integer_pow,
    _integer_pow,
    Partials((_integer_pow_partial,)),
    Scalar(_integer_pow_template, 3),
    _integer_pow_samples,
    bounds=lambda x, *, exponent: x.power(exponent),
    singular=(Singular(0, lambda x, *, exponent: NONZERO if exponent < 0 else None, "1 / 0**n is infinite"),),
    doc=f"x to a constant integer `exponent`, at most {UNROLLED}, by repeated multiplication; integers wrap.",
)


@primitive(
    infer_elementwise("int_pow", 2, INTEGERS, None),
    NonDifferentiable(),
    Library(dispatched=True),
    lambda: [Sample((sample((2, 3), dtype), sample((2, 3), dtype, 1))) for dtype in by_name(INTEGERS)],
    axes=Elementwise(),
)
def int_pow(x: Any, y: Any) -> Any:
    """x**y of integers, wrapping; raises DomainError where an exponent is negative."""
    if np.any(y < 0):
        what = "Integers to negative integer powers are not allowed."
        raise DomainError(what, remedy="convert the base, np.float64(x) ** n")
    return np.power(x, y)


def constant_pow(x: Symbol, exponent: int) -> Symbol:
    """The operand to a constant integer power by the primitive that is right for its size."""
    if abs(exponent) <= UNROLLED:
        return integer_pow(x, exponent=exponent)
    return (pow_ if is_inexact(x.dtype) else int_pow)(x, full_like(x, exponent))


# ---- polar coordinates -------------------------------------------------------------------------------------------

ORIGIN = ((0.0, 0.0), (-0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (INF, 1.0))

hypot = elementwise(
    "hypot",
    np.hypot,
    "hypot({0}, {1})",
    (lambda r, x, y: hypot_slope(x, y), lambda r, x, y: hypot_slope(y, x)),
    domain=REALS,
    over=(LINE, LINE),
    edges=ORIGIN,
    cost=20,
    bounds=always(0.0, INF),
    doc="sqrt(x**2 + y**2) without overflow; its derivative at (0, 0) is 0.",
)


def _squared_over(s: Symbol, r: Symbol) -> Symbol:
    """s² / r, infinite where both are 0."""
    return select(eq(r, zeros_like(r)), full_like(r, INF), s * (s / r))


hypot_slope = elementwise(
    "hypot_slope",
    lambda x, y: np.where(x == 0, np.zeros((), x.dtype), x / np.hypot(x, y)),
    "select({0} == {dtype}(0), {dtype}(0), {0} / hypot({0}, {1}))",
    (
        # In this order kernels compute the square root of the slope once.
        lambda c, x, y: _squared_over(hypot_slope(y, x), hypot(y, x)),
        lambda c, x, y: neg(c * strong_div(hypot_slope(y, x), hypot(y, x))),
    ),
    domain=REALS,
    over=(LINE, LINE),
    edges=((0.0, 1.0), (1.0, 0.0)),
    cost=25,
    bounds=always(-1.0, 1.0),
    doc="x / sqrt(x**2 + y**2), the derivative of `hypot` in x, whose own does not cancel; 0 where x is 0.",
)


arctan2 = elementwise(
    "arctan2",
    np.arctan2,
    "arctan2({0}, {1})",
    (
        lambda a, y, x: strong_div(hypot_slope(x, y), hypot(x, y)),
        lambda a, y, x: neg(strong_div(hypot_slope(y, x), hypot(y, x))),
    ),
    domain=REALS,
    over=(LINE, LINE),
    edges=ORIGIN,
    cost=40,
    doc="The angle of the point (x, y), given y first; its derivative at (0, 0) is 0.",
)
