"""Activation functions, with the names, arguments and slopes at kinks of `jax.nn`.

They are lines of NumPy, for whoever looks for them by name. nan stays nan, and no branch overflows that is not taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import fnad.numpy as fnp
from fnad.scipy import special
from fnad.trace.unknown import explained

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "swish",
]

# ---- with kinks ----------------------------------------------------------------------------------------------------


def relu(x: Any) -> Any:
    """max(x, 0), with slope 0 at 0.

    >>> relu(np.array([-1.0, 0.0, 2.0]))
    array([0., 0., 2.])
    """
    return np.where(np.less_equal(x, 0), 0, x)[()]


def relu6(x: Any) -> Any:
    """min(max(x, 0), 6), with slope 0 at 0 and 6.

    >>> relu6(np.array([-1.0, 2.0, 7.0]))
    array([0., 2., 6.])
    """
    return np.where(np.greater_equal(x, 6), 6, relu(x))[()]


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    """X where it is 0 or greater, negative_slope · x elsewhere; the slope at 0 is 1.

    >>> leaky_relu(np.array([-1.0, 2.0]))
    array([-0.01,  2.  ])
    """
    return np.where(np.less(x, 0), np.multiply(negative_slope, x), x)[()]


def hard_tanh(x: Any) -> Any:
    """X between -1 and 1, with slope 1 at both ends.

    >>> hard_tanh(np.array([-3.0, 0.5, 1.5]))
    array([-1. ,  0.5,  1. ])
    """
    return np.where(np.less(x, -1), -1, np.where(np.greater(x, 1), 1, x))[()]


def hard_sigmoid(x: Any) -> Any:
    """relu6(x + 3) / 6.

    >>> hard_sigmoid(np.array([-4.0, 0.0, 1.5]))
    array([0.  , 0.5 , 0.75])
    """
    return relu6(np.add(x, 3)) / 6


def hard_silu(x: Any) -> Any:
    """X · hard_sigmoid(x).

    >>> hard_silu(np.array([-4.0, 0.0, 3.0]))
    array([-0.,  0.,  3.])
    """
    return np.multiply(x, hard_sigmoid(x))


# ---- with an exponential on one side -------------------------------------------------------------------------------


def elu(x: Any, alpha: float = 1.0) -> Any:
    """X where it is positive, alpha · (exp x - 1) elsewhere; the slope at 0 is alpha.

    >>> elu(np.array([-np.inf, 0.0, 2.0]))
    array([-1.,  0.,  2.])
    """
    return np.where(np.greater(x, 0), x, np.multiply(alpha, np.expm1(_not_positive(x))))[()]


def celu(x: Any, alpha: float = 1.0) -> Any:
    """X where it is positive, alpha · (exp(x / alpha) - 1) elsewhere.

    >>> celu(np.array([-np.inf, 0.0, 2.0]), alpha=2.0)
    array([-2.,  0.,  2.])
    """
    return np.where(np.greater(x, 0), x, np.multiply(alpha, np.expm1(np.divide(_not_positive(x), alpha))))[()]


def selu(x: Any) -> Any:
    """λ · elu(x, α), with λ and α that keep mean 0 and variance 1; Klambauer and others (2017), equation 2.

    >>> selu(np.array([-1.0, 1.0])).round(4)
    array([-1.1113,  1.0507])
    """
    return np.multiply(1.0507009873554804934193349852946, elu(x, 1.6732632423543772848170429916717))


def _not_positive(x: Any) -> Any:
    return np.where(np.greater(x, 0), 0, x)


# ---- smooth ----------------------------------------------------------------------------------------------------------


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)).

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0]))
    array([0. , 0.5, 1. ])
    """
    return special.expit(x)


def log_sigmoid(x: Any) -> Any:
    """log(sigmoid(x)), exact where that is 0 in floating point.

    >>> log_sigmoid(np.array([-1000.0, 1000.0]))
    array([-1000.,    -0.])
    """
    return special.log_expit(x)


def softplus(x: Any) -> Any:
    """log(1 + exp x).

    >>> softplus(np.array([-1000.0, 1000.0]))
    array([   0., 1000.])
    """
    return np.logaddexp(x, 0)


def silu(x: Any) -> Any:
    """X · sigmoid(x).

    >>> silu(np.array([0.0, 1000.0]))
    array([   0., 1000.])
    """
    return np.multiply(x, sigmoid(x))


def mish(x: Any) -> Any:
    """X · tanh(softplus(x)).

    >>> mish(np.array([0.0, 1000.0]))
    array([   0., 1000.])
    """
    return np.multiply(x, np.tanh(softplus(x)))


def soft_sign(x: Any) -> Any:
    """X / (1 + |x|).

    >>> soft_sign(np.array([-1.0, 3.0]))
    array([-0.5 ,  0.75])
    """
    return np.divide(x, np.abs(x) + 1)


def gelu(x: Any, approximate: bool = True) -> Any:
    """X · Φ(x), Φ the normal distribution; as in JAX approximated by a tanh, unless `approximate` is False.

    PyTorch's default is the exact one. Hendrycks and Gimpel (2016), section 2.

    >>> gelu(np.array([-1.0, 1.0])).round(4), gelu(np.array([-1.0, 1.0]), approximate=False).round(4)
    (array([-0.1588,  0.8412]), array([-0.1587,  0.8413]))
    """
    if not approximate:
        return np.multiply(x, special.ndtr(x))
    inner = np.multiply(x, np.square(x) * 0.044715 + 1) * 0.7978845608028654
    return np.multiply(x, np.tanh(inner) + 1) * 0.5


# ---- along an axis ---------------------------------------------------------------------------------------------------


@explained
def glu(x: Any, axis: int = -1) -> Any:
    """The first half along an axis times the sigmoid of the second.

    >>> glu(np.array([1.0, 2.0, 0.0, 0.0]))
    array([0.5, 1. ])
    """
    first, second = np.split(fnp.asarray(x), 2, axis)
    return first * sigmoid(second)


@explained
def softmax(x: Any, axis: int | tuple[int, ...] | None = -1) -> Any:
    """Exp x / Σ exp x along an axis, without overflow.

    >>> softmax(np.array([0.0, 0.0, 1000.0]))
    array([0., 0., 1.])
    """
    return special.softmax(x, axis)


@explained
def log_softmax(x: Any, axis: int | tuple[int, ...] | None = -1) -> Any:
    """log(softmax(x)) along an axis, without overflow.

    >>> log_softmax(np.array([0.0, 1000.0]))
    array([-1000.,     0.])
    """
    return special.log_softmax(x, axis)


@explained
def logsumexp(
    a: Any, axis: int | tuple[int, ...] | None = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """Log Σ b exp a along an axis, without overflow, as `scipy.special.logsumexp`.

    >>> logsumexp(np.array([1000.0, 1000.0])) - 1000
    np.float64(0.69314718055...)
    """
    return special.logsumexp(a, axis, b, keepdims, return_sign)


@explained
def one_hot(x: Any, num_classes: int, *, dtype: Any = float, axis: int = -1) -> Any:
    """An axis of `num_classes` elements in the place of each integer k of x: 1 at k, else 0; zeros for other k.

    >>> one_hot(np.array([0, 2, 3]), 3)
    array([[1., 0., 0.],
           [0., 0., 1.],
           [0., 0., 0.]])
    """
    numbers = np.expand_dims(x, axis)
    shape = [1] * numbers.ndim
    shape[axis] = num_classes
    return np.equal(numbers, np.reshape(np.arange(num_classes), shape)).astype(dtype)


swish = silu
hard_swish = hard_silu
