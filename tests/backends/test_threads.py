"""Parallel loops: the same numbers on one thread and several, from several threads of Python, and after a fork."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.backends.cpu import threads
from fnad.backends.cpu.threads import workers
from fnad.config import CORES
from fnad.errors import SettingError
from tests.together import together

several = pytest.mark.skipif(CORES < 2, reason="one core")

TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
SHARE = ctypes.CFUNCTYPE(None, TASK, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_bool, ctypes.c_void_p)


def share(task: Callable[[int], None], tasks: int, number: int = 2, *, long: bool = False) -> None:
    """Run tasks on this many threads, which are woken whatever it costs."""
    threads.use(number)
    workers().field("threshold").value = -1
    workers().field("debt").value = 0
    SHARE(workers().share)(TASK(lambda _, n: task(n)), None, tasks, number, long, None)


@pytest.fixture
def eager() -> Iterator[None]:
    """Threads are woken for each parallel loop."""
    threads.use(CORES)
    field = workers().field("threshold")
    before, field.value = field.value, -1
    yield
    field.value = before


rng = np.random.default_rng(0)
VECTOR, OTHER = rng.standard_normal((2, 100_003))
MATRIX = rng.standard_normal((301, 503))
LARGE = rng.standard_normal((520, 520))
PLACES = rng.integers(0, VECTOR.size, VECTOR.size)


def softmax(x: Any) -> Any:
    shifted = np.exp(x - np.max(x, axis=1, keepdims=True))
    return shifted / np.sum(shifted, axis=1, keepdims=True)


def diffusion(u: Any) -> Any:
    for _ in range(3):
        inside = u[1:-1, 1:-1]
        change = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * inside
        u = np.pad(inside + 0.1 * change, 1)
    return u


def columns(x: Any) -> Any:
    y = np.reshape(x, (14, 43, 503))
    found = (
        np.sum(np.exp(x), axis=0),
        np.max(np.sin(x), axis=0),
        np.sum(x.astype("f4"), axis=0),
        np.any(x > 3.0, axis=0),
    )
    return *found, np.sum(np.cos(y), axis=(0, 2)), np.sum(np.tanh(y), axis=1)


def layers(w: Any, b: Any, x: Any) -> Any:
    return np.sum(np.tanh(x @ w + b[0] + w[0]) ** 2)


def root(a: Any) -> Any:
    return fnad.while_loop(lambda s: abs(s * s - a) > 1e-12 * a, lambda s: (s + a / s) / 2, a + 0.1)


def powers(x: Any) -> Any:
    """Return x times the power of a matrix that its norm asks for."""
    m = np.array([[0.5, 0.1, 0.0], [0.2, 0.4, 0.3], [0.0, 0.1, 0.7]])
    return fnad.while_loop(lambda y: np.sum(y * y) > 0.01, lambda y: np.sum(m * y, axis=1), x)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elementwise": (lambda x, y: (np.exp(x) * np.sin(y), x > y), (VECTOR, OTHER)),
    "in f32": (lambda x: 2.0 * np.tanh(x), (VECTOR.astype("f4"),)),
    "sums": (lambda x, y: (np.sum(np.exp(x)), np.sum(x * y), np.max(x), np.min(y)), (VECTOR, OTHER)),
    "sum in f32": (lambda x: np.sum(np.cos(x)), (VECTOR.astype("f4"),)),
    "complex sum": (lambda x, y: np.sum(np.exp(x + 1j * y)), (VECTOR, OTHER)),
    "sum of infinities": (lambda x: np.sum(np.exp(1000.0 * x)), (VECTOR,)),
    "sum of nan": (lambda x: np.sum(np.log(x)), (VECTOR,)),
    "integers": (lambda x: (np.sum(x * x), np.any(x == 77), np.all(x >= 0), np.prod(x % 3 + 1)), (PLACES,)),
    "product": (lambda x: np.prod(1.0 + 1e-6 * np.tanh(x)), (VECTOR,)),
    "rows": (softmax, (MATRIX,)),
    "sums of rows and columns": (lambda x: (np.sum(np.sin(x), axis=0), np.sum(np.cos(x), axis=1)), (MATRIX,)),
    "rows for a gradient": (
        fnad.grad(lambda x: np.sum(np.log(softmax(x)[:, 3] + np.max(np.cos(x), axis=1)))),
        (MATRIX,),
    ),
    "sums of columns": (columns, (np.tile(MATRIX, (2, 1)),)),
    "gradient of layers": (fnad.grad(layers, (0, 1)), (MATRIX, MATRIX[:, 0], MATRIX[:200, :301])),
    "variance": (lambda x: (np.var(x), np.std(x, axis=0)), (MATRIX,)),
    "running sums": (lambda x: (np.cumsum(np.exp(x)), np.cumsum(np.exp(MATRIX), axis=1)), (VECTOR,)),
    "positions": (lambda x: (np.argmax(np.sin(x)), np.argmin(np.sin(MATRIX), axis=1)), (VECTOR,)),
    "gather": (lambda x, places: np.exp(x[places]), (VECTOR, PLACES)),
    "gradient of a gather": (fnad.grad(lambda x, places: np.sum(np.exp(x[places]))), (VECTOR, PLACES)),
    "stencil": (diffusion, (MATRIX,)),
    "gradient of a stencil": (fnad.grad(lambda u: np.sum(diffusion(u) ** 2)), (MATRIX,)),
    "in a loop": (lambda x: fnad.fori_loop(0, 3, lambda _, y: np.tanh(y) + y / (1.0 + np.sum(y**2)), x), (VECTOR,)),
    "rows of a vmap": (fnad.vmap(lambda a: root(a * a)), (VECTOR[:20_000],)),
    "rows with arrays": (fnad.vmap(powers), (VECTOR[:9_000].reshape(3000, 3),)),
    "few long rows": (lambda x: np.sum(np.exp(x), axis=1), (VECTOR[:100_000].reshape(4, 25_000),)),
    "reversed": (lambda x: np.exp(x[::-1]) + x, (VECTOR,)),
    "product with its transpose": (lambda x: np.exp(x @ x.T / 100.0), (LARGE[:, :300],)),
    "products of large matrices": (lambda x: (x @ x, x.T @ x, x @ x.T, x.T @ x.T, (x @ x[:, :3]).T), (LARGE,)),
    "products with vectors": (lambda x: (x @ x[0], x[:, 1] @ x, x.T @ x[:, 2]), (np.tile(LARGE, 3),)),
    "complex product": (lambda x: (x + 1j) @ (x.T - 2j), (LARGE[:400],)),
    "stack of products": (lambda x: np.matmul(x, np.swapaxes(x, 1, 2)), (LARGE[:400].reshape(40, 130, 40),)),
}


def bits(results: Any) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in fnad.tree.leaves(results)]


@several
@pytest.mark.usefixtures("eager")
def test_results_do_not_depend_on_the_number_of_threads() -> None:
    with together() as check:
        for name, (function, arguments) in PROGRAMS.items():
            with check(name), np.errstate(all="ignore"):
                with fnad.config.override(executor="interpreter"):
                    expected = fnad.tree.leaves(function(*arguments))
                run = fnad.jit(function)
                with fnad.config.override(executor="compiled", threads=1):
                    alone = run(*arguments)
                for _ in range(3):
                    workers().field("debt").value = 0
                    with fnad.config.override(executor="compiled", threads=2):
                        assert bits(run(*arguments)) == bits(alone)
                for got, wanted in zip(fnad.tree.leaves(alone), expected, strict=True):
                    single = np.asarray(got).dtype == np.float32
                    np.testing.assert_allclose(got, wanted, rtol=2e-6 if single else 1e-11, atol=1e-12)


@several
def test_tasks_run_on_two_threads_at_once() -> None:
    both = threading.Barrier(2)
    found: list[int] = []

    def task(number: int) -> None:
        if number:  # the first task is run alone
            both.wait(timeout=60)
        found.append(number)

    share(task, 9)
    assert sorted(found) == list(range(9))
    assert not both.broken


@several
def test_no_more_threads_than_given() -> None:
    threads.use(2)
    seen: set[int] = set()
    share(lambda _: seen.add(threading.get_native_id()), 50, number=1)
    assert seen == {threading.get_native_id()}


@several
@pytest.mark.usefixtures("eager")
def test_several_python_threads_share_the_workers() -> None:
    run = fnad.jit(lambda x: (np.exp(x), np.sum(np.sin(x))))
    with fnad.config.override(executor="compiled"):
        expected = bits(run(VECTOR))
        failed: list[int] = []

    def work() -> None:
        with fnad.config.override(executor="compiled", threads=2):
            failed.extend(n for n in range(50) if bits(run(VECTOR)) != expected)

    started = [threading.Thread(target=work) for _ in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert not failed


@several
@pytest.mark.usefixtures("eager")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    run = fnad.jit(lambda x: np.sum(np.exp(x)))
    with fnad.config.override(executor="compiled", threads=2):
        expected = bits(run(VECTOR))
        child = os.fork()
        if child == 0:
            before = len(workers().threads)
            same = bits(run(VECTOR)) == expected
            os._exit(0 if same and before == 0 and len(workers().threads) == 1 else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert bits(run(VECTOR)) == expected


@several
@pytest.mark.usefixtures("eager")
def test_the_fault_is_that_of_one_thread() -> None:
    first, second = PLACES.copy(), PLACES.copy()
    first[90_000], second[10_000] = VECTOR.size, VECTOR.size
    run = fnad.jit(lambda x, a, b: x[a] + (x * 2.0)[b])
    messages: set[str] = set()
    for number in (1, 2, 2, 2):
        with (
            fnad.config.override(executor="compiled", threads=number),
            pytest.raises(fnad.errors.OutOfRangeError) as caught,
        ):
            run(VECTOR, first, second)
        messages.add(str(caught.value))
    assert len(messages) == 1


@several
@pytest.mark.parametrize("row", [0, 2999])
def test_rows_that_never_end_are_interrupted(row: int) -> None:
    """In the thread that handles signals, and in another one, while that waits."""
    code = f"""
