"""What runs as a graph, or guarded, without a wait for the device: it gives what the interpreter gives, each time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fnad
from fnad.backends.cuda import driver, executor
from fnad.backends.cuda.captures import LARGEST_GRAPH, nodes_of
from fnad.backends.cuda.executor import compile_program
from fnad.errors import LoopLimitError, OutOfRangeError
from fnad.transforms.pipeline import simplify
from tests.gpu import SMALL as FEW_THREADS
from tests.gpu import CudaError, Simulated
from tests.together import together

DRAWN = np.random.default_rng(0)
LONG, LONGER = DRAWN.standard_normal(80), DRAWN.standard_normal(2100)
"""More than one block does in a loop: of a device of few threads, and of a GPU."""

SMALL = DRAWN.standard_normal((20, 16)) / 9


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulated]:
    monkeypatch.setattr(executor, "CUDA", FEW_THREADS)
    with driver.using(Simulated(warp=4)) as device:
        yield cast("Simulated", device)


def calls_of(device: Simulated, f: Any, *args: Any) -> tuple[Any, list[str]]:
    """The results of a call, and what it asks of the device."""
    device.calls.clear()
    found = f(*args)
    calls = list(device.calls)
    return fnad.to_host(found), calls


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


def test_a_program_called_with_the_same_arrays_again_is_one_graph(device: Simulated) -> None:
    f, x = fnad.jit(softmax, donate_argnums=0, device="cuda"), fnad.to_device(LONG)
    wanted = LONG
    for n in range(4):
        x = f(x)
        wanted = softmax(wanted)
        assert_allclose(x.memory, wanted, rtol=1e-12)
        assert device.calls.count("capture") == (n > 0)
    device.calls.clear()
    x = f(x)
    assert device.calls == ["adopt", "replay"]
    assert_allclose(x.memory, softmax(wanted), rtol=1e-12)


def stepped(x: Any) -> Any:
    """Iterations with products at fixed places and kernels that read the counter."""
    return fnad.fori_loop(0, 70, lambda i, c: np.tanh(c @ (x.T @ x)) + i / 70, x)


def recurrent(x: Any, w: Any) -> Any:
    """Products that begin where the counter says."""
    return fnad.scan(lambda c, a: (np.tanh(c @ w + a), np.sum(c @ a.T)), x[0], x)


def backwards(x: Any) -> Any:
    return fnad.scan(lambda c, a: (c * 0.9 + a, c), 0 * x[0], x, reverse=True)


@pytest.mark.slow
def test_long_loops_are_graphs_of_several_iterations(device: Simulated) -> None:
    f, x = fnad.jit(stepped, device="cuda"), fnad.to_device(SMALL)
    wanted = stepped(SMALL)
    for n in range(3):
        found, calls = calls_of(device, f, x)
        assert_allclose(found, wanted, rtol=1e-10)
        assert not {"to_host", "synchronize", "copy"} & {*calls}
        assert calls.count("replay") == (4 if n == 0 else 1)  # which is all of it, when it comes again


@pytest.mark.slow
def test_short_loops_are_part_of_a_graph(device: Simulated) -> None:
    args = DRAWN.standard_normal((5, 20, 20)) / 9, DRAWN.standard_normal((20, 20)) / 9
    f, given = fnad.jit(recurrent, device="cuda"), fnad.to_device(args)
    wanted = recurrent(*args)
    for n in range(4):
        found, calls = calls_of(device, f, *given)
        assert_allclose(found[0], wanted[0], rtol=1e-12)
        assert_allclose(found[1], wanted[1], rtol=1e-12)
        assert calls.count("replay") == (n > 0)


def test_loops_with_products_at_the_counter_are_unrolled_even_if_long(device: Simulated) -> None:
    x, w = np.ones((400, 20, 20)), np.ones((20, 20))
    found = [
        compile_program(simplify(fnad.make_program(f)(x, w).program))
        for f in (recurrent, lambda x, w: fnad.scan(lambda c, a: (np.tanh(c @ w) @ a, None), x[0], x)[0])
    ]
    assert [sum(map(nodes_of, run.plan.steps)) > LARGEST_GRAPH for run in found] == [True, True]
    assert [run._is_graph for run in found] == [False, True]


def test_loops_go_backwards(device: Simulated) -> None:
    rows = np.stack([LONG, -LONG, LONG**2])
    for found, wanted in zip(fnad.jit(backwards, device="cuda")(fnad.to_device(rows)), backwards(rows), strict=True):
        assert_allclose(found.memory, wanted, rtol=1e-12)


def halved(x: Any, least: Any) -> Any:
    """A loop of unknown length with a product, whose test is a kernel."""
    step = lambda c: (c[0] / 2 + 0.001 * np.tanh(c[0] @ (x.T @ x)), c[1] + 1)  # noqa: E731
    return fnad.while_loop(lambda c: np.sum(c[0] ** 2) > least, step, (x, 0))


@pytest.mark.slow
def test_loops_of_unknown_length_are_asked_seldom(device: Simulated) -> None:
    x = fnad.to_device(SMALL)
    f = fnad.jit(halved, device="cuda")
    with together() as check:
        for least, asked in ((10.0, 1), (1e-2, 4), (1e-30, 7)):
            with check(least):
                wanted, steps = halved(SMALL, least)
                found, calls = calls_of(device, f, x, least)
                assert_allclose(found[0], wanted, rtol=1e-9)
                assert found[1] == steps
                assert calls.count("to_host") == asked
                assert ("replay" in calls) == (steps > 31)


def test_nothing_is_no_launch(device: Simulated) -> None:
    """The number of iterations after a loop is that of residual stacks, which this one does not have."""
    run = compile_program(simplify(fnad.make_program(halved)(SMALL, 1.0).program))
    assert all(launch.kernel.parameters for launch in run.launches)


def chosen(x: Any, n: Any) -> Any:
    """Branches in a loop, whose number it computes."""

    def step(i: Any, c: Any) -> Any:
        inner = lambda c: fnad.cond(np.sum(c) > 0, lambda c: c * 0.5, lambda c: c + 1.0, c)  # noqa: E731
        return fnad.switch((i + n) % 4, [lambda c: c + i, np.sin, inner, lambda c: c[::-1]], c)

    return fnad.fori_loop(0, 5, step, x)


@pytest.mark.slow
def test_branches_are_launches_that_find_out_themselves(device: Simulated) -> None:
    f, x = fnad.jit(chosen, device="cuda"), fnad.to_device(LONG)
    for n in range(3):
        found, calls = calls_of(device, f, x, n)
        assert_allclose(found, chosen(LONG, n), rtol=1e-12, atol=1e-12)
        assert "to_host" not in calls


def grown(x: Any, n: Any) -> Any:
    """The reverse mode of a loop of unknown length has residual stacks."""
    step = lambda c: (np.sin(c[0]) * 1.1 + 0.1 * x, c[1] + 1)  # noqa: E731
    return np.sum(fnad.while_loop(lambda c: c[1] < n, step, (x, 0))[0] ** 2)


@pytest.mark.slow
def test_residual_stacks_grow(device: Simulated) -> None:
    f = fnad.jit(fnad.value_and_grad(grown), device="cuda")
    with together() as check:
        for n in (3, 18, 0):
            with check(n):
                found = fnad.to_host(f(fnad.to_device(LONG), n))
                value, gradient = fnad.value_and_grad(grown)(LONG, n)
                assert_allclose(found[0], value, rtol=1e-11)
                assert_allclose(found[1], gradient, rtol=1e-11)


def test_residual_stacks_are_results(device: Simulated) -> None:
    for n in (0, 5):
        with fnad.device("cuda"):
            _, pull = fnad.vjp(lambda x, n=n: grown(x, n), fnad.to_device(LONG[:40]))
            (found,) = pull(1.0)
        assert_allclose(fnad.to_host(found), fnad.grad(grown)(LONG[:40], n), rtol=1e-12)


def test_results_that_become_arguments_have_two_graphs(device: Simulated) -> None:
    f, x, wanted = fnad.jit(softmax, device="cuda"), fnad.to_device(LONG), LONG
    for _ in range(8):
        x, wanted = f(x), softmax(wanted)
        assert_allclose(x.memory, wanted, rtol=1e-12)
    assert device.calls.count("capture") == 2


def test_arrays_that_never_come_again_are_no_reason_for_graphs(device: Simulated) -> None:
    f = fnad.jit(softmax, device="cuda")
    kept = [f(fnad.to_device(LONG)) for _ in range(12)]
    assert "capture" not in device.calls
    assert_array_equal(kept[0].memory, kept[-1].memory)


@pytest.mark.slow
def test_what_cannot_be_captured_runs_kernel_by_kernel(device: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    def capture(*args: Any) -> None:
        device.calls.append("capture")
        raise CudaError("operation not permitted when stream is capturing")

    monkeypatch.setattr(device, "capture", capture)
    x = fnad.to_device(SMALL)
    for f in (fnad.jit(stepped, device="cuda"), fnad.jit(lambda x: softmax(x) @ x.T, device="cuda")):
        device.calls.clear()
        first, again, last = (fnad.to_host(f(x)) for _ in range(3))
        assert_array_equal(first, again)
        assert_array_equal(first, last)
        assert device.calls.count("capture") == 1


def solved(a: Any, x: Any, times: int = 1) -> Any:
    """Two launches or more before each call of a library, and after the last one."""
    y = x[:6]
    for _ in range(times):
        y = np.linalg.solve(a, np.cumsum(x * np.sum(y))[:6] / np.sum(softmax(x) * x))
    return softmax(x * np.sum(y)) - np.cumsum(x)


def alternating(a: Any, x: Any) -> Any:
    """One launch at a time between calls of a library."""
    return np.linalg.inv(np.linalg.inv(a + x[:6]) * 2) + 1


def solved_in_loop(a: Any, x: Any) -> Any:
    return fnad.fori_loop(0, 5, lambda i, y: np.linalg.solve(a, softmax(x * np.sum(y))[:6] + i), x[:6])


SYSTEM = SMALL[:6, :6] + 3 * np.eye(6)


@pytest.mark.slow
@pytest.mark.parametrize(("f", "stretches", "calls_of_library"), [
    (solved, 2, 1),
    (lambda a, x: solved(a, x, 10), 11, 10),
    (alternating, 0, 2),
    (solved_in_loop, 5, 5),
])  # fmt: skip
def test_stretches_between_calls_of_a_library_are_graphs(
    device: Simulated, f: Any, stretches: int, calls_of_library: int
) -> None:
    run, given, wanted = fnad.jit(f, device="cuda"), fnad.to_device((SYSTEM, LONG)), f(SYSTEM, LONG)
    counts: list[tuple[int, ...]] = []
    for _ in range(5):
        found, calls = calls_of(device, run, *given)
        assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
        counts.append(tuple(map(calls.count, ("launch", "replay", "capture", "evaluate"))))
    assert counts[-1][1:] == (stretches, 0, calls_of_library)
    assert counts[-1] == counts[-2]
    assert (counts[-1][0] <= counts[0][0] - 2 * stretches) or f is solved_in_loop


@pytest.mark.slow
def test_gradients_with_calls_of_a_library_are_graphs(device: Simulated) -> None:
    f = fnad.grad(lambda a, x: np.sum(np.sin(solved(a, x))), argnums=(0, 1))
    run, given, wanted = fnad.jit(f, device="cuda"), fnad.to_device((SYSTEM, LONG)), f(SYSTEM, LONG)
    for n in range(4):
        found, calls = calls_of(device, run, *given)
        for x, y in zip(found, wanted, strict=True):
            assert_allclose(x, y, rtol=1e-8, atol=1e-11)
        if n == 3:
            assert (calls.count("launch"), calls.count("replay"), calls.count("capture")) == (0, 3, 0)


def taken(x: Any, at: Any, n: Any) -> Any:
    """A loop whose iterations may fail, and that goes on for ever then."""
    step = lambda c: (c[0] + x[(at[c[1]],)] * x, c[1] + 1)  # noqa: E731
    return fnad.while_loop(lambda c: c[1] != n, step, (x, 0), max_steps=9)[0]


def test_faults_in_loops_are_told_late_and_the_next_call_is_right(device: Simulated) -> None:
    f, x = fnad.jit(taken, device="cuda"), fnad.to_device(LONG)
    right, wrong = np.zeros(20, int), np.where(np.arange(20) == 5, 10**6, 0)
    with pytest.raises(OutOfRangeError):
        f(x, wrong, 8)
    with pytest.raises(LoopLimitError):
        f(x, right, -1)
    assert_allclose(fnad.to_host(f(x, right, 8)), taken(LONG, right, 8), rtol=1e-12)


def interrupted_after(times: int, function: Any) -> Any:
    left = iter(range(times))

    def run(*args: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return function(*args)

    return run


@pytest.mark.slow
def test_an_interrupt_leaves_the_program_usable(device: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = fnad.jit(lambda x: stepped(x) * 2, device="cuda"), fnad.to_device(SMALL)
    # while it is captured, between two graphs, and in a kernel of one
    for name, after in (("run_or_note", 30), ("replay", 1), ("run_kernel", 100)):
        with monkeypatch.context() as patch:
            patch.setattr(Simulated, name, interrupted_after(after, getattr(Simulated, name)))
            with pytest.raises(KeyboardInterrupt):
                f(x)
        assert device.captured is None
    assert_allclose(fnad.to_host(f(x)), 2 * stepped(SMALL), rtol=1e-10)


def test_a_callback_keeps_its_loop_on_the_host(device: Simulated) -> None:
    seen: list[float] = []

    def step(i: Any, c: Any) -> Any:
        fnad.debug.callback(lambda i: seen.append(int(i)), i)
        return np.tanh(c) + i

    f = fnad.jit(lambda x: fnad.fori_loop(0, 3, step, x), device="cuda")
    for _ in range(3):
        f(fnad.to_device(LONG))
    assert seen == [0, 1, 2] * 3
    assert device.calls.count("to_host") == 9


def test_memory_is_kept_for_the_next_call_and_given_back(device: Simulated) -> None:
    compiled = fnad.jit(lambda x: np.cumsum(softmax(x))[::-1] * 2, device="cuda")
    x = fnad.to_device(LONG)
    first = compiled(x)
    device.calls.clear()
    again = compiled(x)
    assert device.calls.count("empty") == 1  # of the result
    fnad.clear_cache()
    assert_array_equal(compiled(x).memory, first.memory)
    assert_array_equal(again.memory, first.memory)


PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "kernels": (softmax, (LONGER,)),
    "long loop": (stepped, (SMALL,)),
    "products at the counter": (recurrent, (DRAWN.standard_normal((5, 20, 20)) / 9, np.eye(20) / 3)),
    "backwards": (backwards, (np.stack([LONGER, -LONGER, LONGER**2]),)),
    "unknown length": (halved, (SMALL, 1e-9)),
    "branches": (chosen, (LONGER, 1)),
    "residual stacks": (fnad.value_and_grad(grown), (LONGER, 18)),
    "calls of a library": (solved, (SYSTEM, LONGER, 3)),
    "calls of a library in a loop": (solved_in_loop, (SYSTEM, LONGER)),
}
"""What the tests of a GPU run, too."""


@pytest.mark.slow
def test_the_programs_for_a_gpu_can_be_captured(device: Simulated) -> None:
    for name in ("kernels", "products at the counter", "backwards"):
        run_again(*PROGRAMS[name])
    assert device.calls.count("capture") == 3


def run_again(f: Any, args: tuple[Any, ...]) -> list[Any]:
    """The results of the third call with the same arrays, when all that can be captured has been."""
    traced = fnad.make_program(f)(*args)
    run, wanted = compile_program(simplify(traced.program)), fnad.tree.leaves(f(*args))
    given = [fnad.to_device(np.asarray(x)) for x in args]
    found: list[Any] = []
    for _ in range(3):
        found = run(given)
    assert run._is_captured
    for result, expected in zip(fnad.to_host(found), wanted, strict=True):
        assert_allclose(result, expected, rtol=1e-9, atol=1e-12)
    return found


def test_a_number_is_copied_if_it_is_another_one(device: Simulated) -> None:
    f, x = fnad.jit(lambda x, n, m: softmax(x) * n + m, device="cuda"), fnad.to_device(LONG)
    copies = []
    for n, m in ((2.0, 1), (2.0, 1), (-0.0, 1), (0.0, 1), (0.0, 2), (np.nan, 2), (np.nan, 2), (2.0, 1)):
        found, calls = calls_of(device, f, x, n, m)
        assert_allclose(found, softmax(LONG) * n + m, rtol=1e-12)
        copies.append(calls.count("to_device"))
    assert copies[0] >= 2
    assert copies[1:] == [0, 1, 1, 1, 1, 0, 2]


def test_streams_share_no_memory_and_no_graphs(device: Simulated) -> None:
    f, x = fnad.jit(lambda x: np.cumsum(softmax(x)) + 3, device="cuda"), fnad.to_device(LONG)
    found = []
    for n in range(6):
        device.current = n % 2
        found.append(calls_of(device, f, x))
    assert [calls.count("empty") > 1 for _, calls in found] == [True, True, *[False] * 4]
    assert sum(calls.count("capture") for _, calls in found) == 2
    for result, _ in found:
        assert_array_equal(result, found[0][0])


def single(x: Any) -> Any:
    return softmax(x.T @ x)


def iterated(x: Any) -> Any:
    """A loop, of which several iterations are one graph."""
    return fnad.fori_loop(0, 9, lambda i, c: np.tanh(c @ (x.T @ x)) + i / np.float32(9), x)


@pytest.mark.slow
@pytest.mark.parametrize("f", [single, iterated, lambda x: fnad.grad(lambda x: np.sum(single(x) ** 2))(x)])
def test_precision_of_products_is_that_in_force_at_each_call(
    device: Simulated, f: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "TOGETHER", 2)
    monkeypatch.setattr(executor, "LEAST", 4)
    x = DRAWN.standard_normal((4, 32)).astype(np.float32) / 9
    run, given = fnad.jit(f, device="cuda"), fnad.to_device(x)
    found: dict[str, list[Any]] = {"float32": [], "tensorfloat32": []}
    for _ in range(3):  # first, when graphs are captured, and when they are replayed
        for precision, results in found.items():
            with fnad.config.override(matmul_precision=precision):
                results.append(fnad.to_host(run(given)))
    assert "replay" in device.calls
    for results in found.values():
        assert_array_equal(results[1], results[0])
        assert_array_equal(results[2], results[0])
    precise, fast = (results[0] for results in found.values())
    wanted = f(x.astype(np.float64))
    scale = np.max(np.abs(wanted))
    assert np.max(np.abs(precise - wanted)) < 3e-6 * scale
    assert 1e-5 * scale < np.max(np.abs(fast - wanted)) < 1e-2 * scale


def test_precision_of_products_is_for_single_precision_on_the_device(device: Simulated) -> None:
    x = SMALL.astype(np.float32)
    f = lambda x: x @ x.T  # noqa: E731
    for run, given in ((fnad.jit(f, device="cuda"), fnad.to_device(SMALL)), (fnad.jit(f), x), (f, x)):
        before = fnad.to_host(run(given))
        with fnad.config.override(matmul_precision="tensorfloat32"):
            assert_array_equal(fnad.to_host(run(given)), before)


def test_a_graph_of_a_program_that_fails_is_made_again(device: Simulated) -> None:
    f = fnad.jit(lambda x, at: softmax(x)[(at,)] * np.sum(x), device="cuda")
    x, at = fnad.to_device(LONG), fnad.to_device(np.array([1, 5, 7]))
    for n in range(5):
        at.memory[2] = 10**6 if n == 3 else n
        if n == 3:
            with pytest.raises(OutOfRangeError):
                f(x, at)
        else:
            wanted = softmax(LONG)[[1, 5, n]] * np.sum(LONG)
            assert_allclose(fnad.to_host(f(x, at)), wanted, rtol=1e-11)
    assert "replay" in device.calls
