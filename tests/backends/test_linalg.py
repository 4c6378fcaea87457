"""Linear algebra in native code: NumPy's values, where NumPy's own code computes them to the bit, and its errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad
import fnad.scipy.linalg
from fnad import lapack_threads
from fnad.backends.cpu import blas
from fnad.backends.cpu.executor import NativeExecutor, compile_program, plain_function
from fnad.errors import FactorizationError, OutOfRangeError
from fnad.ir.builder import trace
from fnad.ir.primitive import PRIMITIVES, Library, Primitive, Routine, Sample
from fnad.ir.program import Program
from fnad.ir.types import F64, Aval, aval_of
from fnad.kernel.linalg import LINALG
from fnad.kernel.steps import Chunk
from fnad.ops.arithmetic import add, sub
from fnad.ops.determinant import LARGEST_BY_FORMULA, det, slogdet
from fnad.ops.eigenvalues import eigvals
from fnad.ops.least_squares import qr
from fnad.ops.linalg import cholesky, inv, lu, row_order, solve
from fnad.transforms.interpret import interpret
from tests.together import in_groups, some_of

NATIVE = [p for p in PRIMITIVES.values() if isinstance(p.lower, Library) and p.lower.native and not p.effect]
ROUNDED = {
    **dict.fromkeys(("fft", "rfft", "irfft"), 10),
    **dict.fromkeys(("solve", "inv", "inv_or_nan", "solve_triangular", "cholesky"), 10),
    "qr": 100,
    "qr_r": 100,
    "lu": 10,
    "revealing_lu": 10,
    "lu_by_columns": 10,
    "solve_by_lu": 10,
    "repeated_square": 10,
    "repeated_square_along": 10,
}
"""What is not computed by NumPy's own code, and the rounding error allowed."""


def routine_of(primitive: Primitive, sample: Sample) -> Routine | None:
    assert isinstance(primitive.lower, Library)
    assert primitive.lower.native
    return primitive.lower.native(*(aval_of(np.asarray(operand)) for operand in sample.operands), **sample.params)


def is_computed(primitive: Primitive, sample: Sample) -> bool:
    """True if a routine computes a result that is not empty for the sample's kinds of numbers."""
    operands, routine = [np.asarray(operand) for operand in sample.operands], routine_of(primitive, sample)
    is_large = primitive not in (det, slogdet) or operands[0].shape[-1] > LARGEST_BY_FORMULA
    return is_large and routine is not None and all(x.size and x.dtype.kind in routine.kinds for x in operands)


def by_kind(primitive: Primitive) -> dict[str, list[tuple[int, Sample]]]:
    """The samples that a routine computes, with their numbers, by the dtypes of their operands."""
    found: dict[str, list[tuple[int, Sample]]] = {}
    for n, sample in enumerate(primitive.samples()):
        if is_computed(primitive, sample):
            kind = "".join(np.asarray(operand).dtype.char for operand in sample.operands)
            found.setdefault(kind, []).append((n, sample))
    return found


SAMPLES = {
    f"{primitive.name}-{n}": (primitive, sample)
    for primitive in NATIVE
    for kind, samples in by_kind(primitive).items()
    for n, sample in some_of(samples, f"{primitive.name} {kind}", 2)
}


def program_of(primitive: Primitive, sample: Sample) -> Program:
    avals = [aval_of(np.asarray(operand)) for operand in sample.operands]

    def call(*operands: Any) -> list[Any]:
        found = primitive(*operands, **sample.params)
        return list(found) if isinstance(found, tuple) else [found]

    return trace(call, *avals, name=primitive.name)


def is_native(run: NativeExecutor) -> bool:
    return all(isinstance(step, Chunk) for step in run.plan.steps)


def test_all_routines_are_there_and_used() -> None:
    routines = (routine_of(primitive, sample) for primitive in NATIVE for sample in primitive.samples())
    used = {routine.name for routine in routines if routine and not routine.name.startswith("fourier_")}
    assert used == LINALG.keys()


