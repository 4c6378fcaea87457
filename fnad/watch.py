"""What a traced function calls, as it is seen by a profiler: all that is known here of CPython's.

Calls within fnad are thousands for each line of the user's, and to see them takes longer than what they do; so they are
not seen where no code of the user's runs. While a function is traced nothing is seen at first: fnad calls what is the
user's by `seen`, and what of its own is called from there is `unwatched`.

Note [Two ways]
    Up to 3.11 the function that sees them is the profiler of the thread (`sys.setprofile`), which is set around code of
    the user's and taken away around what that calls of fnad's, if it has much to do; it passes over the rest of it.

    From 3.12 on all code of the process is instrumented anew when a profiler is set or taken away, which takes longer
    than a trace. There the events of `sys.monitoring` are used (PEP 669), which are those of all threads: whoever does
    not watch passes them over. Code of fnad's own is asked for none once it has begun (DISABLE), other code for its
    calls once it begins in a thread that watches, until no thread does. Where debuggers and the like have all ids of
    tools, a profiler is set there too.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Container, Generator
from contextlib import AbstractContextManager, contextmanager
from functools import partial, wraps
from importlib import import_module
from sys import getprofile, setprofile
from types import BuiltinFunctionType, CodeType, FrameType, MethodDescriptorType
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

See: TypeAlias = Callable[[FrameType, str, Any], object]
"""Called with a frame and what it does: a "call" that begins, or a "c_call" of a function."""

OWN = os.path.dirname(__file__) + os.sep  # noqa: PTH120  (pathlib takes long to import)
OWN_FILES: set[str] = set()
"""Files of fnad's, as far as code of them was seen: to look here takes less time."""


class _Here(threading.local):
    see: See | None = None
    hidden: See | None = None
    always: See | None = None


_HERE = _Here()
"""What sees the calls of this thread at present, unless somebody else's profiler sees them too.

`hidden` is what will see them again, where events are passed over, `always` what sees them beside somebody else's.
"""


def tell(frame: FrameType, function: object) -> None:
    """Have a call be seen if the function is one of C, which fnad calls for the code of the user's in a frame."""
    see = _HERE.see or _HERE.always
    if see is not None and isinstance(function, BuiltinFunctionType):
        see(frame, "c_call", function)


def _both(first: See, second: See) -> See:
    def see(frame: FrameType, event: str, arg: Any) -> None:
        first(frame, event, arg)
        second(frame, event, arg)

    return see


