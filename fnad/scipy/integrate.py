"""scipy.integrate: rules for samples, and `odeint`, with derivatives.

>>> import fnad
>>> import numpy as np
>>> oscillate = lambda w: odeint(lambda y, t: [y[1], -w * y[0]], [1, 0], np.array([0.0, 1.0]))[-1, 0]
>>> bool(np.isclose(fnad.grad(oscillate)(4.0), -np.sin(2.0) / 4))
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.api.functions.ode import odeint as solve
from fnad.numpy import array
from fnad.scipy.rule import others_of
from fnad.upward import UPWARD

PRECISION = 1.49012e-8
"""The tolerances of SciPy."""

MOST = 100_000
"""The most steps from one time to the next."""


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: tuple[Any, ...] = (),
    *,
    rtol: float | None = None,
    atol: float | None = None,
    mxstep: int = 0,
    tfirst: bool = False,
) -> Any:
    """The solution of dy/dt = func(y, t, *args), or of func(t, y, *args), at the times, in rows.

    It is that of `fnad.odeint`, not of LSODA, traced or not: its derivatives are those of the steps that were taken,
    and stiff equations take many. `y0` and what `func` returns become arrays of one axis of floats.

    >>> odeint(lambda y, t, k: -k * y, 1, [0, 1], (2.0,)).shape
    (2, 1)
    """

    def derivative(y: Any, t: Any, *args: Any) -> Any:
        return _vector(UPWARD.callee(func)(*((t, y) if tfirst else (y, t)), *args))

    precision = PRECISION if rtol is None else rtol, PRECISION if atol is None else atol
    return solve(derivative, _vector(y0), t, *args, rtol=precision[0], atol=precision[1], max_steps=mxstep or MOST)


def _vector(values: Any) -> Any:
    """Values as an array of one axis, of floats."""
    vector = np.atleast_1d(array(values))
    return vector if vector.dtype.kind in "fc" else vector.astype(np.float64)


__getattr__ = others_of("scipy.integrate")
