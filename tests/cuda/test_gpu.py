"""What runs on a GPU, where there is one: `python -m pytest tests/cuda/test_gpu.py`.

The catalogue of primitives, the programs of `test_executor.py` and the edge cases give there what they give on the CPU,
to the tolerance of the dtype, and the same bits at each call, but for additions in any order.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fnad
from fnad.backends.cuda import driver
from fnad.backends.cuda.executor import compile_program
from fnad.errors import DeviceError, FnadError, LoweringError
from fnad.testing import SCALE, assert_close, tolerance
from fnad.transforms.interpret import interpret
from tests.catalogue.cases import CASES, Case
from tests.cuda.test_atomics import PROGRAMS as ATOMICS
from tests.cuda.test_executor import CALLS, DATA, DRAWS, P, mlp
from tests.cuda.test_graphs import PROGRAMS, run_again
from tests.together import together

ROOT = Path(__file__).parents[2]
PARTS = 8
REASONS = ("has no routine", "has no instructions", "has no function", "cannot do")
"""What the error of a program says that the device cannot run."""

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.usefixtures("_gpu"),
    pytest.mark.filterwarnings("default"),  # what CuPy, PyTorch or JAX warn of is no error
]


@pytest.fixture(scope="module")
def _gpu() -> None:
    try:
        driver.current()
    except DeviceError as error:
        pytest.skip(error.what)


@pytest.mark.parametrize("part", range(PARTS))
def test_each_primitive_on_the_gpu_is_interpreted(part: int) -> None:
    with together() as check:
        for case in CASES[part::PARTS]:
            with check(str(case)):
                check_case(case)


def check_case(case: Case) -> None:
    try:
        run = compile_program(case.program())
    except LoweringError as error:
        assert any(reason in str(error) for reason in REASONS), error  # noqa: PT017
        return
    with np.errstate(all="ignore"):
        try:
            wanted = interpret(case.program(), case.operands)
        except FnadError as error:
            with pytest.raises(type(error)):
                run(case.operands)
            return
    try:
        first, again = (fnad.to_host(run([fnad.to_device(np.asarray(x)) for x in case.operands])) for _ in range(2))
    except LoweringError as error:
        assert "CuPy cannot do this" in str(error)  # noqa: PT017
        return
    for found, repeated in zip(first, again, strict=True):
        assert_array_equal(found, repeated)
    settled = SETTLED.get(case.primitive.name, lambda *results: results)
    for found, expected in zip(settled(*first), settled(*map(np.asarray, wanted)), strict=True):
        assert found.dtype == expected.dtype
        assert_close(np.asarray(found), expected, tolerance(expected.dtype), SCALE)


# ---- what libraries may answer in several ways -------------------------------------------------------------------


def in_order(values: Any, *vectors: Any) -> Any:
    """Eigenvalues in one order, with their vectors."""
    order = np.lexsort((values.imag, np.round(values.real, 4)), axis=-1)
    found = [np.take_along_axis(x, order[..., None, :], axis=-1) for x in vectors]
    return np.take_along_axis(values, order, axis=-1), *found


def with_signs(values: Any, vectors: Any) -> Any:
    """Eigenvalues, and eigenvectors whose largest element is positive."""
    return values, vectors * factors(vectors) if vectors.size else vectors


def of_singular_values(u: Any, s: Any, vh: Any) -> Any:
    """Singular values and their vectors, those of u with a positive largest element."""
    count = s.shape[-1]
    u, vh = u[..., :count], vh[..., :count, :]
    return (u * factors(u), s, vh * np.conj(np.swapaxes(factors(u), -1, -2))) if s.size else (u, s, vh)


def factors(vectors: Any) -> Any:
    """What makes the largest element of each column positive."""
    largest = np.take_along_axis(vectors, np.argmax(np.abs(vectors), axis=-2, keepdims=True), axis=-2)
    return (np.conj(largest) / np.abs(largest)).astype(vectors.dtype)


SETTLED = {"eig": in_order, "eigvals": in_order, "eigh": with_signs, "svd": of_singular_values}


def test_programs_on_the_gpu_compute_as_numpy() -> None:
    with together() as check:
        for name, (f, args) in CALLS.items():
            with check(name):
                run, wanted = fnad.jit(f, device="cuda"), f(*args)
                first, again = (fnad.tree.leaves(fnad.to_host(run(*fnad.to_device(args)))) for _ in range(2))
                for found, repeated, expected in zip(first, again, fnad.tree.leaves(wanted), strict=True):
                    expected = np.asarray(expected)  # noqa: PLW2901
                    assert_close(np.asarray(found), expected, tolerance(expected.dtype), SCALE)
                    assert_array_equal(found, repeated)


def test_captured_graphs_on_the_gpu_compute_again() -> None:
    """Each is captured: the fallback, kernel by kernel, is not taken."""
    with together() as check:
        for name, (f, args) in PROGRAMS.items():
            with check(name):
                run_again(f, args)


def test_draws_on_the_gpu_are_those_of_the_host() -> None:
    with together() as check:
        for name, draw in DRAWS.items():
            with check(name):
                key = fnad.random.key(3)
                assert_array_equal(fnad.to_host(fnad.jit(draw, device="cuda")(key)), draw(key), strict=True)


def test_atomic_additions_on_the_gpu_sum_as_the_host() -> None:
    with together() as check, fnad.config.override(scatter_add="atomic"):
        for name, (f, args, _) in ATOMICS.items():
            with check(name):
                found, expected = fnad.to_host(fnad.jit(f, device="cuda")(*fnad.to_device(args))), np.asarray(f(*args))
                assert_close(np.asarray(found), expected, tolerance(expected.dtype), SCALE)


def from_torch(x: Any) -> Any:
    torch = pytest.importorskip("torch")
    return torch.from_numpy(x).to("cuda")


def from_jax(x: Any) -> Any:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or JAX takes most of the memory
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax.device_put(x, jax.devices("gpu")[0])


@pytest.mark.parametrize("library", [from_torch, from_jax])
def test_arrays_of_other_libraries(library: Callable[[Any], Any]) -> None:
    step = fnad.jit(fnad.grad(mlp), device="cuda")
    wanted = fnad.grad(mlp)(P, DATA)["W"]
    assert_close(fnad.to_host(step(P, library(DATA))["W"]), wanted, tolerance(wanted.dtype), SCALE)


@pytest.mark.timeout(550)
@pytest.mark.parametrize("tests", ["tests/edge_cases", "tests/cuda/test_examples.py"])
def test_edge_cases_and_examples(tests: str) -> None:
    """In processes of their own, which ask for each way to run a function on the GPU, too."""
    environment = os.environ | {"FNAD_TEST_DEVICE": "cuda"}
    options = ["-q", "-Wdefault", "--numprocesses=8", "--timeout=540"]
    command = [sys.executable, "-m", "pytest", *options, tests]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-10_000:]
