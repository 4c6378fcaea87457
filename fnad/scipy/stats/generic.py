"""SciPy's distributions of one variable on traced values.

Those that `fnad.scipy.stats` has are computed by its rules. The others are what the SciPy formulas classes
(`_logpdf`, `_cdf`, `_ppf`, …), which are for the standard form, make of traced values: SciPy's methods pick the
elements for which a formula is meant, here all are computed and chosen from. What SciPy integrates or searches for is
refused.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import FunctionType, MethodType
from typing import Any

import numpy as np
from scipy import integrate, special

from fnad.errors import UnsupportedFunctionError
from fnad.ir.types import F64
from fnad.numpy.bodies import XP, anew
from fnad.numpy.namespace import follows
from fnad.numpy.operands import as_symbol, to_dtype
from fnad.ops.autodiff import without_formula
from fnad.scipy.rule import method_of
from fnad.upward import UPWARD

INFRASTRUCTURE = "scipy.stats._distn_infrastructure"


SEARCHING = {
    "_pdf": "its density",
    "_cdf": "its distribution function",
    "_ppf": "its quantiles",
    "_entropy": "its entropy",
    "_munp": "its moments",
}
"""The methods that base classes compute by numerical derivatives, integrals and searches."""

WRONG = {"gennorm": ("_cdf", "_sf", "_ppf", "_isf"), "norminvgauss": ("_isf",)}
"""Formulas with a kink where the function has none, and those that search element by element."""


def _cauchy_ppf(_: Any, q: Any) -> Any:
    angle = np.pi * XP.where(q > 0.5, q - 1, q)
    return XP.where(XP.abs(q - 0.5) < 0.25, XP.tan(np.pi * (q - 0.5)), -XP.cos(angle) / XP.sin(angle))


def _norminvgauss_sf(self: Any, x: Any, a: Any, b: Any) -> Any:
    """SciPy's formula, which goes over the elements of arguments of one shape."""
    rows = zip(*[XP.ravel(part) for part in XP.broadcast_arrays(x, a, b)], strict=True)
    quad = UPWARD.callee(integrate.quad)
    found = [quad(self._pdf, start, np.inf, args=(a, b))[0] for start, a, b in rows]
    return XP.reshape(XP.stack(found), np.broadcast_shapes(x.shape, a.shape, b.shape))


OTHERS: dict[str, dict[str, Callable[..., Any]]] = {
    "beta": {"_ppf": lambda _, q, a, b: special.betaincinv(a, b, q)},
    "norminvgauss": {"_sf": _norminvgauss_sf},
    "cauchy": {"_ppf": _cauchy_ppf, "_isf": lambda _, q: -_cauchy_ppf(_, q)},
}
"""Formulas in the place of those that are functions of Boost's without a rule, or for one element alone."""

SINGULAR = {"genextreme", "genpareto", "skewnorm"}
"""Distributions with another formula where the shape parameter is 0, which has no derivative in it."""


def _refused(name: str, what: str) -> Callable[..., Any]:
    def refuse(self: Any, *_: Any, **__: Any) -> Any:
        raise UnsupportedFunctionError(
            f"scipy.stats.{self.name} has no formula for {SEARCHING.get(name, what)} that derivatives can be taken of",
            remedy="use another distribution, or compose it of functions that have a rule",
        )

    return refuse


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
        if base.__name__.startswith("rv_"):
            members |= {name: _refused(name, "it") for name in SEARCHING if name in own}
    return type(kind.__name__, (kind,), members)


def _formulas(distribution: Any) -> Any:
    """A distribution whose formulas take traced values."""
    kind = _formulas_class(type(distribution))
    made = object.__new__(kind)
    vars(made).update(vars(distribution))
    for name in WRONG.get(distribution.name, ()):
        vars(made)[name] = MethodType(_refused(name, "this"), made)
    for name, formula in OTHERS.get(distribution.name, {}).items():
        vars(made)[name] = MethodType(formula, made)
    return made


def _offered(distribution: Any, name: str) -> Callable[..., Any] | None:
    """The method of the distribution that fnad.scipy.stats has in its place, if it has one."""
    scipys = getattr(import_module("scipy.stats"), distribution.name or "", None)
    found = vars(import_module("fnad.scipy.stats")).get(distribution.name or "")
    is_own = found is not None and type(scipys) is type(distribution)
    return vars(found).get(name) if is_own else None


def _standard(formulas: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any, Any]:
    """The shape parameters, loc and scale, and whether they are allowed."""
    shapes, loc, scale = formulas._parse_args(*args, **kwargs)
    shapes = tuple(map(XP.asarray, shapes))
    if formulas.name in SINGULAR:  # what is added is 0, with no finite derivative where a parameter is 0
        scale = sum((XP.where(s == 0, XP.sqrt(s), 0.0) for s in shapes), scale)
    valid = XP.logical_and(formulas._argcheck(*shapes), XP.greater(scale, 0))
    return shapes, XP.asarray(loc), XP.asarray(scale), valid


def _chosen(valid: Any, inside: Any, value: Any, low: Any, below: float, above: float) -> Any:
    """A value in the support, constants below and above, nan for parameters that are not allowed."""
    outside = XP.where(low, below, above)
    return XP.where(valid, XP.where(inside, value, outside), np.nan)


def _methods_of(name: str) -> type:
    """A class with the methods of the SciPy class of this name."""
    return type(name, (), {})


ONE = ("rv_continuous", "rv_discrete", "rv_generic")
SEVERAL = ("multivariate_normal_gen", "multivariate_normal_frozen", "dirichlet_gen")
rv_continuous, rv_discrete, rv_generic = map(_methods_of, ONE)
multivariate_normal_gen, multivariate_normal_frozen, dirichlet_gen = map(_methods_of, SEVERAL)


