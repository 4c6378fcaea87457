"""What a target's record changes in lowering and in kernels: the choices, not the numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.backends.cpu.codegen import new_module
from fnad.backends.cpu.executor import compile_plan
from fnad.backends.cpu.target import COSTS, CPU
from fnad.backends.llvm.instructions import add_function
from fnad.control.scan import scan
from fnad.errors import LoweringError
from fnad.ir.builder import trace
from fnad.ir.program import Program
from fnad.ir.types import F64, Aval
from fnad.kernel.plan import Plan
from fnad.kernel.routines import ROUTINES
from fnad.lower.loop_ir import LibraryCall, NestLoop, Product
from fnad.lower.lowering import lower
from fnad.lower.target import Target
from fnad.ops.arithmetic import add, mul
from fnad.ops.contraction import dot_general
from fnad.ops.convolution import convolve
from fnad.ops.elementary import exp, tanh
from fnad.ops.linalg import cholesky
from fnad.ops.matrix_function import solve_sylvester
from fnad.ops.shape import broadcast_in_dim, reduce_sum
from fnad.transforms.interpret import interpret
from fnad.transforms.pipeline import simplify
from tests.together import in_groups

SQUARE = Aval(F64, (20, 20))


def without(*names: str) -> Target:
    return replace(CPU, instructions={n: emit for n, emit in CPU.instructions.items() if n not in names})


def costing(**costs: int) -> Target:
    return replace(CPU, costs=replace(COSTS, **costs))


BY_ROWS = {"contract": ((1,), (0,)), "batch": ((), ())}


def product() -> Program:
    return trace(lambda x, y: [dot_general(x, y, **BY_ROWS)], SQUARE, SQUARE, name="product")


def planned(program: Program, target: Target) -> Plan:
    return Plan(lower(program, target), target)


def assert_right(program: Program, target: Target, arguments: Sequence[Any]) -> None:
    found = compile_plan(planned(program, target))(arguments)
    for got, want in zip(found, interpret(program, arguments), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-13)


def test_the_cpu_has_instructions_for_all_that_a_kernel_may_call() -> None:
    assert ROUTINES.keys() <= CPU.instructions.keys()


@pytest.mark.parametrize("target", [without("gemm"), costing(smallest_product=20**3 + 1)])
def test_products_are_loops_where_no_routine_is_there_or_better(target: Target) -> None:
    x = np.random.default_rng(0).random((20, 20))
    assert [type(item) for item in lower(product(), CPU).items] == [Product]
    assert [type(item) for item in lower(product(), target).items] == [NestLoop]
    assert_right(product(), target, [x, x.T])


def test_costs_decide_what_is_fused_and_kept() -> None:
    def f(x: Any) -> list[Any]:
        y = exp(x)
        return [mul(y, y), add(y, x)]

    program, x = trace(f, SQUARE, name="f"), np.random.default_rng(0).normal(size=(20, 20))
    assert len(lower(program, CPU).items) == 1
    assert len(lower(program, costing(largest_nest=1)).items) > 1
    assert len(lower(program, CPU).temporaries) == 1
    assert lower(program, costing(recompute=10**6)).temporaries == ()
    for target in (costing(largest_nest=1), costing(recompute=10**6), costing(largest_nest=1, largest_kernel=1)):
        assert_right(program, target, [x])
    assert len(planned(program, costing(largest_nest=1, largest_kernel=1)).kernels) > 1


def test_the_block_of_a_sum() -> None:
    program = trace(lambda x: [reduce_sum(x, axes=(0,))], Aval(F64, (300,)), name="f")
    assert f"range(0, 300, {CPU.costs.sum_block})" in planned(program, CPU).source
    assert "range(0, 300, 100)" in planned(program, costing(sum_block=100)).source
    assert "compensated" not in planned(program, costing(sum_block=300)).source
    assert_right(program, costing(sum_block=64), [np.linspace(0.0, 1.0, 300)])


@pytest.mark.parametrize(
    ("shape", "loops"),
    [
        ((1000, 3), ["range(0, 1000, 21)"]),  # 21 rows of 3 elements are a block of 64
        ((40, 10, 3), ["range(0, 40, 2)", "range(30)"]),
        ((5, 300), ["range(0, 300, 64)"]),
        ((5, 40), ["range(5)", "range(40)"]),  # a row of 40 is less than a block, two are more: each is one
    ],
)
def test_the_block_of_a_sum_goes_over_short_rows(shape: tuple[int, ...], loops: list[str]) -> None:
    weights = Aval(F64, shape[:1])
    program = trace(
        lambda x, w: [reduce_sum(x * broadcast_in_dim(w, shape=shape, dims=(0,)), axes=tuple(range(len(shape))))],
        Aval(F64, shape), weights, name="f",
    )  # fmt: skip
    plan = planned(program, costing(sum_block=64))
    assert all(loop in plan.source for loop in loops), plan.source
    assert plan.source.count("compensated_add(") == 1 + ("def compensated_add" in plan.source)
    x = np.random.default_rng(0).normal(size=shape)
    assert_right(program, costing(sum_block=64), [x * 10.0 ** (20 * x), np.ones(shape[:1])])


def test_no_loop_asks_a_target_without_interrupts() -> None:
    body = trace(lambda x: [mul(x, x)], Aval(F64), name="body")
    params = {"consts": 0, "carry": 1, "length": 10**9, "reverse": False}
    program = trace(lambda x: list(scan(x, **params, regions=(body,))), Aval(F64), name="f")
    assert "interrupted()" in planned(program, CPU).source
    assert "interrupted()" not in planned(program, without("interrupted")).source
    assert "interrupted()" not in planned(program, costing(interrupt_nanoseconds=2**60)).source


def looped(length: int | None, size: int, nested: int = 0) -> Program:
    """A loop over a product of so many elements, of this length or of none that is known, within one of another."""
    body = trace(lambda x: [mul(x, x)], Aval(F64, (size,)), name="body")
    for extent in filter(None, (length, nested)):
        params = {"consts": 0, "carry": 1, "length": extent, "reverse": False}
        inner, given = body, params
        body = trace(lambda x, i=inner, p=given: list(scan(x, **p, regions=(i,))), Aval(F64, (size,)), name="body")
    return body


@pytest.mark.parametrize("nested", [0, 3, 10**5])
@pytest.mark.parametrize("size", [1, 10, 1000, 10**5])
@in_groups("length", [10, 10**3, 10**5, 10**9])
def test_how_often_a_loop_checks_for_an_interrupt(length: int, size: int, nested: int) -> None:
    """About once in the time that the target names, and in no program that takes less."""
    period, each = 2**20, 10 * size  # nanoseconds
    source = planned(looped(length, size, nested), costing(interrupt_nanoseconds=period, effect_nanoseconds=10)).source
    checks = [
        int(mask or 0) + 1
        for mask in re.findall(r"(?:if \w+ & (\d+) == \1:\n\s+)?if interrupted\(\)(?: \| .*)?:", source)
    ]
    whole = length * each * max(nested, 1)
    assert bool(checks) == (whole >= 2 * period), (whole, source)
    works = [each, each * length] if nested else [each]
    for check in checks:
        assert any(check * work <= 2 * period and (check == 1 or check * work >= period / 4) for work in works)
    if length * each >= 4 * period:  # the inner loop alone is long
        assert any(check * each <= 2 * period or check == 1 for check in checks)


def test_an_operation_that_a_target_lacks() -> None:
    program = trace(lambda x: [tanh(x)], SQUARE, name="f")
    (kernel,) = planned(program, CPU).kernels.values()
    with pytest.raises(LoweringError, match="cpu has no instructions for tanh"):
        add_function(new_module("f"), kernel, without("tanh"))


def test_a_routine_that_a_target_lacks() -> None:
    program = trace(lambda x: [solve_sylvester(x, x, x)], SQUARE, name="f")
    device = replace(CPU, name="gpu", memory="device")
    with pytest.raises(LoweringError, match="solve_sylvester is left to the interpreter: gpu has no routine for it"):
        lower(program, device)
    (call,) = lower(program, replace(device, routines=frozenset({"trsyl"}))).items
    assert isinstance(call, LibraryCall)


def test_functions_of_numpy_that_other_libraries_arrays_take_over_are_calls_on_any_device() -> None:
    program = trace(lambda x: [cholesky(x, upper=False)], SQUARE, name="f")
    (call,) = lower(program, replace(CPU, name="gpu", memory="device", instructions={})).items
    assert isinstance(call, LibraryCall)
    assert call.routine is None


def test_a_nest_has_memory_for_a_row_of_what_it_alone_needs() -> None:
    def in_rows(x: Any) -> Any:
        shares = np.exp(x - np.max(x, axis=1, keepdims=True))
        return np.max(shares / np.sum(shares, axis=1, keepdims=True), axis=1)

    x = np.random.default_rng(0).standard_normal((300, 50))
    program = simplify(fnad.make_program(in_rows)(x).program)
    plan = planned(program, CPU)
    assert "local_f64(i64(64))" in plan.source
    assert all(slot.size <= 300 for slot in plan.slots)
    assert_right(program, CPU, [x])


def test_what_is_read_behind_the_nest_is_whole() -> None:
    def by_columns(x: Any) -> Any:
        shares = np.exp(x - np.max(x, axis=1, keepdims=True))
        return np.max(shares / np.sum(shares, axis=1, keepdims=True), axis=0)

    x = np.random.default_rng(0).standard_normal((300, 50))
    assert_right(simplify(fnad.make_program(by_columns)(x).program), CPU, [x])


@pytest.mark.parametrize(
    ("shapes", "mode", "is_written_out"),
    [
        (((90,), (32,)), "full", True),
        (((90,), (33,)), "full", False),
        (((90,), (80,)), "valid", True),  # few results
        (((8, 9), (3, 3)), "valid", True),
        (((3, 3), (8, 9)), "full", True),
        (((50, 40), (6, 6)), "valid", False),
    ],
)
def test_small_convolutions_are_loops(shapes: Any, mode: str, is_written_out: bool) -> None:
    xs = [np.random.default_rng(n).normal(size=shape) for n, shape in enumerate(shapes)]
    program = trace(lambda x, y: [convolve(x, y, mode=mode)], *(Aval(F64, shape) for shape in shapes), name="f")
    assert any(isinstance(item, LibraryCall) for item in lower(program, CPU).items) is not is_written_out
    assert_right(program, CPU, xs)
