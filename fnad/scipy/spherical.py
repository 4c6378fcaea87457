"""The rules of the spherical Bessel functions of integer order, and of their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fnad.errors import UnsupportedFunctionError
from fnad.ir.primitive import Partials, Primitive
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, I64, is_inexact
from fnad.numpy.operands import as_array, broadcast_all, to_dtype
from fnad.ops import bessel
from fnad.scipy.original import original


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
    return original("scipy.special")(rule)


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