def _method(kind: type) -> Callable[[Callable[..., Any]], None]:
    """Enter a function as a method of a class, behind the rule that fnad.scipy.stats has for the distribution."""

    def enter(compute: Callable[..., Any]) -> None:
        name = compute.__name__

        def rule(self: Any, *args: Any, **kwargs: Any) -> Any:
            offered = _offered(self, name)
            return compute(self, *args, **kwargs) if offered is None else offered(*args, **kwargs)

        setattr(kind, name, staticmethod(method_of(f"{INFRASTRUCTURE}:{kind.__name__}.{name}")(rule)))

    return enter


# ---- densities and probabilities -------------------------------------------------------------------------------------


def _continuous(name: str, below: float, above: float) -> Callable[..., Any]:
    is_density = name.endswith("pdf")

    def compute(self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        formulas = _formulas(self)
        shapes, loc, scale, valid = _standard(formulas, args, kwargs)
        z = (XP.asarray(x) - loc) / scale
        inside = (formulas._support_mask if is_density else formulas._open_support_mask)(z, *shapes)
        value = getattr(formulas, f"_{name}")(z, *shapes)
        if is_density:
            value = value / scale if name == "pdf" else value - XP.log(scale)
        start, _ = formulas._get_support(*shapes)
        return XP.where(XP.isnan(z), z, _chosen(valid, inside, value, z <= start, below, above))

    compute.__name__ = name
    return compute


def _discrete(name: str, below: float, above: float) -> Callable[..., Any]:
    is_mass = name.endswith("pmf")

    def compute(self: Any, k: Any, *args: Any, **kwargs: Any) -> Any:
        formulas = _formulas(self)
        shapes, loc, _, valid = _standard(formulas, args, kwargs)
        n = _count(k, f"scipy.stats.{self.name}.{name}") - loc
        start, end = formulas._get_support(*shapes)
        value = getattr(formulas, f"_{name}")(n, *shapes)
        value = value if name.startswith("log") else XP.clip(value, 0, 1)
        inside = (n >= start) & ((n <= end) & formulas._nonzero(n, *shapes) if is_mass else n < end)
        return XP.where(XP.isnan(n), n, _chosen(valid, inside, value, n < end, below, above))

    compute.__name__ = name
    return compute


@follows(lambda k, name: without_formula(to_dtype(as_symbol(k), F64), function=name, operand="k"))
def _count(k: Any, name: str) -> Any:
    """A number of events, in which there is no derivative."""
    return XP.asarray(k)


PROBABILITIES = (("cdf", 0.0, 1.0), ("logcdf", -np.inf, 0.0), ("sf", 1.0, 0.0), ("logsf", 0.0, -np.inf))
for _name, _below, _above in (("pdf", 0.0, 0.0), ("logpdf", -np.inf, -np.inf), *PROBABILITIES):
    _method(rv_continuous)(_continuous(_name, _below, _above))
for _name, _below, _above in (("pmf", 0.0, 0.0), ("logpmf", -np.inf, -np.inf), *PROBABILITIES):
    _method(rv_discrete)(_discrete(_name, _below, _above))

# ---- quantiles -------------------------------------------------------------------------------------------------------


def _quantile(name: str) -> Callable[..., Any]:
    def compute(self: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
        formulas = _formulas(self)
        shapes, loc, scale, valid = _standard(formulas, args, kwargs)
        q = XP.asarray(q)
        low, high = [end * scale + loc for end in formulas._get_support(*shapes)]
        if name == "isf":
            low, high = high, low
        value = getattr(formulas, f"_{name}")(q, *shapes) * scale + loc
        ends = XP.where(q == 0, low, XP.where(q == 1, high, np.nan))
        return XP.where(valid, XP.where((q > 0) & (q < 1), value, ends), np.nan)

    compute.__name__ = name
    return compute


_method(rv_continuous)(_quantile("ppf"))
_method(rv_continuous)(_quantile("isf"))

# ---- moments and entropy ---------------------------------------------------------------------------------------------


@_method(rv_generic)
def entropy(self: Any, *args: Any, **kwargs: Any) -> Any:
    formulas = _formulas(self)
    shapes, _, scale, valid = _standard(formulas, args, kwargs)
    return XP.where(valid, formulas._entropy(*shapes) + XP.log(scale), np.nan)


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
    results = [XP.where(valid, found[letter](), np.nan) for letter in "mv" if letter in moments]
    return results[0] if len(results) == 1 else tuple(results)


# ---- several variables -----------------------------------------------------------------------------------------------


def _several(kind: type, name: str) -> None:
    offered = getattr(import_module("fnad.scipy.stats"), kind.__name__.removesuffix("_gen"))

    def rule(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(offered, name)(*args, **kwargs)

    setattr(kind, name, staticmethod(method_of(f"scipy.stats._multivariate:{kind.__name__}.{name}")(rule)))


def _frozen_normal(name: str) -> None:
    def rule(self: Any, *x: Any, **options: Any) -> Any:
        given = self.mean, self.cov_object.covariance, self.allow_singular
        return getattr(import_module("fnad.scipy.stats").multivariate_normal, name)(*x, *given, **options)

    path = f"scipy.stats._multivariate:multivariate_normal_frozen.{name}"
    setattr(multivariate_normal_frozen, name, staticmethod(method_of(path)(rule)))


for _name in ("__call__", "pdf", "logpdf", "cdf", "logcdf", "entropy"):
    _several(multivariate_normal_gen, _name)
for _name in ("__call__", "pdf", "logpdf", "entropy"):
    _several(dirichlet_gen, _name)
for _name in ("pdf", "logpdf", "cdf", "logcdf"):
    _frozen_normal(_name)
