"""The table from NumPy's functions to their rules.

A rule computes with symbols: where the user gave a traced value it finds a `Symbol` (a `WeakSymbol` for a Python
number), everything else is as the user gave it. It returns a symbol, an `ArrayView` where NumPy's result shares memory
with an operand, or a tuple or list of these:

    @implements(np.trace)
    def trace(a, offset, axis1, axis2, dtype):
        return sum_(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)

It is called as the NumPy function is, by the user and by other rules: the order of the parameters and their defaults
are NumPy's own (`Bound`), and the rule names those it knows. Nothing here differentiates: rules are compositions of
primitives, or of other rules.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import update_wrapper
from typing import Any, TypeAlias

import numpy as np

from fnad.errors import ArgumentTypeError, UnsupportedFunctionError
from fnad.forks import cached_property
from fnad.words import word_for_keyword

Rule: TypeAlias = Callable[..., Any]

RULES: dict[Any, Rule] = {}
"""The rule of each NumPy function and ufunc; the methods of a ufunc stand under (ufunc, method)."""


OF_AVALS: set[Rule] = set()
"""Rules to which an array is what a traced value of its dtype and shape is, whether that is known or not."""

OF_HALVES: set[Rule] = set()
"""Rules that take symbols for float16."""

OF_PLACES: set[Rule] = set()
"""Rules of places in an array, which hardly come twice: what they do is not remembered."""

WRITERS: dict[Any, Rule] = {}
"""The rules of functions that write into their first argument: what it holds afterwards."""


# ---- entering rules --------------------------------------------------------------------------------------------------


def implements(*functions: Any) -> Callable[[Rule], Rule]:
    """Enter a rule for NumPy functions."""
    return _enter(RULES, functions)


def writes(*functions: Any) -> Callable[[Rule], Rule]:
    """Enter a rule for functions that write into their first argument."""
    return _enter(WRITERS, functions)


def _enter(table: dict[Any, Rule], functions: tuple[Any, ...]) -> Callable[[Rule], Rule]:
    def enter(rule: Rule) -> Rule:
        for function in functions:
            if function in table:
                raise ValueError(f"{function} has two rules")
            table[function] = rule if isinstance(function, np.ufunc) else _bound(rule, function)
        return table[functions[0]]

    return enter


# ---- calling them as NumPy's functions -------------------------------------------------------------------------------

UNSET: Any = np._NoValue  # type: ignore[attr-defined]
"""The default, in NumPy's signatures, of an option that is not given."""

NOT_GIVEN = {"keepdims": False, "where": True}
"""The values of a rule's arguments that were not given; the others are UNSET."""

OF_SPEED = {"assume_unique", "check_finite", "lapack_driver", "lwork"}
OVERWRITING = {"overwrite_a", "overwrite_ab", "overwrite_b", "overwrite_input"}
WITHOUT_EFFECT = {"device", "like", "order", "out", "sorted", "subok"} | OF_SPEED | OVERWRITING
"""Options that a rule need not name. A traced array has no layout in memory, no subclass and no device; some options
are a matter of speed; what NumPy leaves unsorted may be sorted. `out` is written to by the caller of the rule."""

OF_UFUNCS: dict[str, Rule] = {
    "reduce": lambda array, axis=0, dtype=None, out=None, keepdims=False, initial=UNSET, where=True: None,
    "accumulate": lambda array, axis=0, dtype=None, out=None: None,
    "reduceat": lambda array, indices, axis=0, dtype=None, out=None: None,
}
"""The signatures of methods of ufuncs."""

SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _bound(rule: Rule, function: Any) -> Rule:
    entered = Bound(rule, function)
    if not rule.__module__.startswith("fnad."):
        entered.convention  # noqa: B018 - a mistake in a user's rule is found where it is entered
    return entered


