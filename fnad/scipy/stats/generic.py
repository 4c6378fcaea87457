"""SciPy's distributions on traced values.

A distribution is what the SciPy formulas of its class (`_logpdf`, `_cdf`, `_ppf`, …), which are for the standard form,
make of traced values, or the formulas in `FORMULAS` in their place. SciPy's methods pick the elements for which a
formula is meant; here all are computed and chosen from. Outside the support the derivative is 0, and for parameters
that are not allowed it is nan. What SciPy integrates or searches for is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
from scipy import integrate, special
from scipy import stats as scipy_stats

from fnad.errors import UnsupportedFunctionError
from fnad.ir.symbol import Symbol
from fnad.numpy.bodies import XP, anew
from fnad.numpy.namespace import follows
from fnad.numpy.operands import broadcast_all, static_int
from fnad.numpy.registry import RULES
from fnad.ops.autodiff import without_formula
from fnad.ops.formula import Formula, formula, word
from fnad.scipy.rule import method_of
from fnad.scipy.stats.dirichlet import dirichlet
from fnad.scipy.stats.distribution import real_symbol
from fnad.scipy.stats.multivariate_normal import multivariate_normal
from fnad.upward import UPWARD

INFRASTRUCTURE = "scipy.stats._distn_infrastructure"

Method = Callable[..., Any]

SEARCHING = {
    "_pdf": "its density",
    "_cdf": "its distribution function",
    "_ppf": "its quantiles",
    "_entropy": "its entropy",
    "_munp": "its moments",
}
"""The methods that base classes compute by numerical derivatives, integrals and searches."""

SINGULAR = {"genextreme", "genpareto", "skewnorm"}
"""Distributions with another formula where the shape parameter is 0, which has no derivative in it."""

CLOSED = {"beta_gen", "chi2_gen", "expon_gen", "gamma_gen", "lognorm_gen", "uniform_gen"}
"""Classes of distributions whose formulas hold at the ends of the support, derivatives included, and for nan."""

COUNTS = {"binom_gen": "n"}
"""Shape parameters that are counts, by class."""

# ---- formulas --------------------------------------------------------------------------------------------------------


def _refused(name: str, what: str) -> Method:
    def refuse(self: Any, *_: Any, **__: Any) -> Any:
        raise UnsupportedFunctionError(
            f"scipy.stats.{self.name} has no formula for {SEARCHING.get(name, what)} that derivatives can be taken of",
            remedy="use another distribution, or compose it of functions that have a rule",
        )

    return refuse


def _by(signature: str, text: str) -> Method:
    """The method that computes a formula, of the variable and the shape parameters."""
    compute = Formula(signature.split(", "), text)

    def rule(*values: Any) -> Symbol:
        return compute(*broadcast_all([real_symbol(value) for value in values]))

    RULES[rule] = rule
    return lambda _, *values: UPWARD.traced(rule, values, {})


def _cauchy_ppf(_: Any, q: Any) -> Any:
    angle = np.pi * XP.where(q > 0.5, q - 1, q)
    return XP.where(XP.abs(q - 0.5) < 0.25, XP.tan(np.pi * (q - 0.5)), -XP.cos(angle) / XP.sin(angle))


def _norminvgauss_sf(self: Any, x: Any, a: Any, b: Any) -> Any:
    """SciPy's formula, which goes over the elements of arguments of one shape."""
    rows = zip(*[XP.ravel(part) for part in XP.broadcast_arrays(x, a, b)], strict=True)
    quad = UPWARD.callee(integrate.quad)
    found = [quad(self._pdf, start, np.inf, args=(a, b))[0] for start, a, b in rows]
    return XP.reshape(XP.stack(found), np.broadcast_shapes(x.shape, a.shape, b.shape))


def _binom_entropy(self: Any, n: Any, p: Any) -> Any:
    """SciPy's sum over all counts, for an array of probabilities too."""
    k = np.arange(static_int(int(n) if isinstance(n, float) else n, "a number of trials") + 1.0).reshape(
        -1, *(1,) * np.ndim(p)
    )
    return XP.sum(special.entr(self._pmf(k, n, p)), axis=0)


# Γ((df+1)/2) / Γ(df/2) √(π df) (1 + z²/df)**(-(df+1)/2) has the entropy of the normal distribution for large df.
word("log_2", math.log(2))
word("log_pi", math.log(math.pi))
word("half_log_2pi", 0.5 * math.log(2 * math.pi))
formula(
    "t_entropy_near(df)",
    """
    0.5 * (df + 1.0) * (psi(0.5 * (df + 1.0)) - psi(0.5 * df)) + 0.5 * log(df) + betaln(0.5 * df, 0.5)""",
)
formula(
    "t_entropy_far(r)",
    """
    r * (1.0 + r * (1 / 4 + r * (-1 / 6 + r * (-1 / 8 + r * (3 / 10 + r * (1 / 4)))))) + (half_log_2pi + 0.5)""",
)

