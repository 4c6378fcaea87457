"""Fixed points, roots and minima: what they find, its derivatives, and what they say where they find nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.control.implicit import DENSE, SMALL
from fnad.errors import (
    ArgumentTypeError,
    ConvergenceError,
    DtypeError,
    FactorizationError,
    NonScalarOutputError,
    StructureError,
)
from tests.edge_cases.ways import check

Function = Callable[..., Any]


def check_by_all_modes(f: Function, x: float, value: float, slope: float, curvature: float, rtol: float) -> None:
    """Compare the value of a function of a number, its slope by each mode, and its curvature by each nesting."""
    forward = lambda g: lambda x: fnad.jvp(g, (x,), (1.0,))[1]  # noqa: E731
    nested = [outer(inner(f)) for outer in (fnad.grad, forward) for inner in (fnad.grad, forward)]
    found, slopes, curvatures = fnad.jit(
        lambda x: (f(x), [fnad.grad(f)(x), forward(f)(x)], [second(x) for second in nested])
    )(x)
    np.testing.assert_allclose(found, value, rtol=rtol)
    np.testing.assert_allclose(slopes, slope, rtol=rtol)
    np.testing.assert_allclose(curvatures, curvature, rtol=rtol)


floats = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def heron(s: Any, a: Any) -> Any:
    return (s + a / s) / 2


SQUARE_ROOTS: dict[str, Function] = {
    "fixed_point": lambda a, s: fnad.fixed_point(heron, s, a),
    "root": lambda a, s: fnad.root(lambda x, a: x * x - a, s, a),
    "minimize": lambda a, s: fnad.minimize(lambda x, a: x**3 / 3 - a * x, s, a).x,
}

square_roots = pytest.mark.parametrize("name", SQUARE_ROOTS)


@pytest.mark.slow
@square_roots
def test_row_52_square_root(name: str) -> None:
    def f(a: Any) -> Any:
        return SQUARE_ROOTS[name](a, 3.5)

    check(f, np.float64(4), value=2, gradient=[0.25], hessian=[[-1 / 32]], rtol=1e-10)


def test_a_square_root_in_single_precision_from_the_solution() -> None:
    f = lambda a: SQUARE_ROOTS["root"](a, np.float32(2))  # noqa: E731
    check_by_all_modes(f, np.float32(4), 2, 0.25, -1 / 32, rtol=1e-5)  # type: ignore[arg-type]


@square_roots
def test_third_derivative_of_a_solution_is_exact(name: str) -> None:
    f = fnad.grad(fnad.grad(fnad.grad(lambda a: SQUARE_ROOTS[name](a, 2.0))))
    np.testing.assert_allclose(f(4.0), 3 / 256, rtol=1e-10)


@square_roots
def test_no_derivative_in_the_start(name: str) -> None:
    assert fnad.grad(lambda s: SQUARE_ROOTS[name](4.0, s))(3.0) == 0
    assert fnad.jvp(lambda s: SQUARE_ROOTS[name](4.0, s), (3.0,), (1.0,))[1] == 0


@square_roots
def test_start_in_the_argument_itself(name: str) -> None:
    np.testing.assert_allclose(fnad.grad(lambda a: SQUARE_ROOTS[name](a, a))(4.0), 0.25, rtol=1e-10)


@pytest.mark.slow
def test_values_from_around_the_function() -> None:
    scale = np.array([1.0, 4.0])

    def f(a: Any) -> Any:
        b = a * scale
        return fnad.root(lambda x: x * x - b, np.ones(2))

    np.testing.assert_allclose(f(4.0), [2, 4])
    np.testing.assert_allclose(fnad.jvp(f, (4.0,), (1.0,))[1], [0.25, 0.5])
    np.testing.assert_allclose(fnad.grad(lambda a: np.sum(f(a)))(4.0), 0.75)


# ---- systems ---------------------------------------------------------------------------------------------------------


def matrix(n: int) -> Any:
    return np.random.default_rng(0).normal(size=(n, n)) / np.sqrt(n) / 2 + 1.5 * np.eye(n)


@pytest.mark.parametrize("n", [1, 3, DENSE + 50])
@floats
def test_system_against_its_matrix(n: int, dtype: Any) -> None:
    a, b = matrix(n).astype(dtype), np.linspace(-1, 1, n, dtype=dtype)
    direction, rtol = np.cos(np.arange(n)).astype(dtype), 1e-8 if dtype is np.float64 else 2e-3

    def solve(b: Any) -> Any:
        return fnad.root(lambda x, b: a @ x + np.tanh(x) - b, np.zeros(n, dtype), b)

    x, forward = fnad.jvp(solve, (b,), (direction,))
    slope = a.astype(float) + np.diag(np.cosh(x.astype(float)) ** -2)
    assert x.dtype == forward.dtype == dtype
    np.testing.assert_allclose(a @ x + np.tanh(x), b, rtol=0, atol=rtol)
    np.testing.assert_allclose(forward, np.linalg.solve(slope, direction), rtol=rtol, atol=rtol)
    back = fnad.vjp(solve, b)[1](direction)[0]
    np.testing.assert_allclose(back, np.linalg.solve(slope.T, direction), rtol=rtol, atol=rtol)


@pytest.mark.slow
@pytest.mark.parametrize("n", [4, DENSE + 50])
def test_second_derivative_of_a_system(n: int) -> None:
    """Against the derivative that follows by hand: x'' = -J⁻¹ (φ''(x) x'²) with J = A + φ'(x), φ = tanh."""
    a, b = matrix(n), np.linspace(-1, 1, n)

    def f(t: Any) -> Any:
        return np.sum(fnad.root(lambda x: a @ x + np.tanh(x) - t * b, np.zeros(n)))

    x = fnad.root(lambda x: a @ x + np.tanh(x) - b, np.zeros(n))
    slope, bend = np.cosh(x) ** -2, -2 * np.tanh(x) * np.cosh(x) ** -2
    jacobian = a + np.diag(slope)
    moved = np.linalg.solve(jacobian, b)
    second = -np.sum(np.linalg.solve(jacobian, bend * moved**2))
    for nested in (fnad.grad(fnad.grad(f)), lambda t: fnad.jvp(fnad.grad(f), (t,), (1.0,))[1]):
        np.testing.assert_allclose(nested(1.0), second, rtol=1e-6)
    np.testing.assert_allclose(fnad.grad(lambda t: fnad.jvp(f, (t,), (1.0,))[1])(1.0), second, rtol=1e-6)


@pytest.mark.parametrize("n", [2, 5, SMALL, SMALL + 1])
@floats
def test_rows_have_to_change_places(n: int, dtype: Any) -> None:
    a = np.flipud(np.triu(np.ones((n, n))) + 2 * np.eye(n)).astype(dtype)
    b = np.cos(np.arange(n)).astype(dtype)
    solve = fnad.jit(lambda a, b: fnad.root(lambda x: a @ x - b, np.zeros(n, dtype)))
    rtol = 1e-10 if dtype is np.float64 else 1e-3
    np.testing.assert_allclose(solve(a, b), np.linalg.solve(a, b), rtol=rtol, atol=rtol)
    gradient = fnad.grad(lambda a: np.sum(solve(a, b)))(a)
    adjoint = np.linalg.solve(a.T, np.ones(n))
    np.testing.assert_allclose(gradient, -np.outer(adjoint, np.linalg.solve(a, b)), rtol=20 * rtol, atol=20 * rtol)


@pytest.mark.slow
def test_implicit_steps_of_a_stiff_equation() -> None:
    """Backward Euler steps of y' = L y are (1 - h L)⁻¹."""
    stiff, h = np.array([[-1.0, 2.0], [0.0, -1000.0]]), 0.1

    def end(scale: Any) -> Any:
        def step(y: Any, _: Any) -> Any:
            return fnad.root(lambda new: new - y - h * scale * (stiff @ new), y), None

        return fnad.scan(step, np.array([1.0, 1.0]), length=20)[0]

    exact = np.linalg.matrix_power(np.linalg.inv(np.eye(2) - h * stiff), 20) @ np.ones(2)
    slope = 20 * h * np.linalg.solve(np.eye(2) - h * stiff, stiff @ exact)
    np.testing.assert_allclose(fnad.jit(end)(1.0), exact, rtol=1e-9)
    np.testing.assert_allclose(fnad.jvp(end, (1.0,), (1.0,))[1], slope, rtol=1e-8)
    np.testing.assert_allclose(fnad.jit(fnad.grad(lambda s: np.sum(end(s))))(1.0), np.sum(slope), rtol=1e-8)


def test_rotation_has_no_symmetric_part() -> None:
    """A system that minimal-residual methods without Arnoldi's basis stand still on."""
    n = DENSE + 2
    turn = np.roll(np.eye(n), 1, axis=0) - np.roll(np.eye(n), -1, axis=0) + 0.3 * np.eye(n)
    b = np.sin(np.arange(n))
    x = fnad.root(lambda x: turn @ x - b, np.zeros(n))
    np.testing.assert_allclose(x, np.linalg.solve(turn, b), rtol=0, atol=1e-9)


@pytest.mark.slow
def test_root_solves_for_a_pytree_with_derivatives_in_one() -> None:
    def f(x: Any, p: Any) -> Any:
        return {"a": x["a"] ** 3 - p["c"], "b": (x["b"][0] - x["a"] * p["d"],)}

    def solve(p: Any) -> Any:
        return fnad.root(f, {"a": 1.5, "b": (np.zeros(2),)}, p)

    p = {"c": 8.0, "d": np.array([1.0, -1.0])}
    x = solve(p)
    assert list(x) == ["a", "b"]
    assert isinstance(x["b"], tuple)
    np.testing.assert_allclose(x["a"], 2)
    np.testing.assert_allclose(x["b"][0], [2, -2])
    gradient = fnad.grad(lambda p: solve(p)["b"][0] @ np.array([1.0, 2.0]))(p)
    np.testing.assert_allclose(gradient["c"], -1 / 12)
    np.testing.assert_allclose(gradient["d"], [2, 4])


@pytest.mark.slow
def test_leaves_of_two_dtypes() -> None:
    def solve(a: Any) -> Any:
        return fnad.root(lambda x: (x[0] * x[0] - a, x[1] - np.float32(x[0])), (1.0, np.float32(1)))

    first, second = solve(4.0)
    assert (first.dtype, second.dtype) == (np.float64, np.float32)
    np.testing.assert_allclose(fnad.grad(lambda a: solve(a)[1])(4.0), 0.25, rtol=1e-6)


def test_start_of_a_narrower_dtype_is_promoted() -> None:
    x = fnad.fixed_point(np.cos, 1)
    assert x.dtype == np.float64
    np.testing.assert_allclose(np.cos(x), x)
    assert fnad.fixed_point(lambda x, a: np.cos(a * x), np.float32(1), np.array(1.0)).dtype == np.float64


def test_nothing_to_be_solved() -> None:
    assert fnad.fixed_point(lambda x: x, ()) == ()
    assert fnad.root(lambda x: x - 1, np.zeros((0, 2))).shape == (0, 2)
    assert fnad.minimize(lambda x: 3.0, ()) == ((), 3.0, 0)


def test_compiled_as_part_of_a_function() -> None:
    @fnad.jit
    def f(a: Any) -> Any:
        return fnad.value_and_grad(lambda a: fnad.fixed_point(heron, 3.0, a) ** 2)(a)

    with fnad.config.override(executor="compiled"):
        for a in (4.0, 9.0, 2.0):
            np.testing.assert_allclose(f(a), (a, 1))


def test_in_a_loop() -> None:
    f = lambda a: fnad.fori_loop(0, 2, lambda i, x: fnad.fixed_point(heron, 1.5, x), a)  # noqa: E731
    np.testing.assert_allclose([f(16.0), fnad.grad(f)(16.0)], [2, 1 / 32])
    rows = fnad.map(lambda a: fnad.root(lambda x: x**2 - a, 1.0), np.array([1.0, 4.0, 9.0]))
    np.testing.assert_allclose(rows, [1, 2, 3])


@pytest.mark.slow
def test_one_in_another() -> None:
    def fourth_root(a: Any) -> Any:
        return fnad.root(lambda x, a: x - fnad.fixed_point(heron, 1.0, fnad.fixed_point(heron, 1.0, a)), 1.0, a)

    check_by_all_modes(fourth_root, 16.0, 2, 1 / 32, -3 / 2048, rtol=1e-9)


# ---- minimize --------------------------------------------------------------------------------------------------------


def rosenbrock(x: Any, a: Any) -> Any:
    return (a - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


@pytest.mark.slow
def test_minimize_finds_the_minimum_of_rosenbrock_and_its_hessian() -> None:
    found = fnad.minimize(rosenbrock, np.array([-1.2, 1.0]), 1.0)
    np.testing.assert_allclose(found.x, [1, 1], rtol=1e-10)
    assert 0 <= found.fun < 1e-18
    assert 0 < found.nit < 100
    second = lambda a: fnad.minimize(rosenbrock, np.array([1.4, 2.0]), a).x[1]  # noqa: E731
    check_by_all_modes(second, 1.5, 2.25, 3.0, 2.0, rtol=1e-9)


@pytest.mark.slow
def test_value_at_the_minimum_has_the_partial_derivative() -> None:
    """The envelope theorem: of min (x - a)² + a³ it is 3 a²."""
    f = lambda a: fnad.minimize(lambda x: (x - a) ** 2 + a**3, 0.0).fun  # noqa: E731
    check_by_all_modes(f, 2.0, 8, 12.0, 12.0, rtol=1e-12)


@pytest.mark.parametrize("n", [5, DENSE + 20])
def test_minimize_of_a_quadratic_is_the_solution_of_normal_equations(n: int) -> None:
    data, b = matrix(n), np.cos(np.arange(n))

    def weights(penalty: Any) -> Any:
        return fnad.minimize(lambda w: np.sum((data @ w - b) ** 2) + penalty * np.sum(w**2), np.zeros(n)).x

    normal = data.T @ data + 0.5 * np.eye(n)
    w = np.linalg.solve(normal, data.T @ b)
    found, slope = fnad.jvp(weights, (0.5,), (1.0,))
    np.testing.assert_allclose(found, w, rtol=0, atol=1e-9)
    np.testing.assert_allclose(slope, -np.linalg.solve(normal, w), rtol=0, atol=1e-8)
    np.testing.assert_allclose(fnad.grad(lambda p: weights(p) @ b)(0.5), slope @ b, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 3])
def test_minimum_of_a_function_of_a_minimum(n: int) -> None:
    """The inner one is at w = 1 / (1 + eᵖ), so that the outer one has w = 1/4."""

    def shrunk(p: Any) -> Any:
        return fnad.minimize(lambda w: np.sum((w - 1) ** 2) + np.exp(p) * np.sum(w**2), np.zeros(n)).x

    found = fnad.minimize(lambda p: np.sum((shrunk(p) - 0.25) ** 2), 0.0)
    np.testing.assert_allclose(found.x, np.log(3), rtol=1e-9)


def test_minimum_far_below_a_large_value() -> None:
    """Where differences of the value are lost in rounding, the gradient still leads on."""
    found = fnad.minimize(lambda x: 1e6 + np.sum((x - 3) ** 4 + (x - 3) ** 2), np.zeros(2))
    np.testing.assert_allclose(found.x, [3, 3], rtol=1e-10)


# ---- what does not work ----------------------------------------------------------------------------------------------


def raises(kind: type[Exception], *parts: str) -> Any:
    return pytest.raises(kind, match="(?s)" + ".*".join(map(re.escape, parts)))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("fixed_point", lambda: fnad.fixed_point(lambda x: 2 * x, 1.0)),
        ("fixed_point", lambda: fnad.fixed_point(heron, 100.0, 2.0, max_steps=2)),
        ("fixed_point", lambda: fnad.fixed_point(lambda x: x * np.nan, 1.0)),
        ("root", lambda: fnad.root(lambda x: x * x + 1, 1.0)),
        ("root", lambda: fnad.root(lambda x: x * x + 1, 0.0)),
        ("root", lambda: fnad.root(np.log, -1.0)),
        ("minimize", lambda: fnad.minimize(lambda x: -x * x, 1.0)),
        ("minimize", lambda: fnad.minimize(lambda x: x, 1.0)),
        ("minimize", lambda: fnad.minimize(lambda x: abs(x - 0.3), 1.0)),
        ("minimize", lambda: fnad.minimize(lambda x: (x - 1) ** 4, 9.0, max_steps=3)),
    ],
)
def test_no_convergence_is_an_error_with_the_line(name: str, call: Callable[[], Any]) -> None:
    with raises(ConvergenceError, f"{name} of", "did not converge in max_steps=", "test_implicit.py:", "start nearer"):
        call()


