"""Functions that ask a value for its number or its class, under names that the user's code bound before.

`from math import exp`, `float(x)`, `dtype(x)` with `dtype = np.float64`, `type(x) is float`: the name is a global, so
the code calls Python's own function without asking anybody. While a trace runs, a function of the user's that does so
has other code, the same with constants in the place of such globals: `STAND_INS` has what stands for a function, which
is that function to everything that is not traced. A class stays what it is where it is not called, as in
`isinstance(x, float)`. When the trace ends the function has its own code back.

Note [Which functions]
    Most code needs none of this, so it is done on demand. Where a traced value is asked for its number, the functions
    are looked for that have the globals of the code that runs and load something with a stand-in; where there are any,
    the outermost function runs again, with the others exchanged. Whatever became of the first run, its error too, is
    forgotten. What was exchanged is remembered for the function that is traced, which runs once from then on.

    The class of a value can be asked for without anybody noticing (`fnad.trace.identity`). So functions that do so are
    exchanged before: those that can be reached by the names in the code of the function, and in that of the functions
    that compute.

Note [Other callees]
    What is called may be no global: `f(x)` of a parameter, `holder.exp(x)`, `table["exp"](x)`, a method with a cache.
    Where a number is asked for in such code, it gets a hook: all such calls in it ask what stands for their callee.
    There are four degrees of other code, since the fewer functions do other than they say, the better: in the first
    constants stand for globals; in the second calls have a hook that may be of `type` under another name
    (`fnad.trace.aliases`); in the third calls of values, in all functions with these globals; in the fourth those of
    attributes too, in the very function that asked. What has no hook is what C code finds for itself, as
    `operator.methodcaller` does.
"""

from __future__ import annotations

import gc
import inspect
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from operator import call, is_
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Protocol, TypeAlias, TypeVar

from fnad.codes import functions_of, notes_of, original_of, remembered
from fnad.errors import TracerEscapeError
from fnad.numpy.namespace import CALLS
from fnad.trace.aliases import BUILTINS, bound, calling_type
from fnad.trace.bytecode import (
    globals_of,
    with_calls_by,
    with_constants,
    with_methods_by,
)
from fnad.trace.contents import is_library_module
from fnad.trace.libraries import is_library
from fnad.trace.source import caller
from fnad.watch import tell

T = TypeVar("T")
Namespace: TypeAlias = dict[str, Any]
Key: TypeAlias = "int | partial[Any]"
Changes: TypeAlias = "dict[FunctionType, CodeType]"
"""Functions, each with its other code."""

MOST_RUNS = 20
"""As many as modules of the user's call one another, unless a function defines others by `exec` in each run."""

EXCHANGED = "exchanged"
"""What is noted of the code of a traced function: those exchanged for it that no name leads to, by their degrees."""

GLOBALS, ALIASES, VALUES, ATTRIBUTES = range(4)
"""What is stood for: see Note [Other callees]."""

HOOKED = {"builtins", "functools", "itertools", "operator"}
"""Modules of which calls have a hook, as those of values have: what stands for a function is not met there."""

CACHED = type(lru_cache(len))

STAND_INS: dict[int, tuple[Any, Callable[[Any], Any]]] = {}
"""Functions and classes by identity, each with what makes that which stands for it: most are never met."""

MADE: dict[int, Any] = {}
"""What was made to stand for them."""


def enter(original: Any, make: Callable[[Any], Any]) -> None:
    """Have something stand for a function or a class, which is made of it when it is first asked for."""
    STAND_INS[id(original)] = original, make


def standing_for(value: Any) -> Any:
    """What stands for a value, or the value."""
    key = key_of(value)
    return value if key is None else found_by(key)[1]


# ---- other code ------------------------------------------------------------------------------------------------------


def other_code(function: FunctionType, degree: int) -> CodeType:
    """The code of a function with what stands for the globals it loads, and for what else it calls by degree."""
    code = original_of(function.__code__)
    found = stand_ins_in(code, function.__globals__)
    if degree == GLOBALS:
        return _exchanged(code, found, degree, frozenset(), None) if found else code
    names = calling_type(function) if degree < ATTRIBUTES else None
    return _exchanged(code, found, degree, modules_in(code, function.__globals__), names)


