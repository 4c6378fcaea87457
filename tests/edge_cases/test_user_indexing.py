"""Row 45: random indices of all kinds, read and written to, against NumPy; the gradient against differences."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fnad import config, errors, value_and_grad

Function = Callable[[Any], Any]


def random_slice(rng: random.Random, n: int) -> slice:
    bounds = [None, *range(-n - 2, n + 3)]
    return slice(rng.choice(bounds), rng.choice(bounds), rng.choice([None, 1, 2, 3, -1, -2]))


def random_index(rng: random.Random, shape: tuple[int, ...]) -> Any:
    """Return a tuple of slices, integers, None, `...`, arrays of integers and of bools that fits most often."""
    common = rng.choice([(2,), (3,), (2, 2), (1,), ()])
    entries: list[Any] = []
    axis = 0
    while axis < len(shape) and rng.random() < 0.85:
        n = shape[axis]
        kind = rng.choice(["slice", "slice", "int", "none", "ellipsis", "array", "array", "list", "mask"])
        if kind == "none":
            entries.append(None)
            continue
        if kind == "ellipsis":
            if not any(entry is Ellipsis for entry in entries):
                entries.append(Ellipsis)
                axis += rng.randrange(2)
            continue
        axis += 1
        if kind == "mask":
            entries.append(np.array([rng.random() < 0.5 for _ in range(n)], bool))
        elif kind == "slice" or n == 0:
            entries.append(random_slice(rng, n))
        elif kind == "int":
            entries.append(rng.randrange(-n, n))
        else:
            array = np.array([rng.randrange(-n, n) for _ in range(int(np.prod(common)))], int).reshape(common)
            entries.append(array if kind == "array" else array.tolist())
    return entries[0] if len(entries) == 1 and rng.random() < 0.5 else tuple(entries)


def uses(index: Any, shape: tuple[int, ...], rng: random.Random) -> Function:
    """Return a function that reads or writes at an index, of degree 2 at most."""
    weights = np.random.default_rng(rng.randrange(10**6)).normal(size=shape)

    def read(x: Any) -> Any:
        part = x[index]
        return np.sum(part * np.arange(1.0, 1 + np.size(part)).reshape(np.shape(part)))

    def write(x: Any) -> Any:
        y = x * 2.0
        y[index] = x.sum() * 3.0
        return np.sum(y * weights)

    def write_several(x: Any) -> Any:
        y = x * 2.0
        part = x[index]
        y[index] = part * np.arange(1.0, 1 + np.size(part)).reshape(np.shape(part))
        return np.sum(y * weights)

    def augment(x: Any) -> Any:
        y = x * 2.0
        y[index] *= x.sum()
        return np.sum(y * weights)

    return rng.choice([read, write, write_several, augment])


def differences(f: Function, x: Any) -> Any:
    """Return the gradient of a function of degree 2, of which central differences are exact."""
    steps = np.eye(x.size).reshape(x.size, *x.shape)
    return np.reshape([(f(x + step) - f(x - step)) / 2 for step in steps], x.shape)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_row_45_random_indices(seed: int) -> None:
    rng = random.Random(seed)
    for count in range(30):
        shape = tuple(rng.choice([0, 1, 2, 3, 4]) for _ in range(rng.choice([1, 2, 3])))
        index = random_index(rng, shape)
        x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
        f = uses(index, shape, rng)
        try:
            expected = f(x.copy())
        except (IndexError, ValueError) as error:
            with pytest.raises(type(error)):
                value_and_grad(f)(x)
            continue
        with config.override(executor="compiled" if count % 10 == 0 else "interpreter"):
            try:
                value, gradient = value_and_grad(f)(x)
            except errors.OutOfRangeError:
                assert x.size == 0  # NumPy forgives an empty mask of another shape beside an empty axis
                continue
        np.testing.assert_allclose(value, expected, err_msg=f"{shape} {index!r}")
        np.testing.assert_allclose(gradient, differences(f, x), rtol=1e-9, atol=1e-9, err_msg=f"{shape} {index!r}")


def test_row_45_ellipsis_that_stands_for_no_axis_parts_arrays() -> None:
    x = np.arange(6.0).reshape(2, 3)
    for index in ((None, [0, 1], ..., [0, 1]), (None, 0, ..., [0, 1]), (None, [0, 1], ..., 0), ([0, 1], ..., [0, 1])):
        weights = np.arange(1.0, 3).reshape(x[index].shape)
        value, gradient = value_and_grad(lambda x, i=index, w=weights: np.sum(x[i] * w))(x)
        assert value == np.sum(x[index] * weights)
        np.testing.assert_array_equal(gradient, differences(lambda x, i=index, w=weights: np.sum(x[i] * w), x))
