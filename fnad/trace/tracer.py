"""The traced value that the user's function computes with: it speaks NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.numpy.registry import RULES
from fnad.trace.dispatch import call, call_function, no_rule, operate
from fnad.trace.handle import Handle


class Tracer(Handle):
    """A traced value."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        rule = RULES.get(ufunc if method == "__call__" else (ufunc, method))
        if rule is None:
            raise no_rule(f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"))
        return call(rule, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:  # noqa: ARG002
        return call_function(function, args, kwargs)

    def __repr__(self) -> str:
        return f"Tracer({self.aval})"

    def __add__(self, other: Any) -> Any:
        return operate(np.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return operate(np.add, other, self)

    def __mul__(self, other: Any) -> Any:
        return operate(np.multiply, self, other)

    def __rmul__(self, other: Any) -> Any:
        return operate(np.multiply, other, self)
