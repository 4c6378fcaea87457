"""From a rule of fnad to the function of SciPy whose name it has.

A rule names those parameters of SciPy's function that it knows, with the same defaults; it is called as that function
is (`fnad.numpy.registry.Bound`). Where nothing is traced SciPy computes; it is imported at the first call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from pkgutil import resolve_name
from types import FunctionType
from typing import Any, TypeAlias, cast

from fnad.ir.builder import innermost_builder
from fnad.ir.symbol import Symbol
from fnad.numpy.bodies import Body, anew
from fnad.numpy.namespace import follows
from fnad.numpy.registry import Bound
from fnad.ops.comparison import isfinite
from fnad.ops.requirement import require
from fnad.upward import UPWARD

Function: TypeAlias = Callable[..., Any]

FINITE: dict[str, Any] = {
    "message": "array must not contain infs or NaNs",
    "remedy": "leave them out, or give check_finite=False",
}
"""The error of SciPy, which a `try` of user code may handle."""


def others_of(module: str) -> Function:
    """The function that finds names which an fnad module does not have in a module of SciPy."""

    def find(name: str) -> Any:
        value = getattr(import_module(module), name)
        return body_of(f"{module}.{name}") if isinstance(value, FunctionType) else value

    return find


@cache
def body_of(path: str) -> Function:
    """SciPy's function under this name, which on traced values is what its own body makes of them."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return resolve_name(path)(*args, **kwargs)

    function.__module__, _, function.__name__ = path.rpartition(".")
    function.__qualname__ = function.__name__
    function.__doc__ = f"SciPy's `{path}`, also on traced values."

    def body(*args: Any, **kwargs: Any) -> Any:
        return anew(cast("FunctionType", resolve_name(path)))(*args, **kwargs)

    return follows(Body(body))(function)


def rule_of(module: str) -> Callable[[Function], Function]:
    """Enter a function as the rule of the one of its name in a module of SciPy; it receives symbols."""
    return _entering(module, module, lambda rule: rule)


def on_values(module: str, where: str | None = None) -> Callable[[Function], Function]:
    """Enter a function as the rule of the one of its name in a module of SciPy; it receives values as the user has.

    `where` is the module that has its body, if that is another one.
    """
    return _entering(module, where or module, Body)


def _entering(module: str, where: str, received: Callable[[Function], Function]) -> Callable[[Function], Function]:
    def enter(rule: Function) -> Function:
        path = f"{where}.{rule.__name__}"

        @cache
        def as_original() -> Bound:
            return Bound(rule, resolve_name(path), f"{module}.{rule.__name__}")

        def on_traced(*args: Any, **kwargs: Any) -> Any:
            if "_no_deco" in kwargs:  # decorators of SciPy request the body
                return anew(cast("FunctionType", resolve_name(path)))(*args, **kwargs)
            builder, original = innermost_builder(), as_original()
            if builder is not None and builder.tried and kwargs.get("check_finite", original.checks_finite):
                args = _finite(args)
            return original(*args, **kwargs)

        @wraps(rule)
        def function(*args: Any, **kwargs: Any) -> Any:
            return resolve_name(path)(*args, **kwargs)  # which is another one once a trace has begun

        return follows(received(on_traced))(function)

    return enter


def _finite(value: Any) -> Any:
    """Arguments that are required to be finite."""
    if isinstance(value, tuple):
        return tuple(map(_finite, value))
    is_inexact = isinstance(value, Symbol) and value.dtype.kind in "fc"
    return require(value, isfinite(value), **FINITE) if is_inexact else value


def method_of(path: str, *state: str) -> Callable[[Function], Function]:
    """Enter a function, of the object and the arguments, as what a method of a SciPy class does on traced values.

    It receives these as the user has them; attributes of the object that are named as its state may be traced too.
    """

    def enter(rule: Function) -> Function:
        def function(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            return resolve_name(path)(self, *args, **kwargs)

        function.__module__, _, function.__qualname__ = path.rpartition(".")
        either = follows(Body(rule))(function)

        @wraps(function)
        def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            has_traced = any(UPWARD.has_traced(getattr(self, name, None)) for name in state)
            return UPWARD.traced(function, (self, *args), kwargs) if has_traced else either(self, *args, **kwargs)

        return call if state else either

    return enter
