"""A function applied row by row, as part of the program: `map`."""

from __future__ import annotations

from functools import partial
from typing import Any

from fnad.api.iteration import scan, scan_in_trace
from fnad.api.leaves import Function, check_function
from fnad.api.plain import is_plain
from fnad.api.regions import in_trace


def map(f: Function, xs: Any) -> Any:  # noqa: A001 the name that functional languages give it
    """`f(x)` for each x along the leading axis of the arrays in `xs`, stacked, one after the other.

    Raises as `scan` does.

    >>> import numpy as np, fnad
    >>> fnad.map(np.sum, np.arange(6.0).reshape(3, 2))
    array([1., 5., 9.])
    """
    check_function(f, "map")
    if is_plain():
        return scan(partial(_step, f), None, xs)[1]
    return in_trace(f, lambda xs: scan_in_trace(partial(_step, f), None, xs, None, False, 1, f)[1], xs, names=("xs",))


def _step(f: Function, _: None, x: Any) -> tuple[None, Any]:
    return None, f(x)
