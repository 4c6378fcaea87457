"""The bytes that programs move on a device, beside the least, and the threads that a multiprocessor has room for."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from math import ceil
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import fnad
from fnad.backends.cpu.target import CPU
from fnad.backends.cuda.explain import Resources, launch_lines, occupancy
from fnad.backends.cuda.target import CUDA
from fnad.errors import LoweringError
from fnad.kernel.launches import DevicePlan, DeviceProducts, Launch
from fnad.kernel.traffic import moved
from fnad.lower.loop_ir import NestLoop, Product
from fnad.lower.lowering import lower
from tests.cuda.harness import Block, Watched
from tests.cuda.ptx.counts import of_program
from tests.cuda.test_grid import SMALL, layer_norm, plan_of, program_of, softmax
from tests.cuda.test_ptx import has_libdevice

N, ROWS, COLUMNS = 10**8, 10**5, 1000
F4 = np.dtype(np.float32)


def array(*shape: int, dtype: Any = F4) -> np.ndarray:
    """An array of any size that takes no memory."""
    return np.broadcast_to(np.ones((), dtype), shape)


def cross_entropy(x: Any, labels: Any) -> Any:
    shifted = x - np.max(x, axis=1, keepdims=True)
    return -np.mean(np.sum(labels * (shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))), axis=1))


def black_scholes(s: Any, k: Any, t: Any, r: Any, v: Any) -> Any:
    spread = v * np.sqrt(t)
    d = (np.log(s / k) + (r + v * v / 2) * t) / spread
    return np.sum(s * ndtr(d) - k * np.exp(-r * t) * ndtr(d - spread))


def layer_norm_and_pullback(x: Any, gain: Any, bias: Any, cotangent: Any) -> Any:
    y, pull = fnad.vjp(layer_norm, x, gain, bias)
    return y, pull(cotangent)


def cross_entropy_of_classes(x: Any, classes: Any) -> Any:
    largest = np.max(x, axis=1, keepdims=True)
    chosen = np.take_along_axis(x - largest, classes[:, None], axis=1)
    return np.mean(np.log(np.sum(np.exp(x - largest), axis=1)) - chosen[:, 0])


MATRIX, VECTOR = array(ROWS, COLUMNS), array(COLUMNS)
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elements, with a gradient": (fnad.value_and_grad(lambda x: np.sum(np.sin(x) * np.exp(x))), (array(N),)),
    "the same in double precision": (
        fnad.value_and_grad(lambda x: np.sum(np.sin(x) * np.exp(x))),
        (array(N, dtype=np.float64),),
    ),
    "softmax": (softmax, (MATRIX,)),
    "softmax of short rows": (softmax, (array(N // 4, 4),)),
    "softmax of rows for a group": (softmax, (array(N // 50, 50),)),
    "softmax of long rows": (softmax, (array(N // 8000, 8000),)),
    "softmax of longer rows": (softmax, (array(N // 32000, 32000),)),
    "softmax of longer rows in double precision": (softmax, (array(N // 16000, 16000, dtype=np.float64),)),
    "cross-entropy of longer rows, with a gradient": (
        fnad.value_and_grad(cross_entropy),
        (array(N // 16000, 16000), array(N // 16000, 16000)),
    ),
    "layer norm of longer rows": (layer_norm, (array(N // 32000, 32000), array(32000), array(32000))),
    "cross-entropy, with a gradient": (fnad.value_and_grad(cross_entropy), (MATRIX, MATRIX)),
    "cross-entropy of classes, with a gradient": (
        fnad.value_and_grad(cross_entropy_of_classes),
        (MATRIX, array(ROWS, dtype=np.int64)),
    ),
    "layer norm": (layer_norm, (MATRIX, VECTOR, VECTOR)),
    "layer norm, with gradients": (
        lambda x, gain, bias, y: fnad.value_and_grad(lambda *given: np.sum(layer_norm(*given) * y), argnums=(0, 1, 2))(
            x, gain, bias
        ),
        (MATRIX, VECTOR, VECTOR, MATRIX),
    ),
    "layer norm, with its pullback": (
        layer_norm_and_pullback,
        (MATRIX, VECTOR, VECTOR, MATRIX),
    ),
    "layer norm of long rows, with gradients": (
        lambda x, gain, y: fnad.grad(lambda *given: np.sum(layer_norm(*given, 0) * y), argnums=(0, 1))(x, gain),
        (array(N // 4000, 4000), array(4000), array(N // 4000, 4000)),
    ),
    "Black-Scholes, with greeks": (
        fnad.value_and_grad(black_scholes, argnums=(0, 1, 2, 3, 4)),
        (array(N), array(N), array(N), F4.type(0.02), F4.type(0.3)),
    ),
    "a sum": (np.sum, (array(N),)),
    "sums of short rows": (lambda x: np.sum(x, axis=1), (array(N, 4),)),
    "sums of columns": (lambda x: np.sum(x, axis=0), (MATRIX,)),
    "sums over an axis between": (lambda x: np.sum(x, axis=1), (array(100, 1000, 1000),)),
}

WIDE = array(ROWS, COLUMNS, dtype=np.float64)


def gradients(x: Any, gain: Any, y: Any) -> Any:
    return fnad.vjp(layer_norm, x, gain, gain)[1](y)


def of_columns(x: Any) -> Any:
    centred = x - np.mean(x, axis=0)
    return centred / np.sqrt(np.mean(centred * centred, axis=0) + 1e-5)


TABLE = PROGRAMS | {
    "a copy": (lambda x: x * F4.type(2), (array(N),)),
    "gain and bias of rows": (lambda x, w, b: x * w + b, (MATRIX, VECTOR, VECTOR)),
    "gain and bias of rows of 1002": (lambda x, w, b: x * w + b, (array(ROWS, 1002), array(1002), array(1002))),
    "a factor of each row": (lambda x, c: x * c, (MATRIX, array(ROWS, 1))),
    "gradients of a layer norm": (gradients, (MATRIX, VECTOR, MATRIX)),
    "layer norm in double precision": (layer_norm, (WIDE, WIDE[0], WIDE[0])),
    "gradients of a layer norm in double precision": (gradients, (WIDE, WIDE[0], WIDE)),
    "means of columns": (lambda x: np.mean(x, axis=0), (MATRIX,)),
    "means over two axes": (lambda x: np.mean(x, axis=(1, 2)), (array(512, 56, 56, 64),)),
    "normalization over the first axis": (of_columns, (MATRIX,)),
    "largest of rows": (lambda x: np.argmax(x, axis=1), (MATRIX,)),
    "running sums of rows": (lambda x: np.cumsum(x, axis=1), (MATRIX,)),
    "a long running sum": (np.cumsum, (array(N),)),
    "a transpose": (lambda x: np.sin(x).T * 2, (array(10000, 10000),)),
}
LEAST = {"Black-Scholes, with greeks": 0.8}
"""Where the model allows less than 0.9 of a copy's speed."""


