"""Continuous distributions, and the Bernoulli distribution, which a uniform draw decides.

Normal draws use Box and Muller's method: a logarithm, a root and a polynomial of a single block, without branches, so
that loops vectorise. The inverse distribution function would take a logarithm, a root and rational functions for each
of the body and the tails.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.ir.primitive import Primitive
from fnad.ir.types import F32, Dtype
from fnad.ops import random_bits
from fnad.random.elements import draw, words
from fnad.random.keys import checked
from fnad.random.parameters import Array, as_array, as_shape, check, float_dtype, is_traced, shape_of
from fnad.trace.unknown import explained


@explained
def uniform(key: Array, shape: Any = (), dtype: Any = np.float64, minval: Any = 0.0, maxval: Any = 1.0) -> Array:
    """Numbers x with minval <= x < maxval: multiples of 2**-53 (2**-24 in float32), shifted and scaled.

    The bounds broadcast to the shape, and x is differentiable in them. Known bounds that are not finite or out of order
    raise a `DomainError`; for traced ones out of order, x is minval.

    >>> from fnad import random
    >>> uniform(random.key(0), (2,))
    array([0.8805202 , 0.36209112])
    """
    found = float_dtype(dtype)
    low, high = as_array(minval), as_array(maxval)
    unit = unit_interval(checked(key), shape_of(shape, "bounds", low.shape, high.shape), found)
    if not is_traced(low, high) and np.all(low == 0) and np.all(high == 1):
        return unit
    return between(unit, low.astype(found), high.astype(found))


def unit_interval(key: Array, shape: Any, dtype: Dtype) -> Array:
    """Multiples of the dtype's precision in [0, 1)."""
    digits = 24 if dtype == F32 else 53
    return (words(key, shape) >> (64 - digits)).astype(dtype) * dtype.type(2.0**-digits)


def between(unit: Array, low: Array, high: Array) -> Array:
    """Uniform numbers scaled from the unit interval to the bounds; one rounded to the upper bound becomes the lower."""
    check(
        "minval and maxval are not finite numbers in order",
        lambda low, high: (low <= high) & np.isfinite(high - low),
        *(low, high),
        remedy="give bounds whose difference is a number",
    )
    x = low + unit * (high - low)
    return np.where(x < high, x, low)


@explained
def bernoulli(key: Array, p: Any = 0.5, shape: Any = None) -> Array:
    """True with probability p, else False. p broadcasts to the shape, by default its own.

    A known p that is not in [0, 1] raises a `DomainError`.

    >>> from fnad import random
    >>> bernoulli(random.key(0), 0.8, (3,))
    array([False,  True,  True])
    """
    chance = as_array(p)
    check("p is not in [0, 1]", lambda p: (p >= 0) & (p <= 1), chance, remedy="give a probability")
    return uniform(key, shape_of(shape, "p", chance.shape)) < chance


# ---- without parameters ------------------------------------------------------------------------------------------


@explained
def normal(key: Array, shape: Any = (), dtype: Any = np.float64) -> Array:
    """Draws from the normal distribution of mean 0 and variance 1.

    >>> from fnad import random
    >>> normal(random.key(0), (2,))
    array([ 0.16412726, -1.41571612])
    """
    return standard(random_bits.random_normal, key, shape, dtype)


@explained
def exponential(key: Array, shape: Any = (), dtype: Any = np.float64) -> Array:
    """Draws from the exponential distribution of mean 1, all above 0.

    >>> from fnad import random
    >>> exponential(random.key(0), (2,))
    array([0.12724241, 1.0158594 ])
    """
    return standard(random_bits.random_exponential, key, shape, dtype)


@explained
def gumbel(key: Array, shape: Any = (), dtype: Any = np.float64) -> Array:
    """Draws from the Gumbel distribution with distribution function exp(-exp(-x)).

    >>> from fnad import random
    >>> gumbel(random.key(0), (2,))
    array([ 2.06166125, -0.01573495])
    """
    return standard(random_bits.random_gumbel, key, shape, dtype)


@explained
def laplace(key: Array, shape: Any = (), dtype: Any = np.float64) -> Array:
    """Draws from the Laplace distribution with density exp(-|x|) / 2.

    >>> from fnad import random
    >>> laplace(random.key(0), (2,))
    array([-0.12724241,  1.0158594 ])
    """
    return standard(random_bits.random_laplace, key, shape, dtype)


@explained
def cauchy(key: Array, shape: Any = (), dtype: Any = np.float64) -> Array:
    """Draws from the Cauchy distribution with density 1 / π(1 + x²).

    >>> from fnad import random
    >>> cauchy(random.key(0), (2,))
    array([ 0.34406864, -8.54227036])
    """
    return standard(random_bits.random_cauchy, key, shape, dtype)


def standard(distribution: Primitive, key: Array, shape: Any, dtype: Any) -> Array:
    """Draws from a distribution without parameters; those in float32 are rounded from float64."""
    found = float_dtype(dtype)
    return draw(distribution, checked(key), as_shape(shape)).astype(found)


# ---- gamma -------------------------------------------------------------------------------------------------------


@explained
def gamma(key: Array, a: Any, shape: Any = None, dtype: Any = np.float64) -> Array:
    """Draws from the gamma distribution of shape parameter a > 0 and scale 1, by default as many as `a` has elements.

    By G. Marsaglia & W. W. Tsang, "A simple method for generating gamma variables", ACM Trans. Math. Softw. 26 (2000),
    363. The derivative in `a`, which broadcasts, is that of the quantile: M. Figurnov, S. Mohamed & A. Mnih, "Implicit
    reparameterization gradients", NeurIPS 2018, equation 5. A known `a` that is not positive and finite raises
    a `DomainError`; traced ones not above 0 give nan.

    >>> from fnad import random
    >>> gamma(random.key(0), 3.0)
    np.float64(2.6948273100195967)
    """
    found = float_dtype(dtype)
    parameter = as_array(a)
    check("a is not positive and finite", lambda a: (a > 0) & (a < np.inf), parameter, remedy="give a > 0")
    extents = shape_of(shape, "a", parameter.shape)
    return draw(random_bits.random_gamma, checked(key), extents, parameter).astype(found)
