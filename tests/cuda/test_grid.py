"""Loop nests on the threads of a device: folds, rows, scans and updates, by the harness, and how kernels look."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.backends.cuda.executor import DeviceExecutor
from fnad.backends.cuda.target import CUDA
from fnad.errors import OutOfRangeError
from fnad.ir.program import Program
from fnad.kernel import device_build
from fnad.kernel.launches import DevicePlan, Launch
from fnad.kernel.python_source import kernel_text
from fnad.lower.loop_ir import LibraryCall
from fnad.lower.lowering import lower
from fnad.lower.target import Grid, Target
from fnad.scalar.operation import Pointer
from fnad.testing import assert_close, tolerance
from fnad.transforms.interpret import interpret
from fnad.transforms.pipeline import simplify
from tests.cuda.harness import KernelError, run
from tests.gpu import Simulated
from tests.kernel_text import parse_kernel
from tests.together import drawn, in_groups, together

SMALL = replace(CUDA, grid=Grid(threads=8, blocks=6, warp=4, most_threads=16, together=4))
RNG = np.random.default_rng(0)
ROWS, LONG_ROWS, CUBE = (RNG.standard_normal(shape).astype(np.float32) for shape in ((20, 50), (2, 300), (3, 5, 40)))
TALL, FLAT, WEIGHTS = (RNG.standard_normal(shape).astype(np.float32) for shape in ((300, 3), 600, 50))
INDICES = RNG.integers(0, 20, 33)
MANY, SKEWED, SAME = (
    RNG.integers(-20, 20, 300),
    np.where(RNG.random(600) < 0.7, 3, RNG.integers(0, 50, 600)),
    np.full(600, 7),
)
LONG = RNG.uniform(0.9, 1.1, (1, 701))
PAIRS = RNG.integers(-3, 3, (2, 20, 30))


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
    centred = x - np.mean(x, axis=1, keepdims=True)
    return gain * centred / np.sqrt(np.mean(centred**2, axis=1, keepdims=True) + 1e-5) + bias


def log_sum_exp(x: Any) -> Any:
    largest = np.max(x, axis=1, keepdims=True)
    return np.log(np.sum(np.exp(x - largest), axis=1)) + largest[:, 0]


def norm_loss(x: Any, gain: Any, bias: Any) -> Any:
    return np.sum(np.sin(layer_norm(x, gain, bias)))


def recurrent(x: Any) -> Any:
    carry, rows = fnad.scan(lambda c, a: (np.tanh(c[::-1] + a), c * a), x[0], x)
    return np.sum(carry) + np.sum(rows * rows)


def potential(x: Any, y: Any) -> Any:
    dx, dy = x[:, None] - x, y[:, None] - y
    return -0.5 * np.sum(1 / np.sqrt(dx * dx + dy * dy + np.float32(0.1)))


def added(x: Any, i: Any, updates: Any) -> Any:
    y = x * 1
    np.add.at(y, i, updates)
    return y


def assigned(x: Any, i: Any, updates: Any) -> Any:
    y = x * 1
    y[i] = updates
    return y


AXES = [None, 0, 1, 2, (0, 1), (1, 2), (0, 2)]
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sums": (lambda x: [np.sum(x, axis=axes) for axes in AXES], (CUBE,)),
    "extrema": (lambda x: [np.max(np.sin(x), axis=axes) for axes in AXES], (CUBE,)),
    "long sum": (lambda x: np.sum(x * x), (FLAT,)),
    "tall sum": (lambda x: np.sum(x, axis=0), (TALL,)),
    "complex sums": (lambda x: [np.sum(x, axis=axes) for axes in AXES], (CUBE + 1j * CUBE[::-1],)),
    "softmax": (softmax, (ROWS,)),
    "softmax of long rows": (softmax, (LONG_ROWS,)),
    "softmax of rows without room in registers": (softmax, (np.stack([FLAT, -FLAT]),)),
    "logsumexp of long rows": (log_sum_exp, (LONG_ROWS.astype(np.float64),)),
    "cross-entropy of long rows": (fnad.value_and_grad(lambda x: -np.mean(np.log(softmax(x)[:, 0]))), (LONG_ROWS,)),
    "softmax of short rows": (softmax, (TALL,)),
    "softmax of many axes": (softmax, (CUBE,)),
    "logsumexp": (log_sum_exp, (ROWS,)),
    "layer norm": (layer_norm, (ROWS, WEIGHTS, WEIGHTS)),
    "layer norm, gradient": (fnad.grad(norm_loss, argnums=(0, 1, 2)), (ROWS, WEIGHTS, WEIGHTS)),
    "layer norm of long rows": (
        fnad.grad(norm_loss, argnums=(0, 1)),
        (np.tile(LONG_ROWS, (5, 1)), FLAT[:300], FLAT[1]),
    ),
    "rows and columns": (
        lambda x: [np.sum(x * x, axis=1), np.sum(np.sin(x) * np.sum(x, axis=1)[:, None], axis=0), np.max(x - x[:, :1])],
        (ROWS.astype(np.float64),),
    ),
    "elements and a rest": (
        fnad.value_and_grad(lambda x, y: np.sum(np.where(y > 0, np.sin(x) * y, x)), argnums=(0, 1)),
        (FLAT[:599], FLAT[1:]),
    ),
    "softmax of rows for a group": (softmax, (np.tile(ROWS[:, :12], (2, 1)),)),
    "logsumexp of rows for a group": (log_sum_exp, (ROWS[:19, :11].astype(np.float64),)),
    "sums of rows for a group": (lambda x: [np.sum(x, axis=1), np.max(np.sin(x), axis=1)], (ROWS[:17, :16],)),
    "rows for a group, given back in another order": (
        lambda x: ((x - np.mean(x, axis=1, keepdims=True))[:, ::-1], np.sum(x, axis=1)[:, None] * x),
        (ROWS[:, :9],),
    ),
    "rows for a group, added in place": (
        lambda x, y: np.cumsum(y) + np.sum(x * x, axis=1),
        (ROWS[:19, :12], FLAT[:19]),
    ),
    "rows times columns": (lambda x, y: x * y + y[0], (np.tile(ROWS[:, :48], (2, 1)), WEIGHTS[:48])),
    "cross-entropy": (fnad.value_and_grad(lambda x: -np.mean(np.log(softmax(x)[:, 0]))), (ROWS,)),
    "value and gradient": (fnad.value_and_grad(lambda x: np.sum(np.sin(x) * x)), (ROWS,)),
    "positions": (lambda x: [np.argmax(x, axis=1), np.argmin(x, axis=0), np.argmax(x)], (ROWS,)),
    "running sums": (lambda x: [np.cumsum(x, axis=0), np.cumsum(x, axis=1), np.cumsum(x)], (ROWS,)),
    "long running folds": (lambda x: [np.cumsum(x), np.cumprod(x)[::-1], np.maximum.accumulate(x)], (FLAT,)),
    "running sums of few rows": (lambda x: [np.cumsum(x, axis=1), np.cumprod(x[:, ::-1], axis=1)], (LONG,)),
    "running sums of few columns": (lambda x: np.cumsum(x, axis=0), (np.tile(LONG[:1].T, (4, 1)),)),
    "running sums, gradient": (fnad.grad(lambda x: np.sum(np.cumsum(np.sin(x), axis=1) ** 2)), (LONG_ROWS,)),
    "running sums of integers": (lambda x: np.cumsum((x * 9).astype(np.int16)), (FLAT,)),
    "transpose": (lambda x: np.sin(x).T + 1, (ROWS,)),
    "concatenation": (lambda x: np.concatenate([x, np.sin(x[:, ::-1])]), (ROWS,)),
    "gather and scatter": (fnad.value_and_grad(lambda x, i: np.sum(np.sin(x[i]) ** 2)), (ROWS, INDICES)),
    "updates of rows": (added, (ROWS[:, :3], MANY, TALL)),
    "updates of numbers": (lambda x, i, j, u: [added(x, i, u), added(x, j, u)], (WEIGHTS, SKEWED, SAME, FLAT)),
    "updates by pairs": (lambda x, i, u: added(x, (i[0], i[1]), u), (CUBE[:, :, :2], PAIRS, FLAT.reshape(20, 30, 1))),
    "assignments": (lambda x, i, j, u: [assigned(x, i, u), assigned(x, j, u)], (WEIGHTS, SKEWED, SAME, FLAT)),
    "updates from what is updated": (lambda x, i: added(np.sin(x), i, np.sin(x)[i]), (WEIGHTS, SKEWED)),
    "product": (fnad.value_and_grad(lambda w, x: np.sum(np.tanh(x @ w) ** 2)), (LONG_ROWS[:, :20].T, ROWS.T)),
    "small product": (lambda x, y: x @ y, (CUBE[0], CUBE[1].T)),
    "products of a stack": (lambda x: x @ np.swapaxes(x, 1, 2), (np.tile(CUBE, (1, 4, 1)),)),
    "products among others": (
        lambda x, y: np.sum(np.sin((x - y[:, None]) @ np.swapaxes(np.cos(x)[None] * y[:, None], 1, 2)) ** 2, axis=1),
        (np.tile(TALL[:20], (1, 7)), np.tile(CUBE[0, :, :7], (1, 3))),
    ),
    "folds of products beside rows": (
        lambda x, y, w: [np.sum(w * (x @ y.T)), np.prod(w + x @ y.T), np.sin(x) * 2],
        (CUBE[0][:, :8], CUBE[1][:2, :8], CUBE[2][:5, :2]),
    ),
    "folds of products of long rows": (lambda x, y: [np.sum((x @ y.T) ** 2), np.sin(x)], (ROWS, ROWS[:3])),
    "all pairs": (fnad.value_and_grad(lambda x, y: potential(x, y), argnums=(0, 1)), (FLAT[:60], FLAT[60:120])),
    "products of numbers": (lambda x: [np.prod(x, axis=1), np.prod(x)], (ROWS,)),
    "tests": (lambda x: [np.any(x > 1, axis=1), np.all(x > -9), np.sum(x > 0)], (ROWS,)),
    "moments": (lambda x: [np.std(x), np.std(x, axis=0), np.var(x, axis=1)], (ROWS,)),
    "moments of columns": (
        lambda x, w: [np.var(x, axis=0), np.std(x[::-1], axis=0), np.mean(x, axis=0), np.sum((x * w - w) ** 2, axis=0)],
        (np.tile(TALL, (2, 1)).astype(np.float64), FLAT[:3]),
    ),
    "normalized columns": (lambda x: (x - np.mean(x, axis=0)) / np.std(x, axis=0), (TALL,)),
    "loop": (lambda x: fnad.fori_loop(0, 3, lambda i, c: np.sin(c) * np.sum(c), x), (WEIGHTS,)),
    "loop that reads elsewhere": (lambda x: fnad.fori_loop(0, 3, lambda i, c: np.sin(c[::-1]) + c[i], x), (WEIGHTS,)),
    "scan": (lambda x: fnad.scan(lambda c, a: (np.tanh(c[::-1] + a), c * a), x[0], x), (ROWS,)),
    "scan, gradient": (fnad.grad(lambda x: recurrent(x)), (ROWS,)),
    "while": (lambda x: fnad.while_loop(lambda c: np.sum(c) > 1, lambda c: c[::-1] / 2, np.abs(x)), (WEIGHTS,)),
    "branches": (lambda x: fnad.cond(np.sum(x) > 0, np.sin, lambda x: np.cumsum(x[::-1]), x), (WEIGHTS,)),
    "loop of numbers": (lambda x: fnad.fori_loop(0, 9, lambda i, c: np.sin(c) + i, x[0]), (WEIGHTS,)),
}


def program_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Program:
    return simplify(fnad.make_program(function)(*arguments).program)


def results(plan: DevicePlan, arguments: tuple[Any, ...], seed: int) -> list[Any]:
    run = DeviceExecutor(plan, Simulated(seed, SMALL.grid.warp))
    return [array.memory for array in run(list(map(np.asarray, arguments)))]


@cache
def traced(name: str) -> Program:
    return program_of(*PROGRAMS[name])


def planned(name: str, target: Target) -> DevicePlan:
    return DevicePlan(lower(traced(name), target), target)


@cache
def on_small(name: str) -> DevicePlan:
    return planned(name, SMALL)


def plan_of(name: str, target: Target = SMALL) -> DevicePlan:
    return on_small(name) if target is SMALL else planned(name, target)


def waits(plan: DevicePlan) -> list[str]:
    """The ways in which threads of a program wait for others."""
    return sorted({*re.findall(r"\w*barrier|shuffle_\w+|ticket|shared_\w+", plan.source)})


@cache
def in_two_orders() -> list[str]:
    """A program for each combination of ways to wait."""
    return drawn([name for name in PROGRAMS if waits(plan_of(name))], lambda name: waits(plan_of(name)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_on_simulated_threads_are_interpreted_in_any_order(name: str) -> None:
    check_interpreted(name, plan_of(name), (0, 1) if name in in_two_orders() else (0,))


def check_interpreted(name: str, plan: DevicePlan, seeds: Sequence[int]) -> None:
    arguments = PROGRAMS[name][1]
    runs = [results(plan, arguments, seed) for seed in seeds]
    for found, again, wanted in zip(runs[0], runs[-1], interpret(traced(name), list(arguments)), strict=True):
        np.testing.assert_array_equal(found, again)  # whatever the order of threads, the result is the same to the bit
        assert_close(found, np.asarray(wanted, found.dtype), tolerance(found.dtype))


OTHERS = {
    "one block": replace(SMALL, grid=replace(SMALL.grid, blocks=1)),
    "few arrays": replace(SMALL, grid=replace(SMALL.grid, most_arrays=3)),
}
"""Targets of which programs that are small for a GPU ask too much."""


@pytest.mark.slow
@pytest.mark.parametrize("target", OTHERS)
def test_on_targets_that_are_small(target: str) -> None:
    """On each of them another quarter of the programs."""
    with together() as check:
        for name in [*PROGRAMS][[*OTHERS].index(target) :: 4]:
            with check(name):
                plan = plan_of(name, OTHERS[target])
                if plan.source != plan_of(name).source:
                    check_interpreted(name, plan, (0,))


@pytest.mark.slow
def test_nests_of_many_arrays_are_several_kernels() -> None:
    arrays = tuple(np.full(4, n, np.float32) for n in range(600))
    program = program_of(lambda *arrays: [x * 2 for x in arrays], arrays)
    plan = DevicePlan(lower(program, CUDA), CUDA)
    assert [len(launch.kernel.parameters) for launch in plan.launches.values()] == [512, 512, 176]


def test_expressions_that_need_no_memory_do_not_grow_deep() -> None:
    """As all terms of a sum do that are numbers, and values of all pairs, however many operations they take."""

    def of_pairs(x: Any) -> Any:
        y = x[:, None] * x
        for n in range(190):
            y = y * x + n
        return np.sum(y)

    numbers = tuple(np.float32(n) for n in range(700))
    for f, arguments in ((lambda *terms: sum(np.sin(x) for x in terms), numbers), (of_pairs, (np.ones(5000),))):
        lower(program_of(f, arguments), CUDA)


@pytest.mark.parametrize(
    "name",
    ["sums", "complex sums", "softmax of long rows", "rows and columns", "positions"],
)
def test_arrays_that_a_block_shares_are_used_again(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(device_build, "MOST_SHARED", 0)
    check_interpreted(name, planned(name, SMALL), (0, 1))


def one_by_one(x: Any) -> Any:
    for _ in range(100):
        x = x / np.sum(x) + np.sum(x * x)
    return x


@pytest.mark.parametrize(
    ("f", "shape"), [(lambda x: [np.sum((x + k) * x, axis=0) for k in range(20)], (4096, 300)), (one_by_one, 200)]
)
def test_however_many_folds_there_are_a_block_has_room_for_what_it_shares(f: Any, shape: Any) -> None:
    plan = DevicePlan(lower(program_of(f, (np.ones(shape, complex),)), CUDA), CUDA)
    texts = [kernel_text(launch.kernel) for launch in plan.launches.values()]
    shared = [sum(16 * int(n) for n in re.findall(r"= shared_c128\((?:i64\()?(\d+)", text)) for text in texts]
    assert 2**14 < max(shared) < 3 * 2**13


@in_groups("name", PROGRAMS)
def test_printed_kernels_are_read_back(name: str) -> None:
    for launch in plan_of(name).launches.values():
        text = re.sub(r"^ +#.*\n", "", kernel_text(launch.kernel), flags=re.MULTILINE)
        dtypes = [p.kind.dtype for p in launch.kernel.parameters if isinstance(p.kind, Pointer)]
        assert kernel_text(parse_kernel(text, launch.kernel.name, dtypes)) == text


def launches(name: str, target: Target = CUDA) -> list[tuple[int, int]]:
    return [(launch.blocks, launch.threads) for launch in plan_of(name, target).launches.values()]


def test_a_row_pass_is_one_launch_with_a_block_for_each_row() -> None:
    for name in ("softmax", "logsumexp", "layer norm"):
        assert launches(name) == [(20, 32)]


def test_all_pairs_are_computed_again_and_not_stored() -> None:
    many = np.broadcast_to(np.float32(0.5), 10**5)
    program = program_of(fnad.value_and_grad(potential, argnums=(0, 1)), (many, many))
    plan = DevicePlan(lower(program, CUDA), CUDA)
    assert plan.nbytes < 10**7
    pairs = [launch for launch in plan.launches.values() if launch.blocks > 1000]
    assert len(pairs) == 3  # the energy, the forces along rows, and along columns


def test_updates_are_sorted_and_parts_of_them_are_for_a_thread_each() -> None:
    plan = plan_of("updates of rows")
    sort = next(n for n, step in enumerate(plan.steps) if isinstance(step, LibraryCall))
    parts, whole = plan.steps[-2:]
    assert isinstance(plan.steps[sort - 1], Launch)
    assert isinstance(parts, Launch)
    assert isinstance(whole, Launch)
    assert (parts.blocks, parts.threads) == (whole.blocks, whole.threads) == (6, 8)
    few = program_of(added, (ROWS[:, :3], MANY[:16], TALL[:16]))
    assert not any(isinstance(step, LibraryCall) for step in DevicePlan(lower(few, SMALL), SMALL).steps)
    wide = program_of(added, (np.ones((20, 48)), MANY, np.ones((300, 48))))
    assert not any(isinstance(step, LibraryCall) for step in DevicePlan(lower(wide, SMALL), SMALL).steps)


def test_a_sorted_update_out_of_range_is_an_error() -> None:
    for wrong in (20, -21):
        indices = MANY.copy()
        indices[[17, 200]] = wrong
        plan = DevicePlan(lower(program_of(added, (ROWS[:, :3], MANY, TALL)), SMALL), SMALL)
        with pytest.raises(OutOfRangeError, match="an index is out of range"):
            results(plan, (ROWS[:, :3], indices, TALL), 0)


def parameters(name: str, target: Target = CUDA) -> list[list[str]]:
    return [[p.name for p in launch.kernel.parameters] for launch in plan_of(name, target).launches.values()]


@pytest.mark.parametrize("name", ["softmax", "softmax of short rows", "logsumexp", "layer norm"])
def test_rows_stay_in_registers(name: str) -> None:
    (launch,) = plan_of(name).launches.values()
    assert not [p.name for p in launch.kernel.parameters if p.name.startswith("t")]
    assert kernel_text(launch.kernel).count("x0[") == 1


def test_a_group_of_a_warp_has_a_short_row() -> None:
    for name in ("softmax of rows for a group", "sums of rows for a group"):
        (launch,) = plan_of(name).launches.values()
        text = kernel_text(launch.kernel)
        assert launch.threads == 8
        assert "i0 = " in text
        assert "thread() // 4" in text
        assert not re.search(r"shared_|\bbarrier", text)
        assert text.count("x0[") == 1
    (launch,) = plan_of("rows for a group, given back in another order").launches.values()
    assert "min(r0 + thread() // 4, 19)" not in kernel_text(launch.kernel)


def test_folds_over_rows_go_with_the_rows() -> None:
    rows, whole = parameters("layer norm, gradient")
    assert rows == ["x0", "x1", "x2", "out0", "fold0", "fold1"]
    assert sorted(whole) == ["fold0", "fold1", "out1", "out2"]


def test_a_row_that_is_too_long_for_registers_is_read_again() -> None:
    (launch,) = plan_of("softmax of rows without room in registers", SMALL).launches.values()
    assert kernel_text(launch.kernel).count("x0[") == 2
    assert "for n1" not in kernel_text(launch.kernel)
    assert launch.threads == 8


def test_a_row_that_is_too_long_for_so_many_threads_has_more() -> None:
    (launch,) = plan_of("softmax of long rows", SMALL).launches.values()
    assert kernel_text(launch.kernel).count("x0[") == 1
    assert launch.threads == 16


def test_what_is_no_longer_needed_leaves_its_registers_to_others() -> None:
    rows = np.broadcast_to(np.ones(()), (3000, 16384))
    (launch,) = DevicePlan(lower(program_of(softmax, (rows,)), CUDA), CUDA).launches.values()
    text = kernel_text(launch.kernel)  # the exponentials take the place of what they are of
    assert (text.count("x0["), text.count("out0["), launch.threads) == (1, 1, 512)


def test_neighbours_are_loaded_at_once_where_all_threads_have_some() -> None:
    assert "for j0 in range(4)" in plan_of("elements and a rest").source
    assert "for j0 in range(4)" not in plan_of("elements and a rest", CUDA).source
    assert "for j1 in range(4)" in plan_of("rows times columns").source
    assert "for j" not in plan_of("transpose").source


def test_a_sum_in_single_precision_has_no_double() -> None:
    for name in ("sums", "softmax", "layer norm, gradient"):
        assert "f64" not in plan_of(name).source


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax", "long sum", "scan", "running sums of few columns", "transpose"])
def test_every_barrier_is_needed(name: str) -> None:
    for launch in plan_of(name).launches.values():
        text, dtypes = kernel_text(launch.kernel), [p.kind.dtype for p in launch.kernel.parameters]
        for found in re.finditer(r"barrier\(\)", text):
            kernel = parse_kernel(f"{text[: found.start()]}pass{text[found.end() :]}", launch.kernel.name, dtypes)
            arrays = [np.full(6000, dtype.kind == "f", dtype) for dtype in dtypes]
            with pytest.raises(KernelError, match=r"a race|out of bounds"):  # also for an index that is not there yet
                run(Launch(kernel, launch.blocks, launch.threads), arrays, random.Random(0), SMALL.grid.warp)


def test_a_loop_around_little_is_one_launch() -> None:
    for name in ("loop that reads elsewhere", "scan", "while", "branches"):
        assert launches(name) == [(1, 64)]
        assert "barrier()" in plan_of(name).source
    assert launches("loop of numbers") == [(1, 1)]


def test_an_index_out_of_range_ends_a_loop_in_a_kernel() -> None:
    def search(x: Any) -> Any:
        return fnad.while_loop(lambda c: c[1] < 100, lambda c: (c[0] + x[c[1]], c[1] + 7), (x, 0))[0]

    plan = DevicePlan(lower(program_of(search, (WEIGHTS,)), SMALL), SMALL)
    assert all(isinstance(step, Launch) for step in plan.steps)
    with pytest.raises(OutOfRangeError, match="an index is out of range"):
        results(plan, (WEIGHTS,), 0)


def test_a_long_sum_is_divided() -> None:
    first, second = plan_of("long sum").launches.values()
    assert (first.blocks, second.blocks) == (6, 1)
    assert kernel_text(first.kernel).count("barrier()") == 1
    assert re.search(r"range\(\(block\(\) \* 8 \+ thread\(\)\) \* 4, 600, 192\)", kernel_text(first.kernel))


def test_a_long_running_fold_is_one_of_tiles() -> None:
    assert launches("running sums of few columns", SMALL) == [(6, 8), (44, 8)]
    assert launches("running sums of few columns") == [(1, 256)]
    program = program_of(lambda x: np.cumsum(x[::-1])[::-1], (FLAT,))
    plan = DevicePlan(lower(program, SMALL), SMALL, donated=[0])
    assert plan.donations
    assert [kernel_text(launch.kernel).count("ticket(") for launch in plan.launches.values()] == [0, 1, 0]


def test_neighbouring_threads_sum_neighbouring_columns() -> None:
    first, second = plan_of("tall sum").launches.values()
    assert "barrier" not in kernel_text(first.kernel) + kernel_text(second.kernel)
    assert "x0[i0 + 3 * i1]" in kernel_text(first.kernel)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_squared_differences_are_summed_when_their_mean_is_and_as_accurately(dtype: str) -> None:
    drawn, row = np.random.default_rng(7).standard_normal((6, 607)), np.arange(607)
    large = [1e4 + drawn[0], np.where(row % 9 == 0, 1e5, drawn[1]), 1e3 + row / 4, -3e5 + np.sign(drawn[2])]
    large += [np.where(row == 0, 1e6, drawn[3]), np.where(row > 600, -1e5, drawn[4]), drawn[5], np.full(607, 0.1)]
    x = np.stack(large, axis=1).astype(dtype)
    plan = DevicePlan(lower(program_of(lambda x: np.mean((x - np.mean(x, axis=0)) ** 2, axis=0), (x,)), SMALL), SMALL)
    reading = [launch for launch in plan.launches.values() if "x0[" in kernel_text(launch.kernel)]
    assert len(reading) == 1
    (found,) = results(plan, (x,), 0)
    unit = float(np.finfo(dtype).eps) / 2
    for column, value in zip(x.T.astype(float).tolist(), found.tolist(), strict=True):
        numbers = [Fraction(number) for number in column]
        mean = sum(numbers) / len(numbers)
        exact = float(sum((number - mean) ** 2 for number in numbers) / len(numbers))
        least = (unit * float(mean)) ** 2  # which the rounding of the mean itself adds
        assert abs(value - exact) <= 60 * unit * exact + 2 * least
    x[5, 0], x[6, 1], x[7, 2] = np.inf, -np.inf, np.nan
    (found,) = results(plan, (x,), 0)
    assert np.isnan(found).tolist() == [True] * 3 + [False] * 5


def test_what_is_the_same_for_all_columns_does_not_decide_who_sums_them() -> None:
    program = program_of(lambda x, each: np.sum(x * each[:, None], axis=0), (ROWS.T, WEIGHTS))
    for launch in DevicePlan(lower(program, CUDA), CUDA).launches.values():
        assert "barrier" not in kernel_text(launch.kernel)


@pytest.mark.slow
@pytest.mark.parametrize("count", [17, 3000])
def test_a_thread_loses_nothing_of_a_long_sum_to_rounding(count: int) -> None:
    """Small numbers after a large one are lost where each addition is rounded; only the joining of threads is."""
    x = np.concatenate([[1], np.full(8 * count, 2**-25)]).astype(np.float32)
    exact = np.sum(x, dtype=np.float64)
    for f in (np.sum, lambda x: np.sum(np.reshape(x[:-1], (-1, 4)), axis=0)[0] + np.sum(x[1:-1:4]) * 3):
        (found,) = results(DevicePlan(lower(program_of(f, (x,)), SMALL), SMALL), (x,), 0)
        assert abs(found - exact) <= 4 * 2**-24 * exact
