"""Constant folding: an equation whose result is one known number everywhere becomes that number.

A constant is a scalar or a broadcast scalar: folding never makes an array that the program would have to store.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.ir.builder import current_builder
from fnad.ir.primitive import ArgFold, Concatenation, Fold, IndexMap, Primitive, Scalar
from fnad.ir.program import Literal, Params
from fnad.ir.size import sizes_in
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.ops.shape import broadcast_in_dim, broadcast_to, iota, reduce_sum
from fnad.transforms.rewrite import application, constant_of, head_of

SMALL = 64
"""The most elements for which an equation on known arrays is evaluated, in case its result is uniform."""

FOLDED = Scalar, IndexMap, Concatenation, Fold, ArgFold
"""The kinds of equations that are evaluated."""

KNOWN = frozenset((Literal, broadcast_in_dim, iota))
"""The heads of values that are literals, may be broadcast ones, or are indices."""

EXACT_INTEGER = 2**53
"""Integers below it are exact in f64, in which floating-point sums are accumulated."""


def fold_constants(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    """The constant that an equation computes, if it is one."""
    if not KNOWN.issuperset(map(head_of, operands)) or not isinstance(primitive.lower, FOLDED):
        return None
    if primitive is broadcast_in_dim and isinstance(operands[0].atom, Literal):
        return None  # is a constant as it should be
    value = _everywhere(primitive, operands, params)
    if value is None:
        value = _uniform(primitive, operands, params)
    if value is None:
        return None
    aval = primitive.infer(*[operand.aval for operand in operands], **params)
    assert isinstance(aval, Aval)
    return broadcast_to(current_builder().literal(value), aval.shape)


def _each(known: Callable[[Symbol], Any], operands: Sequence[Symbol]) -> list[Any] | None:
    """The known value of each operand; None unless all are known."""
    values: list[Any] = []
    for operand in operands:
        value = known(operand)
        if value is None:
            return None
        values.append(value)
    return values


def _everywhere(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> np.generic | None:
    """The number that an equation on constants of any size is everywhere."""
    values = _each(constant_of, operands)
    if values is None:
        return None
    match primitive.lower:
        case Scalar():
            return _evaluate(primitive, values, params)[()]
        case IndexMap(_, guard) if guard is None or not any(values[0].tobytes()):
            return values[0]
        case Concatenation() if len({value.tobytes() for value in values}) == 1:
            return values[0]
        case Fold() if primitive is reduce_sum:
            return sum_of_equal(values[0], math.prod(operands[0].shape[axis] for axis in params["axes"]))
        case _:
            return None


def sum_of_equal(value: np.generic, count: int) -> np.generic | None:
    """The sum of `count` equal numbers where no order of adding them can round; otherwise None."""
    if value.dtype.kind in "iu":
        return np.uint64(int(value) * count % 2**64).astype(value.dtype)
    if value.dtype.kind != "f" or not np.isfinite(value) or (value == 0 and np.signbit(value)):
        return None
    numerator, _ = float(value).as_integer_ratio()
    odd = abs(numerator) // max(numerator & -numerator, 1)
    return value.dtype.type(float(value) * count) if odd * count < EXACT_INTEGER else None


def _uniform(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> np.generic | None:
    """The number that an equation on small known arrays is everywhere."""
    arrays = _each(_small_array, operands)
    if arrays is None:
        return None
    found = np.asarray(_evaluate(primitive, arrays, params))
    same = 0 < found.size <= SMALL and len({element.tobytes() for element in found.flat}) == 1
    return found.flat[0] if same else None


def _small_array(symbol: Symbol) -> Any:
    """The array that a constant or an index is, if it is small."""
    if sizes_in([symbol.shape]) or symbol.aval.size > SMALL:
        return None
    value = constant_of(symbol)
    if value is not None:
        return np.broadcast_to(value, symbol.shape)
    found = application(symbol, iota)
    return None if found is None else iota.evaluate(**found[1])


def _evaluate(primitive: Primitive, values: Sequence[Any], params: Params) -> Any:
    with np.errstate(all="ignore"):
        return primitive.evaluate(*values, **params)
