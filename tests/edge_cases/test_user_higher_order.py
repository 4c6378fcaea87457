"""Derivatives of derivatives of NumPy programs, in every nesting of forward, reverse and jit."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from fnad import config, errors, grad, jit, jvp, stop_gradient, value_and_grad, vjp
from fnad.testing import assert_close, tolerance
from tests.edge_cases.ways import check
from tests.together import in_groups

floats = pytest.mark.parametrize("dtype", [np.float64, np.float32])

DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "grad": grad,
    "value_and_grad": lambda f: lambda x: value_and_grad(f)(x)[1],
    "jvp": lambda f: lambda x: jvp(f, (x,), (1.0,))[1],
    "vjp": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
    "grad of jit": lambda f: grad(jit(f)),
    "jit of grad": lambda f: jit(grad(f)),
    "jit of jvp": lambda f: jit(lambda x: jvp(f, (x,), (1.0,))[1]),
}


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
def test_row_47_perturbations_are_not_confused(executor: Any) -> None:
    derivatives = DERIVATIVES.values()
    with config.override(executor=executor):
        for outer, inner in product(derivatives, derivatives):
            assert outer(lambda x, d=inner: x * d(lambda y: x * y)(1.0))(4.0) == 8
            assert outer(lambda x, d=inner: x * d(lambda y: x + y)(1.0))(1.0) == 1


@in_groups(("a", "b", "c"), list(product(["grad", "jvp", "vjp"], repeat=3)))
def test_row_47_three_deep(a: str, b: str, c: str) -> None:
    """By hand: d/dz of x y² z³ at z = y is 3 x y⁴, d/dy of that at y = x is 12 x⁴."""
    d, e, f = DERIVATIVES[a], DERIVATIVES[b], DERIVATIVES[c]
    nested = d(lambda x: e(lambda y: f(lambda z: x * y**2 * z**3)(y))(x))
    assert nested(2.0) == 48 * 2.0**3


@pytest.mark.slow
@floats
def test_row_48_stopped_gradient(dtype: Any) -> None:
    check(lambda x: x * stop_gradient(x), dtype(3), value=9, gradient=[3], hessian=[[0]])
    check(
        lambda x: x * stop_gradient(x * x) + stop_gradient(x) * x * x, dtype(2), value=16, gradient=[12], hessian=[[4]]
    )


@floats
def test_row_51_jit_of_grad_is_grad_of_jit(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    for shape in ((), (1,), (5,), (0,), (2, 3), (3, 1, 2)):
        x = np.asarray(rng.uniform(0.5, 1, shape), dtype)
        f = lambda x: np.sum(np.exp(np.sin(x)) * x) / (1 + np.sum(x * x))  # noqa: E731
        with config.override(executor="interpreter"):
            expected = grad(f)(x)
        for found in (grad(jit(f))(x), jit(grad(f))(x), jit(grad(jit(f)))(x), jit(jit(grad(f)))(x)):
            assert (np.shape(found), found.dtype) == (np.shape(x), dtype)
            assert_close(found, expected, tolerance(np.dtype(dtype)))


@pytest.mark.slow
@floats
def test_row_71_mixed_terms_at_a_zero_factor(dtype: Any) -> None:
    second = grad(grad(lambda x: (x - 1) * np.sqrt(x)))
    assert second(dtype(1)) == 1
    check(lambda x: (x - 1) * np.sqrt(x), dtype(1), value=0, gradient=[1], hessian=[[1]])
    check(lambda x, y: x * np.log(y), dtype(0), dtype(1), value=0, gradient=[0, 0], hessian=[[0, 1], [1, 0]])
    check(lambda x, y: x / y, dtype(0), dtype(2), value=0, gradient=[0.5, 0], hessian=[[0, -0.25], [-0.25, 0]])


# ---- row 70: complex numbers -----------------------------------------------------------------------------------------

complexes = pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
Z = 3 + 4j
MODULI: dict[str, Any] = {
    "conj": lambda z: np.real(z * np.conj(z)),
    "abs": lambda z: np.abs(z) ** 2,
    "parts": lambda z: z.real**2 + z.imag**2,
    "norm": lambda z: np.sum(np.abs(np.stack([z])) ** 2),
}


@complexes
@pytest.mark.parametrize("name", MODULI)
def test_row_70_squared_modulus(name: str, dtype: Any) -> None:
    f, z = MODULI[name], dtype(Z)
    for run in (lambda f: f, jit):
        found = run(grad(f))(z)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, 6 - 8j, rtol=1e-6)
        np.testing.assert_allclose(run(lambda z: jvp(f, (z,), (dtype(1),))[1])(z), 6, rtol=1e-6)
        np.testing.assert_allclose(run(lambda z: jvp(f, (z,), (dtype(1j),))[1])(z), 8, rtol=1e-6)


HOLOMORPHIC: dict[str, Any] = {
    "square": (lambda z: z**2, lambda z: 2 * z),
    "exp": (np.exp, np.exp),
    "sin": (np.sin, np.cos),
    "log": (np.log, lambda z: 1 / z),
    "sqrt": (np.sqrt, lambda z: 0.5 / np.sqrt(z)),
    "quotient": (lambda z: 1 / (1 + z), lambda z: -1 / (1 + z) ** 2),
    "power": (lambda z: z**1.5, lambda z: 1.5 * z**0.5),
    "tanh": (lambda z: np.tanh(z / 5), lambda z: (1 - np.tanh(z / 5) ** 2) / 5),
    "prod": (lambda z: np.prod(np.stack([z, z + 1])), lambda z: 2 * z + 1),
}


@complexes
@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_row_70_holomorphic(name: str, dtype: Any) -> None:
    """The pullback multiplies by the derivative, and so does the pushforward."""
    (f, derivative), z, ct = HOLOMORPHIC[name], dtype(Z), dtype(2 - 1j)
    for run in (lambda f: f, jit):
        np.testing.assert_allclose(run(lambda z: vjp(f, z)[1](ct)[0])(z), derivative(z) * ct, rtol=1e-5)
        np.testing.assert_allclose(run(lambda z: jvp(f, (z,), (ct,))[1])(z), derivative(z) * ct, rtol=1e-5)


@complexes
def test_row_70_forward_and_reverse_give_one_jacobian(dtype: Any) -> None:
    def f(z: Any) -> Any:
        return np.stack([z * np.conj(z) + z, np.abs(z) + 1j * np.angle(z), z.imag * z])

    z = dtype(Z)
    cts = np.eye(3, dtype=dtype)
    units = (dtype(1), dtype(1j))
    _, pullback = vjp(f, z)
    for ct in [*cts, *(1j * cts).astype(dtype)]:
        (back,) = pullback(ct)
        for unit in units:
            forward = np.sum(ct * jvp(f, (z,), (unit,))[1]).real
            np.testing.assert_allclose((back * unit).real, forward, rtol=1e-5, atol=1e-5)


def test_row_70_real_argument_of_a_complex_function() -> None:
    f = lambda x: np.real(np.exp(1j * x) * (2 - 1j))  # noqa: E731
    expected = np.real(1j * np.exp(0.3j) * (2 - 1j))
    for found in (grad(f)(0.3), jit(grad(f))(0.3), jvp(f, (0.3,), (1.0,))[1]):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected)
    with pytest.raises(errors.NonScalarOutputError, match="c128"):
        grad(lambda x: np.exp(1j * x))(0.3)
