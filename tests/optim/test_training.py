"""Optimizers find the known minimum of a convex function, in a compiled step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fnad
from fnad import optim

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
WEIGHT, BIAS = np.array([1.5, -2.0, 0.5]), 0.7
Y = X @ WEIGHT + BIAS


def loss(params: Any) -> Any:
    return np.mean((X @ params["weight"] + params["bias"][0] - Y) ** 2)


def loss_as(dtype: Any) -> Any:
    x, y = X.astype(dtype), Y.astype(dtype)
    return lambda params: np.mean((x @ params["weight"] + params["bias"][0] - y) ** 2)


FADING = optim.cosine_decay_schedule(0.2, 400)
OPTIMIZERS = {
    "sgd": optim.sgd(0.2),
    "momentum": optim.sgd(0.05, momentum=0.9),
    "nesterov": optim.sgd(0.05, momentum=0.9, nesterov=True),
    "adam": optim.adam(FADING),
    "adamw": optim.adamw(FADING, weight_decay=0.0),
    "rmsprop": optim.rmsprop(FADING),
    "adagrad": optim.adagrad(0.9),
    "lion": optim.lion(FADING, weight_decay=0.0),
    "clipped": optim.chain(optim.clip(5.0), optim.clip_by_global_norm(2.0), optim.sgd(0.2)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_optimizer_solves_least_squares(name: str) -> None:
    opt = OPTIMIZERS[name]

    @fnad.jit
    def step(params: Any, state: Any) -> Any:
        updates, state = opt.update(fnad.grad(loss)(params), state, params)
        return optim.apply_updates(params, updates), state

    params: Any = {"weight": np.zeros(3), "bias": (0.0, None)}
    state = opt.init(params)
    for _ in range(400):
        params, state = step(params, state)
    tolerance = 2e-3 if name == "lion" else 1e-5
    assert_allclose(params["weight"], WEIGHT, atol=tolerance)
    assert_allclose(params["bias"][0], BIAS, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_whole_run_as_the_carry_of_a_loop(name: str, dtype: Any) -> None:
    opt = OPTIMIZERS[name]

    def step(carry: Any) -> Any:
        params, state = carry
        updates, state = opt.update(fnad.grad(loss_as(dtype))(params), state, params)
        return optim.apply_updates(params, updates), state

    params: Any = {"weight": np.zeros(3, dtype), "bias": (np.zeros((), dtype), None)}
    stepped = params, opt.init(params)
    for _ in range(20):
        stepped = step(stepped)
    looped = fnad.jit(lambda carry: fnad.fori_loop(0, 20, lambda i, carry: step(carry), carry))(
        (params, opt.init(params))
    )
    assert looped[0]["weight"].dtype == dtype
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    assert_allclose(looped[0]["weight"], stepped[0]["weight"], rtol=tolerance, atol=tolerance)
    assert_allclose(looped[0]["bias"][0], stepped[0]["bias"][0], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "doubled",
    [
        lambda gradients: optim.scale(2.0).update(gradients, ())[0],
        lambda gradients: optim.chain(optim.clip(9.0), optim.scale(2.0)).update(gradients, ((), ()))[0],
    ],
    ids=["scale", "chain"],
)
def test_a_dataclass_is_a_pytree_without_an_earlier_call(doubled: Callable[[Any], Any]) -> None:
    @dataclass
    class Gradients:
        weight: Any

    assert_allclose(doubled(Gradients(np.array([1.0, 5.0]))).weight, [2.0, 10.0])


def test_decay_finds_the_minimum_of_the_penalized_function() -> None:
    """Decoupled decay of plain descent is the gradient of ½ λ |w|²; its minimum solves (2 XᵀX/n + λ) w = 2 Xᵀy/n."""
    opt = optim.chain(optim.add_decayed_weights(0.3), optim.sgd(0.2))
    w = np.zeros(3)
    state, gradient = opt.init(w), fnad.jit(fnad.grad(lambda w: np.mean((X @ w - Y) ** 2)))
    for _ in range(400):
        updates, state = opt.update(gradient(w), state, w)
        w = optim.apply_updates(w, updates)
    assert_allclose(w, np.linalg.solve(2 * X.T @ X / 40 + 0.3 * np.eye(3), 2 * X.T @ Y / 40), rtol=1e-10)


def test_a_step_is_differentiable() -> None:
    """The learning rate that is best for one step of descent on a parabola is the inverse of its curvature."""

    def after_one_step(rate: Any) -> Any:
        w = np.array([3.0])
        opt = optim.sgd(rate)
        updates, _ = opt.update(fnad.grad(lambda w: np.sum(2.0 * w**2))(w), opt.init(w))
        return np.sum(2.0 * optim.apply_updates(w, updates) ** 2)

    assert fnad.grad(after_one_step)(0.25) == pytest.approx(0.0, abs=1e-12)
    assert fnad.grad(after_one_step)(0.2) == pytest.approx(4 * 3 * (1 - 0.8) * -12, rel=1e-12)
