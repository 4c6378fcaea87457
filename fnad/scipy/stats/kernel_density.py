"""scipy.stats.gaussian_kde of a dataset, weights and a bandwidth that may be traced, at traced points.

The estimate is Σ w_i N(x; x_i, L Lᵀ), where L is the Cholesky factor of the data's covariance times the bandwidth.

>>> import fnad
>>> import numpy as np
>>> from scipy.stats import gaussian_kde
>>> float(fnad.grad(lambda t: gaussian_kde([-1.0, 1.0])(t)[0])(0.0))
0.0
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from fnad.numpy.bodies import XP
from fnad.scipy.linalg import solve_triangular
from fnad.scipy.rule import method_of
from fnad.scipy.special import logsumexp

CLASS = "scipy.stats._kde:gaussian_kde"
STATE = ("dataset", "_weights", "covariance")
"""The attributes of an estimate that may be traced."""


def _terms(self: Any, points: Any) -> tuple[Any, Any, Any]:
    """For each datum and point the logarithm of the exponential; the weights; the logarithm of the factor of all."""
    x = XP.atleast_2d(XP.asarray(points))
    if x.shape[0] != self.d:
        if x.shape != (1, self.d):
            raise ValueError(f"points have dimension {x.shape[0]}, dataset has dimension {self.d}")
        x = XP.reshape(x, (self.d, 1))
    factor = XP.asarray(self.cho_cov)
    x, data = (solve_triangular(factor, part.astype(np.float64), lower=True) for part in (x, self.dataset))
    squares = sum((place[None] - datum[:, None]) ** 2 for place, datum in zip(x, data, strict=True))
    scale = -self.d / 2 * np.log(2 * np.pi) - XP.sum(XP.log(XP.diag(factor)))
    return squares / -2, self.weights[:, None], scale


def _evaluate(self: Any, points: Any) -> Any:
    exponents, weights, scale = _terms(self, points)
    return XP.sum(weights * XP.exp(exponents), axis=0) * XP.exp(scale)


def _logpdf(self: Any, x: Any) -> Any:
    exponents, weights, scale = _terms(self, x)
    return logsumexp(exponents, axis=0, b=weights) + scale


gaussian_kde = SimpleNamespace(
    evaluate=method_of(f"{CLASS}.evaluate", *STATE)(_evaluate),
    logpdf=method_of(f"{CLASS}.logpdf", *STATE)(_logpdf),
)