def _of_others(see: See, passed: Container[str], asked: Container[Any] | None) -> See:
    """What sees the events of code that is not fnad's.

    A profiler is called at each call and return, of fnad's own code too: most of these end here.
    """

    def see_others(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            file = frame.f_code.co_filename
            if file not in OWN_FILES and file not in passed:
                if file.startswith(OWN):
                    OWN_FILES.add(file)
                else:
                    see(frame, event, arg)
        elif event == "c_call" and (asked is None or arg in asked) and not frame.f_code.co_filename.startswith(OWN):
            see(frame, event, arg)

    return see_others


# ---- by a profiler ---------------------------------------------------------------------------------------------------


@contextmanager
def by_profiler(see: See) -> Generator[None]:
    """Have a function called for the events of this thread, also of C, in what is called by `seen`."""
    before, previous = _HERE.see, getprofile()
    if previous is not None and previous is not before:
        with always_by_profiler(see):
            yield
        return
    _HERE.see = see if before is None else _both(before, see)
    setprofile(None)
    try:
        yield
    finally:
        setprofile(previous)
        _HERE.see = before


@contextmanager
def always_by_profiler(see: See) -> Generator[None]:
    """The same in all code but fnad's own: nothing is hidden from somebody else's profiler, which goes on.

    One of C, as cProfile's up to 3.11, cannot be called, and so is off in between; later ones do not use this hook.
    """
    before, always, previous = _HERE.see, _HERE.always, getprofile()
    chained = cast("See | None", previous if callable(previous) else None)
    _HERE.see, _HERE.always = None, see if always is None else _both(always, see)
    setprofile(see if chained is None else _both(chained, see))
    try:
        yield
    finally:
        setprofile(chained)
        _HERE.see, _HERE.always = before, always
        if previous is not None and chained is None:
            cast("Any", previous).enable()


set_none, get_set = partial(setprofile, None), partial(getprofile)
"""To take the profiler away, and to ask for it: no events for it, as calls of the functions themselves would be."""


def without_profiler(condition: Callable[P, bool], function: Callable[P, T]) -> Callable[P, T]:
    """A function that runs without a profiler of fnad's where a condition holds."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        profiler = _HERE.see
        if profiler is None or get_set() is not profiler:
            return function(*args, **kwargs)
        set_none()
        try:
            if condition(*args, **kwargs):
                return function(*args, **kwargs)
        finally:
            setprofile(profiler)
        return function(*args, **kwargs)

    return run


def seen_by_profiler(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function with the profiler of fnad's, which is not set where this is called."""
    if _HERE.see is None or getprofile() is not None:
        return function(*args, **kwargs)
    setprofile(_HERE.see)
    try:
        return function(*args, **kwargs)
    finally:
        set_none()


def hides_from_profiler() -> bool:
    """Whether a profiler of fnad's is there, and not set."""
    return _HERE.see is not None and getprofile() is None


# ---- by events of the interpreter ------------------------------------------------------------------------------------

monitoring: Any = getattr(sys, "monitoring", None)

TOOLS = (4, 3, 5, 2, 1, 0)
"""The ids of tools in the order in which they are tried: those of debuggers, coverage and profilers come last."""


def caller() -> FrameType:
    """The frame of the code that an event is of, for the callback that asks."""
    return sys._getframe(2)  # pyright: ignore[reportPrivateUsage]


class Monitor:
    """The events of the interpreter, which are on as long as some thread watches."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._watches = 0
        self._tool = -1
        self._codes: dict[int, CodeType] = {}

    def begin(self) -> bool:
        """Turn the events on; whether there is an id of a tool for it."""
        with self._lock:
            if self._watches == 0 and not self._take():
                return False
            self._watches += 1
            return True

    def end(self) -> None:
        """Turn the events off if no other thread watches."""
        with self._lock:
            self._watches -= 1
            if self._watches == 0:
                self._free()

    def _take(self) -> bool:
        for tool in TOOLS:
            try:
                monitoring.use_tool_id(tool, "fnad")
            except ValueError:  # somebody has it
                continue
            self._tool = tool
            for event, callback in self._callbacks().items():
                monitoring.register_callback(tool, event, callback)
            events = monitoring.events
            monitoring.set_events(tool, events.PY_START | events.PY_RESUME | events.PY_THROW)
            return True
        return False

    def _free(self) -> None:
        monitoring.set_events(self._tool, 0)
        for code in self._codes.values():
            monitoring.set_local_events(self._tool, code, 0)
        self._codes.clear()
        for event in self._callbacks():
            monitoring.register_callback(self._tool, event, None)
        monitoring.free_tool_id(self._tool)

    def _callbacks(self) -> dict[int, Callable[..., object]]:
        events = monitoring.events
        return {
            events.PY_START: self._begins,
            events.PY_RESUME: self._begins,
            events.PY_THROW: self._throws,
            events.CALL: self._calls,
        }

    def _begins(self, code: CodeType, _: int) -> object:
        if code.co_filename.startswith(OWN):
            return monitoring.DISABLE
        if _HERE.see is not None:
            self._enter(code, caller())
        return None

    def _throws(self, code: CodeType, _: int, __: BaseException) -> None:  # which cannot be disabled
        if _HERE.see is not None and not code.co_filename.startswith(OWN):
            self._enter(code, caller())

    def _enter(self, code: CodeType, frame: FrameType) -> None:
        if id(code) not in self._codes:
            self._codes[id(code)] = code
            monitoring.set_local_events(self._tool, code, monitoring.events.CALL)
        cast("See", _HERE.see)(frame, "call", None)

    def _calls(self, _: CodeType, __: int, function: Any, first: Any) -> None:
        if _HERE.see is None:
            return
        if type(function) is MethodDescriptorType and first is not monitoring.MISSING:
            function = function.__get__(first, type(first))
        if isinstance(function, BuiltinFunctionType):
            _HERE.see(caller(), "c_call", function)


MONITOR = Monitor()


@contextmanager
def by_events(see: See) -> Generator[None]:
    """Have a function called for the calls of this thread in what is called by `seen`; all else goes on."""
    if not MONITOR.begin():
        with always_by_profiler(see):
            yield
        return
    before = _HERE.see, _HERE.hidden
    outer = _HERE.see or _HERE.hidden
    _HERE.see, _HERE.hidden = None, see if outer is None else _both(outer, see)
    try:
        yield
    finally:
        _HERE.see, _HERE.hidden = before
        MONITOR.end()


def without_events(condition: Callable[P, bool], function: Callable[P, T]) -> Callable[P, T]:
    """A function whose events are passed over where a condition holds."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        see, hidden = _HERE.see, _HERE.hidden
        if see is None:
            return function(*args, **kwargs)
        _HERE.see, _HERE.hidden = None, see
        try:
            if condition(*args, **kwargs):
                return function(*args, **kwargs)
        finally:
            _HERE.see, _HERE.hidden = see, hidden
        return function(*args, **kwargs)

    return run


def seen_by_events(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function whose events are seen again, where this is called in code that has them passed over."""
    see, hidden = _HERE.see, _HERE.hidden
    if see is not None or hidden is None:
        return function(*args, **kwargs)
    _HERE.see, _HERE.hidden = hidden, None
    try:
        return function(*args, **kwargs)
    finally:
        _HERE.see, _HERE.hidden = None, hidden


def hides_events() -> bool:
    """Whether events are passed over that are to be seen elsewhere."""
    return _HERE.see is None and _HERE.hidden is not None


def _always(*args: object, **kwargs: object) -> bool:
    return True


# ---- the way of this version -----------------------------------------------------------------------------------------


def profiled(
    see: See, *, passed: Container[str] = frozenset(), asked: Container[Any] | None = None
) -> AbstractContextManager[None]:
    """Have a function called for the calls of this thread in what `seen` calls and is not fnad's.

    Files in `passed` have no code that is to be seen as it begins; of functions of C those in `asked` are seen, or all.
    """
    watching = by_profiler if monitoring is None else by_events
    return watching(_of_others(see, passed, asked))


def unwatched_where(condition: Callable[P, bool]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function run without its calls being seen where a condition on its arguments holds."""
    without = without_profiler if monitoring is None else without_events
    return lambda function: without(condition, function)


def unwatched(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function run without its calls being seen; code of the user's it calls by `seen`."""
    return unwatched_where(cast("Callable[P, bool]", _always))(function)


imported = unwatched(import_module)
"""The module of a name: a traced function may be the first that asks for it, and thousands of calls are made then."""

seen = seen_by_profiler if monitoring is None else seen_by_events
"""Calls a function, where code of the user's may run, with its calls seen."""

is_hidden = hides_from_profiler if monitoring is None else hides_events
"""Whether calls that are seen elsewhere are not seen here."""
