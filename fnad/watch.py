"""The profiler that notes what a traced function reads: all that is known here of CPython's profilers.

It sees each call and return of a thread. Those within fnad are thousands for each line of the user's, and to see them
takes longer than what they do; so it is off where no code of the user's runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

Profiler: TypeAlias = Callable[[FrameType, str, Any], object]

_MARK = "is_off_in_fnad"


@contextmanager
def profiled(see: Profiler) -> Generator[None]:
    """Have a function called for each call and return of this thread, also of C; a profiler that is set goes on.

    One of C, as cProfile's up to 3.11, cannot be called, and so is off in between; later ones do not use this hook.
    """
    previous: object = sys.getprofile()
    chained = cast("Profiler | None", previous if callable(previous) else None)
    if chained is None:
        setattr(see, _MARK, True)
        sys.setprofile(see)
    else:
        sys.setprofile(_both(see, chained))
    try:
        yield
    finally:
        sys.setprofile(chained)
        if previous is not None and chained is None:
            cast("Any", previous).enable()


def _both(first: Profiler, second: Profiler) -> Profiler:
    def see(frame: FrameType, event: str, arg: Any) -> None:
        first(frame, event, arg)
        second(frame, event, arg)

    return see


def unwatched(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function that no code of the user's is called by run without a profiler that is so marked."""
    return unwatched_where(lambda *args, **kwargs: True)(function)


def unwatched_where(condition: Callable[P, bool]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function run without a profiler that is so marked where a condition on its arguments holds."""

    def make(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> T:
            profiler = sys.getprofile()
            if profiler is None or not hasattr(profiler, _MARK):
                return function(*args, **kwargs)
            sys.setprofile(None)
            try:
                if condition(*args, **kwargs):
                    return function(*args, **kwargs)
            finally:
                sys.setprofile(cast("Any", profiler))
            return function(*args, **kwargs)

        return run

    return make