# -log π(1 + z²), for large z as -log π - 2 log z - log(1 + z⁻²), in which nothing overflows.
formula("cauchy_log_near(z)", "log1p(z * z)")
formula("cauchy_log_far(size)", "2.0 * log(size) + log1p(1.0 / size * (1.0 / size))")
formula("lognormal_log_density(x, s)", "-0.5 * (log(x) / s * (log(x) / s)) - log(s * x) - half_log_2pi")

FORMULAS: dict[str, dict[str, Method]] = {
    # SciPy divides or takes the logarithm of a density, which may be 0.
    "norm_gen": {
        "_pdf": _by("z", "exp(-0.5 * (z * z)) * (1.0 / sqrt_2pi)"),
        "_logpdf": _by("z", "-0.5 * (z * z) - half_log_2pi"),
    },
    "laplace_gen": {"_logpdf": _by("z", "-abs(z) - log_2")},
    "pareto_gen": {"_logpdf": _by("z, b", "log(b) - (b + 1.0) * log(z)")},
    "cauchy_gen": {
        "_pdf": _by("z", "(1 / pi) / (z * z + 1.0)"),
        "_logpdf": _by(
            "z",
            "-select(lt(abs(z), 1.0), cauchy_log_near(select(lt(abs(z), 1.0), z, 0.0)),"
            " cauchy_log_far(select(lt(abs(z), 1.0), 1.0, abs(z)))) - log_pi",
        ),
        "_ppf": _cauchy_ppf,
        "_isf": lambda _, q: -_cauchy_ppf(_, q),
    },
    "lognorm_gen": {
        "_logpdf": _by("z, s", "select(eq(z, 0.0), -inf, lognormal_log_density(select(eq(z, 0.0), 1.0, z), s))")
    },
    "uniform_gen": {
        "_pdf": _by("z", "stop_gradient(z - z) + 1.0"),
        "_logpdf": _by("z", "stop_gradient(z - z)"),
    },
    # The densities of the gamma distribution have a derivative where they are 0.
    "gamma_gen": {"_pdf": _by("z, a", "gamma_density(a, z)")},
    "chi2_gen": {"_pdf": _by("z, df", "0.5 * gamma_density(0.5 * df, 0.5 * z)")},
    "poisson_gen": {
        "_pmf": _by("k, mu", "gamma_density(k + 1.0, mu)"),
        "_entropy": _by("mu", "poisson_entropy(mu)"),
    },
    # SciPy decides by values, which traced ones do not have, or goes over elements.
    "beta_gen": {
        "_entropy": _by("a, b", "betaln(a, b) - (a - 1.0) * psi(a) - (b - 1.0) * psi(b) + (a + b - 2.0) * psi(a + b)")
    },
    "binom_gen": {"_entropy": _binom_entropy},
    "t_gen": {
        "_entropy": _by(
            "df", "select(lt(100.0, df), t_entropy_far(1.0 / maximum(df, 100.0)), t_entropy_near(minimum(df, 100.0)))"
        )
    },
    # SciPy's are functions of Boost without a rule, or search element by element.
    "norminvgauss_gen": {"_sf": _norminvgauss_sf, "_isf": _refused("_isf", "this")},
    # SciPy's have a kink where the function has none.
    "gennorm_gen": {name: _refused(name, "this") for name in ("_cdf", "_sf", "_ppf", "_isf")},
}
"""Formulas that replace methods of SciPy, by the class of the distribution."""


@cache
def _formulas_class(kind: type) -> type:
    """A subclass whose formulas, where they are SciPy's, take traced values."""
    members: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith("scipy."):  # the user's formulas stay as they are
            members = {name: f for name, f in members.items() if name not in vars(base)}
            continue
        own = {name: f for name, f in vars(base).items() if isinstance(f, FunctionType) and name.startswith("_")}
        members |= {name: anew(f) for name, f in own.items() if not name.startswith("__")}
        members |= FORMULAS.get(base.__name__, {})
        if base.__name__.startswith("rv_"):
            members |= {name: _refused(name, "it") for name in SEARCHING if name in own}
    return type(kind.__name__, (kind,), members)


def _formulas(distribution: Any) -> Any:
    """A distribution whose formulas take traced values."""
    made = object.__new__(_formulas_class(type(distribution)))
    vars(made).update(vars(distribution))
    return made


