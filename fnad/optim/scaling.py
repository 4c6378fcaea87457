"""Updates from gradients: multiples by a factor or a schedule, bounds, and weight decay towards zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fnad.api.staging.leaves import flatten, map_leaves
from fnad.errors import UpdateError
from fnad.optim.hyperparameters import Number, Schedule, as_dtype_of, check_not_negative, check_positive, named
from fnad.optim.transformation import GradientTransformation, State, stateless
from fnad.optim.trees import Tree, check_like, check_structure
from fnad.upward import UPWARD


class ScaleByScheduleState(NamedTuple):
    """The number of steps taken."""

    count: Number


@named
def scale(step_size: Number) -> GradientTransformation:
    """The transformation that multiplies by a number.

    >>> from fnad import optim
    >>> optim.scale(-0.5).update(np.array([1.0, 2.0]), optim.EmptyState())[0]
    array([-0.5, -1. ])
    """
    return stateless(lambda updates, state, params=None: (_times(step_size, updates), state))


@named
def scale_by_schedule(step_size_fn: Schedule) -> GradientTransformation:
    """The transformation that multiplies by a function of the number of steps taken, which starts at 0.

    >>> from fnad import optim
    >>> opt = optim.scale_by_schedule(lambda count: 1 / (1 + count))
    >>> state = opt.init(1.0)
    >>> for _ in range(3):
    ...     update, state = opt.update(1.0, state)
    ...     print(update)
    1.0
    0.5
    0.3333333333333333
    """

    def update(updates: Tree, state: State, params: Tree | None = None) -> tuple[Tree, State]:
        return _times(UPWARD.callee(step_size_fn)(state.count), updates), ScaleByScheduleState(state.count + 1)

    return GradientTransformation(lambda params: ScaleByScheduleState(np.zeros((), np.int64)), update)


@named
def scale_by_learning_rate(learning_rate: Number | Schedule) -> GradientTransformation:
    """The transformation that descends: it multiplies by -learning_rate, a number or a schedule.

    Raises `HyperparameterError` for a negative number.

    >>> from fnad import optim
    >>> optim.scale_by_learning_rate(0.1).update(np.array([1.0, 2.0]), optim.EmptyState())[0]
    array([-0.1, -0.2])
    """
    if callable(learning_rate):
        schedule: Schedule = learning_rate
        return scale_by_schedule(lambda count: -UPWARD.callee(schedule)(count))
    check_not_negative("learning_rate", learning_rate)
    return scale(-learning_rate)


def _times(number: Number, updates: Tree) -> Tree:
    return map_leaves(lambda u: as_dtype_of(u, number) * u, updates)


# ---- bounds ----------------------------------------------------------------------------------------------------------


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


# ---- weight decay ----------------------------------------------------------------------------------------------------


@named
def add_decayed_weights(
    weight_decay: Number = 0.0, mask: Tree | Callable[[Tree], Tree] | None = None
) -> GradientTransformation:
    """The transformation that adds weight_decay · p to the gradient of each parameter p.

    After a direction such as Adam's this is decoupled weight decay: Loshchilov, Hutter, "Decoupled weight decay
    regularization" (2019), algorithm 2. The mask, a pytree of Python bools like the parameters or a function that
    returns it for them, says which decay. `update` raises `UpdateError` if it is not given the parameters, or
    where the mask is not like them.

    >>> from fnad import optim
    >>> opt = optim.add_decayed_weights(0.1, mask=lambda params: {"weight": True, "bias": False})
    >>> opt.update({"weight": 1.0, "bias": 1.0}, optim.EmptyState(), {"weight": 5.0, "bias": 5.0})[0]
    {'weight': 1.5, 'bias': 1.0}
    """
    check_not_negative("weight_decay", weight_decay)

    def decayed(u: Any, p: Any, decays: bool = True) -> Any:
        return u + as_dtype_of(u, weight_decay) * p if decays else u

    def update(updates: Tree, state: State, params: Tree | None = None) -> tuple[Tree, State]:
        if params is None:
            raise UpdateError.here("weight decay needs the parameters", remedy="update(gradients, state, params)")
        check_like(updates, "gradients", params)
        if mask is None:
            return map_leaves(decayed, updates, params), state
        decays = UPWARD.callee(mask)(params) if callable(mask) else mask
        check_structure(decays, "mask", params)
        return map_leaves(decayed, updates, params, decays), state

    return stateless(update)
