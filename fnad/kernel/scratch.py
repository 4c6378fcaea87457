"""The memory of the arrays that a kernel makes: small ones are on the stack, large ones in the thread's scratch memory.

Threads of users may have as little as 64 KB of stack. So of the arrays of a function, which is a kernel or a task of a
parallel loop, those that fit into `STACK` bytes are on the stack. The others lie in memory that is given to the
function, its frame, followed by that of the task that the same thread runs:

    frame ::= large arrays of the kernel | large arrays of a task, of the loop that has most
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeGuard

from fnad.kernel.routines import LOCAL_ARRAYS
from fnad.kernel.statements import Apply, Assign, For, Name, Statement
from fnad.scalar.operation import INDEX, Pointer

STACK = 2**13
"""The most bytes of a function's arrays on the stack."""

LINE = 8
"""The words of a line of the cache, at which each array begins."""


def large_arrays(statements: Sequence[Statement]) -> dict[Name, int]:
    """The arrays of a function that are not on its stack, and where in its frame they begin, in words."""
    return _placed(statements)[0]


def own_words(statements: Sequence[Statement]) -> int:
    """The length of the part of a frame that is the function's own."""
    return _placed(statements)[1]


def _placed(statements: Sequence[Statement]) -> tuple[dict[Name, int], int]:
    """The large arrays with their beginnings, and the end of the last."""
    found: dict[Name, int] = {}
    on_stack = end = 0
    for array, nbytes in _arrays(statements).items():
        if on_stack + nbytes <= STACK:
            on_stack += nbytes
        else:
            found[array] = end
            end += _words(nbytes)
    return found, end


def frame_words(statements: Sequence[Statement]) -> int:
    """The length of a function's frame, in words."""
    loops = (s for s in _of_function(statements) if isinstance(s, For) and s.is_parallel)
    return own_words(statements) + max([0, *(frame_words(loop.body) for loop in loops)])


def _arrays(statements: Sequence[Statement]) -> dict[Name, int]:
    """The arrays that a function makes, with their bytes."""
    return {made.targets[0]: _nbytes(made) for made in _of_function(statements) if makes_array(made)}


def makes_array(statement: Statement) -> TypeGuard[Assign]:
    """True if a statement makes an array."""
    return (
        isinstance(statement, Assign)
        and isinstance(statement.targets[0].kind, Pointer)
        and isinstance(statement.value, Apply)
        and statement.value.operation in LOCAL_ARRAYS.values()
    )


def _of_function(statements: Sequence[Statement]) -> Iterator[Statement]:
    """The statements of a function, without those of its tasks."""
    for statement in statements:
        yield statement
        if not (isinstance(statement, For) and statement.is_parallel):
            for body in statement.bodies:
                yield from _of_function(body)


def _nbytes(made: Assign) -> int:
    assert isinstance(made.value, Apply)
    size = made.value.operands[0].number
    assert size is not None
    return size * made.value.dtype.itemsize


def _words(nbytes: int) -> int:
    """The words of whole lines for so many bytes."""
    return -(-nbytes // (LINE * INDEX.itemsize)) * LINE
