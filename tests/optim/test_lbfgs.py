"""Limited-memory BFGS and its line search: the textbook's matrix, Wolfe's conditions, minima that are known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose, assert_array_equal

import fnad
from fnad import errors, optim


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def minimized(opt: Any, f: Callable[[Any], Any], params: Any, steps: int) -> tuple[Any, Any]:
    """The parameters and the state after a number of steps, as one compiled program."""

    @fnad.jit
    def run(params: Any) -> Any:
        def step(_: Any, carry: Any) -> Any:
            params, state = carry
            value, grad = optim.value_and_grad_from_state(f)(params, state=state)
            updates, state = opt.update(grad, state, params, value=value, grad=grad, value_fn=f)
            return optim.apply_updates(params, updates), state

        return fnad.fori_loop(0, steps, step, (params, opt.init(params)))

    return run(params)


def inverse_of(pairs: list[tuple[Any, Any]], scale: float) -> Any:
    """The inverse Hessian by the BFGS formula (Nocedal, Wright, equation 6.17), from a multiple of the identity."""
    n = pairs[0][0].size
    found = scale * np.eye(n)
    for s, y in pairs:
        left = np.eye(n) - np.outer(s, y) / (s @ y)
        found = left @ found @ left.T + np.outer(s, s) / (s @ y)
    return found


@pytest.mark.parametrize("memory", [2, 8])
@pytest.mark.parametrize("is_scaled", [True, False])
def test_the_direction_is_that_of_the_bfgs_matrix_of_the_last_steps(memory: int, is_scaled: bool) -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    hessian = root @ root.T + np.eye(4)
    points = rng.normal(size=(6, 4))
    opt = optim.scale_by_lbfgs(memory, is_scaled)
    direction, state = points[0], opt.init(points[0])
    for point in points:
        direction, state = opt.update(hessian @ point, state, point)
    pairs = [(b - a, hessian @ (b - a)) for a, b in pairwise(points)][-memory:]
    s, y = pairs[-1]
    expected = inverse_of(pairs, (s @ y) / (y @ y) if is_scaled else 1.0) @ hessian @ points[-1]
    assert_allclose(direction, expected, rtol=1e-10)


def test_the_first_direction_is_the_gradient_of_norm_one_at_most() -> None:
    opt = optim.scale_by_lbfgs()
    assert_allclose(opt.update(np.array([3.0, 4.0]), opt.init(np.zeros(2)), np.zeros(2))[0], [0.6, 0.8])
    assert_allclose(opt.update(np.array([0.3, 0.4]), opt.init(np.zeros(2)), np.zeros(2))[0], [0.3, 0.4])


def test_a_step_along_which_the_gradient_falls_is_not_remembered() -> None:
    opt, x = optim.scale_by_lbfgs(3), np.array([1.0, 2.0])
    _, state = opt.update(x, opt.init(x), x)
    _, state = opt.update(2 * x, state, 2 * x)
    _, after = opt.update(x, state, 3 * x)
    assert_array_equal(after.steps, state.steps)
    assert_array_equal(after.weights, state.weights)


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any, float]] = {
    "parabola": (lambda x: np.sum(x**2), np.array([3.0]), 1.0),
    "far": (lambda x: 1e-6 * np.sum(x**2), np.array([3.0]), 1.0),
    "steep": (lambda x: 1e6 * np.sum(x**2), np.array([3.0]), 1.0),
    "quartic": (lambda x: np.sum(x**4), np.array([2.0, -1.0]), 1.0),
    "wall": (lambda x: np.sum(x - np.log(x)), np.array([5.0]), 100.0),
    "overflow": (lambda x: np.sum(np.exp(x) - x), np.array([-800.0]), 1000.0),
    "waves": (lambda x: np.sum(np.sin(3 * x) + 0.1 * x**2), np.array([1.5]), 1.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("curvature", [0.9, 0.1])
def test_the_length_fulfils_the_conditions_of_wolfe(name: str, curvature: float) -> None:
    f, x, times = FUNCTIONS[name]
    value, grad = fnad.value_and_grad(f)(x)
    direction = -times * grad / np.abs(grad).max()
    opt = optim.scale_by_zoom_linesearch(60, curv_rtol=curvature)
    updates, state = opt.update(direction, opt.init(x), x, value=value, grad=grad, value_fn=f)
    length = (updates / direction)[0]
    after, slope = fnad.value_and_grad(f)(x + updates)[0], fnad.grad(f)(x + updates) @ direction
    assert after <= value + 1e-4 * length * (grad @ direction)
    assert abs(slope) <= curvature * abs(grad @ direction)
    assert_allclose([state.value, state.learning_rate], [after, length])
    assert_allclose(state.grad, fnad.grad(f)(x + updates))


def test_a_direction_that_leads_up_is_not_taken() -> None:
    opt, x = optim.scale_by_zoom_linesearch(10), np.array([1.0])
    updates, state = opt.update(x, opt.init(x), x, value_fn=lambda x: np.sum(x**2))
    assert_array_equal(updates, [0.0])
    assert (state.steps, state.value, state.learning_rate) == (10, 1.0, 1.0)


def test_a_length_is_at_most_the_longest() -> None:
    opt, x = optim.scale_by_zoom_linesearch(20, max_learning_rate=3.0), np.array([100.0])
    updates, state = opt.update(np.array([-1.0]), opt.init(x), x, value_fn=lambda x: np.sum(x**2))
    assert (updates.item(), state.learning_rate) == (-3.0, 3.0)


def test_the_next_search_keeps_the_length() -> None:
    f, x = lambda x: 1e-4 * np.sum(x**2), np.array([3.0])
    for strategy, steps in (("keep", 1), ("one", None)):
        opt = optim.scale_by_zoom_linesearch(40, initial_guess_strategy=strategy)
        updates, first = opt.update(-fnad.grad(f)(x), opt.init(x), x, value_fn=f)
        y = x + updates
        _, second = opt.update(-fnad.grad(f)(y), first, y, value_fn=f)
        assert second.steps == (steps or first.steps)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 10])
def test_the_minimum_of_rosenbrocks_function_in_f64(n: int) -> None:
    x, state = minimized(optim.lbfgs(), rosenbrock, np.full(n, -1.2), 80)
    assert_allclose(x, np.ones(n), rtol=1e-7)
    assert np.abs(state[-1].grad).max() < 1e-5


def test_a_pytree_in_f32_keeps_its_dtypes() -> None:
    target = np.array([1.0, -2.0], np.float32)

    def f(params: Any) -> Any:
        return np.sum((params["w"] - target) ** 2) + np.cosh(params["b"])

    params = {"w": np.zeros(2, np.float32), "b": np.float32(0.7)}
    opt = optim.lbfgs(memory_size=3)
    found, state = minimized(opt, f, params, 20)
    assert_allclose(found["w"], target, rtol=1e-6)
    assert abs(found["b"]) < 1e-3
    assert [leaf.dtype for leaf in fnad.tree.leaves(found)] == ["f4", "f4"]
    before = opt.init(params)
    assert [np.asarray(leaf).dtype for leaf in fnad.tree.leaves(state)] == [
        np.asarray(leaf).dtype for leaf in fnad.tree.leaves(before)
    ]
    assert fnad.tree.structure(state) == fnad.tree.structure(before)


def test_without_a_line_search_the_learning_rate_is_the_step() -> None:
    opt, x = optim.lbfgs(0.5, linesearch=None), np.array([0.5])
    state = opt.init(x)
    for _ in range(40):
        updates, state = opt.update(2 * x, state, x)
        x = optim.apply_updates(x, updates)
    assert_allclose(x, [0.0], atol=1e-8)


def test_more_keywords_go_to_the_function() -> None:
    opt, x = optim.chain(optim.scale(-1.0), optim.scale_by_zoom_linesearch(20)), np.array([3.0])
    f = lambda x, target: np.sum((x - target) ** 2)  # noqa: E731
    updates, _ = opt.update(fnad.grad(f)(x, 1.0), opt.init(x), x, value_fn=f, target=1.0)
    assert_allclose(x + updates, [1.0])


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda o, s, x: o.update(x, s, x), errors.UpdateError, "the line search was given no function"),
        (lambda o, s, x: o.update(x, s, value_fn=np.sum), errors.UpdateError, "lbfgs was given no parameters"),
        (lambda o, s, x: optim.lbfgs(memory_size=0), errors.HyperparameterError, "memory_size is 0"),
        (
            lambda o, s, x: optim.scale_by_zoom_linesearch(5, initial_guess_strategy="two"),
            errors.HyperparameterError,
            "initial_guess_strategy is 'two'",
        ),
        (
            lambda o, s, x: optim.value_and_grad_from_state(np.sum)(x, state=optim.adam(0.1).init(x)),
            errors.UpdateError,
            "has no line search",
        ),
    ],
)
def test_lbfgs_refuses_wrong_arguments_by_name(call: Callable[..., Any], kind: type[Exception], message: str) -> None:
    opt, x = optim.lbfgs(), np.ones(2)
    with pytest.raises(kind, match=message):
        call(opt, opt.init(x), x)


def test_it_takes_about_as_many_evaluations_as_scipys() -> None:
    start, opt = np.full(10, -1.2), optim.lbfgs()

    def step(carry: Any) -> Any:
        x, state, evaluations = carry
        value, grad = optim.value_and_grad_from_state(rosenbrock)(x, state=state)
        updates, state = opt.update(grad, state, x, value=value, grad=grad, value_fn=rosenbrock)
        return optim.apply_updates(x, updates), state, evaluations + state[-1].steps

    def goes_on(carry: Any) -> Any:
        return (carry[2] == 0) | (np.max(np.abs(carry[1][-1].grad)) > 1e-6)

    run = fnad.jit(lambda x: fnad.while_loop(goes_on, step, (x, opt.init(x), 0)))
    options = {"gtol": 1e-6, "ftol": 0}
    theirs = scipy.optimize.minimize(rosenbrock, start, jac=fnad.grad(rosenbrock), method="L-BFGS-B", options=options)
    assert run(start)[2] <= 1.2 * theirs.nfev
