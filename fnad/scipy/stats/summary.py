"""scipy.stats: summaries of samples, in SciPy's bodies without their decorator, or as NumPy formulas.

They do not warn of values for which they are nan. The decorator moves axes, and reads whether there is a nan.
"""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from pkgutil import resolve_name
from typing import Any

import numpy as np
from scipy.special import betaincc, stdtr

from fnad.errors import UnsupportedFunctionError
from fnad.numpy import array
from fnad.numpy.bodies import anew
from fnad.scipy.rule import on_values

rule = on_values("scipy.stats")


def _floats(values: Any) -> Any:
    given = array(values)
    return given if given.dtype.kind in "fc" else given.astype(np.float64)


def _sample(values: Any, axis: Any) -> tuple[Any, Any]:
    """The values as floats and the axis to summarize along, of all of them in one where it is None."""
    given = np.atleast_1d(_floats(values))
    return (given, axis) if axis is not None else (np.ravel(given), 0)


# ---- in SciPy's bodies -----------------------------------------------------------------------------------------------

SAMPLES = ("a", "x", "pk", "qk", "weights")
"""SciPy's names for parameters that are samples."""


def _summary(name: str) -> Any:
    """Enter the body of a SciPy function of samples, which are floats of one shape, along one axis."""

    def summary(*args: Any, **kwargs: Any) -> Any:
        function: Any = resolve_name(f"scipy.stats.{name}")
        given = signature(function).bind(*args, **kwargs)
        given.apply_defaults()
        options = dict(given.arguments)
        axis, keepdims, policy = (options.pop(each) for each in ("axis", "keepdims", "nan_policy"))
        if policy != "propagate":
            raise UnsupportedFunctionError(
                f"scipy.stats.{name} has no rule for the option nan_policy=", remedy="leave it out"
            )
        samples = {each: _floats(options[each]) for each in SAMPLES if options.get(each) is not None}
        arrays = np.broadcast_arrays(*samples.values())
        ndim, along = np.ndim(arrays[0]), 0 if axis is None else axis
        arrays = [np.ravel(array) if axis is None else array for array in arrays]
        options |= zip(samples, arrays, strict=True)
        if name == "gmean" and not np.size(arrays[0]):  # the mean in its body is gmean again then
            found = np.mean(arrays[0], axis=along)
        else:
            found = anew(function)(**options, axis=along, _no_deco=True)
        if not keepdims:
            return found
        if axis is None:
            return np.reshape(found, np.shape(found) + (1,) * ndim)
        return np.expand_dims(found, tuple(k % ndim - ndim for k in np.atleast_1d(axis)))

    summary.__name__, summary.__doc__ = name, f"SciPy's `{name}`."
    return rule(summary)


entropy, gmean, kurtosis, median_abs_deviation = map(_summary, ("entropy", "gmean", "kurtosis", "median_abs_deviation"))
moment, sem, skew, variation = map(_summary, ("moment", "sem", "skew", "variation"))

# ---- means -----------------------------------------------------------------------------------------------------------


def _mean(x: Any, axis: Any, weights: Any, keepdims: Any) -> Any:
    if weights is None:
        return np.mean(x, axis=axis, keepdims=keepdims)
    w = np.broadcast_to(_floats(weights), np.shape(x))
    return np.sum(w * x, axis=axis, keepdims=keepdims) / np.sum(w, axis=axis, keepdims=keepdims)


def _not_negative(a: Any) -> Any:
    x = _floats(a)
    return np.where(x < 0, np.nan, x)


@rule
def hmean(a: Any, axis: Any = 0, *, weights: Any = None, keepdims: Any = False) -> Any:
    """The reciprocal of the mean reciprocal."""
    return 1.0 / _mean(1.0 / _not_negative(a), axis, weights, keepdims)


