"""Derivatives of complex functions along their cuts, on either side, which the sign of a zero tells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad import jit, jvp
from tests.together import in_groups

FUNCTIONS = (np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh, np.sqrt, np.log)
STEP = 1e-5


def moved(z: complex, t: float) -> np.complex128:
    """Return a point of the same side of a cut, which is on an axis."""
    along_real_axis = abs(z.real) > 0
    return np.complex128(complex(z.real + t, z.imag) if along_real_axis else complex(z.real, z.imag + t))


@pytest.mark.slow
@in_groups("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("x", [-3.0, -0.5, 0.5, 3.0])
@pytest.mark.parametrize("is_real", [True, False])
def test_derivative_along_an_axis(f: Any, zero: float, x: float, is_real: bool) -> None:
    z = complex(x, zero) if is_real else complex(zero, x)
    slope = (f(moved(z, STEP)) - f(moved(z, -STEP))) / (2 * STEP)
    along = lambda z: jvp(f, (z,), (np.complex128(1 if is_real else 1j),))[1]  # noqa: E731
    for found in (along(np.complex128(z)), jit(along)(np.complex128(z))):
        np.testing.assert_allclose(found, slope, rtol=1e-8, atol=1e-8)