@pytest.mark.slow
@pytest.mark.skipif("FNAD_TEST_EMULATOR" not in os.environ, reason="FNAD_TEST_EMULATOR is not set")
@pytest.mark.parametrize("name", TABLE)
def test_programs_may_run_at_the_speed_of_a_copy(name: str) -> None:
    try:
        found = of_program(*TABLE[name])
    except LoweringError as error:
        pytest.skip(str(error))  # without NVIDIA's programs
    assert found.share >= LEAST.get(name, 0.9), found
    assert found.sectors <= 1.1, found
    assert found.conflicts <= 1.1, found


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_more_bytes_are_moved_than_must(name: str) -> None:
    plan = DevicePlan(lower(program_of(*PROGRAMS[name]), CUDA), CUDA)
    assert 1 <= share_moved(plan) <= 1.03
    assert max(launch.blocks * launch.threads for launch in plan.launches.values()) >= 132 * 512


def share_moved(plan: DevicePlan) -> float:
    """The bytes that launches move, of those of arguments and results."""
    outside = (*plan.loops.inputs, *plan.loops.outputs)
    sizes = {b.name: b.aval.size for b in outside} | {slot.name: slot.size for slot in plan.slots}
    total = sum(sum(moved(launch, sizes)) for launch in plan.launches.values())
    return total / sum(buffer.aval.nbytes for buffer in outside)


