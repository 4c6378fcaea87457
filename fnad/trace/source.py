"""Where the user's code is: the innermost frame outside fnad, NumPy and SciPy."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType

import numpy as np

from fnad.ir.program import Source

_FNAD = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(str(np.__file__))) + os.sep
_SCIPY = os.path.join(os.path.dirname(os.path.dirname(_NUMPY)), "scipy") + os.sep
_LIMIT = 100_000

_is_library: dict[str, bool] = {}
_sources: dict[tuple[int, int], tuple[CodeType, Source]] = {}


def user_frame() -> FrameType | None:
    """Return the innermost frame outside fnad, NumPy and SciPy."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  # inspect.currentframe is this, at twice the cost
    while frame is not None:
        file = frame.f_code.co_filename
        inside = _is_library.get(file)
        if inside is None:
            inside = _is_library[file] = file.startswith((_FNAD, _NUMPY, _SCIPY))
        if not inside:
            return frame
        frame = frame.f_back
    return None


def current_source() -> Source | None:
    """Return where the user's code is.

    Lines are known by code object and instruction, which is cheaper than asking a frame for its line; the code objects
    are kept alive, since they are told apart by identity.
    """
    frame = user_frame()
    if frame is None:
        return None
    code = frame.f_code
    key = id(code), frame.f_lasti
    known = _sources.get(key)
    if known is None:
        if len(_sources) >= _LIMIT:
            _sources.clear()
        known = _sources[key] = code, Source(code.co_filename, frame.f_lineno, code.co_name)
    return known[1]
