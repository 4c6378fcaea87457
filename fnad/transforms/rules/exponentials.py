"""Sigmoids and softmax: as users write them out, before derivatives are taken; by other primitives, afterwards."""

from __future__ import annotations

from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import neg
from fnad.ops.constructors import REALS
from fnad.ops.elementary import tanh
from fnad.ops.logistic import logaddexp, logistic
from fnad.ops.shape import zeros_like
from fnad.ops.softmax import complement_by_parts, log_softmax, log_softmax_by_parts, softmax_by_parts
from fnad.transforms.pattern import Rule
from fnad.transforms.rewrite import application


def _opposite(x: Symbol) -> Symbol:
    found = application(x, neg)
    return neg(x) if found is None else found[0][0]


def _logistic_of_opposite(x: Symbol) -> Symbol:
    return logistic(_opposite(x))


def _softplus(x: Symbol) -> Symbol:
    return logaddexp(x, zeros_like(x))


def _reciprocal(x: Symbol, exponent: int) -> Symbol | None:
    return _logistic_of_opposite(x) if exponent == -1 else None


# The left sides lose what is small beside 1, and overflow; so would their derivatives, which are made of their terms.
WRITTEN_OUT = (
    Rule("div(1, add(exp(x), 1)) = logistic(neg(x))", _logistic_of_opposite, REALS, "rounding"),
    Rule("integer_pow(add(exp(x), 1), exponent=n) = logistic(neg(x)) for n = -1", _reciprocal, REALS, "rounding"),
    Rule("div(exp(x), add(exp(x), 1)) = logistic(x)", logistic, REALS, "rounding"),
    Rule("div(sub(exp(x), 1), add(exp(x), 1)) = tanh(x / 2)", lambda x: tanh(0.5 * x), REALS, "rounding"),
    Rule("div(sub(exp(x), exp(neg(x))), add(exp(x), exp(neg(x)))) = tanh(x)", tanh, REALS, "rounding"),
    Rule("div(sinh(x), cosh(x)) = tanh(x)", tanh, REALS, "rounding"),
    Rule("div(y, add(exp(x), 1)) = y * logistic(neg(x))", lambda y, x: y * _logistic_of_opposite(x), REALS, "rounding"),
    Rule("sub(1, logistic(x)) = logistic(neg(x))", _logistic_of_opposite, REALS, "rounding"),
    Rule("log(logistic(x)) = neg(logaddexp(neg(x), 0))", lambda x: neg(_softplus(_opposite(x))), REALS, "rounding"),
    Rule("log(add(exp(x), 1)) = logaddexp(x, 0)", _softplus, REALS, "rounding"),
    Rule("log1p(exp(x)) = logaddexp(x, 0)", _softplus, REALS, "rounding"),
    Rule("log(add(exp(x), exp(y))) = logaddexp(x, y)", logaddexp, REALS, "rounding"),
    Rule("log(softmax(x, axes=axes)) = log_softmax(x)", lambda x, axes: log_softmax(x, axes=axes), REALS, "rounding"),
)

BY_PARTS = (
    Rule("softmax(x, axes=axes) = exp(x - max(x)) / sum", softmax_by_parts, up_to="rounding"),
    Rule("log_softmax(x, axes=axes) = x - max(x) - log(sum)", log_softmax_by_parts, up_to="rounding"),
    Rule("softmax_complement(x, axes=axes) = 1 - max(x)", complement_by_parts, up_to="rounding"),
)