def test_no_convergence_where_compiled() -> None:
    f = fnad.jit(lambda a: fnad.fixed_point(lambda x: a * x, 1.0))
    with fnad.config.override(executor="compiled"):
        assert f(0.5) < 1e-10
        with raises(ConvergenceError, "fixed_point of <lambda> (test_implicit.py:", "did not converge"):
            f(2.0)


def test_root_with_a_singular_jacobian_raises_at_the_line_of_the_user() -> None:
    with raises(FactorizationError, "Singular matrix", "test_implicit.py:"):
        fnad.root(lambda x: np.stack([x[0] + x[1] - 1, x[0] + x[1] - 1]), np.zeros(2))


def test_derivative_at_a_double_root_is_infinite() -> None:
    """x² = a at a = 0, where √a has a pole."""
    assert fnad.grad(lambda a: fnad.root(lambda x: x * x - a, 0.0))(0.0) == np.inf


def test_root_refuses_a_residual_of_another_structure() -> None:
    with raises(
        StructureError,
        "the result of <lambda> (test_implicit.py:",
        ") is {'a': *}",
        "x_init is {'a': *, 'b': *}",
        "test_implicit.py",
    ):
        fnad.root(lambda x: {"a": x["a"]}, {"a": 1.0, "b": 2.0})
    with raises(StructureError, "x_init['b'] is f64[2]", "returns for it is f64[3]", "one equation for each unknown"):
        fnad.fixed_point(lambda x: {"a": x["a"], "b": np.ones(3)}, {"a": 1.0, "b": np.ones(2)})


