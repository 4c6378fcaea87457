"""Tracebacks of user code: fnad's own frames are left out where an error leaves fnad.

The setting `traceback_filtering` keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from types import TracebackType
from typing import ParamSpec, TypeVar

from fnad.blocks import end_blocks

P = ParamSpec("P")
T = TypeVar("T")

FILTERED: dict[str, Callable[[], bool]] = {"now": lambda: True}
"""True if the settings in force leave out frames: see `fnad.config`."""

OWN = __file__.removesuffix("tracebacks.py")


def boundary(function: Callable[P, T]) -> Callable[P, T]:
    """A function whose errors have no frames of fnad."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            leave_out_own_frames(error)
            raise  # without arguments, which adds no frame of this function again

    return call


def leave_out_own_frames(error: BaseException) -> None:
    """Remove fnad's frames from the traceback of an error, of its causes and of its contexts, unless they are shown."""
    if not isinstance(error, Exception):  # Ctrl-C
        end_blocks()
    if FILTERED["now"]():
        for each in _chain(error):
            each.__traceback__ = _filtered(each.__traceback__)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        found = pending.pop()
        if found is not None and id(found) not in seen:
            seen.add(id(found))
            yield found
            pending += found.__cause__, found.__context__
            if isinstance(found, BaseExceptionGroup):
                pending += found.exceptions


def _filtered(traceback: TracebackType | None) -> TracebackType | None:
    first = last = _next_of_others(traceback)
    while last is not None:
        last.tb_next = last = _next_of_others(last.tb_next)
    return first


def _next_of_others(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(OWN):
        traceback = traceback.tb_next
    return traceback
