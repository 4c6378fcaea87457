"""The logger `fnad`: what is traced, derived, compiled and found on disk, and the loops that take long."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fnad
from fnad import config
from fnad.errors import LoweringError
from fnad.trace import log

N = 4
X = np.linspace(0.5, 1.5, N * N).reshape(N, N)


def double_loop(x: Any) -> Any:
    total = 0.0
    for i in range(N):
        for j in range(N):
            total = total + np.sin(x[i, j]) * (i * i % 7 - j)
    return total


def while_loop(x: Any) -> Any:
    total, i = 0.0, 0
    while i < N * N:
        total, i = total + np.sin(x[i // N, i % N]) * (i * i % 7), i + 1
    return total


def element(x: Any, i: int, j: int) -> Any:
    return np.sin(x[i, j]) * (i * i % 7 - j)


def without_a_loop(x: Any) -> Any:
    return sum(element(x, i, j) for i in range(N) for j in range(N))


WITHOUT_A_FILE: dict[str, Any] = {"np": np, "N": N}
exec(  # as in a shell, where there is no text to read
    "def f(x):\n    t = 0.0\n    for i in range(N * N):\n        t = t + np.sin(x[i // N, i % N])\n    return t\n",
    WITHOUT_A_FILE,
)

LONG: dict[str, tuple[Callable[..., Any], str]] = {
    "double loop": (double_loop, "for j in range(N):"),
    "while": (while_loop, "while i < N * N:"),
    "line": (without_a_loop, "return np.sin(x[i, j]) * (i * i % 7 - j)"),
    "no file": (WITHOUT_A_FILE["f"], "<string>:4 in f"),
}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    fnad.clear_cache()
    monkeypatch.setattr(log, "_named", set())
    log.begin_trace()


TRANSFORMS = [fnad.grad, fnad.jit, lambda f: fnad.jit(fnad.grad(f)), fnad.hessian]


@pytest.mark.parametrize(
    ("what", "transform"), [(what, fnad.jit) for what in LONG] + [("double loop", t) for t in TRANSFORMS]
)
def test_a_loop_that_takes_long_is_named_once(
    what: str, transform: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log, "SLOW", 0.0)
    monkeypatch.setattr(log, "MANY", N * N)
    f, place = LONG[what]
    for _ in range(2):
        transform(f)(X)
    (record,) = caplog.records
    first, where, way_out = record.getMessage().splitlines()
    assert record.levelno == logging.WARNING
    assert re.fullmatch(r"\w+ took \d+\.\d s to trace and compile: one line gives \d+ operations", first)
    assert where.startswith("  at ")
    assert where.endswith(place)
    assert way_out.strip() == log.WAY_OUT


@pytest.mark.parametrize(("slow", "many"), [(1e9, 1), (0.0, 10**6)])
def test_what_is_short_or_has_no_long_loop_is_not_named(
    slow: float, many: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log, "SLOW", slow)
    monkeypatch.setattr(log, "MANY", many)
    fnad.jit(fnad.grad(double_loop))(X)
    assert not caplog.records


def test_the_time_of_a_function_is_added_up(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Tracing and deriving count together; another function begins anew."""
    monkeypatch.setattr(log, "MANY", N * N)
    program = fnad.make_program(double_loop)(X).program
    for works, are_slow in (([1.5, 0.4], False), ([1.5, 0.6], True)):
        log.begin_trace()
        log.traced(program, works[0], is_outermost=True)
        log.done("derived", program, works[1])
        assert bool(caplog.records) == are_slow


def test_each_step_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def loss(x: Any) -> Any:
        return np.sum(np.sin(x) ** 2)

    caplog.set_level(logging.INFO, "fnad")
    with config.override(disk_cache=str(tmp_path / "cache"), executor="compiled"):
        fnad.grad(loss)(X)
        fnad.clear_cache()
        fnad.grad(loss)(X)
        f = fnad.jit(loss)
        for _ in range(3):
            f(X)
    said = [re.sub(r"\d+ operations in \d+\.\d+ s", "…", record.getMessage()) for record in caplog.records]
    derived = ["traced loss: …", "derived grad of loss: …"]
    assert said == [
        *derived,
        "compiled loss: …",
        *derived,
        "found on disk loss: …",
        "traced loss: …",
        "compiled loss: …",
    ]


def test_what_cannot_be_compiled_is_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(*_: Any) -> Any:
        raise LoweringError("no loops for this")

    monkeypatch.setattr("fnad.backends.cpu.executor.compile_program", refuse)
    caplog.set_level(logging.INFO, "fnad")
    with config.override(disk_cache=False, executor="compiled"):
        fnad.jit(np.sum)(X)
    assert [record.getMessage() for record in caplog.records][1:] == ["interprets sum: no loops for this"]


PROGRAM = "import sys, numpy as np, fnad; fnad.grad(np.sin)(1.0); print('logging' in sys.modules)"


@pytest.mark.parametrize(
    ("level", "out", "said"),
    [
        (None, "False", r""),
        ("info", "True", r"fnad: traced sin: 1 operation in \S+ s\nfnad: derived grad of sin: 1 operation in \S+ s\n"),
        ("WARNING", "True", r""),
        ("loud", "", r"(?s).*SettingError: the environment variable FNAD_LOG is 'loud'\n  set it to info.*"),
    ],
)
def test_the_environment_variable_shows_it(level: str | None, out: str, said: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "FNAD_LOG"}
    environment |= {} if level is None else {"FNAD_LOG": level}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.strip() == out
    assert re.fullmatch(said, done.stderr)
