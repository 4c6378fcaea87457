"""Branches and nan, in NumPy programs: what was not chosen does not count; what was is not hidden."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import fnad.scipy.special
from fnad import grad, hessian, jacfwd, jacrev, jit, jvp, value_and_grad
from tests.edge_cases.ways import check
from tests.together import some_of

floats = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@floats
def test_row_01_sqrt_in_the_arm_not_taken(dtype: Any) -> None:
    check(lambda x: np.where(x < 1, x, np.sqrt(x)), dtype(0), value=0, gradient=[1], hessian=[[0]])


ARMS: dict[str, Any] = {
    "log": np.log,
    "norm": lambda x: np.linalg.norm(np.stack([x, x])),
    "quotient": lambda x: x / x**2,
    "angle": lambda x: np.arctan2(x, x),
    "nested": lambda x: np.where(x < 0, np.sqrt(-x), np.log(x)),
    "entropy": lambda x: x * np.log(x),
    "bump": lambda x: np.exp(-1 / x),
    "one pole in another": lambda x: np.log(np.sqrt(x)) / x,
}


@floats
@pytest.mark.parametrize("arm", ARMS)
def test_row_02_arm_not_taken(arm: str, dtype: Any) -> None:
    check(lambda x: np.where(x > 0, ARMS[arm](x), 0), dtype(0), value=0, gradient=[0], hessian=[[0]])


@floats
def test_row_02_masked_elements(dtype: Any) -> None:
    x = np.array([-1, 0, 4], dtype)
    hessian = np.diag([0, 0, -1 / 16])
    check(
        lambda x: np.sum(np.where(x > 0, np.log(x), 0)),
        x,
        value=np.log(dtype(4)),
        gradient=[0, 0, 0.25],
        hessian=hessian,
    )


@floats
def test_row_02_select_among_several_arms(dtype: Any) -> None:
    def f(x: Any) -> Any:
        return np.sum(np.select([x > 0, x < 0], [np.log(x), np.sqrt(-x)], 7.0))

    check(f, np.array([1, -1, 0], dtype), value=8, gradient=[1, -0.5, 0])


@floats
def test_row_03_product_with_infinity(dtype: Any) -> None:
    check(lambda x: np.where(x > 0, 0, x * np.inf), dtype(1), value=0, gradient=[0], hessian=[[0]])


@floats
def test_row_04_nanmean(dtype: Any) -> None:
    check(lambda x: np.nanmean(x**2), np.array([np.nan, 1, 2], dtype), value=2.5, gradient=[0, 1, 2])


@floats
def test_row_05_logistic_function_far_out(dtype: Any) -> None:
    check(lambda x: 1 / (1 + np.exp(-x)), dtype(-1000), value=0, gradient=[0])
    check(lambda x: 1 / (1 + np.exp(-x)), dtype(1000), value=1, gradient=[0])


@pytest.mark.slow
@floats
def test_row_06_softplus_far_out(dtype: Any) -> None:
    """The true derivative is 1, which overflow hides where it is not seen that this is softplus; 0 would hide that."""
    x = dtype(1000)
    for f in (lambda x: np.log(1 + np.exp(x)), lambda x: np.log1p(np.exp(x))):
        assert value_and_grad(f)(x) == (1000, 1)
        assert jvp(f, (x,), (dtype(1),)) == (1000, 1)
    logarithms = [lambda x, f=f: f(1 + np.exp(x)) for f in (np.log2, np.log10)]
    others = (lambda x: np.log(2 + np.exp(x)), lambda x: np.log1p(2 * np.exp(x)))
    for f in (*logarithms, *others, lambda x: np.sqrt(np.exp(x)), lambda x: np.cbrt(np.exp(x))):
        value, gradient = value_and_grad(f)(x)
        assert value == np.inf
        assert np.isnan(gradient)
        assert np.isnan(jvp(f, (x,), (dtype(1),))[1])
    check(lambda x: np.logaddexp(x, 0), x, value=1000, gradient=[1], hessian=[[0]])
    check(lambda x: np.where(x < 100, np.log(1 + np.exp(x)), x), x, value=1000, gradient=[1], hessian=[[0]])


def logsumexp(x: Any) -> Any:
    """Shift by the maximum where it is finite."""
    top = np.max(x)
    shift = np.where(np.isfinite(top), top, 0)
    return np.log(np.sum(np.exp(x - shift))) + shift


@floats
def test_row_07_logsumexp_by_hand(dtype: Any) -> None:
    check(logsumexp, np.array([-np.inf, 0], dtype), value=0, gradient=[0, 1])
    check(logsumexp, np.array([np.log(3), 0], dtype), value=np.log(4), gradient=[0.75, 0.25], rtol=1e-6)


@pytest.mark.slow
@floats
def test_row_07_logsumexp(dtype: Any) -> None:
    inf = dtype(np.inf)
    f = fnad.scipy.special.logsumexp
    check(f, np.array([-inf, 0], dtype), value=0, gradient=[0, 1], hessian=np.zeros((2, 2)))
    check(f, np.array([-inf, -inf], dtype), value=-np.inf, gradient=[0, 0], hessian=np.zeros((2, 2)))
    check(f, np.array([1000, 1000], dtype), value=1000 + np.log(2), gradient=[0.5, 0.5], rtol=1e-6,
          hessian=[[0.25, -0.25], [-0.25, 0.25]])  # fmt: skip
    check(lambda x: np.sum(f(x, axis=1)), np.array([[-inf, 0], [0, 0]], dtype), value=np.log(2), rtol=1e-6,
          gradient=[0, 1, 0.5, 0.5])  # fmt: skip


@pytest.mark.slow
@floats
def test_row_07_logaddexp(dtype: Any) -> None:
    inf = dtype(np.inf)
    check(np.logaddexp, -inf, dtype(0), value=0, gradient=[0, 1], hessian=np.zeros((2, 2)))
    check(np.logaddexp, -inf, -inf, value=-np.inf, gradient=[0, 0], hessian=np.zeros((2, 2)))


C = np.array([0.3, 0.1, -0.4])
LOGARITHMS = np.arange(6.0).reshape(2, 3)


def normalized(w: Any) -> Any:
    terms = w * np.exp(C)
    return terms / np.sum(terms)


def shifted_logsumexp(x: Any) -> Any:
    m = np.max(x)
    return m + np.log(np.sum(np.exp(x - m)))


# A function of the logarithms of weights, and the same of the weights.
OF_WEIGHTS: dict[str, tuple[Any, Any]] = {
    "an exponential": (lambda w: np.sum(np.exp(np.log(w) + C)), lambda w: np.sum(w * np.exp(C))),
    "a difference": (lambda w: np.sum(np.exp(np.log(w) - C)), lambda w: np.sum(w * np.exp(-C))),
    "a logarithm": (lambda w: np.sum(np.exp(np.log(w)) * C), lambda w: np.sum(w * C)),
    "log-sum-exp": (lambda w: np.log(np.sum(np.exp(C + np.log(w)))), lambda w: np.log(np.sum(w * np.exp(C)))),
    "of SciPy": (lambda w: scipy.special.logsumexp(np.log(w) + C), lambda w: np.log(np.sum(w * np.exp(C)))),
    "with a shift": (lambda w: shifted_logsumexp(np.log(w) + C), lambda w: np.log(np.sum(w * np.exp(C)))),
    "a mixture": (
        lambda w: np.sum(scipy.special.logsumexp(np.log(w) + LOGARITHMS, axis=1)),
        lambda w: np.sum(np.log(np.exp(LOGARITHMS) @ w)),
    ),
    "normalized weights": (
        lambda w: shifted_logsumexp(np.log(w) - np.log(np.sum(w)) + C),
        lambda w: np.log(np.sum(w * np.exp(C)) / np.sum(w)),
    ),
    "softmax": (lambda w: scipy.special.softmax(np.log(w) + C)[0], lambda w: normalized(w)[0]),
    "log_softmax": (lambda w: scipy.special.log_softmax(np.log(w) + C)[1], lambda w: np.log(normalized(w)[1])),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_WEIGHTS)
def test_a_weight_of_zero_under_a_logarithm(name: str) -> None:
    f, wanted = OF_WEIGHTS[name]
    w = np.array([0.0, 1.0, 2.0])
    with np.errstate(all="ignore"):
        for n, derivative in enumerate((grad, jacfwd, hessian, lambda f: jacrev(grad(f)), lambda f: jacfwd(jacfwd(f)))):
            run = some_of([lambda f: f, jit], f"{name} {n}")[0]
            np.testing.assert_allclose(run(derivative(f))(w), derivative(wanted)(w), rtol=1e-12, atol=1e-14)
        assert np.isnan(grad(f)(-w)).any()