def modules_in(code: CodeType, namespace: Namespace) -> frozenset[str]:
    """The globals that code loads and that are modules of libraries, in which what stands for a function is met."""
    values = ((name, bound(namespace, name)) for name in globals_of(code))
    modules = [(name, value) for name, value in values if isinstance(value, ModuleType) and is_library_module(value)]
    return frozenset(name for name, value in modules if value.__name__ not in HOOKED)


def stand_ins_in(code: CodeType, namespace: Namespace) -> tuple[tuple[str, Key], ...]:
    """The globals that code loads and that something stands for, each with the key of that."""
    values = ((name, bound(namespace, name)) for name in globals_of(code))
    return tuple((name, key) for name, value in values if (key := key_of(value)) is not None)


def key_of(value: Any) -> Key | None:
    """The key of what stands for a value; a partial call of such is its own."""
    if id(value) in STAND_INS:
        return id(value)
    return value if type(value) is partial and id(value.func) in STAND_INS else None


def found_by(key: Key) -> tuple[Any, Any]:
    """A value, and what stands for it."""
    if isinstance(key, partial):
        return key, partial(standing_for(key.func), *key.args, **key.keywords)
    original, make = STAND_INS[key]
    if key not in MADE:
        MADE.setdefault(key, make(original))  # the first one, if several threads come here
    return original, MADE[key]


@remembered
def _exchanged(
    code: CodeType,
    found: tuple[tuple[str, Key], ...],
    degree: int,
    modules: frozenset[str],
    names: frozenset[str] | None,
) -> CodeType:
    pairs = {name: found_by(key) for name, key in found}
    classes = {name for name, (original, _) in pairs.items() if isinstance(original, type)}
    like = {name: partial(Sameness, found) for name, found in pairs.items() if found[0] is type}
    other = with_constants(code, {name: stand_in for name, (_, stand_in) in pairs.items()}, classes, like)
    if degree != GLOBALS:
        other = with_calls_by(other, call_standing, Variable, names if degree == ALIASES else None)
        other = with_methods_by(other, call_standing, Attribute, Hooked, Reader(), modules, names)
    _note_originals(other, code, degree)
    return other


