"""`linearize`, `linear_transpose`, `hvp`: against closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import LinearOperator, cg

import fnad
from fnad.errors import (
    ArgumentTypeError,
    CotangentError,
    LinearityError,
    NonDifferentiableArgumentError,
    NonScalarOutputError,
    TangentError,
)

RNG = np.random.default_rng(0)
X, V, A = RNG.normal(size=4), RNG.normal(size=4), RNG.normal(size=(3, 4))


def rosenbrock(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def hessian_of_rosenbrock(x: Any) -> Any:
    diagonal = np.r_[1200 * x[:-1] ** 2 - 400 * x[1:] + 2, 0.0] + np.r_[0.0, [200.0] * (len(x) - 1)]
    return np.diag(diagonal) + np.diag(-400 * x[:-1], 1) + np.diag(-400 * x[:-1], -1)


# ---- hvp -------------------------------------------------------------------------------------------------------------


def test_the_product_with_a_hessian() -> None:
    expected = hessian_of_rosenbrock(X) @ V
    for call in (fnad.hvp, fnad.jit(lambda f, x, v: fnad.hvp(f, x, v), static_argnums=0)):
        (found,) = call(rosenbrock, (X,), (V,))
        assert_allclose(found, expected, rtol=1e-12)
    rows = fnad.vmap(lambda v: fnad.hvp(rosenbrock, (X,), (v,))[0])(np.eye(4))
    assert_allclose(rows, hessian_of_rosenbrock(X), rtol=1e-12)


def test_the_product_with_a_hessian_of_several_pytrees() -> None:
    f = lambda p, s: (np.sum(p["w"] ** 3) * s * p["n"], "beside")  # noqa: E731
    (found, ds), beside = fnad.hvp(f, ({"w": X, "n": 2}, 3.0), ({"w": V, "n": 0}, 1.0), has_aux=True)
    assert beside == "beside"
    assert_allclose(found["w"], 6 * X * 3.0 * 2 * V + 3 * X**2 * 2)
    assert found["n"] == 0
    assert_allclose(ds, np.sum(3 * X**2 * 2 * V))


def test_what_has_no_hessian() -> None:
    with pytest.raises(NonScalarOutputError, match=r"<lambda> returned f64\[4\]"):
        fnad.hvp(lambda x: x * x, (X,), (V,))
    with pytest.raises(TangentError, match=r"tangents\[0\] is f64\[2\], but has to be f64\[4\]"):
        fnad.hvp(rosenbrock, (X,), (V[:2],))
    with pytest.raises(ArgumentTypeError, match=r"primals is of type numpy\.ndarray, not a tuple"):
        fnad.hvp(rosenbrock, X, V)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="the first argument of hvp has to be a function"):
        fnad.hvp(X, (X,), (V,))  # type: ignore[arg-type]


# ---- linearize -------------------------------------------------------------------------------------------------------


def test_the_derivative_at_a_point_is_a_function() -> None:
    calls = []

    def f(x: Any, s: Any) -> Any:
        calls.append(1)
        return {"y": np.sin(A @ x) * s, "n": np.argmax(x)}

    value, pushforward = fnad.linearize(f, X, 2.0)
    assert_allclose(value["y"], np.sin(A @ X) * 2.0)
    assert value["n"] == np.argmax(X)
    for dx, ds in ((V, 0.0), (0 * V, 1.0), (V, -3.0)):
        found = pushforward(dx, ds)
        assert_allclose(found["y"], np.cos(A @ X) * (A @ dx) * 2.0 + np.sin(A @ X) * ds, rtol=1e-13)
        assert found["n"] == 0
    assert len(calls) == 1


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
def test_the_derivative_within_other_transforms(executor: Any) -> None:
    second = -np.sin(X) * V * V
    along = lambda x, v: fnad.linearize(np.sin, x)[1](v)  # noqa: E731
    with fnad.config.override(executor=executor):
        assert_allclose(fnad.jit(along)(X, V), np.cos(X) * V)
        assert_allclose(fnad.jvp(lambda x: along(x, V), (X,), (V,))[1], second)
        assert_allclose(fnad.grad(lambda x: np.sum(along(x, V)))(X), -np.sin(X) * V)
        assert_allclose(fnad.vmap(fnad.linearize(np.sin, X)[1])(np.eye(4)), np.diag(np.cos(X)))
        assert_allclose(fnad.linearize(along, X, V)[1](V, 0 * V), second)


def test_the_derivative_of_a_loop() -> None:
    f = lambda x: fnad.while_loop(lambda c: c < 100.0, lambda c: c * c, x)  # noqa: E731
    value, pushforward = fnad.linearize(f, 3.0)
    assert_allclose([value, pushforward(1.0), pushforward(2.0)], [6561.0, 8 * 3.0**7, 16 * 3.0**7])


def test_auxiliary_data_of_a_linearization() -> None:
    value, pushforward, beside = fnad.linearize(lambda x: (x**2, {"twice": 2 * x}), 3.0, has_aux=True)
    assert (value, pushforward(1.0), beside) == (9.0, 6.0, {"twice": 6.0})


def test_tangents_that_do_not_fit() -> None:
    _, pushforward = fnad.linearize(np.sin, X)
    with pytest.raises(TangentError, match="the structure of tangents is"):
        pushforward(V, V)
    with pytest.raises(TangentError, match=r"tangents\[0\] is f32\[4\], but has to be f64\[4\]"):
        pushforward(V.astype(np.float32))
    with pytest.raises(NonDifferentiableArgumentError):
        fnad.linearize(np.sin, 3)


# ---- linear_transpose ------------------------------------------------------------------------------------------------

LINEAR = {
    "a product": (lambda x: A @ x, A),
    "sums": (np.cumsum, np.tril(np.ones((4, 4)))),
    "differences": (lambda x: x[1:] - 2.0 * x[:-1], np.eye(4)[1:] - 2 * np.eye(4)[:-1]),
    "a loop": (
        lambda x: fnad.fori_loop(0, 3, lambda i, c: A[:, :3] @ c, A @ x),
        np.linalg.matrix_power(A[:, :3], 3) @ A,
    ),
    "nothing": (lambda x: np.zeros(2), np.zeros((2, 4))),
    "a derivative": (fnad.linearize(lambda x: np.sin(A @ x), X)[1], np.cos(A @ X)[:, None] * A),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_transpose_multiplies_by_the_transposed_matrix(name: str) -> None:
    f, matrix = LINEAR[name]
    ct = RNG.normal(size=len(matrix))
    for like in (X, fnad.ShapeDtypeStruct((4,), float)):
        (found,) = fnad.linear_transpose(f, like)(ct)
        assert_allclose(found, matrix.T @ ct, rtol=1e-13)
    assert_allclose(fnad.jit(lambda ct: fnad.linear_transpose(f, X)(ct)[0])(ct), matrix.T @ ct, rtol=1e-13)


@pytest.mark.slow
def test_a_derivative_of_a_loop_in_a_branch_is_linear() -> None:
    """What a branch and a loop compute beside what depends on the tangents does not depend on them."""

    def running(x: Any) -> Any:
        step = lambda c, u: ((np.sin(c[0] * u), c[1] + u), (c[0], u * c[1]))  # noqa: E731
        (end, total), (ends, totals) = fnad.scan(step, (x, np.sum(x)), np.cos(x))
        return end + np.sum(ends, axis=0) + totals + total

    def f(x: Any) -> Any:
        branch = lambda x: fnad.cond(x[0] > 0, running, lambda y: y * running(y), x)  # noqa: E731
        return fnad.jvp(lambda z: fnad.vjp(branch, z)[1](z)[0], (x,), (np.cos(x),))[1]

    transposed = fnad.jit(lambda x: fnad.linear_transpose(fnad.linearize(f, x)[1], x)(X)[0])
    with fnad.config.override(executor="interpreter"):
        for x in (X, -X):
            assert_allclose(transposed(x), fnad.vjp(f, x)[1](X)[0], rtol=1e-12)


def test_a_transpose_of_several_arguments_and_of_complex_numbers() -> None:
    f = lambda x, p: {"s": np.sum(x) + p["a"], "d": 3.0 * p["a"]}  # noqa: E731
    dx, dp = fnad.linear_transpose(f, X, {"a": 1.0})({"s": 2.0, "d": 5.0})
    assert_array_equal(dx, [2.0] * 4)
    assert dp == {"a": 17.0}
    m = A + 1j * A[::-1]
    assert_allclose(fnad.linear_transpose(lambda z: m @ z, X + 0j)(np.ones(3) + 0j)[0], m.T @ np.ones(3))
    with pytest.raises(CotangentError):
        fnad.linear_transpose(np.cumsum, X)(X[:2])


@pytest.mark.parametrize(
    ("f", "why"),
    [
        (np.sin, "its derivative depends on where it is taken"),
        (lambda x: x * x, "its derivative depends on where it is taken"),
        (np.abs, "its derivative depends on where it is taken"),
        (lambda x: np.where(x > 0, x, 2 * x), "its derivative depends on where it is taken"),
        (lambda x: x if x[0] > 0 else 2 * x, "its derivative depends on where it is taken"),
        (lambda x: x + 1.0, "it is not 0 at 0"),
        (lambda x: np.ones(3), "it is not 0 at 0"),
    ],
)
def test_what_is_not_linear(f: Any, why: str) -> None:
    with pytest.raises(LinearityError, match=f"is not linear: {why}"):
        fnad.linear_transpose(f, X)


def test_integers_are_directions() -> None:
    """SciPy's operators find the dtype of their results by vectors of int8."""
    v, f = np.array([1, 0, -2, 3], np.int8), lambda x: A @ x
    for given in (v, v.astype(np.uint8), v.astype(np.int64)):
        expected = given.astype(float)
        for run in (lambda f: f, fnad.jit):
            found = run(lambda v: fnad.jvp(f, (X,), (v,))[1])(given), run(lambda v: fnad.linearize(f, X)[1](v))(given)
            for tangent in found:
                assert_allclose(tangent, A @ expected, rtol=1e-14)
            cotangents = run(lambda v: fnad.vjp(f, X)[1](v))(given[:3])
            assert_allclose(cotangents[0], expected[:3] @ A, rtol=1e-14)
            assert_allclose(
                run(lambda v: fnad.hvp(rosenbrock, (X,), (v,)))(given)[0], hessian_of_rosenbrock(X) @ expected
            )
    operator = LinearOperator((4, 4), matvec=lambda v: A.T @ fnad.linearize(f, X)[1](v) + v)
    assert operator.dtype == float
    assert_allclose(cg(operator, X, rtol=1e-12)[0], np.linalg.solve(A.T @ A + np.eye(4), X))
    with pytest.raises(TangentError, match="i8\\[3\\], but has to be f64\\[4\\]"):
        fnad.jvp(f, (X,), (v[:3],))
    with pytest.raises(TangentError, match="bool"):
        fnad.jvp(f, (X,), (v > 0,))
