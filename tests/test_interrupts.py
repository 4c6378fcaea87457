"""Ctrl-C at every line of what begins and ends: the next use finds everything as it should be."""

from __future__ import annotations

import gc
import re
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest

import fnad
from fnad import config
from fnad.api.functions.tap import _TAPS
from fnad.api.staging.save_policy import SavePolicy, saving
from fnad.backends.cpu import threads
from fnad.backends.cpu.executor import compile_program
from fnad.backends.tiers import TieredProgram
from fnad.blocks import Blocks
from fnad.ir.builder import Builder, is_tracing
from fnad.lapack_threads import AtMost, BlasLibrary
from fnad.numpy.namespace import MAKING, making_traced
from fnad.store import uncollected
from fnad.transforms.interpret import regions_by
from tests.locks import takes_lock

OWN = str(Path(fnad.__file__).parent)
X = np.array([1.0, 2.0, 3.0])


Place = tuple[tuple[str, int], ...]
"""A line, and those of the three calls around it."""


def is_interrupted(run: Callable[[], object], known: set[Place], files: tuple[str, ...]) -> bool:
    """Run something, with Ctrl-C at the first place in some of fnad's files that is not known; whether there is one."""

    def at_line(frame: FrameType, event: str, _: object) -> Any:
        name = frame.f_code.co_filename
        if not (name.startswith(OWN) and name.endswith(files)):
            return None
        if event == "line" and not takes_lock(name, frame.f_lineno) and (place := place_of(frame)) not in known:
            known.add(place)
            raise KeyboardInterrupt
        return at_line

    outer, count = sys.gettrace(), len(known)
    sys.settrace(at_line)
    try:
        with suppress(KeyboardInterrupt):
            run()
    finally:
        sys.settrace(outer)
    return len(known) > count


def place_of(frame: FrameType | None) -> Place:
    place: list[tuple[str, int]] = []
    while frame is not None and len(place) < 4:
        place.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(place)


class Case(NamedTuple):
    """What is run, whether all is right then, and the files whose lines are interrupted."""

    run: Callable[[], object]
    is_right: Callable[[], bool]
    files: tuple[str, ...] = (".py",)


def within(*blocks: Callable[[], Any]) -> Callable[[], None]:
    """Run a block in each other one."""

    def run() -> None:
        if blocks:
            with blocks[0]():
                within(*blocks[1:])()

    return run


class OpenBlas:
    """An OpenBLAS of so many threads."""

    count = 8

    def get(self) -> int:
        return self.count

    def set_(self, count: int) -> None:
        self.count = count


OPENBLAS = OpenBlas()
LIBRARIES = [BlasLibrary(OPENBLAS.get, OPENBLAS.set_)]
BUILDER, BLOCKS, SETTINGS = Builder(), Blocks[int](), config.current()


def is_compiled_elsewhere(program: TieredProgram) -> bool:
    """Whether another thread can compile a program."""
    found: list[object] = []
    thread = Thread(target=lambda: found.append(program.native()), daemon=True)
    thread.start()
    thread.join(60)
    return len(found) == 1


def compiling() -> Case:
    made: list[TieredProgram] = []
    program = fnad.make_program(lambda x: np.exp(x) * 3.0)(X).program

    def run() -> None:
        made.append(TieredProgram(program))
        made[-1].native()

    def is_right() -> bool:
        return all(map(is_compiled_elsewhere, made[-2:]))

    return Case(run, is_right, ("tiers.py", "loader.py", "families.py", "store.py", "blocks.py"))


def growing(x: Any) -> Any:
    """A loop of unknown length that Python runs, for a library is called in it."""
    return fnad.while_loop(lambda c: c.sum() < 1e6, lambda c: np.sort(c) * 10.0, x)


def running() -> Case:
    run = compile_program(fnad.make_program(fnad.grad(lambda x: np.sum(growing(x))))(X).program)
    expected = run([X])[0]
    return Case(
        lambda: run([X]), lambda: np.array_equal(run([X])[0], expected), ("executor.py", "residual_stack.py", "idle.py")
    )


