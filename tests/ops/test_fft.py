"""Fourier transforms are the sums that define them, and their transposes those of their matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad.errors import AxisError, DtypeError, ShapeError
from fnad.ir.types import DTYPES, Aval
from fnad.ops.fft import NORMS, fft, irfft, rfft
from fnad.testing import Run, pullback, pushforward
from tests.edge_cases.derivatives import basis, program_of, value

LENGTHS = (1, 2, 3, 4, 5, 8)
F64, C128 = DTYPES["f64"], DTYPES["c128"]


def random(n: int, dtype: Any) -> Any:
    rng = np.random.default_rng(n)
    x = rng.standard_normal(n)
    return x + 1j * rng.standard_normal(n) if dtype == C128 else x


def matrix(n: int, sign: int) -> Any:
    j = np.arange(n)
    return np.exp(sign * 2j * np.pi * np.outer(j, j) / n)


@pytest.mark.parametrize("n", LENGTHS)
def test_transform_is_its_sum(n: int, run: Run):
    z = random(n, C128)
    for inverse, sign in ((False, -1), (True, 1)):
        for norm, power in {"backward": int(inverse), "ortho": 0.5, "forward": int(not inverse)}.items():
            found = value(run, lambda x: fft(x, axis=0, inverse=inverse, norm=norm), z)  # noqa: B023
            np.testing.assert_allclose(found, matrix(n, sign) @ z / n**power, atol=1e-14)


def jacobian(run: Run, function: Any, x: Any) -> Any:
    """Return the matrix of the real-linear map, one column for each real number in x."""
    program = program_of(function, x)
    units = [unit[0] for unit in basis([x])]
    units += [1j * unit for unit in units] if x.dtype.kind == "c" else []
    return np.array([pushforward(run, program, [x], [unit])[0] for unit in units]).T


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", LENGTHS)
def test_transposes_of_half_transforms(n: int, norm: Any, run: Run):
    """The cotangent pairs as Re Σ ct·dy, so that of an element that is not read is 0."""
    half = n // 2 + 1
    for function, x, out in (
        (lambda x: rfft(x, axis=0, norm=norm), random(n, F64), random(half, C128)),
        (lambda x: irfft(x, n=n, axis=0, norm=norm), random(half, C128), random(n, F64)),
    ):
        columns = jacobian(run, function, x)
        (found,) = pullback(run, program_of(function, x), [x], [out])
        paired = (out @ columns).real
        expected = paired if x.dtype == F64 else paired[:half] - 1j * paired[half:]
        np.testing.assert_allclose(found, expected, atol=1e-14)


def test_what_is_refused():
    with pytest.raises(DtypeError, match="fft does not take i64"):
        fft.infer(Aval(DTYPES["i64"], (3,)), axis=0, inverse=False, norm="backward")
    with pytest.raises(DtypeError, match="rfft does not take c128"):
        rfft.infer(Aval(C128, (3,)), axis=0, norm="backward")
    with pytest.raises(ShapeError, match=r"Invalid number of FFT data points \(0\) specified"):
        rfft.infer(Aval(F64, (0,)), axis=0, norm="backward")
    with pytest.raises(ShapeError, match="irfft to length 4 takes 3 elements along axis 0"):
        irfft.infer(Aval(C128, (2,)), n=4, axis=0, norm="backward")
    with pytest.raises(AxisError):
        rfft.infer(Aval(F64, (3,)), axis=1, norm="backward")


@pytest.mark.parametrize("dtype", ["f4", "c8", "f8", "c16"])
def test_transforms_fill_the_array_of_a_result(dtype: str) -> None:
    """SciPy before 1.18 and from it on has modules of two names for it."""
    x = np.arange(12).reshape(2, 6).astype(dtype)
    out = np.empty((2, 6), np.result_type(dtype, "c8"))
    assert fft.evaluate(x, axis=1, inverse=False, norm="backward", out=out) is out
    np.testing.assert_allclose(out, np.fft.fft(x), rtol=1e-5)
