"""The gamma function and its kin in the complex plane, against mpmath."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

from fnad import jit, jvp
from fnad.ir.primitive import PRIMITIVES

POINTS = (1.3 + 0.4j, 2 - 1j, -3.7 + 0.2j, 0.1 - 25j, -40.5 - 30j, 60 + 3j, -0.2 + 1e-3j, 19.0 + 0j)


@pytest.fixture(autouse=True)
def thirty_digits() -> Generator[None, None, None]:
    with mpmath.workdps(30):
        yield


@pytest.mark.parametrize("order", [1, 2, 5])
@pytest.mark.parametrize("z", POINTS)
def test_complex_polygamma_is_mpmaths(z: complex, order: int) -> None:
    evaluate = PRIMITIVES["complex_polygamma"].evaluate
    found = evaluate(np.array([order]), np.array([z]))[0]
    shift = max(0, int(20 - z.real))  # mpmath's own is slow and inexact left of the axis
    exact = mpmath.polygamma(order, mpmath.mpc(z) + shift) + (-1) ** (order - 1) * mpmath.factorial(
        order
    ) * mpmath.fsum((mpmath.mpc(z) + j) ** -(order + 1) for j in range(shift))
    np.testing.assert_allclose(found, complex(exact), rtol=1e-13)


@pytest.mark.parametrize("name", ["gamma", "loggamma", "rgamma", "psi"])
@pytest.mark.parametrize("z", [1.3 + 0.4j, 2 - 1j, -3.7 + 0.2j])
def test_derivatives_of_complex_gamma_functions_are_mpmaths(name: str, z: complex) -> None:
    f = getattr(scipy.special, name)
    truth: dict[str, Any] = {"gamma": mpmath.gamma, "loggamma": mpmath.loggamma, "rgamma": mpmath.rgamma}
    exact = truth.get(name, mpmath.digamma)
    one = np.complex128(1)
    slope = lambda z: jvp(f, (z,), (one,))[1]  # noqa: E731
    curvature = lambda z: jvp(slope, (z,), (one,))[1]  # noqa: E731
    at = np.complex128(z)
    for order, found in ((1, slope(at)), (1, jit(slope)(at)), (2, curvature(at)), (2, jit(curvature)(at))):
        np.testing.assert_allclose(found, complex(mpmath.diff(exact, mpmath.mpc(z), order)), rtol=1e-12)
