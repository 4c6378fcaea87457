"""Random programs on the threads of a device: run by the harness against the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fnad.backends.cuda import executor
from fnad.backends.cuda.executor import DeviceExecutor
from fnad.backends.cuda.target import CUDA
from fnad.control.batching import batched_program
from fnad.errors import LoweringError
from fnad.ir.builder import trace
from fnad.ir.program import Program
from fnad.ir.types import aval_of
from fnad.kernel import grid
from fnad.kernel.launches import DevicePlan
from fnad.lower.lowering import lower
from fnad.lower.target import Grid
from fnad.ops.shape import broadcast_to
from fnad.testing import marks
from fnad.transforms.interpret import interpret
from fnad.transforms.joint import joint
from fnad.transforms.pipeline import simplify
from tests.gpu import SMALL, Simulated
from tests.random_control import expected, random_control_program
from tests.random_programs import Example, examples
from tests.test_random_programs import assert_close, cotangents, tolerance


def on_device(program: Program, arguments: Sequence[Any], seed: int) -> list[Any] | None:
    """The results; None if the device lacks something that the program needs."""
    try:
        plan = DevicePlan(lower(program, SMALL), SMALL)
    except LoweringError as error:
        assert "cuda" in str(error)  # noqa: PT017
        return None
    run = DeviceExecutor(plan, Simulated(seed, SMALL.grid.warp))
    return [array.memory for array in run(list(map(np.asarray, arguments)))]


def check(program: Program, arguments: Sequence[Any], wanted: Sequence[Any], seed: int) -> None:
    found = on_device(program, arguments, seed)
    if found is not None:
        assert_close(found, wanted, tolerance(program))


@pytest.mark.slow
@given(examples(most=10), st.integers(0, 99))
@settings(max_examples=25)
def test_random_programs_on_simulated_threads_are_interpreted(example: Example, seed: int) -> None:
    program, arguments = example.program, example.arguments
    check(program, arguments, interpret(program, arguments), seed)
    derived, given_ = simplify(joint(program, marks(program))), [*arguments, *cotangents(program, 10)]
    check(derived, given_, interpret(derived, given_), seed)


@pytest.mark.slow
@given(st.randoms(use_true_random=False), st.integers(0, 99))
@settings(max_examples=25)
def test_random_control_flow(random: Random, seed: int) -> None:
    program, arguments = random_control_program(random)
    check(program, arguments, expected(program, arguments), seed)


TINY = replace(CUDA, grid=Grid(threads=2, blocks=2, warp=2), costs=replace(CUDA.costs, smallest_product=1))
"""A device that leaves most loops and branches to the host, and all products to the library."""


@pytest.mark.slow
@given(st.randoms(use_true_random=False), st.integers(0, 99), st.booleans())
@settings(max_examples=12)
def test_random_control_flow_of_the_host(random: Random, seed: int, library: bool) -> None:
    """Called again, when it is a graph; loops are graphs of two iterations, and asked after each four."""
    program, arguments = random_control_program(random, library=library)
    with (
        patch.multiple(executor, TOGETHER=2, LEAST=3, MOST_AHEAD=4),
        patch.object(grid, "OF_A_THREAD", 1),
    ):
        check_again(program, arguments, expected(program, arguments), seed)
        derived, operands = simplify(joint(program, marks(program))), [*arguments, *cotangents(program, 10)]
        check_again(derived, operands, interpret(derived, operands), seed)


def check_again(program: Program, arguments: Sequence[Any], wanted: Sequence[Any], seed: int) -> None:
    try:
        plan = DevicePlan(lower(program, TINY), TINY)
    except LoweringError as error:
        assert "cuda" in str(error)  # noqa: PT017
        return
    device = Simulated(seed, TINY.grid.warp)
    run, given_ = DeviceExecutor(plan, device), [device.to_device(np.asarray(x)) for x in arguments]
    for _ in range(3):
        assert_close([array.memory for array in run(given_)], wanted, tolerance(program))


def on_stacks(one: Program, count: int, stacks: Sequence[Any], stacked: Sequence[bool]) -> Program:
    def run(*args: Any) -> list[Any]:
        found = zip(*batched_program(one, count, args, stacked), strict=True)
        return [y if of_rows else broadcast_to(y, (count, *y.shape)) for y, of_rows in found]

    return simplify(trace(run, *map(aval_of, stacks), name="stacks"))


def rows_of(x: Any, count: int) -> Any:
    """Rows that differ, if they are of real numbers."""
    stack = np.stack([x] * count)
    return (stack.T * np.linspace(1, 0.5, count, dtype=x.dtype)).T if x.dtype.kind == "f" else stack


def check_on_stacks(program: Program, arguments: Sequence[Any], random: Random, seed: int) -> None:
    """Rows are as each by itself; some operands are the same for all."""
    count, stacked = random.randint(1, 9), [random.random() < 0.7 for _ in arguments]
    arrays = list(map(np.asarray, arguments))
    stacks = [rows_of(x, count) if mark else x for x, mark in zip(arrays, stacked, strict=True)]
    rows = [[x[i] if mark else x for x, mark in zip(stacks, stacked, strict=True)] for i in range(count)]
    wanted = [np.stack(leaf) for leaf in zip(*[interpret(program, row) for row in rows], strict=True)]
    check(on_stacks(program, count, stacks, stacked), stacks, wanted, seed)


@pytest.mark.slow
@given(examples(most=8), st.randoms(use_true_random=False), st.integers(0, 99))
@settings(max_examples=8)
def test_random_programs_on_stacks(example: Example, random: Random, seed: int) -> None:
    check_on_stacks(example.program, example.arguments, random, seed)
    check_on_stacks(*random_control_program(random), random, seed)
