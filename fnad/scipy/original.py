"""From a rule of fnad to the function of SciPy whose name and arguments it has."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, TypeAlias

from fnad.numpy.namespace import follows

Function: TypeAlias = Callable[..., Any]


def original(module: str) -> Callable[[Function], Function]:
    """Enter a function as the rule of the one of its name in a module of SciPy, which computes where nothing is traced.

    SciPy is imported when it is first called.
    """

    def enter(rule: Function) -> Function:
        @wraps(rule)
        def function(*args: Any, **kwargs: Any) -> Any:
            return getattr(import_module(module), rule.__name__)(*args, **kwargs)

        return follows(rule)(function)

    return enter
