"""What the user's code is indexing: read off the instructions before the one at hand, where that is simple.

Python asks for the integer that a traced index is in the same way for a list, for which it has to be known, and for an
ordinary array, which could be read at a traced index if it were traced itself.
"""

from __future__ import annotations

import dis
from collections.abc import Sequence
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

import numpy as np

from fnad.numpy.namespace import MAKING
from fnad.trace.source import user_frame

READ = frozenset({"BINARY_SUBSCR", "BINARY_SLICE"})
STORED = frozenset({"STORE_SUBSCR", "STORE_SLICE"})
LOCALS = frozenset({"LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK"})
GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})


def at_instruction(names: frozenset[str]) -> bool:
    """Say whether the user's code is at an instruction of one of these names."""
    frame = user_frame()
    return frame is not None and dis.opname[frame.f_code.co_code[frame.f_lasti]] in names


def indexes_an_array() -> bool:
    """Say whether the user's code indexes an ordinary array that could be traced, and is not in this run."""
    if MAKING.is_traced or not at_instruction(READ | STORED):
        return False
    frame = user_frame()
    name = None if frame is None else container_at(frame.f_code, frame.f_lasti)
    return frame is not None and name is not None and isinstance(_value(frame, name), np.ndarray)


@lru_cache(maxsize=4096)
def container_at(code: CodeType, offset: int) -> str | None:
    """Return the name of the variable that an instruction indexes; None where that is no variable."""
    steps = list(dis.get_instructions(code))
    end = next(i for i, step in enumerate(steps) if step.offset == offset)
    start = _start_of_value(steps, end)
    if start is None or start == 0:
        return None
    container = steps[start - 1]
    return str(container.argval) if container.opname in LOCALS | GLOBALS else None


def _start_of_value(steps: Sequence[dis.Instruction], end: int) -> int | None:
    """Return where the instructions start that push the value on top of the stack; None where they branch.

    An instruction that pushes this and the one below it, of newer Pythons, has no start of it either.
    """
    depth = 0
    for i in range(end - 1, -1, -1):
        if steps[i].is_jump_target:
            return None
        depth += dis.stack_effect(steps[i].opcode, steps[i].arg, jump=False)
        if depth >= 1:
            return i if depth == 1 else None
    return None


def _value(frame: FrameType, name: str) -> Any:
    namespaces = (frame.f_locals, frame.f_globals)
    return next((names[name] for names in namespaces if name in names), None)
