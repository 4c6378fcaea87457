"""scipy.special: its ufuncs take traced values themselves; what SciPy computes on ordinary arrays alone is here.

>>> import fnad
>>> from fnad.scipy.special import logsumexp
>>> fnad.grad(logsumexp)([0.0, 0.0])
[np.float64(0.5), np.float64(0.5)]
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fnad.numpy.namespace import follows
from fnad.scipy import exponential_sums


@follows(exponential_sums.logsumexp)
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    """Return log(Σ b exp(a)) over axes (all if None), without overflow; -inf with derivative 0 where the sum is 0.

    The result has a's dtype, f64 for integers, and a's shape without the axes, or with size 1 there if `keepdims`.

    >>> logsumexp([1000.0, 1000.0])
    np.float64(1000.6931471805599)
    """
    return import_module("scipy.special").logsumexp(a, axis=axis, b=b, keepdims=keepdims)


@follows(exponential_sums.softmax)
def softmax(x: Any, axis: Any = None) -> Any:
    """Return exp(x) / Σ exp(x) over axes (all if None), without overflow, in x's shape and dtype, f64 for integers.

    >>> softmax([0.0, 0.0])
    array([0.5, 0.5])
    """
    return import_module("scipy.special").softmax(x, axis=axis)


@follows(exponential_sums.log_softmax)
def log_softmax(x: Any, axis: Any = None) -> Any:
    """Return x - log(Σ exp(x)) over axes (all if None), without overflow, in x's shape and dtype, f64 for integers.

    >>> log_softmax([0.0, 0.0])
    array([-0.69314718, -0.69314718])
    """
    return import_module("scipy.special").log_softmax(x, axis=axis)


def __getattr__(name: str) -> Any:
    return getattr(import_module("scipy.special"), name)
