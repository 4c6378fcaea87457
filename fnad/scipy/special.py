"""scipy.special: its ufuncs take traced values themselves; what SciPy computes on ordinary arrays alone is here.

>>> import fnad
>>> from fnad.scipy.special import logsumexp
>>> fnad.grad(logsumexp)([0.0, 0.0])
[np.float64(0.5), np.float64(0.5)]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, cast

import numpy as np

from fnad.errors import DtypeError, UnsupportedFunctionError
from fnad.ir.primitive import Partials, Primitive
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, I64, is_inexact
from fnad.numpy.operands import (
    Operand,
    as_array,
    as_symbol,
    broadcast_all,
    common_dtype,
    reduced_axes,
    static_int,
    to_dtype,
)
from fnad.numpy.reductions import MAX, SUM
from fnad.numpy.registry import RULES, UNSET
from fnad.numpy.scipy_ufuncs import special_rule
from fnad.numpy.ufuncs import add, less, subtract
from fnad.ops import arithmetic, bessel
from fnad.ops import softmax as softmax_ops
from fnad.ops.arithmetic import strong_mul, sub
from fnad.ops.autodiff import stop_gradient
from fnad.ops.comparison import bitwise_not, eq, isfinite, select
from fnad.ops.conversion import real
from fnad.ops.elementary import exp, log
from fnad.ops.piecewise import abs_, sign
from fnad.ops.requirement import require
from fnad.ops.shape import broadcast_to, full_like, ones_like, reshape_to, zeros_like
from fnad.scalar.scipy_ufunc import scipy_function
from fnad.scipy.rule import body_of, others_of, rule_of

__all__ = [
    "comb",
    "factorial",
    "log_softmax",
    "logsumexp",
    "multigammaln",
    "perm",
    "polygamma",
    "softmax",
    "softplus",
    "spherical_in",
    "spherical_jn",
    "spherical_kn",
    "spherical_yn",
]

of_scipy = rule_of("scipy.special")

# ---- compositions of ufuncs, as SciPy has them: factorials, binomial coefficients, polygamma functions -----------


def apply(name: str, *operands: Operand) -> Symbol:
    """The result of a ufunc of SciPy on the operands."""
    ufunc = cast("np.ufunc", scipy_function(name))
    rule = RULES.get(ufunc) or special_rule(ufunc)
    assert rule is not None, f"scipy.special.{name} has no rule"
    return rule(*operands)


polygamma = body_of("scipy.special.polygamma")


@of_scipy
def multigammaln(a: Any, d: Any) -> Symbol:
    """The logarithm log Γ_d(a) of the multivariate gamma function of dimension d, an int (DLMF 35.3.4).

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


@of_scipy
def factorial(n: Any) -> Symbol:
    """Γ(n + 1), 0 for negative n; a traced n takes neither `exact` nor another `extend`.

    >>> factorial(3.0)
    np.float64(6.0)
    """
    x = as_array(n)
    return zero_where(less(x, 0), apply("gamma", add(x, 1.0)))


@of_scipy
def comb(N: Any, k: Any, *, repetition: bool = False) -> Symbol:
    """The number of combinations of N things taken k at a time, 0 outside 0 <= k <= N (DLMF 1.2.6).

    N and k broadcast and may be fractions; the result is f64, or f32 of f32 operands. A traced operand does not take
    `exact`.

    >>> comb(5, 2)
    np.float64(10.0)
    """
    total, chosen = as_array(N), as_array(k)
    if repetition:
        return apply("binom", subtract(add(total, chosen), 1), chosen)
    return zero_where(outside(total, chosen), apply("binom", total, chosen))


@of_scipy
def perm(N: Any, k: Any) -> Symbol:
    """The number of permutations of N things taken k at a time, 0 outside 0 <= k <= N (DLMF 5.2.5).

    N and k broadcast and may be fractions; the result is f64, or f32 of f32 operands. A traced operand does not take
    `exact`.

    >>> perm(5, 2)
    np.float64(20.0)
    """
    total, chosen = as_array(N), as_array(k)
    return zero_where(outside(total, chosen), apply("poch", add(subtract(total, chosen), 1), chosen))


def outside(total: Symbol, chosen: Symbol) -> Symbol:
    """The value nan unless 0 <= chosen <= total; nan if one of them is nan."""
    at_least = RULES[np.greater_equal]
    conditions = (at_least(total, chosen), at_least(total, 0), at_least(chosen, 0))
    return bitwise_not(reduce(RULES[np.logical_and], conditions))


def zero_where(mask: Symbol, x: Symbol) -> Symbol:
    """The operand, 0 where the mask is true."""
    mask, x = broadcast_all([mask, x])
    return select(mask, zeros_like(x), x)


# ---- sums of exponentials ----------------------------------------------------------------------------------------


def softplus(x: Any, **options: Any) -> Any:
    """log(1 + exp(x)) without overflow, in x's shape and dtype, f64 for integers.

    >>> softplus(0.0)
    np.float64(0.6931471805599453)
    """
    return np.logaddexp(0, x, **options)


