"""Strips of columns that blocks keep, by the harness, which runs a few blocks at the same time, and by the emulator."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.backends.cuda.executor import DeviceExecutor, plan
from fnad.backends.cuda.target import CUDA
from fnad.kernel.launches import DevicePlan
from fnad.kernel.strips import Strips
from fnad.lower.lowering import lower
from fnad.testing import assert_close, tolerance
from fnad.transforms.interpret import interpret
from tests.cuda import harness
from tests.cuda.harness import KernelError
from tests.cuda.ptx.device import Emulated
from tests.cuda.ptx.emulator import EmulationError
from tests.cuda.test_emulator import FOR_EVER, RACE, WITHOUT, planted
from tests.cuda.test_grid import SMALL, program_of, results
from tests.cuda.test_traffic import array, share_moved
from tests.together import together as cases


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=0))
    return e / np.sum(e, axis=0)


def log_softmax(x: Any) -> Any:
    shifted = x - np.max(x, axis=0)
    return shifted - np.log(np.sum(np.exp(shifted), axis=0))


def standardized(x: Any) -> Any:
    mean, deviation = np.mean(x, axis=0), np.std(x, axis=0)
    return (x - mean) / (deviation + 1), mean, deviation


def batch_norm(x: Any, axis: Any = 0) -> Any:
    centred = x - np.mean(x, axis=axis, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=axis, keepdims=True) + 1) * 3 + 1


def pulled_back(x: Any) -> Any:
    y, pull = fnad.vjp(batch_norm, x)
    return pull(y * y)


def weighted(x: Any) -> Any:
    return x * np.sum(x > 0, axis=0) - np.min(x, axis=0) * x[:, :1] + x[:1]


def in_a_loop(x: Any) -> Any:
    return fnad.fori_loop(0, 3, lambda _, y: x + y / (1 + np.sqrt(np.sum(y * y, axis=0))), x)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "softmax": softmax,
    "log softmax": log_softmax,
    "standardized": standardized,
    "batch norm": batch_norm,
    "its pullback": pulled_back,
    "weighted": weighted,
    "in a loop": in_a_loop,
    "log of a sum": lambda x: np.log(np.sum(np.exp(x - np.max(x, axis=0)), axis=0)),
    "reversed": lambda x: (x - np.mean(x, axis=0))[::-1] * x,
}
SHAPES = [(1, 9), (33, 1), (70, 5), (500, 4)], [(1, 5), (70, 1), (131, 6), (389, 5)]


def has_strips(planned: DevicePlan) -> bool:
    return any(isinstance(piece, Strips) for piece in planned._statements)


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(FUNCTIONS)), ids=list(FUNCTIONS))
def test_strips_of_any_size(place: int) -> None:
    """Of one block and of several, with and without columns and rows that fill no block, in one precision each."""
    rng, shares, name = np.random.default_rng(1), set[int](), list(FUNCTIONS)[place]
    with cases() as each:
        for n, shape in enumerate(SHAPES[place % 2]):
            x = rng.standard_normal(shape).astype(("f4", "f8")[(n + place // 2) % 2])
            program = program_of(FUNCTIONS[name], (x,))
            planned = DevicePlan(lower(program, SMALL), SMALL)
            together = {launch.together for launch in planned.launches.values()} if has_strips(planned) else {0}
            shares |= together
            with each(f"{shape}"):
                found = results(planned, (x,), 0)
                for array, wanted in zip(found, interpret(program, [x]), strict=True):
                    assert_close(array, np.asarray(wanted, array.dtype), tolerance(array.dtype))
                if max(together) > 1:  # blocks wait for others, in another order
                    for array, again in zip(found, results(planned, (x,), 1), strict=True):
                        np.testing.assert_array_equal(array, again)
    assert shares >= ({0} if name == "reversed" else {0, 1, 4})


@pytest.mark.parametrize("shape", [(6, 40, 9), (2, 3, 40, 5)])
def test_rows_of_several_axes_and_of_one_between(shape: Any) -> None:
    x = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    axes = [tuple(range(x.ndim - 1)), x.ndim - 2]
    for axis in axes:
        program = program_of(lambda x: batch_norm(x, axis), (x,))  # noqa: B023
        planned = DevicePlan(lower(program, SMALL), SMALL)
        assert has_strips(planned)
        for found, wanted in zip(results(planned, (x,), 0), interpret(program, [x]), strict=True):
            assert_close(found, np.asarray(wanted), tolerance(found.dtype))


def test_an_argument_that_is_given_away_may_be_overwritten() -> None:
    x = np.random.default_rng(3).standard_normal((300, 9)).astype(np.float32)
    for f, is_given in ((softmax, True), (lambda x: x - np.mean(x, axis=0) * x[:1], False)):
        program = program_of(f, (x,))
        planned = DevicePlan(lower(program, SMALL), SMALL, donated=[0])
        assert has_strips(planned)
        assert bool(planned.donations) == is_given
        for found, wanted in zip(results(planned, (x,), 0), interpret(program, [x]), strict=True):
            assert_close(found, np.asarray(wanted), tolerance(found.dtype))


@pytest.mark.slow
def test_strips_need_as_many_blocks_at_the_same_time_as_share_one(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(4).standard_normal((500, 9)).astype(np.float32)
    planned = DevicePlan(lower(program_of(softmax, (x,)), SMALL), SMALL)
    assert max(launch.together for launch in planned.launches.values()) == 4
    for seed in range(3):
        monkeypatch.setattr(harness, "RESIDENT", 4)
        results(planned, (x,), seed)
        monkeypatch.setattr(harness, "RESIDENT", 3)
        with pytest.raises(KernelError, match="blocks wait for ever"):
            results(planned, (x,), seed)


WIDE = {
    "softmax": (softmax, (array(100_000, 1000),)),
    "batch norm": (batch_norm, (array(100_000, 1000),)),
    "standardized": (standardized, (array(77_777, 1001),)),
    "of four axes": (lambda x: batch_norm(x, (0, 1, 2)), (array(128, 28, 28, 256),)),
    "of an axis between": (lambda x: batch_norm(x, 1), (array(64, 3136, 256),)),
    "few rows": (batch_norm, (array(100, 10**6),)),
    "double precision": (softmax, (array(50_000, 1000, dtype=np.float64),)),
    "the pullback": (pulled_back, (array(40_000, 1000),)),
}


@pytest.mark.parametrize("name", WIDE)
def test_elements_are_read_once(name: str) -> None:
    planned = DevicePlan(lower(program_of(*WIDE[name]), CUDA), CUDA)
    assert has_strips(planned)
    assert share_moved(planned) <= 1.05


def test_a_device_has_room_for_what_waits() -> None:
    program = program_of(softmax, (array(100_000, 1000),))
    for multiprocessors, together in [(1, 1), (20, 1), (99, 1), (100, 25), (132, 25), (200, 25)]:
        launches = plan(program, multiprocessors=multiprocessors).launches.values()
        assert max(launch.together for launch in launches) == together


# ---- the assembly ------------------------------------------------------------------------------------------------

emulated = pytest.mark.skipif("FNAD_TEST_EMULATOR" not in os.environ, reason="FNAD_TEST_EMULATOR is not set")


def ran(f: Callable[[Any], Any], x: Any, seed: int | None) -> tuple[list[Any], Emulated]:
    """The results of a program in the emulator, called twice."""
    device = Emulated(seed)
    run = DeviceExecutor(DevicePlan(lower(program_of(f, (x,)), CUDA), CUDA), device)
    run([x[::-1].copy()])
    return [device.to_host(result) for result in run([x])], device


@emulated
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["softmax", "standardized", "its pullback", "in a loop"])
def test_in_any_order_of_blocks_and_warps(name: str) -> None:
    rng = np.random.default_rng(5)
    with cases() as each:
        for shape, dtype in [((33, 70), "f4"), ((999, 33), "f4"), ((2050, 9), "f8")]:
            x = rng.standard_normal(shape).astype(dtype)
            wanted = interpret(program_of(FUNCTIONS[name], (x,)), [x])
            first: list[Any] = []
            for seed in (None, 1):
                with each(f"{shape} {dtype} {seed}"):
                    found, device = ran(FUNCTIONS[name], x, seed)
                    assert not device.findings
                    first = first or found
                    for one, again, other in zip(found, first, wanted, strict=True):
                        np.testing.assert_array_equal(one, again)
                        assert_close(one, np.asarray(other, one.dtype), tolerance(one.dtype))


@emulated
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("what", WITHOUT)
def test_strips_need_their_tickets_and_marks(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Without a part of the protocol there is a race, or blocks wait for what never comes."""
    problem = planted(monkeypatch, what)
    x = np.random.default_rng(6).standard_normal((600, 70)).astype(np.float32)
    if problem is FOR_EVER:
        with pytest.raises(EmulationError, match=problem):
            ran(softmax, x, 1)
    else:
        assert {finding.kind for finding in ran(softmax, x, 1)[1].findings} == {RACE}