def call_standing(callee: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call what stands for a function or class; of one with a cache, which finds values by hash, that itself."""
    if type(callee) is partial:
        return call_standing(callee.func, *callee.args, *args, **{**callee.keywords, **kwargs})
    found = standing_for(callee)
    own = found.__func__ if isinstance(found, MethodType) else found
    if isinstance(own, CACHED) and CALLS["has_traced"]((args, kwargs)):
        first = (found.__self__,) if isinstance(found, MethodType) else ()
        return own.__wrapped__(*first, *args, **kwargs)
    tell(caller(), found)
    return found(*args, **kwargs)


class Variable:
    """A variable of the code that calls this in its place, with arguments that are unpacked."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        variables = sys._getframe(1).f_locals  # pyright: ignore[reportPrivateUsage]
        if self.name not in variables:
            raise UnboundLocalError(f"cannot access variable {self.name!r} where it is not associated with a value")
        return call_standing(variables[self.name], *args, **kwargs)


class Sameness:
    """Whether what it is multiplied with is one of some values, or is not."""

    def __init__(self, values: tuple[Any, ...], is_not: bool) -> None:
        self.values, self.is_not = values, is_not

    def __matmul__(self, other: Any) -> bool:
        return any(other is value for value in self.values) is not self.is_not


class Attribute:
    """An attribute of what it is multiplied with; of a module, what a traced computation finds there."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __matmul__(self, owner: Any) -> Any:
        found = vars(type(owner)).get(self.name) if isinstance(owner, ModuleType) else None
        called = getattr(found, "called", None)
        return getattr(owner, self.name) if called is None else called(owner)


class Hooked(Attribute):
    """An attribute that is called with arguments that are unpacked."""

    def __matmul__(self, owner: Any) -> Any:
        return partial(call_standing, super().__matmul__(owner))


class Reader:
    """The globals of the code that multiplies by it."""

    def __matmul__(self, name: str) -> Any:
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        try:
            return frame.f_globals[name]
        except KeyError:
            pass
        try:
            return frame.f_builtins[name]
        except KeyError:
            raise NameError(f"name {name!r} is not defined", name=name) from None


def _note_originals(other: CodeType, code: CodeType, degree: int) -> None:
    notes_of(other).update(original=weakref.ref(code), degree=degree)
    for inner, own in zip(other.co_consts, code.co_consts, strict=False):  # those that were added stand at the end
        if isinstance(inner, CodeType):
            _note_originals(inner, own, degree)


def is_other(code: CodeType) -> bool:
    """Whether code is that of a function that is exchanged."""
    return original_of(code) is not code


def degree_of(code: CodeType) -> int:
    """The degree of other code; -1 of a function's own."""
    return notes_of(code).get("degree", -1)


class Group:
    """Functions with the same globals, with the other code of each for as long as their globals stand for the same.

    All of them are asked for it at each trace.
    """

    def __init__(self, functions: Iterable[FunctionType]) -> None:
        functions = list(functions)
        self._functions = list(map(weakref.ref, functions))
        self._names = frozenset[str]().union(*(globals_of(original_of(function.__code__)) for function in functions))
        self._ids: list[int] = []
        self._own: list[weakref.ref[CodeType]] = []
        self._other: list[weakref.ref[CodeType]] = []

    def changes(self) -> Changes:
        """The functions that are still there."""
        functions = list(alive(self._functions))
        if not functions:
            return {}
        get, own = functions[0].__globals__.get, [function.__code__ for function in functions]
        ids = list(map(id, map(get, self._names, map(BUILTINS.get, self._names))))
        codes = list(alive(self._other))
        # By identity: what has a stand-in is kept, by `STAND_INS` or the code, so nothing else is at its address.
        if ids != self._ids or len(codes) != len(own) or not all(map(is_, own, map(call, self._own))):
            codes = [other_code(function, GLOBALS) for function in functions]
            self._ids, self._own, self._other = ids, list(map(weakref.ref, own)), list(map(weakref.ref, codes))
        return dict(zip(functions, codes, strict=True))


def grouped(functions: Iterable[FunctionType]) -> list[Group]:
    """Functions by their globals."""
    by_globals: dict[int, dict[FunctionType, None]] = {}
    for function in functions:
        by_globals.setdefault(id(function.__globals__), {})[function] = None
    return list(map(Group, by_globals.values()))


class _Exchanges:
    """The functions with other code, each with its own and how many traces need the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own: dict[FunctionType, tuple[CodeType, int]] = {}

    def begin(self, changes: Changes) -> None:
        """Give functions other code, unless a trace in another thread has given them as much."""
        with self._lock:
            for function, code in changes.items():
                now = function.__code__
                own, count = self._own.get(function, (now, 0))
                self._own[function] = own, count + 1
                if count == 0 or (now is not code and degree_of(now) < degree_of(code)):
                    function.__code__ = code

    def end(self, functions: Iterable[FunctionType]) -> None:
        """Give functions their own code, unless a trace in another thread needs the other."""
        with self._lock:
            for function in functions:
                own, count = self._own.pop(function)
                if count > 1:
                    self._own[function] = own, count - 1
                else:
                    function.__code__ = own

    def functions_of(self, code: CodeType) -> list[FunctionType]:
        """The functions that run a code object, or did before they got other code."""
        with self._lock:
            return [*functions_of(code), *(function for function, (own, _) in self._own.items() if own is code)]


EXCHANGES = _Exchanges()


# ---- the runs of a function ------------------------------------------------------------------------------------------


class Reached(Protocol):
    """The code that names lead to."""

    def groups(self) -> Iterable[Group]:
        """The functions that ask for a class."""
        ...

    def calling(self) -> Iterable[FunctionType]:
        """Those that may call `type` under another name."""
        ...

    def others(self) -> Iterable[FunctionType]:
        """Those that are looked for at each trace."""
        ...

    def has(self, code: CodeType) -> bool:
        """Whether names led to this code."""
        ...


class Runs:
    """The functions that are exchanged for the outermost one; `again` where that has to run once more.

    `has_asked` says whether a value was asked for its number. `degrees` are those of other code, and `begun` has a
    function as often as it got another. `reach` is what names lead to from the outermost one, `seen` the code that has
    computed, by identity, and `reached` what names lead to from such code.
    """

    def __init__(self, reach: Reached) -> None:
        self.again = False
        self.has_asked = False
        self.reach = reach
        self.degrees: dict[FunctionType, int] = {}
        self.begun: list[FunctionType] = []
        self.seen: dict[int, CodeType] = {}
        self.reached: dict[int, CodeType] = {}

    def exchange(self, functions: Iterable[FunctionType], degree: int = GLOBALS) -> bool:
        """Exchange functions that call something with a stand-in; whether there are any that were not yet."""
        changes: Changes = {}
        for function in functions:
            if function not in changes and self.degrees.get(function, -1) < degree:
                code = other_code(function, degree)
                if degree_of(code) == degree:
                    changes[function] = code
        self._begin(changes, degree)
        return bool(changes)

    def exchange_reached(self) -> None:
        """Exchange what names lead to from the outermost function."""
        changes: Changes = {}
        for group in self.reach.groups():
            changes.update(group.changes())
        self._begin(changes, GLOBALS)
        self.exchange(self.reach.others())
        self.exchange(self.reach.calling(), ALIASES)

    def _begin(self, changes: Changes, degree: int) -> None:
        self.degrees.update(dict.fromkeys(changes, degree))
        self.begun += changes
        EXCHANGES.begin(changes)

    def end(self) -> None:
        EXCHANGES.end(self.begun)


class _Now(threading.local):
    runs: Runs | None = None


NOW = _Now()


def with_stand_ins(f: Any, reach_of: Callable[[Any], Reached], run: Callable[[], T]) -> T:
    """`run()`, which traces the user's function `f`, again where stand-ins were missing.

    The functions in what is reached from `f` are exchanged before. See Note [Which functions].
    """
    if NOW.runs is not None:
        return run()
    runs, function = Runs(reach_of(f)), entry_of(f)
    notes = {} if function is None else notes_of(original_of(function.__code__))
    NOW.runs, reached = runs, 0
    try:
        runs.exchange_reached()
        reached = len(runs.begun)
        for reference, degree in notes.get(EXCHANGED, ()):
            runs.exchange(alive([reference]), degree)
        return _until_met(runs, run)
    finally:
        NOW.runs = None
        runs.end()
        if len(runs.begun) > reached:
            notes[EXCHANGED] = [(weakref.ref(function), runs.degrees[function]) for function in runs.begun[reached:]]


def _until_met(runs: Runs, run: Callable[[], T]) -> T:
    for is_last in (*[False] * MOST_RUNS, True):
        runs.again = False
        try:
            result = run()
        except Exception:
            if is_last or not runs.again:
                raise
        else:
            if not runs.again:
                return result
    raise TracerEscapeError(
        "each run of the function makes other functions that ask for the class of a value or for its number",
        remedy="make them before, or write isinstance(x, float) and NumPy's functions in them",
    )


def is_void() -> bool:
    """Whether what becomes of the run does not matter, since there will be another one."""
    return NOW.runs is not None and NOW.runs.again


def module_of(namespace: Namespace) -> Namespace:
    """The globals of a module, of what the second run of a function looks names up in (`fnad.trace.opening`)."""
    return getattr(namespace, "module", namespace)


def functions_in(spaces: list[Namespace]) -> list[FunctionType]:
    """The functions with these globals, which only the garbage collector knows."""
    return with_globals(gc.get_referrers(*spaces) if spaces else [], spaces)


def with_globals(values: Iterable[Any], spaces: list[Namespace]) -> list[FunctionType]:
    """The functions among values that have one of these globals."""
    return [value for value in values if type(value) is FunctionType and any(value.__globals__ is s for s in spaces)]


def alive(references: Iterable[weakref.ref[T]]) -> Iterator[T]:
    """What weak references refer to that is still there."""
    return (value for reference in references if (value := reference()) is not None)


def entry_of(f: Any) -> FunctionType | None:
    """The user's function in what is traced; None where it cannot be told."""
    if isinstance(f, FunctionType):
        wrapped = getattr(f, "__wrapped__", None) if is_library(f.__code__.co_filename) else None
        return f if wrapped is None else entry_of(wrapped)
    if isinstance(f, MethodType):
        return entry_of(f.__func__)
    if isinstance(f, partial):
        inside = map(entry_of, (f.func, *f.args))
        return next((found for found in inside if found and not is_library(found.__code__.co_filename)), None)
    inside = getattr(f, "__wrapped__", None) or inspect.getattr_static(type(f), "__call__", None)
    return entry_of(inside) if isinstance(inside, (FunctionType, MethodType, partial)) else None
