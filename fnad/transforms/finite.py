"""Which values are never inf or nan, whatever the inputs are; the inputs themselves may be either.

That decides where the strong product of reverse mode may become a plain one (see Note [Strong zero] in
`fnad/ops/arithmetic.py`). It also may where the cotangent is not finite, and hence not 0, wherever the partial is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import permutations

import numpy as np

from fnad.ir.axes import Elementwise
from fnad.ir.primitive import Concatenation, DynamicSlice, DynamicUpdate, Gather, IndexMap, Primitive
from fnad.ir.program import Atom, Equation, Params
from fnad.ir.symbol import Symbol
from fnad.ir.types import Dtype, is_inexact
from fnad.ops.arithmetic import add, div, mul, strong_mul, sub
from fnad.transforms.rewrite import application, constant_of, definition, operands_of

MOVING = IndexMap | Concatenation | Gather | DynamicSlice | DynamicUpdate
"""Every element of the result is an element of an operand, or zero."""

DEPTH = 8
"""The number of equations through which a value is traced back, to bound the search."""


def is_finite(symbol: Symbol, depth: int = DEPTH) -> bool:
    """True if no element can ever be inf or nan."""
    if not is_inexact(symbol.dtype):
        return True
    value = constant_of(symbol)
    if value is not None:
        return bool(np.isfinite(value))
    found = definition(symbol)
    if found is None or depth == 0:
        return False  # an input, or an unfinished search: not finite is the safe answer
    primitive, operands = found.primitive, operands_of(symbol, found)
    dtypes = [operand.dtype for operand in operands]
    # Addition is not here: even of finite operands its result overflows.
    keeps = isinstance(primitive.lower, MOVING) or primitive.bounded(symbol.dtype, *dtypes)
    return keeps and all(is_finite(operand, depth - 1) for operand in operands)


MOST_EQUATIONS = 32
"""The number of equations that are searched for a value, to bound the search."""


def plain(primitive: Primitive, operands: Sequence[Symbol], _: Params) -> Symbol | None:
    """A strong product as a plain one, if its cotangent is not 0 where its partial is inf or nan.

    The cotangent of a square of a polynomial, for example, is computed from the variables that are its partials. A
    partial that is multiplied by a constant may overflow by that, so that the constant is the last factor.
    """
    if primitive is not strong_mul:
        return None
    ct, partial = operands
    if _carries(ct, partial):
        return mul(ct, partial)
    product = application(partial, mul) if partial.dtype.kind == "f" else None
    for one, other in () if product is None else permutations(product[0]):
        k = constant_of(other)
        if k is not None and np.isfinite(k) and abs(np.frexp(k)[1]) <= 100 and _carries(ct, one):
            return mul(mul(ct, one), other)
    return None


def _carries(value: Symbol, part: Symbol) -> bool:
    """True if a value is inf or nan in each element where `part` is."""
    found: list[Atom] = [value.atom]
    for atom in found:  # which grows
        if atom == part.atom:
            return True
        equation = value.builder.definitions.get(atom)
        if equation is not None and len(found) < MOST_EQUATIONS:
            found += [operand for operand in _carried(equation) if operand not in found]
    return False


def _carried(equation: Equation) -> Sequence[Atom]:
    """The operands whose inf and nan are inf and nan in the result, whatever the others are."""
    primitive, operands = equation.primitive, equation.operands
    if primitive in (add, sub, mul):
        return operands
    if primitive in (div, strong_mul):
        return operands[:1]
    is_function = isinstance(primitive.axes, Elementwise) and len(operands) == 1 and not equation.params
    return operands if is_function and _keeps(primitive, operands[0].aval.dtype) else ()


@cache
def _keeps(primitive: Primitive, dtype: Dtype) -> bool:
    """True if a function of a real number is inf or nan at each number that is."""
    if dtype.kind != "f":
        return False
    with np.errstate(all="ignore"):
        return not np.isfinite(primitive.evaluate(np.array([np.inf, -np.inf, np.nan], dtype))).any()
