"""A function applied row by row, as part of the program: `map`."""

from __future__ import annotations

from functools import partial
from typing import Any

from fnad.api.functions.disabled_jit import is_plain
from fnad.api.functions.loops import scan, scan_in_trace
from fnad.api.running.execution import in_trace
from fnad.api.staging.leaves import Function, check_function


def map(f: Function, xs: Any) -> Any:  # noqa: A001 the name that functional languages give it
    """The stacked results of `f(x)` for each row x of `xs`, computed one after the other.

    Parameters:
        f (function): Takes and returns pytrees of arrays and numbers.
        xs (pytree of arrays): Arrays with the same length along their first axis.
    Returns:
        pytree of arrays: With the structure of the result of `f`, and an axis more at the front.
    Raises:
        ShapeError: If the lengths differ, or a leaf of `xs` has no axis.
        ArgumentTypeError: If a leaf is not an array.
    Examples:
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
