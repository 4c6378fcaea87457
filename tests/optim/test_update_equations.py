"""Every optimizer against the equations of its paper, written here for one array, over several steps.

The parameters are a pytree of dicts, tuples and None; each leaf has to go where the equations lead it. On arrays, where
each operation rounds by itself, and compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optree
import pytest
from numpy.testing import assert_allclose

import fnad
from fnad import optim

STEPS = 6
RATE = 0.1

Gradients = list[np.ndarray]
Equations = Callable[[np.ndarray, Gradients], Iterator[np.ndarray]]
"""From a parameter and its gradients to the parameter after each step."""


def momentum(m: float, *, nesterov: bool, rate: float = RATE) -> Equations:
    """Sutskever et al. (2013) eq. 1, 2: v ← μv - εg, θ ← θ + v; Nesterov's, eq. 3, 4, at the shifted point θ + μv."""

    def equations(p: np.ndarray, gradients: Gradients) -> Iterator[np.ndarray]:
        v, shifted = np.zeros_like(p), p
        for g in gradients:
            v_next = m * v - rate * g
            p = p + v_next
            shifted = p + m * v_next
            v = v_next
            yield shifted if nesterov else p

    return equations


def descent(p: np.ndarray, gradients: Gradients) -> Iterator[np.ndarray]:
    for g in gradients:
        p = p - RATE * g
        yield p


def adam(b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, decay: float = 0.0) -> Equations:
    """Kingma, Ba (2015) algorithm 1; with decay Loshchilov, Hutter (2019) algorithm 2, whose λ is the product."""

    def equations(p: np.ndarray, gradients: Gradients) -> Iterator[np.ndarray]:
        m, v = np.zeros_like(p), np.zeros_like(p)
        for t, g in enumerate(gradients, 1):
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g**2
            m_hat, v_hat = m / (1 - b1**t), v / (1 - b2**t)
            p = p - RATE * (m_hat / (np.sqrt(v_hat) + eps) + decay * p)
            yield p

    return equations


def nadam(p: np.ndarray, gradients: Gradients) -> Iterator[np.ndarray]:
    """Dozat (2016) algorithm 2 with constant μ."""
    m, v, mu, nu = np.zeros_like(p), np.zeros_like(p), 0.9, 0.999
    for t, g in enumerate(gradients, 1):
        m = mu * m + (1 - mu) * g
        v = nu * v + (1 - nu) * g**2
        m_hat = mu * m / (1 - mu ** (t + 1)) + (1 - mu) * g / (1 - mu**t)
        p = p - RATE * m_hat / (np.sqrt(v / (1 - nu**t)) + 1e-8)
        yield p


def rmsprop(p: np.ndarray, gradients: Gradients) -> Iterator[np.ndarray]:
    """Hinton's lecture 6e: MeanSquare(w, t) = 0.9 MeanSquare(w, t-1) + 0.1 g²."""
    mean_square = np.zeros_like(p)
    for g in gradients:
        mean_square = 0.9 * mean_square + 0.1 * g**2
        p = p - RATE * g / np.sqrt(mean_square + 1e-8)
        yield p


def graves(p: np.ndarray, gradients: Gradients) -> Iterator[np.ndarray]:
    """Graves (2013) eq. 38 to 41: n, g, Δ with momentum ב and the constant ד under the root."""
    n, mean, step = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
    for e in gradients:
        n = 0.95 * n + 0.05 * e**2
        mean = 0.95 * mean + 0.05 * e
        step = 0.9 * step - RATE * e / np.sqrt(n - mean**2 + 1e-4)
        p = p + step
        yield p


def adagrad(p: np.ndarray, gradients: Gradients) -> Iterator[np.ndarray]:
    """Duchi et al. (2011) figure 1, diagonal, H = δI + diag(s) under the root as commonly computed."""
    for t, g in enumerate(gradients, 1):
        total = 0.1 + sum(e**2 for e in gradients[:t])
        p = p - RATE * g / np.sqrt(total + 1e-7)
        yield p


