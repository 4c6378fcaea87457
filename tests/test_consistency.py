"""Every transform of many small functions says the same, in each executor, with and without jit, in f64 and f32.

The functions come from many fields, in plain NumPy. Derivatives are compared with differences of the function itself in
extended precision, and with each other.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from fnad import config, grad, jit, jvp, value_and_grad, vjp
from fnad.testing import assert_close, difference, extended, mixed_difference, step

Function = Callable[[Any], Any]

FUNCTIONS: dict[str, tuple[Function, tuple[int, ...]]] = {}
"""Functions from an array of the shape beside it, positive and of order 1, to a number."""


def example(*shape: int) -> Callable[[Function], Function]:
    """Enter a function under its name."""

    def enter(f: Function) -> Function:
        FUNCTIONS[f.__name__] = f, shape
        return f

    return enter


# ---- optimisation ----------------------------------------------------------------------------------------------------


@example(5)
def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@example(2)
def himmelblau(x: Any) -> Any:
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


@example(4)
def ackley(x: Any) -> Any:
    return -20 * np.exp(-0.2 * np.sqrt(np.mean(x**2))) - np.exp(np.mean(np.cos(2 * np.pi * x))) + 20 + np.e


@example(3)
def rastrigin(x: Any) -> Any:
    return 10 * x.size + np.sum(x * x - 10 * np.cos(2 * np.pi * x))


@example(4)
def griewank(x: Any) -> Any:
    return 1 + x @ x / 4000 - np.prod(np.cos(x / np.sqrt(np.arange(1, 5))))


@example(2)
def branin(x: Any) -> Any:
    return (x[1] - 5.1 / (4 * np.pi**2) * x[0] ** 2 + 5 / np.pi * x[0] - 6) ** 2 + 10 * np.cos(x[0]) + 10


@example(4)
def huber(x: Any) -> Any:
    return np.sum(np.where(np.abs(x) < 0.9, 0.5 * x**2, 0.9 * (np.abs(x) - 0.45)))


@example(3)
def log_barrier(x: Any) -> Any:
    return x.sum() - 0.1 * np.log(x).sum() - 0.1 * np.log(4 - x.sum())


# ---- statistics and machine learning ---------------------------------------------------------------------------------

DATA = np.random.default_rng(0).normal(size=(6, 3))
TARGETS = np.array([0, 1, 1, 0, 1, 0])


@example(3)
def linear_regression(w: Any) -> Any:
    return np.mean((DATA @ w - TARGETS) ** 2) + 0.1 * np.sum(w**2)


@example(3)
def logistic_regression(w: Any) -> Any:
    z = DATA @ w
    return np.mean(np.logaddexp(0, z) - TARGETS * z)


@example(3, 2)
def softmax_cross_entropy(w: Any) -> Any:
    scores = DATA @ w
    shifted = scores - np.max(scores, axis=1, keepdims=True)
    logs = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
    return -np.mean(logs[np.arange(6), TARGETS])


@example(17)
def perceptron(w: Any) -> Any:
    hidden = np.tanh(DATA @ w[:12].reshape(3, 4) + w[12:16])
    return np.mean((hidden.sum(axis=1) * w[16] - TARGETS) ** 2)


@example(2)
def gaussian_likelihood(p: Any) -> Any:
    z = (DATA - p[0]) / p[1]
    return np.sum(0.5 * z**2 + np.log(p[1]) + 0.5 * np.log(2 * np.pi))


@example(2)
def student_likelihood(p: Any) -> Any:
    return np.sum(np.log1p((DATA[:, 0] - p[0]) ** 2 / p[1]) * (p[1] + 1) / 2)


@example(3)
def poisson_regression(w: Any) -> Any:
    rate = np.exp(DATA @ w * 0.3)
    return np.sum(rate - TARGETS * np.log(rate))


@example(4)
def entropy(x: Any) -> Any:
    p = x / x.sum()
    return -np.sum(p * np.log(p))


@example(2, 4)
def divergence(x: Any) -> Any:
    p, q = x / x.sum(axis=1, keepdims=True)
    return np.sum(p * np.log(p / q))


@example(6)
def skewness(x: Any) -> Any:
    return np.mean(((x - x.mean()) / x.std()) ** 3)


@example(5)
def correlation(x: Any) -> Any:
    y = DATA[:5, 0]
    a, b = x - x.mean(), y - y.mean()
    return (a @ b) / (np.linalg.norm(a) * np.linalg.norm(b))


@example(4, 3)
def layer_norm(x: Any) -> Any:
    z = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    return np.sum(np.sin(z) * np.arange(3.0))


@example(3, 4)
def attention(x: Any) -> Any:
    scores = x @ x.T / 2
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.sum((weights / weights.sum(axis=-1, keepdims=True)) @ x * np.arange(4.0))


@example(2, 3)
def gaussian_kernel(x: Any) -> Any:
    distances = np.sum((x[:, None] - DATA[None]) ** 2, axis=-1)
    return np.sum(np.exp(-distances / 2))


@example(6)
def weighted_quadrature(x: Any) -> Any:
    return np.average(x**3, weights=np.arange(1.0, 7)) + np.var(x, ddof=1)


# ---- physics ---------------------------------------------------------------------------------------------------------


@example(4, 3)
def gravitation(x: Any) -> Any:
    i, j = np.triu_indices(4, 1)
    return -np.sum(1 / np.sqrt(np.sum((x[i] - x[j]) ** 2, axis=-1) + 0.1))


@example(3, 2)
def lennard_jones(x: Any) -> Any:
    r2 = np.sum((x - np.roll(x, 1, axis=0) + np.arange(3.0)[:, None]) ** 2, axis=1)
    return np.sum(4 * (r2**-6 - r2**-3))


@example(2)
def double_pendulum(q: Any) -> Any:
    v = np.array([0.3, -0.2])
    kinetic = v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * np.cos(q[0] - q[1])
    return kinetic + 2 * 9.81 * np.cos(q[0]) + 9.81 * np.cos(q[1])


@example(8)
def ising_mean_field(m: Any) -> Any:
    return -0.5 * np.sum(m * np.roll(m, 1)) - np.sum(np.log(2 * np.cosh(0.5 * m)))


@example(8)
def wave_energy(u: Any) -> Any:
    return 0.5 * np.sum(np.diff(u) ** 2) + 0.25 * np.sum((u[2:] - 2 * u[1:-1] + u[:-2]) ** 2)


@example(4, 4)
def dirichlet_energy(u: Any) -> Any:
    inside = u[1:-1, 1:-1]
    residual = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inside
    return np.sum(residual**2) + np.sum(np.exp(-(u**2)))


@example(6)
def heat_steps(u: Any) -> Any:
    for _ in range(3):
        u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return np.sum(u**3)


@example(6)
def heat_steps_in_place(u: Any) -> Any:
    for _ in range(3):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**3)


@example(2)
def planck(p: Any) -> Any:
    return np.sum(p[0] / (np.expm1(np.array([1.0, 2.0, 3.0]) / p[1])))


@example(3)
def van_der_waals(p: Any) -> Any:
    return p[0] / (3 - 0.5 * p[1]) - 0.3 * p[1] ** 2 + np.arctan2(p[2], p[0])


@example(4)
def relativistic_energy(p: Any) -> Any:
    return np.sqrt(1 + p[:3] @ p[:3]) - 1 / np.hypot(p[3], 1.0)


@example(3)
def runge_kutta(p: Any) -> Any:
    def slope(y: Any) -> Any:
        return np.stack([p[0] * y[0] - p[1] * y[0] * y[1], y[0] * y[1] - p[2] * y[1]])

    y = np.array([1.0, 0.5])
    for _ in range(2):
        a = slope(y)
        b = slope(y + 0.05 * a)
        y = y + 0.1 * b
    return np.sum(y**2)


@example(2)
def leapfrog(z: Any) -> Any:
    q, p = z
    for _ in range(4):
        p = p - 0.05 * np.sin(q)
        q = q + 0.1 * p
        p = p - 0.05 * np.sin(q)
    return 0.5 * p**2 - np.cos(q)


@example(3)
def quantum_oscillator(p: Any) -> Any:
    x = np.linspace(-3, 3, 21)
    psi = np.exp(-p[0] * x**2 / 2) * (1 + 0.1 * p[1] * x**2)
    return np.sum(psi * (x**2 * psi - np.gradient(np.ones(21)) * psi * p[2])) / np.sum(psi**2)


# ---- geometry, graphics, signals -------------------------------------------------------------------------------------


@example(3)
def rotation(angles: Any) -> Any:
    c, s = np.cos(angles), np.sin(angles)
    zero, one = 0 * c[0], 0 * c[0] + 1
    about_x = np.stack([one, zero, zero, zero, c[0], -s[0], zero, s[0], c[0]]).reshape(3, 3)
    about_z = np.stack([c[1], -s[1], zero, s[1], c[1], zero, zero, zero, one]).reshape(3, 3)
    return np.sum((about_x @ about_z @ np.array([1.0, 2, 3])) ** 2 * np.array([1.0, 2, 3])) * s[2]


@example(5, 2)
def polygon_area(x: Any) -> Any:
    following = np.concatenate([x[1:], x[:1]])
    return 0.5 * np.sum(x[:, 0] * following[:, 1] - x[:, 1] * following[:, 0])


@example(4, 2)
def curve_length(x: Any) -> Any:
    return np.sum(np.linalg.norm(np.diff(x, axis=0) + 1, axis=1))


@example(3)
def haversine(p: Any) -> Any:
    a = np.sin((p[0] - 0.2) / 2) ** 2 + np.cos(p[0]) * np.cos(p[1]) * np.sin(p[2] / 2) ** 2
    return 2 * np.arcsin(np.sqrt(a))


@example(5, 5)
def convolution(image: Any) -> Any:
    kernel = np.array([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]])
    parts = [kernel[i, j] * image[i : i + 3, j : j + 3] for i in range(3) for j in range(3)]
    return np.sum(np.maximum(sum(parts) + 0.3, 0) ** 2)


@example(4, 4)
def pooling(image: Any) -> Any:
    return np.sum(image.reshape(2, 2, 2, 2).max(axis=(1, 3)) * np.arange(1.0, 5).reshape(2, 2))


@example(6)
def fourier_power(x: Any) -> Any:
    k = np.arange(6)
    spectrum = np.exp(-2j * np.pi * k[:, None] * k / 6) @ x
    return np.sum(np.abs(spectrum) ** 2 * k)


@example(6)
def phase_of_a_signal(x: Any) -> Any:
    z = x[:3] + 1j * x[3:]
    return np.sum(np.angle(z) * np.abs(z)) + np.real(np.prod(z)) + np.imag(np.sum(z**3))


@example(7)
def total_variation(x: Any) -> Any:
    return np.sum(np.sqrt(np.diff(x) ** 2 + 1e-2)) + np.sum((x - np.arange(7)) ** 2)


@example(6)
def running_sums(x: Any) -> Any:
    return np.sum(np.cumsum(x) ** 2 / np.arange(1, 7)) + np.cumsum(x[::-1])[2]


# ---- finance, chemistry, biology -------------------------------------------------------------------------------------


@example(4)
def present_value(p: Any) -> Any:
    return np.sum(p[:3] / (1 + 0.1 * p[3]) ** np.arange(1, 4))


@example(3)
def portfolio(w: Any) -> Any:
    covariance = DATA.T @ DATA
    return np.sqrt(w @ covariance @ w) - 0.1 * np.log(np.sum(w))


@example(2)
def option_payoff(p: Any) -> Any:
    paths = p[0] * np.exp(0.2 * p[1] * DATA[:, 0] - 0.02 * p[1] ** 2)
    return np.mean(np.maximum(paths - 0.9, 0))


@example(3)
def michaelis_menten(p: Any) -> Any:
    s = np.array([0.1, 0.5, 1, 2, 5])
    return np.sum((p[0] * s ** p[2] / (p[1] ** p[2] + s ** p[2]) - s / (1 + s)) ** 2)


@example(2)
def arrhenius(p: Any) -> Any:
    return np.sum(p[0] * np.exp(-p[1] / np.array([0.5, 1, 1.5]))) + np.log10(p[0]) + np.log2(p[1])


@example(3)
def epidemic(p: Any) -> Any:
    s, i = 0.9, 0.1 * p[2]
    for _ in range(4):
        new = 0.3 * p[0] * s * i
        s, i = s - new, i + new - 0.1 * p[1] * i
    return i * 10


@example(4)
def tree_of_powers(x: Any) -> Any:
    return x[0] ** x[1] + x[1] ** x[0] + 2.0 ** x[2] + x[3] ** 2.5 + np.float_power(x[0], 1.5) + x[1] ** -2


# ---- NumPy's corners -------------------------------------------------------------------------------------------------


@example(3, 4)
def indices_of_all_kinds(x: Any) -> Any:
    picked = x[[0, 2, 0], [1, 1, 3]].sum() + x[:, ::2].prod() + x[-1, 1:].max() + x[..., None, 0].sum()
    return picked + x[np.array([True, False, True])].sum() ** 2 + np.take(x, [1, 5]).prod()


@example(2, 3)
def shapes_of_all_kinds(x: Any) -> Any:
    y = np.concatenate([x, x[::-1] * 2], axis=1)
    z = np.stack([y.T, y.T**2]).transpose(2, 0, 1)
    return np.sum(np.tile(z[0], 2) * np.repeat(z[1], 2, axis=1)) + np.sum(np.pad(x, 1)[1:, 1:] ** 2) + np.trace(x @ x.T)


@example(2, 3)
def contractions_of_all_kinds(x: Any) -> Any:
    y = np.einsum("ij,kj->ik", x, x) + np.tensordot(x, x, axes=([1], [1])) + np.inner(x, x)
    return np.einsum("ii->", y @ y) + np.vdot(x, x) + np.outer(x[0], x[1]).sum() + np.dot(x, x.T)[0, 1]


@example(4)
def elementary_functions(x: Any) -> Any:
    y = np.sin(x) * np.cos(x) + np.tan(x / 3) + np.arctan(x) + np.sinh(x / 2) - np.cosh(x / 3) + np.tanh(x)
    return np.sum(
        y + np.arcsinh(x) + np.arccosh(x + 2) + np.arctanh(x / 4) + np.cbrt(x) + np.exp2(x) + np.reciprocal(x)
    )


@example(4)
def choices_of_all_kinds(x: Any) -> Any:
    y = np.where(x > 1, x**2, np.minimum(x, 0.8)) + np.clip(x, 0.6, 1.4) + np.fmax(x, 0.9) * np.sign(x - 1)
    return np.sum(y) + np.select([x > 1.2, x > 0.9], [x, x * x], 2 * x).sum() + np.copysign(x, -1).sum() + np.ptp(x)


@example(5)
def writes_of_all_kinds(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:4] = x[:3] ** 2
    y[[0, 4]] += x[[1, 2]]
    z = y[::2]
    z *= 3
    np.multiply(y, x, out=y)
    return y @ np.arange(5.0)


# ---- the check -------------------------------------------------------------------------------------------------------

EPS = np.finfo(np.longdouble).eps
(H1, ERROR1), (H2, ERROR2) = step(EPS, 1), step(EPS, 2)
ROUNDING = {np.float64: 1e-11, np.float32: 1e-3}
"""Errors allowed of derivatives, relative to the largest of them; some functions here cancel digits."""


class Truth(NamedTuple):
    """A point, a direction, and there the value, the gradient and the product of Hessian and direction."""

    x: Any
    dx: Any
    value: Any
    gradient: Any
    hessian_product: Any


@cache
def truth_of(name: str) -> Truth:
    """Return the derivatives of a function at a random point by differences in extended precision."""
    f, shape = FUNCTIONS[name]
    rng = np.random.default_rng([*map(ord, name)])
    x, dx = rng.uniform(0.5, 1.5, shape), rng.uniform(-1, 1, shape)
    xs, basis = [extended(x)], np.eye(x.size).reshape(x.size, *shape)

    def f_of_copy(x: Any) -> Any:
        return f(x.copy())

    gradient = [difference(f_of_copy, xs, [unit], H1) for unit in basis]
    product = [mixed_difference(f_of_copy, xs, [unit], [dx], H2) for unit in basis]
    return Truth(x, dx, f_of_copy(x), np.reshape(gradient, shape), np.reshape(product, shape))


def results(f: Function, x: Any, dx: Any) -> dict[str, list[Any]]:
    """Return what every transform says, by what it should be."""
    gradient = grad(f)
    output, pullback = vjp(f, x)
    value, gradient_beside_value = value_and_grad(f)(x)
    pushed_value, directional = jvp(f, (x,), (dx,))
    pushed_gradient, product = jvp(gradient, (x,), (dx,))
    return {
        "value": [output, value, pushed_value],
        "gradient": [gradient(x), gradient_beside_value, pullback(np.ones_like(output))[0], pushed_gradient],
        "directional derivative": [directional],
        "hessian product": [
            product,
            grad(lambda x: np.sum(gradient(x) * dx))(x),
            grad(lambda x: jvp(f, (x,), (dx,))[1])(x),
            vjp(gradient, x)[1](dx)[0],
        ],
    }


def results_in_short(f: Function, x: Any, dx: Any) -> dict[str, list[Any]]:
    """Return what the transforms say that differ from each other most, since compiling all of them takes long."""
    value, gradient = value_and_grad(jit(f))(x)
    pushed_value, directional = jvp(f, (x,), (dx,))
    product = grad(lambda x: np.sum(grad(f)(x) * dx))(x)
    return {
        "value": [value, pushed_value],
        "gradient": [gradient],
        "directional derivative": [directional],
        "hessian product": [product],
    }


def check(found: dict[str, list[Any]], truth: Truth, rounding: float) -> None:
    """Compare results with the truth, as far as that is known, and with each other."""
    expected = {
        "value": (truth.value, rounding),
        "gradient": (truth.gradient, max(rounding, 100 * ERROR1)),
        "directional derivative": (np.sum(truth.gradient * truth.dx), max(rounding, 100 * ERROR1)),
        "hessian product": (truth.hessian_product, max(rounding, 1000 * ERROR2)),
    }
    scale = float(max(1, np.max(np.abs(truth.gradient)), np.max(np.abs(truth.hessian_product))))
    for name, several in found.items():
        right, allowed = expected[name]
        for result in several:
            assert_close(result, right, allowed, scale)
            assert_close(result, several[0], rounding, scale)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_interpreted_has_its_true_derivatives(name: str) -> None:
    """Under `jit` or without, which is drawn."""
    f, truth = FUNCTIONS[name][0], truth_of(name)
    x, way = truth.x.copy(), random.Random(name).choice([lambda run: run, jit])
    with config.override(executor="interpreter"):
        check(way(lambda x, dx: results(f, x, dx))(x, truth.dx), truth, ROUNDING[np.float64])
    np.testing.assert_array_equal(x, truth.x)


@pytest.mark.parametrize("name", sorted(FUNCTIONS)[::3])
def test_each_function_compiled_has_its_true_derivatives(name: str) -> None:
    f, truth = FUNCTIONS[name][0], truth_of(name)
    with config.override(executor="compiled"):
        check(results_in_short(f, truth.x, truth.dx), truth, ROUNDING[np.float64])


@pytest.mark.parametrize("name", sorted(FUNCTIONS)[1::8])
def test_compiled_together_in_f32(name: str) -> None:
    f, truth = FUNCTIONS[name][0], truth_of(name)
    x, dx = truth.x.astype(np.float32), truth.dx.astype(np.float32)
    found = jit(lambda x, dx: results_in_short(f, x, dx))(x, dx)
    check(found, truth, ROUNDING[np.float32])
    assert found["gradient"][0].dtype == np.float32
