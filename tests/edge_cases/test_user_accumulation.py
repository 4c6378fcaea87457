"""Row 62: a sum over 2e7 elements at one place, in several threads at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from fnad import config, grad, jit

COUNT = 20_000_000
executors = pytest.mark.parametrize("executor", ["interpreter", "compiled"])
SAME = np.zeros(COUNT, np.int32)


def added(t: Any) -> Any:
    total = np.zeros_like(t, shape=2)
    np.add.at(total, SAME, t)
    return total[0]


@executors
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_row_62_scatter_add_at_one_index(executor: Any, dtype: Any) -> None:
    with config.override(executor=executor):
        gradient = grad(lambda x: np.sum(x[SAME]))(np.ones(2, dtype))
    assert gradient.dtype == dtype
    np.testing.assert_array_equal(gradient, [COUNT, 0])


@pytest.mark.slow
@executors
def test_row_62_add_at_one_index(executor: Any) -> None:
    with config.override(executor=executor):
        assert jit(added)(np.float64(1.0)) == COUNT
        assert grad(added)(np.float64(1.0)) == COUNT


@pytest.mark.slow
def test_row_62_in_threads() -> None:
    x = np.ones(2)
    run = jit(grad(lambda x: np.sum(x[SAME] * 1.0)))
    with ThreadPoolExecutor(2) as pool:
        for gradient in pool.map(run, [x] * 4):
            np.testing.assert_array_equal(gradient, [COUNT, 0])
