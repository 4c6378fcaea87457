"""Sigmoids, softmax and their logarithms written out by the user become the primitives, before a derivative is taken.

    1 / (1 + exp(-x))                    the logistic function of x
    e / e.sum(), e = exp(x - x.max())    the softmax of x
    x - log(exp(x).sum())                its logarithm

The primitives and their derivatives keep the digits that 1 + exp(x), and a sum with one large term, lose. The value is
the same up to rounding, except that what overflowed to inf or nan does not.

An exponential of log(w) + c is a primitive too. At w = 0 its derivative is exp(c), which is not the product of the
derivatives 0 and inf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fnad.ir.primitive import Primitive
from fnad.ir.program import Params, Program
from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import add, div, neg, sub
from fnad.ops.comparison import select
from fnad.ops.elementary import exp, log
from fnad.ops.logistic import weighted_exp
from fnad.ops.shape import Ints, broadcast_in_dim, reduce_sum, reshape, transpose, zeros_like
from fnad.ops.softmax import finite_maximum, log_softmax, softmax, spread
from fnad.transforms.dce import dce
from fnad.transforms.pattern import by_rules, same_values
from fnad.transforms.rewrite import application, constant_of, definition, operands_of, rewrite, unreshaped
from fnad.transforms.rules.exponentials import WRITTEN_OUT

DEPTH = 6
"""The number of equations between an exponential and the logarithm of a weight."""

_by_rules = by_rules(WRITTEN_OUT)


def recognized(program: Program) -> Program:
    """The program with the primitives in place of what is written out."""
    return dce(rewrite(program, _by_rules, weighted, written_softmax))


# ---- weights under a logarithm -------------------------------------------------------------------------------------


def weighted(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    """The rewrite of exponentials of log(w) + c, whose derivative in w is not 0 where w is 0."""
    if primitive not in (exp, softmax, log_softmax) or operands[0].dtype.kind != "f":
        return None
    x = operands[0]
    found = _weight(x)
    if found is None:
        return None
    w, c = found
    if primitive is exp:
        return weighted_exp(w, c)
    top = spread(finite_maximum(x, **params), x, **params)
    terms = weighted_exp(w, c - top)
    total = reduce_sum(terms, **params)
    if primitive is softmax:
        return terms * spread(1.0 / total, x, **params)
    return x - top - spread(log(total), x, **params)


def _weight(x: Symbol, depth: int = DEPTH) -> tuple[Symbol, Symbol] | None:
    """The w and c of which x is log(w) + c."""
    equation = definition(x)
    if equation is None or depth == 0:
        return None
    operands, primitive = operands_of(x, equation), equation.primitive
    if primitive is log:
        return operands[0], zeros_like(x)
    if primitive in (broadcast_in_dim, reshape, transpose):
        found = _weight(operands[0], depth - 1)
        return (
            None if found is None else (primitive(found[0], **equation.params), primitive(found[1], **equation.params))
        )
    if primitive is sub and (found := _weight(operands[0], depth - 1)):
        return found[0], neg(operands[1]) if constant_of(found[1]) == 0 else found[1] - operands[1]
    if primitive is add:
        for one, other in (operands, operands[::-1]):
            if found := _weight(one, depth - 1):
                return found[0], other if constant_of(found[1]) == 0 else found[1] + other
    return None


# ---- softmax -------------------------------------------------------------------------------------------------------


def written_softmax(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> Symbol | None:
    """The rewrite of a quotient or a difference that is a softmax or its logarithm."""
    if primitive not in (div, sub) or operands[0].dtype.kind != "f":
        return None
    x, y = operands
    if primitive is div:
        exponents = application(x, exp)
        return None if exponents is None else _over_rows(softmax, exponents[0][0], y, _exponents)
    found = _over_rows(log_softmax, x, y, _logarithm)
    if found is not None:
        return found
    opposite = _over_rows(log_softmax, y, x, _logarithm)
    return None if opposite is None else neg(opposite)


def _over_rows(primitive: Primitive, x: Symbol, y: Symbol, exponents: Callable[[Symbol], Rows | None]) -> Symbol | None:
    """The primitive of x, if y is made of the sum of exp(x) over rows, for each element of the row."""
    spread = application(y, broadcast_in_dim)
    rows = None if spread is None else exponents(unreshaped(spread[0][0]))
    if spread is None or rows is None or not same_values([rows.x], [x]) or not _is_aligned(*spread, rows):
        return None
    return primitive(_unshifted(x, rows.axes), axes=rows.axes)


class Rows(NamedTuple):
    """Exponents and the axes over which their exponentials are summed."""

    x: Symbol
    axes: Ints


def _exponents(total: Symbol) -> Rows | None:
    """The exponents of Σ exp(x)."""
    summed = application(unreshaped(total), reduce_sum)
    terms = None if summed is None else application(summed[0][0], exp)
    return None if summed is None or terms is None else Rows(terms[0][0], summed[1]["axes"])


def _logarithm(y: Symbol) -> Rows | None:
    """The exponents of log Σ exp(x), also as m + log Σ exp(x - m), and where it is -inf if the sum is 0."""
    y = unreshaped(y)
    if found := application(y, log):
        return _exponents(_otherwise(found[0][0], 1.0))
    if found := application(y, add):
        return _shifted_logarithm(*found[0]) or _shifted_logarithm(*found[0][::-1])
    chosen = _otherwise(y, -np.inf)
    return None if chosen is y else _logarithm(chosen)


def _shifted_logarithm(m: Symbol, y: Symbol) -> Rows | None:
    rows = _logarithm(y)
    difference = None if rows is None else application(rows.x, sub)
    spread = None if difference is None else application(difference[0][1], broadcast_in_dim)
    if rows is None or difference is None or spread is None or not _is_aligned(*spread, rows):
        return None
    return rows._replace(x=difference[0][0]) if same_values([unreshaped(spread[0][0])], [unreshaped(m)]) else None


def _otherwise(y: Symbol, value: float) -> Symbol:
    """The value of `where(mask, value, z)` where the mask is false; y itself if it is none."""
    found = application(y, select)
    return y if found is None or constant_of(found[0][1]) != value else found[0][2]


def _is_aligned(operands: Sequence[Symbol], params: Params, rows: Rows) -> bool:
    """True if a broadcast gives each element of a row the number of the row."""
    long = [axis for axis, n in zip(params["dims"], operands[0].shape, strict=True) if n != 1]
    return long == [axis for axis, n in enumerate(rows.x.shape) if n != 1 and axis not in rows.axes]


def _unshifted(x: Symbol, axes: Ints) -> Symbol:
    """The minuend, if a number of each row is subtracted."""
    difference = application(x, sub)
    spread = None if difference is None else application(difference[0][1], broadcast_in_dim)
    if difference is None or spread is None:
        return x
    (w,), params = spread
    varies = any(n != 1 and axis in axes for axis, n in zip(params["dims"], w.shape, strict=True))
    return x if varies else difference[0][0]
