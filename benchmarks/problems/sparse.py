"""Sparse Jacobians: the residual of a tridiagonal system of a million unknowns, and of a bundle adjustment.

CasADi's derivative is a program of its own virtual machine on the same nonzeros. What is compared is their sum.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

UNKNOWNS = 10**6
CAMERAS, POINTS, OBSERVATIONS = 49, 7776, 31843


def tridiagonal(exp: Any, u: Any) -> Any:
    """Return the residual of Bratu's equation on a line."""
    return u[:-2] - 2 * u[1:-1] + u[2:] + 1e-3 * exp(u[1:-1])


def rotated(r: Any, p: Any) -> Any:
    """Return points rotated by the vectors r, by Rodrigues' formula."""
    angle = np.sqrt(np.sum(r * r, axis=1, keepdims=True))
    axis, c, s = r / angle, np.cos(angle), np.sin(angle)
    return p * c + np.cross(axis, p) * s + axis * np.sum(axis * p, axis=1, keepdims=True) * (1 - c)


def reprojection(parameters: Any, camera: Any, point: Any, seen: Any) -> Any:
    """Return the errors of the points as the cameras see them: 2 for each observation, and one for its weight."""
    ends = CAMERAS * 11, CAMERAS * 11 + POINTS * 3
    c = parameters[: ends[0]].reshape(-1, 11)[camera]
    x = parameters[ends[0] : ends[1]].reshape(-1, 3)[point]
    weights = parameters[ends[1] :]
    p = rotated(c[:, :3], x - c[:, 3:6])
    p = p[:, :2] / p[:, 2:]
    r2 = np.sum(p * p, axis=1, keepdims=True)
    p = p * (1 + c[:, 9:10] * r2 + c[:, 10:] * r2**2) * c[:, 6:7] + c[:, 7:9]
    return np.concatenate([((p - seen) * weights[:, None]).ravel(), 1 - weights**2])


def total(jacobian: Any) -> Any:
    """Return the sum of the nonzeros."""
    return jacobian.data.sum()


def cases() -> Iterator[Case]:
    u = np.linspace(0.0, 1.0, UNKNOWNS)
    yield Case("tridiagonal, 1e6 unknowns", [_of_line(u), _of_line_by_casadi(u)], tolerance=1e-9, rounds=11)
    rng = np.random.default_rng(0)
    camera, point = rng.integers(0, CAMERAS, OBSERVATIONS), rng.integers(0, POINTS, OBSERVATIONS)
    numbers = 1.0 + 0.1 * rng.standard_normal(CAMERAS * 11 + POINTS * 3)
    given = np.concatenate([numbers, np.ones(OBSERVATIONS)]), camera, point, rng.standard_normal((OBSERVATIONS, 2))
    yield Case("bundle adjustment, 32k observations", [_of_cameras(given)], rounds=11)


def _of_line(u: Any) -> Call:
    def with_fnad(fnad: Any) -> Thunk:
        jacobian = fnad.sparse_jacobian(lambda u: tridiagonal(np.exp, u))
        return lambda: total(jacobian(u))

    return Call("fnad.sparse_jacobian", "fnad", with_fnad)


def _of_line_by_casadi(u: Any) -> Call:
    def with_casadi(casadi: Any) -> Thunk:
        symbol = casadi.MX.sym("u", UNKNOWNS)
        jacobian = casadi.jacobian(tridiagonal(casadi.exp, symbol), symbol)
        run = casadi.Function("jacobian", [symbol], [jacobian, casadi.sum1(casadi.sum2(jacobian))])
        return lambda: float(run(u)[1])

    return Call("CasADi", "casadi", with_casadi)


def _of_cameras(given: Any) -> Call:
    def with_fnad(fnad: Any) -> Thunk:
        jacobian = fnad.sparse_jacobian(reprojection)
        return lambda: total(jacobian(*given))

    return Call("fnad.sparse_jacobian", "fnad", with_fnad)