def test_solvers_refuse_to_start_with_integers_or_complex_numbers() -> None:
    for solve, f in ((fnad.fixed_point, abs), (fnad.root, lambda x: x - 1), (fnad.minimize, lambda x: 1.0 * x)):
        with raises(DtypeError, "x_init is i64[]", "start with floats"):
            solve(f, 1)
    with raises(DtypeError, "x_init['z'] is c128[2]", "real and imaginary part"):
        fnad.root(lambda x: x, {"z": np.ones(2, complex)})


def test_solvers_refuse_unsuitable_arguments_by_name() -> None:
    with raises(
        NonScalarOutputError, "<lambda> (test_implicit.py:", ") returned f64[2], where minimize takes one real element"
    ):
        fnad.minimize(lambda x: x, np.ones(2))
    with raises(ArgumentTypeError, "the first argument of root has to be a function"):
        fnad.root(3.0, 1.0)  # type: ignore[arg-type]
    with raises(ArgumentTypeError, "tol of root is -1"):
        fnad.root(lambda x: x, 1.0, tol=-1)
    with raises(ArgumentTypeError, "max_steps of fixed_point is 0"):
        fnad.fixed_point(lambda x: x, 1.0, max_steps=0)
    with raises(ArgumentTypeError, "x_init is of type str"):
        fnad.root(lambda x: x, "x")


def test_calls_leave_their_arguments_as_they_are() -> None:
    start, b = np.ones(3), np.array([1.0, 4.0, 9.0])
    first, second = (fnad.root(lambda x, b: x * x - b, start, b) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(start, np.ones(3))
    first[0] = 7
    np.testing.assert_array_equal(fnad.root(lambda x, b: x * x - b, start, b), second)
