"""Child processes: locks that other threads held are free there, and blocks that other threads were in are over."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, cast

import numpy as np
import pytest

import fnad
from fnad import forks
from fnad.backends.background import BACKGROUND
from fnad.backends.cpu import codegen
from fnad.backends.cpu.idle import WATCH
from fnad.backends.cpu.loader import LOCK
from fnad.backends.tiers import TieredProgram
from fnad.ir import types
from fnad.lapack_threads import BlasLibrary
from fnad.store import STORE, uncollected

pytestmark = [pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"), pytest.mark.timeout(120)]

X = np.array([1.0, 2.0, 3.0])
PROGRAM = TieredProgram(fnad.make_program(lambda x: np.exp(x) * 2.0)(X).program)
LIBRARY = BlasLibrary(lambda: 1, lambda count: None)
NEW = forks.lock()


def in_child(check: Callable[[], bool]) -> bool:
    """Whether a check holds in a child process, which is given a minute."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        os._exit(not check())
    return os.waitpid(child, 0)[1] == 0


@contextmanager
def in_another_thread(block: AbstractContextManager[Any], seconds: float = 0.3) -> Generator[None]:
    """Have another thread in a block, for a while of the time in this one."""
    begun = Event()

    def hold() -> None:
        with block:
            begun.set()
            time.sleep(seconds)

    thread = Thread(target=hold)
    thread.start()
    begun.wait()
    yield
    thread.join()


LOCKS: dict[str, Callable[[], Any]] = {
    "LLVM": lambda: LOCK,
    "llvmlite": lambda: cast("Any", codegen.llvm.ffi.lib)._lock._lock,
    "the store": lambda: STORE._lock,
    "types": lambda: types._LOCK,
    "workspaces": lambda: WATCH._lock,
    "a compilation": lambda: PROGRAM._compiling,
    "the background": lambda: BACKGROUND._lock,
    "LAPACK": lambda: LIBRARY._lock,
    "a new one": lambda: NEW,
}


def is_free(lock: Any) -> bool:
    """Whether a lock can be taken, by a thread that has not got it yet."""
    found: list[bool] = []

    def take() -> None:
        if lock.acquire(timeout=5):
            found.append(True)
            lock.release()

    thread = Thread(target=take, daemon=True)
    thread.start()
    thread.join(30)
    return found == [True]


def test_locks_that_other_threads_held_are_free_in_a_child() -> None:
    locks = {name: lock() for name, lock in LOCKS.items()}
    read, write = os.pipe()

    def tell() -> bool:
        os.write(write, " ".join(name for name, lock in locks.items() if not is_free(lock)).encode() or b"none")
        return True

    with ExitStack() as held:
        for lock in locks.values():
            held.enter_context(in_another_thread(lock))
        assert in_child(tell)
    assert os.read(read, 1000).decode() == "none", "these locks are held there"
    assert all(map(is_free, locks.values()))
    os.close(read)
    os.close(write)


def test_a_thread_that_takes_several_locks_while_this_one_forks() -> None:
    """A fork that kept one of them while it waits for another would wait for ever."""
    first, second = forks.lock(), forks.lock()
    ends = Event()

    def take(outer: Any, inner: Any) -> None:
        while not ends.is_set():
            with outer:
                time.sleep(0.001)
                with inner:
                    time.sleep(0.001)
            time.sleep(0.001)

    threads = [Thread(target=take, args=(first, second)), Thread(target=take, args=(LOCK, first))]
    for thread in threads:
        thread.start()
    for _ in range(5):
        assert in_child(lambda: all(map(is_free, (first, second, LOCK))))
    ends.set()
    for thread in threads:
        thread.join()


def test_a_thread_may_fork_with_a_lock_of_its_own() -> None:
    with LOCK:
        assert in_child(lambda: LOCK.acquire(blocking=False))


def test_a_child_that_is_forked_while_another_thread_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = Event()
    optimized = codegen.optimized

    def slowly(module: Any) -> Any:
        begun.set()
        time.sleep(0.1)
        return optimized(module)

    monkeypatch.setattr(codegen, "optimized", slowly)
    compiled = fnad.config.override(executor="compiled")
    for number in (1.25, 2.25, 3.25):
        begun.clear()
        f = compiled(fnad.jit(lambda x, number=number: np.sum(np.sin(x) * number)))
        g = compiled(fnad.jit(lambda x, number=number: np.cos(x) * number))
        thread = Thread(target=f, args=(X,))
        thread.start()
        assert begun.wait(60)
        assert in_child(partial(are_right, {f: np.sum(np.sin(X)) * number, g: np.cos(X) * number}))
        thread.join()


