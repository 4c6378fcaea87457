"""Updates as multiples of gradients, by a fixed factor or a schedule."""

from __future__ import annotations

import numpy as np

from fnad.api.staging.leaves import map_leaves
from fnad.optim.hyperparameters import Number, Schedule, as_dtype_of, check_not_negative, named
from fnad.optim.transformation import GradientTransformation, State, stateless
from fnad.optim.trees import Tree
from fnad.records import NamedTuple
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
