"""Bounds on gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.api.staging.leaves import flatten, map_leaves
from fnad.optim.hyperparameters import Number, as_dtype_of, check_positive, named
from fnad.optim.transformation import GradientTransformation, State, stateless
from fnad.optim.trees import Tree


@named
def clip(max_delta: Number) -> GradientTransformation:
    """The transformation that clips each element to [-max_delta, max_delta].

    Raises `HyperparameterError` where the bound is not positive.

    >>> from fnad import optim
    >>> optim.clip(1.0).update(np.array([3.0, -0.5]), optim.EmptyState())[0]
    array([ 1. , -0.5])
    """
    check_positive("max_delta", max_delta)

    def clipped(u: Any) -> Any:
        bound = as_dtype_of(u, max_delta)
        return np.clip(u, -bound, bound)

    return stateless(lambda updates, state, params=None: (map_leaves(clipped, updates), state))


@named
def clip_by_global_norm(max_norm: Number) -> GradientTransformation:
    """The transformation that makes the norm of all elements together max_norm, where it is greater.

    Pascanu, Mikolov, Bengio, "On the difficulty of training recurrent neural networks" (2013), algorithm 1. Raises
    `HyperparameterError` where the bound is not positive.

    >>> from fnad import optim
    >>> optim.clip_by_global_norm(1.0).update({"a": np.array([3.0]), "b": np.array([4.0])}, optim.EmptyState())[0]
    {'a': array([0.6]), 'b': array([0.8])}
    """
    check_positive("max_norm", max_norm)

    def update(updates: Tree, state: State, params: Tree | None = None) -> tuple[Tree, State]:
        factor = max_norm / np.maximum(global_norm(updates), max_norm)
        return map_leaves(lambda u: as_dtype_of(u, factor) * u, updates), state

    return stateless(update)


def global_norm(updates: Tree) -> Any:
    """√Σu² over all elements of all leaves, in f64, where the squares of f32 do not overflow.

    >>> from fnad import optim
    >>> print(f"{optim.global_norm((np.float32([3e30]), np.float32([4e30]))):.3g}")
    5e+30
    """
    leaves, _ = flatten(updates)
    return np.sqrt(sum(np.sum(np.square(u, dtype=np.float64)) for u in leaves))
