"""Continuous distributions: standard forms, shifted and scaled.

With z = (x - loc) / scale, the density is f(z) / scale and the distribution function F(z). Outside the support SciPy's
constants stand (0, 1 and their logarithms), with derivative 0; for parameters that are not allowed nan, with
derivative nan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from fnad.ir.symbol import Symbol
from fnad.numpy.operands import broadcast_all
from fnad.ops.arithmetic import neg
from fnad.ops.comparison import eq, lt, select
from fnad.ops.elementary import exp, log, log1p
from fnad.ops.shape import full_like
from fnad.scipy.stats.method import Distribution, Method, method, parameter
from fnad.scipy.stats.operands import (
    INF,
    checked,
    is_positive_number,
    positive,
    real_symbol,
    within,
    without,
)

Formula: TypeAlias = Callable[..., Symbol]
"""From the standardised argument and the shape parameters, symbols of one shape, to a value."""

DOCS = {
    "pdf": "Return the density at x.",
    "logpdf": "Return the logarithm of the density at x.",
    "cdf": "Return the probability of a value of at most x.",
    "logcdf": "Return the logarithm of the probability of a value of at most x.",
    "sf": "Return the probability of a value above x.",
    "logsf": "Return the logarithm of the probability of a value above x.",
    "entropy": "Return the differential entropy.",
}


class Standard(NamedTuple):
    """The operands of a method: z, the shape parameters, the scale if it is not 1, and what has to hold of them."""

    z: Symbol
    shapes: list[Symbol]
    scale: Symbol | None
    conditions: list[Symbol]


class Continuous(Distribution):
    """A continuous distribution from formulas of its standard form; those not given follow from the others."""

    pdf: Method
    logpdf: Method
    cdf: Method
    logcdf: Method
    sf: Method
    logsf: Method
    entropy: Method

    def __init__(
        self,
        name: str,
        shapes: Sequence[str] = (),
        *,
        support: tuple[float, float] = (-INF, INF),
        logpdf: Formula,
        cdf: Formula,
        sf: Formula,
        entropy: Formula,
        pdf: Formula | None = None,
        logcdf: Formula | None = None,
        logsf: Formula | None = None,
    ) -> None:
        super().__init__(name)
        self.shapes, self.support = shapes, support
        self._add("pdf", self._density(pdf or (lambda z, *shapes: exp(logpdf(z, *shapes)))))
        self._add("logpdf", self._log_density(logpdf))
        self._add("cdf", self._distribution(cdf, 0.0, 1.0))
        self._add("sf", self._distribution(sf, 1.0, 0.0))
        self._add("logcdf", self._distribution(logcdf or log_of(cdf, sf), -INF, 0.0))
        self._add("logsf", self._distribution(logsf or log_of(sf, cdf), 0.0, -INF))
        self._add("entropy", self._entropy(entropy))

    def _add(self, name: str, rule: Callable[..., Symbol]) -> None:
        given = [] if name == "entropy" else ["x"]
        parameters = [*map(parameter, [*given, *self.shapes]), parameter("loc", 0), parameter("scale", 1)]
        setattr(self, name, method(self.name, name, DOCS[name], parameters, rule))

    # ---- rules -------------------------------------------------------------------------------------------------------

    def _density(self, formula: Formula) -> Callable[..., Symbol]:
        def rule(x: Any, *parameters: Any) -> Symbol:
            z, shapes, scale, conditions = self._standard(x, parameters)
            value = within(formula(z, *shapes), z, self.support, 0.0, 0.0)
            return checked(value if scale is None else value / scale, conditions)

        return rule

    def _log_density(self, formula: Formula) -> Callable[..., Symbol]:
        def rule(x: Any, *parameters: Any) -> Symbol:
            z, shapes, scale, conditions = self._standard(x, parameters)
            value = within(formula(z, *shapes), z, self.support, -INF, -INF)
            return checked(value if scale is None else value - log(scale), conditions)

        return rule

    def _distribution(self, formula: Formula, below: float, above: float) -> Callable[..., Symbol]:
        def rule(x: Any, *parameters: Any) -> Symbol:
            z, shapes, _, conditions = self._standard(x, parameters)
            return checked(within(formula(z, *shapes), z, self.support, below, above), conditions)

        return rule

    def _entropy(self, formula: Formula) -> Callable[..., Symbol]:
        def rule(*parameters: Any) -> Symbol:
            z, shapes, scale, conditions = self._standard(0.0, parameters)
            value = formula(z, *shapes)
            return checked(value if scale is None else value + log(scale), [*conditions, eq(z, z)])

        return rule

    def _standard(self, x: Any, parameters: Sequence[Any]) -> Standard:
        *shapes, loc, scale = parameters
        given = [x, *shapes, *without(loc, 0), *without(scale, 1)]
        z, *symbols = broadcast_all([real_symbol(value) for value in given])
        count = len(shapes)
        divisor = symbols.pop() if without(scale, 1) else None
        positives = [*zip(shapes, symbols, strict=False), *([] if divisor is None else [(scale, divisor)])]
        conditions = [positive(symbol) for value, symbol in positives if not is_positive_number(value)]
        shifted = z - symbols[count] if len(symbols) > count else z
        return Standard(shifted if divisor is None else shifted / divisor, symbols[:count], divisor, conditions)


def log_of(probability: Formula, rest: Formula) -> Formula:
    """The formula of a logarithm of a probability, from the rest to 1 where that is the smaller."""

    def formula(z: Symbol, *shapes: Symbol) -> Symbol:
        p = probability(z, *shapes)
        return select(lt(p, full_like(p, 0.5)), log(p), log1p(neg(rest(z, *shapes))))

    return formula
