"""Running averages of gradients and of their squares, and the update directions computed from them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fnad.api.staging.leaves import map_leaves
from fnad.optim.hyperparameters import Number, as_dtype_of, check_decay, check_not_negative, named
from fnad.optim.transformation import GradientTransformation, State
from fnad.optim.trees import Tree, check_like, filled_like


class TraceState(NamedTuple):
    """The decaying sum of gradients."""

    trace: Tree


class ScaleByAdamState(NamedTuple):
    """The number of steps, and the averages of gradients and of their squares."""

    count: Number
    mu: Tree
    nu: Tree


class ScaleByRmsState(NamedTuple):
    """The average of squares of gradients."""

    nu: Tree


class ScaleByStddevState(NamedTuple):
    """The averages of gradients and of their squares."""

    mu: Tree
    nu: Tree


class ScaleByRssState(NamedTuple):
    """The sum of squares of gradients."""

    sum_of_squares: Tree


class ScaleByLionState(NamedTuple):
    """The average of gradients."""

    mu: Tree


# ---- sums and averages -----------------------------------------------------------------------------------------------


def average(values: Tree, state: Tree, decay: Number) -> Tree:
    """The average decay · state + (1 - decay) · values."""

    def step(value: Any, mean: Any) -> Any:
        rate = as_dtype_of(mean, decay)
        return rate * mean + (1 - rate) * value

    return map_leaves(step, values, state)


def without_bias(averages: Tree, decay: Number, count: Number) -> Tree:
    """Averages over `count` steps that began at zero, corrected for that bias: divided by 1 - decayᵗ."""
    weight = 1 - decay**count
    return map_leaves(lambda mean: mean / as_dtype_of(mean, weight), averages)


def squared(gradients: Tree) -> Tree:
    """The square of each leaf."""
    return map_leaves(lambda g: g * g, gradients)


def zeros(params: Tree) -> Tree:
    """The averages before the first step."""
    return filled_like(params, 0.0)


# ---- directions ------------------------------------------------------------------------------------------------------


@named
def trace(decay: Number, nesterov: bool = False) -> GradientTransformation:
    """Momentum: the sum v ← g + decay · v, or g + decay · v of the new v with `nesterov`.

    Sutskever, Martens, Dahl, Hinton, "On the importance of initialization and momentum in deep learning" (2013),
    equations 1 to 4, in the form of gradients; v is without the learning rate.

    >>> from fnad import optim
    >>> opt = optim.trace(0.9)
    >>> state = opt.init(np.zeros(1))
    >>> for _ in range(3):
    ...     update, state = opt.update(np.ones(1), state)
    ...     print(update)
    [1.]
    [1.9]
    [2.71]
    """
    check_decay("decay", decay)

    def add(g: Any, v: Any) -> Any:
        return g + as_dtype_of(v, decay) * v

    def update(updates: Tree, state: State, params: Tree | None = None) -> tuple[Tree, State]:
        check_like(updates, "gradients", state.trace)
        total = map_leaves(add, updates, state.trace)
        return map_leaves(add, updates, total) if nesterov else total, TraceState(total)

    return GradientTransformation(lambda params: TraceState(zeros(params)), update)


@named
def scale_by_adam(
    b1: Number = 0.9, b2: Number = 0.999, eps: Number = 1e-8, eps_root: Number = 0.0, *, nesterov: bool = False
) -> GradientTransformation:
    """The direction m̂ / (√(v̂ + eps_root) + eps) of the averages m of g and v of g², corrected for bias.

    Kingma, Ba, "Adam: a method for stochastic optimization" (2015), algorithm 1. With `nesterov`, m̂ is the one of
    Dozat, "Incorporating Nesterov momentum into Adam" (2016), with constant b1. Raises `HyperparameterError` for
    averages that would not decay.

    >>> from fnad import optim
    >>> opt = optim.scale_by_adam()
    >>> opt.update(np.array([2.0, -0.1, 0.0]), opt.init(np.zeros(3)))[0].round(6)
    array([ 1., -1.,  0.])
    """
    check_decay("b1", b1)
    check_decay("b2", b2)
    check_not_negative("eps", eps)
    check_not_negative("eps_root", eps_root)

    def divide(m: Any, v: Any) -> Any:
        return m / (np.sqrt(v + as_dtype_of(v, eps_root)) + as_dtype_of(v, eps))

    def init(params: Tree) -> State:
        return ScaleByAdamState(np.zeros((), np.int64), zeros(params), zeros(params))

    def update(updates: Tree, state: State, params: Tree | None = None) -> tuple[Tree, State]:
        check_like(updates, "gradients", state.mu)
        count = state.count + 1
        mu, nu = average(updates, state.mu, b1), average(squared(updates), state.nu, b2)
        if nesterov:
            direction = average(without_bias(updates, b1, count), without_bias(mu, b1, count + 1), b1)
        else:
            direction = without_bias(mu, b1, count)
        size = without_bias(nu, b2, count)
        return map_leaves(divide, direction, size), ScaleByAdamState(count, mu, nu)

    return GradientTransformation(init, update)


@named
def scale_by_rms(decay: Number = 0.9, eps: Number = 1e-8, initial_scale: Number = 0.0) -> GradientTransformation:
    """The direction g / √(v + eps), where v is the average of g².

    Hinton, Srivastava, Swersky, "Neural networks for machine learning", lecture 6e (2012), page 29.

    >>> from fnad import optim
    >>> opt = optim.scale_by_rms(decay=0.75)
    >>> opt.update(np.array([2.0, -0.1]), opt.init(np.zeros(2)))[0].round(5)
    array([ 2., -2.])
    """
    check_decay("decay", decay)
    check_not_negative("eps", eps)
    check_not_negative("initial_scale", initial_scale)

    def update(updates: Tree, state: State, params: Tree | None = None) -> tuple[Tree, State]:
        check_like(updates, "gradients", state.nu)
        nu = average(squared(updates), state.nu, decay)
        return map_leaves(lambda g, v: g / np.sqrt(v + as_dtype_of(v, eps)), updates, nu), ScaleByRmsState(nu)

    return GradientTransformation(lambda params: ScaleByRmsState(filled_like(params, initial_scale)), update)


@named
def scale_by_stddev(decay: Number = 0.9, eps: Number = 1e-8, initial_scale: Number = 0.0) -> GradientTransformation:
    """The direction g / √(v - m² + eps), where m and v are the averages of g and of g².

    Graves, "Generating sequences with recurrent neural networks" (2013), equations 38 to 40.

    >>> from fnad import optim
    >>> opt = optim.scale_by_stddev(decay=0.75)
    >>> opt.update(np.array([2.0, -0.1]), opt.init(np.zeros(2)))[0].round(5)
    array([ 2.3094 , -2.30939])
    """
    check_decay("decay", decay)
    check_not_negative("eps", eps)
    check_not_negative("initial_scale", initial_scale)

    def direction(g: Any, m: Any, v: Any) -> Any:
        return g / np.sqrt(v - m * m + as_dtype_of(v, eps))

    def update(updates: Tree, state: State, params: Tree | None = None) -> tuple[Tree, State]:
        check_like(updates, "gradients", state.mu)
        mu, nu = average(updates, state.mu, decay), average(squared(updates), state.nu, decay)
        return map_leaves(direction, updates, mu, nu), ScaleByStddevState(mu, nu)

    return GradientTransformation(
        lambda params: ScaleByStddevState(zeros(params), filled_like(params, initial_scale)), update
    )


@named
def scale_by_rss(initial_accumulator_value: Number = 0.1, eps: Number = 1e-7) -> GradientTransformation:
    """The direction g / √(s + eps), where s is the sum of g²; 0 where s is.

    Duchi, Hazan, Singer, "Adaptive subgradient methods for online learning and stochastic optimization" (2011),
    algorithm 1 with diagonal matrices.

    >>> from fnad import optim
    >>> opt = optim.scale_by_rss(initial_accumulator_value=0.0)
    >>> opt.update(np.array([2.0, 0.0]), opt.init(np.zeros(2)))[0].round(6)
    array([1., 0.])
    """
    check_not_negative("initial_accumulator_value", initial_accumulator_value)
    check_not_negative("eps", eps)

    def direction(g: Any, s: Any) -> Any:
        positive = s > 0
        return np.where(positive, g / np.sqrt(np.where(positive, s + as_dtype_of(s, eps), 1.0)), 0.0)

    def update(updates: Tree, state: State, params: Tree | None = None) -> tuple[Tree, State]:
        check_like(updates, "gradients", state.sum_of_squares)
        total = map_leaves(np.add, squared(updates), state.sum_of_squares)
        return map_leaves(direction, updates, total), ScaleByRssState(total)

    return GradientTransformation(
        lambda params: ScaleByRssState(filled_like(params, initial_accumulator_value)), update
    )


@named
def scale_by_lion(b1: Number = 0.9, b2: Number = 0.99) -> GradientTransformation:
    """The direction sign(b1 · m + (1 - b1) · g), where m is the average of g by b2.

    Chen et al., "Symbolic discovery of optimization algorithms" (2023), algorithm 2.

    >>> from fnad import optim
    >>> opt = optim.scale_by_lion()
    >>> opt.update(np.array([2.0, -0.1, 0.0]), opt.init(np.zeros(3)))[0]
    array([ 1., -1.,  0.])
    """
    check_decay("b1", b1)
    check_decay("b2", b2)

    def update(updates: Tree, state: State, params: Tree | None = None) -> tuple[Tree, State]:
        check_like(updates, "gradients", state.mu)
        direction = map_leaves(np.sign, average(updates, state.mu, b1))
        return direction, ScaleByLionState(average(updates, state.mu, b2))

    return GradientTransformation(lambda params: ScaleByLionState(zeros(params)), update)
