"""Discrete distributions of counts: probabilities of integers k, 0 elsewhere.

In a count there is no derivative; asking for it is an error. Outside the support SciPy's constants stand, for
parameters that are not allowed nan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from fnad.ir.symbol import Symbol
from fnad.numpy.operands import broadcast_all
from fnad.ops.comparison import eq, isnan, select
from fnad.ops.piecewise import floor
from fnad.ops.shape import full_like
from fnad.scipy.stats.continuous import Formula, log_of
from fnad.scipy.stats.method import Distribution, Method, method, parameter
from fnad.scipy.stats.operands import INF, checked, constant_in, real_symbol, within, without

DOCS = {
    "pmf": "Return the probability of k.",
    "logpmf": "Return the logarithm of the probability of k.",
    "cdf": "Return the probability of a value of at most k.",
    "logcdf": "Return the logarithm of the probability of a value of at most k.",
    "sf": "Return the probability of a value above k.",
    "logsf": "Return the logarithm of the probability of a value above k.",
    "entropy": "Return the entropy.",
}
Conditions: TypeAlias = Callable[..., list[Symbol]]
"""From the shape parameters to what has to hold of them."""


class Discrete(Distribution):
    """A discrete distribution on 0, 1, …, n from its formulas in k and the shape parameters.

    `last(*shapes)` is n, a number or a symbol. The shape parameters named in `fixed` are counts too.
    """

    pmf: Method
    logpmf: Method
    cdf: Method
    logcdf: Method
    sf: Method
    logsf: Method

    def __init__(
        self,
        name: str,
        shapes: Sequence[str],
        *,
        last: Callable[..., Any],
        conditions: Conditions,
        fixed: Sequence[str] = (),
        pmf: Formula,
        logpmf: Formula,
        cdf: Formula,
        sf: Formula,
        entropy: Callable[..., Symbol] | None = None,
    ) -> None:
        super().__init__(name)
        self.shapes, self.last, self.conditions, self.fixed = shapes, last, conditions, fixed
        self._add("pmf", self._mass("pmf", pmf, 0.0))
        self._add("logpmf", self._mass("logpmf", logpmf, -INF))
        self._add("cdf", self._distribution("cdf", cdf, 0.0, 1.0))
        self._add("sf", self._distribution("sf", sf, 1.0, 0.0))
        self._add("logcdf", self._distribution("logcdf", log_of(cdf, sf), -INF, 0.0))
        self._add("logsf", self._distribution("logsf", log_of(sf, cdf), 0.0, -INF))
        if entropy:
            self._add("entropy", lambda *parameters: entropy(*parameters[:-1]))

    def _add(self, name: str, rule: Callable[..., Symbol]) -> None:
        given = [] if name == "entropy" else ["k"]
        parameters = [*map(parameter, [*given, *self.shapes]), parameter("loc", 0)]
        setattr(self, name, method(self.name, name, DOCS[name], parameters, rule))

    # ---- rules -------------------------------------------------------------------------------------------------------

    def _mass(self, name: str, formula: Formula, outside: float) -> Callable[..., Symbol]:
        def rule(k: Any, *parameters: Any) -> Symbol:
            count, shapes = self._operands(name, k, parameters)
            below = floor(count)
            value = within(formula(below, *shapes), below, (0.0, self.last(*shapes)), outside, outside)
            value = select(eq(count, below), value, full_like(value, outside))
            return checked(or_nan(count, value), self.conditions(*shapes))

        return rule

    def _distribution(self, name: str, formula: Formula, before: float, after: float) -> Callable[..., Symbol]:
        def rule(k: Any, *parameters: Any) -> Symbol:
            count, shapes = self._operands(name, k, parameters)
            below = floor(count)
            value = within(formula(below, *shapes), below, (0.0, self.last(*shapes) - 1.0), before, after)
            return checked(or_nan(count, value), self.conditions(*shapes))

        return rule

    def _operands(self, name: str, k: Any, parameters: Sequence[Any]) -> tuple[Symbol, list[Symbol]]:
        """K - loc and the shape parameters, the counts among them marked."""
        *given, loc = parameters
        names = ["k", *self.shapes, *(["loc"] * len(without(loc, 0)))]
        symbols = broadcast_all([real_symbol(value) for value in (k, *given, *without(loc, 0))])
        marked = [
            constant_in(f"{self.name}.{name}", operand, symbol) if operand in ("k", "loc", *self.fixed) else symbol
            for operand, symbol in zip(names, symbols, strict=True)
        ]
        count = marked[0] - marked.pop() if without(loc, 0) else marked[0]
        return count, marked[1:]


def or_nan(count: Symbol, value: Symbol) -> Symbol:
    """A value, nan where the count is."""
    return select(isnan(count), count, value)
