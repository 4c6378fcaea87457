"""SciPy and numpy.ma functions without a rule, classes and operators: converted where a traced value enters them.

The own code of such a function runs with hooks (`fnad.trace.conversion`), so that what it calls follows a rule. A class
whose `__init__` has a rule is called here as Python calls it. The left operand of an operator may be a masked array or
a sparse matrix without traced elements, and the right one traced: Python calls a method of the left one, which is
SciPy's. `operand` puts an `LeftOperand` in its place.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache, wraps
from importlib import import_module
from types import FunctionType
from typing import Any

from fnad.ir.builder import is_tracing
from fnad.numpy.bodies import anew
from fnad.trace.dispatch import STRAIGHT, call_body
from fnad.trace.handle import Aside
from fnad.trace.libraries import is_table
from fnad.trace.operators import BINARY, COMPARISONS, has_rules, is_of_ma
from fnad.trace.scipy_table import TABLE
from fnad.trace.wrapping import as_arrays, has_traced, is_known
from fnad.upward import UPWARD

ENTERED = ("scipy.", "numpy.ma.", "numpy.polynomial.")
"""The begins of modules of which a class is constructed by converted code."""

# ---- functions and classes -------------------------------------------------------------------------------------------


def holds_traced(value: Any) -> bool:
    """True for a traced value, and what has one: a list, a dict, a masked array, an object of a SciPy class."""
    kind = type(value)
    if kind in (tuple, list, dict):
        return any(map(holds_traced, value.values() if kind is dict else value))
    if has_traced(value) or issubclass(kind, Aside):
        return True
    is_entered = any(str(base.__module__).startswith(ENTERED) for base in kind.__mro__)
    return is_entered and has_traced(getattr(value, "__dict__", None))


def entered(function: FunctionType) -> Callable[..., Any]:
    """A function that is converted for traced arguments."""

    @wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        if not holds_traced((args, kwargs)):
            return function(*args, **kwargs)
        if has_traced((args, kwargs)) and is_known((args, kwargs)):
            return function(*as_arrays(args), **as_arrays(kwargs))
        import_rules(".".join(function.__module__.split(".")[:2]))
        return call_body(anew(function), args, kwargs)

    return call


@cache
def import_rules(package: str) -> None:
    """Import the rules for a package, which replace functions in C and helpers in the bodies of its functions."""
    for module, offers in TABLE.items():
        if module.startswith(package):
            for offering in offers:
                import_module(offering)


def constructing(kind: type) -> Any:
    """The callee for a class: one that is constructed by code of SciPy is so by other code for traced arguments."""
    new, init = kind.__new__, kind.__init__
    is_entered_one = any(isinstance(f, FunctionType) and str(f.__module__).startswith(ENTERED) for f in (new, init))
    if not is_entered_one or type(kind).__call__ is not type.__call__:
        return kind

    @wraps(kind, updated=())
    def construct(*args: Any, **kwargs: Any) -> Any:
        if not holds_traced((args, kwargs)):
            return kind(*args, **kwargs)
        made: Any = object.__new__(kind) if new is object.__new__ else UPWARD.callee(new)(kind, *args, **kwargs)
        if issubclass(type(made), kind):
            UPWARD.callee(type(made).__init__)(made, *args, **kwargs)
        return made

    return construct


# ---- operators -------------------------------------------------------------------------------------------------------


def operand(value: Any) -> Any:
    """The left operand of an operator."""
    if id(type(value)) in STRAIGHT or not is_tracing() or not (has_rules(value) or is_table(value)):
        return value
    return LeftOperand(value)


def as_traced(value: Any) -> Any:
    """A masked array or a sparse matrix as one of traced elements; any other value itself."""
    if is_of_ma(type(value)):
        return import_module("fnad.trace.masked").as_traced(value)
    return import_module("fnad.scipy.sparse").as_traced(value) if has_rules(value) else value


class LeftOperand:
    """The left operand of an operator, which follows a rule if the right one is traced."""

    __slots__ = ("value",)
    __array_ufunc__ = None

    def __init__(self, value: Any) -> None:
        self.value = value


def of_operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """The method of `LeftOperand` for an operator."""

    def method(self: LeftOperand, other: Any) -> Any:
        if not holds_traced(other):
            return function(self.value, other)
        if function is operator.matmul and is_table(self.value):
            return import_module("fnad.trace.labelled").product(self.value, other)
        return function(as_traced(self.value), other)

    return method


OPERATORS: dict[Any, Callable[..., Any]] = {
    ufunc: getattr(operator, f"__{name}__") for name, ufunc in (BINARY | COMPARISONS).items()
}
"""Binary operators by their ufuncs."""

for _name, _ufunc in (BINARY | COMPARISONS).items():
    setattr(LeftOperand, f"__{_name}__", of_operator(OPERATORS[_ufunc]))


def beside(ufunc: Any, operands: Sequence[Any]) -> Any:
    """The result of an operator on a traced value, and a masked array or a sparse matrix without traced elements."""
    return OPERATORS[ufunc](*map(as_traced, operands)) if ufunc in OPERATORS else NotImplemented
