"""The logger `fnad`: what is traced, derived, compiled and found in the cache, and how long it took.

`logging.getLogger("fnad")` has it at the level `INFO`; the environment variable FNAD_LOG=info shows it on
standard error. A loop of Python that takes two seconds to trace and compile is a warning: its steps are traced one by
one.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from importlib import import_module
from time import perf_counter
from typing import Any

from fnad import forks
from fnad.errors import SettingError
from fnad.ir.program import Program, Source
from fnad.ir.walk import all_equations
from fnad.trace.source import loop_around

SLOW = 2.0
"""Seconds of tracing and compiling from which on a loop is named."""

MANY = 1000
"""The fewest operations of one line that make it the reason."""

WAY_OUT = (
    "each step is traced: write it on whole arrays, or as fnad.fori_loop or fnad.scan, whose bodies are traced once"
)


class _Work(threading.local):
    """The time that went into the function that was traced last, and the line that most of its operations are from."""

    name = ""
    seconds = 0.0
    line: Source | None = None
    count = 0

    def begin(self) -> None:
        self.seconds, self.line, self.count = 0.0, None, 0


_WORK = _Work()
_named: set[Source] = set()


def begin_trace() -> float:
    """Forget the function that was traced before; return the time."""
    _WORK.begin()
    return perf_counter()


def traced(program: Program, seconds: float, *, is_outermost: bool) -> None:
    """Record a trace, whose time is part of that of the trace around it."""
    if len(program.equations) >= MANY:
        _find_line(program)
    if is_outermost:
        _WORK.name = program.name
        done("traced", program, seconds)


def done(what: str, program: Program, seconds: float) -> None:
    """Record work on a program of the function that was traced last, or of another one."""
    if _logs("INFO"):
        count = sum(1 for _ in all_equations(program))
        log("INFO", f"{what} {program.name}: {count} operation{'s' * (count != 1)} in {seconds:.3f} s")
    if program.name == _WORK.name:
        _WORK.seconds += seconds
        if _WORK.seconds >= SLOW and _WORK.line is not None:
            _warn(_WORK.name, _WORK.seconds, _WORK.line, _WORK.count)


def log(level: str, text: str) -> None:
    """Log a text, if the program has loaded `logging`; nothing else would show it."""
    if _logs(level):
        _logger().log(getattr(sys.modules["logging"], level), text)


def _logs(level: str) -> bool:
    logging = forks.loaded("logging")
    return logging is not None and _logger().isEnabledFor(getattr(logging, level))


def _logger() -> Any:
    return import_module("logging").getLogger("fnad")


def _find_line(program: Program) -> None:
    sources = [equation.source for equation in program.equations]
    known, counts = dict(zip(map(id, sources), sources, strict=True)), Counter[Source]()
    for address, count in Counter(map(id, sources)).items():  # equal ones are mostly one object
        if (source := known[address]) is not None:
            counts[source] += count
    for line, count in counts.most_common(1):
        if count >= max(MANY, _WORK.count):
            _WORK.line, _WORK.count = line, count


def _warn(name: str, seconds: float, line: Source, count: int) -> None:
    """Name the loop that a line is part of, or the line, once."""
    _WORK.begin()
    loop = loop_around(line) or line
    if loop not in _named:
        _named.add(loop)
        what = f"{name} took {seconds:.1f} s to trace and compile: one line gives {count} operations"
        _logger().warning(f"{what}\n  at {loop}\n  {WAY_OUT}")


def _show(level: str) -> None:
    """Show what is logged from a level on, on standard error."""
    logging = import_module("logging")
    if level.upper() not in logging.getLevelNamesMapping():
        raise SettingError(f"the environment variable FNAD_LOG is {level!r}", remedy="set it to info, warning or error")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("fnad: %(message)s"))
    _logger().addHandler(handler)
    _logger().setLevel(level.upper())


if "FNAD_LOG" in os.environ:
    _show(os.environ["FNAD_LOG"])
