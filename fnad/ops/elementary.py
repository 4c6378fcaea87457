"""Elementary functions of one real or complex variable: exponential, logarithm, trigonometric, hyperbolic.

All are analytic, so one formula gives the derivative on the line and in the plane (DLMF 4.7, 4.20, 4.24, 4.34,
4.38). None is declared `finite`, not even the sine: at inf and nan its partial is nan, and an arm of `where` that was
not taken must not let it through.

Note [Overflow]
    The slope of a root or a logarithm tends to 0 as x grows. At x = inf it is nan here, not 0: in log(1 + exp(1000))
    the 0 would meet the infinite slope of what overflowed, the strong zero would make 0 of the two, and the gradient
    would be 0 where it is 1. An overflow shows; `where` still masks it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.ir.primitive import Bounded, Primitive, everywhere, nowhere, on_reals
from fnad.ir.ranges import NONNEGATIVE, NONZERO, POSITIVE, WITHIN_ONE, Bounds, Range, Singular, always, increasing
from fnad.ir.symbol import Symbol
from fnad.ir.types import is_complex
from fnad.ops.arithmetic import absorbing_mul, neg
from fnad.ops.autodiff import stop_gradient
from fnad.ops.comparison import lt, select
from fnad.ops.constructors import INEXACT, LINE, REALS, UNIT, Domain, Interval, Point, elementwise
from fnad.ops.conversion import real
from fnad.ops.formula import Formula
from fnad.ops.shape import full_like
from fnad.scalar.operations import sech2 as scalar_sech2

INF = float("inf")


def _function(
    name: str,
    partial: Callable[[Symbol, Symbol], Symbol],
    doc: str,
    *,
    domain: Domain = INEXACT,
    over: Interval = LINE,
    edges: tuple[float, ...] = (),
    cost: int = 20,
    bounded: Bounded = nowhere,
    bounds: Bounds | None = None,
    finite: Range | None = None,
    elsewhere: str = "",
) -> Primitive:
    """Declare a function of NumPy by the derivative `(result, operand) -> partial`.

    It and its derivative are finite with the operand in the range `finite`, and `elsewhere` says what they are.
    """
    points: tuple[Point, ...] = tuple((edge,) for edge in edges)
    evaluate: Callable[..., Any] = getattr(np, name)
    return elementwise(
        name,
        evaluate,
        f"{name}({{0}})",
        (partial,),
        domain=domain,
        over=(over,),
        edges=points,
        cost=cost,
        bounded=bounded,
        bounds=bounds,
        singular=() if finite is None else (Singular(0, finite, elsewhere),),
        doc=doc,
    )


def one(x: Symbol) -> Symbol:
    """1 in the dtype of x, whose sum and difference with x has the sign of a zero imaginary part.

    That sign says on which side of a cut x lies: 1 + 0i - (3 + 0i) is -2 + 0i, 1 - 0i - (3 + 0i) is -2 - 0i.
    """
    return full_like(x, complex(1.0, -0.0) if is_complex(x.dtype) else 1.0)


def one_minus_square(x: Symbol) -> Symbol:
    """1 - x², without loss in itself near ±1 and in its derivative near 0.

    Far from 0 it is the product (1 - x)(1 + x). The derivative of that is (1 - x) - (1 + x), in which small x is lost.
    """
    along = real(x) if is_complex(x.dtype) else x
    is_near = lt(along * along, full_like(along, 0.25))
    return select(is_near, 1.0 - x * x, absorbing_mul(one(x) - x, one(x) + x))


def overflow(x: Symbol) -> Symbol:
    """0, or nan where x is infinite, for the value alone: its transpose would add k and -k to a cotangent of x."""
    return stop_gradient(x - x)


# ---- roots -------------------------------------------------------------------------------------------------------

sqrt = _function(
    "sqrt",
    lambda y, x: 0.5 / y + overflow(x),
    "Square root; its derivative at 0 is inf.",
    over=UNIT,
    edges=(0.0, -0.0, -1.0, INF),
    cost=4,
    bounds=lambda x: increasing(math.sqrt)(x & NONNEGATIVE),
    finite=POSITIVE,
    elsewhere="its derivative at 0 is inf, and sqrt(x) is nan for x < 0",
)
cbrt = _function(
    "cbrt",
    lambda y, x: 1.0 / (3.0 * (y * y)) + overflow(x),
    "Cube root of a real number; its derivative at 0 is inf.",
    domain=REALS,
    over=UNIT,
    edges=(0.0, -8.0),
    bounds=increasing(lambda x: math.copysign(abs(x) ** (1 / 3), x)),
    finite=NONZERO,
    elsewhere="its derivative at 0 is inf",
)

LOG_ELSEWHERE = "the logarithm is -inf at 0 and nan for x < 0"

# ---- exponentials and logarithms ---------------------------------------------------------------------------------

exp = _function(
    "exp",
    lambda y, x: y,
    "e to the power x.",
    edges=(INF, -INF, 1000.0, -1000.0),
    bounds=increasing(math.exp),
)
exp2 = _function("exp2", lambda y, x: y * math.log(2), "2 to the power x.", bounds=increasing(lambda x: 2.0**x))
expm1 = _function("expm1", lambda y, x: exp(x), "exp(x) - 1, accurate for small x.", bounds=increasing(math.expm1))
log = _function(
    "log",
    lambda y, x: 1.0 / x + overflow(x),
    "Natural logarithm; its derivative at 0 is inf.",
    over=UNIT,
    edges=(0.0, -1.0),
    bounds=increasing(math.log),
    finite=POSITIVE,
    elsewhere=LOG_ELSEWHERE,
)
log2, log10 = (
    _function(
        f"log{base}",
        lambda y, x, base=base: (1.0 / math.log(base)) / x + overflow(x),
        f"Logarithm to base {base}.",
        over=UNIT,
        edges=(0.0,),
        bounds=increasing(function),
        finite=POSITIVE,
        elsewhere=LOG_ELSEWHERE,
    )
    for base, function in ((2, math.log2), (10, math.log10))
)
log1p = _function(
    "log1p",
    lambda y, x: 1.0 / (x + 1.0) + overflow(x),
    "log(1 + x), accurate for small x.",
    over=(-0.5, 2.0),
    edges=(-1.0,),
    bounds=increasing(math.log1p),
    finite=Range(-1.0, above=True),
    elsewhere="log1p(x) is -inf at -1 and nan below",
)

# ---- trigonometric -----------------------------------------------------------------------------------------------

sin = _function("sin", lambda y, x: cos(x), "Sine.", edges=(INF,), bounded=on_reals, bounds=always(-1.0, 1.0))
cos = _function("cos", lambda y, x: neg(sin(x)), "Cosine.", edges=(INF,), bounded=on_reals, bounds=always(-1.0, 1.0))
tan = _function("tan", lambda y, x: 1.0 + y * y, "Tangent.", over=(-1.2, 1.2))
arcsin = _function(
    "arcsin",
    lambda y, x: 1.0 / sqrt(one_minus_square(x)),
    "Inverse sine, in [-π/2, π/2]; its derivative at ±1 is inf.",
    over=(-0.9, 0.9),
    edges=(1.0, -1.0, 2.0),
    finite=WITHIN_ONE,
    elsewhere="its derivative at -1 and 1 is infinite, and it is nan outside",
)
arccos = _function(
    "arccos",
    lambda y, x: -1.0 / sqrt(one_minus_square(x)),
    "Inverse cosine, in [0, π]; its derivative at ±1 is -inf.",
    over=(-0.9, 0.9),
    edges=(1.0, -1.0, 2.0),
    finite=WITHIN_ONE,
    elsewhere="its derivative at -1 and 1 is infinite, and it is nan outside",
)
arctan = _function(
    "arctan",
    lambda y, x: 1.0 / (1.0 + x * x),
    "Inverse tangent, in [-π/2, π/2].",
    edges=(INF, -INF),
    bounded=on_reals,
    bounds=increasing(math.atan),
)

OVER_HYPOTENUSE = Formula(["x"], "1.0 / hypot(1.0, x)")

# ---- hyperbolic --------------------------------------------------------------------------------------------------

sinh = _function("sinh", lambda y, x: cosh(x), "Hyperbolic sine.", cost=25, bounds=increasing(math.sinh))
cosh = _function("cosh", lambda y, x: sinh(x), "Hyperbolic cosine.", cost=25, bounds=always(1.0, INF))
tanh = _function(
    "tanh",
    lambda y, x: 1.0 - y * y if is_complex(x.dtype) else sech2(x),
    "Hyperbolic tangent.",
    edges=(INF, -INF),
    cost=25,
    bounded=on_reals,
    bounds=always(-1.0, 1.0),
)


sech2 = elementwise(
    "sech2",
    scalar_sech2,
    "sech2({0})",
    (lambda y, x: -2.0 * (tanh(x) * y),),
    domain=REALS,
    over=(LINE,),
    edges=((0.0,), (INF,), (-INF,), (20.0,), (-370.0,)),
    cost=30,
    bounded=everywhere,
    bounds=always(0.0, 1.0),
    doc="Square of the hyperbolic secant, 1 - tanh(x)², with the relative accuracy that the difference loses.",
)
arcsinh = _function(
    "arcsinh",
    lambda y, x: 1.0 / sqrt(one(x) + x * x) if is_complex(x.dtype) else OVER_HYPOTENUSE(x),
    "Inverse hyperbolic sine.",
    cost=30,
    bounds=increasing(math.asinh),
)
arccosh = _function(
    "arccosh",
    lambda y, x: 1.0 / absorbing_mul(sqrt(x - 1.0), sqrt(x + one(x))),
    "Inverse hyperbolic cosine, for x >= 1; its derivative at 1 is inf.",
    over=(1.2, 3.0),
    edges=(1.0, 0.0),
    cost=30,
    bounds=always(0.0, INF),
    finite=Range(1.0, above=True),
    elsewhere="its derivative at 1 is inf, and it is nan below",
)
arctanh = _function(
    "arctanh",
    lambda y, x: 1.0 / one_minus_square(x),
    "Inverse hyperbolic tangent, for -1 < x < 1.",
    over=(-0.9, 0.9),
    edges=(1.0, -1.0, 2.0),
    cost=30,
    finite=WITHIN_ONE,
    elsewhere="it is infinite at -1 and 1, and nan outside",
)