@rule
def pmean(a: Any, p: Any, *, axis: Any = 0, weights: Any = None, keepdims: Any = False) -> Any:
    """The mean of powers, to the reciprocal power."""
    if isinstance(p, (int, float)) and p == 0:
        return gmean(a, axis=axis, weights=weights, keepdims=keepdims)
    return _mean(_not_negative(a) ** p, axis, weights, keepdims) ** (1 / p)


# ---- deviations ------------------------------------------------------------------------------------------------------

SCALES = {"normal": 0.6744897501960817}
"""The upper quartile of the normal distribution."""


@rule
def iqr(x: Any, axis: Any = None, rng: Any = (25, 75), scale: Any = 1.0, keepdims: Any = False) -> Any:
    """The difference of two percentiles."""
    by = 2 * SCALES[scale.lower()] if isinstance(scale, str) else scale
    given = _floats(x)
    shares = np.asarray([percent / 100 for percent in sorted(rng)], given.dtype)
    low, high = np.quantile(given, shares, axis=axis, keepdims=keepdims)
    return (high - low) / by


# ---- pairs of samples ------------------------------------------------------------------------------------------------


def _probability(upper: Any, statistic: Any, alternative: Any) -> Any:
    """The probability of such a statistic, or one beyond it, of a distribution that is symmetric around 0."""
    at = {"two-sided": np.abs(statistic), "greater": statistic, "less": -statistic}[alternative]
    return (2 if alternative == "two-sided" else 1) * upper(at)


@rule
def pearsonr(x: Any, y: Any, *, alternative: Any = "two-sided", axis: Any = 0) -> Any:
    """SciPy's result: the correlation, and the probability of one beyond it; nan where a sample is all the same."""
    (a, along), (b, _) = _sample(x, axis), _sample(y, axis)
    a, b = (np.moveaxis(value, along, -1) for value in (a, b))
    n = a.shape[-1]
    if n != b.shape[-1] or n < 2:
        raise ValueError("`x` and `y` must have the same length along `axis`, of at least 2.")
    da, db = (value - np.mean(value, axis=-1, keepdims=True) for value in (a, b))
    products = [np.sum(u * v, axis=-1) for u, v in ((da, db), (da, da), (db, db))]
    r = np.clip(products[0] / np.sqrt(products[1]) / np.sqrt(products[2]), -1.0, 1.0)
    if n == 2:
        r, p = np.round(r), np.ones_like(r)
    else:
        p = _probability(lambda r: betaincc(n / 2 - 1, n / 2 - 1, (r + 1) / 2), r, alternative)
    kind = import_module("scipy.stats._stats_py").PearsonRResult
    return kind(statistic=r, pvalue=p, alternative=alternative, n=n, x=a, y=b, axis=-1)


@rule
def linregress(x: Any, y: Any, alternative: Any = "two-sided") -> Any:
    """SciPy's result for the line through at least three points that do not lie above one another."""
    a, b = np.ravel(_floats(x)), np.ravel(_floats(y))
    n, mean_a, mean_b = a.shape[0], np.mean(a), np.mean(b)
    if n != b.shape[0] or n < 3:
        raise ValueError("`x` and `y` must have the same length, of at least 3.")
    saa, sab, sbb = np.mean((a - mean_a) ** 2), np.mean((a - mean_a) * (b - mean_b)), np.mean((b - mean_b) ** 2)
    slope, r = sab / saa, np.clip(sab / np.sqrt(saa * sbb), -1.0, 1.0)
    t = r * np.sqrt((n - 2) / ((1.0 - r + 1e-20) * (1.0 + r + 1e-20)))
    error = np.sqrt((1 - r**2) * sbb / saa / (n - 2))
    kind = import_module("scipy.stats._stats_py").LinregressResult
    return kind(
        slope=slope,
        intercept=mean_b - slope * mean_a,
        rvalue=r,
        pvalue=_probability(lambda t: stdtr(n - 2, -t), t, alternative),
        stderr=error,
        intercept_stderr=error * np.sqrt(saa + mean_a**2),
    )
