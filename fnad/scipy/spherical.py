"""The rules of the spherical Bessel functions of integer order, and of their derivatives."""

from __future__ import annotations

from typing import Any

from fnad.errors import UnsupportedFunctionError
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, I64, is_inexact
from fnad.numpy.operands import as_array, broadcast_all, to_dtype
from fnad.ops import bessel
from fnad.ops.bessel import Spherical
from fnad.scipy.original import original


def evaluated(family: Spherical, n: Any, z: Any, derivative: bool) -> Symbol:
    """Return a function of order n at z, or its derivative."""
    order, argument = broadcast_all([integer_order(n), inexact(z)])
    return (family.slope if derivative else family.value)(order, argument)


def integer_order(n: Any) -> Symbol:
    """Return an order as i64."""
    order = as_array(n)
    if order.dtype.kind not in "iu":
        raise UnsupportedFunctionError(
            "spherical Bessel functions have no rule for an order that is no integer", remedy="give it as an int"
        )
    return to_dtype(order, I64)


def inexact(z: Any) -> Symbol:
    """Return an argument in its floating-point or complex dtype, f64 of integers."""
    argument = as_array(z)
    return argument if is_inexact(argument.dtype) else to_dtype(argument, F64)


@original("scipy.special")
def spherical_jn(n: Any, z: Any, derivative: bool = False) -> Any:
    """Return the spherical Bessel function of the first kind of integer order n, or its derivative (DLMF 10.51.1).

    n and z broadcast; the result has z's dtype, real or complex, f64 for integers.

    >>> spherical_jn(0, 0.0)
    np.float64(1.0)
    """
    return evaluated(bessel.spherical_jn, n, z, derivative)


@original("scipy.special")
def spherical_yn(n: Any, z: Any, derivative: bool = False) -> Any:
    """Return the spherical Bessel function of the second kind of integer order n, or its derivative (DLMF 10.51.1).

    n and z broadcast; the result has z's dtype, real or complex, f64 for integers.

    >>> spherical_yn(0, 1.0)
    np.float64(-0.5403023058681398)
    """
    return evaluated(bessel.spherical_yn, n, z, derivative)


@original("scipy.special")
def spherical_in(n: Any, z: Any, derivative: bool = False) -> Any:
    """Return the modified spherical Bessel function of the first kind of order n, or its derivative (DLMF 10.51.5).

    n, an integer, and z broadcast; the result has z's dtype, real or complex, f64 for integers.

    >>> spherical_in(0, 0.0)
    np.float64(1.0)
    """
    return evaluated(bessel.spherical_in, n, z, derivative)


@original("scipy.special")
def spherical_kn(n: Any, z: Any, derivative: bool = False) -> Any:
    """Return the modified spherical Bessel function of the second kind of order n, or its derivative (DLMF 10.51.5).

    n, an integer, and z broadcast; the result has z's dtype, real or complex, f64 for integers.

    >>> spherical_kn(0, 0.0)
    np.float64(inf)
    """
    return evaluated(bessel.spherical_kn, n, z, derivative)
