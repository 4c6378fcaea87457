"""Primitives on the user's values: equations of the trace under way if an operand is traced, else arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fnad.ir.primitive import Primitive
from fnad.ir.symbol import Symbol
from fnad.numpy.namespace import follows
from fnad.numpy.operands import as_symbol
from fnad.ops import contraction, shape
from fnad.ops import sliding_windows as windows_ops


def applied(primitive: Primitive) -> Callable[..., Any]:
    """The function of a primitive."""

    def rule(*operands: Any, **params: Any) -> Symbol:
        return primitive(*map(as_symbol, operands), **params)

    @follows(rule)
    def function(*operands: Any, **params: Any) -> Any:
        return primitive.evaluate(*operands, **params)

    return function


dot_general = applied(contraction.dot_general)
pad = applied(shape.pad)
windows = applied(windows_ops.windows)
