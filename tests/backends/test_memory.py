"""Compiled functions give back the memory that they took."""

import gc
import os
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fnad
from fnad.backends.cpu import idle
from fnad.backends.cpu.executor import compile_program

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="what is resident is read from Linux")


def resident() -> float:
    """Return the megabytes of memory that the process has in use."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def test_functions_that_are_gone_leave_nothing():
    """Not even what LLVM takes for a compilation: its passes alone were 70 KB each."""

    def run_many(count: int) -> None:
        for n in range(count):
            f = fnad.jit(fnad.grad(lambda x, n=n: np.sum(np.sin(x) * (n + 0.5))))
            f(np.ones(3))

    run_many(30)
    before = resident()
    run_many(40)
    assert resident() - before < 1.5


def test_a_workspace_that_is_not_used_is_given_back(monkeypatch):
    """One in use is kept, of the same program too, and a program that has given its own back takes another one."""
    now = 0.0
    monkeypatch.setattr(idle, "SECONDS", 0.5)
    monkeypatch.setattr(idle, "time", SimpleNamespace(monotonic=lambda: now))
    x = np.ones((500, 500))
    run = compile_program(fnad.make_program(lambda x: np.exp(x) @ np.sin(x) @ x)(x).program)
    expected = run([x])[0]
    size = run.workspace_bytes
    assert size >= idle.LARGE
    for _ in range(10):
        now += 0.4
        time.sleep(0.05)  # in which it is looked for, some of the times
        assert run.workspace_bytes == size
        run([x])
    now += 0.6
    child = os.fork()
    if child == 0:  # it has a copy, and gives that back too
        os._exit(not is_given_back(run))
    assert os.waitpid(child, 0)[1] == 0
    assert is_given_back(run)
    assert np.array_equal(run([x])[0], expected)
    assert run.workspace_bytes == size


def is_given_back(run):
    for _ in range(10_000):
        if run.workspace_bytes == 0:
            return True
        time.sleep(0.05)
    return False
