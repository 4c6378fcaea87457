"""Parameters of distributions: in double precision, of one shape, and checked, as SciPy has them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from fnad.errors import DtypeError
from fnad.ir.program import Literal
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64
from fnad.numpy.operands import as_symbol, is_python_number, to_dtype
from fnad.ops.autodiff import without_formula
from fnad.ops.comparison import bitwise_and, gt, lt, select
from fnad.ops.shape import full_like, ones_like, zeros_like

INF, NAN = float("inf"), float("nan")


def real_symbol(value: Any) -> Symbol:
    """An operand in double precision, which SciPy computes in; complex numbers are refused."""
    symbol = as_symbol(value)
    if symbol.dtype.kind == "c":
        raise DtypeError(f"distributions do not take {symbol.dtype}", remedy="take its real part")
    return to_dtype(symbol, F64)


def without(value: Any, default: float) -> list[Any]:
    """An operand in a list, which is empty where it is a Python number that changes nothing."""
    return [] if is_python_number(value) and value == default else [value]


def is_positive_number(value: Any) -> bool:
    """Whether an operand is a positive Python number, which needs no check at run time."""
    return is_python_number(value) and not isinstance(value, complex) and value > 0


def positive(symbol: Symbol) -> Symbol:
    """Where an operand is positive."""
    return gt(symbol, zeros_like(symbol))


def constant_in(function: str, operand: str, symbol: Symbol) -> Symbol:
    """An operand in which a function has no formula for its derivative."""
    if isinstance(symbol.atom, Literal):
        return symbol
    return without_formula(symbol, function=function, operand=operand)


def checked(value: Symbol, conditions: Sequence[Symbol]) -> Symbol:
    """A value, nan with derivative nan where a condition on the parameters is false."""
    if not conditions:
        return value
    valid = reduce(bitwise_and, conditions)
    return value * select(valid, ones_like(value), full_like(value, NAN))


def within(value: Symbol, z: Symbol, support: tuple[Any, Any], below: float, above: float) -> Symbol:
    """A value in the support, constants below and above it; ends are numbers or symbols."""
    low, high = support
    if isinstance(low, Symbol) or low > -INF:
        value = select(lt(z, _end(low, z)), full_like(z, below), value)
    if isinstance(high, Symbol) or high < INF:
        value = select(gt(z, _end(high, z)), full_like(z, above), value)
    return value


def _end(end: Any, z: Symbol) -> Symbol:
    return end if isinstance(end, Symbol) else full_like(z, end)
