"""Methods of distributions: SciPy's own on ordinary numbers, their rule on traced values; and frozen distributions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature
from typing import Any, TypeAlias

from fnad.numpy.namespace import follows
from fnad.numpy.registry import Rule

Method: TypeAlias = Callable[..., Any]


def parameter(name: str, default: Any = Parameter.empty) -> Parameter:
    """A parameter that may be given by position or by name."""
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default)


def others(name: str) -> Parameter:
    """The parameter that stands for those that have to be named and concern SciPy alone."""
    return Parameter(name, Parameter.VAR_KEYWORD)


def method(distribution: str, name: str, doc: str, parameters: list[Parameter], rule: Rule) -> Method:
    """The method `name` of a distribution of scipy.stats, with its signature.

    The rule gets all parameters by position, but those that have to be named, if they are given.
    """

    def original(*args: Any, **options: Any) -> Any:
        return getattr(scipy_distribution(distribution), name)(*args, **options)

    signature = Signature(parameters)
    original.__module__, original.__name__, original.__qualname__ = "scipy.stats", name, f"{distribution}.{name}"
    original.__doc__ = doc
    either = follows(rule)(original)

    @wraps(original)
    def call(*args: Any, **options: Any) -> Any:
        bound = signature.bind(*args, **options)
        bound.apply_defaults()
        return either(*bound.args, **bound.kwargs)

    call.__signature__ = signature  # pyright: ignore[reportAttributeAccessIssue]  (what help() shows)
    return call


def scipy_distribution(name: str) -> Any:
    """A distribution of scipy.stats, imported at its first use."""
    return getattr(import_module("scipy.stats"), name)


class Distribution:
    """A distribution under SciPy's name: what has no rule here is SciPy's own, for ordinary numbers."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **options: Any) -> Frozen:
        """The distribution with its parameters fixed."""
        return Frozen(self, args, options)

    def __getattr__(self, name: str) -> Any:
        return getattr(scipy_distribution(self.__dict__["name"]), name)

    def __repr__(self) -> str:
        return f"fnad.scipy.stats.{self.name}"


class Frozen:
    """A distribution with its parameters fixed: `norm(m, s).logpdf(x)` is `norm.logpdf(x, m, s)`."""

    def __init__(self, distribution: Distribution, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.distribution, self.args, self.options = distribution, args, options

    def __getattr__(self, name: str) -> Method:
        called = getattr(self.distribution, name)
        return lambda *x: called(*x, *self.args, **self.options)