def test_sums_over_rows_leave_room_for_rows_twice_as_long() -> None:
    function, (rows, *_) = PROGRAMS["layer norm of long rows, with gradients"]
    longer = array(rows.size // 8192, 8192)
    plan = DevicePlan(lower(program_of(function, (longer, array(8192), longer)), CUDA), CUDA)
    assert share_moved(plan) <= 1.03


def test_what_is_stored_and_fused_is_decided_by_the_costs_of_the_device() -> None:
    function = lambda x, w, v: softmax(x @ w) @ v  # noqa: E731
    program = program_of(function, (array(10**6, 16), array(16, 1000), array(1000, 16)))
    on_host, on_device = lower(program, CPU), lower(program, CUDA)
    assert any(item.tile for item in on_host.items if isinstance(item, NestLoop))  # the cache has a tile of rows
    assert not any(item.tile for item in on_device.items if isinstance(item, NestLoop))
    assert sum(isinstance(item, Product) for item in on_device.items) == 2
    shared = lambda x: (np.sum(x, axis=0), np.sum(np.exp(x / 2) * x, axis=1))  # noqa: E731
    program = program_of(shared, (MATRIX,))
    assert (len(lower(program, CPU).items), len(lower(program, CUDA).items)) == (2, 1)  # x is read once


def bias_and_tanh(x: Any, w: Any, b: Any) -> Any:
    return np.tanh(x @ w + b)


@pytest.mark.parametrize("f", [
    bias_and_tanh,
    lambda x, w, b: np.maximum(bias_and_tanh(x, w, b), 0) * x[:, :1],
    lambda x, w, b: softmax(x @ w + b),
    lambda x, w, b: layer_norm(x @ w + x[:, :200], b, b),
])  # fmt: skip
def test_what_follows_a_product_is_one_launch(f: Any) -> None:
    plan = DevicePlan(lower(program_of(f, (array(3000, 300), array(300, 200), array(200))), CUDA), CUDA)
    product, launch = plan.steps
    assert isinstance(product, DeviceProducts)
    assert isinstance(launch, Launch)


@pytest.mark.parametrize("name", ["softmax", "layer norm", "softmax of short rows", "transpose"])
def test_what_is_counted_is_what_threads_touch(name: str) -> None:
    plan = plan_of(name)
    (launch,) = plan.launches.values()
    sizes = {b.name: b.aval.size for b in (*plan.loops.inputs, *plan.loops.outputs)}
    arrays = [Watched(p.name, np.ones(sizes[p.name], F4)) for p in launch.kernel.parameters]
    for number in range(launch.blocks):
        list(Block(launch, number, SMALL.grid.warp if SMALL.grid else 1).run(arrays, random.Random(0)))
    read, written = sum(len(a.read) for a in arrays), sum(len(a.written) for a in arrays)
    assert moved(launch, sizes) == (4 * read, 4 * written)


def test_occupancy_is_what_the_scarcest_resource_leaves() -> None:
    cases = [
        ((32, 0, 96), 256, "sm_90", 8 * 256 / 2048),
        ((33, 0, 0), 256, "sm_90", 6 * 256 / 2048),  # 40 registers a thread, since a warp gets 256 at once
        ((80, 0, 320), 256, "sm_90", 3 * 256 / 2048),
        ((16, 0, 0), 32, "sm_90", 32 * 32 / 2048),  # no more than 32 blocks
        ((32, 0, 48 * 1024), 256, "sm_90", 4 * 256 / 2048),
        ((32, 0, 48 * 1024), 256, "sm_80", 3 * 256 / 2048),
        ((32, 0, 0), 1024, "sm_86", 1024 / 1536),
    ]
    for taken, threads, arch, wanted in cases:
        assert occupancy(Resources(*taken), threads, arch) == wanted
    with pytest.raises(LoweringError, match="the occupancy of sm_30 is not known here, but of sm_80,"):
        occupancy(Resources(32, 0, 0), 256, "sm_30")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_occupancy_is_that_of_warps_on_four_partitions(arch: str) -> None:
    """Each of four partitions has 16 K registers and places for 16 warps; blocks are put there while there is room."""
    shared = {"sm_80": 164, "sm_90": 228}[arch] * 1024
    for registers in (24, 33, 40, 57, 72, 96, 128, 168, 255):
        for warps in (1, 2, 3, 5, 6, 8, 9, 16, 32):
            for bytes_of_block in (0, 96, 5000, 40000):
                of_warp, of_block = 256 * ceil(registers * 32 / 256), 1024 + 128 * ceil(bytes_of_block / 128)
                room, memory, blocks = 4 * min(16, 16384 // of_warp), shared, 0
                while blocks < 32 and room >= warps and memory >= of_block:
                    room, memory, blocks = room - warps, memory - of_block, blocks + 1
                assert occupancy(Resources(registers, 0, bytes_of_block), 32 * warps, arch) == blocks * warps / 64


@pytest.mark.skipif(not has_libdevice(), reason="nvidia-nvvm, which has libdevice, is for Linux on x86-64")
def test_without_an_assembler_explain_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fnad.backends.cuda.tools.file_of", lambda *place: None)
    monkeypatch.setenv("PATH", "/nowhere")
    line, missing = launch_lines(plan_of("softmax"))
    assert line.endswith("4,000 bytes read, 4,000 written")
    assert missing.startswith("registers and occupancy are not known: the machine code of a GPU takes NVIDIA's ptxas")
