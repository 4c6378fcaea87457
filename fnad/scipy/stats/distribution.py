"""Distributions under SciPy's names: their methods are SciPy's own on ordinary numbers, and rules on traced values."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from typing import Any, TypeAlias

from fnad.errors import DtypeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64
from fnad.numpy.namespace import follows
from fnad.numpy.operands import as_symbol, to_dtype
from fnad.numpy.registry import Rule

Method: TypeAlias = Callable[..., Any]


class Distribution:
    """A distribution; what has no rule here is SciPy's own, for ordinary numbers."""

    def __init__(self, name: str) -> None:
        self.name = name

    def add_method(self, name: str, doc: str, rule: Rule, parameters: Signature | None = None) -> None:
        """Give it a SciPy method, with the parameters of the rule if none are given.

        The rule gets all parameters by position, but those that have to be named, if they are given.
        """

        def original(*args: Any, **options: Any) -> Any:
            return getattr(scipy_distribution(self.name), name)(*args, **options)

        given = (parameters or signature(rule)).parameters.values()
        called = Signature([parameter.replace(annotation=Parameter.empty) for parameter in given])
        original.__module__, original.__name__, original.__qualname__ = "scipy.stats", name, f"{self.name}.{name}"
        original.__doc__ = doc
        either = follows(rule)(original)

        @wraps(original)
        def call(*args: Any, **options: Any) -> Any:
            given, named = bound(called, args, options)
            return either(*given, **named)

        call.__signature__ = called  # pyright: ignore[reportAttributeAccessIssue]  (what help() shows)
        setattr(self, name, call)

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


def bound(called: Signature, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, with those that were not given."""
    found = called.bind(*args, **options)
    found.apply_defaults()
    return found.args, found.kwargs


def scipy_distribution(name: str) -> Any:
    """A distribution of scipy.stats, imported at its first use."""
    return getattr(import_module("scipy.stats"), name)


def real_symbol(value: Any) -> Symbol:
    """An operand in double precision, which SciPy computes in; complex numbers are refused."""
    symbol = as_symbol(value)
    if symbol.dtype.kind == "c":
        raise DtypeError(f"distributions do not take {symbol.dtype}", remedy="take its real part")
    return to_dtype(symbol, F64)
