"""The incomplete gamma and beta functions, their inverses, and their slopes in the parameters by quadrature."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from fnad.ir.axes import Elementwise
from fnad.ir.primitive import Library, Partials, Sample, declare
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.ops.arithmetic import neg
from fnad.ops.constructors import REALS, UNIT, by_name, elementwise, infer_elementwise, random_array
from fnad.ops.entropy import xlog1py, xlogy
from fnad.ops.formula import formula
from fnad.ops.gamma import beta_density, gamma_density, hurwitz, psi
from fnad.ops.special_function import POSITIVE, special
from fnad.scalar.quadrature import Orders, beta_slope, differentiated, gamma_slope


def polygamma(n: int, x: Symbol) -> Symbol:
    """The n-th derivative of digamma (DLMF 25.11.12)."""
    return psi(x) if n == 0 else hurwitz(n + 1.0, x) * ((-1.0) ** (n + 1) * math.factorial(n))


# ---- slopes in the parameters ------------------------------------------------------------------------------------
# Their slopes in x are those of the densities in the parameters.


def _gamma_slope_in_x(y: Symbol, a: Symbol, x: Symbol, *, order: int) -> Symbol:
    def times(orders: Orders, y: Symbol) -> Symbol:
        change = neg(polygamma(orders[0] - 1, a) * y)
        return xlogy(y, x) + change if orders == (1,) else change

    return differentiated((order,), gamma_density(a, x), times)


def _beta_slope_in_x(y: Symbol, a: Symbol, b: Symbol, x: Symbol, *, orders: Orders) -> Symbol:
    def times(orders: Orders, y: Symbol) -> Symbol:
        i, j = orders
        change = polygamma(i + j - 1, a + b) * y
        if not (i and j):
            change = change - polygamma(i + j - 1, a if i else b) * y
        if i + j > 1:
            return change
        return change + (xlogy(y, x) if i else xlog1py(y, neg(x)))

    return differentiated(orders, beta_density(a, b, x), times)


def _infer(name: str, arity: int) -> Callable[..., Aval]:
    infer = infer_elementwise(name, arity, REALS, None)
    return lambda *avals, **orders: infer(*avals)


def _gamma_samples() -> Iterable[Sample]:
    rng = np.random.default_rng(0)
    for dtype in by_name(REALS):
        for order in (1, 2):
            yield Sample(tuple(random_array(rng, (2, 3), dtype, POSITIVE) for _ in range(2)), {"order": order})
    a, x = np.array([2.0, 2.0, 0.5, 2.0, -1.0, 30.0]), np.array([0.0, np.inf, 1.0, np.nan, 1.0, 20.0])
    yield Sample((a, x), {"order": 1}, smooth=False)


def _beta_samples() -> Iterable[Sample]:
    rng = np.random.default_rng(0)
    for dtype in by_name(REALS):
        for orders in ((1, 0), (0, 1), (1, 1)):
            intervals = (POSITIVE, POSITIVE, UNIT)
            yield Sample(tuple(random_array(rng, (2, 3), dtype, i) for i in intervals), {"orders": orders})
    a, x = np.array([2.0, 2.0, 0.5, 2.0, -1.0, 30.0]), np.array([0.0, 1.0, 0.1, np.nan, 0.5, 0.9])
    yield Sample((a, a[::-1].copy(), x), {"orders": (1, 0)}, smooth=False)


gammainc_slope = declare(
    "gammainc_slope",
    _infer("gammainc_slope", 2),
    gamma_slope,
    Partials((lambda y, a, x, *, order: gammainc_slope(a, x, order=order + 1), _gamma_slope_in_x)),
    Library(raises=False),
    _gamma_samples,
    "The derivative of the incomplete gamma function P(a, x) of an `order` of at least 1 in a.",
    axes=Elementwise(),
)
betainc_slope = declare(
    "betainc_slope",
    _infer("betainc_slope", 3),
    beta_slope,
    Partials(
        (
            lambda y, a, b, x, *, orders: betainc_slope(a, b, x, orders=(orders[0] + 1, orders[1])),
            lambda y, a, b, x, *, orders: betainc_slope(a, b, x, orders=(orders[0], orders[1] + 1)),
            _beta_slope_in_x,
        )
    ),
    Library(raises=False),
    _beta_samples,
    "The derivative of the incomplete beta function I_x(a, b) of `orders`, not both 0, in a and b.",
    axes=Elementwise(),
)

gammainc_a = elementwise(
    "gammainc_a",
    partial(gamma_slope, order=1),
    "gammainc_a({0}, {1})",
    (lambda y, a, x: gammainc_slope(a, x, order=2), partial(_gamma_slope_in_x, order=1)),
    domain=REALS,
    over=(POSITIVE, POSITIVE),
    edges=((2.0, 0.0), (2.0, np.inf), (0.5, 1.0), (2.0, np.nan), (-1.0, 1.0), (30.0, 20.0)),
    cost=100,
    doc="The derivative of the incomplete gamma function P(a, x) in a.",
)
formula("betainc_a(a, b, x)", "betainc_slope(a, b, x, orders=(1, 0))")
formula("betainc_b(a, b, x)", "betainc_slope(a, b, x, orders=(0, 1))")

# ---- the functions and their inverses ----------------------------------------------------------------------------

TWO, THREE = (POSITIVE, POSITIVE), (POSITIVE, POSITIVE, UNIT)
EDGES = ((1.0, 0.0), (2.0, 0.0), (0.5, 1.0), (2.0, 30.0))
BETA_EDGES = ((1.0, 1.0, 0.0), (1.0, 1.0, 1.0), (2.0, 3.0, 0.0), (2.0, 3.0, 1.0), (0.5, 2.0, 0.01))

# fmt: off
gammainc = special("gammainc(a, x)", "Regularised lower incomplete gamma function P(a, x); DLMF 8.8.13.", TWO,
                   edges=EDGES, a="gammainc_a(a, x)", x="gamma_density(a, x)")
gammaincc = special("gammaincc(a, x)", "Regularised upper incomplete gamma function Q(a, x); DLMF 8.8.13.", TWO,
                    edges=EDGES, a="-gammainc_a(a, x)", x="-gamma_density(a, x)")
gammaincinv = special("gammaincinv(a, p)", "The inverse of P(a, x) in x.", (POSITIVE, UNIT),
                      a="-(gammainc_a(a, y) / gamma_density(a, y))", p="1.0 / gamma_density(a, y)")
gammainccinv = special("gammainccinv(a, p)", "The inverse of Q(a, x) in x.", (POSITIVE, UNIT),
                       a="-(gammainc_a(a, y) / gamma_density(a, y))", p="-1.0 / gamma_density(a, y)")
betainc = special("betainc(a, b, x)", "Regularised incomplete beta function I_x(a, b); DLMF 8.17.1.", THREE,
                  edges=BETA_EDGES, a="betainc_a(a, b, x)", b="betainc_b(a, b, x)", x="beta_density(a, b, x)")
betaincc = special("betaincc(a, b, x)", "1 - I_x(a, b); DLMF 8.17.1.", THREE,
                   edges=BETA_EDGES, a="-betainc_a(a, b, x)", b="-betainc_b(a, b, x)", x="-beta_density(a, b, x)")
betaincinv = special("betaincinv(a, b, p)", "The inverse of I_x(a, b) in x.", THREE,
                     a="-(betainc_a(a, b, y) / beta_density(a, b, y))",
                     b="-(betainc_b(a, b, y) / beta_density(a, b, y))", p="1.0 / beta_density(a, b, y)")
betainccinv = special("betainccinv(a, b, p)", "The inverse of 1 - I_x(a, b) in x.", THREE,
                      a="-(betainc_a(a, b, y) / beta_density(a, b, y))",
                      b="-(betainc_b(a, b, y) / beta_density(a, b, y))", p="-1.0 / beta_density(a, b, y)")
# fmt: on
