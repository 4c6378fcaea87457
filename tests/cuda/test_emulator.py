"""The PTX that a GPU would get, run by an emulator: right values, no race, no access out of bounds.

`FNAD_TEST_EMULATOR=1` runs it, in some minutes.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

import fnad
from fnad.backends.cuda.executor import DeviceExecutor
from fnad.backends.cuda.kept import kept_ptx
from fnad.backends.cuda.target import CUDA
from fnad.errors import FnadError, LoweringError
from fnad.ir.program import Program
from fnad.kernel.launches import DevicePlan
from fnad.lower.lowering import lower
from fnad.testing import SCALE, assert_close, tolerance
from fnad.transforms.interpret import interpret
from tests.catalogue.cases import CASES
from tests.cuda.ptx import device as ptx_device
from tests.cuda.ptx import emulator
from tests.cuda.ptx.device import Emulated
from tests.cuda.ptx.emulator import LANES, EmulationError, Finding
from tests.cuda.test_grid import PROGRAMS, program_of, softmax
from tests.together import together

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif("FNAD_TEST_EMULATOR" not in os.environ, reason="FNAD_TEST_EMULATOR is not set"),
]


ALIGNED = "read beyond the end, within 16 bytes"
"""LLVM loads three numbers as four, which are in memory that is aligned to so many bytes."""


def check(program: Program, arguments: Sequence[Any], seed: int | None = None) -> None:
    """Compare what the PTX of a program computes with the interpreter."""
    try:
        plan = DevicePlan(lower(program, CUDA), CUDA)
    except LoweringError:
        return
    device = Emulated(seed)
    operands = list(map(np.asarray, arguments))
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        try:
            wanted = interpret(program, operands)
        except FnadError as error:
            with pytest.raises(type(error)):
                DeviceExecutor(plan, device)(operands)
            return
        try:
            found = [device.to_host(array) for array in DeviceExecutor(plan, device)(operands)]
        except LoweringError as error:
            assert "cuda" in str(error)  # noqa: PT017
            return
    for one, other in zip(found, map(np.asarray, wanted), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        assert_close(one, other, tolerance(other.dtype), SCALE)
    findings = [found for found in device.findings if found.kind != ALIGNED]
    assert not findings, findings[0]


@pytest.mark.parametrize("part", range(4))
def test_each_primitive_in_the_emulator_is_interpreted(part: int) -> None:
    with together() as each:
        for case in CASES[part::16]:
            with each(str(case)):
                check(case.program(), case.operands)


@pytest.mark.parametrize("seed", [None, 1])
def test_programs_in_the_emulator_are_interpreted(seed: int | None) -> None:
    with together() as each:
        for name, (function, arguments) in PROGRAMS.items():
            with each(name):
                check(program_of(function, arguments), arguments, seed)


def normalized(x: Any, axis: int) -> Any:
    centred = x - np.mean(x, axis=axis, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=axis, keepdims=True) + 1)


ALONG: dict[str, Callable[[Any, int], Any]] = {
    "sum": lambda x, axis: np.sum(x, axis=axis),
    "max": lambda x, axis: np.max(x, axis=axis),
    "argmax": lambda x, axis: np.argmax(x, axis=axis),
    "cumsum": lambda x, axis: np.cumsum(x, axis=axis),
    "running maximum": lambda x, axis: np.maximum.accumulate(x, axis=axis),
    "softmax": lambda x, axis: np.swapaxes(softmax(np.swapaxes(x, axis, -1)), axis, -1),
    "normalized": normalized,
    "transposed": lambda x, axis: np.swapaxes(x, axis, 0) * 2,
    "scaled": lambda x, axis: x * np.sum(x, axis=0) + x[:1],
}
SHAPES = [
    ((1, 5), 1),
    ((3, 31), 1),
    ((33, 64), 0),
    ((40, 33), 0),
    ((3, 255), 1),
    ((2, 257), 1),
    ((257, 3), 0),
    ((2, 129, 5), 1),
]
SHAPES += [
    ((5, 1000), 1),
    ((2, 1002), 1),
    ((70, 1001), 1),
    ((3, 4100), 1),
    ((600, 40), 0),
    ((2, 40, 36), 2),
    ((1, 70000), 1),
]


@pytest.mark.parametrize("name", ALONG)
def test_folds_and_copies_of_any_size_in_the_emulator_are_interpreted(name: str) -> None:
    """Each fold and copy along each axis, at sizes around those of vectors, warps, blocks and tiles."""
    rng = np.random.default_rng(5)
    with together() as each:
        for shape, axis in SHAPES:
            for dtype in ("f4", "f8") if shape[-1] < 2000 else ("f4",):
                x = rng.standard_normal(shape).astype(dtype)
                with each(f"{shape} {axis} {dtype}"):
                    check(program_of(lambda x: ALONG[name](x, axis), (x,)), (x,))  # noqa: B023


@pytest.mark.parametrize(("width", "dtype"), [(50, "f4"), (36, "f4"), (37, "f4"), (38, "f8")])
def test_rows_of_groups_begin_with_sectors(width: int, dtype: str) -> None:
    """Rows of no whole number of sectors: the first threads of a group leave out what is before the row."""
    x = np.random.default_rng(4).standard_normal((1101, width)).astype(dtype)
    program = program_of(softmax, (x,))
    assert f" - i0 * {width} % " in DevicePlan(lower(program, CUDA), CUDA).source
    check(program, (x,))


def running_sums(x: Any, seed: int | None, calls: int = 1) -> tuple[Any, list[Finding]]:
    """The running sums of a vector, by a program that is called several times, and the findings of the emulator."""
    device = Emulated(seed)
    program = program_of(np.cumsum, (x,))
    run = DeviceExecutor(DevicePlan(lower(program, CUDA), CUDA), device)
    results = [run([x * (calls - n)])[0] for n in range(calls)]
    return device.to_host(results[-1]), device.findings


@pytest.mark.parametrize("at_once", [256, LANES])
def test_tiles_wait_for_those_before_in_any_order_of_the_blocks(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """One block after the other, in order and shuffled, and several at once: the same sums to the bit, and no race."""
    monkeypatch.setattr(emulator, "LANES", at_once)
    rng = np.random.default_rng(3)
    with together() as each:
        for size in (4 * 4096, 10 * 4096 + 4, 30_002, 9_001):  # of tiles of vectors of four, two and one
            x = rng.standard_normal(size).astype("f4")
            sums = []
            for seed in (None, 1, 2):
                with each(f"{size} {seed}"):
                    found, findings = running_sums(x, seed, calls=2)
                    assert not findings
                    sums.append(found)
                    np.testing.assert_array_equal(found, sums[0])
            with each(f"{size}"):
                np.testing.assert_allclose(sums[0], np.cumsum(x, dtype=float), atol=1e-6 * np.sum(np.abs(x)))


RACE, FOR_EVER = "race in global memory", "threads wait for what no thread stores"
WITHOUT = {
    "release": ("st.release.gpu", "st.relaxed.gpu", RACE),
    "acquire": ("ld.acquire.gpu", "ld.relaxed.gpu", RACE),
    "tickets": (
        r"atom\.global\.add\.u64 \t(%rd\d+), .*",
        r"mov.u32 %w, %ctaid.x;\n\tcvt.u64.u32 \1, %w;",
        FOR_EVER,
    ),
    "marks": (r"st\.release\.gpu\.u64 .*", "", FOR_EVER),
}


def planted(monkeypatch: pytest.MonkeyPatch, what: str) -> str:
    """Emulate programs without a part of the protocol by which blocks wait; return the problem that they have."""
    pattern, text, problem = WITHOUT[what]

    def changed(launches: Any, arch: str) -> bytes:
        found = re.sub(pattern, text, kept_ptx(launches, arch).decode())
        return found.replace("\t.reg .pred", "\t.reg .b32 \t%w;\n\t.reg .pred").encode()

    monkeypatch.setattr(emulator, "LANES", 256)
    monkeypatch.setattr(ptx_device, "kept_ptx", changed)
    return problem


@pytest.mark.timeout(60)
@pytest.mark.parametrize("what", WITHOUT)
def test_tiles_need_their_tickets_and_marks(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Without a part of the protocol there is a race, or blocks wait for what never comes."""
    problem = planted(monkeypatch, what)
    x = np.ones(16 * 4096, np.float32)
    if problem is FOR_EVER:
        with pytest.raises(EmulationError, match=problem):
            running_sums(x, 1)
    else:
        assert {finding.kind for finding in running_sums(x, 1)[1]} == {problem}


