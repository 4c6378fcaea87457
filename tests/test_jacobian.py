"""`jacfwd`, `jacrev`, `jacobian`, `hessian`: against closed forms and the complex step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fnad
from fnad.api.running.execution import staged
from fnad.errors import (
    ArgumentTypeError,
    AuxiliaryError,
    HolomorphicError,
    NonDifferentiableArgumentError,
    NonScalarOutputError,
)

RNG = np.random.default_rng(0)
X, A = RNG.normal(size=4), RNG.normal(size=(3, 4))
JACOBIANS = [fnad.jacfwd, fnad.jacrev, fnad.jacobian]
each = pytest.mark.parametrize("jacobian", JACOBIANS, ids=lambda f: f.__name__)


@pytest.fixture(autouse=True)
def _interpreted() -> Iterator[None]:
    """Interpret the programs, since hardly any test here is about their native code."""
    with fnad.config.override(executor="interpreter"):
        yield


def complex_step(f: Callable[..., Any], x: Any, h: float = 1e-150) -> Any:
    """The Jacobian of an analytic function."""
    columns = [np.imag(f(x + 1j * h * unit.reshape(x.shape))) / h for unit in np.eye(x.size)]
    return np.stack(columns, axis=-1).reshape(*np.shape(columns[0]), *x.shape)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: np.exp(np.sin(x)),
    "linear": lambda x: A @ x,
    "a layer": lambda x: np.tanh(A @ x) * np.sum(x),
    "matrix": lambda x: np.outer(x, np.cos(x)),
    "scalar": lambda x: np.sum(x**3) * x[0],
    "indexing": lambda x: x[::-1][:2] * x[1:3],
    "cumulative": lambda x: np.cumsum(x * x),
    "solve": lambda x: np.linalg.solve(np.outer(x, x) + np.eye(4), x),
}


@each
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobians_are_those_of_complex_steps(jacobian: Any, name: str) -> None:
    f = FUNCTIONS[name]
    expected = complex_step(f, X)
    for found in (jacobian(f)(X), fnad.jit(jacobian(f))(X)):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "scalar"])
def test_hessians_are_differences_of_gradients(name: str) -> None:
    f = lambda x: np.sum(FUNCTIONS[name](x) ** 2)  # noqa: E731
    gradient = fnad.grad(f)
    expected = np.stack([(gradient(X + 1e-5 * unit) - gradient(X - 1e-5 * unit)) / 2e-5 for unit in np.eye(4)])
    for found in (fnad.hessian(f)(X), fnad.jit(fnad.hessian(f))(X)):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
        np.testing.assert_allclose(found, found.T, rtol=1e-10, atol=1e-12)


def test_a_hessian_that_is_known() -> None:
    def rosenbrock(x: Any) -> Any:
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    expected = np.diag(np.r_[1200 * X[:-1] ** 2 - 400 * X[1:] + 2, 0.0]) + np.diag(np.r_[0.0, [200.0] * 3])
    expected += np.diag(-400 * X[:-1], 1) + np.diag(-400 * X[:-1], -1)
    np.testing.assert_allclose(fnad.hessian(rosenbrock)(X), expected, rtol=1e-12, atol=1e-12)


def repeated(x: Any) -> Any:
    """A loop that takes the same steps for all directions, which are a stack."""
    return fnad.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, np.sin(s[1]) * s[1][::-1]), (0, x))[1]


@each
def test_loops_of_unknown_length(jacobian: Any) -> None:
    def in_numpy(x: Any) -> Any:
        for _ in range(3):
            x = np.sin(x) * x[::-1]
        return x

    np.testing.assert_allclose(jacobian(repeated)(X), complex_step(in_numpy, X), rtol=1e-12)
    program = fnad.make_program(fnad.jacfwd(repeated))(X).program
    names = [equation.primitive.name for equation in program.equations]
    assert "while_loop" in names
    assert "scan" not in names  # no loop for each direction


@each
def test_pytrees_and_leaves_that_are_constant(jacobian: Any) -> None:
    p = {"w": X, "n": 3, "b": 2.0}
    first, second = jacobian(lambda p: (p["w"] * p["b"] * p["n"], {"square": p["b"] ** 2, "count": p["n"]}))(p)
    np.testing.assert_allclose(first["w"], 6.0 * np.eye(4))
    np.testing.assert_allclose(first["b"], 3 * X)
    np.testing.assert_array_equal(first["n"], np.zeros(4, np.int64))
    assert second["square"]["b"] == 4.0
    assert type(second["square"]["b"]) is np.float64
    np.testing.assert_array_equal(second["square"]["w"], np.zeros(4))
    np.testing.assert_array_equal(second["count"]["w"], np.zeros(4))


@each
def test_jacobians_in_several_arguments_pass_over_the_others(jacobian: Any) -> None:
    f = lambda x, label, y, *, scale=1.0: scale * x * y if label == "product" else x  # noqa: E731
    in_y = jacobian(f, argnums=2)(X, "product", 2 * X, scale=3.0)
    np.testing.assert_allclose(in_y, np.diag(3 * X))
    in_x, again = jacobian(f, argnums=(0, -1))(X, "product", 2 * X)
    np.testing.assert_allclose(in_x, np.diag(2 * X))
    np.testing.assert_allclose(again, np.diag(X))


@each
def test_what_is_returned_beside(jacobian: Any) -> None:
    found, beside = jacobian(lambda x: (x**2, {"sum": np.sum(x), "n": 4}), has_aux=True)(X)
    np.testing.assert_allclose(found, np.diag(2 * X))
    assert beside["sum"] == np.sum(X)
    assert beside["n"] == 4


def test_what_a_hessian_returns_beside() -> None:
    found, beside = fnad.hessian(lambda x: (np.sum(x**3), x[0]), has_aux=True)(X)
    np.testing.assert_allclose(found, np.diag(6 * X))
    assert beside == X[0]


def test_hessians_of_several_arguments() -> None:
    (xx, xy), (yx, yy) = fnad.hessian(lambda x, y: np.sum(x**2 * y), argnums=(0, 1))(X, 2 * X)
    np.testing.assert_allclose(xx, np.diag(4 * X))
    np.testing.assert_allclose(xy, np.diag(2 * X))
    np.testing.assert_allclose(yx, np.diag(2 * X))
    np.testing.assert_allclose(yy, np.zeros((4, 4)))


@each
def test_numbers_and_arrays_without_elements(jacobian: Any) -> None:
    slope = jacobian(lambda x: x**2)(3.0)
    assert slope == 6.0
    assert type(slope) is np.float64
    assert jacobian(lambda x: x[:0])(X).shape == (0, 4)
    assert jacobian(lambda x: np.sum(x) + np.ones(3))(np.zeros((0, 2))).shape == (3, 0, 2)
    assert jacobian(lambda x: x)(X.astype(np.float32)).dtype == np.float32


@each
def test_within_other_transforms(jacobian: Any) -> None:
    f = FUNCTIONS["a layer"]
    stack = np.stack([X, 2 * X])
    np.testing.assert_allclose(fnad.vmap(jacobian(f))(stack), np.stack([jacobian(f)(x) for x in stack]), rtol=1e-12)
    inner = lambda x: np.sum(np.sin(jacobian(f)(x)))  # noqa: E731
    expected = [(inner(X + 1e-5 * unit) - inner(X - 1e-5 * unit)) / 2e-5 for unit in np.eye(4)]
    np.testing.assert_allclose(fnad.grad(inner)(X), expected, rtol=1e-7)
    np.testing.assert_allclose(jacobian(jacobian(f))(X), fnad.jacfwd(fnad.jacrev(f))(X), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("matrix", "count"), [(A, 3), (A.T, 3), (A[:, :3], 3)])
def test_the_mode_with_fewer_directions(matrix: Any, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    def counting(f: Any, **axes: Any) -> Any:
        return lambda *stacks: (counts.append(len(stacks[0])), fnad.vmap(f, **axes)(*stacks))[1]

    monkeypatch.setattr("fnad.api.functions.jacobian.vmap", counting)
    np.testing.assert_allclose(fnad.jacobian(lambda x: matrix @ x)(np.ones(matrix.shape[1])), matrix)
    assert set(counts) == {count}


@each
def test_outputs_without_derivative(jacobian: Any) -> None:
    np.testing.assert_array_equal(jacobian(np.argmax)(X), np.zeros(4))
    assert jacobian(lambda x: ())(X) == ()
    assert jacobian(lambda x: None)(X) is None


@each
def test_errors_name_the_user_s_function(jacobian: Any) -> None:
    def doubled(x: Any) -> Any:
        return x * 2

    with pytest.raises(AuxiliaryError, match=r"doubled returned f64\[4\].*\n  at test_jacobian.py:\d+ in doubled"):
        jacobian(doubled, has_aux=True)(X)
    with pytest.raises(NonScalarOutputError, match=r"sin returned f64\[4\].*\n  at test_jacobian.py"):
        fnad.hessian(np.sin)(X)


def test_jacobians_refuse_wrong_arguments_by_name() -> None:
    with pytest.raises(ArgumentTypeError, match=r"holomorphic of jacfwd is of type numpy\.ndarray"):
        fnad.jacfwd(np.sin, 0, False, X)
    with pytest.raises(NonDifferentiableArgumentError, match="which has no derivative"):
        fnad.jacrev(lambda x: x * 1.0)(np.arange(3))
    with pytest.raises(NonScalarOutputError):
        fnad.hessian(lambda x: x)(X)
    with pytest.raises(ArgumentTypeError, match="first argument of jacobian has to be a function"):
        fnad.jacobian(3)


def test_the_function_runs_once_in_reverse_mode() -> None:
    runs: list[None] = []

    def f(x: Any) -> Any:
        runs.append(None)
        return A @ x

    np.testing.assert_array_equal(fnad.jacobian(f)(X), A)
    assert len(runs) == 1


@each
def test_complex_results_of_real_arguments(jacobian: Any) -> None:
    """In reverse mode a cotangent gives the real part alone, so each of these takes two."""
    x = np.array([0.3, 0.7])
    phase, scale = np.exp(1j * x[0]), x[1]
    f = lambda x: {"z": np.exp(1j * x[:1]) * x[1], "norm": x[0] ** 2}  # noqa: E731
    for found in (jacobian(f)(x), fnad.jit(jacobian(f))(x)):
        np.testing.assert_allclose(found["z"], [[1j * phase * scale, phase]], rtol=1e-14)
        np.testing.assert_allclose(found["norm"], [2 * x[0], 0.0])
        assert found["z"].dtype == np.complex128
        assert found["norm"].dtype == np.float64
    single = jacobian(lambda x: np.exp(1j * x[:1]) * x[1])(x.astype(np.float32))
    assert single.dtype == np.complex64
    np.testing.assert_allclose(single, [[1j * phase * scale, phase]], rtol=1e-6)


# ---- complex arguments -----------------------------------------------------------------------------------------------

Z, M = RNG.normal(size=3) + 1j * RNG.normal(size=3), RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))


def analytic(z: Any) -> Any:
    return np.exp(M @ z) * z[::-1] + z[0] ** 2


def analytic_slope() -> Any:
    growth = np.exp(M @ Z)
    slope = (growth * Z[::-1])[:, None] * M + np.diag(growth)[:, ::-1]
    slope[:, 0] += 2 * Z[0]
    return slope


@each
def test_jacobians_of_holomorphic_functions_are_complex(jacobian: Any) -> None:
    found = jacobian(analytic, holomorphic=True)(Z)
    np.testing.assert_allclose(found, analytic_slope(), rtol=1e-12)
    both = jacobian(lambda p: {"a": analytic(p[0]) * p[1], "b": p[1]}, holomorphic=True)((Z, 2j))
    np.testing.assert_allclose(both["a"][0], 2j * analytic_slope(), rtol=1e-12)
    np.testing.assert_allclose(both["a"][1], analytic(Z), rtol=1e-12)
    assert (both["b"][1], type(both["b"][1])) == (1, np.complex128)
    single, beside = jacobian(lambda z, n: (z**n, n), holomorphic=True, has_aux=True)(np.complex64(1 + 1j), 3)
    assert (single.dtype, beside) == (np.complex64, 3)
    np.testing.assert_allclose(single, 6j, rtol=1e-6)
    narrow = jacobian(lambda z: analytic(z)[:2], holomorphic=True)(Z)
    np.testing.assert_allclose(narrow, analytic_slope()[:2], rtol=1e-12)


def test_hessians_of_holomorphic_functions() -> None:
    f = lambda z: np.sum(z**3) + z[0] * z[1] ** 2  # noqa: E731
    expected = np.diag(6 * Z) + np.array([[0, 2 * Z[1], 0], [2 * Z[1], 2 * Z[0], 0], [0, 0, 0]])
    np.testing.assert_allclose(fnad.hessian(f, holomorphic=True)(Z), expected, rtol=1e-12)
    found, beside = fnad.hessian(lambda z: (f(z)[None], z), has_aux=True, holomorphic=True)(Z)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_array_equal(beside, Z)
    with pytest.raises(NonScalarOutputError, match="hessian takes one complex element"):
        fnad.hessian(lambda z: z, holomorphic=True)(Z)


@pytest.mark.parametrize("jacobian", [fnad.jacrev, fnad.jacobian])
def test_real_outputs_of_complex_arguments(jacobian: Any) -> None:
    """The gradient of each, df/dx - i df/dy, whichever mode would be cheaper."""
    f = lambda z, x: np.concatenate([np.abs(M @ z) ** 2 * x, np.real(z), np.imag(z)])  # noqa: E731
    in_z, in_x = jacobian(f, argnums=(0, 1))(Z, 2.0)
    expected = np.concatenate([4 * np.conj(M @ Z)[:, None] * M, np.eye(3), -1j * np.eye(3)])
    np.testing.assert_allclose(in_z, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(in_x, np.r_[np.abs(M @ Z) ** 2, np.zeros(6)], rtol=1e-12)
    assert (in_z.dtype, in_x.dtype) == (np.complex128, np.float64)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fnad.jacfwd(lambda x: x)(Z), r"jacfwd of <lambda> is asked for in an argument c128\[3\]"),
        (lambda: fnad.hessian(lambda x: np.sum(np.abs(x)))(Z), r"hessian of <lambda> is asked for in an argument c128"),
        (lambda: fnad.jacrev(lambda x: x)(Z), r"in complex arguments, of an output c128\[3\]"),
        (lambda: fnad.jacobian(np.sin, holomorphic=True)(X), r"holomorphic function, in an argument f64\[4\]"),
        (lambda: fnad.jacfwd(np.abs, holomorphic=True)(Z), r"holomorphic function, of an output f64\[3\]"),
        (lambda: fnad.jacrev(np.real, holomorphic=True)(Z), r"holomorphic function, of an output f64\[3\]"),
    ],
)
def test_what_is_not_holomorphic(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(HolomorphicError, match=words) as raised:
        call()
    assert "at test_jacobian.py" in str(raised.value)


# ---- what HIPS autograd tests of its Jacobians and Hessians (its test_jacobian.py, test_wrappers.py) -----------------


def test_a_jacobian_is_the_gradient_of_one_element() -> None:
    f = lambda x: np.sum(np.sin(x), axis=1, keepdims=True)  # noqa: E731
    row = X[None]
    assert fnad.jacobian(f)(row).shape == (1, 1, 1, 4)
    np.testing.assert_array_equal(fnad.jacobian(f)(row)[0, 0], fnad.grad(f)(row))
    np.testing.assert_allclose(fnad.grad(f)(row), np.cos(row), rtol=1e-15)


@each
def test_from_a_scalar_to_a_vector(jacobian: Any) -> None:
    found = jacobian(lambda x: np.array([x, x**2, x**3]))(0.7)
    np.testing.assert_allclose(found, [1.0, 1.4, 3 * 0.7**2], rtol=1e-15)


@each
def test_a_jacobian_has_the_gradients_as_rows(jacobian: Any) -> None:
    functions: list[Callable[[Any], Any]] = [
        lambda x: np.sum(x**3),
        lambda x: np.prod(np.sin(x) + np.sin(x)),
        lambda x: fnad.grad(lambda y: np.exp(y) * np.tanh(x[0]))(x[1]),
    ]
    found = jacobian(lambda x: np.array([f(x) for f in functions]))(X)
    np.testing.assert_allclose(found, np.vstack([fnad.grad(f)(X) for f in functions]), rtol=1e-14)
    in_numpy = lambda x: np.array([np.sum(x**3), np.prod(2 * np.sin(x)), np.exp(x[1]) * np.tanh(x[0])])  # noqa: E731
    np.testing.assert_allclose(found, complex_step(in_numpy, X), rtol=1e-13)


@each
def test_jacobians_of_jacobians(jacobian: Any) -> None:
    x = X[:2]
    f = lambda x: np.sin(np.outer(x, x)) + np.cos(np.dot(x, x))  # noqa: E731
    assert jacobian(f)(x).shape == (2, 2, 2)
    once = jacobian(f, holomorphic=True)
    twice = jacobian(once, holomorphic=True)
    np.testing.assert_allclose(jacobian(jacobian(f))(x), complex_step(once, x), rtol=1e-13)
    third = jacobian(jacobian(jacobian(f)))(x)
    assert third.shape == (2, 2, 2, 2, 2)
    np.testing.assert_allclose(third, complex_step(twice, x), rtol=1e-12)
    for real, analytic in ((jacobian(f), once), (jacobian(jacobian(f)), twice)):
        gradient = fnad.grad(lambda x, g=real: np.sum(np.sin(g(x))))(x)
        np.testing.assert_allclose(gradient, complex_step(lambda x, g=analytic: np.sum(np.sin(g(x))), x), rtol=1e-12)


def test_the_hessian_of_a_quadratic_form() -> None:
    h = RNG.normal(size=(4, 4))
    np.testing.assert_allclose(fnad.hessian(lambda x: np.dot(np.dot(x, h), x))(X), h + h.T, rtol=1e-14)


@pytest.mark.parametrize("shape", [(5,), (5, 4), (5, 4, 3)])
def test_products_with_hessians_and_jacobians(shape: tuple[int, ...]) -> None:
    a, v = RNG.normal(size=shape), RNG.normal(size=shape)
    hessian = fnad.hessian(lambda a: np.sum(np.sin(a)))(a)
    np.testing.assert_allclose(hessian.reshape(a.size, a.size), np.diag(-np.sin(a).ravel()), rtol=1e-15, atol=0)
    product = fnad.hvp(lambda a: np.sum(np.sin(a)), (a,), (v,))[0]
    np.testing.assert_allclose(np.tensordot(hessian, v, axes=v.ndim), product, rtol=1e-14)
    rolled = lambda a: np.roll(np.sin(a), 1)  # noqa: E731
    jacobian = fnad.jacobian(rolled)(a)  # not symmetric
    np.testing.assert_allclose(np.tensordot(v, jacobian, axes=v.ndim), fnad.vjp(rolled, a)[1](v)[0], rtol=1e-14)
    np.testing.assert_allclose(fnad.vjp(rolled, a)[1](v)[0], np.roll(v, -1) * np.cos(a), rtol=1e-14)
    np.testing.assert_allclose(np.tensordot(jacobian, v, axes=v.ndim), fnad.jvp(rolled, (a,), (v,))[1], rtol=1e-14)


@pytest.mark.parametrize("f", [lambda x: A @ x, lambda x: np.tanh(A @ x)], ids=["linear", "tanh"])
@pytest.mark.parametrize(
    "g", [lambda y: np.dot(y, y) / 2, lambda y: np.sum(2 * y**2 + y**4)], ids=["squares", "fourth"]
)
def test_generalized_gauss_newton_products(f: Any, g: Any) -> None:
    """Jᵀ H J v, from a pushforward, the Hessian times a vector, and a pullback."""
    v = RNG.normal(size=4)
    y, push = fnad.linearize(f, X)
    product = fnad.vjp(f, X)[1](fnad.hvp(g, (y,), (push(v),))[0])[0]
    jacobian = fnad.jacobian(f)(X)
    np.testing.assert_allclose(product, jacobian.T @ fnad.hessian(g)(f(X)) @ jacobian @ v, rtol=1e-13)


@pytest.mark.parametrize("transform", [fnad.jacfwd, fnad.jacrev])
def test_the_directions_are_not_multiplied_with_a_matrix(transform: Any) -> None:
    """So an infinity stays where it is: the product with an identity would have nan beside it."""
    w = np.array([[1.0, np.inf, -2.0], [0.5, 3.0, 4.0]])
    jitted = fnad.jit(transform(lambda x: w @ x))
    with fnad.config.override(executor="compiled"):
        np.testing.assert_array_equal(jitted(np.ones(3)), w)
    assert "dot_general" not in jitted.lower(np.ones(3)).as_text("simplified")


START, TABLE = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 1.0, 4.0, 9.0])


def filled(u: Any, x: Any) -> Any:
    """Return a vector after writes into it."""
    u[1:] += TABLE[x[:3].real.astype(int) % 4] * x[1:]
    u[0] = x[0] ** 2
    return u * x


def from_global(x: Any) -> Any:
    return filled(START.astype(x.dtype), x)


def from_default(x: Any, start: Any = START) -> Any:
    return filled(start * x.dtype.type(1), x)


def from_closure(start: Any) -> Callable[[Any], Any]:
    return lambda x: filled(np.array(start, x.dtype), x)


FILLED = {
    "global": from_global,
    "default": from_default,
    "closure": from_closure(START.copy()),
    "new": lambda x: filled(np.zeros(4, x.dtype) + START, x),
}


@each
@pytest.mark.parametrize("name", FILLED)
def test_functions_that_fill_a_copy_of_an_array_from_outside(jacobian: Any, name: str) -> None:
    f = FILLED[name]
    expected = complex_step(f, X)
    for found in (
        jacobian(f)(X),
        fnad.jit(jacobian(f))(X),
        fnad.jit(lambda s: jacobian(f)(X * s))(1.0),
        fnad.jit(lambda x: fnad.cond(x[0] < 9.0, jacobian(f), lambda x: np.outer(x, x), x))(X),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(START, [1.0, 2.0, 3.0, 4.0])


@each
def test_arguments_that_are_not_differentiated_are_written_to(jacobian: Any) -> None:
    def f(x: Any, table: dict[str, Any], *, more: Any) -> Any:
        table["u"][1] = 5.0
        table["u"][0] = x[0] ** 2
        more *= x[2]
        return x * table["u"] * more

    u, more = np.arange(4.0), np.ones(4)
    expected = complex_step(lambda x: x * np.array([x[0] ** 2, 5.0, 2.0, 3.0]) * x[2], X)
    for found in (jacobian(f)(X, {"u": u}, more=more), fnad.jit(jacobian(f))(X, {"u": u}, more=more)):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    hessian = fnad.hessian(lambda *args, **kwargs: np.sum(f(*args, **kwargs)))(X, {"u": u}, more=more)
    assert hessian[0, 0] == pytest.approx(6.0 * X[0] * X[2])
    np.testing.assert_array_equal(u, np.arange(4.0))
    np.testing.assert_array_equal(more, np.ones(4))


# ---- small programs of numbers -----------------------------------------------------------------------------------


def rates(u: Any) -> Any:
    return np.stack([10.0 * (u[1] - u[0]), u[0] * (28.0 - u[2]) - u[1], u[0] * u[1] - 2.5 * u[2]])


def test_zeros_and_ones_of_directions_vanish_from_programs_of_numbers() -> None:
    program = fnad.export(fnad.jacobian(rates), np.ones(3)).program
    computed = [equation.primitive.name for equation in staged(program).simplified.equations]
    assert sorted(name for name in computed if name in {"mul", "add", "sub", "neg", "directions"}) == ["neg", "sub"]
    x, y, z = u = np.array([1.0, 2.0, 3.0])
    expected = np.array([[-10.0, 10.0, 0.0], [28.0 - z, -1.0, -x], [y, x, -2.5]])
    for jacobian in (fnad.jacfwd(rates), fnad.jit(fnad.jacfwd(rates)), fnad.jacrev(rates)):
        assert_allclose(jacobian(u), expected, rtol=1e-15)
    assert_allclose(fnad.vmap(fnad.jacfwd(rates))(np.stack([u, u])), [expected, expected], rtol=1e-15)


def test_entries_of_numbers_that_do_not_depend_are_zero_beside_infinity() -> None:
    found = fnad.jacfwd(lambda u: np.stack([u[0] * u[1], u[2] ** 2]))(np.array([np.inf, 2.0, np.inf]))
    assert_allclose(found, [[2.0, np.inf, 0.0], [0.0, 0.0, np.inf]])


def mixed(p: dict[str, Any], k: Any, z: Any) -> Any:
    a, (b, c) = p["a"], p["b"]
    clipped = np.maximum(a, 0.1) * np.where(b > 0, b, 2.0 * c)
    return {"m": np.array([[clipped, a**k], [np.sin(z) * b, 0.0 * c]]), "s": np.hypot(a, b) - c, "n": k}


def test_programs_of_numbers_take_trees_and_give_blocks() -> None:
    p, z = {"a": 0.7, "b": np.array([0.3, -1.1])}, 0.4
    found = fnad.jacfwd(mixed, argnums=(0, 2))(p, 3, z)
    at = np.array([0.7, 0.3, -1.1, 0.4])

    def flat(v: Any) -> Any:
        out = mixed({"a": v[0], "b": v[1:3]}, 3, v[3])
        return np.concatenate([out["m"].ravel(), [out["s"]]])

    h = 1e-6
    expected = np.stack([(flat(at + h * e) - flat(at - h * e)) / (2 * h) for e in np.eye(4)], axis=-1)
    assert found["m"][0]["b"].shape == (2, 2, 2)
    assert_allclose(found["m"][0]["a"].ravel(), expected[:4, 0], atol=1e-8)
    assert_allclose(found["m"][0]["b"].reshape(4, 2), expected[:4, 1:3], atol=1e-8)
    assert_allclose(found["m"][1].ravel(), expected[:4, 3], atol=1e-8)
    assert_allclose(found["s"][0]["b"], expected[4, 1:3], atol=1e-8)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_columns_keep_dtypes(dtype: str) -> None:
    u = np.array([0.5, 1.5, -0.5]).astype(dtype)
    found = fnad.jacfwd(rates, holomorphic=dtype == "c16")(u)
    assert found.dtype == u.dtype
    assert_allclose(found, fnad.jacrev(rates, holomorphic=dtype == "c16")(u), rtol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_jacobians_of_random_programs_of_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, steps = int(rng.integers(1, 7)), rng.integers(0, 6, 12)
    places = rng.integers(0, 10**6, (12, 2))

    def f(u: Any) -> Any:
        values = [u[i] for i in range(size)]
        for step, (i, k) in zip(steps, places, strict=True):
            x, y = values[i % len(values)], values[k % len(values)]
            unary = (np.sin(x), np.exp(-x * y), x * y, x - y, x / (2.0 + y * y), np.tanh(x) + 1.0)
            values.append(unary[step])
        return np.stack(values[-3:])

    u = rng.normal(size=size)
    expected = np.stack([f(u + 1e-30j * e).imag / 1e-30 for e in np.eye(size)], axis=-1)
    for jacobian in (fnad.jacfwd(f), fnad.jit(fnad.jacfwd(f)), fnad.jacrev(f)):
        assert_allclose(jacobian(u), expected, rtol=1e-12, atol=1e-14)
    hessian = fnad.hessian(lambda u: np.sum(f(u)))(u)
    gradient = fnad.grad(lambda u: np.sum(f(u)))
    h = 1e-6
    differences = [(gradient(u + h * e) - gradient(u - h * e)) / (2 * h) for e in np.eye(size)]
    assert_allclose(hessian, np.stack(differences, axis=-1), rtol=1e-6, atol=1e-7)


def test_eigenvalues_have_jacobians_along_all_directions_at_once() -> None:
    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    values, vectors = np.linalg.eigh(a)
    found = fnad.jacfwd(np.linalg.eigvalsh)(a)
    assert_allclose(found[:, 0, 0], vectors[0] ** 2, rtol=1e-14)
    assert_allclose(fnad.jacfwd(lambda x: np.linalg.eigvalsh(np.reshape(x, (1, 1))))(values[0]), [1.0])


# ---- programs that compute element by element --------------------------------------------------------------------

GRID = RNG.uniform(0.3, 1.2, 12)


def brusselator(y: Any) -> Any:
    u, v = y[: y.size // 2], y[y.size // 2 :]
    padded = np.concatenate([[1.0], u, [1.0]]), np.concatenate([[3.0], v, [3.0]])
    du, dv = (0.5 * (x[:-2] - 2.0 * x[1:-1] + x[2:]) for x in padded)
    return np.concatenate([1.0 + u * u * v - 4.0 * u + du, 3.0 * u - u * u * v + dv])


def with_boundaries(x: Any) -> Any:
    """Values at the ends that are computed otherwise, by one write each."""
    out = np.zeros(12, x.dtype)
    out[1:-1] = x[2:] * x[:-2] - x[1:-1] ** 3
    out[0], out[-1] = np.exp(x[0] * x[1]), np.sin(x[-1])
    return out


def of_fluxes(x: Any) -> Any:
    """The rows of a diagonal come from two terms, at the ends from one."""
    flux = np.concatenate([np.zeros(1), (x[1:] - x[:-1]) * x[1:] ** 2, np.zeros(1)])
    return flux[1:] - flux[:-1]


LOCAL: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: np.exp(np.sin(x)) * x,
    "brusselator": brusselator,
    "boundaries": with_boundaries,
    "fluxes": of_fluxes,
    "periodic": lambda x: np.roll(x, 1) * x - np.roll(x, -2),
    "reversed": lambda x: x[::-1] * x**2,
    "every second": lambda x: x[::2] * np.cos(x[1::2]),
    "matrix": lambda x: np.tanh(x.reshape(3, 4).T) ** 2,
    "rows": lambda x: x.reshape(3, 4)[1:] - x.reshape(3, 4)[:-1] * 2.0,
    "one element": lambda x: x[3] * np.ones(5),
    "repeated": lambda x: np.repeat(x[:4], 3) * x,
    "constant": lambda x: np.concatenate([np.ones(3), x, x]) / 3.0,
    "chosen": lambda x: np.where(np.arange(12) < 5, x, x**2),
    "more rows": lambda x: np.concatenate([x[1:] * x[:-1], np.sqrt(x), -x]),
}


def primitives_of(f: Any, *args: Any) -> set[str]:
    return {equation.primitive.name for equation in staged(fnad.export(f, *args).program).simplified.equations}


@pytest.mark.parametrize("name", LOCAL)
def test_jacobians_of_elementwise_programs_are_written_by_diagonals(name: str) -> None:
    f = LOCAL[name]
    expected = complex_step(f, GRID)
    for jacobian in (fnad.jacfwd(f), fnad.jacobian(f)):
        assert "directions" not in primitives_of(jacobian, GRID)
        for found in (jacobian(GRID), fnad.jit(jacobian)(GRID)):
            assert found.shape == expected.shape
            assert_allclose(found, expected, rtol=1e-13, atol=1e-15)
    assert_allclose(fnad.vmap(fnad.jacfwd(f))(np.stack([GRID, GRID])), [expected, expected], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", LOCAL)
def test_derivatives_of_jacobians_written_by_diagonals(name: str) -> None:
    f = LOCAL[name]
    found = fnad.jacfwd(fnad.jacfwd(f))(GRID)
    assert_allclose(found, fnad.jacrev(fnad.jacrev(f))(GRID), rtol=1e-12, atol=1e-13)
    slope = fnad.grad(lambda x: np.sum(np.sin(fnad.jacfwd(f)(x))))(GRID)
    assert_allclose(slope, fnad.grad(lambda x: np.sum(np.sin(fnad.jacrev(f)(x))))(GRID), rtol=1e-12, atol=1e-13)


def test_hessians_of_sums_over_neighbours_are_written_by_diagonals() -> None:
    def energy(x: Any) -> Any:
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    assert "directions" not in primitives_of(fnad.hessian(energy), GRID)
    expected = np.diag(np.append(1200.0 * GRID[:-1] ** 2 - 400.0 * GRID[1:] + 2.0, 0.0) + 200.0 * (np.arange(12) > 0))
    expected += np.diag(-400.0 * GRID[:-1], 1) + np.diag(-400.0 * GRID[:-1], -1)
    assert_allclose(fnad.hessian(energy)(GRID), expected, rtol=1e-13)


def test_entries_outside_of_diagonals_are_zero_beside_infinity() -> None:
    x = np.array([1.0, np.inf, 2.0, 3.0, 4.0, 5.0])
    found = fnad.jacfwd(lambda x: x[1:] * x[:-1])(x)
    expected = np.zeros((5, 6))
    expected[range(5), range(5)], expected[range(5), range(1, 6)] = x[1:], x[:-1]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_diagonals_keep_dtypes(dtype: str) -> None:
    x = GRID.astype(dtype)
    holomorphic = dtype == "c16"
    f = lambda x: x[1:] * np.exp(x[:-1])  # noqa: E731
    found = fnad.jacfwd(f, holomorphic=holomorphic)(x)
    assert found.dtype == x.dtype
    assert_allclose(found, fnad.jacrev(f, holomorphic=holomorphic)(x), rtol=1e-6)


def test_diagonals_in_several_arguments_and_trees() -> None:
    def f(p: Any, k: Any) -> Any:
        both = np.concatenate([p["a"], p["b"]])
        return {"s": both * both[::-1], "n": k, "t": p["c"] * p["a"]}

    p = {"a": GRID[:5], "b": GRID[5:9], "c": 0.3}
    found, expected = (j(f, argnums=(0,))(p, 3) for j in (fnad.jacfwd, fnad.jacrev))
    for out in ("s", "t"):
        for name in p:
            assert_allclose(found[out][0][name], expected[out][0][name], rtol=1e-14, err_msg=out + name)


STEPS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: np.roll(a, 1),
    lambda a, b: np.concatenate([a[1:], [0.5]]),
    lambda a, b: a * b,
    lambda a, b: a - 2.0 * b,
    lambda a, b: a / (2.0 + b * b),
    lambda a, b: np.concatenate([a[:3] * 2.0, b[3:]]),
    lambda a, b: np.tanh(a[::-1]),
    lambda a, b: np.concatenate([[0.0], a[:-1] - b[1:]]),
    lambda a, b: np.repeat(a[::3], 3),
]


@pytest.mark.parametrize("seed", range(6))
def test_jacobians_of_random_elementwise_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps, places = rng.integers(0, len(STEPS), 9), rng.integers(0, 10**6, (9, 2))

    def f(x: Any) -> Any:
        values = [x]
        for step, (i, k) in zip(steps, places, strict=True):
            a, b = values[i % len(values)], values[k % len(values)]
            values.append(STEPS[step](a, b))
        return np.concatenate([values[-1], values[-2]])

    expected = complex_step(f, GRID)
    for jacobian in (fnad.jacfwd(f), fnad.jit(fnad.jacfwd(f)), fnad.jacrev(f)):
        assert_allclose(jacobian(GRID), expected, rtol=1e-11, atol=1e-13)
