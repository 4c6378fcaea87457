"""Row 62: a sum over millions of elements at one place, in several threads at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from fnad import config, grad, jit

COUNT, MANY = 2**24 + 2**10, 2**21
"""More than single precision counts by ones, and more than one thread takes."""

executors = pytest.mark.parametrize("executor", ["interpreter", "compiled"])
SAME = np.zeros(COUNT, np.int32)


def added(t: Any) -> Any:
    total = np.zeros_like(t, shape=2)
    np.add.at(total, SAME[:MANY], t)
    return total[0]


@executors
@pytest.mark.parametrize(("dtype", "count"), [(np.float32, COUNT), (np.float64, MANY)])
def test_row_62_scatter_add_at_one_index(executor: Any, dtype: Any, count: int) -> None:
    with config.override(executor=executor):
        gradient = grad(lambda x: np.sum(x[SAME[:count]]))(np.ones(2, dtype))
    assert gradient.dtype == dtype
    np.testing.assert_array_equal(gradient, [count, 0])


@executors
def test_row_62_add_at_one_index(executor: Any) -> None:
    with config.override(executor=executor):
        assert jit(added)(np.float64(1.0)) == MANY
        assert grad(added)(np.float64(1.0)) == MANY


def test_row_62_in_threads() -> None:
    x = np.ones(2)
    run = jit(grad(lambda x: np.sum(x[SAME[:MANY]] * 1.0)))
    with ThreadPoolExecutor(2) as pool:
        for gradient in pool.map(run, [x] * 4):
            np.testing.assert_array_equal(gradient, [MANY, 0])
