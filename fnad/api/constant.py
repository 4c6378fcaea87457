"""`stop_gradient`: values that have no derivative."""

from __future__ import annotations

from typing import Any

from fnad.api.leaves import map_leaves
from fnad.ops import autodiff
from fnad.trace.dispatch import call, weakened
from fnad.trace.tracer import Tracer


def stop_gradient(tree: Any) -> Any:
    """A pytree with the same values, which every derivative of any order takes as constants.

    >>> from fnad.api.gradient import grad
    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    np.float64(3.0)
    """
    return map_leaves(_stopped, tree)


def _stopped(value: Any) -> Any:
    if not isinstance(value, Tracer):
        return value
    stopped = call(autodiff.stop_gradient, [value], {})
    return weakened(stopped) if value.is_weak else stopped
