"""Handlers of signals that call fnad in the middle of fnad's own work, which runs in the same thread.

Python calls a handler between any two of its instructions. What the handler asks of fnad then would become part of the
trace that it interrupts, or find a table half changed. A handler is known by its code, and by its frame, which has the
frame that it interrupts as an argument.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any

from fnad.errors import ReentryError

OWN = __file__.removesuffix("signals.py")


def refuse_handlers() -> None:
    """Raise `ReentryError` if a handler of a signal, which interrupts fnad, calls it."""
    outer = _interrupted(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
    if outer is not None and (codes := _codes_of_handlers()):
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame is not None and frame is not outer:
            if frame.f_code in codes and _has(frame.f_locals, frame.f_back):
                raise ReentryError(
                    "the handler of a signal calls fnad in the middle of another call",
                    remedy="have the handler set a flag, and call fnad where the flag is read",
                )
            frame = frame.f_back


def _interrupted(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of fnad below those of other code that fnad is called from."""
    for is_own in (True, False):
        while frame is not None and frame.f_code.co_filename.startswith(OWN) is is_own:
            frame = frame.f_back
    return frame


def _codes_of_handlers() -> list[CodeType]:
    signal = sys.modules.get("_signal")  # `signal` makes members of enumerations, which takes fifty times as long
    if signal is None:
        return []
    found = [signal.getsignal(number) for number in range(1, signal.NSIG)]
    called = [getattr(handler, "func", handler) for handler in found if callable(handler)]  # of a partial
    codes = [getattr(f, "__code__", None) or getattr(type(f).__call__, "__code__", None) for f in called]
    return [code for code in codes if code is not None]


def _has(values: dict[str, Any], frame: FrameType | None) -> bool:
    return any(value is frame or (type(value) is tuple and frame in value) for value in values.values())
