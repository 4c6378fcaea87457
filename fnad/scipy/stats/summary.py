"""scipy.stats: summaries of samples, as NumPy formulas; they do not warn of values for which they are nan."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np
from scipy.special import betaincc, entr, rel_entr, stdtr

from fnad.numpy import array
from fnad.scipy.rule import on_values

rule = on_values("scipy.stats")


def _floats(values: Any) -> Any:
    given = array(values)
    return given if given.dtype.kind in "fc" else given.astype(np.float64)


def _sample(values: Any, axis: Any) -> tuple[Any, Any]:
    """The values as floats and the axis to summarize along, of all of them in one where it is None."""
    given = np.atleast_1d(_floats(values))
    return (given, axis) if axis is not None else (np.ravel(given), 0)


def _of_shape(found: Any, values: Any, axis: Any, keepdims: Any) -> Any:
    """The result, found with the axis kept: without the axis unless it is kept, or with as many as the values had."""
    if not keepdims:
        return np.squeeze(found, axis=axis)
    return found if np.ndim(found) == np.ndim(values) else np.reshape(found, (1,) * np.ndim(values))


# ---- scores ----------------------------------------------------------------------------------------------------------


@rule
def zmap(scores: Any, compare: Any, axis: Any = 0, ddof: Any = 0) -> Any:
    """The scores' distances from the mean of `compare`, in standard deviations of `compare`."""
    mean, deviation = _mean_and_deviation(_floats(compare), axis, ddof)
    return (_floats(scores) - mean) / deviation


def _mean_and_deviation(x: Any, axis: Any, ddof: Any) -> tuple[Any, Any]:
    return np.mean(x, axis=axis, keepdims=True), np.std(x, axis=axis, ddof=ddof, keepdims=True)


@rule
def zscore(a: Any, axis: Any = 0, ddof: Any = 0) -> Any:
    """The same of a sample by itself; nan where all of it is the same."""
    x = _floats(a)
    mean, deviation = _mean_and_deviation(x, axis, ddof)
    is_constant = deviation <= np.abs(np.finfo(x.dtype).eps * mean)
    return np.where(is_constant, np.nan, (x - mean) / deviation)


@rule
def gzscore(a: Any, *, axis: Any = 0, ddof: Any = 0) -> Any:
    """The scores of the logarithms."""
    return zscore(np.log(_floats(a)), axis=axis, ddof=ddof)


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
def gmean(a: Any, axis: Any = 0, weights: Any = None, *, keepdims: Any = False) -> Any:
    """The exponential of the mean logarithm."""
    return np.exp(_mean(np.log(_floats(a)), axis, weights, keepdims))


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


@rule
def gstd(a: Any, axis: Any = 0, ddof: Any = 1, *, keepdims: Any = False) -> Any:
    """The exponential of the standard deviation of the logarithms."""
    return np.exp(np.std(np.log(_floats(a)), axis=axis, ddof=ddof, keepdims=keepdims))


@rule
def sem(a: Any, axis: Any = 0, ddof: Any = 1, *, keepdims: Any = False) -> Any:
    """The standard error of the mean."""
    x, along = _sample(a, axis)
    found = np.std(x, axis=along, ddof=ddof, keepdims=True) / np.sqrt(x.shape[along])
    return _of_shape(found, a, along, keepdims)


@rule
def variation(a: Any, axis: Any = 0, ddof: Any = 0, *, keepdims: Any = False) -> Any:
    """The standard deviation as a multiple of the mean."""
    x = _floats(a)
    return np.std(x, axis=axis, ddof=ddof, keepdims=keepdims) / np.mean(x, axis=axis, keepdims=keepdims)


SCALES = {"normal": 0.6744897501960817}
"""The upper quartile of the normal distribution."""


@rule
def iqr(x: Any, axis: Any = None, rng: Any = (25, 75), scale: Any = 1.0, keepdims: Any = False) -> Any:
    """The difference of two percentiles."""
    by = 2 * SCALES[scale.lower()] if isinstance(scale, str) else scale
    low, high = np.percentile(_floats(x), sorted(rng), axis=axis, keepdims=keepdims)
    return (high - low) / by


@rule
def median_abs_deviation(x: Any, axis: Any = 0, scale: Any = 1.0, *, keepdims: Any = False) -> Any:
    """The median distance from the median."""
    by = SCALES[scale.lower()] if isinstance(scale, str) else scale
    distances = np.abs(_floats(x) - np.median(_floats(x), axis=axis, keepdims=True))
    return np.median(distances, axis=axis, keepdims=keepdims) / by


# ---- moments ---------------------------------------------------------------------------------------------------------


@rule
def moment(a: Any, order: Any = 1, axis: Any = 0, *, center: Any = None, keepdims: Any = False) -> Any:
    """The mean powers of differences from the mean, or from another center."""
    if np.ndim(order):
        return np.stack([moment(a, k, axis, center=center, keepdims=keepdims) for k in order])
    x, along = _sample(a, axis)
    return _of_shape(_moment(x, int(order), along, center), a, along, keepdims)


def _moment(x: Any, order: int, axis: Any, center: Any = None) -> Any:
    about = np.mean(x, axis=axis, keepdims=True) if center is None else center
    if center is None and order == 1:
        return np.zeros_like(about)
    return np.mean((x - about) ** order, axis=axis, keepdims=True)


def _has_spread(x: Any, m2: Any, axis: Any) -> Any:
    return m2 > (np.finfo(x.dtype).eps * np.mean(x, axis=axis, keepdims=True)) ** 2


@rule
def skew(a: Any, axis: Any = 0, bias: Any = True, *, keepdims: Any = False) -> Any:
    """The third standardized moment; nan where all of the sample is the same."""
    x, along = _sample(a, axis)
    n, m2, m3 = x.shape[along], _moment(x, 2, along), _moment(x, 3, along)
    factor = math.sqrt((n - 1) * n) / (n - 2) if not bias and n > 2 else 1.0
    found = np.where(_has_spread(x, m2, along), factor * m3 / m2**1.5, np.nan)
    return _of_shape(found, a, along, keepdims)


@rule
def kurtosis(a: Any, axis: Any = 0, fisher: Any = True, bias: Any = True, *, keepdims: Any = False) -> Any:
    """The fourth standardized moment, less the 3 of a normal distribution if `fisher`."""
    x, along = _sample(a, axis)
    n, m2, m4 = x.shape[along], _moment(x, 2, along), _moment(x, 4, along)
    ratio = m4 / m2**2
    if not bias and n > 3:
        ratio = ((n**2 - 1) * ratio - 3 * (n - 1) ** 2) / (n - 2) / (n - 3) + 3
    found = np.where(_has_spread(x, m2, along), ratio, np.nan)
    return _of_shape(found - 3 if fisher else found, a, along, keepdims)


# ---- distributions, and pairs of samples -----------------------------------------------------------------------------


@rule
def entropy(pk: Any, qk: Any = None, base: Any = None, axis: Any = 0, *, keepdims: Any = False) -> Any:
    """The entropy of a distribution that is made to sum to 1, or that relative to another one."""
    p = _floats(pk)
    terms = entr if qk is None else lambda p: rel_entr(p, _normalized(np.broadcast_to(_floats(qk), shape), axis))
    shape = np.shape(p) if qk is None else np.broadcast_shapes(np.shape(p), np.shape(_floats(qk)))
    found = np.sum(terms(_normalized(np.broadcast_to(p, shape), axis)), axis=axis, keepdims=keepdims)
    return found if base is None else found / np.log(base)


def _normalized(p: Any, axis: Any) -> Any:
    return p / np.sum(p, axis=axis, keepdims=True)


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
