"""Numbers that the user sets: checked if known, and without influence on dtypes; and what is made of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

import numpy as np

from fnad.api.staging.leaves import type_name
from fnad.errors import HyperparameterError
from fnad.ir.builder import is_tracing
from fnad.trace.tracer import Tracer
from fnad.trace.unknown import explained
from fnad.tracebacks import boundary
from fnad.upward import UPWARD

P = ParamSpec("P")
T = TypeVar("T")

Number: TypeAlias = Any
"""A Python number, a 0-d array, or a traced number."""

Schedule: TypeAlias = Callable[[Any], Any]
"""A function from the number of steps taken to a hyperparameter."""


class MadeSchedule:
    """A schedule that is named by the call that made it, and pickled as this call."""

    __slots__ = ("__qualname__", "__wrapped__", "made_by")

    def __init__(self, schedule: Schedule) -> None:
        self.__wrapped__ = schedule
        self.made_by: Any = None

    def __call__(self, count: Any) -> Any:
        return self.__wrapped__(count)

    def __repr__(self) -> str:
        return f"fnad.optim.{self.__qualname__}"

    def __reduce__(self) -> Any:
        return made_again, self.made_by


def made_again(make: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    """The transformation or schedule of a call that was pickled."""
    return UPWARD.callee(make)(*args, **kwargs)


def named(make: Callable[P, T]) -> Callable[P, T]:
    """A function that makes transformations or schedules, named by the call that makes them, and pickled as it."""
    checked = explained(make)

    @boundary
    @wraps(make)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        made: Any = checked(*args, **kwargs)
        given = (
            [*map(repr, args), *[f"{name}={value!r}" for name, value in kwargs.items()]] if not is_tracing() else "…"
        )
        made = made if hasattr(made, "update") else MadeSchedule(made)
        marked = getattr(made, "update", made)
        marked.__qualname__, marked.made_by = f"{make.__name__}({', '.join(given)})", (call, args, kwargs)
        return made

    return call


def as_dtype_of(leaf: Any, number: Number) -> Number:
    """A number in the dtype of the leaf it is combined with; a Python number adapts by itself."""
    is_array = isinstance(number, (np.generic, np.ndarray))
    return cast("Any", number).astype(leaf.dtype) if is_array and hasattr(leaf, "dtype") else number


def check_not_negative(name: str, number: Number) -> None:
    """Raise `HyperparameterError` unless the number is finite and 0 or greater."""
    _check(name, number, lambda x: 0 <= x < math.inf, "finite and 0 or greater")


def check_positive(name: str, number: Number) -> None:
    """Raise `HyperparameterError` unless the number is greater than 0."""
    _check(name, number, lambda x: x > 0, "greater than 0")


def check_decay(name: str, number: Number) -> None:
    """Raise `HyperparameterError` unless the number can be the decay rate of an average."""
    _check(name, number, lambda x: 0 <= x < 1, "at least 0 and less than 1")


def check_count(name: str, number: Any, least: int = 0) -> None:
    """Raise `HyperparameterError` unless the number is a count of steps."""
    _check(name, number, lambda x: x == math.floor(x) and x >= least, f"a whole number, {least} or greater")


def _check(name: str, number: Any, holds: Callable[[float], bool], range_: str) -> None:
    if isinstance(number, Tracer):
        return
    if isinstance(number, bool) or not isinstance(number, (int, float, np.number, np.ndarray)) or np.ndim(number):
        found = type_name(cast("Any", number))
        raise HyperparameterError.here(f"{name} is of type {found}", remedy="give one number")
    if not (np.isrealobj(number) and math.isfinite(number) and holds(float(number))):
        raise HyperparameterError.here(f"{name} is {number}", remedy=f"it has to be {range_}")
