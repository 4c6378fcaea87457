"""`c += t` where c is an ordinary array and t a traced value.

NumPy hands such a statement to the traced value as `np.add(c, t, out=(c,))`. The array cannot take the result, but
Python binds the name to whatever comes back, so a traced array comes back. That is right if the statement is an
augmented assignment and nothing else refers to the array or its memory, for whoever did would go on seeing the old
content. The number of references says so, compared with what the same statement has in a function that keeps none.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np

from fnad.errors import MutationError
from fnad.trace.bytecode import is_augmented_assignment
from fnad.trace.source import current_source, user_frame
from fnad.watch import unwatched


def check_rebinding(inputs: tuple[Any, ...], outs: tuple[Any, ...]) -> None:
    """Raise `MutationError` where a result for an ordinary array `outs[0]` cannot be handed to the name it has."""
    count = references(outs)
    frame = user_frame()
    if inputs[0] is not outs[0] or frame is None or not is_augmented_assignment(frame):
        raise MutationError(
            "a traced value cannot be written into an ordinary array given as out=",
            source=current_source(),
            remedy="use the returned value, or make the array with fnad.numpy (zeros, empty, array) in place of numpy",
        )
    if count > unshared_references() or is_shared_view(outs):
        raise MutationError(
            "a traced value cannot be put into an ordinary array that has other names or views: they would not see it",
            source=current_source(),
            remedy="write c = c + t, or make the array with fnad.numpy (zeros, empty, array) in place of numpy",
        )


def references(outs: tuple[Any, ...]) -> int:
    """The number of references to the array."""
    return sys.getrefcount(outs[0])


def is_shared_view(outs: tuple[Any, ...]) -> bool:
    """Whether the array is a view of memory that others refer to."""
    if outs[0].base is None:
        return False
    return not isinstance(outs[0].base, np.ndarray) or sys.getrefcount(outs[0].base) > 2


class _Probe:
    @unwatched  # as that of traced values is, whose wrapper refers to it too
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> int:
        return references(kwargs["out"])


@cache
def unshared_references() -> int:
    """The number of references to an array with one name, seen from within `c += t`."""
    c: Any = np.zeros(1)
    c += _Probe()
    return c