@in_groups(("primitive", "sample"), SAMPLES.values(), ids=[*SAMPLES])
def test_the_values_are_those_of_numpy(primitive: Primitive, sample: Sample) -> None:
    program, operands = program_of(primitive, sample), [np.asarray(operand) for operand in sample.operands]
    run = compile_program(program)
    assert is_native(run)
    for found, expected in zip(run(operands), interpret(program, operands), strict=True):
        assert found.dtype == expected.dtype
        is_single = found.dtype.char in "fF"  # NumPy computes it in double precision
        if (primitive.name in ROUNDED or is_single) and found.dtype.kind in "fc":
            error = max(ROUNDED.get(primitive.name, 0), 100 * is_single) * np.finfo(found.dtype).eps
            np.testing.assert_allclose(found, expected, rtol=error, atol=error * np.max(abs(expected)))
        else:
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("primitive", NATIVE, ids=lambda primitive: primitive.name)
def test_the_printed_kernel_gives_them_in_python(primitive: Primitive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    for sample in primitive.samples():
        operands = [np.asarray(operand) for operand in sample.operands]
        if all(operand.size for operand in operands):
            program = program_of(primitive, sample)
            for found, expected in zip(compile_program(program)(operands), interpret(program, operands), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("in_python", [False, True])
def test_pivots_of_complex_numbers_have_the_largest_sum_of_parts(
    in_python: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_python:
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    a = np.array([[1.0, 2.0], [0.5 + 2.0j, 1.0]])
    program = program_of(lu, Sample((a,)))
    for found, expected in zip(compile_program(program)([a]), interpret(program, [a]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_eigenvalues_in_single_precision_are_those_of_a_matrix_within_its_rounding() -> None:
    a = (np.random.default_rng(0).standard_normal((60, 60)) + 2 * np.eye(60)).astype(np.float32)
    program = program_of(eigvals, Sample((a,)))
    assert not routine_of(eigvals, Sample((a,))).in_double  # type: ignore[reportOptionalMemberAccess]
    (found,), true = compile_program(program)([a]), np.linalg.eigvals(a.astype(np.float64))
    assert found.dtype == np.complex64
    distances = np.abs(found[:, None] - true).min(axis=1)
    assert distances.max() <= 60 * np.finfo(np.float32).eps * np.linalg.norm(a, 2)


FAILING: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "inv": (np.linalg.inv, np.ones((3, 3))),
    "solve": (lambda x: np.linalg.solve(x, np.ones(3)), np.zeros((3, 3))),
    "cholesky": (np.linalg.cholesky, -np.eye(3)),
    "a triangle": (lambda x: fnad.scipy.linalg.solve_triangular(x, x, lower=True), np.zeros((2, 2))),
    "cholesky of the upper triangle": (lambda x: np.linalg.cholesky(x, upper=True), np.zeros((1, 1))),
    "one of a stack": (np.linalg.inv, np.stack([np.eye(2), np.zeros((2, 2)), np.eye(2)])),
    "eigh": (lambda x: np.linalg.eigh(x)[0], np.full((4, 4), np.nan)),
    "svd": (lambda x: np.linalg.svd(x)[1], np.full((4, 4), np.nan)),
    "eig": (lambda x: np.linalg.eig(x)[0], np.diag([1.0, np.inf, 2.0, 3.0])),
    "eig of complex numbers": (np.linalg.eigvals, np.diag([1.0 + 0j, complex(0, np.nan)])),
    "lstsq": (lambda x: np.linalg.lstsq(x, np.eye(4), rcond=None)[0], np.full((4, 4), np.nan)),
    "pinv": (np.linalg.pinv, np.full((4, 4), np.nan)),
    "lu_solve": (lambda x: fnad.scipy.linalg.lu_solve(fnad.scipy.linalg.lu_factor(x), np.ones(3)), np.ones((3, 3))),
    "a pivot": (
        lambda x: fnad.scipy.linalg.lu_solve((x, (3 - np.sum(x)).astype(int) * np.ones(2, int)), x),
        0 * np.eye(2),
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_errors_are_those_of_the_interpreter_and_the_next_call_is_right(name: str) -> None:
    function, operand = FAILING[name]
    texts = []
    for executor in ("interpreter", "compiled"):
        with fnad.config.override(executor=executor):
            jitted = fnad.jit(function)
            with pytest.raises((FactorizationError, OutOfRangeError)) as raised:
                jitted(operand)
            texts.append(str(raised.value))
            good = np.eye(operand.shape[-1]) + np.zeros(operand.shape)
            np.testing.assert_array_equal(jitted(good), function(good))
    assert texts[0] == texts[1]


def test_what_else_is_invalid_is_no_failure() -> None:
    def f(a: Any, x: Any) -> list[Any]:
        before = sub(x, x)
        inverse = inv(a)
        return [before, add(inverse, before), sub(add(x, inverse), x)]

    a, x = 2.0 * np.eye(3), np.full((3, 3), np.inf)
    program = trace(f, Aval(F64, (3, 3)), Aval(F64, (3, 3)), name="f")
    for found, expected in zip(compile_program(program)([a, x]), interpret(program, [a, x]), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_large_matrices_are_native_and_give_back_the_threads_that_they_do_not_take() -> None:
    n = 60
    threads = [library._get() for library in lapack_threads._libraries(lapack_threads._loaded())]
    aval = Aval(F64, (2, n, n))
    run = compile_program(trace(lambda a, b: [solve(a, b), *qr(a, complete=False), *lu(a)], aval, aval, name="f"))
    assert is_native(run)
    a = np.eye(n) + 0.1 * np.random.default_rng(0).random((2, n, n))
    found, q, r, packed, pivots = run([a, a])
    np.testing.assert_array_equal(found, np.linalg.solve(a, a))
    np.testing.assert_allclose(q @ r, a, atol=1e-13)
    rows = np.arange(n)[row_order.evaluate(pivots, size=n)]
    left, right = np.tril(packed, -1) + np.eye(n), np.triu(packed)
    np.testing.assert_allclose(left @ right, np.take_along_axis(a, rows[..., None], 1), atol=1e-13)
    assert [library._get() for library in lapack_threads._libraries(lapack_threads._loaded())] == threads


@pytest.mark.parametrize("dtype", ["d", "F", "D"])
def test_cholesky_factors_are_of_one_triangle_and_zero_in_the_other_one(dtype: str) -> None:
    rng, n = np.random.default_rng(0), 37
    x = rng.standard_normal((2, n, n)) + (1j * rng.standard_normal((2, n, n)) if dtype in "FD" else 0)
    a = (x @ np.conj(np.swapaxes(x, 1, 2)) + np.eye(n)).astype(dtype)
    for upper, other in ((False, np.triu(np.full((n, n), 99.0), 1)), (True, np.tril(np.full((n, n), 99.0), -1))):
        given = (a + other).astype(dtype)
        program = program_of(cholesky, Sample((given,), {"upper": upper}))
        (found,), (expected,) = compile_program(program)([given]), interpret(program, [given])
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found[:, other != 0], 0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=100 * np.finfo(dtype).eps * np.max(abs(expected)))
    assert f"{blas.LETTERS[np.dtype(dtype).str[1:]]}potrf" in fnad.jit(np.linalg.cholesky).lower(a).as_text("llvm")


def filtered(a: Any, q: Any, zs: Any) -> Any:
    """The mean after a Kalman filter of a linear model, all of whose state is measured."""

    def step(state: Any, z: Any) -> Any:
        mean, cov = state
        mean, cov = a @ mean, a @ cov @ a.T + q
        gain = np.linalg.solve(cov + np.eye(len(a)), cov).T
        return (mean + gain @ (z - mean), cov - gain @ cov), np.linalg.slogdet(cov)[1]

    (mean, cov), logs = fnad.scan(step, (np.zeros(len(a)), np.eye(len(a))), zs)
    return np.sum(mean) + np.sum(np.linalg.inv(cov)) + np.sum(logs)


@pytest.mark.slow
def test_a_filter_is_native_and_so_is_its_gradient() -> None:
    rng = np.random.default_rng(0)
    a, q, zs = np.eye(3) + 0.1 * rng.normal(size=(3, 3)), 0.1 * np.eye(3), rng.normal(size=(7, 3))
    direction = rng.normal(size=a.shape)
    steps = [1e-5, -1e-5]
    with fnad.config.override(executor="interpreter"):
        plus, minus = (filtered(a + h * direction, q, zs) for h in steps)
    with fnad.config.override(executor="compiled"):
        gradient = fnad.jit(fnad.grad(filtered))(a, q, zs)
    np.testing.assert_allclose(np.sum(gradient * direction), (plus - minus) / 2e-5, rtol=1e-7)


def by_square_roots(a: Any, q: Any, zs: Any) -> Any:
    """The log likelihood of measurements of all states, of which factors of the covariances are computed, by QR."""
    n = len(a)

    def step(state: Any, z: Any) -> Any:
        mean, factor = state
        mean = a @ mean
        factor = np.linalg.qr(np.vstack([factor @ a.T, np.linalg.cholesky(q).T]), "r")
        joint = np.linalg.qr(np.block([[np.eye(n), np.zeros((n, n))], [factor, factor]]), "r")
        spread, gain, factor = joint[:n, :n], joint[:n, n:], joint[n:, n:]
        seen = fnad.scipy.linalg.solve_triangular(spread, z - mean, trans="T")
        log = -0.5 * seen @ seen - np.sum(np.log(np.abs(np.diag(spread))))
        return (mean + gain.T @ seen, factor), log

    return np.sum(fnad.scan(step, (np.zeros(n), np.eye(n)), zs)[1])


def by_covariances(a: Any, q: Any, zs: Any) -> Any:
    """The same by covariances and LU."""
    n = len(a)

    def step(state: Any, z: Any) -> Any:
        mean, cov = state
        mean, cov = a @ mean, a @ cov @ a.T + q
        packed = fnad.scipy.linalg.lu_factor(cov + np.eye(n))
        seen = z - mean
        gain = fnad.scipy.linalg.lu_solve(packed, cov).T
        log = -0.5 * (seen @ fnad.scipy.linalg.lu_solve(packed, seen) + np.sum(np.log(np.abs(np.diag(packed[0])))))
        return (mean + gain @ seen, cov - gain @ cov), log

    return np.sum(fnad.scan(step, (np.zeros(n), np.eye(n)), zs)[1])


@pytest.mark.slow
def test_filters_by_qr_and_lu_agree_and_so_do_their_gradients() -> None:
    rng = np.random.default_rng(0)
    a, q, zs = np.eye(4) + 0.1 * rng.normal(size=(4, 4)), 0.1 * np.eye(4), rng.normal(size=(5, 4))
    with fnad.config.override(executor="interpreter"):
        expected = fnad.value_and_grad(by_covariances)(a, q, zs)
    for found, truth in zip(fnad.jit(fnad.value_and_grad(by_square_roots))(a, q, zs), expected, strict=True):
        np.testing.assert_allclose(found, truth, rtol=1e-10)


def each_function(x: Any) -> Any:
    """A number from every function of matrices that is not one call of NumPy's code, none of which is its phase."""
    u = x[:, :2]
    q, r = np.linalg.qr(x)
    packed, pivots = fnad.scipy.linalg.lu_factor(x)
    values, vectors = np.linalg.eig(x @ x.T)
    return [
        np.sum(np.abs(q @ x) ** 2) + np.sum(np.abs(np.linalg.qr(u, "complete")[0] @ x) ** 2) + np.sum(np.abs(r)),
        np.sum(np.abs(packed) ** 2) + np.sum(pivots),
        np.sum(np.abs(values) ** 3) + np.sum(np.abs(vectors @ np.diag(values)) ** 2),
        np.sum(np.abs(np.linalg.pinv(u)) ** 2) + np.sum(np.abs(np.linalg.lstsq(u, x, rcond=None)[0]) ** 2),
        np.sum(fnad.scipy.linalg.expm(x[:2, :2])) + np.sum(np.linalg.eigvals(x).imag ** 2),
        np.sum(np.abs(np.linalg.det(x)) ** 2) + np.abs(np.linalg.det(x[:3, :3]) + np.linalg.det(x[:1, :1])) ** 2,
    ]


@pytest.mark.slow
def test_a_loop_with_each_of_them_is_native_and_so_is_its_gradient() -> None:
    def total(xs: Any) -> Any:
        return np.sum(fnad.scan(lambda _, x: (_, np.stack(each_function(x))), 0.0, xs)[1])

    xs = np.random.default_rng(0).normal(size=(2, 4, 4))
    program = fnad.make_program(fnad.value_and_grad(total))(xs).program
    run = compile_program(program)
    assert is_native(run)
    for found, truth in zip(run([xs]), interpret(program, [xs]), strict=True):
        np.testing.assert_allclose(found, truth, rtol=1e-10)


def test_exponentials_are_exact_where_they_are_far_from_normal_or_large() -> None:
    t, e = 1e3, 1e-3
    matrices = [
        [[0.0, 0.0], [0.0, 0.0]],
        [[1.0, 1e6], [0.0, -1.0]],
        [[0.0, -t], [t, 0.0]],
        [[-1e3, 0.0], [0.0, 1.0]],
        [[e, 1e-8], [0.0, e]],
        [[np.nan, 0.0], [0.0, 1.0]],
    ]
    expected = [
        np.eye(2),
        [[np.e, 1e6 * np.sinh(1.0)], [0.0, 1 / np.e]],
        [[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]],
        [[0.0, 0.0], [0.0, np.e]],
        [[np.exp(e), 1e-8 * np.exp(e)], [0.0, np.exp(e)]],
        np.full((2, 2), np.nan),
    ]
    found = fnad.jit(fnad.scipy.linalg.expm)(np.array(matrices))
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


def test_a_kernel_is_a_function_of_python() -> None:
    program = trace(lambda a: [inv(a)], Aval(F64, (2, 2)), name="f")
    (kernel,) = compile_program(program).plan.kernels.values()
    out, status = np.zeros(4), np.zeros(2, np.int64)
    plain_function(kernel)(np.array([[2.0, 0.0], [0.0, 4.0]]), out, status)
    np.testing.assert_array_equal(out, [0.5, 0.0, 0.0, 0.25])
