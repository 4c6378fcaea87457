"""Python functions `statistics` on traced values, as those of math (`fnad.trace.standard`).

This is loaded where the module that they are of is there: it takes with it what a twentieth of `import fnad` would be.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from fnad.trace.dispatch import call_function, weakened
from fnad.trace.operators import is_python_like
from fnad.trace.standard import LISTING, STANDARD

Function: TypeAlias = Callable[..., Any]


def variance_of(ddof: int) -> Function:
    def variance(x: Any, centre: Any = None) -> Any:
        return np.sum((x - (np.mean(x) if centre is None else centre)) ** 2) / (x.size - ddof)

    return variance


def deviation_of(ddof: int) -> Function:
    return lambda x, centre=None: np.sqrt(variance_of(ddof)(x, centre))


STATISTICS: dict[str, Function] = {
    "correlation": lambda x, y: np.corrcoef(x, y)[0, 1],
    "covariance": lambda x, y: np.cov(x, y)[0, 1],
    "fmean": lambda x, weights=None: np.average(x, weights=weights),
    "geometric_mean": lambda x: np.exp(np.mean(np.log(x))),
    "harmonic_mean": lambda x, weights=None: 1 / np.average(1 / x, weights=weights),
    "mean": np.mean,
    "pstdev": deviation_of(0),
    "pvariance": variance_of(0),
    "stdev": deviation_of(1),
    "variance": variance_of(1),
}
"""The replacements of functions of statistics, on arrays."""


def of_data(function: Function, compute: Function) -> Function:
    """A rule of statistics: on arrays of lists, with a Python number as the result if all are some."""

    def rule(*args: Any, **options: Any) -> Any:
        function(*[list(map(float, range(1, len(x) + 1))) if isinstance(x, list) else 1.0 for x in args])
        arrays = [call_function(np.array, (x,), {}) if isinstance(x, list) else x for x in args]
        result = compute(*arrays, **options)
        is_python = all(is_python_like(number) for x in args for number in (x if isinstance(x, list) else [x]))
        return weakened(result) if is_python else result

    return rule


LISTING.update(getattr(statistics, name) for name in STATISTICS)
STANDARD.update((f := getattr(statistics, name), of_data(f, compute)) for name, compute in STATISTICS.items())
