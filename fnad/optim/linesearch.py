"""A step length by the strong Wolfe conditions: the function decreases enough, and its slope is small enough.

Nocedal, Wright, "Numerical Optimization" (2006), algorithms 3.5 and 3.6, as one loop with one evaluation a step: the
trial grows until it brackets such a length, then the bracket shrinks by cubic interpolation. Where rounding hides the
decrease, the slope decides (Hager, Zhang, "A new conjugate gradient method with guaranteed descent and an efficient
line search", 2005, equation 4.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, cast

import numpy as np

import fnad.numpy as fnp
from fnad.api.functions.branches import cond
from fnad.api.functions.grad import value_and_grad
from fnad.api.functions.loops import while_loop
from fnad.api.staging.leaves import function_name, map_leaves
from fnad.errors import HyperparameterError, UpdateError
from fnad.flatten_util import ravel_pytree
from fnad.optim.hyperparameters import Number, check_count, check_positive, named
from fnad.optim.transformation import GradientTransformationExtraArgs, State
from fnad.optim.trees import Tree, filled_like
from fnad.upward import UPWARD

STRATEGIES = ("keep", "one")
INSIDE = 0.1
"""The part of a bracket, at each of its ends, in which no trial lies."""


class ZoomLinesearchState(NamedTuple):
    """The last step length, the value and the gradient where it led, and how often the function was evaluated."""

    learning_rate: Any
    value: Any
    grad: Tree
    steps: Any


class Rules(NamedTuple):
    """The conditions on a step length, and the growth of trials."""

    slope_rtol: Number
    curv_rtol: Number
    approx_dec_rtol: Number
    increase_factor: Number
    max_learning_rate: Number
    max_steps: int


class Point(NamedTuple):
    """A step length, with the value and the slope there."""

    length: Any
    value: Any
    slope: Any


class Search(NamedTuple):
    """The carry of the loop: the next trial, the best length so far, with its gradient, and the bracket's other end."""

    steps: Any
    trial: Any
    low: Point
    high: Point
    gradient: Any
    is_bracketed: Any
    is_done: Any


@named
def scale_by_zoom_linesearch(
    max_linesearch_steps: int,
    max_learning_rate: Number | None = None,
    increase_factor: Number = 2.0,
    slope_rtol: Number = 1e-4,
    curv_rtol: Number = 0.9,
    approx_dec_rtol: Number = 1e-6,
    initial_guess_strategy: Literal["keep", "one"] = "keep",
) -> GradientTransformationExtraArgs:
    """The transformation that multiplies updates, a direction of descent, by a length that a line search finds.

    `update(updates, state, params, value=…, grad=…, value_fn=…)` takes the function of the parameters that is
    minimised, its value and its gradient, computed unless given; further keywords go to `value_fn`. The length t
    fulfils f(t) <= f(0) + slope_rtol · t f'(0) and |f'(t)| <= curv_rtol · |f'(0)|; if none is found in
    `max_linesearch_steps` evaluations, it is the best that was, 0 if none led down. The first trial is 1 or, to "keep",
    the last length. Value and gradient there are in the state: see `value_and_grad_from_state`.

    Raises `UpdateError` without `value_fn` or parameters, `HyperparameterError`.

    >>> from fnad import optim
    >>> opt, x = optim.chain(optim.scale(-1.0), optim.scale_by_zoom_linesearch(20)), np.array([3.0])
    >>> updates, state = opt.update(20 * x, opt.init(x), x, value_fn=lambda x: 10 * np.sum(x**2))
    >>> optim.apply_updates(x, updates).round(12)
    array([0.])
    """
    check_count("max_linesearch_steps", max_linesearch_steps, 1)
    for name, number in (("increase_factor", increase_factor), ("slope_rtol", slope_rtol), ("curv_rtol", curv_rtol)):
        check_positive(name, number)
    if initial_guess_strategy not in STRATEGIES:
        raise HyperparameterError.here(
            f"initial_guess_strategy is {initial_guess_strategy!r}",
            remedy=f"it has to be one of {', '.join(STRATEGIES)}",
        )
    longest = np.inf if max_learning_rate is None else max_learning_rate
    rules = Rules(slope_rtol, curv_rtol, approx_dec_rtol, increase_factor, longest, max_linesearch_steps)

    def init(params: Tree) -> State:
        zeros = filled_like(params, 0.0)
        dtype = ravel_pytree(zeros)[0].dtype
        return ZoomLinesearchState(np.ones((), dtype), np.full((), np.inf, dtype), zeros, np.asarray(0))

    def update(
        updates: Tree,
        state: State,
        params: Tree | None = None,
        *,
        value: Any = None,
        grad: Tree | None = None,
        value_fn: Callable[..., Any] | None = None,
        **extra: Any,
    ) -> tuple[Tree, State]:
        if params is None or value_fn is None:
            raise UpdateError.here(
                "the line search was given no function" if value_fn is None else "the line search has no parameters",
                remedy="write update(gradients, state, params, value=value, grad=gradients, value_fn=f)",
            )
        function = value_and_grad(lambda params: UPWARD.callee(value_fn)(params, **extra))
        if value is None or grad is None:
            value, grad = function(params)
        trial = state.learning_rate if initial_guess_strategy == "keep" else 1.0
        found = _searched(rules, function, (params, value, grad), updates, trial)
        _, unravel = ravel_pytree(params)
        length, dtype = found.low.length, state.value.dtype
        after = ZoomLinesearchState(
            fnp.asarray(np.where(length > 0, length, 1)).astype(dtype),
            fnp.asarray(found.low.value).astype(dtype),
            unravel(found.gradient),
            found.steps,
        )
        return map_leaves(lambda u: fnp.asarray(length).astype(u.dtype) * u, updates), after

    return GradientTransformationExtraArgs(init, update)


