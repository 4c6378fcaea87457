"""Choices among finitely many: by weights, in random order, with and without replacement."""

from __future__ import annotations

import math
from operator import index
from typing import Any

import numpy as np

import fnad.numpy as fnp
from fnad.errors import DomainError, ShapeError
from fnad.ir.types import Shape
from fnad.random.continuous import exponential, gumbel, uniform
from fnad.random.integers import bits, randint
from fnad.random.parameters import Array, as_array, as_shape, axis_of, check, is_traced, shape_of
from fnad.trace.unknown import explained


@explained
def categorical(key: Array, logits: Any, axis: int = -1, shape: Any = None) -> Array:
    """Indices along an axis of `logits`, each with a probability proportional to exp(logit).

    The result has the shape of `logits` without that axis, or a shape to which that one broadcasts. It is the argmax of
    the logits with Gumbel noise (E. J. Gumbel, Statistical Theory of Extreme Values, 1954).

    >>> from fnad import random
    >>> categorical(random.key(0), np.log([0.1, 0.1, 0.8]), shape=(5,))
    array([0, 1, 2, 1, 2])
    """
    weights = as_array(logits)
    position = axis_of(axis, weights.ndim)
    before, n, after = weights.shape[:position], weights.shape[position], weights.shape[position + 1 :]
    extents = shape_of(shape, "logits without the axis", (*before, *after))
    check_population(n, math.prod(extents), replace=True)
    check(
        "the logits of a choice have a nan or are all -inf",
        lambda weights: np.max(weights, axis=position) > -np.inf,
        weights,
        remedy="give each choice a logit that is a number",
    )
    place = len(extents) - len(after)
    noise = gumbel(key, (*extents[:place], n, *extents[place:]))
    return np.argmax(weights + noise, axis=place)


@explained
def permutation(key: Array, x: Any, axis: int = 0, independent: bool = False) -> Array:
    """The integers below x, or the array x along an axis, in random order; all orders are equally likely.

    Slices along the axis are moved as a whole, or, if `independent`, every line is permuted by itself.

    >>> from fnad import random
    >>> permutation(random.key(0), 5)
    array([2, 1, 3, 4, 0])
    """
    array = as_array(x)
    if array.ndim == 0:
        return random_order(key, as_shape(index(x)), 0)
    along = axis_of(axis, array.ndim)
    if independent:
        return np.take_along_axis(array, random_order(key, array.shape, along), along)
    return fnp.take(array, random_order(key, (array.shape[along],), 0), along)


def random_order(key: Array, shape: Shape, axis: int) -> Array:
    """The order of random bits along an axis; two of them are equal with a probability of about n²/2**65."""
    return np.argsort(bits(key, shape), axis=axis)


@explained
def choice(key: Array, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0) -> Array:
    """Integers below a, or slices of the array a along an axis, equally likely or with probabilities p.

    Without replacement none is chosen twice, and p are the probabilities of the first. Raises `DomainError` if there
    are not enough to choose from, and for known p that are negative or do not sum to 1.

    >>> from fnad import random
    >>> choice(random.key(0), 10, (3,), replace=False)
    array([5, 7, 9])
    """
    array = as_array(a)
    n = array.shape[axis_of(axis, array.ndim)] if array.ndim else index(a)
    extents = as_shape(shape)
    check_population(n, math.prod(extents), replace)
    probabilities = None if p is None else as_array(p)
    if probabilities is not None:
        check_probabilities(probabilities, n, 1 if replace else math.prod(extents))
    chosen = (with_replacement if replace else without_replacement)(key, n, extents, probabilities)
    return fnp.take(array, chosen, axis) if array.ndim else chosen


def with_replacement(key: Array, n: int, shape: Shape, p: Array | None) -> Array:
    """Indices below n; with p, by inverting its distribution function."""
    if p is None:
        return randint(key, shape, 0, n)
    cumulative = np.cumsum(p)
    return np.searchsorted(cumulative, cumulative[-1] * (1.0 - uniform(key, shape)))


def without_replacement(key: Array, n: int, shape: Shape, p: Array | None) -> Array:
    """Different indices below n: those whose exponential arrivals, at rates p, are the first.

    P. S. Efraimidis & P. G. Spirakis, "Weighted random sampling with a reservoir", Inf. Process. Lett. 97 (2006), 181.
    """
    if p is None:
        return permutation(key, n)[: math.prod(shape)].reshape(shape)[()]
    with np.errstate(divide="ignore"):
        arrivals = exponential(key, (n,)) / p
    return np.argsort(arrivals)[: math.prod(shape)].reshape(shape)[()]


def check_population(n: int, size: int, replace: bool) -> None:
    """Raise `DomainError` if there are fewer to choose from than requested."""
    if size and (n < 1 or (not replace and size > n)):
        raise DomainError.here(
            f"cannot choose {size} of {n}{'' if replace else ' without replacement'}",
            remedy="choose fewer, or from more",
        )


def check_probabilities(p: Array, n: int, least: int) -> None:
    """Raise unless p is one probability for each of n, of which enough are not 0."""
    if p.shape != (n,):
        raise ShapeError.here(
            f"p of shape {p.shape} does not give each of {n} a probability", remedy=f"give p of shape {(n,)}"
        )
    if is_traced(p):
        return
    check("p is negative", np.greater_equal, p, 0, remedy="give probabilities")
    rounding = np.sqrt(np.finfo(np.result_type(p, np.float32)).eps)
    check("p does not sum to 1", lambda p: abs(p.sum() - 1) < rounding, p, remedy="divide p by its sum")
    check(
        f"fewer than {least} elements of p are not 0", lambda p: np.count_nonzero(p) >= least, p, remedy="choose fewer"
    )
