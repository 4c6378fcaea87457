"""Limited-memory BFGS: the inverse of the Hessian from the last steps and changes of the gradient.

Nocedal, Wright, "Numerical Optimization" (2006), algorithm 7.4. The memory holds the newest pair last, and zeros where
there are none yet, which change nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fnad.errors import UpdateError
from fnad.flatten_util import ravel_pytree
from fnad.optim.hyperparameters import Number, Schedule, check_count, named
from fnad.optim.linesearch import scale_by_zoom_linesearch
from fnad.optim.scaling import scale, scale_by_learning_rate
from fnad.optim.transformation import GradientTransformation, State, chain
from fnad.optim.trees import Tree, check_like, filled_like

SEARCH = scale_by_zoom_linesearch(20, initial_guess_strategy="one")
"""The line search unless another is given."""


class LBFGSState(NamedTuple):
    """The last parameters and gradient, and of the last steps how both changed, and 1 / (change · step)."""

    count: Any
    params: Any
    updates: Any
    steps: Any
    changes: Any
    weights: Any


@named
def scale_by_lbfgs(memory_size: int = 10, scale_init_precond: bool = True) -> GradientTransformation:
    """The transformation that applies an approximate inverse of the Hessian, from the last `memory_size` steps.

    With `scale_init_precond` the approximation starts from the identity times a number: that which fits the last step,
    at first 1 or the inverse of the norm of the gradient, if that is less. A step along which the gradient did not grow
    is not remembered. `update` needs the parameters.

    >>> from fnad import optim
    >>> opt, w = optim.scale_by_lbfgs(), np.array([0.5])
    >>> updates, state = opt.update(4 * w, opt.init(w), w)
    >>> opt.update(4 * (w - 0.25), state, w - 0.25)[0]
    array([0.25])
    """
    check_count("memory_size", memory_size, 1)

    def init(params: Tree) -> State:
        zeros = ravel_pytree(filled_like(params, 0.0))[0]
        memory = np.zeros((memory_size, *zeros.shape), zeros.dtype)
        weights = np.zeros(memory_size, zeros.dtype)
        return LBFGSState(np.asarray(0), zeros, zeros.copy(), memory, memory.copy(), weights)

    def update(updates: Tree, state: State, params: Tree | None = None) -> tuple[Tree, State]:
        if params is None:
            raise UpdateError.here(
                "lbfgs was given no parameters", remedy="give them to update(gradients, state, params)"
            )
        check_like(updates, "gradients", params)
        gradient, unravel = ravel_pytree(updates)
        state = _remembered(state, ravel_pytree(params)[0], gradient)
        return unravel(_direction(state, gradient, scale_init_precond)), state

    return GradientTransformation(init, update)


def _remembered(state: LBFGSState, params: Any, gradient: Any) -> LBFGSState:
    """The state with the last step, if there was one and the gradient grew along it."""
    step, change = params - state.params, gradient - state.updates
    growth = np.dot(step, change)
    is_good = (state.count > 0) & (growth > np.finfo(step.dtype).eps * np.dot(change, change))
    weight = 1 / np.where(is_good, growth, 1)

    def appended(memory: Any, newest: Any) -> Any:
        return np.where(is_good, np.concatenate([memory[1:], np.expand_dims(newest, 0)]), memory)

    return LBFGSState(
        np.add(state.count, 1),
        params,
        gradient,
        appended(state.steps, step),
        appended(state.changes, change),
        appended(state.weights, weight),
    )


def _direction(state: LBFGSState, gradient: Any, is_scaled: bool) -> Any:
    """The approximate inverse of the Hessian times the gradient: the two loops, unrolled."""
    size = state.weights.shape[0]
    projections: list[Any] = []
    q = gradient
    for i in reversed(range(size)):
        projections.append(state.weights[i] * np.dot(state.steps[i], q))
        q = q - projections[-1] * state.changes[i]
    r = _initial_scale(state, gradient) * q if is_scaled else q
    for i, projection in enumerate(reversed(projections)):
        r = r + state.steps[i] * (projection - state.weights[i] * np.dot(state.changes[i], r))
    return r


def _initial_scale(state: LBFGSState, gradient: Any) -> Any:
    weight, change = state.weights[-1], state.changes[-1]
    norm = np.sqrt(np.dot(gradient, gradient))
    is_empty = weight == 0
    fitting = 1 / np.where(is_empty, 1, weight * np.dot(change, change))
    return np.where(is_empty, 1 / np.maximum(norm, 1), fitting)


@named
def lbfgs(
    learning_rate: Number | Schedule | None = None,
    memory_size: int = 10,
    scale_init_precond: bool = True,
    linesearch: GradientTransformation | None = SEARCH,
) -> GradientTransformation:
    """Limited-memory BFGS with a line search: `scale_by_lbfgs`, the learning rate, 1 unless given, and the search.

    `update(gradients, state, params, value=…, grad=gradients, value_fn=…)` takes the function that is minimised and its
    value, which the line search needs; see `scale_by_zoom_linesearch`. Without one, `linesearch=None`, the learning
    rate is the step.

    >>> from fnad import optim
    >>> import fnad
    >>> def f(x):
    ...     return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> opt = optim.lbfgs()
    >>> def step(i, carry):
    ...     x, state = carry
    ...     value, grad = fnad.value_and_grad(f)(x)
    ...     updates, state = opt.update(grad, state, x, value=value, grad=grad, value_fn=f)
    ...     return optim.apply_updates(x, updates), state
    >>> x = np.array([-1.2, 1.0])
    >>> fnad.fori_loop(0, 40, step, (x, opt.init(x)))[0].round(6)
    array([1., 1.])
    """
    rate = scale(-1.0) if learning_rate is None else scale_by_learning_rate(learning_rate)
    search = () if linesearch is None else (linesearch,)
    return chain(scale_by_lbfgs(memory_size, scale_init_precond), rate, *search)
