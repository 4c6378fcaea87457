"""The ways to run a program, a device of threads among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from fnad import to_host
from fnad.backends.cuda.executor import compile_program
from fnad.ir.program import Program
from fnad.testing import EXECUTORS, Run
from tests.edge_cases.ways import DEVICE, device
from tests.gpu import OnThreads

LARGE = ("test_row_57_sum_of_many_f32", "test_row_58_cotangent_of_a_broadcast_scalar")
"""The tests with too many elements for threads that are simulated."""


@pytest.fixture(scope="session")
def on_threads() -> OnThreads:
    """What is compiled for the simulated device is compiled once."""
    return OnThreads()


@pytest.fixture(params=[*EXECUTORS, "device"])
def run(request: pytest.FixtureRequest, on_threads: OnThreads) -> Run:
    """Return `run(program, arrays)`, one of the ways to run a program after the other."""
    if request.param != "device":
        return EXECUTORS[request.param]
    test = request.node
    if DEVICE != "cuda" and test.originalname in LARGE:
        pytest.skip("too many elements for threads that are simulated")
    return on_gpu if DEVICE in ("cuda", "native") else on_threads


def on_gpu(program: Program, arrays: Sequence[Any]) -> list[Any]:
    with device():
        return list(map(to_host, compile_program(program)(arrays)))