def value_and_grad_from_state(value_fn: Callable[..., Any]) -> Callable[..., tuple[Any, Tree]]:
    """The function `(params, *args, state, **kwargs)` to value and gradient, taken from the state of a line search.

    They are computed where the state has none yet. Raises `UpdateError` for a state without a line search.

    >>> from fnad import optim
    >>> opt, x = optim.lbfgs(), np.array([3.0])
    >>> optim.value_and_grad_from_state(lambda x: np.sum(x**2))(x, state=opt.init(x))
    (np.float64(9.0), array([6.]))
    """

    def value_and_gradient(params: Tree, *args: Any, state: State, **kwargs: Any) -> tuple[Any, Tree]:
        known = _search_in(state)
        if known is None:
            raise UpdateError.here(
                f"the state of the optimizer of {function_name(value_fn)} has no line search",
                remedy="compute value and gradient with fnad.value_and_grad",
            )

        def computed(params: Tree) -> tuple[Any, Tree]:
            value, grad = value_and_grad(value_fn)(params, *args, **kwargs)
            return fnp.asarray(value).astype(known.value.dtype), grad

        return cond(np.isfinite(known.value), lambda _: (known.value, known.grad), computed, params)

    return value_and_gradient


def _search_in(state: State) -> ZoomLinesearchState | None:
    if isinstance(state, ZoomLinesearchState):
        return state
    found = map(_search_in, state) if isinstance(state, tuple) else ()
    return next((each for each in found if each is not None), None)


# ---- the search ------------------------------------------------------------------------------------------------------


def _searched(
    rules: Rules, function: Callable[[Tree], Any], start: tuple[Tree, Any, Tree], updates: Tree, trial: Any
) -> Search:
    """The search along the updates, from the parameters, with the value and the gradient there."""
    position, unravel = ravel_pytree(start[0])
    direction, gradient = ravel_pytree(updates)[0], ravel_pytree(start[2])[0]
    dtype = position.dtype
    zero = Point(np.zeros((), dtype), fnp.asarray(start[1]).astype(dtype), np.dot(gradient, direction))

    def proceed(search: Search) -> Any:
        return (search.steps < rules.max_steps) & ~search.is_done

    def step(search: Search) -> Search:
        value, grad = function(unravel(position + search.trial * direction))
        there = ravel_pytree(grad)[0]
        tried = Point(search.trial, fnp.asarray(value).astype(dtype), np.dot(there, direction))
        return _after(rules, zero, search, tried, there)

    first = fnp.asarray(np.minimum(trial, rules.max_learning_rate)).astype(dtype)
    none = np.asarray(False)
    return cast("Search", while_loop(proceed, step, Search(np.asarray(0), first, zero, zero, gradient, none, none)))


def _after(rules: Rules, zero: Point, search: Search, tried: Point, gradient: Any) -> Search:
    """The search after a trial, which becomes one of the ends of the bracket."""
    low, high = search.low, search.high
    is_high = ~_decreases(rules, zero, tried) | ((tried.value > low.value) & (low.length > 0))
    is_flat = np.abs(tried.slope) <= rules.curv_rtol * np.abs(zero.slope)
    turns = np.where(search.is_bracketed, tried.slope * (high.length - low.length) >= 0, tried.slope >= 0)
    is_longest = ~is_high & ~search.is_bracketed & (tried.length >= rules.max_learning_rate)
    is_bracketed = search.is_bracketed | is_high | turns
    other = _chosen(is_high, tried, _chosen(turns, low, high))
    best = _chosen(is_high, low, tried)
    longer = np.minimum(tried.length * rules.increase_factor, rules.max_learning_rate)
    return Search(
        search.steps + 1,
        np.where(is_bracketed, _between(best, other), longer).astype(tried.length.dtype),
        best,
        other,
        np.where(is_high, search.gradient, gradient),
        is_bracketed,
        (~is_high & is_flat) | is_longest,
    )


def _decreases(rules: Rules, zero: Point, tried: Point) -> Any:
    """True if the function has decreased enough; where rounding hides that, whether its slope says so."""
    enough = tried.value <= zero.value + rules.slope_rtol * tried.length * zero.slope
    nearly = tried.value <= zero.value + rules.approx_dec_rtol * np.abs(zero.value)
    return enough | (nearly & (tried.slope <= (2 * rules.slope_rtol - 1) * zero.slope))


def _chosen(condition: Any, first: Point, second: Point) -> Point:
    return Point(*[np.where(condition, a, b) for a, b in zip(first, second, strict=True)])


def _between(low: Point, high: Point) -> Any:
    """The minimum of the cubic through two points (equation 3.59), or their middle where it is not well inside."""
    width = high.length - low.length
    secant = np.where(width == 0, 0, (low.value - high.value) / np.where(width == 0, 1, width))
    d1 = low.slope + high.slope + 3 * secant
    square = d1 * d1 - low.slope * high.slope
    d2 = np.sign(width) * np.sqrt(np.where(square > 0, square, 0))
    below = high.slope - low.slope + 2 * d2
    part = 1 - (high.slope + d2 - d1) / np.where(below == 0, 1, below)
    is_inside = (square >= 0) & (below != 0) & (part >= INSIDE) & (part <= 1 - INSIDE)
    return low.length + width * np.where(is_inside, part, 0.5)
