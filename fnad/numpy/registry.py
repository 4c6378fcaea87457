"""The table from NumPy's functions to their rules.

A rule has the signature of the NumPy function and computes with symbols: where the user gave a traced value it finds a
`Symbol` (a `WeakSymbol` for a Python number), everything else is as the user gave it. It returns a symbol, an
`ArrayView` where NumPy's result shares memory with an operand, or a tuple or list of these:

    @implements(np.trace)
    def trace(a, offset=0, axis1=0, axis2=1, dtype=None):
        return sum_(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)

Nothing here differentiates: rules are compositions of primitives, or of other rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

Rule: TypeAlias = Callable[..., Any]
RuleT = TypeVar("RuleT", bound=Rule)

RULES: dict[Any, Rule] = {}
"""The rule of each NumPy function and ufunc; the methods of a ufunc stand under (ufunc, method)."""


WRITERS: dict[Any, Rule] = {}
"""The rules of functions that write into their first argument: what it holds afterwards."""


def implements(*functions: Any) -> Callable[[RuleT], RuleT]:
    """Enter a rule for NumPy functions."""
    return _enter(RULES, functions)


def writes(*functions: Any) -> Callable[[RuleT], RuleT]:
    """Enter a rule for functions that write into their first argument."""
    return _enter(WRITERS, functions)


def _enter(table: dict[Any, Rule], functions: tuple[Any, ...]) -> Callable[[RuleT], RuleT]:
    def enter(rule: RuleT) -> RuleT:
        for function in functions:
            if function in table:
                raise ValueError(f"{function} has two rules")
            table[function] = rule
        return rule

    return enter