def test_sums_are_infinite_where_an_element_is() -> None:
    x = np.ones((90, 70), np.float32)
    x[17, 5], x[60, 60], x[61, 60] = np.inf, np.inf, -np.inf
    check(program_of(lambda x: [np.sum(x), np.sum(x, axis=0), np.sum(x, axis=1), np.cumsum(x, axis=1)], (x,)), (x,))


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_of_any_size_in_single_precision(name: str) -> None:
    """By integers instead of double precision: within three units in the last place of the exact values."""
    words = np.concatenate([np.arange(0x47C00000, 0x7F800000, 0x1004D), np.arange(0x42000000, 0x42010000, 101)])
    x = words.astype(np.uint32).view(np.float32)
    program = program_of(getattr(np, name), (x,))
    device = Emulated()
    (found,) = DeviceExecutor(DevicePlan(lower(program, CUDA), CUDA), device)([x])
    with mpmath.workprec(400):
        exact = np.array([float(getattr(mpmath, name)(mpmath.mpf(float(angle)))) for angle in x])
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(float)
    assert np.max(np.abs(device.to_host(found) - exact) / unit) < 3


def test_gradients_are_right_in_any_order_of_the_threads() -> None:
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((37, 50)).astype(np.float32), rng.standard_normal(50).astype(np.float32)
    for seed in range(3):
        check(
            program_of(fnad.grad(lambda x, w: np.sum(np.tanh(softmax(x * w).T @ x)), argnums=(0, 1)), (x, w)),
            (x, w),
            seed,
        )