class Convention:
    """The calling convention of a NumPy function, and the arguments of its rule."""

    def __init__(self, name: str, called: inspect.Signature, own: inspect.Signature) -> None:
        self.name, self.signature = name, called
        parameters = called.parameters.values()
        optional = {p.name for p in own.parameters.values() if p.kind is p.KEYWORD_ONLY}
        self.names = frozenset(own.parameters) - (optional - called.parameters.keys())  # older versions may lack these
        for unknown in self.names - called.parameters.keys():
            raise ValueError(f"the rule of {name} takes {unknown!r}, which it has not")
        self.positional = tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)
        given = {p.name: p.default for p in parameters if p.name in self.names and p.default is not p.empty}
        self.defaults = {name: NOT_GIVEN.get(name, UNSET) if d is UNSET else d for name, d in given.items()}
        takes_all_by_position = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in own.parameters.values())
        self.defaults_behind = dict(self._by_count(tuple(own.parameters))) if takes_all_by_position else {}

    def _by_count(self, own: tuple[str, ...]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """The defaults behind so many arguments, where these are the rule's first ones: what most calls are."""
        for count in range(len(own) + 1):
            rest = own[count:]
            if own[:count] == self.positional[:count] and self.defaults.keys() >= set(rest):
                yield count, tuple(self.defaults[name] for name in rest)

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of the rule, by keyword."""
        given = dict(zip(self.positional, args, strict=False)) | kwargs
        values = self.defaults | {name: value for name, value in given.items() if value is not UNSET}
        as_named = len(given) == len(args) + len(kwargs) and values.keys() == self.names
        return values if as_named else self._checked(values, args, kwargs)

    def _checked(self, values: dict[str, Any], args: Any, kwargs: Any) -> dict[str, Any]:
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentTypeError(f"{self.name}: {error}", remedy=word_for_keyword(str(error))) from None
        for name in values.keys() - self.names - WITHOUT_EFFECT:
            if not _is_default(values[name], self.signature.parameters[name].default):
                raise UnsupportedFunctionError(f"{self.name} has no rule for the option {name}=", remedy="leave it out")
        return {name: value for name, value in values.items() if name in self.names}


class Bound:
    """A rule that is called by the signature of a NumPy function; it has parameters of the same names, by keyword.

    An option that it has no parameter for is an error, unless it is the default. Where the rule or the function takes
    any number of arguments, or NumPy has no signature, the rule is called as it is.
    """

    def __init__(self, rule: Rule, function: Any, name: str | None = None) -> None:
        update_wrapper(self, rule)
        self.rule, self._function, self._name = rule, function, name

    @cached_property
    def convention(self) -> Convention | None:
        """The calling convention; None for the function's own. Signatures are read on demand."""
        own = _signature(self.rule)
        called = own and _signature(self._function)
        return None if own is None or called is None else Convention(self._name or _name(self._function), called, own)

    @cached_property
    def checks_finite(self) -> bool:
        """True if the function raises an error for infs and nans unless it is told not to."""
        called = _signature(self._function)
        return called is not None and "check_finite" in called.parameters

    def of(self, rule: Rule) -> Bound:
        """The same for another rule."""
        return Bound(rule, self._function, self._name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        convention = self.convention
        if convention is None:
            return self.rule(*args, **kwargs)
        defaults = None if kwargs else convention.defaults_behind.get(len(args))
        return self.rule(**convention.given(args, kwargs)) if defaults is None else self.rule(*args, *defaults)


def _signature(function: Any) -> inspect.Signature | None:
    """The signature of a function; None for a ufunc, before NumPy 2.4 for a function in C, and for any number."""
    if isinstance(function, tuple):
        function = OF_UFUNCS.get(function[1], function[0])
    try:
        signature = None if isinstance(function, np.ufunc) else inspect.signature(function)
    except ValueError:
        return None
    takes_several = signature and any(p.kind in SEVERAL for p in signature.parameters.values())
    return None if takes_several else signature


def _name(function: Any) -> str:
    if isinstance(function, tuple):
        return f"numpy.{function[0].__name__}.{function[1]}"
    return f"{function.__module__}.{function.__qualname__}"


def _is_default(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and value == default)