@pytest.mark.usefixtures("compiled_in_background")
def test_a_fork_waits_for_what_the_background_compiles_and_forgets_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, optimized = Event(), codegen.optimized

    def slowly(module: Any) -> Any:
        begun.set()
        time.sleep(0.1)
        return optimized(module)

    monkeypatch.setattr(codegen, "optimized", slowly)
    programs = [TieredProgram(fnad.make_program(lambda x, c=c: np.exp(x) * c)(X).program) for c in (1.5, 2.5, 3.5)]

    def call(program: TieredProgram) -> bool:
        program.executor(eager=True)([X])
        return program.is_native

    for program in programs:
        call(program)
    assert begun.wait(60)

    def is_right() -> bool:
        known = [program.is_native for program in programs] == [True, False, False]
        return known and not any(map(BACKGROUND.compiles, programs[1:])) and is_compiled()

    def is_compiled() -> bool:
        until = time.monotonic() + 30
        while time.monotonic() < until and not all(map(call, programs)):
            time.sleep(0.01)
        return all(map(call, programs))

    assert in_child(is_right)
    assert not any(map(BACKGROUND.compiles, programs[1:]))
    assert is_compiled()


LOGGING = """
import os, signal, threading, time
import numpy as np
import fnad
from fnad.backends.cpu import codegen
import logging  # after fnad: its lock is taken at a fork before those of fnad

begun, optimized = threading.Event(), codegen.optimized

def slowly(module):
    begun.set()
    time.sleep(0.3)
    return optimized(module)

codegen.optimized = slowly
f = fnad.jit(np.sin)
f(1.0), f(1.0)
begun.wait()
if (child := os.fork()) == 0:
    os._exit(0)
os.waitpid(child, 0)
print("forked")
"""


def test_a_fork_that_holds_the_lock_of_logging_waits_for_the_background() -> None:
    command = [sys.executable, "-W", "ignore", "-c", LOGGING]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "forked\n"


def are_right(results: dict[Callable[[Any], Any], Any]) -> bool:
    return all(np.allclose(function(X), expected) for function, expected in results.items())


def test_blocks_of_other_threads_are_over_in_a_child() -> None:
    assert gc.isenabled()
    with in_another_thread(uncollected()):
        assert not gc.isenabled()
        assert in_child(gc.isenabled)
    assert gc.isenabled()
    with uncollected():
        assert in_child(lambda: not gc.isenabled())
    assert gc.isenabled()


def test_fnad_has_no_other_locks() -> None:
    made = re.compile(r"\b(R?Lock|Condition|Semaphore)\(")
    sources = Path(fnad.__file__).parent.rglob("*.py")
    others = {path.name for path in sources if made.search(path.read_text(encoding="utf-8"))}
    assert others <= {"forks.py", "callees.py", "interception.py", "watch.py"}


def test_a_child_forked_during_an_import_by_fnad_imports_the_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    begun = tmp_path / "begun"
    text = f"import pathlib, time\npathlib.Path({str(begun)!r}).touch()\ntime.sleep(0.3)\nNUMBER = 3"
    (tmp_path / "fnad_imported_late.py").write_text(text)
    names: dict[str, Any] = {}
    code = "def imported():\n    import fnad_imported_late\n    return fnad_imported_late.NUMBER"
    exec(compile(code, f"{forks.OWN}made.py", "exec"), names)
    thread = Thread(target=names["imported"])
    thread.start()
    while not begun.exists():
        time.sleep(0.001)
    assert in_child(lambda: names["imported"]() == 3)
    thread.join()


class Slow:
    """An object with a property that takes a while."""

    begun = Event()

    @forks.cached_property
    def number(self) -> int:
        self.begun.set()
        time.sleep(0.1)
        return 3


def test_a_child_forked_while_a_property_is_computed_computes_it() -> None:
    thread = Thread(target=lambda: Slow().number)
    thread.start()
    Slow.begun.wait()
    assert in_child(lambda: Slow().number == 3)
    thread.join()
