"""The rules of factorials, binomial coefficients, permutations and polygamma functions, which SciPy computes in Python.

Each is SciPy's own composition of its ufuncs.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any, cast

import numpy as np

from fnad.errors import UnsupportedFunctionError
from fnad.ir.symbol import Symbol
from fnad.numpy.operands import Operand, as_array, broadcast_all, static_int
from fnad.numpy.registry import RULES
from fnad.numpy.special_functions import special_rule
from fnad.numpy.ufuncs import add, less, multiply, subtract
from fnad.ops.comparison import bitwise_not, select
from fnad.ops.requirement import require
from fnad.ops.shape import zeros_like
from fnad.scalar.scipy_ufunc import scipy_function
from fnad.scipy.original import original


def apply(name: str, *operands: Operand) -> Symbol:
    """Return what a ufunc of SciPy makes of the operands."""
    ufunc = cast("np.ufunc", scipy_function(name))
    rule = RULES.get(ufunc) or special_rule(ufunc)
    assert rule is not None, f"scipy.special.{name} has no rule"
    return rule(*operands)


@original("scipy.special")
def polygamma(n: Any, x: Any) -> Symbol:
    """Return the n-th derivative of digamma at x, n and x broadcast (DLMF 5.15.1, 25.11.12).

    The derivative in x is that of order n + 1; there is none in n, an integer. The result is f64.

    >>> float(polygamma(1, 1.0))
    1.6449340668482266
    """
    order, argument = as_array(n), as_array(x)
    above = add(order, 1)
    sign = RULES[np.power](-1.0, above)
    general = multiply(multiply(sign, apply("gamma", add(order, 1.0))), apply("_zeta", above, argument))
    return RULES[np.where](RULES[np.equal](order, 0), apply("psi", argument), general)


@original("scipy.special")
def multigammaln(a: Any, d: Any) -> Symbol:
    """Return log Γ_d(a) of the multivariate gamma function of dimension d, an int (DLMF 35.3.4).

    The result is f64 in a's shape. Raises ValueError where a is not larger than (d - 1)/2.

    >>> multigammaln(2.0, 2)
    np.float64(0.4515827052894548)
    """
    dimension, x = static_int(d, "a dimension"), as_array(a)
    least = 0.5 * (dimension - 1)
    x = require(
        x, RULES[np.greater](x, least), message=f"condition a > 0.5 * (d-1) ({least}) not met", remedy="take a larger a"
    )
    terms = [apply("gammaln", subtract(x, 0.5 * j)) for j in range(dimension)]
    return add(np.float64(dimension * (dimension - 1) * 0.25 * math.log(math.pi)), reduce(add, terms))


@original("scipy.special")
def factorial(n: Any, exact: bool = False, extend: str = "zero") -> Symbol:
    """Return Γ(n + 1), 0 for negative n; a traced n takes neither `exact` nor another `extend`.

    >>> factorial(3.0)
    np.float64(6.0)
    """
    refuse_exact("factorial", exact)
    if extend != "zero":
        raise UnsupportedFunctionError(f"scipy.special.factorial has no rule for extend={extend!r}")
    x = as_array(n)
    return zero_where(less(x, 0), apply("gamma", add(x, 1.0)))


@original("scipy.special")
def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Symbol:  # noqa: N803 - SciPy's name
    """Return the number of combinations of N things taken k at a time, 0 outside 0 <= k <= N (DLMF 1.2.6).

    N and k broadcast and may be fractions; the result is f64, or f32 of f32 operands. A traced operand does not take
    `exact`.

    >>> comb(5, 2)
    np.float64(10.0)
    """
    refuse_exact("comb", exact)
    total, chosen = as_array(N), as_array(k)
    if repetition:
        return apply("binom", subtract(add(total, chosen), 1), chosen)
    return zero_where(outside(total, chosen), apply("binom", total, chosen))


@original("scipy.special")
def perm(N: Any, k: Any, exact: bool = False) -> Symbol:  # noqa: N803 - SciPy's name
    """Return the number of permutations of N things taken k at a time, 0 outside 0 <= k <= N (DLMF 5.2.5).

    N and k broadcast and may be fractions; the result is f64, or f32 of f32 operands. A traced operand does not take
    `exact`.

    >>> perm(5, 2)
    np.float64(20.0)
    """
    refuse_exact("perm", exact)
    total, chosen = as_array(N), as_array(k)
    return zero_where(outside(total, chosen), apply("poch", add(subtract(total, chosen), 1), chosen))


def outside(total: Symbol, chosen: Symbol) -> Symbol:
    """Say where not 0 <= chosen <= total; where there is a nan, too."""
    at_least = RULES[np.greater_equal]
    conditions = (at_least(total, chosen), at_least(total, 0), at_least(chosen, 0))
    return bitwise_not(reduce(RULES[np.logical_and], conditions))


def zero_where(mask: Symbol, x: Symbol) -> Symbol:
    """Return x, 0 where the mask is true."""
    mask, x = broadcast_all([mask, x])
    return select(mask, zeros_like(x), x)


def refuse_exact(name: str, exact: bool) -> None:
    """Raise where an integer result is asked for."""
    if exact:
        raise UnsupportedFunctionError(
            f"scipy.special.{name} has no rule for exact=True", remedy="leave it out: the result is then a float"
        )
