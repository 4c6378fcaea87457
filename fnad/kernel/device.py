"""The operations of kernels that run on a device: a block of threads runs the same statements, on a grid of blocks.

    thread(): the number of this thread in its block        block(): the number of its block in the grid
    barrier(): no thread of a block goes on before all have come here; what they stored before is seen after it
    warp_barrier(): the same for the threads of a warp
    shuffle_down(value, n): the value of the thread that is n places further in the same warp, or any value beyond it
    shuffle_up(value, n): the same of the thread n places before
    shuffle_first(value, n): the value of the first of the n threads of a warp, a power of two, that this one is among
    atomic_add(array, n, value): adds to the element number n at once, whatever other threads add to it meanwhile
    shared_f64(n), and so for each dtype: an array of a constant number of elements that the threads of a block share

All threads of a block come to the same barriers, and all of a warp to the same shuffles. How many threads and blocks
there are is a constant of each launch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.scalar.operation import INDEX, Dtype, Kind, OperandError, Operation, Pointer
from fnad.scalar.operations import DTYPES


def shuffled(value: Kind, lanes: Kind) -> Kind:
    if not isinstance(value, np.dtype) or lanes != INDEX:
        raise OperandError(f"a shuffle takes a scalar and an i64, not {value} and {lanes}")
    return value


def array_routine(name: str, dtype: Dtype) -> Operation:
    """The routine that gives a new array."""
    return Operation(name, lambda size: Pointer(dtype), lambda size: np.empty(size, dtype))


def of_one_thread(value: Any, lanes: Any) -> Any:
    return value


def addition(array: Kind, index: Kind, value: Kind) -> Kind:
    if not isinstance(array, Pointer) or index != INDEX or value != array.dtype or array.dtype.itemsize < LEAST_WORD:
        raise OperandError(f"an atomic addition is to an array of numbers of 4 bytes or more, not {array} and {value}")
    return None


def add_to(array: Any, index: int, value: Any) -> None:
    array[index] += value


def drawn(tickets: Any, index: int) -> int:
    tickets[index] += 1
    return tickets[index] - 1


def publication(values: Kind, marks: Kind, index: Kind, value: Kind) -> Kind:
    _of_marks(marks, index)
    if not isinstance(values, Pointer) or value != values.dtype:
        raise OperandError(f"an array of published values has {values}, not {value}")
    return None


def publish(values: Any, marks: Any, index: int, value: Any) -> None:
    values[index], marks[index] = value, 1


def awaited(values: Kind, marks: Kind, index: Kind) -> Kind:
    _of_marks(marks, index)
    assert isinstance(values, Pointer)
    return values.dtype


def published(values: Any, marks: Any, index: int) -> Any:
    if not marks[index]:
        raise OperandError("a single thread waits for another one")
    return values[index]


def _of_marks(marks: Kind, index: Kind) -> Kind:
    if not isinstance(marks, Pointer) or marks.dtype != INDEX or index != INDEX:
        raise OperandError(f"tickets and marks are in an array of i64, not {marks}")
    return INDEX


LEAST_WORD = 4
"""The bytes of the smallest number to which a thread can add at once."""

THREAD = Operation("thread", lambda: INDEX, lambda: 0)
BLOCK = Operation("block", lambda: INDEX, lambda: 0)
BARRIER = Operation("barrier", lambda: None, lambda: None)
WARP_BARRIER = Operation("warp_barrier", lambda: None, lambda: None)
SHUFFLE_DOWN = Operation("shuffle_down", shuffled, of_one_thread)
SHUFFLE_UP = Operation("shuffle_up", shuffled, of_one_thread)
SHUFFLE_FIRST = Operation("shuffle_first", shuffled, of_one_thread)
ATOMIC_ADD = Operation("atomic_add", addition, add_to)
TICKET = Operation("ticket", _of_marks, drawn)
PUBLISH = Operation("publish", publication, publish)
PUBLISHED = Operation("published", awaited, published)
SHARED_ARRAYS = {dtype: array_routine(f"shared_{name}", dtype) for name, dtype in DTYPES.items()}

OF_A_THREAD = (THREAD, BLOCK, BARRIER, WARP_BARRIER, SHUFFLE_DOWN, SHUFFLE_UP, SHUFFLE_FIRST, ATOMIC_ADD)
OF_BLOCKS = (TICKET, PUBLISH, PUBLISHED)
"""The communication between blocks of a launch: see Note [Tiles in one pass] in `running.py`."""

DEVICE: dict[str, Operation] = {op.name: op for op in (*OF_A_THREAD, *OF_BLOCKS, *SHARED_ARRAYS.values())}
"""The functions that kernels of a device may call besides; the plain meaning is that of a single thread."""
