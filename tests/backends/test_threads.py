"""Parallel loops: the same numbers on one thread and several, from several threads of Python, and after a fork."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import fnad
from fnad import nn
from fnad.backends.cpu import threads
from fnad.backends.cpu.codegen import on_large_stack
from fnad.backends.cpu.executor import NativeExecutor
from fnad.backends.cpu.threads import workers
from fnad.config import CORES
from fnad.errors import SettingError
from fnad.kernel.statements import ACCOUNT, STATUS_SIZE
from tests.together import together

several = pytest.mark.skipif(CORES < 2, reason="one core")

WORD, ADDRESS = ctypes.c_int64, ctypes.c_void_p
TASK = ctypes.CFUNCTYPE(None, ADDRESS, WORD, ADDRESS)
FLAG = ctypes.c_bool
SHARE = ctypes.CFUNCTYPE(None, TASK, ADDRESS, *[WORD] * 4, ADDRESS, ADDRESS, WORD)


def share(task: Callable[[int], None], tasks: int, number: int = 2, *, long: bool = False) -> None:
    """Run tasks on this many threads, which are woken whatever it costs."""
    threads.use(number)
    workers().field("threshold").value = -1
    SHARE(workers().share)(TASK(lambda _, n, scratch: task(n)), None, tasks, number, long, False, None, None, 0)


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
KERNEL, IMAGES = rng.standard_normal((24, 6, 3, 3)), rng.standard_normal((20, 6, 25, 25))
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


def layers(w: Any, b: Any, x: Any) -> Any:
    return np.sum(np.tanh(x @ w + b[0] + w[0]) ** 2)


def convolution(kernel: Any, images: Any) -> Any:
    return np.sum(np.sin(nn.conv(images, kernel, (1, 1), "SAME")))


def histograms(start: Any, x: Any, places: Any) -> Any:
    """Sums at places, of numbers and of rows; the last number gets none, and is what it was, -0.0."""
    sums, rows = start.copy(), np.zeros((20, 4))
    np.add.at(sums, places, x)
    np.add.at(rows, places[:20_000] % 20, np.reshape(x[:80_000], (20_000, 4)))
    counts, wide = np.zeros(41, "i8"), np.zeros(41, "c16")
    np.add.at(counts, places[:99_000], 1)
    np.add.at(wide, places[:98_000], np.exp(1j * x[:98_000]))
    single = fnad.grad(lambda w: np.sum(np.float32(x[:97_000]) * w[places[:97_000]]))(np.float32(start))
    return sums, rows, counts, wide, single


def distances(centers: Any, points: Any) -> Any:
    return np.sum(np.min(np.sum(centers**2, axis=1) - 2 * points @ centers.T, axis=1))


def root(a: Any) -> Any:
    return fnad.while_loop(lambda s: abs(s * s - a) > 1e-12 * a, lambda s: (s + a / s) / 2, a + 0.1)


def powers(x: Any) -> Any:
    """Return x times the power of a matrix that its norm asks for."""
    m = np.array([[0.5, 0.1, 0.0], [0.2, 0.4, 0.3], [0.0, 0.1, 0.7]])
    return fnad.while_loop(lambda y: np.sum(y * y) > 0.01, lambda y: np.sum(m * y, axis=1), x)


def of_vectors(x: Any, y: Any) -> Any:
    """Return results of loops of different lengths, so that none is fused with another one."""
    a, b = ([v[: v.size - n] for n in range(13)] for v in (x, y))
    single = [v.astype("f4") for v in a]
    folds = np.sum(np.exp(a[3])), np.sum(a[4] * b[4]), np.max(a[5]), np.min(b[5]), np.sum(np.cos(single[6]))
    special = np.sum(np.exp(a[7] + 1j * b[7])), np.sum(np.exp(1000.0 * a[8])), np.sum(np.log(a[9]))
    in_order = np.prod(1.0 + 1e-6 * np.tanh(a[10])), np.cumsum(np.exp(a[11])), np.argmax(np.sin(a[12]))
    return np.exp(x[::-1]) * np.sin(y), a[1] > b[1], 2.0 * np.tanh(single[2]), *folds, *special, *in_order


def of_places(x: Any, places: Any) -> Any:
    p, q, r = places[:-1], places[:-2], places[:-3]
    return np.sum(p * p), np.any(q == 77), np.all(r >= 0), np.prod(places[:-4] % 3 + 1), np.exp(x[places[:-5]])


def of_matrices(x: Any) -> Any:
    """Return results of loops over different numbers of rows."""
    a = [x[: len(x) - n] for n in range(8)]
    sums = np.sum(np.sin(a[0]), axis=0), np.sum(np.cos(a[1]), axis=1), np.max(np.sin(a[2]), axis=0), np.var(a[3])
    others = np.sum(np.rint(a[4]).astype("f4"), axis=0), np.any(a[5] > 3.0, axis=0), np.cumsum(np.exp(a[6]), axis=1)
    both = np.sum(np.cos(np.reshape(a[1][:300], (10, 30, 503))), axis=(0, 2))
    return *sums, *others, both, softmax(x), np.argmin(np.sin(a[7]), axis=1), np.sum(np.exp(x[:4]), axis=1)


def of_products(x: Any) -> Any:
    stack, long = x[:400].reshape(40, 130, 40), np.concatenate([x, x, x], axis=1)
    squares = x @ x, x.T @ x, x @ x.T, x.T @ x.T, np.exp(x[:, :300] @ x[:, :300].T / 100.0)
    vectors = long @ long[0], long[:, 1] @ long, long.T @ long[:, 2]
    return *squares, *vectors, (x @ x[:, :3]).T, (x[:400] + 1j) @ (x[:400].T - 2j), stack @ np.swapaxes(stack, 1, 2)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "vectors": (of_vectors, (VECTOR, OTHER)),
    "integers": (of_places, (VECTOR, PLACES)),
    "matrices": (of_matrices, (MATRIX,)),
    "products": (of_products, (LARGE,)),
    "gradient of a gather": (fnad.grad(lambda x, places: np.sum(np.exp(x[places]))), (VECTOR, PLACES)),
    "sums at few places": (histograms, (np.full(41, -0.0), VECTOR, PLACES % 40)),
    "gradient of rows": (
        fnad.grad(lambda x: np.sum(np.log(softmax(x)[:, 3] + np.max(np.cos(x), axis=1)))),
        (MATRIX,),
    ),
    "softmax in single precision": (softmax, (MATRIX.astype("f4"),)),
    "gradient of layers": (fnad.grad(layers, (0, 1)), (MATRIX, MATRIX[:, 0], MATRIX[:200, :301])),
    "gradient of a stencil": (fnad.grad(lambda u: np.sum(diffusion(u) ** 2)), (MATRIX,)),
    "gradient of a convolution": (fnad.value_and_grad(convolution, (0, 1)), (KERNEL, IMAGES)),
    "in a loop": (lambda x: fnad.fori_loop(0, 3, lambda _, y: np.tanh(y) + y / (1.0 + np.sum(y**2)), x), (VECTOR,)),
    "rows of a vmap": (fnad.vmap(lambda a: root(a * a)), (VECTOR[:20_000],)),
    "rows with arrays": (fnad.vmap(powers), (VECTOR[:9_000].reshape(3000, 3),)),
}


def bits(results: Any) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in fnad.tree.leaves(results)]


@pytest.mark.slow
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
                for _ in range(2):
                    with fnad.config.override(executor="compiled", threads=2):
                        assert bits(run(*arguments)) == bits(alone)
                for got, wanted in zip(fnad.tree.leaves(alone), expected, strict=True):
                    single = np.asarray(got).dtype == np.float32
                    np.testing.assert_allclose(got, wanted, rtol=2e-6 if single else 1e-11, atol=1e-12)


def test_the_images_of_a_convolution_are_tasks() -> None:
    """Of the sums over images each task has its own, and what one image alone needs is in memory for one image."""
    source = fnad.jit(PROGRAMS["gradient of a convolution"][0]).lower(KERNEL, IMAGES).as_text("source")
    loops = re.findall(r"^    for (\w+) in (p?range)\((.*)\):", source, re.MULTILINE)
    assert [extent for _, kind, extent in loops if kind == "prange"] == ["20"]
    assert source.count("gemm(x") + source.count("gemm(l") == 3
    windows = KERNEL[0].size * 25 * 25
    assert f"local_f64(i64({2 ** (windows - 1).bit_length()}))" in source


IN_A_SMALL_STACK = """
import threading
import time
from tests.backends.test_threads import IMAGES, KERNEL, MATRIX, bits, convolution, distances, fnad, np

