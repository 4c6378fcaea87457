"""Loops whose counter is divided become two: of what is reshaped, no element computes quotients or remainders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.backends.cpu.target import CPU
from fnad.ir.builder import trace
from fnad.ir.types import F64, Aval
from fnad.kernel.plan import Plan
from fnad.lower.lowering import lower
from fnad.ops.arithmetic import mul
from fnad.ops.shape import broadcast_in_dim, reduce_sum, reshape, transpose

MOVED: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "repeated": (lambda x: np.repeat(x, 3), (20,)),
    "tiled": (lambda x: np.tile(x, 4), (30,)),
    "transposed": (lambda x: x.T.ravel(), (12, 7)),
    "of three axes": (lambda x: np.transpose(x, (2, 0, 1)).reshape(-1), (4, 5, 6)),
    "of two lengths": (lambda x: np.repeat(x.T.ravel(), 2), (6, 5)),
    "side by side": (lambda x: np.concatenate([x[:, :5].ravel(), x[:, 1:].ravel()]), (9, 8)),
    "summed": (lambda x: np.sum(np.repeat(x, 3) * np.arange(60.0)), (20,)),
}


@pytest.mark.parametrize("name", MOVED)
def test_compiled_values_and_gradients_are_those_of_the_interpreter(name: str) -> None:
    function, shape = MOVED[name]
    x = np.random.default_rng(0).normal(size=shape)

    def weighted(x: Any) -> Any:
        y = function(x)
        return np.sum(np.sin(y) * np.arange(1.0, 1 + np.size(y)).reshape(np.shape(y)))

    compiled = fnad.jit(lambda x: (function(x), fnad.grad(weighted)(x)))
    compiled(x)
    value, gradient = compiled(x)
    np.testing.assert_allclose(value, function(x), rtol=1e-14)
    with fnad.config.override(executor="interpreter"):
        np.testing.assert_allclose(gradient, fnad.grad(weighted)(x), rtol=1e-13)


def repeated(x: Any, times: int) -> Any:
    wide = broadcast_in_dim(x, shape=(x.shape[0], times), dims=(0,))
    return reshape(wide, shape=(x.shape[0] * times,))


@pytest.mark.parametrize(
    ("function", "shape", "loops"),
    [
        (lambda x: repeated(x, 40), (50,), ["range(50)", "range(40)"]),
        (lambda x: reshape(transpose(x, permutation=(1, 0)), shape=(700,)), (20, 35), ["range(35)", "range(20)"]),
        (lambda x: reduce_sum(mul(repeated(x, 40), repeated(x, 40)), axes=(0,)), (50,), ["range(40)"]),
        (lambda x: repeated(repeated(x, 12), 20), (30,), ["range(30)", "range(12)", "range(20)"]),
    ],
)
def test_no_element_divides(function: Any, shape: tuple[int, ...], loops: list[str]) -> None:
    program = trace(lambda x: [function(x)], Aval(F64, shape), name="f")
    source = Plan(lower(program, CPU), CPU).source
    body = source[source.index("def chunk0") :]
    assert not {"//", "%"} & {*body.split()}, body
    assert all(loop in body for loop in loops), body
