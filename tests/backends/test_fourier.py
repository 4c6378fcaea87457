"""Fourier transforms in native code, beside NumPy's of more digits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.backends.cpu.executor import compile_program
from fnad.backends.cpu.fourier import parts_of
from fnad.backends.cpu.fourier_passes import factors, generated, is_smooth, padded, roots
from fnad.lower.loop_ir import LibraryCall
from fnad.numpy.fourier import hfft
from tests.edge_cases.derivatives import program_of
from tests.together import drawn, some_of

SMOOTH = (1, 2, 3, 4, 5, 8, 12, 13, 30, 64)
BY_ROTATION = (17, 101)
BY_CHIRP = (34, 47)
"""Primes p with p - 1 without large factors, and lengths with large factors that are not."""

SHAPES = ((), ()), ((5,), ()), ((), (5,)), ((11,), ()), ((), (9,)), ((2,), (9,)), ((3,), (3,))
"""Extents before and after the axis: one transform, fewer and more than a vector has, next to each other and not."""

LONG = (2048, 3000, 4096)
"""Lengths of transforms in two parts."""


TRANSFORMS: tuple[Callable[[Any, int], Any], ...] = (
    lambda x, axis: np.fft.fft(x, axis=axis),
    lambda x, axis: np.fft.ifft(x, axis=axis, norm="ortho"),
    lambda x, axis: np.fft.fft(np.real(x), axis=axis),
    lambda x, axis: np.fft.ifft(np.real(x), axis=axis),
    lambda x, axis: np.fft.rfft(np.real(x), axis=axis),
    lambda x, axis: np.fft.irfft(x, 2 * x.shape[axis] - 1, axis=axis),
    lambda x, axis: np.fft.irfft(x, max(2 * x.shape[axis] - 2, 1), axis=axis, norm="forward"),
)


def compiled(function: Any, x: Any) -> Any:
    """Return the result of native code."""
    with fnad.config.override(executor="compiled"):
        return fnad.jit(function)(x)


def random(shape: tuple[int, ...], dtype: str) -> Any:
    rng = np.random.default_rng(shape)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def assert_close(found: Any, expected: Any, dtype: str) -> None:
    assert found.shape == expected.shape
    assert np.max(np.abs(found - expected)) <= 8 * np.finfo(dtype).eps * np.max(np.abs(expected))


LENGTHS = drawn(product(SMOOTH + BY_ROTATION + BY_CHIRP, ("c16", "c8")), lambda case: case[0])


@pytest.mark.parametrize(("n", "dtype"), LENGTHS)
def test_transforms_along_each_axis(n: int, dtype: str):
    """Some transforms along an axis of an array whose shape is drawn, in a precision that is drawn."""
    transforms = some_of(TRANSFORMS, f"{n} transforms", 3)
    shapes = Random(f"{n} {dtype}").sample(SHAPES, len(transforms))
    arrays = [random((*before, n, *after), dtype) for before, after in shapes]

    def every(arrays: list[Any]) -> list[Any]:
        return [f(x, len(before)) for f, x, (before, _) in zip(transforms, arrays, shapes, strict=True)]

    found = compiled(every, arrays)
    for y, expected in zip(found, every([x.astype(np.clongdouble) for x in arrays]), strict=True):
        assert_close(y, expected, dtype)


@pytest.mark.parametrize("n", LONG)
def test_transforms_in_two_parts(n: int):
    x = random((2, n), "c16")
    assert parts_of(n, 1)
    for function in (np.fft.fft, np.fft.ifft):
        assert_close(compiled(function, x), function(x.astype(np.clongdouble)), "c16")


@pytest.mark.parametrize(("n", "dtype"), [(4096, "c16"), (4394, "c8"), (30000, "c8")])
def test_long_rows_of_real_numbers(n: int, dtype: str):
    """The pairs of 4,394 numbers are 13**3, which are not transformed in two parts."""

    transforms: list[Callable[[Any], Any]] = [
        lambda z: np.fft.rfft(np.real(z), norm="ortho"),
        lambda z: np.fft.fft(np.real(z)),
        lambda z: np.fft.ifft(np.real(z)),
        lambda z: np.fft.irfft(z[:, : n // 2 + 1], n),
        lambda z: np.fft.irfft(z[:, : n // 2 + 1], n, norm="forward"),
    ]
    pair = [group[0] for group in (some_of(transforms[:3], f"{n} forward"), some_of(transforms[3:], f"{n} back"))]

    def every(z: Any) -> list[Any]:
        return [f(z) for f in pair]

    z = random((2, n), dtype)
    for y, expected in zip(compiled(every, z), every(z.astype(np.clongdouble)), strict=True):
        assert_close(y, expected, dtype)


@pytest.mark.parametrize("n", [6, 7, 12, 34, 4096])
def test_real_numbers_have_real_ends(n: int):
    """The phases of these elements are 0 or π."""
    x, z = random((n,), "c16").real, random((n // 2 + 1,), "c16")
    changed = z + 1j * np.eye(n // 2 + 1)[0]
    run = fnad.jit(lambda x, z: (np.fft.fft(x), np.fft.rfft(x), np.fft.irfft(z, n)))
    with fnad.config.override(executor="compiled"):
        *spectra, one = run(x, z)
        other = run(x, changed)[-1]
    for y in spectra:
        for index in (0, n // 2)[: 1 + (n % 2 == 0)]:
            assert y[index].imag == 0
            assert not np.signbit(y[index].imag)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("axis", [0, 1])
def test_transforms_of_a_stack_are_apart(axis: int):
    x = random((9, 9), "c16")
    others = np.moveaxis(x, 1 - axis, 0)
    others[4], others[5] = np.nan, 1e300
    found = np.moveaxis(compiled(lambda x: np.fft.fft(x, axis=axis), x), 1 - axis, 0)
    for n in (0, 1, 2, 3, 6, 7, 8):
        assert_close(found[n], np.fft.fft(others[n]), "c16")


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 12, 1000, 1024, 4095])
def test_roots_are_correctly_rounded(n: int):
    angles = (
        2 * np.pi * np.arange(n, dtype=np.longdouble) / n
        + 2 * np.longdouble("1.2246467991473531772e-16") * np.arange(n) / n
    )
    np.testing.assert_allclose(roots(n).real, np.cos(angles), rtol=0, atol=1.2e-16)
    np.testing.assert_allclose(roots(n).imag, -np.sin(angles), rtol=0, atol=1.2e-16)


def test_numbers_of_the_methods():
    for n in range(1, 300):
        assert np.prod(factors(n)) == n
        assert padded(n) >= 2 * n - 1
        assert is_smooth(padded(n))
    for p in (3, 5, 17, 101, 197):
        assert sorted(generated(p).tolist()) == list(range(1, p))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_half_spectra_of_real_numbers_are_native(dtype: str):
    x = random((9,), "c16").real.astype(dtype)
    program = program_of(lambda x: hfft(x, None, -1, None), x)
    assert not any(isinstance(step, LibraryCall) for step in compile_program(program).plan.steps)
    assert_close(compiled(np.fft.hfft, x), np.fft.hfft(x.astype(np.longdouble)), dtype)