import os, signal, threading, time
import numpy as np, fnad
from fnad.backends.cpu import threads
threads.use(2)
threads.workers().field("threshold").value = -1
x = np.ones(3000)
x[{row}] = -1.0
endless = fnad.vmap(lambda a: fnad.while_loop(lambda s: s * a != 2.0, lambda s: np.minimum(s + 0.5, 2.0), 0.0))
run = fnad.jit(endless)
with fnad.config.override(executor="compiled"):
    run(np.ones(3000))
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        run(x)
    except KeyboardInterrupt:
        print("interrupted", run(np.ones(3000)).sum())
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert found.stdout == "interrupted 6000.0\n", found.stderr


def parallel_loops(function: Callable[..., Any], *arguments: Any) -> str:
    return fnad.jit(function).lower(*arguments).as_text("source")


def test_loops_of_tasks_are_marked_in_the_source() -> None:
    assert "for p0 in prange(" in parallel_loops(np.exp, VECTOR)
    assert "prange" not in parallel_loops(np.exp, VECTOR[:1000])
    assert "prange" not in parallel_loops(np.cumsum, VECTOR)
    assert "for p0 in prange(" in parallel_loops(lambda x: np.sum(np.exp(x), axis=0), MATRIX)
    assert "for p0 in prange(" in parallel_loops(fnad.vmap(root), VECTOR)
    assert "for p0 in prange(" in parallel_loops(fnad.vmap(powers), VECTOR[:9_000].reshape(3000, 3))


def test_the_number_of_threads_is_one_that_the_machine_has() -> None:
    assert fnad.config.current().threads == CORES
    for number in (0, -1, CORES + 1, 1.0, True, None, "2"):
        with pytest.raises(SettingError, match=f"threads is {number!r}\n  set it to a number from 1 to {CORES}"):
            fnad.config.set_default(threads=number)
