"""`try` statements that handle what a running program raises: each call takes Python's way, with its derivative."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import fnad
from fnad import errors

ERRORS = (np.linalg.LinAlgError, KeyError)
B = np.array([1.0, 2.0])


def factor(a: Any) -> Any:
    return np.linalg.cholesky(a)


def by_jitter(a: Any) -> Any:
    try:
        lower = np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        lower = np.linalg.cholesky(a + 6.0 * np.eye(2))
    return np.sum(np.log(np.diag(lower)))


def by_more_and_more_jitter(a: Any) -> Any:
    for jitter in (0.0, 1e-8, 1e-1, 6.0):
        try:
            lower = np.linalg.cholesky(a + jitter * np.eye(2))
            break
        except np.linalg.LinAlgError:
            continue
    else:
        raise ValueError
    return np.sum(np.log(np.diag(lower))) * (1 + jitter)


def by_jitter_until_it_works(a: Any) -> Any:
    jitter, tries = 0.0, 0
    while True:
        try:
            return factor(a + jitter * np.eye(2)).sum() * (tries + 1)
        except np.linalg.LinAlgError:
            tries += 1
            jitter = 0.01 * 2.0**tries


def in_a_called_function(a: Any) -> Any:
    try:
        return factor(a).sum()
    except ERRORS:
        return a.sum() ** 2


def suppressed(a: Any) -> Any:
    lower = np.eye(2)
    with suppress(np.linalg.LinAlgError):
        lower = factor(a)
    return (lower * a).sum()


def in_a_context(a: Any) -> Any:
    @contextmanager
    def attempt() -> Iterator[None]:
        try:
            yield
        except ValueError:
            met.append(1.0)

    met = [a.sum()]
    with attempt():
        met[0] = met[0] * factor(a).sum()
    return sum(met)


def in_a_transform(a: Any) -> Any:
    try:
        return fnad.jit(lambda a: factor(a).sum())(a)
    except Exception:  # noqa: BLE001
        return a.sum()


def in_each_step(a: Any) -> Any:
    s = 0.0
    for j in range(12):
        try:
            s = 0.9 * s + np.log(np.diag(factor(a + 0.4 * j * np.eye(2)))).sum()
        except np.linalg.LinAlgError:
            s = s * 1.5 + a.sum()
        else:
            s = s * 1.1
        finally:
            s = s + 1
    return s


def around_a_loop(a: Any) -> Any:
    lower, j = np.eye(2), 0
    try:
        for j in range(12):
            lower = factor(a - 0.1 * j * np.eye(2))
    except np.linalg.LinAlgError:
        return lower.sum() * j
    return lower.sum()


def by_an_outer_statement(a: Any) -> Any:
    try:
        try:
            return np.linalg.inv(a).sum()
        except KeyError:
            return a.sum()
    except ValueError:
        return 2 * a.sum()


MATRICES: list[Callable[..., Any]] = [
    *(by_jitter, by_more_and_more_jitter, by_jitter_until_it_works, in_a_called_function, suppressed, in_a_context),
    *(in_a_transform, in_each_step, around_a_loop, by_an_outer_statement),
]


def matrices() -> Iterator[Any]:
    rng = np.random.default_rng(1)
    for shift in (3.0, 0.0, 3.0, -1.0, 1.0, 0.5):
        x = rng.normal(size=(2, 2))
        yield x + x.T + shift * np.eye(2)


@pytest.mark.parametrize("f", MATRICES, ids=lambda f: f.__name__)
def test_each_matrix_takes_its_own_way(f: Callable[..., Any]) -> None:
    plain = f if f is not in_a_transform else in_a_called_function_or_sum
    both, values = fnad.jit(fnad.value_and_grad(f)), fnad.jit(f)
    for a in matrices():
        expected = plain(a)
        value, slope = both(a)
        assert value == pytest.approx(expected, rel=1e-12)
        assert values(a) == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(fnad.grad(f)(a), slope, rtol=1e-10)
        for d in (np.eye(2), np.ones((2, 2)), np.array([[1.0, -0.5], [-0.5, 0.0]])):
            difference = (plain(a + 1e-6 * d) - plain(a - 1e-6 * d)) / 2e-6
            assert np.sum(slope * d) == pytest.approx(difference, rel=1e-5, abs=1e-6)
    assert len(values.paths()) < 6


def in_a_called_function_or_sum(a: Any) -> Any:
    try:
        return factor(a).sum()
    except np.linalg.LinAlgError:
        return a.sum()


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "cholesky": np.linalg.cholesky,
    "scipy.cholesky": lambda a: scipy.linalg.cholesky(a, lower=True),
    "cho_factor": lambda a: np.tril(scipy.linalg.cho_factor(a, lower=True)[0]),
    "inv": np.linalg.inv,
    "solve": lambda a: np.linalg.solve(a, B),
    "scipy.solve": lambda a: scipy.linalg.solve(a, B),
    "solve, positive": lambda a: scipy.linalg.solve(a, B, assume_a="pos"),
    "solve_triangular": lambda a: scipy.linalg.solve_triangular(a, B, lower=True),
    "scipy.inv": scipy.linalg.inv,
    "scipy.det": scipy.linalg.det,
    "scipy.eigh": lambda a: scipy.linalg.eigh(a)[0],
    "scipy.svd": lambda a: scipy.linalg.svd(a)[1],
    "solve_banded": lambda a: scipy.linalg.solve_banded((0, 0), np.diag(a)[None], B),
    "matrix_power": lambda a: np.linalg.matrix_power(a, -1),
    "eigvals": lambda a: np.linalg.eigvals(a).real,
    "an index": lambda a: B[a[0, 0].astype(int)],
    "a traced index": lambda a: a[0][a[0, 0].astype(int)],
    "indices": lambda a: a[:, 0][np.array([0, 1]) * a[0, 0].astype(int)],
    "math": lambda a: math.log(a[0, 0] - 1),
}


@pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning")
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_that_fail_are_decided(name: str) -> None:
    def attempted(a: Any) -> Any:
        try:
            return np.sum(OPERATIONS[name](a))
        except (np.linalg.LinAlgError, IndexError, ValueError):
            return a.sum() * 100

    values = fnad.jit(attempted)
    given = np.stack([np.eye(2), np.ones((2, 2)), np.zeros((2, 2)), 7 * np.eye(2)])
    given = np.concatenate([given, [[[1.0, 2.0], [2.0, 1.0]], [[np.nan, 0], [0, 1]]]])
    takes_nan = "ind" not in name
    for a in given if takes_nan else given[:-1]:
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(values(a), attempted(a), rtol=1e-12)


SILENT: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "lu_solve": (lambda a: scipy.linalg.lu_solve(scipy.linalg.lu_factor(a), B), np.ones((2, 2))),
    "cho_solve": (lambda a: scipy.linalg.cho_solve((a, True), B), np.zeros((2, 2))),
    "sqrtm": (scipy.linalg.sqrtm, np.diag([1.0, -1.0])),
    "logm": (scipy.linalg.logm, np.diag([1.0, -1.0])),
}


@pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SILENT)
def test_an_error_that_scipy_does_not_raise_is_handled_by_no_clause(name: str) -> None:
    f, a = SILENT[name]

    def attempted(a: Any) -> Any:
        try:
            return f(a)
        except Exception:  # noqa: BLE001
            return a * 100

    assert np.shape(attempted(a)) == np.shape(f(a))
    for _ in range(3):
        with pytest.raises((errors.FactorizationError, errors.DomainError)):
            fnad.jit(attempted)(a)


def quotient(x: Any, y: Any) -> Any:
    try:
        return x / y
    except ZeroDivisionError:
        return 7.0 * x


def remainders(x: Any, y: Any) -> Any:
    s = x
    for i in range(4):
        try:
            s = s + divmod(x, y - i)[1] + x // (y - i) + x % (y - i)
        except (ArithmeticError, KeyError):
            s = s * 2
    return s


def power(x: Any, y: Any) -> Any:
    try:
        return x * y**-2
    except Exception as error:  # noqa: BLE001
        return x * len(str(error))


def of_an_array(x: Any, y: Any) -> Any:
    try:
        return 1.0 / np.array([x, y])[1]
    except ZeroDivisionError:
        return 7.0


@pytest.mark.parametrize("f", [quotient, remainders, power, of_an_array], ids=lambda f: f.__name__)
def test_python_numbers_are_not_divided_by_zero(f: Callable[..., Any]) -> None:
    values, both = fnad.jit(f), fnad.jit(fnad.value_and_grad(f))
    for y in (2.0, 0.0, 3.0, 1.0, 0.0, -1.0):
        for x in (1.0, -2.0):
            with np.errstate(all="ignore"):
                assert values(x, y) == pytest.approx(f(x, y), rel=1e-12)
                assert both(x, y)[0] == pytest.approx(f(x, y), rel=1e-12)


def test_no_statement_takes_no_guard() -> None:
    def plain(a: Any) -> Any:
        try:
            return factor(a).sum()
        except KeyError:
            return a.sum()

    for f in (lambda a: factor(a).sum(), plain):
        values = fnad.jit(f)
        values(np.eye(2))
        assert "fails" not in str(fnad.make_program(f)(np.eye(2)))
        with pytest.raises(np.linalg.LinAlgError):
            values(-np.eye(2))
        assert len(values.paths()) == 1


@pytest.mark.slow
def test_rows_take_their_own_ways() -> None:
    rows = np.stack([*matrices()])
    for f in (in_each_step, by_jitter, by_more_and_more_jitter, around_a_loop):
        values = fnad.jit(fnad.vmap(f))
        np.testing.assert_allclose(values(rows), list(map(f, rows)))
        np.testing.assert_allclose(values(rows[::-1]), list(map(f, rows[::-1])))
        np.testing.assert_allclose(fnad.vmap(f)(rows), list(map(f, rows)))


def filtered(y: Any, q: Any) -> Any:
    s, p = 0.0, 1.0
    for v in y:
        p = p + q
        gain = p * np.linalg.inv(np.array([[p + 0.5]]))[0, 0]
        s, p = s + gain * (v - s), p - gain * p
    return s


@pytest.mark.slow
def test_a_long_loop_is_one_loop() -> None:
    def attempted(y: Any, q: Any) -> Any:
        try:
            return filtered(y, q)
        except np.linalg.LinAlgError:
            return -1.0 * q

    values = fnad.jit(fnad.value_and_grad(attempted, 1))
    y = np.random.default_rng(0).normal(size=200)
    for q in (0.1, 0.2, 0.3):
        expected = fnad.value_and_grad(filtered, 1)(y, q)
        np.testing.assert_allclose(values(y, q), expected, rtol=1e-9)
    assert values(y, -1.5)[0] == 1.5
    np.testing.assert_allclose(values(y, 0.4), fnad.value_and_grad(filtered, 1)(y, 0.4), rtol=1e-9)
    assert len(values.paths()) <= 3


def inverted(x: Any) -> Any:
    try:
        return 1.0 / (x - 2.0)
    except ZeroDivisionError:
        return 2.0 * x


def rooted(x: Any) -> Any:
    with suppress(ValueError):
        return math.sqrt(x - 2.0)
    return 2.0 * x


@pytest.mark.parametrize("step", [inverted, rooted])
def test_a_step_of_a_loop_in_which_nothing_decides(step: Any) -> None:
    loops: list[Any] = [
        lambda x: fnad.fori_loop(0, 1, lambda i, y: step(y), x),
        lambda x: fnad.scan(lambda y, _: (step(y), None), x, length=1)[0],
        lambda x: fnad.while_loop(lambda y: y < 3.0, step, x),
    ]
    for loop in loops:
        for call in (loop, fnad.jit(loop), fnad.grad(loop)):
            with pytest.raises(errors.TracerEscapeError, match=r"(?s)test_attempts.*fnad\.cond or np\.where"):
                call(1.0)
    np.testing.assert_allclose(fnad.jit(lambda x: [step(x) for _ in range(2)][1])(1.0), step(1.0))
