"""What the user's code is indexing.

Python asks for the integer that a traced index is in the same way for a list, for which it has to be known, and for an
ordinary array, which could be read at a traced index if it were traced itself.
"""

from __future__ import annotations

import numpy as np

from fnad.numpy.namespace import MAKING
from fnad.trace.bytecode import indexed, reads_element, stores_element
from fnad.trace.source import user_frame


def is_reading() -> bool:
    """Whether the user's code is at `x[i]`."""
    frame = user_frame()
    return frame is not None and reads_element(frame)


def is_storing() -> bool:
    """Whether the user's code is at `x[i] = …`."""
    frame = user_frame()
    return frame is not None and stores_element(frame)


def indexes_an_array() -> bool:
    """Whether the user's code indexes an ordinary array that could be traced, and is not in this run."""
    frame = None if MAKING.is_traced else user_frame()
    return frame is not None and isinstance(indexed(frame), np.ndarray)
