"""Generators of NumPy that are given traced values: `shuffle` moves them, draws are an error."""

from typing import Any

import numpy as np
import pytest

from fnad import grad, jit
from fnad.errors import TracerEscapeError

X = np.arange(24.0).reshape(4, 3, 2)
SHUFFLES: dict[str, Any] = {
    "generator": lambda x: np.random.default_rng(0).shuffle(x),
    "an axis": lambda x: np.random.default_rng(1).shuffle(x, axis=-2),
    "an axis by position": lambda x: np.random.default_rng(1).shuffle(x, 1),
    "state": lambda x: np.random.RandomState(0).shuffle(x),
    "a view": lambda x: np.random.default_rng(3).shuffle(x[::-1, 1:]),
    "elements": lambda x: np.random.default_rng(0).shuffle(x[0, :, 0]),
}


@pytest.mark.parametrize("name", SHUFFLES)
def test_traced_rows_are_shuffled_as_numpy_shuffles_rows(name: str) -> None:
    def f(x: Any) -> Any:
        y = x * 2
        SHUFFLES[name](y)
        return y

    np.testing.assert_array_equal(jit(f)(X), f(X))
    weights = np.sqrt(X)
    slope = grad(lambda x: np.sum(f(x) * weights))(X)
    inverse = f(X).ravel().astype(int) // 2
    np.testing.assert_array_equal(slope.ravel()[inverse], 2 * weights.ravel())


def test_one_generator_goes_on_behind_a_shuffle() -> None:
    def f(x: Any) -> Any:
        rng, y = np.random.default_rng(7), [x * 1.0, x * 3.0]
        rng.shuffle(y[0])
        rng.shuffle(y)
        return y[0] * rng.normal(size=x.shape)

    np.testing.assert_array_equal(jit(f)(X), f(X))


DRAWS = (np.random.default_rng(0).poisson, np.random.normal, lambda x: np.random.default_rng(0).normal(scale=x))


@pytest.mark.parametrize("draw", DRAWS)
def test_a_traced_parameter_is_an_error_with_the_way_out(draw: Any) -> None:
    with pytest.raises(TracerEscapeError, match=r"rng\.standard_normal"):
        jit(lambda x: draw(x))(X)