def starting() -> Case:
    ours, mask = threads.workers(), signal.pthread_sigmask(signal.SIG_BLOCK, [])

    def run() -> None:
        ours.stop()
        ours.start(2)

    def is_right() -> bool:
        kept = signal.pthread_sigmask(signal.SIG_BLOCK, []) == mask
        return kept and len(ours.threads) == 2 and ours.field("threshold").value >= threads.LEAST

    return Case(run, is_right, ("threads.py",))


CASES: dict[str, Callable[[], Case]] = {
    "the collector": lambda: Case(within(uncollected, uncollected), gc.isenabled),
    "settings": lambda: Case(
        within(lambda: config.override(threads=1), lambda: config.override(executor="interpreter")),
        lambda: config.current() is SETTINGS,
    ),
    "a trace": lambda: Case(within(BUILDER.active, BUILDER.innermost), lambda: not is_tracing()),
    "what loops save": lambda: Case(
        within(lambda: saving(SavePolicy("sqrt")), lambda: saving(SavePolicy())), lambda: not BLOCKS.entries
    ),
    "taps": lambda: Case(within(lambda: _TAPS.holding(None)), lambda: not _TAPS.entries),
    "traced arrays": lambda: Case(within(making_traced, making_traced), lambda: not MAKING.is_traced),
    "regions": lambda: Case(within(lambda: regions_by(None)), lambda: True),
    "threads of LAPACK": lambda: Case(
        within(lambda: AtMost(LIBRARIES, 2), lambda: AtMost(LIBRARIES, 1)), lambda: OPENBLAS.count == 8
    ),
    "blocks": lambda: Case(within(lambda: BLOCKS.holding(1), lambda: BLOCKS.holding(2)), lambda: not BLOCKS.entries),
    "a compilation": compiling,
    "a run": running,
    "threads": starting,
}


@pytest.mark.parametrize("name", CASES)
def test_an_interrupt_at_any_line_leaves_nothing(name: str) -> None:
    case, known = CASES[name](), set[Place]()
    while is_interrupted(case.run, known, case.files):
        case.run()
        assert case.is_right(), f"after an interrupt at {len(known)} places"
    assert len(known) > 3


def test_a_block_that_was_interrupted_ends_with_its_error() -> None:
    """Not only at the next begin: what asks which blocks there are finds none that is over."""
    known = set[Place]()
    while is_interrupted(within(lambda: BLOCKS.holding(1)), known, (".py",)):
        assert not BLOCKS.entries
        assert BLOCKS.innermost is None


@pytest.mark.slow
def test_an_error_that_is_kept_keeps_no_block() -> None:
    """With its frames, as an error in a cycle of references has them."""
    kept, known = list[BaseException](), set[Place]()

    def run() -> None:
        try:
            fnad.grad(lambda x: np.sum(np.sin(x)))(X)
        except KeyboardInterrupt as error:
            kept.append(error)
            raise

    with config.override(traceback_filtering=False):
        while is_interrupted(run, known, ("blocks.py", "builder.py", "store.py")):
            assert gc.isenabled()
            assert not is_tracing()
    assert len(kept) > 3


def test_what_was_off_before_stays_off() -> None:
    gc.disable()
    try:
        within(uncollected, uncollected)()
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="what signals a thread takes is read from /proc")
def test_workers_take_no_signals() -> None:
    """Python's handlers are for its own threads: a sleep in the main one has to end at Ctrl-C."""
    ours = threads.workers()
    ours.stop()
    before = set(Path("/proc/self/task").iterdir())
    ours.start(2)
    new = set(Path("/proc/self/task").iterdir()) - before
    assert len(new) == 2
    until = monotonic() + 60
    while not all(map(is_blocked, new)) and monotonic() < until:  # which is the first thing that each does
        sleep(0.01)
    assert all(map(is_blocked, new))


def is_blocked(task: Path) -> bool:
    """Whether a thread does not take the signal of Ctrl-C."""
    found = re.search(r"SigBlk:\s*(\w+)", (task / "status").read_text())
    return found is not None and bool(int(found[1], 16) >> (signal.SIGINT - 1) & 1)
