"""Progress of long loops: the steps of each loop under way, and a thread that shows those that take over two seconds.

On a terminal one line of standard error is rewritten, a notebook has one output per loop, and elsewhere the logger
`fnad` records a line every ten seconds. A step only counts: the thread reads the counts four times a second.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter, sleep
from typing import Any, TypeAlias

from fnad import forks
from fnad.trace import log

SHOWN_AFTER = 2.0
"""The seconds from which on a loop is shown."""

SHOWN_EVERY, LOGGED_EVERY = 0.25, 10.0
"""The seconds between two texts."""

LOST = 20
"""The number of mean steps without another one after which a loop of Python has ended early."""

LONGEST_STEP = 60.0
"""The seconds after which a loop of Python that has taken one step has ended."""

Words: TypeAlias = Any
"""Two numbers: the steps so far, and the number of all steps, which is negative if it is not known."""

LABEL = "step"


class Meter:
    """A loop under way; one that `is_plain` ends with its last step, any other when its program ends."""

    def __init__(self, label: str, words: Words, *, is_plain: bool = False) -> None:
        self.label = label
        self.words = words
        self.is_plain = is_plain
        self.start = self.latest = perf_counter()
        self.shown = 0.0
        self.output: Any = None

    def text(self) -> str:
        """The steps so far, of how many, and the time that is left at this speed."""
        count, total = map(int, self.words)
        if count == 0:
            return f"{self.label}, {_duration(perf_counter() - self.start)}"
        if total <= 0:
            return f"{self.label} {count}"
        here = (count - 1) % total + 1  # an inner loop runs again
        left = (perf_counter() - self.start) / count * (total - count)
        return f"{self.label} {here} of {total}" + (f", {_duration(left)} left" if count < total else "")

    def last_text(self) -> str:
        """The steps taken, and their time."""
        count, total = map(int, self.words)
        steps = f"{count} of {total} in " if 0 < count < total else f"{count} in " if count else ""
        end = self.latest if self.is_plain else perf_counter()
        return f"{self.label}: {steps}{_duration(end - self.start)}"

    def is_lost(self) -> bool:
        """True if a loop of Python has ended before its last step."""
        steps, taken = self.words[0] - 1, self.latest - self.start
        longest = max(SHOWN_AFTER, LOST * taken / steps) if steps else LONGEST_STEP
        return self.is_plain and perf_counter() - self.latest > longest


_METERS: dict[tuple[int, str], Meter] = {}
"""The loops under way, by thread and label."""

_SHOWING = forks.lock()


def step(label: str, total: int) -> None:
    """Count a step of the loop of this label on this thread, which begins with its first step."""
    key = threading.get_ident(), label
    meter = _METERS.get(key)
    if meter is None or (meter.is_plain and (meter.words[1] != total or meter.is_lost())):
        _end(key)
        meter = _begin(key, Meter(label, [0, total], is_plain=True))
    _count(meter, total)
    if meter.is_plain:
        meter.latest = perf_counter()
        if meter.words[0] == total:
            _end(key)


def step_of_program(label: str, total: int) -> None:
    """Count a step of the program that this thread interprets, if its steps are counted."""
    meter = _METERS.get((threading.get_ident(), label))
    if meter is not None and not meter.is_plain:
        _count(meter, total)


def _count(meter: Meter, total: int) -> None:
    meter.words[0] += 1
    meter.words[1] = total


@contextmanager
def counting(labels: Sequence[str], words: Sequence[Words]) -> Generator[None]:
    """A block in which the program that this thread runs counts the steps of its loops in these words."""
    keys = [(threading.get_ident(), label) for label in labels]
    before = [_METERS.get(key) for key in keys]
    for key, each in zip(keys, words, strict=True):
        each[0], each[1] = 0, -1
        _begin(key, Meter(key[1], each))
    try:
        yield
    finally:
        for key, meter in zip(keys, before, strict=True):
            _end(key)
            if meter is not None:
                _METERS[key] = meter


def _begin(key: tuple[int, str], meter: Meter) -> Meter:
    _METERS[key] = meter
    _watch().work.set()
    return meter


def _end(key: tuple[int, str]) -> None:
    meter = _METERS.pop(key, None)
    if meter is not None and meter.shown:
        with _SHOWING:
            _show(meter.last_text(), [meter], is_last=True)


# ---- showing ---------------------------------------------------------------------------------------------------------


class _Watch(threading.Thread):
    """The thread that shows the loops under way; `work` is set while there are any."""

    def __init__(self) -> None:
        super().__init__(name="fnad progress", daemon=True)
        self.work = threading.Event()

    def run(self) -> None:
        while True:
            self.work.wait()
            self.work.clear()
            if _METERS:
                self.work.set()
            sleep(SHOWN_EVERY)
            for key, meter in list(_METERS.items()):
                if meter.is_lost():
                    _end(key)
            with _SHOWING:
                now = perf_counter()
                due = [meter for meter in list(_METERS.values()) if now - meter.start > SHOWN_AFTER]
                if due:
                    _show(", ".join(meter.text() for meter in due), due)


def _watch() -> _Watch:
    """The thread, which begins with the first loop of a process."""
    if not (_WATCHES and _WATCHES[0].is_alive()):
        with _SHOWING:
            if not (_WATCHES and _WATCHES[0].is_alive()):
                _WATCHES[:] = [_Watch()]
                _WATCHES[0].start()
    return _WATCHES[0]


_WATCHES: list[_Watch] = []


# A thread that holds the buffer of standard error when Python ends would be an error, so none writes from here on.
atexit.register(_SHOWING.acquire)


def _show(text: str, meters: Sequence[Meter], *, is_last: bool = False) -> None:
    now = perf_counter()
    with suppress(OSError, ValueError):  # a stream may be closed
        if (display := _notebook()) is not None:
            for meter in meters:
                _output(meter, display, meter.last_text() if is_last else meter.text())
        elif _is_terminal():
            line = text[: _columns() - 1]
            sys.stderr.write(f"\r\x1b[K{line}" + "\n" * is_last)
            sys.stderr.flush()
        elif is_last or now - max(meter.shown for meter in meters) > LOGGED_EVERY:
            log.log("INFO", text)
        else:
            return
    for meter in meters:
        meter.shown = now


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()  # pyright: ignore[reportUnnecessaryComparison]


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80


def _notebook() -> Any:
    """The function of IPython that displays, if this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return sys.modules["IPython"].display.display if hasattr(shell, "kernel") else None


def _output(meter: Meter, display: Any, text: str) -> None:
    content = {"text/plain": text}
    if meter.output is None:
        meter.output = display(content, raw=True, display_id=True)
    else:
        meter.output.update(content, raw=True)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
