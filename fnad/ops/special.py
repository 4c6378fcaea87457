"""Error functions, the logistic function and the logarithm of a sum of exponentials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import neg
from fnad.ops.comparison import gt, isinf, select
from fnad.ops.elementary import exp
from fnad.ops.kinds import LINE, REALS, elementwise
from fnad.ops.piecewise import share
from fnad.ops.shape import zeros_like

INF = float("inf")


def _erf(x: Any) -> Any:
    from scipy.special import erf  # noqa: PLC0415 - kept out of `import fnad`

    return erf(x)


def _erfc(x: Any) -> Any:
    from scipy.special import erfc  # noqa: PLC0415 - kept out of `import fnad`

    return erfc(x)


def _bell(x: Symbol) -> Symbol:
    """Return 2/√π exp(-x²), the derivative of erf (DLMF 7.2.1)."""
    return exp(neg(x * x)) * (2.0 / math.sqrt(math.pi))


erf = elementwise(
    "erf",
    _erf,
    "erf({0})",
    (lambda y, x: _bell(x),),
    domain=REALS,
    over=(LINE,),
    edges=((0.0,), (INF,), (-INF,)),
    cost=30,
    doc="Error function.",
)

erfc = elementwise(
    "erfc",
    _erfc,
    "erfc({0})",
    (lambda y, x: neg(_bell(x)),),
    domain=REALS,
    over=(LINE,),
    edges=((0.0,), (INF,), (20.0,)),
    cost=30,
    doc="Complementary error function, 1 - erf(x), accurate for large x.",
)

logistic = elementwise(
    "logistic",
    lambda x: np.true_divide(x.dtype.type(1), x.dtype.type(1) + np.exp(-x)),
    "{dtype}(1) / ({dtype}(1) + exp(-{0}))",
    (lambda y, x: y * (1.0 - y),),
    domain=REALS,
    over=(LINE,),
    edges=((0.0,), (-1000.0,), (1000.0,), (INF,), (-INF,)),
    cost=25,
    doc="1 / (1 + exp(-x)).",
)


def _weight(result: Symbol, mine: Symbol, other: Symbol) -> Symbol:
    """Return exp(mine - result); where the sum is infinite, what the limit is: 0 of -inf, else as a maximum shares."""
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
