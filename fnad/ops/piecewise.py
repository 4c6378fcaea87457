"""Functions made of smooth pieces: absolute value, extrema of two values, rounding, remainders.

At a kink the derivative is the mean of the one-sided ones: abs'(0) = 0, and where `maximum` and `minimum` tie each
operand gets one half. Rounding has derivative 0 wherever it has one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.ir.primitive import NonDifferentiable, Primitive, everywhere
from fnad.ir.ranges import NONZERO, Bounds, Range, Singular, always
from fnad.ir.symbol import Symbol
from fnad.ir.types import DTYPES
from fnad.ops.arithmetic import mul, neg
from fnad.ops.comparison import eq, select
from fnad.ops.constructors import LINE, ORDERED, REALS, Domain, elementwise
from fnad.ops.shape import full_like, ones_like, zeros_like

NAN, INF = float("nan"), float("inf")
SIGNED: Domain = REALS | frozenset(dtype for dtype in DTYPES.values() if dtype.kind == "i")

# ---- sign and magnitude ------------------------------------------------------------------------------------------

sign = elementwise(
    "sign",
    np.sign,
    "sign({0})",
    NonDifferentiable(),
    domain=ORDERED,
    over=(LINE,),
    edges=((0.0,), (-0.0,), (NAN,), (-INF,)),
    cost=2,
    bounded=everywhere,
    bounds=always(-1.0, 1.0),
    doc="-1, 0 or 1; nan of a nan.",
)

abs_ = elementwise(
    "abs",
    np.abs,
    "abs({0})",
    (lambda y, x: sign(x),),
    domain=SIGNED,
    over=(LINE,),
    edges=((0.0,), (-0.0,), (-INF,)),
    bounded=everywhere,
    bounds=Range.magnitude,
    doc="Absolute value of a real number; its derivative at 0 is 0.",
)

copysign = elementwise(
    "copysign",
    np.copysign,
    "copysign({0}, {1})",
    (lambda z, x, y: mul(sign(x), copysign(ones_like(y), y)), None),
    domain=REALS,
    over=(LINE, LINE),
    edges=((0.0, -1.0), (1.0, -0.0)),
    bounded=everywhere,
    doc="The magnitude of the first operand with the sign of the second.",
)

# ---- extrema -----------------------------------------------------------------------------------------------------


def share(result: Symbol, mine: Symbol, other: Symbol) -> Symbol:
    """The part of an extremum's derivative that is mine: 1 where the result is mine, one half in a tie."""
    tie = select(eq(mine, other), full_like(mine, 0.5), ones_like(mine))
    return select(eq(mine, result), tie, zeros_like(mine))


def _extremum(name: str, evaluate: Callable[..., Any], bounds: Bounds, doc: str) -> Primitive:
    return elementwise(
        name,
        evaluate,
        f"{name}({{0}}, {{1}})",
        (share, lambda z, x, y: share(z, y, x)),
        domain=ORDERED,
        over=(LINE, LINE),
        edges=((1.0, 1.0), (0.0, -0.0), (NAN, 1.0), (1.0, NAN), (NAN, NAN), (INF, INF)),
        finite=True,
        cost=2,
        bounded=everywhere,
        bounds=bounds,
        doc=doc,
    )


maximum = _extremum(
    "maximum", np.maximum, Range.larger, "The larger value; a nan wins. A tie shares the derivative evenly."
)
minimum = _extremum(
    "minimum", np.minimum, Range.smaller, "The smaller value; a nan wins. A tie shares the derivative evenly."
)
fmax = _extremum("fmax", np.fmax, Range.larger, "The larger value; a nan loses. A tie shares the derivative evenly.")
fmin = _extremum("fmin", np.fmin, Range.smaller, "The smaller value; a nan loses. A tie shares the derivative evenly.")

# ---- rounding ----------------------------------------------------------------------------------------------------


def _rounding(name: str, evaluate: Callable[..., Any], doc: str) -> Primitive:
    return elementwise(
        name,
        evaluate,
        f"{name}({{0}})",
        NonDifferentiable(),
        domain=REALS,
        over=(LINE,),
        edges=((0.5,), (-0.5,), (1.5,), (2.5,), (-0.0,), (INF,), (NAN,)),
        doc=doc,
    )


floor = _rounding("floor", np.floor, "The largest integer that is not larger.")
ceil = _rounding("ceil", np.ceil, "The smallest integer that is not smaller.")
rint = _rounding("rint", np.rint, "The nearest integer, the even one in a tie.")
trunc = _rounding("trunc", np.trunc, "The integer next towards zero.")

# ---- division with rest ------------------------------------------------------------------------------------------

DIVISOR = Singular(1, NONZERO, "the rest of a division by 0 is nan")
RESTS = ((5.0, 3.0), (-5.0, 3.0), (6.0, 3.0), (-5.0, -3.0), (1.0, 0.0), (1.0, INF))

floor_divide = elementwise(
    "floor_divide",
    np.floor_divide,
    "floor_divide({0}, {1})",
    NonDifferentiable(),
    domain=ORDERED,
    edges=RESTS,
    cost=12,
    doc="The floor of the quotient; of integers, 0 where the divisor is 0.",
)

remainder = elementwise(
    "remainder",
    np.remainder,
    "remainder({0}, {1})",
    (lambda r, x, y: ones_like(x), lambda r, x, y: neg(floor_divide(x, y))),
    domain=ORDERED,
    over=((2.3, 2.9), (0.8, 1.1)),
    edges=RESTS,
    cost=12,
    singular=(DIVISOR,),
    doc="x - floor(x / y) * y, with the sign of the divisor; of integers, 0 where the divisor is 0.",
)

fmod = elementwise(
    "fmod",
    np.fmod,
    "fmod({0}, {1})",
    (lambda r, x, y: ones_like(x), lambda r, x, y: neg(rint((x - r) / y))),
    domain=ORDERED,
    over=((-2.9, -2.3), (0.8, 1.1)),
    edges=RESTS,
    cost=12,
    singular=(DIVISOR,),
    doc="x - trunc(x / y) * y, with the sign of the dividend; of integers, 0 where the divisor is 0.",
)