@follows(real_symbol)
def _real(value: Any) -> Any:
    """An operand in double precision; a number stays one, so that it is a constant of the program."""
    return np.asarray(value, np.float64)[()]


@follows(lambda value, **names: without_formula(real_symbol(value), **names))
def _count(value: Any, **_: str) -> Any:
    """A number of events, in which there is no derivative."""
    return _real(value)


def _standard(formulas: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any, Any]:
    """The shape parameters, loc and scale, and whether they are allowed."""
    shapes, loc, scale = formulas._parse_args(*args, **kwargs)
    shapes = tuple(map(_real, shapes))
    if formulas.name in SINGULAR:  # what is added is 0, with no finite derivative where a parameter is 0
        scale = sum((XP.where(s == 0, XP.sqrt(s), 0.0) for s in shapes), scale)
    valid = XP.logical_and(formulas._argcheck(*shapes), XP.greater(scale, 0))
    return shapes, _real(loc), _real(scale), valid


def _checked(value: Any, valid: Any) -> Any:
    """A value, nan with derivative nan where the parameters are not allowed; a number where it has no dimensions."""
    return XP.asarray(value if _is_known(valid, True) else value * XP.where(valid, 1.0, np.nan))[()]


def _is_known(value: Any, constant: Any) -> bool:
    """True if a value is not traced, and everywhere a constant."""
    return not UPWARD.has_traced(value) and bool(np.all(np.equal(value, constant)))


def _chosen(value: Any, *others: tuple[Any, float]) -> Any:
    """A value, constants where their conditions hold."""
    for condition, constant in others:
        value = XP.where(condition, constant, value)
    return value


def _within(
    distribution: Any, value: Any, z: Any, support: Any, ends: tuple[np.ufunc, np.ufunc], *outside: float
) -> Any:
    """A value in the support, constants below and above it; the ufuncs compare with its ends."""
    compared = zip(ends, support, (-np.inf, np.inf), outside, strict=True)
    others = [(beyond(z, end), x) for beyond, end, infinity, x in compared if not _is_known(end, infinity)]
    if others and type(distribution).__name__ not in CLOSED:
        others.append((XP.isnan(z), np.nan))
    return _chosen(value, *others)


def _methods_of(name: str) -> type:
    """A class with the methods of the SciPy class of this name."""
    return type(name, (), {})


ONE = ("rv_continuous", "rv_discrete", "rv_generic")
SEVERAL = ("multivariate_normal_gen", "multivariate_normal_frozen", "dirichlet_gen")
rv_continuous, rv_discrete, rv_generic = map(_methods_of, ONE)
multivariate_normal_gen, multivariate_normal_frozen, dirichlet_gen = map(_methods_of, SEVERAL)


def _method(kind: type, module: str = INFRASTRUCTURE) -> Callable[[Method], None]:
    """Enter a function as a method of a class."""

    def enter(rule: Method) -> None:
        path = f"{module}:{kind.__name__}.{rule.__name__}"
        setattr(kind, rule.__name__, staticmethod(method_of(path)(rule)))

    return enter


# ---- densities and probabilities -------------------------------------------------------------------------------------


