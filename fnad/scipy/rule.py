"""From a rule of fnad to the function of SciPy whose name it has.

A rule names those parameters of SciPy's function that it knows, with the same defaults; it is called as that function
is (`fnad.numpy.registry.Bound`). Where nothing is traced SciPy computes; it is imported at the first call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import Any, TypeAlias

from fnad.numpy.namespace import follows
from fnad.numpy.registry import bound

Function: TypeAlias = Callable[..., Any]


def rule_of(module: str) -> Callable[[Function], Function]:
    """Enter a function as the rule of the one of its name in a module of SciPy."""

    def enter(rule: Function) -> Function:
        @cache
        def original() -> Function:
            return getattr(import_module(module), rule.__name__)

        @cache
        def as_original() -> Function:
            return bound(rule, original(), f"{module}.{rule.__name__}")

        def on_traced(*args: Any, **kwargs: Any) -> Any:
            return as_original()(*args, **kwargs)

        @wraps(rule)
        def function(*args: Any, **kwargs: Any) -> Any:
            return original()(*args, **kwargs)

        return follows(on_traced)(function)

    return enter
