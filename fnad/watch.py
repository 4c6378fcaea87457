"""The profiler that notes what a traced function reads is off where no code of the user's runs.

It sees each call and return of a thread. Those within fnad are thousands for each line of the user's, and to see them
takes longer than what they do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

_MARK = "is_off_in_fnad"


def off_in_fnad(profiler: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a profiler that need not see what is `unwatched`."""
    setattr(profiler, _MARK, True)
    return profiler


def unwatched(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function that no code of the user's is called by run without a profiler that is so marked."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        profiler = sys.getprofile()
        if profiler is None or not hasattr(profiler, _MARK):
            return function(*args, **kwargs)
        sys.setprofile(None)
        try:
            return function(*args, **kwargs)
        finally:
            sys.setprofile(cast("Any", profiler))

    return run
