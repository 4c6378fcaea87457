"""Short folds along columns are innermost: the accumulator of a column is no element of an array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fnad
from fnad.backends.cpu.executor import plan
from fnad.ir.builder import trace
from fnad.ir.types import F64, Aval
from fnad.kernel import statements as code
from fnad.ops.arithmetic import mul
from fnad.ops.elementary import exp
from fnad.ops.reduction import reduce_max
from fnad.ops.shape import reduce_sum


def loops(function: Any, shape: tuple[int, ...]) -> list[list[int]]:
    """The extents of the innermost loops and those around them, of a function of an array."""
    planned = plan(trace(lambda x: [function(x)], Aval(F64, shape)))
    found = list[list[int]]()

    def visit(statements: Any, around: list[int]) -> None:
        for loop in statements:
            if isinstance(loop, code.For):
                inside = [*around, len(loop.counted) if loop.counted is not None else 0]
                if not any(isinstance(statement, code.For) for statement in loop.body):
                    found.append(inside)
                visit(loop.body, inside)

    for kernel in planned.kernels.values():
        visit(kernel.body, [])
    return [extents for extents in found if len(extents) > 1]


@pytest.mark.parametrize(
    ("shape", "is_inside"),
    [((8, 100), True), ((12, 16), True), ((9, 100), False), ((20, 16), False), ((8, 7), False)],
)
def test_short_columns_are_folded_innermost(shape: tuple[int, int], is_inside: bool) -> None:
    along, across = shape
    assert loops(lambda x: reduce_max(x, axes=(0,)), shape) == [[across, along] if is_inside else [along, across]]


def test_functions_and_rows_that_lie_apart_are_folded_as_before() -> None:
    """LLVM vectorises no function in a loop that it unrolls."""
    assert loops(lambda x: reduce_sum(exp(x), axes=(0,)), (8, 100)) == [[8, 100]]
    assert loops(lambda x: reduce_sum(mul(x, x), axes=(1,)), (3, 8, 100)) == [[3, 100, 8]]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_folds_in_a_loop_are_those_of_numpy(dtype: Any) -> None:
    """The best path through states, as by Viterbi, and the derivative by its transitions."""
    rng = np.random.default_rng(0)
    moves, seen = rng.standard_normal((12, 12)).astype(dtype), rng.standard_normal((30, 12)).astype(dtype)

    def best(moves: Any) -> Any:
        def step(v: Any, e: Any) -> Any:
            return np.max(v[:, None] + moves, axis=0) + e, None

        return np.max(fnad.scan(step, seen[0], seen[1:])[0])

    v, paths = seen[0].astype(np.float64), [[n] for n in range(12)]
    for e in seen[1:]:
        scores = v[:, None] + moves
        paths = [[*paths[n], k] for k, n in enumerate(np.argmax(scores, axis=0))]
        v = np.max(scores, axis=0) + e
    path, wanted = paths[int(np.argmax(v))], np.zeros((12, 12))
    np.add.at(wanted, (path[:-1], path[1:]), 1)
    value, gradient = fnad.jit(fnad.value_and_grad(best))(moves)
    np.testing.assert_allclose(value, np.max(v), rtol=1e-12 if dtype == np.float64 else 1e-5)
    np.testing.assert_array_equal(gradient, wanted)
