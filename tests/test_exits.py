"""The end of a process: what its handlers may call, and threads that are within fnad then."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def ended(program: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"FNAD_CACHE_DIR": ""}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


HANDLER = """
import atexit
import numpy as np

def last():
    print(fnad.grad(lambda p: p["b"] * p["a"])({"b": 2.0, "a": 3.0}), compiled(np.ones((600, 600))))

EARLY
import fnad
compiled = fnad.jit(lambda x: {"z": np.sum(np.exp(x) @ x), "y": x[0, 0]})
fnad.config.set_default(executor="compiled")
fnad.grad(np.sin)(1.0)
LATE
"""


def test_a_handler_may_call_fnad_if_it_is_registered_after_the_first_call() -> None:
    done = ended(HANDLER.replace("EARLY", "").replace("LATE", "atexit.register(last)"))
    assert done.stderr == ""
    assert done.stdout.startswith("{'b': np.float64(3.0), 'a': np.float64(2.0)} {'z': ")


@pytest.mark.parametrize("place", ["EARLY", "import fnad"])
def test_a_handler_that_is_registered_before_says_what_to_do(place: str) -> None:
    added = "atexit.register(last)" if place == "EARLY" else "import fnad; atexit.register(last)"
    done = ended(HANDLER.replace(place, added, 1).replace("EARLY", "").replace("LATE", ""))
    assert done.stderr.endswith(
        "fnad.errors.ExitError: fnad is called while Python ends, after optree has forgotten all containers\n"
        "  call atexit.register after the first call of fnad, or after import optree\n"
    )


DAEMONS = """
import atexit, os, sys, time
from itertools import count
from threading import Thread

@atexit.register  # before fnad's own handlers, so that it runs after them
def threads_within_fnad():
    folder = os.path.dirname(fnad.__file__)
    for frame in sys._current_frames().values():
        while frame is not None:
            if frame.f_code.co_filename.startswith(folder):
                print("a thread is within", frame.f_code.co_filename, file=sys.stderr)
            frame = frame.f_back

import numpy as np
import fnad
from llvmlite.binding import ffi

def work(number):
    for n in count():
        f = fnad.jit(fnad.grad(lambda x: np.sum(np.sin(x) * (n + 1000.5 * number) + np.exp(x) ** 2)))
        with fnad.config.override(executor="compiled"):
            f(np.ones(5 + n % 7))
        compiled.add(number)

compiled = set()
for number in range(3):
    Thread(target=work, args=(number,), daemon=True).start()
while len(compiled) < 3:
    time.sleep(0.01)
WAIT
time.sleep(0.1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("wait", ["", "ffi.register_lock_callback(lambda: time.sleep(0.002), lambda: None)"])
def test_daemon_threads_that_compile_at_the_exit(wait: str) -> None:
    """Python ends a thread where it takes the GIL: within C++ code that aborted one process in three.

    A thread that is ended while it takes llvmlite's lock never gives it back, and the others wait for it.
    """
    done = ended(DAEMONS.replace("WAIT", wait))
    assert (done.returncode, done.stderr) == (0, "")


BACKGROUND = """
def called(n, times):
    f = fnad.jit(fnad.grad(lambda x: np.sum(np.sin(x) * (n + 0.5) + np.exp(x) ** 2)))
    for _ in range(times):
        f(np.ones(5))
    return f

kept = [called(n, 2) for n in range(20)]
atexit.register(called, 20, 3)
"""


@pytest.mark.slow
def test_what_the_background_compiles_at_the_exit_is_given_up() -> None:
    """So is what a handler has it compile then."""
    done = ended(DAEMONS.partition("def work")[0] + BACKGROUND)
    assert (done.returncode, done.stderr) == (0, "")
