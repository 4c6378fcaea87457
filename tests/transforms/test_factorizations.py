"""Systems that share a matrix: one factorization in native code, with the values that NumPy gives one by one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import fnad
from fnad.backends.cpu.executor import compile_program
from fnad.errors import FactorizationError
from fnad.ir.builder import trace
from fnad.ir.program import Program
from fnad.ir.types import aval_of
from fnad.ir.walk import all_equations
from fnad.ops.determinant import slogdet
from fnad.ops.eigenvalues import eigh, eigvalsh, svd, svdvals
from fnad.ops.least_squares import qr
from fnad.ops.linalg import inv, solve
from fnad.ops.matrix import are_short, transposed
from fnad.transforms.factorizations import factored_once
from fnad.transforms.interpret import interpret
from tests.together import some_of

FUNCTIONS: dict[str, tuple[Callable[..., list[Any]], int]] = {
    "one system": (lambda a, b: [solve(a, b)], 0),
    "two systems": (lambda a, b: [solve(a, b), solve(a, a)], 1),
    "a system and the transposed": (lambda a, b: [solve(a, b), solve(transposed(a), b)], 1),
    "transposed twice": (lambda a, b: [solve(transposed(a), b), solve(transposed(transposed(a)), b)], 1),
    "a determinant": (lambda a, b: [*slogdet(a)], 0),
    "a determinant and a system": (lambda a, b: [*slogdet(a), solve(a, b)], 1),
    "the transposed determinant and an inverse": (lambda a, b: [*slogdet(transposed(a)), inv(a)], 1),
    "an inverse of the transposed": (lambda a, b: [inv(transposed(a)), solve(a, b)], 1),
    "two matrices": (lambda a, b: [solve(a, b), solve(solve(a, a), b)], 1),
}


SHAPES, COLUMNS = ((7, 7), (1, 1), (2, 5, 5)), (1, 3)


def program_of(function: Callable[..., list[Any]], *operands: Any) -> Program:
    return trace(function, *[aval_of(operand) for operand in operands])


def factorizations(program: Program) -> int:
    return sum(equation.primitive.name == "lu_by_columns" for equation in all_equations(program))


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_shared_matrices_are_factored_once(name: str, dtype: str) -> None:
    """In native code of one shape, which is drawn."""
    compiled = some_of([*product(SHAPES, COLUMNS)], f"{name} {dtype}")
    function, count = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    tolerance = 2e-5 if np.dtype(dtype).char in "fF" else 1e-12
    for shape in SHAPES:
        a = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype[0] == "c" else 0)
        for columns in COLUMNS:
            operands = [a.astype(dtype), rng.standard_normal((*shape[:-1], columns)).astype(dtype)]
            program = program_of(function, *operands)
            shared = factored_once(program)
            is_short = are_short(1, shape[-1]) and dtype[0] == "f"
            assert factorizations(shared) == (0 if is_short else count)
            expected = interpret(program, operands)
            ways = [interpret(shared, operands)]
            if (shape, columns) in compiled:
                ways.append(compile_program(program)(operands))
            for found in ways:
                for x, y in zip(found, expected, strict=True):
                    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * np.abs(y).max())


@pytest.mark.parametrize("is_lower", [True, False])
@pytest.mark.parametrize("shape", [(5, 5), (3, 4, 4)])
def test_a_positive_system_and_its_gradient_share_a_cholesky_factor(shape: tuple[int, ...], is_lower: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    a, b, w = x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1]), rng.standard_normal(shape), rng.standard_normal(shape)

    def total(a: Any, b: Any) -> Any:
        return np.sum(scipy.linalg.solve(a, b, assume_a="pos", lower=is_lower) * w)

    both = fnad.value_and_grad(total, (0, 1))
    program = factored_once(fnad.make_program(both)(a, b).program)
    assert [e.primitive.name for e in all_equations(program)].count("cholesky") == 1
    value, (a_bar, b_bar) = fnad.jit(both).lower(a, b).compile()(a, b)
    inverse = np.linalg.inv(a)
    x, expected = inverse @ b, inverse @ w
    np.testing.assert_allclose(value, np.sum(x * w), rtol=1e-9)
    np.testing.assert_allclose(b_bar, expected, rtol=1e-9)
    whole = -expected @ np.swapaxes(x, -1, -2)
    whole = whole + np.swapaxes(whole, -1, -2) - whole * np.eye(shape[-1])
    np.testing.assert_allclose(a_bar, np.tril(whole) if is_lower else np.triu(whole), rtol=1e-9, atol=1e-12)


VALUES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "svdvals": (lambda a: svdvals(a), lambda a: svd(a, full=False)),
    "svdvals beside all vectors": (lambda a: svdvals(a), lambda a: svd(a, full=True)),
    "eigvalsh": (lambda a: eigvalsh(a, uplo="L"), lambda a: eigh(a, uplo="L")),
    "eigvalsh of the other triangle": (lambda a: eigvalsh(a, uplo="U"), lambda a: eigh(a, uplo="L")),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_values_are_those_of_a_decomposition_with_vectors(name: str, dtype: str) -> None:
    values, whole = VALUES[name]
    a = np.random.default_rng(0).standard_normal((2, 4, 4)).astype(dtype)
    program = program_of(lambda a: [values(a), *whole(a)], a)
    shared = factored_once(program)
    assert len(shared.equations) == (2 if "other" in name else 1)
    for found in (interpret(shared, [a]), compile_program(program)([a])):
        expected = interpret(program, [a])[0]
        np.testing.assert_allclose(found[0], expected, atol=1e-5 if dtype == "f4" else 1e-13)
    alone = program_of(lambda a: [values(a)], a)
    assert factored_once(alone) is alone


@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_a_triangle_alone_is_computed_without_its_basis(shape: tuple[int, ...], dtype: str) -> None:
    a = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    program = program_of(lambda a: [qr(a, complete=False)[1]], a)
    shared = factored_once(program)
    assert [equation.primitive.name for equation in shared.equations] == ["qr_r"]
    for found in (interpret(shared, [a]), compile_program(program)([a])):
        np.testing.assert_allclose(found[0], np.linalg.qr(a, "r"), atol=1e-5 if dtype == "f4" else 1e-13)
    whole = program_of(lambda a: [*qr(a, complete=False)], a)
    assert factored_once(whole) is whole


def test_a_gradient_factors_once_and_agrees_with_complex_steps() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((4, 4)) + 2 * np.eye(4), rng.standard_normal(4)

    def total(a: Any, b: Any) -> Any:
        return np.sum(np.sin(np.linalg.solve(a, b))) + np.linalg.slogdet(a)[1]

    run = fnad.jit(fnad.grad(total))
    run(a, b)
    found = run(a, b)
    for i, j in np.ndindex(4, 4):
        step = np.zeros((4, 4), complex)
        step[i, j] = 1e-30j
        moved = a + step
        expected = np.sum(np.sin(np.linalg.solve(moved, b))) + np.log(np.linalg.det(moved))
        np.testing.assert_allclose(found[i, j], expected.imag / 1e-30, rtol=1e-11)


def test_a_loop_factors_once_a_step() -> None:
    def step(x: Any, a: Any) -> Any:
        return np.linalg.solve(a, x) + np.linalg.solve(a.T, x), None

    rng = np.random.default_rng(2)
    stack, start = rng.standard_normal((6, 3, 3)) + 2 * np.eye(3), rng.standard_normal(3)
    run = fnad.jit(lambda x, stack: fnad.scan(step, x, stack)[0])
    run(start, stack)
    x = start
    for a in stack:
        x = np.linalg.solve(a, x) + np.linalg.solve(a.T, x)
    np.testing.assert_allclose(run(start, stack), x, rtol=1e-12)


def test_a_singular_matrix_is_an_error_of_the_system() -> None:
    singular, b = np.ones((2, 2)), np.ones((2, 1))
    run = compile_program(program_of(lambda a, b: [solve(a, b), solve(transposed(a), b)], singular, b))
    with pytest.raises(FactorizationError, match="Singular matrix"):
        run([singular, b])
    np.testing.assert_array_equal(run([np.eye(2), b])[0], b)
    both = compile_program(program_of(lambda a, b: [*slogdet(a), inv(a)], singular, b))
    with pytest.raises(FactorizationError, match="Singular matrix"):
        both([singular, b])