def lion(p: np.ndarray, gradients: Gradients) -> Iterator[np.ndarray]:
    """Chen et al. (2023) algorithm 2."""
    m = np.zeros_like(p)
    for g in gradients:
        c = 0.9 * m + 0.1 * g
        p = p - RATE * (np.sign(c) + 0.02 * p)
        m = 0.99 * m + 0.01 * g
        yield p


CASES: dict[str, tuple[optim.GradientTransformation, Equations]] = {
    "sgd": (optim.sgd(RATE), descent),
    "momentum": (optim.sgd(RATE, momentum=0.8), momentum(0.8, nesterov=False)),
    "nesterov": (optim.sgd(RATE, momentum=0.8, nesterov=True), momentum(0.8, nesterov=True)),
    "adam": (optim.adam(RATE), adam()),
    "adam, other rates": (optim.adam(RATE, b1=0.5, b2=0.9, eps=1e-2), adam(0.5, 0.9, 1e-2)),
    "nadam": (optim.adam(RATE, nesterov=True), nadam),
    "adamw": (optim.adamw(RATE, weight_decay=0.3), adam(decay=0.3)),
    "rmsprop": (optim.rmsprop(RATE), rmsprop),
    "rmsprop of Graves": (optim.rmsprop(RATE, 0.95, 1e-4, centered=True, momentum=0.9), graves),
    "adagrad": (optim.adagrad(RATE), adagrad),
    "lion": (optim.lion(RATE, weight_decay=0.02), lion),
}
TOLERANCE = {np.float32: 2e-6, np.float64: 1e-14}


def parameters(dtype: type) -> Any:
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in ((3, 2), (2,), (), (0, 4))]
    return {"weight": arrays[0], "rest": (arrays[1], None, {"bias": arrays[2]}), "empty": arrays[3]}


def gradients_like(params: Any) -> list[Any]:
    rng = np.random.default_rng(2)
    return [
        optree.tree_map(lambda p: np.asarray(rng.standard_normal(np.shape(p)), p.dtype), params) for _ in range(STEPS)
    ]


