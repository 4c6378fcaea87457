"""Random functions of rows, in native code as for large arrays: tiles, tasks, and blocks of sums of odd lengths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fnad.backends.cpu.executor import compile_plan
from fnad.kernel.plan import Plan
from fnad.lower.lowering import lower
from fnad.transforms.interpret import interpret
from tests.lower.test_tiles import reverse_of
from tests.targets import OF_LARGE_ARRAYS

EXTENTS = (3, 5, 9, 17, 23, 40, 41, 100)
FOLDS = (np.sum, np.max, np.min, np.prod, np.mean)


def written(random: Random) -> Callable[..., tuple[Any, ...]]:
    """A function that draws its steps when it is called."""

    def function(a: Any, q: Any) -> tuple[Any, ...]:
        values = [a * q, np.sin(a), a + 1.5]
        for _ in range(random.randint(1, 4)):
            values.append(step(random, random.choice(values)))
        folded = [value for value in random.sample(values, 2) if value.ndim]
        return values[-1], *(random.choice(FOLDS)(x, axis=random.choice([None, *range(x.ndim)])) for x in folded)

    return function


def step(random: Random, x: Any) -> Any:
    if not x.ndim:
        return np.tanh(x)
    axis = random.randrange(x.ndim)
    steps: list[Callable[[], Any]] = [
        *[lambda: random.choice(FOLDS)(x, axis=axis, keepdims=random.random() < 0.5)] * 4,
        lambda: np.log(np.abs(x) + 1.1),
        lambda: np.exp(-x * x),
        lambda: x @ np.cos(x.T if x.ndim < 3 else np.swapaxes(x, 1, 2)),
        lambda: np.cumsum(x, axis=axis),
        lambda: x + np.mean(np.cos(x)),
        lambda: np.concatenate([x, x[::-1]]),
    ]
    return random.choice(steps)()


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
@settings(max_examples=8)
def test_native_code_computes_what_the_interpreter_does(random: Random) -> None:
    shape = tuple(random.choice(EXTENTS) for _ in range(random.choice((1, 2, 2, 2, 3))))
    costs = replace(
        OF_LARGE_ARRAYS.costs, sum_block=random.choice((2, 3, 7)), tile_rows=random.choice((1, 2, 3)),
        tile_bytes=random.choice((64, 512)),
    )  # fmt: skip
    target, rng = replace(OF_LARGE_ARRAYS, costs=costs), np.random.default_rng(random.randrange(2**32))
    program, args = reverse_of(written(random), [rng.uniform(0.5, 1.5, s) for s in (shape, shape[-1:])])
    with np.errstate(all="ignore"):
        found, wanted = compile_plan(Plan(lower(program, target), target))(args), interpret(program, args)
    for f, w in zip(found, map(np.asarray, wanted), strict=True):
        scale = np.max(np.abs(w), initial=1.0, where=np.isfinite(w))
        np.testing.assert_allclose(f, w, rtol=1e-8, atol=1e-11 * scale)
