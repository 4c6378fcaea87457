"""What happens when Python or NumPy asks a traced value for its number: an error with the line and the way out."""

from __future__ import annotations

import dis
import linecache
import re
from types import FrameType

import numpy as np

from fnad.errors import FnadError, MutationError, TracerEscapeError
from fnad.ir.types import Aval
from fnad.trace.source import current_source, user_frame

CHOICE = (
    "choose with np.where(condition, a, b), or with np.minimum, np.maximum and np.clip in place of min, max and "
    "comparisons"
)
ARRAY = (
    "stack traced values with np.stack, or with fnad.numpy.array; a function that does not call NumPy on its argument "
    "cannot be traced"
)
INDEX = (
    "a size or a loop count has to be known while tracing; to read an ordinary array at a traced index, write "
    "fnad.numpy.asarray(table)[i]"
)
PICKLE = "return it from the traced function, and pickle the result"
STORE = (
    "make the array with fnad.numpy (zeros, empty, full, array) in place of numpy, or from a traced one with "
    "np.zeros_like(x)"
)

MATH_NAMES = {"acos": "arccos", "asin": "arcsin", "atan": "arctan", "acosh": "arccosh", "asinh": "arcsinh",
              "atanh": "arctanh", "atan2": "arctan2", "pow": "power", "dist": "linalg.norm"}  # fmt: skip


def number_asked(aval: Aval, what: str) -> FnadError:
    """Return the error for float(x), int(x), complex(x), x.item(), x.tolist()."""
    return _escape(aval, what, _number_remedy())


def truth_asked(aval: Aval) -> FnadError:
    """Return the error for a branch on a traced value."""
    return _escape(aval, "the truth value", CHOICE)


def index_asked(aval: Aval) -> FnadError:
    """Return the error for a traced value as an index, a size or a loop count."""
    return _escape(aval, "an index", INDEX)


def array_asked(aval: Aval) -> FnadError:
    """Return the error for np.asarray(x), and for a traced value that is written into an ordinary array."""
    frame = user_frame()
    if frame is not None and operation(frame) == "STORE_SUBSCR":
        return MutationError(
            f"a traced value of aval {aval} was written into an ordinary array", source=current_source(), remedy=STORE
        )
    return _escape(aval, "an ordinary array", ARRAY)


def pickle_asked(aval: Aval) -> FnadError:
    """Return the error for pickle.dumps(x)."""
    return _escape(aval, "its pickle", PICKLE)


def _escape(aval: Aval, what: str, remedy: str) -> FnadError:
    return TracerEscapeError(
        f"{what} was asked of a traced value of aval {aval}, which has no number while tracing",
        source=current_source(),
        remedy=remedy,
    )


def _number_remedy() -> str:
    source = current_source()
    line = linecache.getline(source.file, source.line) if source else ""
    match = re.search(r"\bmath\.(\w+)", line)
    name = MATH_NAMES.get(match[1], match[1]) if match else ""
    if match and (name == "linalg.norm" or hasattr(np, name)):
        return f"use np.{name} in place of math.{match[1]}"
    return "leave it as it is: NumPy's functions take traced values, and their results are traced"


def operation(frame: FrameType) -> str:
    """Return the name of the instruction that a frame is at."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]]
