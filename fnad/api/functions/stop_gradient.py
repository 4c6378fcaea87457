"""`stop_gradient`: values that have no derivative."""

from __future__ import annotations

from typing import Any

from fnad.api.staging.leaves import map_leaves
from fnad.ops import autodiff
from fnad.trace.dispatch import call, weakened
from fnad.trace.tracer import Tracer


def stop_gradient(tree: Any) -> Any:
    """A pytree with the same values, which derivatives of every order treat as constants.

    Parameters:
        tree: Pytree of arrays and numbers.
    Returns:
        pytree: With the structure, shapes and dtypes of `tree`.
    Examples:
        >>> import fnad
        >>> fnad.grad(lambda x: x * fnad.stop_gradient(x))(3.0)
        np.float64(3.0)
    """
    return map_leaves(_stopped, tree)


def _stopped(value: Any) -> Any:
    if not isinstance(value, Tracer):
        return value
    stopped = call(autodiff.stop_gradient, [value], {})
    return weakened(stopped) if value.is_weak else stopped