def _continuous(name: str, below: float, above: float) -> Method:
    is_density = name.endswith("pdf")

    def compute(self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        formulas = _formulas(self)
        shapes, loc, scale, valid = _standard(formulas, args, kwargs)
        z = (_real(x) - loc) / scale
        value = getattr(formulas, f"_{name}")(z, *shapes)
        if is_density:
            value = value / scale if name == "pdf" else value - XP.log(scale)
        is_closed = type(self).__name__ in CLOSED or (is_density and _has_ends(self))
        ends = (np.less, np.greater) if is_closed else (np.less_equal, np.greater_equal)
        return _checked(_within(self, value, z, formulas._get_support(*shapes), ends, below, above), valid)

    compute.__name__ = name
    return compute


def _has_ends(distribution: Any) -> bool:
    """True if the ends of the support are in it."""
    return type(distribution)._support_mask is not scipy_stats.rv_continuous._open_support_mask


def _discrete(name: str, below: float, above: float) -> Method:
    is_mass = name.endswith("pmf")

    def compute(self: Any, k: Any, *args: Any, **kwargs: Any) -> Any:
        formulas, function = _formulas(self), f"{self.name}.{name}"
        shapes, loc, _, valid = _standard(formulas, args, kwargs)
        names = (self.shapes or "").split(", ")
        counted = COUNTS.get(type(self).__name__)
        shapes = [
            _count(x, function=function, operand=s) if s == counted else x for s, x in zip(names, shapes, strict=False)
        ]
        n = _count(k, function=function, operand="k") - _count(loc, function=function, operand="loc")
        value = getattr(formulas, f"_{name}")(n, *shapes)
        if not name.startswith("log"):
            value = _chosen(value, (value < 0, 0.0), (value > 1, 1.0))
        if is_mass:
            value = XP.where(formulas._nonzero(n, *shapes), value, below)
        ends = (np.less, np.greater if is_mass else np.greater_equal)
        return _checked(_within(self, value, n, formulas._get_support(*shapes), ends, below, above), valid)

    compute.__name__ = name
    return compute


PROBABILITIES = (("cdf", 0.0, 1.0), ("logcdf", -np.inf, 0.0), ("sf", 1.0, 0.0), ("logsf", 0.0, -np.inf))
for _name, _below, _above in (("pdf", 0.0, 0.0), ("logpdf", -np.inf, -np.inf), *PROBABILITIES):
    _method(rv_continuous)(_continuous(_name, _below, _above))
for _name, _below, _above in (("pmf", 0.0, 0.0), ("logpmf", -np.inf, -np.inf), *PROBABILITIES):
    _method(rv_discrete)(_discrete(_name, _below, _above))

# ---- quantiles -------------------------------------------------------------------------------------------------------


def _quantile(name: str) -> Method:
    def compute(self: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
        formulas = _formulas(self)
        shapes, loc, scale, valid = _standard(formulas, args, kwargs)
        q = _real(q)
        low, high = [end * scale + loc for end in formulas._get_support(*shapes)]
        if name == "isf":
            low, high = high, low
        value = getattr(formulas, f"_{name}")(q, *shapes) * scale + loc
        ends = XP.where(q == 0, low, XP.where(q == 1, high, np.nan))
        return XP.where(valid, XP.where((q > 0) & (q < 1), value, ends), np.nan)[()]

    compute.__name__ = name
    return compute


_method(rv_continuous)(_quantile("ppf"))
_method(rv_continuous)(_quantile("isf"))

# ---- moments and entropy ---------------------------------------------------------------------------------------------


@_method(rv_generic)
def entropy(self: Any, *args: Any, **kwargs: Any) -> Any:
    formulas = _formulas(self)
    shapes, _, scale, valid = _standard(formulas, args, kwargs)
    return _checked(formulas._entropy(*shapes) + XP.log(scale), valid)


@_method(rv_generic)
def stats(self: Any, *args: Any, **kwargs: Any) -> Any:
    kwargs = dict(kwargs)
    moments = kwargs.pop("moments", "mv")
    if not set(moments) <= set("mv"):
        raise UnsupportedFunctionError(
            f"scipy.stats.{self.name}.stats has no rule for moments={moments!r}",
            remedy="ask for mean and variance, 'mv'",
        )
    formulas = _formulas(self)
    shapes, loc, scale, valid = _standard(formulas, args, kwargs)
    options = {"moments": moments} if self._stats_has_moments else {}
    mean, variance, *_ = formulas._stats(*shapes, **options)
    if mean is None:
        mean = formulas._munp(1, *shapes)
    if variance is None and "v" in moments:
        variance = formulas._munp(2, *shapes) - mean * mean
    found = {"m": lambda: mean * scale + loc, "v": lambda: variance * scale * scale}
    results = [_checked(found[letter](), valid) for letter in "mv" if letter in moments]
    return results[0] if len(results) == 1 else tuple(results)


# ---- several variables -----------------------------------------------------------------------------------------------

MULTIVARIATE = "scipy.stats._multivariate"


def _several(kind: type, name: str, of: Callable[[Any], Method]) -> None:
    """Enter as a method of a class what a function returns for the object."""

    def rule(self: Any, *args: Any, **kwargs: Any) -> Any:
        return of(self)(*args, **kwargs)

    rule.__name__ = name
    _method(kind, MULTIVARIATE)(rule)


def _frozen_normal(rule: Method) -> Callable[[Any], Method]:
    """The rule of a method for the parameters of an object."""
    return lambda self: (
        lambda *x, **options: UPWARD.traced(
            rule, (*x, self.mean, self.cov_object.covariance, self.allow_singular), options
        )
    )


for _distribution, _kind in ((multivariate_normal, multivariate_normal_gen), (dirichlet, dirichlet_gen)):
    _several(_kind, "__call__", lambda _, found=_distribution: found)
    for _name, _rule in _distribution.rules.items():
        RULES[_rule] = _rule
        _several(_kind, _name, lambda _, rule=_rule: lambda *args, **kwargs: UPWARD.traced(rule, args, kwargs))
for _name in ("pdf", "logpdf", "cdf", "logcdf"):
    _several(multivariate_normal_frozen, _name, _frozen_normal(multivariate_normal.rules[_name]))
