"""Extrema of complex numbers: NumPy's order, ties, nan; their derivatives at a tie."""

import numpy as np
import pytest
import scipy.special

import fnad
from fnad.errors import DomainError
from tests.numpy.against_numpy import check, check_error

NANS = (complex(np.nan, 1), complex(2, np.nan))


def numbers(seed, shape, dtype):
    """Return complex numbers with many ties, sometimes with nan."""
    rng = np.random.default_rng(seed)
    z = (rng.integers(0, 3, shape) + 1j * rng.integers(0, 3, shape)).astype(dtype)
    return np.where(rng.random(shape) < 0.2, z.dtype.type(NANS[seed % 2]), z) if seed % 3 == 0 else z


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 2)], ids=str)
def test_extrema_of_complex_numbers_are_lexicographic(shape, dtype):
    for seed in range(12):
        z, w = numbers(seed, shape, dtype), numbers(seed + 100, shape, dtype)
        for axis in (None, 0, -1):
            check(lambda z: (np.max(z, axis=axis), np.min(z, axis=axis, keepdims=True)), z)  # noqa: B023
            check(lambda z: (np.argmax(z, axis=axis), np.argmin(z, axis=axis, keepdims=True)), z)  # noqa: B023
            check(lambda z: (np.sort(z, axis=axis), np.nanmax(z, axis=axis)), z)  # noqa: B023
        check(lambda z, w: [f(z, w) for f in (np.maximum, np.minimum, np.fmax, np.fmin)], z, w)
        check(lambda z, w: (np.max(z, where=np.isfinite(w), initial=-1), np.min(z, initial=1 + 1j)), z, w)
    check_error(np.max, np.zeros(0, dtype))
    check_error(lambda z: np.max(z, where=z == z), np.zeros(2, dtype))


def test_a_tie_is_shared():
    z = np.array([1 + 2j, 1 + 1j, 1 + 2j])
    np.testing.assert_array_equal(fnad.grad(lambda z: np.max(z).real)(z), [0.5, 0, 0.5])
    np.testing.assert_array_equal(fnad.grad(lambda z: np.min(z).imag)(z), [0, -1j, 0])
    np.testing.assert_array_equal(fnad.grad(lambda z: np.sum(np.maximum(z, z[::-1])).real)(z), [1, 1, 1])
    one, other = fnad.grad(lambda x, y: np.maximum(x, y).real, (0, 1))(1 + 2j, 1 + 2j)
    assert one == other == 0.5


def test_native_code_agrees():
    z = np.stack([numbers(seed, (5,), "c16") for seed in range(6)])
    for f in (np.max, np.argmin):
        np.testing.assert_array_equal(fnad.jit(lambda z: f(z, axis=1))(z), f(z, axis=1))  # noqa: B023


def test_methods_of_a_ufunc_that_is_entered_late():
    p, q = np.array([0.25, 0.75]), np.array([0.5, 0.25, 0.25])
    check(lambda p, q: (scipy.special.xlogy.outer(p, q), scipy.special.rel_entr.outer(q, p)), p, q)

    def at(p, q):
        y = q * 1
        scipy.special.xlogy.at(y, [0, 0, 2], p[0])
        return y

    check(at, p, q)


def test_weights_that_vanish():
    with pytest.raises(DomainError, match="Weights sum to zero"):
        fnad.value_and_grad(lambda x: np.average(x, weights=[1.0, -1.0]))(np.ones(2))


def test_an_empty_sum_of_negative_powers():
    check(lambda x: [np.linalg.norm(x, p) for p in (-2, -1, -0.5)], np.array([np.inf, np.inf]))
    check(lambda x: [np.linalg.norm(x, p) for p in (-2, -1)], np.array([0.0, 2.0]))
