"""Large results take memory that nobody holds any more, and are arrays like others."""

import os
import pickle
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fnad
from fnad.backends.cpu import idle
from fnad.backends.cpu.pool import LARGE, SHARE, Pool, allocator, pool
from fnad.store import STORE

F64 = np.dtype("f8")
N = LARGE // F64.itemsize

cubes = fnad.jit(lambda x: x * x * x)


@pytest.fixture(autouse=True)
def _empty_pool() -> Iterator[None]:
    with fnad.config.override(executor="compiled"):
        pool().free_workspaces()
        yield
        pool().free_workspaces()


def new(n: int = N) -> Any:
    return pool().empty((n,), F64)


def address(array: Any) -> int:
    return array.ctypes.data


def test_memory_is_used_again_when_nobody_holds_it():
    x = np.linspace(0.0, 1.0, N)
    first, second = cubes(x), cubes(x + 1)
    places = {address(first), address(second)}
    assert len(places) == 2
    del first, second
    assert pool().workspace_bytes == 2 * LARGE
    again = [cubes(x), cubes(x + 1)]
    assert {address(y) for y in again} == places
    assert pool().workspace_bytes == 0
    for y, operand in zip(again, (x, x + 1), strict=True):
        assert_array_equal(y, operand * operand * operand)


@pytest.mark.parametrize(("enabled", "has_pool"), [(lambda: True, True), (lambda: False, False), (None, True)])
def test_there_is_a_pool_where_the_gil_guards_it(
    enabled: Callable[[], bool] | None, has_pool: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(sys, "_is_gil_enabled", raising=False)
    if enabled is not None:
        monkeypatch.setattr(sys, "_is_gil_enabled", enabled, raising=False)
    array = allocator(LARGE)((N,), F64)
    del array
    assert pool().workspace_bytes == has_pool * LARGE


@pytest.mark.parametrize(
    "hold",
    [lambda y: y[5:9], lambda y: y.reshape(2, -1).T[:, 1], memoryview, lambda y: y.view("i8"), np.asarray, [].append],
)
def test_memory_is_not_used_while_a_view_lives(hold: Any) -> None:
    y = new()
    before, held = address(y), hold(y)
    if held is None:  # in a list
        held = hold.__self__
    del y
    assert pool().workspace_bytes == 0
    other = new()
    assert address(other) != before
    other[:] = -1.0
    if isinstance(held, list):
        held.clear()
    del held
    assert pool().workspace_bytes == LARGE


def test_small_results_are_not_from_the_pool():
    y = cubes(np.ones(N - 1))
    del y
    assert pool().workspace_bytes == 0


def test_a_block_serves_what_is_not_much_smaller():
    y = new(N + N // 4)
    place = address(y)
    del y
    assert address(new(N)) != place
    assert address(new(N + N // 8)) == place
    pool().free_workspaces()
    y = new(N)
    del y
    larger = new(N + 1)
    larger[:] = 1.0
    assert pool().workspace_bytes == LARGE


def test_results_are_plain_arrays():
    x = np.linspace(0.0, 1.0, N)
    y = cubes(x)
    assert type(y) is np.ndarray
    assert y.base is None
    assert y.flags.owndata
    assert y.flags.writeable
    assert sys.getsizeof(y) > y.nbytes
    assert_array_equal(pickle.loads(pickle.dumps(y)), y)
    y.resize(3 * N)
    assert_array_equal(y[:N], x * x * x)
    assert not y[N:].any()
    y.resize(5)
    assert_array_equal(y, (x * x * x)[:5])
    del y
    assert pool().workspace_bytes == 0


def test_a_result_that_is_resized_comes_back_with_its_size():
    y = cubes(np.ones(N))
    y.resize(4 * N)
    del y
    assert pool().workspace_bytes == 4 * LARGE


def test_results_are_donated():
    step = fnad.jit(lambda x: x * 0.5, donate_argnums=0)
    y = cubes(np.full(N, 2.0))
    place = address(y)
    for value in (4.0, 2.0, 1.0):
        y = step(y)
        assert address(y) == place
        assert (y == value).all()
    assert pool().workspace_bytes == 0


def test_free_blocks_are_bounded():
    with fnad.config.override(cache_bytes=SHARE * 3 * LARGE):
        arrays = [new() for _ in range(5)]
        places = list(map(address, arrays))
        while arrays:
            del arrays[0]
        assert pool().workspace_bytes == 3 * LARGE
        assert {address(y) for y in [new(), new(), new()]} == set(places[2:])
        y = new(4 * N)
        del y
        assert pool().workspace_bytes <= 3 * LARGE
    with fnad.config.override(cache_bytes=0):
        y = new()
        del y
        assert pool().workspace_bytes == 0


def test_it_counts_as_memory_of_the_cache():
    y = cubes(np.ones(N))
    before = fnad.cache_info().nbytes
    del y
    assert fnad.cache_info().nbytes == before + LARGE
    fnad.clear_cache()
    assert pool().workspace_bytes == 0


def test_free_blocks_go_where_memory_is_wanted():
    y = new()
    del y
    STORE.trim(wanted=0)
    assert pool().workspace_bytes == LARGE
    STORE.trim(wanted=fnad.config.current().cache_bytes)
    assert pool().workspace_bytes == 0


def test_what_is_not_used_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(idle, "SECONDS", 0.2)
    monkeypatch.setattr(idle, "time", SimpleNamespace(monotonic=lambda: now))
    time.sleep(0.05)  # a pool notes its use again after a tenth of the seconds
    kept, gone = new(), new()
    del gone
    assert pool().workspace_bytes == LARGE
    now = 0.3
    for _ in range(1000):  # the thread that looks for it is another one
        if pool().workspace_bytes == 0:
            break
        time.sleep(0.02)
    assert pool().workspace_bytes == 0
    del kept
    assert pool().workspace_bytes == 0
    y = new()
    del y
    assert pool().workspace_bytes == LARGE


@pytest.mark.slow
def test_threads_share_it():
    wrong: list[int] = []

    def work(n: int) -> None:
        x = np.full(N, float(n + 1))
        held: list[Any] = []
        for turn in range(40):
            with fnad.config.override(executor="compiled"):
                held.append((turn, cubes(x + turn)))
            if turn % 3 == n % 3:
                wrong.extend(turn for turn, y in held if not (y == (n + 1.0 + turn) ** 3).all())
                held.clear()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_result_may_go_in_another_thread():
    arrays = [new()]
    thread = threading.Thread(target=arrays.clear)
    thread.start()
    thread.join()
    assert pool().workspace_bytes == LARGE


def test_a_fork_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "SECONDS", 600.0)  # a fork waits for what is being compiled
    kept, gone = cubes(np.full(N, 2.0)), new()
    place = address(gone)
    del gone
    child = os.fork()
    if child == 0:
        y = cubes(np.full(N, 3.0))
        kept[:] = 5.0
        is_right = address(y) == place and (y == 27.0).all()
        del y, kept
        os._exit(not (is_right and pool().workspace_bytes == 2 * LARGE))
    y = cubes(np.full(N, 4.0))
    assert os.waitpid(child, 0)[1] == 0
    assert address(y) == place
    assert (y == 64.0).all()
    assert (kept == 8.0).all()


def test_a_handler_of_the_user_allocates_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(STORE, "_shared", [])
    other, x = Pool(), np.ones(N)
    run = other._context.copy().run  # pyright: ignore[reportPrivateUsage]

    def call() -> Any:
        with fnad.config.override(executor="compiled"):
            return cubes(x)

    y = run(call)
    other._limit.value = 2 * LARGE  # pyright: ignore[reportPrivateUsage]
    assert (y == 1.0).all()
    del y
    assert other.workspace_bytes == LARGE
    assert pool().workspace_bytes == 0


def test_tracemalloc_sees_results_and_no_free_blocks():
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        y = new()
        assert tracemalloc.get_traced_memory()[0] - before >= LARGE
        assert tracemalloc.get_object_traceback(y) is not None
        del y
        assert tracemalloc.get_traced_memory()[0] - before < LARGE // 8
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_results_may_outlive_the_program():
    code = f"""
import numpy as np, fnad, sys
fnad.config.set_default(executor="compiled")
y = fnad.jit(lambda x: x * x)(np.ones({N}))
np.kept, sys.kept = y[3:], [y]
sys.kept.append(sys.kept)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("f", [np.median, lambda x: np.quantile(x, 0.3), lambda x: np.sum(x[np.argsort(x)] * x)])
def test_libraries_are_called_with_the_allocator_of_numpy(f: Callable[[Any], Any]) -> None:
    """`np.argsort` of a large array ends the process under another one."""
    x = np.random.default_rng(0).permutation(np.linspace(0.0, 1.0, N + 1))
    assert_array_equal(fnad.jit(fnad.grad(f))(x), fnad.grad(f)(x))
