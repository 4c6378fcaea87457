"""Arithmetic, element by element, and what `+ - * /` mean on symbols.

Note [Strong zero]
    In reverse mode a cotangent that is exactly 0 gives exactly 0, whatever the partial. So an arm of `where` that was
    not taken (its cotangent is 0) cannot poison a gradient with the inf or nan of its own derivative, while a real inf
    or nan, whose cotangent is not 0, still shows. `strong_mul(ct, p)` is that product: 0 where ct is 0, else ct * p.
    Its derivative is that of the plain product, strong again: spelled as a select it would lose p at ct = 0 in the
    second derivative. There ct itself stands in the place of a partial, and a second cotangent, which may be infinite
    by now, must not bring a masked arm back: that product, `absorbing_mul(g, ct)`, is 0 where either of the two is.
    `strong_div(x, y)`, 0 where x is 0, is for partials like x / hypot(x, y), which are 0 by definition where numerator
    and denominator vanish together, and whose own derivative there is infinite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.ir.builder import current_builder
from fnad.ir.primitive import Bilinear, Linear, everywhere
from fnad.ir.ranges import NONZERO, Singular
from fnad.ir.symbol import Symbol
from fnad.ops.constructors import INEXACT, LINE, NUMBERS, elementwise
from fnad.ops.shape import broadcast_to
from fnad.upward import UPWARD

DIVISOR = Singular(1, NONZERO, "x / 0 is inf or nan")

add = elementwise(
    "add",
    np.add,
    "{0} + {1}",
    Linear(lambda ct, x, y: (ct, ct)),
    domain=NUMBERS,
    over=(LINE, LINE),
    commutative=True,
    bounds=lambda x, y: x + y,
    doc="Sum.",
)

sub = elementwise(
    "sub",
    np.subtract,
    "{0} - {1}",
    Linear(lambda ct, x, y: (ct, neg(ct))),
    domain=NUMBERS,
    over=(LINE, LINE),
    bounds=lambda x, y: x - y,
    doc="Difference.",
)

neg = elementwise(
    "neg",
    np.negative,
    "-{0}",
    Linear(lambda ct, x: (neg(ct),)),
    domain=NUMBERS,
    over=(LINE,),
    bounded=everywhere,
    bounds=lambda x: -x,
    doc="Opposite.",
)

mul = elementwise(
    "mul",
    np.multiply,
    "{0} * {1}",
    Bilinear((lambda ct, x, y: strong_mul(ct, y), lambda ct, x, y: strong_mul(ct, x))),
    domain=NUMBERS,
    over=(LINE, LINE),
    edges=((0.0, 1.0), (0.0, np.inf)),
    commutative=True,
    bounds=lambda x, y: x * y,
    doc="Product.",
)


def _strong_mul(ct: Any, p: Any) -> Any:
    return np.where(ct == 0, np.zeros((), ct.dtype), ct * p)


strong_mul = elementwise(
    "strong_mul",
    _strong_mul,
    "strong_multiply({0}, {1})",
    Bilinear((lambda g, ct, p: strong_mul(g, p), lambda g, ct, p: absorbing_mul(g, ct))),
    domain=INEXACT,
    over=(LINE, LINE),
    edges=((0.0, np.inf), (-0.0, np.nan), (2.0, np.inf)),
    cost=2,
    bounds=lambda x, y: x * y,
    doc="Product that is exactly 0 where the first operand is 0, whatever the second.",
)


def _absorbing_mul(x: Any, y: Any) -> Any:
    return np.where((x == 0) | (y == 0), np.zeros((), x.dtype), x * y)


absorbing_mul = elementwise(
    "absorbing_mul",
    _absorbing_mul,
    "select({1} == {dtype}(0), {dtype}(0), strong_multiply({0}, {1}))",
    Bilinear((lambda g, x, y: absorbing_mul(g, y), lambda g, x, y: absorbing_mul(g, x))),
    domain=INEXACT,
    over=(LINE, LINE),
    edges=((0.0, np.inf), (np.inf, 0.0), (np.nan, -0.0), (2.0, np.inf)),
    cost=3,
    bounds=lambda x, y: x * y,
    doc="Product that is exactly 0 where either operand is 0, whatever the other.",
)

div = elementwise(
    "div",
    np.true_divide,
    "{0} / {1}",
    (lambda q, x, y: 1.0 / y, lambda q, x, y: -q / y),
    domain=INEXACT,
    edges=((1.0, 0.0), (-1.0, 0.0), (0.0, 0.0)),
    cost=4,
    bounds=lambda x, y: x / y,
    singular=(DIVISOR,),
    doc="Quotient of floating-point numbers, IEEE 754 at zeros.",
)


def _strong_div(x: Any, y: Any) -> Any:
    return np.where(x == 0, np.zeros((), x.dtype), x / y)


strong_div = elementwise(
    "strong_div",
    _strong_div,
    "select({0} == {dtype}(0), {dtype}(0), {0} / {1})",
    (lambda q, x, y: 1.0 / y, lambda q, x, y: neg(strong_div(q, y))),
    domain=INEXACT,
    edges=((0.0, 0.0), (1.0, 0.0)),
    cost=5,
    doc="Quotient that is exactly 0 where the dividend is 0, whatever the divisor.",
)


# ---- operators on symbols ----------------------------------------------------------------------------------------


def operands(x: Any, y: Any) -> tuple[Symbol, Symbol]:
    """Two operands of one aval: a number takes the dtype and shape of the symbol beside it."""
    like = x if isinstance(x, Symbol) else y
    return number_like(x, like), number_like(y, like)


def number_like(value: Any, like: Symbol) -> Symbol:
    """A symbol as it is, a Python number as a value of the aval of `like`."""
    if isinstance(value, Symbol):
        return value
    return broadcast_to(current_builder().literal(like.dtype.type(value)), like.shape)


def _operator(primitive: Callable[..., Symbol]) -> Callable[[Any, Any], Symbol]:
    return lambda x, y: primitive(*operands(x, y))


UPWARD.add, UPWARD.sub, UPWARD.mul, UPWARD.div = map(_operator, (add, sub, mul, div))
UPWARD.neg = neg