@of_scipy
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """log(Σ b exp(a)) over axes (all if None), without overflow; -inf with derivative 0 where the sum is 0.

    The result has a's dtype, f64 for integers, and a's shape without the axes, or with size 1 there if `keepdims`.
    With `return_sign` it is log|Σ b exp(a)| and the sign of the sum, of real numbers.

    >>> logsumexp([1000.0, 1000.0])
    np.float64(1000.6931471805599)
    """
    if b is None:
        x = as_symbol(a, _inexact(a))
        top = shift(x, axis)
        terms = exp(sub(x, broadcast_to(top, x.shape)))
    else:
        x, weights = broadcast_all([as_symbol(operand, _inexact(a, b)) for operand in (a, b)])
        top = shift(select(eq(weights, zeros_like(x)), full_like(x, -np.inf), x), axis)
        terms = strong_mul(weights, exp(sub(x, broadcast_to(top, x.shape))))
    if return_sign and x.dtype.kind == "c":
        raise DtypeError(f"return_sign has no rule for {x.dtype}", remedy="leave it out: the logarithm has the phase")
    total = SUM(terms, axis, True)
    shape = total.shape if keepdims else SUM(x, axis).shape
    result = reshape_to(_log_total(abs_(total) if return_sign else total, top), shape)
    return (result, reshape_to(sign(total), shape)) if return_sign else result


def _log_total(total: Symbol, top: Symbol) -> Symbol:
    is_zero = eq(total, zeros_like(total))
    result = arithmetic.add(log(select(is_zero, ones_like(total), total)), top)
    return select(is_zero, full_like(total, -np.inf), result)


@of_scipy
def softmax(x: Any, axis: Any = None) -> Symbol:
    """exp(x) / Σ exp(x) over axes (all if None), without overflow, in x's shape and dtype, f64 for integers.

    >>> softmax([0.0, 0.0])
    array([0.5, 0.5])
    """
    return _along_axes(softmax_ops.softmax, x, axis)


@of_scipy
def log_softmax(x: Any, axis: Any = None) -> Symbol:
    """The logarithm of `softmax`, x - log(Σ exp(x)), without overflow, in x's shape and dtype, f64 for integers.

    >>> log_softmax([0.0, 0.0])
    array([-0.69314718, -0.69314718])
    """
    return _along_axes(softmax_ops.log_softmax, x, axis)


def _along_axes(primitive: Primitive, x: Any, axis: Any) -> Symbol:
    """A primitive along axes; the maximum, which is not used, is an error for rows without elements, as in SciPy."""
    a = real_inexact(x)
    MAX(a, axis)
    return primitive(a, axes=tuple(sorted(reduced_axes(axis, a.ndim))))


def shift(x: Symbol, axis: Any) -> Symbol:
    """The largest real part where it is finite, else 0: a constant, on which no result here depends."""
    parts = real(x) if x.dtype.kind == "c" else x
    top = MAX(parts, axis, True, -np.inf if x.aval.size == 0 else UNSET)
    return to_dtype(stop_gradient(select(isfinite(top), top, zeros_like(top))), x.dtype)


def real_inexact(a: Any) -> Symbol:
    """An operand in its real floating-point dtype, f64 of integers."""
    return as_symbol(a, _dtype(a))


def _dtype(*operands: Any) -> Any:
    dtype = _inexact(*operands)
    if dtype.kind == "c":
        raise DtypeError(f"sums of exponentials have no rule for {dtype}", remedy="take the real and imaginary parts")
    return dtype


def _inexact(*operands: Any) -> Any:
    dtype = common_dtype(*operands)
    return F64 if dtype.kind in "biu" else dtype


# ---- spherical Bessel functions ----------------------------------------------------------------------------------


def _spherical(primitive: Primitive) -> Callable[..., Any]:
    def rule(n: Any, z: Any, derivative: bool = False) -> Symbol:
        order, argument = broadcast_all([integer_order(n), inexact(z)])
        value = primitive(order, argument)
        if not derivative:
            return value
        assert isinstance(primitive.derivative, Partials)
        _, partial = primitive.derivative.functions
        assert partial is not None
        return partial(value, order, argument)

    rule.__name__ = rule.__qualname__ = primitive.name
    rule.__doc__ = f"""{primitive.doc.removesuffix(".")}, of integer order n, or its derivative.

    n and z broadcast; the result has z's dtype, real or complex, f64 for integers.
    """
    return of_scipy(rule)


spherical_jn = _spherical(bessel.spherical_jn)
spherical_yn = _spherical(bessel.spherical_yn)
spherical_in = _spherical(bessel.spherical_in)
spherical_kn = _spherical(bessel.spherical_kn)


def integer_order(n: Any) -> Symbol:
    """An order as i64."""
    order = as_array(n)
    if order.dtype.kind not in "iu":
        raise UnsupportedFunctionError(
            "spherical Bessel functions have no rule for an order that is no integer", remedy="give it as an int"
        )
    return to_dtype(order, I64)


def inexact(z: Any) -> Symbol:
    """An argument in its floating-point or complex dtype, f64 of integers."""
    argument = as_array(z)
    return argument if is_inexact(argument.dtype) else to_dtype(argument, F64)


__getattr__ = others_of("scipy.special")
