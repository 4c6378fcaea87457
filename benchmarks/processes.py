"""Contenders in processes of their own: every sample is a fresh Python with empty caches."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import util

import numpy as np

from benchmarks.case import PEERS, Reading

CACHES = (
    "XDG_CACHE_HOME", "FNAD_CACHE_DIR", "NUMBA_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR",
    "CUPY_CACHE_DIR",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Process:
    """A command of this Python: its whole life is timed, or its last line of output says what to read.

    Such a line is a JSON object with `seconds`, `result` (a list of lists of numbers) and `note`.
    """

    system: str
    peer: str
    arguments: Sequence[str]
    reports: bool = False

    def start(self) -> "Process":
        """Look for the peer, without importing it here."""
        name = PEERS[self.peer]
        if util.find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return self

    def first(self) -> Reading:
        """Run once, in a process whose compilation caches are new and thrown away."""
        with tempfile.TemporaryDirectory() as cache:
            start = time.perf_counter()
            output = run(self.arguments, cache_directories(cache))
            seconds = time.perf_counter() - start
        return reading(output) if self.reports else Reading(seconds)

    def sample(self) -> float:
        """Run once more; there is no first time, every time is."""
        return self.first().seconds


def reading(output: str) -> Reading:
    """Return the reading that the last line of a process's output tells."""
    told = json.loads(output.splitlines()[-1])
    return Reading(told["seconds"], [np.array(numbers) for numbers in told["result"]], told["note"])


def cache_directories(directory: str) -> Mapping[str, str]:
    """Return the variables by which a system finds its compilation cache, all naming `directory`."""
    return dict.fromkeys(CACHES, directory)


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the output of `python arguments`; a failure raises with the last line of its traceback."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1])
    return done.stdout
