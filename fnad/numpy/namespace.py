"""NumPy's names for what NumPy itself cannot hand on.

`np.array([t, u])` on traced values, `np.zeros(n)` that is to be filled with them, `table[t]`: NumPy's protocols do not
catch these. The functions here take traced values anywhere in their arguments, and while a trace runs those in `NEW`
make traced arrays, which can be written to and indexed by traced values. Such an array has numbers as long as it
depends on no input (see `fnad.ir.known`), so that it can also decide on branches, count loops and go to SciPy.
Elsewhere the functions are NumPy's own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np

from fnad.blocks import Holding, LocalBlocks
from fnad.errors import FnadError
from fnad.ir.builder import is_tracing
from fnad.ir.types import NAMES
from fnad.numpy.registry import RULES, Rule
from fnad.upward import UPWARD

NEW = {
    *("arange", "array", "asanyarray", "asarray", "ascontiguousarray", "copy", "empty", "empty_like", "eye", "full"),
    *("full_like", "geomspace", "identity", "indices", "linspace", "logspace", "ones", "ones_like", "tri"),
    *("zeros", "zeros_like"),
}
"""Functions that make a new array."""

FRESH = NEW - {"array", "asanyarray", "asarray", "ascontiguousarray"}
"""Functions whose result has memory of its own; `copy` is a method too."""


class Attempt:
    """A run in which NumPy makes traced arrays, and arrays from outside are read as traced ones.

    `is_past` once it computes at the place where a run without has ended. `given` has the arrays from outside by the
    identities of array and trace, each with the traced value and a copy of the content.
    """

    def __init__(self, place: object) -> None:
        self.place, self.is_past = place, False
        self.given: dict[tuple[int, int], tuple[Any, Any, Any]] = {}


class _Making(LocalBlocks[Attempt]):
    """The runs under way, and the last write into an ordinary array that was `refused`.

    NumPy takes such a write, so a run is right only if its error has left it: user code may have caught the error.
    """

    refused: FnadError | None = None

    def refuse(self, error: FnadError) -> FnadError:
        """The error, which is noted."""
        self.refused = error
        return error

    @property
    def is_traced(self) -> bool:
        return bool(self.entries)

    def note(self, place: object) -> None:
        """Note that something is computed at a place."""
        attempt = self.innermost
        if attempt is not None and attempt.place == place:
            attempt.is_past = True


MAKING = _Making()
"""True if the functions of NumPy that make a new array make a traced one, in code that imports NumPy itself."""


def making_traced(past: object = None) -> Holding[Attempt]:
    """Let NumPy's functions that make a new array make a traced one in the traces of a block.

    `past` is the place where a run without that has ended.
    """
    return MAKING.holding(Attempt(past))


def made_traced(value: Any, given: tuple[Any, ...] = ()) -> Any:
    """A result of NumPy; while new arrays are traced, a traced value for an array with memory of its own."""
    if not MAKING.is_traced or type(value) is not np.ndarray or value.base is not None:
        return value
    is_new = value.dtype in NAMES and not any(value is operand for operand in given)
    return UPWARD.traced(np.array, (value,), {}) if is_new else value


def on_traced(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that follows its rule where an argument is traced, and is itself elsewhere."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_tracing() and (UPWARD.has_traced(args) or (kwargs and UPWARD.has_traced(kwargs))):
            return UPWARD.traced(function, args, kwargs)
        return function(*args, **kwargs)

    return call


def follows(rule: Rule) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the rule of a function of fnad's own; where no argument is traced it is itself."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        RULES[function] = rule
        return on_traced(function)

    return enter


def on_trace(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose result is traced while a trace runs, and which is itself elsewhere."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_tracing():
            return function(*args, **kwargs)
        if function in RULES:
            return UPWARD.traced(function, args, kwargs)
        return UPWARD.traced(np.array, (function(*args, **kwargs),), {})

    return call


def numpy_name(name: str) -> Any:
    """The object that fnad.numpy has under a NumPy name."""
    return on_trace(getattr(np, name)) if name in NEW else followed(getattr(np, name))


def followed(value: Any) -> Any:
    """A function that has a rule so that it takes traced values; anything else as it is."""
    has_rule = callable(value) and not isinstance(value, (type, np.ufunc)) and value in RULES
    return on_traced(value) if has_rule else value


def names_of(module: ModuleType, target: str) -> Callable[[str], Any]:
    """A function that finds NumPy names in an fnad module, whose functions take traced values anywhere."""

    def find(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = vars(sys.modules[target])[name] = followed(getattr(module, name))
        return value

    return find
