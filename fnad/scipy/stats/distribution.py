"""Distributions under SciPy's names: their methods are SciPy's own on ordinary numbers, and rules on traced values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from importlib import import_module
from inspect import Signature, signature
from typing import Any, TypeAlias

from fnad.errors import DtypeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64
from fnad.numpy.operands import as_symbol, to_dtype
from fnad.numpy.registry import Rule

Method: TypeAlias = Callable[..., Any]


class Distribution:
    """A distribution; what has no rule is SciPy's own, for ordinary numbers."""

    def __init__(self, name: str, **rules: Rule) -> None:
        self.name, self.rules = name, rules

    def __call__(self, *args: Any, **options: Any) -> Frozen:
        """The distribution with its parameters fixed."""
        return Frozen(self, args, options)

    def __getattr__(self, name: str) -> Any:
        scipys = getattr(import_module("scipy.stats"), self.__dict__["name"])
        found, generic = getattr(scipys, name), import_module("fnad.scipy.stats.generic")
        classes = [getattr(generic, kind.__name__, None) for kind in type(scipys).__mro__]
        rule = next((vars(kind)[name] for kind in classes if name in getattr(kind, "__dict__", {})), None)
        if rule is None:
            return found
        called = wraps(found)(partial(rule.__func__, scipys))
        called.__signature__ = _signature(scipys, found)  # pyright: ignore[reportAttributeAccessIssue]
        return called

    def __repr__(self) -> str:
        return f"fnad.scipy.stats.{self.name}"


class Frozen:
    """A distribution with its parameters fixed: `norm(m, s).logpdf(x)` is `norm.logpdf(x, m, s)`."""

    def __init__(self, distribution: Distribution, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.distribution, self.args, self.options = distribution, args, options

    def __getattr__(self, name: str) -> Method:
        called = getattr(self.distribution, name)
        return lambda *x: called(*x, *self.args, **self.options)


def _signature(distribution: Any, method: Any) -> Signature:
    """The parameters of a SciPy method, shape parameters by name."""
    if not hasattr(distribution, "_parse_args"):
        return signature(method)
    own = [p for p in signature(method).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    return Signature([*own, *signature(distribution._parse_args).parameters.values()])


def real_symbol(value: Any) -> Symbol:
    """An operand in double precision, which SciPy computes in; complex numbers are refused."""
    symbol = as_symbol(value)
    if symbol.dtype.kind == "c":
        raise DtypeError(f"distributions do not take {symbol.dtype}", remedy="take its real part")
    return to_dtype(symbol, F64)