@pytest.mark.parametrize("compiled", [False, True], ids=["arrays", "compiled"])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", CASES)
def test_steps_are_those_of_the_paper(name: str, dtype: type, compiled: bool) -> None:
    opt, equations = CASES[name]
    params = parameters(dtype)
    gradients = gradients_like(params)
    columns = zip(*map(optree.tree_leaves, gradients), strict=True)
    expected = [
        list(equations(np.float64(p), [np.float64(g) for g in column]))
        for p, column in zip(optree.tree_leaves(params), columns, strict=True)
    ]

    def step(params: Any, state: Any, gradient: Any) -> Any:
        updates, state = opt.update(gradient, state, params)
        return optim.apply_updates(params, updates), state

    step = fnad.jit(step) if compiled else step
    state = opt.init(params)
    kinds = avals((params, state))
    for i, gradient in enumerate(gradients):
        params, state = step(params, state, gradient)
        assert avals((params, state)) == kinds, "a carry keeps its structure, shapes and dtypes"
        for leaf, path in zip(optree.tree_leaves(params), expected, strict=True):
            assert_allclose(leaf, path[i], rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("scale", [1e-4, 1e-8])
@pytest.mark.parametrize("name", CASES)
def test_steps_of_gradients_as_small_as_the_constants_that_are_added(name: str, scale: float) -> None:
    opt, equations = CASES[name]
    p = np.zeros(3)
    gradients = [scale * g for g in np.random.default_rng(3).standard_normal((STEPS, 3))]
    state = opt.init(p)
    for gradient, expected in zip(gradients, equations(p, gradients), strict=True):
        updates, state = opt.update(gradient, state, p)
        p = optim.apply_updates(p, updates)
        assert_allclose(p, expected, rtol=1e-12, atol=1e-14 * scale)


def avals(tree: Any) -> Any:
    leaves, structure = optree.tree_flatten(tree)
    return structure, [(leaf.dtype, leaf.shape) for leaf in leaves]


@pytest.mark.parametrize("rate", [0.1, np.float64(0.1), np.array(0.1), lambda count: 0.1], ids=type)
@pytest.mark.parametrize("make", [optim.sgd, optim.adam, optim.rmsprop, optim.adagrad, optim.lion])
def test_no_hyperparameter_promotes(make: Any, rate: Any) -> None:
    opt = optim.chain(optim.clip(np.float64(1.0)), optim.clip_by_global_norm(np.array(1.0)), make(rate))
    params = np.ones(3, np.float32)
    updates, state = opt.update(params, opt.init(params), params)
    assert updates.dtype == np.float32
    assert {leaf.dtype for leaf in optree.tree_leaves(state)} <= {np.dtype("f4"), np.dtype("i8")}


def test_a_traced_hyperparameter() -> None:
    @fnad.jit
    def step(params: Any, rate: Any, decay: Any) -> Any:
        opt = optim.adamw(rate, b1=decay, weight_decay=rate)
        return opt.update(params, opt.init(params), params)[0]

    params = np.array([1.0, -2.0], np.float32)
    opt = optim.adamw(0.25, b1=0.5, weight_decay=0.25)
    for rate in (0.25, np.float64(0.25)):
        updates = step(params, rate, 0.5)
        assert updates.dtype == np.float32
        assert_allclose(updates, opt.update(params, opt.init(params), params)[0], rtol=1e-6)


def test_a_hyperparameter_in_an_array_is_read_at_each_call() -> None:
    rate = np.array(0.5)
    opt = optim.sgd(rate)
    step = fnad.jit(lambda g: opt.update(g, opt.init(g))[0])
    assert step(1.0) == -0.5
    rate[...] = 0.25
    assert opt.update(1.0, opt.init(1.0))[0] == step(1.0)


# ---- clipping and decay ----------------------------------------------------------------------------------------------


def test_clipping_by_value() -> None:
    updates = {"a": np.array([-3.0, 0.5]), "b": (np.array(2.0), None)}
    clipped, _ = optim.clip(1.0).update(updates, optim.EmptyState())
    assert_allclose(clipped["a"], [-1.0, 0.5])
    assert_allclose(clipped["b"][0], 1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clipping_by_global_norm(dtype: type) -> None:
    updates = {"a": np.array([2.0, 3.0], dtype), "b": (np.array(6.0, dtype), None)}
    assert_allclose(optim.global_norm(updates), 7.0)
    clipped, _ = optim.clip_by_global_norm(3.5).update(updates, optim.EmptyState())
    assert_allclose(clipped["a"], [1.0, 1.5], rtol=1e-6)
    assert clipped["a"].dtype == clipped["b"][0].dtype == dtype
    assert_allclose(optim.global_norm(clipped), 3.5, rtol=1e-6)
    kept, _ = optim.clip_by_global_norm(7.5).update(updates, optim.EmptyState())
    assert_allclose(kept["a"], updates["a"], rtol=0)


def test_clipping_nothing_and_zeros() -> None:
    opt = optim.clip_by_global_norm(1.0)
    assert opt.update({"a": None}, optim.EmptyState())[0] == {"a": None}
    assert_allclose(opt.update(np.zeros(2), optim.EmptyState())[0], 0.0)


def test_a_norm_beyond_f32() -> None:
    clipped, _ = optim.clip_by_global_norm(5.0).update(np.array([3e30, 4e30], np.float32), optim.EmptyState())
    assert_allclose(clipped, [3.0, 4.0], rtol=1e-6)


@pytest.mark.parametrize("mask", [{"w": True, "b": False}, lambda params: {name: name == "w" for name in params}])
def test_decay_of_some_parameters(mask: Any) -> None:
    params = {"w": np.array([2.0]), "b": np.array([2.0])}
    opt = optim.add_decayed_weights(0.5, mask)
    updates, _ = fnad.jit(lambda p: opt.update(p, opt.init(p), p))(params)
    assert_allclose(updates["w"], 3.0)
    assert_allclose(updates["b"], 2.0)


def test_keys_in_another_order() -> None:
    params = {"a": np.ones(1), "b": np.ones(2)}
    opt = optim.adamw(0.1)
    updates, _ = opt.update({"b": np.ones(2), "a": np.zeros(1)}, opt.init(params), params)
    new = optim.apply_updates(params, updates)
    assert list(new) == ["a", "b"]
    assert new["a"].shape == (1,)
    assert new["b"].shape == (2,)
