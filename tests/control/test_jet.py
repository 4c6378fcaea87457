"""Taylor mode: the derivatives of every primitive and of control flow are those of nested forward mode."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.control.jet import jet, varying
from fnad.errors import NonDifferentiableArgumentError, TangentError
from fnad.ir.primitive import PRIMITIVES, Primitive, Scalar
from fnad.ir.program import Program
from fnad.ir.types import is_inexact
from fnad.testing import tolerance
from fnad.transforms.differentiation import jvp
from fnad.transforms.interpret import interpret
from tests.catalogue.cases import Case, cases_of, has_derivative
from tests.together import in_groups, some_of

X = np.linspace(0.4, 1.6, 5)

DIFFERENTIABLE = [p for p in PRIMITIVES.values() if any(map(has_derivative, cases_of(p)))]


def nested(program: Program, wrt: list[bool], order: int) -> tuple[Program, list[list[int]]]:
    """Forward mode of forward mode, along one direction; the outputs that are the derivatives of each order."""
    if order == 0:
        return program, [list(range(len(program.outputs)))]
    inner, places = nested(program, wrt, order - 1)
    marks = [*wrt, *[False] * (len(inner.inputs) - len(wrt))]
    pushed = jvp(inner, marks)
    inexact = [i for i, aval in enumerate(inner.out_avals) if is_inexact(aval.dtype)]
    return pushed, [*places, [len(inner.outputs) + inexact.index(i) for i in places[-1] if i in inexact]]


def derivatives_by_nesting(
    program: Program, order: int, wrt: list[bool], arrays: list[Any], speeds: list[Any]
) -> list[list[Any]]:
    pushed, (_, *places) = nested(program, wrt, order)
    results = interpret(pushed, [*arrays, *speeds * order])
    return [[results[i] for i in of_order] for of_order in places]


def derivatives_by_jet(
    program: Program, order: int, wrt: list[bool], arrays: list[Any], speeds: list[Any]
) -> list[list[Any]]:
    rest = iter(speeds)
    given: list[Any] = []
    for array, mark in zip(arrays, wrt, strict=True):
        given += [array, next(rest), *[np.zeros_like(array)] * (order - 1)] if mark else [array]
    results = iter(interpret(jet(program, order, wrt), given))
    curves = [[next(results) for _ in range(order + 1 if v else 1)] for v in varying([program], wrt)]
    outputs = [(c, aval) for c, aval in zip(curves, program.out_avals, strict=True) if is_inexact(aval.dtype)]
    return [
        [c[k] * factorial(k) if len(c) > 1 else np.zeros_like(c[0]) for c, _ in outputs] for k in range(1, order + 1)
    ]


def smooth_cases(primitive: Primitive) -> list[Case]:
    cases = [case for case in cases_of(primitive) if case.sample.smooth and has_derivative(case)]
    return some_of([case for case in cases if all(aval.dtype.char in "dDl?" for aval in case.avals)], primitive.name)


@pytest.mark.slow
@in_groups("primitive", [p for p in DIFFERENTIABLE if smooth_cases(p)], ids=str)
def test_a_primitive_has_the_derivatives_of_nested_forward_mode(primitive: Primitive) -> None:
    """To third order if it works element by element, otherwise to second: nested programs are large."""
    order = 3 if isinstance(primitive.lower, Scalar) else 2
    for case in smooth_cases(primitive):
        rng = np.random.default_rng(0)
        arrays = [np.asarray(x) for x in case.operands]
        wrt = [is_inexact(x.dtype) for x in arrays]
        speeds = [np.asarray(rng.uniform(-1, 1, x.shape).astype(x.dtype)) for x in arrays if is_inexact(x.dtype)]
        found = derivatives_by_jet(case.program(), order, wrt, arrays, speeds)
        expected = derivatives_by_nesting(case.program(), order, wrt, arrays, speeds)
        for of_found, of_expected in zip(found, expected, strict=True):
            for one, other in zip(of_found, of_expected, strict=True):
                scale = np.abs(other).max(initial=1.0)
                allowed = 100 * max(tolerance(x.dtype, 1) for x in arrays)
                np.testing.assert_allclose(one, other, rtol=allowed, atol=allowed * scale, err_msg=str(case))


# ---- functions -------------------------------------------------------------------------------------------------------


def loop_of_python(x: Any) -> Any:
    for _ in range(3):
        x = np.sin(x) * x[::-1]
    return x


def scanned(x: Any) -> Any:
    def step(carry: Any, row: Any) -> tuple[Any, Any]:
        return np.sin(carry) * row, carry**2

    last, rows = fnad.scan(step, 1.5, x)
    return rows * last


def counted(x: Any) -> Any:
    return fnad.while_loop(lambda y: np.sum(y) < 40.0, lambda y: y * 1.5 + x**2, x)


@fnad.custom_jvp
def doubled_slope(x: Any) -> Any:
    return np.sin(x)


doubled_slope.defjvp(lambda primals, tangents: (np.sin(primals[0]), 2.0 * np.cos(primals[0]) * tangents[0]))

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "elementwise": lambda x: np.tanh(x) / (1 + x**2),
    "python loop": loop_of_python,
    "powers": lambda x: x**3 + x**2.5 + x ** x[::-1],
    "matrices": lambda x: np.linalg.inv(np.outer(x, x) + np.eye(5)) @ np.exp(x),
    "eigenvalues": lambda x: np.linalg.eigvalsh(np.outer(x, x**2) + np.outer(x**2, x) + np.diag(np.arange(5.0))),
    "scan": scanned,
    "while_loop": counted,
    "fori_loop": lambda x: fnad.fori_loop(0, 4, lambda i, y: y + np.cos(y * (i + 1)) * x, x),
    "cond": lambda x: fnad.cond(x[0] > 0, lambda x: np.sin(x), lambda x: np.zeros_like(x), x) * x,
    "one branch is constant": lambda x: fnad.cond(x[0] < 0, lambda x: np.sin(x), lambda x: np.ones_like(x), x) * x,
    "checkpoint": fnad.checkpoint(lambda x: np.exp(np.sin(x))),
    "custom_jvp": doubled_slope,
    "root": lambda x: fnad.root(lambda y: y**3 + y - np.exp(x), np.ones(5), tol=1e-14),
    "gradient": fnad.grad(lambda x: np.sum(np.sin(x) ** 3)),
    "integers": lambda x: x * np.argsort(x) + np.floor(x),
    "indices": lambda x: np.where(x > 1.0, x**2, x[np.array([4, 4, 0, 1, 1])] ** 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_the_derivatives_of_nested_jvp(name: str) -> None:
    f, direction = FUNCTIONS[name], np.linspace(-1.0, 2.0, 5)

    def along(g: Any) -> Any:
        return lambda x: fnad.jvp(g, (x,), (direction,))[1]

    value, found = fnad.jet(f, (X,), ([direction, np.zeros(5), np.zeros(5)],))
    np.testing.assert_allclose(value, f(X), rtol=1e-14)
    g = f
    for derivative in found:
        g = along(g)
        expected = g(X)
        np.testing.assert_allclose(derivative, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max(initial=1.0))


def test_a_curve_that_bends() -> None:
    """The derivatives of f(x(t)) for x(t) = t + t², in closed form."""
    _, found = fnad.jet(np.exp, (0.0,), ([1.0, 2.0, 0.0, 0.0],))
    np.testing.assert_allclose(found, [1.0, 3.0, 7.0, 25.0], rtol=1e-14)  # n! times coefficients of exp(t + t²)


def test_arguments_and_results_are_pytrees() -> None:
    def f(tree: Any, y: Any) -> Any:
        return {"product": tree["a"] * y, "constant": np.arange(2), "none": np.ones(2)}

    a, y = np.array([2.0, 3.0]), 4.0
    value, (first, second) = fnad.jet(f, ({"a": a}, y), ([{"a": np.ones(2)}, {"a": np.zeros(2)}], [1.0, 0.0]))
    np.testing.assert_array_equal(value["product"], a * y)
    np.testing.assert_array_equal(first["product"], y + a)
    np.testing.assert_array_equal(second["product"], [2.0, 2.0])
    assert not np.any(first["constant"])
    assert not np.any(second["none"])


def test_it_nests_with_other_transforms() -> None:
    def third(x: Any) -> Any:
        return fnad.jet(lambda x: np.sin(x) * x, (x,), ([1.0, 0.0, 0.0],))[1][2]

    def closed(x: Any) -> Any:
        return -3.0 * np.sin(x) - x * np.cos(x)

    np.testing.assert_allclose(fnad.jit(third)(0.7), closed(0.7), rtol=1e-13)
    np.testing.assert_allclose(fnad.grad(third)(0.7), -4.0 * np.cos(0.7) + 0.7 * np.sin(0.7), rtol=1e-13)
    np.testing.assert_allclose(fnad.vmap(third)(X), closed(X), rtol=1e-13)
    twice = fnad.jet(third, (0.7,), ([1.0],))[1][0]
    np.testing.assert_allclose(twice, -4.0 * np.cos(0.7) + 0.7 * np.sin(0.7), rtol=1e-13)


@pytest.mark.parametrize("f", [np.exp, np.sin, np.tanh, lambda x: np.sqrt(1 + x**2), np.arctan])
def test_operations_grow_with_a_power_of_the_order(f: Any) -> None:
    def count(order: int) -> int:
        zeros = [1.0, *[0.0] * (order - 1)]
        return len(fnad.make_program(lambda x: fnad.jet(f, (x,), (zeros,)))(0.5).program.equations)

    assert count(16) < 9 * count(8)  # with the cube of the order, or less; nested forward mode: 256 times


@pytest.mark.slow
def test_many_operations_one_after_the_other() -> None:
    def f(x: Any) -> Any:
        for _ in range(300):
            x = x + 0.001 * np.sin(x)
        return x

    found = fnad.jet(f, (0.5,), ([1.0, 0.0, 0.0],))[1]
    np.testing.assert_allclose(found[0], fnad.jvp(f, (0.5,), (1.0,))[1], rtol=1e-12)


def test_series_that_do_not_fit_are_refused() -> None:
    with pytest.raises(TangentError, match="the same number of derivatives"):
        fnad.jet(np.multiply, (1.0, 2.0), ([1.0], [1.0, 0.0]))
    with pytest.raises(TangentError, match="the same number of derivatives"):
        fnad.jet(np.sin, (1.0,), (1.0,))
    with pytest.raises(TangentError):
        fnad.jet(np.sin, (X,), ([np.ones(4)],))
    with pytest.raises(NonDifferentiableArgumentError):
        fnad.jet(lambda n: n * 2, (3,), ([1],))


# ---- Laplacians ------------------------------------------------------------------------------------------------------

NETWORK = np.random.default_rng(0)
WEIGHTS = NETWORK.standard_normal((8, 3)), NETWORK.standard_normal(8)


def network(x: Any) -> Any:
    return np.sum(np.tanh(WEIGHTS[0] @ x) * WEIGHTS[1])


def test_a_laplacian_is_the_trace_of_the_hessian() -> None:
    x = np.array([0.3, -0.2, 0.9])
    np.testing.assert_allclose(fnad.laplacian(network)(x), np.trace(fnad.hessian(network)(x)), rtol=1e-12)
    rows = np.stack([x, 2 * x])
    expected = [np.trace(fnad.hessian(network)(row)) for row in rows]
    np.testing.assert_allclose(fnad.jit(fnad.vmap(fnad.laplacian(network)))(rows), expected, rtol=1e-12)


def test_a_laplacian_of_several_results_and_arguments() -> None:
    found = fnad.laplacian(lambda s, x: np.stack([s * np.sum(x**2), x[0] ** 3 * x[1]]), argnums=1)(
        2.0, np.array([1.0, 3.0])
    )
    np.testing.assert_allclose(found, [8.0, 18.0])
    both = fnad.laplacian(lambda a, b: a**2 * b**3, argnums=(0, 1))(2.0, 3.0)
    np.testing.assert_allclose(both, 2 * 27.0 + 4 * 6 * 3.0)


@pytest.mark.parametrize("x", [0.7, np.array(0.7), np.array([0.7]), np.full((1, 1), 0.7)])
def test_a_laplacian_in_one_element_is_its_second_derivative(x: Any) -> None:
    found = fnad.laplacian(lambda tree: np.sin(3 * tree["x"]) + np.sum(tree["none"]))({"x": x, "none": np.zeros(0)})
    assert type(found) is type(np.sin(x))
    np.testing.assert_allclose(found, -9 * np.sin(3 * x), rtol=1e-14)
    np.testing.assert_array_equal(fnad.laplacian(lambda x: x**2 + np.sum(x, initial=0.0))(np.zeros(0)), np.zeros(0))


def test_a_laplacian_in_one_element_shares_what_a_tangent_computes() -> None:
    def diffusion(x: Any) -> Any:
        return fnad.jvp(np.tanh, (x,), (1.0,)), fnad.laplacian(np.tanh)(x)

    assert fnad.jit(fnad.vmap(diffusion)).lower(np.ones(5)).as_text("simplified").count(" tanh(") == 1
