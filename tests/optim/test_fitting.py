"""Fits over pytrees by `optim.minimize`: SciPy's own minima, whatever the method, structure and dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose

import fnad
from fnad import errors, optim

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X @ [1.0, -2.0, 0.5] + 0.3 + RNG.normal(size=60) > 0) * 1.0


def loss(p: Any, x: Any, y: Any, penalty: float = 1e-2) -> Any:
    z = x @ p["w"] + p["b"][0]
    return np.mean(np.logaddexp(0.0, z) - y * z) + penalty * np.sum(p["w"] ** 2)


def by_differences() -> Any:
    """The same minimum by SciPy alone."""

    def flat(v: Any) -> Any:
        return loss({"w": v[:3], "b": [v[3]]}, X, Y)

    return scipy.optimize.minimize(flat, np.zeros(4), options={"gtol": 1e-8}).x


@pytest.mark.parametrize("method", ["L-BFGS-B", "BFGS", "CG", "SLSQP", "TNC"])
def test_minimum_of_a_pytree(method: str) -> None:
    found = optim.minimize(loss, {"w": np.zeros(3), "b": [0.0]}, X, Y, method=method, tol=1e-10)
    assert_allclose([*found.x["w"], *found.x["b"]], by_differences(), atol=1e-5)
    assert_allclose(found.fun, loss(found.x, X, Y))


def test_dtypes_stay_and_integers_are_constants() -> None:
    start = {"w": np.zeros(3, np.float32), "b": [np.float32(0.0)], "n": 3}
    found = optim.minimize(lambda p: loss(p, X, Y) + p["n"], start)
    assert found.success
    assert (found.x["w"].dtype, found.x["b"][0].dtype, found.x["n"]) == (np.float32, np.float32, 3)
    assert_allclose([*found.x["w"], *found.x["b"]], by_differences(), atol=1e-2)


def test_options_are_scipys() -> None:
    found = optim.minimize(loss, {"w": np.zeros(3), "b": [0.0]}, X, Y, bounds=[(0.0, None)] * 4)
    assert found.x["w"][1] == 0.0 < found.x["w"][0]
    assert not optim.minimize(loss, {"w": np.zeros(3), "b": [0.0]}, X, Y, options={"maxiter": 1}).success


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: optim.minimize(abs, 1j), errors.DtypeError, "the parameters of abs are complex128 and not real"),
        (lambda: optim.minimize(abs, [1, 2]), errors.DtypeError, "the parameters of abs are int64 and not real floats"),
        (
            lambda: optim.minimize(np.sin, np.ones(2)),
            errors.NonScalarOutputError,
            "sin returned f64.2., where grad takes one real element",
        ),
        (lambda: optim.minimize(3, 1.0), errors.ArgumentTypeError, "the first argument of minimize has to be"),
        (
            lambda: fnad.grad(lambda x: optim.minimize(np.square, x).fun)(1.0),
            errors.UnsupportedFunctionError,
            "runs SciPy, which is not part of a program",
        ),
    ],
)
def test_fitting_refuses_wrong_arguments_by_name(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
