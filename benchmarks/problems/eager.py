"""Value and gradient of small numerical code without jit: what counts is what a framework does around NumPy."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.calls import Call
from benchmarks.case import Case

RNG = np.random.default_rng(0)
Function = Callable[[Any], Any]


def logistic_regression(np: Any) -> Function:
    x, y = FEATURES, LABELS

    def loss(w: Any) -> Any:
        logits = np.dot(x, w)
        return np.mean(np.log(1.0 + np.exp(-y * logits))) + 0.01 * np.sum(w**2)

    return loss


def gaussian_process(np: Any) -> Function:
    distances, y = (POINTS[:, None] - POINTS[None, :]) ** 2, TARGETS

    def negative_log_likelihood(log_params: Any) -> Any:
        scale, length, noise = np.exp(log_params)
        covariance = scale * np.exp(-0.5 * distances / length**2) + noise * np.eye(10)
        lower = np.linalg.cholesky(covariance)
        alpha = np.linalg.solve(lower, y)
        return 0.5 * np.sum(alpha**2) + np.sum(np.log(np.diag(lower))) + 5.0 * math.log(2 * math.pi)

    return negative_log_likelihood


def weibull_survival(np: Any) -> Function:
    durations, observed = DURATIONS, OBSERVED

    def negative_log_likelihood(params: Any) -> Any:
        lambda_, rho = np.exp(params[0]), np.exp(params[1])
        cumulative_hazard = (durations / lambda_) ** rho
        log_hazard = np.log(rho) - np.log(lambda_) + (rho - 1.0) * (np.log(durations) - np.log(lambda_))
        return -np.mean(observed * np.clip(log_hazard, -1e25, 1e25) - cumulative_hazard)

    return negative_log_likelihood


def rosenbrock(np: Any) -> Function:
    return lambda x: np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def perceptron(np: Any) -> Function:
    x, y = FEATURES, LABELS

    def loss(params: Any) -> Any:
        (w1, b1), (w2, b2) = params
        hidden = np.tanh(np.dot(x, w1) + b1)
        return np.mean((np.dot(hidden, w2) + b2 - y[:, None]) ** 2)

    return loss


def ode_step(np: Any) -> Function:
    def rates(y: Any) -> Any:
        return np.stack([y[1], 2.0 * (1.0 - y[0] ** 2) * y[1] - y[0]])

    def energy_after(y: Any, h: float = 0.05) -> Any:
        k1 = rates(y)
        k2 = rates(y + h / 2 * k1)
        k3 = rates(y + h / 2 * k2)
        k4 = rates(y + h * k3)
        return np.sum((y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)) ** 2)

    return energy_after


def weibull(np: Any) -> Function:
    x = DURATIONS

    def log_likelihood(params: Any) -> Any:
        k, scale = params
        return np.sum(np.log(k / scale) + (k - 1.0) * np.log(x / scale) - (x / scale) ** k)

    return log_likelihood


def cross_entropy(np: Any) -> Function:
    x, one_hot = FEATURES, ONE_HOT

    def loss(w: Any) -> Any:
        logits = np.dot(x, w)
        shifted = logits - np.max(logits, axis=1, keepdims=True)
        log_probabilities = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
        return -np.sum(one_hot * log_probabilities) / x.shape[0]

    return loss


FEATURES = RNG.normal(size=(20, 3))
LABELS = np.sign(RNG.normal(size=20))
POINTS, TARGETS = np.sort(RNG.uniform(size=10)), RNG.normal(size=10)
DURATIONS, OBSERVED = RNG.uniform(0.5, 3.0, size=30), (RNG.uniform(size=30) < 0.7).astype(float)
ONE_HOT = np.eye(4)[RNG.integers(4, size=20)]
WEIGHTS = [(RNG.normal(size=(3, 10)), np.zeros(10)), (RNG.normal(size=(10, 1)), np.zeros(1))]

PIECES: dict[str, tuple[Callable[[Any], Function], Any]] = {
    "logistic regression": (logistic_regression, np.array([0.1, -0.2, 0.3])),
    "Gaussian process, 10 x 10": (gaussian_process, np.array([0.1, -0.5, -1.0])),
    "survival, Weibull": (weibull_survival, np.array([0.3, 0.2])),
    "Rosenbrock": (rosenbrock, np.array([0.5, 1.0, -0.3, 0.8])),
    "perceptron of 10 units": (perceptron, WEIGHTS),
    "Runge-Kutta step": (ode_step, np.array([0.4, 1.1])),
    "Weibull log-likelihood": (weibull, np.array([1.3, 0.9])),
    "softmax cross-entropy": (cross_entropy, RNG.normal(size=(3, 4))),
}


def cases() -> Iterator[Case]:
    for title, (make, argument) in PIECES.items():
        yield Case(title, contenders(make, argument), tolerance=1e-10, unit="µs")


def contenders(make: Callable[[Any], Function], argument: Any) -> list[Call]:
    def with_autograd(autograd: Any) -> Any:
        value_and_grad = autograd.value_and_grad(make(autograd.numpy))
        return lambda: value_and_grad(argument)

    def with_fnad(fnad: Any) -> Any:
        value_and_grad = fnad.value_and_grad(make(np))
        return lambda: value_and_grad(argument)

    return [Call("autograd", "autograd", with_autograd), Call("fnad, no jit", "fnad", with_fnad)]
