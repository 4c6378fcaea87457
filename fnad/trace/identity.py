"""`type(x) is float` of a traced value, which no object can answer as what it stands for.

A class of traced values is equal to the class it stands for, and not the same. So where a function that computes with
traced values asks so, or a function that it names, the attempt ends with an error; in the second attempt
(`fnad.trace.opening`), whose code looks names up in a namespace of fnad's, it finds a function under the name `type`
that returns what a traced value stands for.
"""

from __future__ import annotations

from types import CodeType, FrameType, FunctionType

from fnad.codes import notes_of, remembered
from fnad.errors import TracerEscapeError
from fnad.numpy.namespace import MAKING
from fnad.trace.bytecode import arguments_of_issubclass, comparisons_of_classes, reads_of
from fnad.trace.kinds import KINDS, Kind
from fnad.trace.libraries import is_library
from fnad.trace.opening import Namespace
from fnad.trace.source import current_source

ASKED = "asked"
"""What is noted of code: the number of the last trace in which it was found not to ask."""


def check_classes(frame: FrameType, trace: int) -> None:
    """Raise where the user's code in a frame asks for the class of a traced value by identity.

    In the first attempt raise also where a function that it names may do so, which the second one answers. Code that
    does not ask is looked at once in a trace, which has this number.
    """
    notes = notes_of(frame.f_code)
    if notes.get(ASKED) == trace or isinstance(frame.f_globals, Namespace):
        return
    if not is_asking(frame):
        notes[ASKED] = trace
        return
    if is_misled(frame) or (not MAKING.is_traced and any(map(asks_for_a_kind, functions_of(frame)))):
        raise TracerEscapeError(
            "a traced value was asked for its class by identity, which is that of traced values: type(x) is ...",
            source=current_source(),
            remedy="write isinstance(x, float) or type(x) == float",
        )


def is_asking(frame: FrameType) -> bool:
    """Whether the code of a frame, or that of a function it names, compares classes by identity."""
    return asks(frame.f_code) or any(asks(function.__code__) for function in functions_of(frame))


@remembered
def asks(code: CodeType) -> bool:
    """Whether code compares classes by identity."""
    return bool(comparisons_of_classes(code) or arguments_of_issubclass(code))


def functions_of(frame: FrameType) -> list[FunctionType]:
    """The functions of the user's that the code of a frame names as globals.

    Its local names are not looked at, since CPython would keep what they stand for.
    """
    values = map(frame.f_globals.get, reads_of(frame.f_code).names)
    return [value for value in values if type(value) is FunctionType and not is_library(value.__code__.co_filename)]


def is_misled(frame: FrameType) -> bool:
    """Whether a comparison has another answer for a traced value than for what it stands for."""
    for x, y in comparisons_of_classes(frame.f_code):
        found = [type(side.path.value(frame)) if side.is_type else side.path.value(frame) for side in (x, y)]
        meant = [kind.meant if isinstance(kind, Kind) else kind for kind in found]
        if (found[0] is found[1]) != (meant[0] is meant[1]):
            return True
    return any(isinstance(type(path.value(frame)), Kind) for path in arguments_of_issubclass(frame.f_code))


def asks_for_a_kind(function: FunctionType) -> bool:
    """Whether a function compares a class with one that traced values stand for."""
    sides = [side for pair in comparisons_of_classes(function.__code__) for side in pair if not side.is_type]
    is_asking = any(side.path.within(function.__globals__) in KINDS for side in sides)
    return is_asking or bool(arguments_of_issubclass(function.__code__))
