"""numpy.fft on traced values beside NumPy: to the bit, in every dtype, with its errors; and the edge cases."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fnad
import fnad.numpy as fnp
from fnad import grad
from tests.edge_cases.ways import check as check_everywhere
from tests.numpy.against_numpy import check_error, sample, traced
from tests.together import together

DTYPES = ("bool", "i32", "f32", "f64", "c64", "c128")
SHAPES = ((5,), (4, 3), (1,))
NORMS = (None, "backward", "ortho", "forward")
OF_ONE_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
OF_SEVERAL = ("fftn", "ifftn", "rfftn", "irfftn")


def as_numpy(function: Any, x: Any) -> None:
    """Compare a traced function with NumPy, up to rounding, or in being refused."""
    try:
        expected = function(x)
    except (TypeError, ValueError):
        check_error(function, x)
        return
    found, _ = traced(function, x)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    allowed = 8 * np.finfo(expected.dtype).eps
    np.testing.assert_allclose(found, expected, rtol=0, atol=allowed * np.max(abs(expected), initial=0.0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_ONE_AXIS)
def test_transform_along_an_axis(name: str, dtype: str) -> None:
    transform = getattr(np.fft, name)
    for shape in SHAPES:
        x = sample(shape, dtype)
        for n in (None, 0, 1, 3, 4, 7):
            for norm in NORMS:
                as_numpy(partial(transform, n=n, norm=norm), x)
        as_numpy(partial(transform, axis=0), x)
        as_numpy(lambda x: transform(x, None, -1, "ortho"), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_SEVERAL)
def test_transform_along_several_axes(name: str, dtype: str) -> None:
    transform, in_the_plane = getattr(np.fft, name), getattr(np.fft, f"{name[:-1]}2")
    x = sample((2, 3, 4), dtype)
    for norm in NORMS:
        as_numpy(partial(transform, norm=norm), x)
        as_numpy(partial(transform, s=(3, 5), axes=(1, 0), norm=norm), x)
        as_numpy(partial(in_the_plane, norm=norm), x)
    for axes in ((0,), (2, 0), (-1,), (1, 1)):
        as_numpy(partial(transform, axes=axes), x)
    as_numpy(partial(in_the_plane, s=(-1, 2)), x)


def test_order_of_frequencies() -> None:
    x = sample((3, 4), "f64")
    for shift in (np.fft.fftshift, np.fft.ifftshift):
        for axes in (None, 0, -1, (0, 1)):
            as_numpy(partial(shift, axes=axes), x)
    assert fnp.fft.fftfreq is np.fft.fftfreq


def test_lists_of_traced_values() -> None:
    assert grad(lambda t: fnp.fft.fft([t, 2.0 * t]).real.sum())(3.0) == 2


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (np.fft.fft, np.float64(1)),
        (np.fft.fft, np.zeros(0)),
        (np.fft.irfft, np.zeros(1)),
        (partial(np.fft.fft, axis=1), np.ones(3)),
        (partial(np.fft.fft, norm="none"), np.ones(3)),
        (partial(np.fft.fft, n=-1), np.ones(3)),
        (partial(np.fft.fft, n=2.5), np.ones(3)),
        (partial(np.fft.fftn, s=(2, 2), axes=(0,)), np.ones((3, 3))),
        (partial(np.fft.rfftn, axes=()), np.ones((3, 3))),
        (np.fft.fft2, np.ones(3)),
        (np.fft.rfft, np.ones(3, complex)),
    ],
)
def test_error_is_numpys(function: Any, x: Any) -> None:
    check_error(function, x)


# ---- edge cases ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_row_28_power_spectrum(dtype: Any) -> None:
    def power(x: Any) -> Any:
        return np.sum(abs(np.fft.rfft(x) ** 2))

    check_everywhere(power, np.arange(1.0, 5).astype(dtype), value=112, gradient=[12, 20, 20, 28], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_row_28_inverse_of_any_length(n: int) -> None:
    """The inverse of the transform is the identity, and so are its derivatives."""

    def back_and_forth(x: Any) -> Any:
        return np.sum(np.fft.irfft(np.fft.rfft(x), n) ** 3)

    x = sample(n, "f64")
    expected = {"value": np.sum(x**3), "gradient": 3 * x**2, "hessian": np.diag(6 * x)}
    check_everywhere(back_and_forth, x, **expected, rtol=1e-13, atol=1e-15)  # zeros come of sums that cancel


def test_cotangents_of_what_irfft_does_not_read_are_0() -> None:
    z = sample(3, "c128")
    for n, real_elements in ((4, [0, 2]), (5, [0])):
        found = grad(lambda z: np.sum(np.fft.irfft(z, n) * np.arange(n)))(z)  # noqa: B023
        np.testing.assert_array_equal(found[real_elements].imag, 0)


@pytest.mark.parametrize("transform", [np.fft.fft, np.fft.ifft, np.fft.fftn, np.fft.ifft2])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_signs_of_zero_are_numpys(transform: Any, dtype: Any) -> None:
    """The imaginary parts that are 0: a phase is pi or -pi by their sign."""
    with together() as check:
        for shape in [(1, 1), (1, 2), (2, 3), (2, 4), (3, 5)]:
            x = np.random.default_rng(0).uniform(-2, -1, shape).astype(dtype)
            for executor in ("interpreter", "compiled"):
                with check((shape, executor)), fnad.config.override(executor=executor):
                    found, expected = fnad.jit(transform)(x), transform(x)
                    zeros = expected.imag == 0
                    assert_array_equal(np.signbit(found.imag[zeros]), np.signbit(expected.imag[zeros]))