def total(kernel, centers, points, wide):
    columns = np.sum(np.sum(np.sin(wide), axis=0) ** 2)
    return convolution(kernel, IMAGES) + distances(centers, points) + columns

arguments = KERNEL, MATRIX[:300, :16], np.resize(MATRIX, (9000, 16)), np.resize(MATRIX, (3000, 2000))
run, found = fnad.jit(fnad.grad(total, (0, 1, 2, 3))), []
fnad.config.set_default(executor="compiled")
threading.stack_size(2**16)
thread = threading.Thread(target=lambda: found.extend(run(*arguments)))
thread.start()
thread.join()
assert bits(found) == bits(run(*arguments))
"""


@pytest.mark.slow
def test_a_thread_may_have_a_small_stack() -> None:
    """What a kernel and its tasks keep for themselves takes 300 KB and more in each of three nests here."""
    subprocess.run([sys.executable, "-c", IN_A_SMALL_STACK], check=True, timeout=300)


def test_an_error_of_the_compiler_reaches_the_thread_that_compiles() -> None:
    def fails() -> None:
        raise RuntimeError("no such pass")

    with ThreadPoolExecutor(1) as executor, pytest.raises(RuntimeError, match="no such pass"):
        executor.submit(on_large_stack, fails).result()


@pytest.mark.slow
def test_threads_add_to_sums_of_their_own_at_few_places() -> None:
    run = fnad.jit(histograms)
    arguments = PROGRAMS["sums at few places"][1]
    source = run.lower(*arguments).as_text("source")
    with fnad.config.override(executor="compiled"):
        sums = run(*arguments)[0]
    assert source.count(" in prange(") == 5
    assert np.signbit(sums[40]) and sums[40] == 0  # noqa: PT018 - minus zero
    many = fnad.jit(lambda x, places: np.add.at(out := np.zeros_like(x), places, x) or out)
    assert " in prange(" not in many.lower(VECTOR, PLACES).as_text("source")


@several
def test_tasks_run_on_two_threads_at_once() -> None:
    both = threading.Barrier(2)
    found: list[int] = []

    def task(number: int) -> None:
        if number:  # the first task is run alone
            both.wait(timeout=300)
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
def test_a_thread_has_the_same_part_of_the_tasks_each_time() -> None:
    """It takes that from its first task on, whichever worker it is, then what others have left."""
    threads.use(4)
    for _ in range(10):
        both = threading.Barrier(2)
        first: dict[int, int] = {}

        def task(number: int, both: threading.Barrier = both, first: dict[int, int] = first) -> None:
            if number and first.setdefault(threading.get_native_id(), number) == number:
                both.wait(timeout=300)

        share(task, 9)
        assert first.pop(threading.get_native_id()) == 1
        assert [*first.values()] == [4]


@pytest.mark.parametrize("number", [2, 3, 7])
def test_each_task_is_taken_once(number: int) -> None:
    for tasks in (2, 3, 8, 63, 64, 200):
        taken: list[int] = []
        share(taken.append, tasks, number)
        assert sorted(taken) == list(range(tasks))


@several
def test_a_program_that_owes_is_not_shared() -> None:
    """Not until what it owes is paid: here that is longer than any test, then nothing."""
    seen: set[int] = set()
    call, status = TASK(lambda *_: seen.add(threading.get_native_id())), (WORD * STATUS_SIZE)()
    run = lambda: SHARE(workers().share)(call, None, 9, 2, True, False, status, None, 0)  # noqa: E731
    threads.use(2)
    field = workers().field("threshold")
    before, field.value = field.value, 1
    loops = (WORD * 4 * 4096).from_address(workers().engine.get_global_value_address("threads_loops"))
    known = [loop[0] for loop in loops]
    run()
    (loop,) = (loop for loop, key in zip(loops, known, strict=True) if loop[0] != key)
    assert loop[1] == 1
    status[ACCOUNT + 1] = 2**62
    seen.clear()
    for _ in range(20):
        run()
    assert seen == {threading.get_native_id()}
    assert loop[1] == 1
    status[ACCOUNT + 1] = 0
    run()
    assert loop[1] == 2
    field.value = before


def test_what_a_program_gained_is_known_after_a_run_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    workspace = NativeExecutor._workspace
    monkeypatch.setattr(NativeExecutor, "_workspace", lambda self: made.append(workspace(self)) or made[-1])
    run, places = fnad.jit(lambda x, i: np.exp(x)[i]), np.arange(5)
    with fnad.config.override(executor="compiled"):
        run(VECTOR, places)
        (status,) = (arrays[-1] for arrays in made)
        status[ACCOUNT:] = 1, 2, 3
        with pytest.raises(fnad.errors.OutOfRangeError):
            run(VECTOR, places + VECTOR.size)
    assert status.tolist()[:2] == [0, 0]
    assert status.tolist()[ACCOUNT + 2 :] == [3]


class Simulated:
    """A program whose loops take these times: functions (run, on several threads?) -> nanoseconds."""

    def __init__(self, *loops: Callable[[int, bool], int]) -> None:
        address = workers().engine.get_function_address
        note = ctypes.CFUNCTYPE(None, ADDRESS, ADDRESS, WORD)
        self.prefers_one = ctypes.CFUNCTYPE(FLAG, ADDRESS, ADDRESS, WORD)(address("threads_prefers_one"))
        self.note_alone = note(address("threads_note_alone"))
        self.note_shared = ctypes.CFUNCTYPE(None, *[ADDRESS] * 2, *[WORD] * 2)(address("threads_note_shared"))
        self.program = (WORD * 3)()
        self.loops = [((WORD * 4)(), loop) for loop in loops]
        self.shared: list[bool] = []
        self.nanoseconds = 0

    def run(self, number: int, expected: int = 0, work: int = 0) -> None:
        for _ in range(number):
            for record, loop in self.loops:
                several = not self.prefers_one(self.program, record, expected)
                self.nanoseconds += (took := loop(len(self.shared), several))
                self.shared.append(several)
                if several:
                    self.note_shared(self.program, record, took, work)
                else:
                    self.note_alone(self.program, record, took)


MS = 1_000_000


def test_a_program_that_gains_is_shared_but_when_it_is_measured() -> None:
    simulated = Simulated(lambda _, several: 2 * MS if several else 4 * MS)
    simulated.run(1024)
    assert [n % 256 for n, several in enumerate(simulated.shared) if not several] == [0, 1] * 4


@pytest.mark.parametrize("busy", [50 * MS, 12 * MS])
@pytest.mark.parametrize("when", [2, 3, 4, 200])
def test_it_is_shared_again_soon_after_the_cores_were_busy(busy: int, when: int) -> None:
    """The longest of these moments comes before there is a credit, and costs 25 runs on one thread."""
    simulated = Simulated(lambda run, several: busy if run == when else 2 * MS if several else 4 * MS)
    simulated.run(256)
    assert simulated.shared.count(False) <= 2 + 26
    assert all(simulated.shared[when + 30 :])


def test_it_is_shared_again_soon_after_the_cores_were_busy_for_long() -> None:
    simulated = Simulated(lambda run, several: (10 if run < 2000 else 2) * MS if several else 4 * MS)
    simulated.run(2000)
    assert simulated.shared[200:].count(True) < 0.05 * 1800
    simulated.run(200)
    assert simulated.shared[-80:].count(False) <= 2


@pytest.mark.parametrize(
    "loop",
    [
        lambda _, several: MS * 3 // 10 if several else MS // 5,
        lambda _, several: 400 * MS if several else 300 * MS,
        lambda run, several: (4 * MS if run % 10 == 0 else MS // 10) if several else MS // 5,
        lambda run, several: (8 if several else 4) * MS if run > 5000 else (2 if several else 4) * MS,
    ],
    ids=["short", "long", "by one run in ten", "from now on"],
)
def test_a_program_that_loses_takes_hardly_longer_than_on_one_thread(loop: Callable[[int, bool], int]) -> None:
    simulated = Simulated(loop)
    simulated.run(20_000)
    assert simulated.nanoseconds < 1.05 * sum(loop(run, False) for run in range(20_000))


def test_loops_are_shared_together_since_their_data_is_where_they_ran_last() -> None:
    """What each moves to the cores that run it costs more than it takes, until all of it is there."""
    spread = 0.0

    def loop(_: int, several: bool) -> int:
        nonlocal spread
        moved = abs(several - spread)
        spread = several + 0.7 * (spread - several)
        return int((120_000 if several else 230_000) + 500_000 * moved)

    simulated = Simulated(loop, loop)
    simulated.run(20)
    simulated.program[:] = [0, 10 * MS, 6]
    simulated.run(100)
    assert all(simulated.shared[-100:])


@pytest.mark.parametrize(
    ("runs", "alone", "program"),
    [
        ([900, 600], 600, (0, 0, 0)),  # the least time
        ([600, 900], 609, (0, 0, 0)),  # by little more each time
        ([600, (400,)], 600, (0, 0, 0)),  # what moves data does not count
        ([600, (400,), (400,), (500,)], 600, (300, 0, 0)),
        ([600, (400,), (5400,)], 600, (-4800, 0, 0)),
        ([600, (400,), (5401,)], 600, (0, 9602, 1)),
        ([600, (400,), (5401,), 600, 700], 609, (0, 8302, 1)),
        ([600, (400,), *[(5401,)] * 7], 600, (0, 4801 * 64, 6)),
        ([5 * MS, (1,), (8 * MS,)], 5 * MS, (0, 6 * MS, 1)),  # the longest that moving data takes
        ([5 * MS, (1,), (8 * MS,), *[(1 * MS,)] * 5], 5 * MS, (20 * MS, 6 * MS, 0)),
        ([(500, 400)], 0, (-100, 0, 0)),  # by the time of the processor
        ([(500,)], 0, (0, 0, 0)),
    ],
)  # fmt: skip
def test_what_sharing_gained_and_lost(runs: list[Any], alone: int, program: tuple[int, ...]) -> None:
    simulated = Simulated(lambda *_: 0)
    ((record, _),) = simulated.loops
    for run in runs:
        if isinstance(run, int):
            simulated.note_alone(simulated.program, record, run)
        else:
            simulated.note_shared(simulated.program, record, *run, *[0] * (2 - len(run)))
    assert record[2] == alone
    assert tuple(simulated.program) == program


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


def test_an_index_of_a_loop_around_the_tasks_is_checked_there() -> None:
    """The loops over 6 and 3 are too short for tasks; the index is that of the outer one."""
    x, places = rng.random((5, 3, 40_001)), np.array([0, 4, 1, 1, 2, 3])
    run = fnad.jit(lambda x, i: np.tanh(np.sin(x[i][:, :, 1:])))
    with fnad.config.override(executor="compiled"):
        np.testing.assert_allclose(run(x, places), np.tanh(np.sin(x[places][:, :, 1:])), rtol=1e-14)
        with pytest.raises(fnad.errors.OutOfRangeError, match="index 9 is out of bounds for axis 0 with size 5"):
            run(x, places + 5 * (places == 4))


@several
def test_rows_that_never_end_are_interrupted() -> None:
    """In the thread that handles signals, and in another one, while that waits."""
    code = """
import os, signal, threading, time
import numpy as np, fnad
from fnad.backends.cpu import threads
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins without it
threads.use(2)
threads.workers().field("threshold").value = -1
endless = fnad.vmap(lambda a: fnad.while_loop(lambda s: s * a != 2.0, lambda s: np.minimum(s + 0.5, 2.0), 0.0))
run = fnad.jit(endless)
with fnad.config.override(executor="compiled"):
    run(np.ones(3000))
    for row in (0, 2999):
        x = np.ones(3000)
        x[row] = -1.0
        try:
            threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            run(x)
        except KeyboardInterrupt:
            print("interrupted", run(np.ones(3000)).sum())
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert found.stdout == 2 * "interrupted 6000.0\n", found.stderr


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
