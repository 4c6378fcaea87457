"""Distributions of one variable: a formula (`fnad.ops.formula`) a method, in the variable and the shape parameters.

A continuous distribution is shifted and scaled: with z = (x - loc) / scale, the density is f(z) / scale and the
distribution function F(z). A discrete one has probabilities of the integers 0, 1, … and is shifted; in a count there is
no derivative, and asking for it is an error. Outside the support the values are SciPy's constants (0, 1 and their
logarithms), with derivative 0; for invalid parameters they are nan, with derivative nan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from inspect import Parameter, Signature
from typing import Any

from fnad.ir.program import Literal
from fnad.ir.symbol import Symbol
from fnad.numpy.operands import broadcast_all, is_python_number
from fnad.ops.autodiff import without_formula
from fnad.ops.comparison import bitwise_and, eq, gt, isnan, lt, select
from fnad.ops.elementary import log
from fnad.ops.formula import Formula, parse_signature
from fnad.ops.piecewise import floor
from fnad.ops.shape import full_like, ones_like, zeros_like
from fnad.scipy.stats.distribution import Distribution, real_symbol

INF, NAN = float("inf"), float("nan")

MEANINGS = {
    "pdf": "the density at {}",
    "pmf": "the probability of {}",
    "cdf": "the probability of a value of at most {}",
    "sf": "the probability of a value above {}",
    "entropy": "the entropy",
}
PROBABILITIES = {"pdf": (0.0, 0.0), "pmf": (0.0, 0.0), "cdf": (0.0, 1.0), "sf": (1.0, 0.0)}
LOG = {0.0: -INF, 1.0: 0.0}
OUTSIDE = PROBABILITIES | {f"log{name}": (LOG[below], LOG[above]) for name, (below, above) in PROBABILITIES.items()}
"""The values of the methods below and above the support."""


def log_of(probability: str, rest: str) -> str:
    """The formula of the logarithm of a probability, from the rest to 1 where that is the smaller."""
    return f"select(lt({probability}, 0.5), log({probability}), log1p(-({rest})))"


class Univariate(Distribution):
    """A distribution of one variable, the first operand of its signature; the shape parameters follow."""

    variable: str
    options: tuple[tuple[str, int], ...]

    def __init__(self, signature: str, formulas: dict[str, str]) -> None:
        name, self.operands = parse_signature(signature)
        super().__init__(name)
        cdf, sf = formulas["cdf"], formulas["sf"]
        for method, text in ({"logcdf": log_of(cdf, sf), "logsf": log_of(sf, cdf)} | formulas).items():
            self.add(method, self.rule(method, Formula(self.operands, text)))

    def add(self, method: str, rule: Callable[..., Symbol]) -> None:
        """Give it a method: of the variable, but for the entropy, the shape parameters, and the options."""
        kind = method.removeprefix("log")
        meaning = MEANINGS[kind].format(self.variable)
        doc = f"The logarithm of {meaning}." if kind != method else f"{meaning.capitalize()}."
        needed = [*([] if method == "entropy" else [self.variable]), *self.operands[1:]]
        parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in needed]
        options = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=value) for name, value in self.options]
        self.add_method(method, doc, rule, Signature([*parameters, *options]))

    def rule(self, method: str, formula: Formula) -> Callable[..., Symbol]:
        """The rule of a method."""
        return lambda *operands: self.compute(method, formula, operands)

    def compute(self, method: str, formula: Formula, operands: Sequence[Any]) -> Symbol:
        """The value of a method for the operands, options included."""
        raise NotImplementedError


class Continuous(Univariate):
    """A continuous distribution, from formulas of its standard form; those not given follow from the others."""

    variable = "x"
    options = (("loc", 0), ("scale", 1))

    def __init__(self, signature: str, support: tuple[float, float] = (-INF, INF), **formulas: str) -> None:
        self.support = support
        super().__init__(signature, {"pdf": f"exp({formulas['logpdf']})"} | formulas)

    def compute(self, method: str, formula: Formula, operands: Sequence[Any]) -> Symbol:
        x, *shapes, loc, scale = (0.0, *operands) if method == "entropy" else operands
        given = [x, *shapes, *without(loc, 0), *without(scale, 1)]
        z, *symbols = broadcast_all([real_symbol(value) for value in given])
        divisor = symbols.pop() if without(scale, 1) else None
        positives = [*zip(shapes, symbols, strict=False), *([] if divisor is None else [(scale, divisor)])]
        conditions = [gt(symbol, zeros_like(symbol)) for value, symbol in positives if not is_positive_number(value)]
        z = z - symbols[len(shapes)] if len(symbols) > len(shapes) else z
        z = z if divisor is None else z / divisor
        value = formula(z, *symbols[: len(shapes)])
        if method == "entropy":
            return checked(value if divisor is None else value + log(divisor), [*conditions, eq(z, z)])
        value = within(value, z, self.support, *OUTSIDE[method])
        if divisor is not None and method in ("pdf", "logpdf"):
            value = value / divisor if method == "pdf" else value - log(divisor)
        return checked(value, conditions)


class Discrete(Univariate):
    """A discrete distribution on 0, 1, …, `last`, a number or the name of a shape parameter.

    `conditions` have to hold of the shape parameters; those named in `fixed` are counts too. The entropy is a function
    of what the user gave for the shape parameters.
    """

    variable = "k"
    options = (("loc", 0),)

    def __init__(
        self,
        signature: str,
        last: str | float,
        conditions: Sequence[str],
        entropy: Callable[..., Symbol],
        fixed: Sequence[str] = (),
        **formulas: str,
    ) -> None:
        super().__init__(signature, formulas)
        self.last, self.fixed = last, fixed
        self.conditions = [Formula(self.operands[1:], condition) for condition in conditions]
        self.add("entropy", lambda *parameters: entropy(*parameters[:-1]))

    def compute(self, method: str, formula: Formula, operands: Sequence[Any]) -> Symbol:
        count, shapes = self._operands(method, operands)
        last = dict(zip(self.operands[1:], shapes, strict=True))[self.last] if isinstance(self.last, str) else self.last
        is_mass = method in ("pmf", "logpmf")
        below = floor(count)
        value = within(formula(below, *shapes), below, (0.0, last if is_mass else last - 1.0), *OUTSIDE[method])
        if is_mass:
            value = select(eq(count, below), value, full_like(value, OUTSIDE[method][0]))
        value = select(isnan(count), count, value)
        return checked(value, [condition(*shapes) for condition in self.conditions])

    def _operands(self, method: str, operands: Sequence[Any]) -> tuple[Symbol, list[Symbol]]:
        """K - loc and the shape parameters, the counts among them marked."""
        *given, loc = operands
        names = [*self.operands, "loc"]
        symbols = broadcast_all([real_symbol(value) for value in (*given, *without(loc, 0))])
        marked = [
            constant_in(f"{self.name}.{method}", name, x) if name in ("k", "loc", *self.fixed) else x
            for name, x in zip(names, symbols, strict=False)
        ]
        return (marked[0] - marked.pop() if without(loc, 0) else marked[0]), marked[1:]


# ---- operands ----------------------------------------------------------------------------------------------------


def without(value: Any, default: float) -> list[Any]:
    """An operand in a list, which is empty where it is a Python number that changes nothing."""
    return [] if is_python_number(value) and value == default else [value]


def is_positive_number(value: Any) -> bool:
    """True if an operand is a positive Python number, which needs no check at run time."""
    return is_python_number(value) and not isinstance(value, complex) and value > 0


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
