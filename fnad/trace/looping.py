"""A loop of Python whose steps take different branches is traced as one loop: what hooks and guards have to know of it.

A call that meets another answer than its path in a loop has the function traced with the loops around that decision
`marked`. Such a loop runs a step of Python for each way through its body, not for each step; `fnad.control.ways` puts
the ways together. While a step runs, its trace decides by the values of that step, or by answers that
are given. What it writes to anything but its variables and arrays ends that: then the function is traced again, step by
step.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import cached_property, partial
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, Protocol

import numpy as np

from fnad.blocks import LocalBlocks
from fnad.codes import original_of
from fnad.errors import MutationError
from fnad.ir.builder import Captured
from fnad.ir.program import Atom, Literal, Source
from fnad.ir.symbol import Symbol
from fnad.numpy.namespace import MAKING
from fnad.trace.conversion import converted_code, facts_in, facts_of
from fnad.trace.effects import effect_of_callee
from fnad.trace.filling import FILLING
from fnad.trace.generators import draws_numbers
from fnad.trace.handle import Array, Elements, Handle
from fnad.trace.libraries import is_trusted
from fnad.trace.parts import CACHED
from fnad.trace.recording import Recorder
from fnad.trace.shadow import Shadow
from fnad.trace.source import current_source
from fnad.trace.writes import CHANGING

Answers = tuple[int, ...]


class Refused(BaseException):
    """Ends a trace in which a loop cannot be one: the function is traced again. No `except` of user code catches it."""

    is_final = True

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why, self.source = why, current_source()
        self.loop: Any = None


class Parted(BaseException):
    """Ends a trace in which a loop decides so often, and in several ways, that it had better be one loop."""

    is_final = True


def unhidden(trace: Callable[[], Any]) -> Any:
    """`trace()`; the error of a `finally` clause or an `__exit__` that `Parted` went through is `Parted`."""
    try:
        return trace()
    except Exception as error:
        behind: BaseException | None = error
        while behind is not None and not isinstance(behind, Parted):
            behind = behind.__context__
        if behind is None:
            raise
        raise Parted from None


class Loops(Protocol):
    """The loops of user code in a trace."""

    marked: set[tuple[str, int]]
    by_rows: dict[Hashable, Any]
    decides_first: bool

    def each(self, values: Any, place: tuple[Any, ...], frame: FrameType, code: CodeType | None = None) -> Any: ...

    def turns(self, place: tuple[Any, ...], frame: FrameType) -> Any: ...

    def listed(self, items: list[Any], place: tuple[int, int], code: CodeType) -> Any: ...

    def comprehends(self, place: tuple[Any, ...], code: CodeType) -> bool: ...

    def decides(self, source: Source, answer: int) -> None: ...

    def tries(self, source: Source) -> None: ...

    def caches(self) -> None: ...

    def reads_caches(self) -> None: ...

    def parts(self, source: Source) -> None: ...

    def parts_rows(self) -> None: ...


class _Looping(threading.local):
    """The loops of the trace of this thread, and the steps under way, the innermost one last."""

    def __init__(self) -> None:
        self.loops: Loops | None = None
        self.steps: list[Step] = []


LOOPING = _Looping()
ROWS: LocalBlocks[Hashable] = LocalBlocks()
"""The keys of the calls of `vmap` whose functions are being traced."""


def notes_cache(owner: Any, name: str) -> None:
    """Note that a step of a loop reads an attribute that is cached, or that code reads which attributes there are."""
    if LOOPING.loops is None:
        return
    if name == "__dict__":
        LOOPING.loops.reads_caches()
    elif LOOPING.steps and isinstance(getattr(type(owner), name, None), cached_property):
        LOOPING.loops.caches()


# ---- values of a step ------------------------------------------------------------------------------------------------


class StepValues(Shadow):
    """The values of the step at hand; those from outside are known as far as the trace around it knows them."""

    def __init__(self, at_hand: Callable[[Symbol], Array | None]) -> None:
        super().__init__()
        self._at_hand = at_hand

    def admits(self, value: Captured) -> bool:
        return not isinstance(value, Symbol) or self._at_hand(value) is not None

    def outside(self, value: Captured) -> Array:
        if not isinstance(value, Symbol):
            return super().outside(value)
        found = self._at_hand(value)
        assert found is not None
        return found


MOST_ASKED = 1000


class Given(Shadow):
    """Answers that are given: a step runs again on the way that it is known to have."""

    is_given = True

    def __init__(self, answers: Answers) -> None:
        super().__init__()
        self._answers = iter(answers)
        self._asked = 0

    def admits(self, value: Captured) -> bool:
        return True

    def has(self, atom: Atom) -> bool:
        return True

    def value(self, atom: Atom) -> Array:
        if isinstance(atom, Literal):
            return self.literal(atom)
        if atom not in self._values:
            self._asked += 1
            if self._asked > MOST_ASKED:
                raise Refused("a way through it does not end")
            is_answer = not atom.aval.shape and atom.aval.dtype.kind in "bi"
            answer = next(self._answers, None) if is_answer else None
            self.has_strayed = self.has_strayed or answer is None
            self._values[atom] = np.full(atom.aval.shape, answer or 0, atom.aval.dtype)
        return self._values[atom]


# ---- what a step does ------------------------------------------------------------------------------------------------

REFUSED = FILLING | {
    "__delattr__",
    "__next__",
    "__setattr__",
    "delattr",
    "delitem",
    "next",
    "send",
    "setattr",
    "shuffle",
}
"""Functions that change an operand."""

OF_OPERANDS = (MethodDescriptorType, MethodWrapperType, WrapperDescriptorType)
"""Classes of methods in C, such as `list.append`, which may take the object that they change as an argument."""

DRAWS = "a step draws random numbers"


class Step:
    """A step of a loop that runs for all that go the same way: the frame of the loop, and what is outside of the step.

    The loop has at most `most` steps; None if their number is not known. It is one over `lists` whose length depends on
    data. The recorder has what the step may read from outside, which it may not change.
    """

    def __init__(self, frame: FrameType, place: tuple[int, int], most: int | None, lists: Sequence[Any]) -> None:
        self.frame, self.place, self.most, self.lists = frame, place, most, lists
        self.exits = False
        self.recorder = Recorder()
        facts = facts_in(frame.f_code)
        if facts is not None:
            self.recorder.enter(facts, frame.f_globals)
        for value in variables(frame).values():
            self.recorder.follow(value)

    def writes(self, owner: Any) -> None:
        """Refuse a write into an object from outside the step; traced arrays are part of what it carries."""
        if type(owner) is np.ndarray and MAKING.innermost is None:
            what = "a step of a loop that is traced as one writes into an ordinary array"
            error = MutationError.here(what, remedy="make the array with fnad.numpy")
            raise MAKING.refuse(error)
        is_outside = self.recorder.has_read(owner) or isinstance(owner, (ModuleType, type))
        if is_outside and not isinstance(owner, (Handle, Elements)):
            raise Refused(f"a step changes a {type(owner).__name__}")

    def changes(self, owner: Any) -> None:
        """Refuse an augmented assignment that may change a container from outside the step in place."""
        is_array = isinstance(owner, (np.ndarray, Handle))
        if not is_array and (hasattr(owner, "__iadd__") or hasattr(owner, "__ior__")):
            self.writes(owner)

    def calls(self, function: Any) -> None:
        """Refuse a callee that may change anything from outside the step."""
        while isinstance(function, partial):
            function = function.func
        owner = getattr(function, "__self__", None) if isinstance(function, BuiltinFunctionType) else None
        name = getattr(function, "__name__", "")
        if draws_numbers(getattr(function, "__self__", None)):
            raise Refused(DRAWS)
        if owner is not None and not isinstance(owner, ModuleType) and name in CHANGING:
            self.writes(owner)
        elif _changes_more(function, owner, name):
            raise Refused(f"a step calls {name}")
        effect = effect_of_callee(function)
        if effect is not None:
            raise Refused(effect)
        if isinstance(function, CACHED) and LOOPING.loops is not None:
            LOOPING.loops.caches()
        own = getattr(function, "__func__", function)
        if not isinstance(own, FunctionType) or is_trusted(own.__code__.co_filename):
            return
        facts = facts_of(own)
        if facts is None and converted_code(original_of(own.__code__), own.__globals__) is None:
            raise Refused(f"a step calls {name}, which has no source")

    def goes_on(self, place: tuple[int, int], frame: FrameType) -> bool:
        """False if the loop of this step is left, which the step notes."""
        if place != self.place or frame is not self.frame:
            return True
        self.exits = True
        return False

    def check(self) -> None:
        """Refuse a step that wrote into an ordinary array, drew random numbers, or may have changed anything else."""
        environment = self.recorder.environment
        if [*environment.restored_arrays()]:
            raise Refused("a step writes into an ordinary array")
        if environment.has_drawn:
            raise Refused(DRAWS)
        unknown = next((met.what for met in environment.met if met.anew), None)
        if unknown is not None:  # such as an iterator from outside, whose place may be another one now
            raise Refused(f"{unknown} in a step")


def _changes_more(function: Any, owner: Any, name: str) -> bool:
    """True if a callee may change an argument, an iterator or a context variable."""
    if isinstance(function, OF_OPERANDS) and name in CHANGING:
        return True
    is_in_python = isinstance(function, (FunctionType, MethodType))
    return (name in REFUSED and not is_in_python) or (type(owner) is ContextVar and name != "get")


# ---- variables of a frame --------------------------------------------------------------------------------------------


class Unset:
    """In the place of a variable without a value, because a variable of a frame cannot be deleted."""

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __bool__(self) -> bool:
        raise UnboundLocalError("a variable is read that has no value")

    def __eq__(self, other: object) -> bool:
        raise UnboundLocalError("a variable is read that has no value")


def variables(frame: FrameType) -> dict[str, Any]:
    """The variables of a frame that have a value."""
    return {name: value for name, value in frame.f_locals.items() if type(value) is not Unset}


def set_through(frame: FrameType, values: dict[str, Any]) -> None:
    """Give variables of a frame these values, where the mapping of a frame writes into it."""
    frame.f_locals.update(values)


def set_by_copy(frame: FrameType, values: dict[str, Any]) -> None:
    """Give variables of a frame these values, where Python copies the mapping back on demand."""
    frame.f_locals.update(values)
    ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def _works(way: Callable[[FrameType, dict[str, Any]], None]) -> bool:
    """True if a variable of the frame that runs this has the value which it is given."""
    given = None
    with suppress(AttributeError, TypeError):
        way(sys._getframe(), {"given": way})  # pyright: ignore[reportPrivateUsage]
    return given is way


SETTING = next(filter(_works, (set_through, set_by_copy)), None)
"""The way to write into the variables of a frame on this Python; None if there is none, and all loops are paths."""


def set_variables(frame: FrameType, values: dict[str, Any], names: Collection[str]) -> None:
    """Give variables of a frame these values; those among the names that have none lose theirs."""
    assert SETTING is not None
    missing = [name for name in names if name not in values and name in frame.f_locals]
    SETTING(frame, {**values, **dict.fromkeys(missing, Unset())})
