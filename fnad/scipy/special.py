"""scipy.special: its ufuncs take traced values themselves; what SciPy computes on ordinary arrays alone is here.

>>> import fnad
>>> from fnad.scipy.special import logsumexp
>>> fnad.grad(logsumexp)([0.0, 0.0])
[np.float64(0.5), np.float64(0.5)]
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from fnad.scipy.counting import comb, factorial, multigammaln, perm, polygamma
from fnad.scipy.exponential_sums import log_softmax, logsumexp, softmax
from fnad.scipy.spherical import spherical_in, spherical_jn, spherical_kn, spherical_yn

__all__ = [
    "comb",
    "factorial",
    "log_softmax",
    "logsumexp",
    "multigammaln",
    "perm",
    "polygamma",
    "softmax",
    "softplus",
    "spherical_in",
    "spherical_jn",
    "spherical_kn",
    "spherical_yn",
]


def softplus(x: Any, **options: Any) -> Any:
    """Return log(1 + exp(x)) without overflow, in x's shape and dtype, f64 for integers.

    >>> softplus(0.0)
    np.float64(0.6931471805599453)
    """
    return np.logaddexp(0, x, **options)


def __getattr__(name: str) -> Any:
    return getattr(import_module("scipy.special"), name)
