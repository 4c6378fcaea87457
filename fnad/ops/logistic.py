"""The logistic function and its inverse, the logarithm of a sum of exponentials, and terms of one with weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.ir.primitive import Push, everywhere
from fnad.ir.ranges import Range, Singular, always
from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import strong_mul
from fnad.ops.comparison import eq, gt, isinf, select
from fnad.ops.constructors import LINE, REALS, UNIT, elementwise
from fnad.ops.elementary import exp, tanh
from fnad.ops.piecewise import share
from fnad.ops.shape import zeros_like
from fnad.ops.special_function import INF, native


def _logistic(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, x.dtype.type(1)) / (1 + e)


logistic = elementwise(
    "logistic",
    _logistic,
    "select({0} < {dtype}(0), exp(-abs({0})), {dtype}(1)) / ({dtype}(1) + exp(-abs({0})))",
    (lambda y, x: logistic_slope(x),),
    domain=REALS,
    over=(LINE,),
    edges=((0.0,), (-1000.0,), (1000.0,), (INF,), (-INF,)),
    cost=25,
    bounded=everywhere,
    bounds=always(0.0, 1.0, above=True),
    doc="The sigmoid 1 / (1 + exp(-x)).",
)
logistic_slope = elementwise(
    "logistic_slope",
    lambda x: np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))) ** 2,
    "exp(-abs({0})) / (({dtype}(1) + exp(-abs({0}))) * ({dtype}(1) + exp(-abs({0}))))",
    (lambda y, x: -y * tanh(0.5 * x),),
    domain=REALS,
    over=(LINE,),
    edges=((0.0,), (-700.0,), (1000.0,), (INF,), (-INF,)),
    cost=25,
    doc="The derivative of the sigmoid, whose exponential the sigmoid computes too.",
)
logit = native(
    "logit(p)",
    "The logarithm of the odds p / (1 - p).",
    "scipy_logit({0})",
    domain=REALS,
    edges=((0.0,), (1.0,), (0.5,), (-1.0,), (INF,)),
    cost=40,
    singular=(Singular(0, Range(0.0, 1.0, above=True, below=True), "logit(p) is infinite at 0 and 1, nan outside"),),
    p="1.0 / absorbing_mul(p, 1.0 - p)",
)


def _weight(result: Symbol, mine: Symbol, other: Symbol) -> Symbol:
    """exp(mine - result); where the sum is infinite, what the limit is: 0 of -inf, else as a maximum shares."""
    at_infinity = select(gt(result, zeros_like(result)), share(result, mine, other), zeros_like(result))
    return select(isinf(result), at_infinity, logistic(mine - other))


logaddexp = elementwise(
    "logaddexp",
    np.logaddexp,
    "select({0} == {1}, {0} + {dtype}(" + repr(math.log(2)) + "), maximum({0}, {1}) + log1p(exp(-abs({0} - {1}))))",
    (_weight, lambda r, x, y: _weight(r, y, x)),
    domain=REALS,
    over=(LINE, LINE),
    edges=((0.0, 0.0), (-INF, 0.0), (-INF, -INF), (INF, INF), (INF, 0.0), (1000.0, -1000.0)),
    cost=45,
    doc="log(exp(x) + exp(y)) without overflow; its derivative where both are -inf is 0.",
)


def _push_weighted(results: Any, primals: Any, tangents: Any) -> list[Symbol | None]:
    (y,), (w, c), (dw, dc) = results, primals, tangents
    of_c = None if dc is None else strong_mul(dc, y)
    if dw is None:
        return [of_c]
    of_w = select(eq(w, zeros_like(w)), strong_mul(dw, exp(c)), strong_mul(dw, y) / w)
    return [of_w if of_c is None else of_w + of_c]


weighted_exp = elementwise(
    "weighted_exp",
    lambda w, c: np.exp(np.log(w) + c),
    "exp(log({0}) + {1})",
    Push(_push_weighted),
    domain=REALS,
    over=(UNIT, LINE),
    edges=((0.0, 1.0), (0.0, -INF), (0.0, 1000.0), (-1.0, 0.0), (1e-300, 720.0)),
    cost=40,
    doc="exp(log(w) + c), whose derivative in w is exp(c) where w is 0, too.",
)
