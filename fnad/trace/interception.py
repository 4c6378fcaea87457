"""NumPy's functions that its protocols do not hand on, met while a trace runs.

`np.array([[t, 1.0]])`, `np.full(n, t)`, `np.r_[t, v]`, `np.exp([t, u])`, `np.take(table, i)`: there is no traced value
where NumPy looks for one. So while a trace runs, in the thread where it runs, code that is no library's finds under
such a name a function that looks for traced values in lists too, follows the rule of the function if there is one, and
is NumPy's function otherwise.

Compiled code has no frame of its own: what it looks up seems to come from the user's line. It takes an ndarray for
granted where it calls `np.empty`, and a traced value there ends the process. So a look-up is the user's only where the
user's frame is at the very instruction that loads this attribute from this module (`fnad.trace.bytecode`).

Nothing in NumPy's namespaces is replaced. Its modules get a class of their own, whose attributes decide at each look-up
what is found; when the last trace of the process ends they get their class back. Another thread, a library, what was
bound before (`from numpy import array`) and what looks into the dictionary of a module find NumPy's own functions. An
instance of `np.vectorize` may have been made anywhere, so its class gets another way to be called for this time, which
is NumPy's own to everyone else.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import operator
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cache, update_wrapper, wraps
from pkgutil import resolve_name
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from fnad.codes import remembered
from fnad.ir.builder import is_tracing
from fnad.numpy.indexing_routines import c_, r_
from fnad.numpy.namespace import MAKING, NEW, on_trace
from fnad.numpy.registry import RULES
from fnad.trace import compiled, objects
from fnad.trace.bytecode import Lookup, lookup_at
from fnad.trace.callees import STAND_INS, enter, found_by
from fnad.trace.classes import CLASSES
from fnad.trace.dispatch import call_function, call_seen, go_straight, has_traced, runs_no_users_code
from fnad.trace.exchange import EXCHANGES
from fnad.trace.libraries import is_library, package_of
from fnad.trace.objects import call_or_make
from fnad.trace.selection import call_traced
from fnad.trace.standard import STANDARD, class_of, handing_on, on_numbers
from fnad.trace.tables import TABLES
from fnad.trace.vectorized import CALL, call_vectorized
from fnad.watch import unwatched, unwatched_where

CALLING = (np.apply_along_axis, np.apply_over_axes, np.fromiter, np.piecewise)
"""Functions that call a function of the user's."""

SERIES = "numpy.polynomial"
BASES = ("polynomial", "chebyshev", "legendre", "laguerre", "hermite", "hermite_e")
MODULES = ("numpy", "numpy.linalg", "numpy.fft", *[f"{SERIES}.{basis}" for basis in BASES])
LATER = {
    SERIES: "fnad.numpy.series_algebra",
    "statistics": "fnad.trace.standard_statistics",
    "bottleneck": "fnad.trace.bottleneck_functions",
}
"""The rules of modules that are there when somebody has asked for them."""

ENTERED: set[str] = set()
"""Those of which the rules are entered."""

STANDARD_MODULES = ("builtins", "math", "cmath", "statistics")


class StandIn:
    """What a traced computation finds in the place of a function of NumPy's; it is pickled as that function."""

    __qualname__: str

    def __init__(self, function: Any, call: Callable[..., Any]) -> None:
        update_wrapper(self, call)
        self._function, self._call = function, call

    @unwatched_where(lambda self, *args, **kwargs: runs_no_users_code(self._rule, args, kwargs))
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    @property
    def _rule(self) -> Any:
        return RULES[self._function]

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return resolve_name, (f"{self.__module__}:{self.__qualname__}",)


class OfArrays(StandIn):
    """What a traced computation finds in the place of a function that follows its rule where an argument is traced."""

    def __init__(self, function: Any) -> None:
        super().__init__(function, function)
        self._traced = call_or_make if function in objects.MAKING else call_traced

    @unwatched_where(lambda self, *args, **kwargs: runs_no_users_code(self._rule, args, kwargs))
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_tracing() and (has_traced(args) or (kwargs and has_traced(kwargs))):
            return self._traced(self._function, args, kwargs)
        return self._function(*args, **kwargs)


class OfElements(StandIn):
    """What a traced computation finds in the place of a ufunc; it takes traced values in lists too."""

    def __init__(self, ufunc: np.ufunc) -> None:
        super().__init__(ufunc, of_lists(ufunc))
        self._count = ufunc.nin

    @unwatched_where(lambda self, *args, **kwargs: runs_no_users_code(self._rule, args, kwargs))
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and len(args) == self._count and go_straight(args):
            return call_seen(RULES[self._function], args, kwargs)
        return self._call(*args, **kwargs)


class OfNumbers(StandIn):
    """What a traced computation finds in the place of a function of Python's, which may call the user's code."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)


class Intercepted:
    """The attribute of a module under which a traced computation finds a function in the place of NumPy's."""

    def __init__(self, name: str, original: Any, replacement: Any) -> None:
        self.name, self.original, self.replacement = name, original, replacement

    @unwatched
    def __get__(self, module: ModuleType, owner: type[ModuleType] | None = None) -> Any:
        try:
            found = module.__dict__[self.name]
        except KeyError:
            raise AttributeError(f"module {module.__name__!r} has no attribute {self.name!r}") from None
        if found is not self.original or not is_tracing():
            return found
        frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]  # the last one is of `unwatched`
        load = load_at(frame.f_code, frame.f_lasti)
        return self._standing_in(load) if load is not None and load.is_of(frame, module, self.name) else found

    def called(self, module: ModuleType) -> Any:
        """What a traced computation finds where it calls the attribute."""
        found = module.__dict__.get(self.name)
        return self._standing_in() if found is self.original and is_tracing() else getattr(module, self.name)

    def _standing_in(self, load: Lookup | None = None) -> Any:
        return self.replacement

    def __set__(self, module: ModuleType, value: Any) -> None:
        vars(module)[self.name] = self.original if value is self.replacement else value

    def __delete__(self, module: ModuleType) -> None:
        if self.name not in vars(module):
            raise AttributeError(self.name)
        del vars(module)[self.name]


class InterceptedMaking(Intercepted):
    """The attribute for a function that makes a new array, which is traced where that is asked for."""

    def __init__(self, name: str, original: Any, replacement: Any) -> None:
        super().__init__(name, original, replacement)
        self.making = StandIn(original, on_trace(original))

    def _standing_in(self, load: Lookup | None = None) -> Any:
        return self.making if MAKING.is_traced else self.replacement


class InterceptedClass(Intercepted):
    """The attribute for a class of NumPy's, in whose place a function stands only where it is called."""

    def _standing_in(self, load: Lookup | None = None) -> Any:
        return self.replacement if load is None or load.is_called else self.original


def is_users(code: CodeType) -> bool:
    """Whether the code may meet traced values: no library's, and no module's, which keeps the names it imports."""
    return code.co_name != "<module>" and not is_library(code.co_filename)


@remembered
def load_at(code: CodeType, offset: int) -> Lookup | None:
    """The attribute that an instruction of such code may load."""
    return lookup_at(code, offset) if is_users(code) else None


class Watched(ModuleType):
    """A module of NumPy's while a trace runs."""

    def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
        return importlib.import_module, (self.__name__,)


@cache
def watched_class(module: ModuleType) -> type[Watched]:
    """The class of a module of NumPy's while a trace runs."""
    if module.__name__ in STANDARD_MODULES:
        return type("Watched", (Watched,), dict(_standing_in(module)))
    functions = {name: value for name, value in vars(module).items() if has_replacement(value)}
    members: dict[str, Any] = {name: Intercepted(name, f, replacement(f)) for name, f in functions.items()}
    members |= {name: InterceptedClass(name, kind, CLASSES[kind]) for name, kind in classes_of(module).items()}
    if module is np:
        members |= {name: InterceptedClass(name, f, OfElements(f)) for name, f in ufuncs_of(module).items()}
        members |= {name: InterceptedMaking(name, f := getattr(np, name), replacement(f)) for name in NEW}
        members |= {"r_": Intercepted("r_", np.r_, r_), "c_": Intercepted("c_", np.c_, c_)}
    return type("Watched", (Watched,), members)


def _standing_in(module: ModuleType) -> Iterator[tuple[str, Intercepted]]:
    for name, function in vars(module).items():
        if id(function) in STAND_INS:
            is_other = isinstance(function, type) and function is not type  # what stands for `type` is equal to it
            kind = InterceptedClass if is_other else Intercepted
            yield name, kind(name, *found_by(id(function)))


def classes_of(module: ModuleType) -> dict[str, type]:
    """The classes of a module that can be called on traced values, by name."""
    return {name: value for name, value in vars(module).items() if isinstance(value, type) and value in CLASSES}


def ufuncs_of(module: ModuleType) -> dict[str, np.ufunc]:
    """The ufuncs of a module that have a rule, by name."""
    return {name: value for name, value in vars(module).items() if isinstance(value, np.ufunc) and value in RULES}


def of_lists(ufunc: np.ufunc) -> Callable[..., Any]:
    """A ufunc that takes traced values in lists too: to the protocols of NumPy's these are no operands."""

    @wraps(ufunc)
    def call(*args: Any, **kwargs: Any) -> Any:
        for arg in args:
            if isinstance(arg, (list, tuple)):
                return ufunc(*map(array_of, args), **kwargs)
        return ufunc(*args, **kwargs)

    return call


def array_of(values: Any) -> Any:
    """A list as a traced array, if there are traced values in it."""
    is_traced = isinstance(values, (list, tuple)) and has_traced(values)
    return call_function(np.asarray, (values,), {}) if is_traced else values


def replacement(function: Callable[..., Any]) -> Callable[..., Any]:
    """The replacement for a NumPy function; one that calls the user's may meet traced values there."""
    return StandIn(function, on_trace(function)) if function in CALLING else OfArrays(function)


def has_replacement(value: Any) -> bool:
    """Whether there is a rule that takes traced values in lists; a ufunc is met where it is called."""
    return callable(value) and not isinstance(value, (type, np.ufunc)) and value in RULES


def under_any_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy function that takes traced values in lists, and makes a traced array where that is asked for."""
    replaced = replacement(function)
    if function.__name__ not in NEW:
        return replaced
    making = on_trace(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (making if MAKING.is_traced else replaced)(*args, **kwargs)

    return call


def enter_standard() -> None:
    """Enter what stands for Python's functions of numbers."""
    for function in STANDARD:
        enter(function, lambda function: OfNumbers(function, on_numbers(function)))


enter_standard()
for _kind in CLASSES:
    enter(_kind, CLASSES.__getitem__)
for _function in filter(has_replacement, vars(np).values()):
    enter(_function, lambda function: StandIn(function, under_any_name(function)))
enter(type, lambda _: class_of)
for _function in (map, functools.reduce, itertools.groupby, itertools.starmap, operator.call):
    enter(_function, handing_on)


class _Watch:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.traces = 0

    def begin(self) -> None:
        with self.lock:
            self.traces += 1
            if self.traces == 1:
                for module in watchable():
                    module.__class__ = watched_class(module)
                np.vectorize.__call__ = call_vectorized
                compiled.EXCHANGES.begin()
                EXCHANGES.begin()
                TABLES.begin()

    def end(self) -> None:
        with self.lock:
            self.traces -= 1
            if self.traces == 0:
                for module in watchable():
                    module.__class__ = ModuleType
                np.vectorize.__call__ = CALL
                compiled.EXCHANGES.end()
                EXCHANGES.end()
                TABLES.end()


def watchable() -> list[ModuleType]:
    """The modules of NumPy's that are of no class of somebody else's.

    NumPy imports `numpy.polynomial` when somebody asks for it, and so its rules are entered then; likewise those of
    others, unless the module is one of the user's that has the name.
    """
    for name, rules in LATER.items():
        file = getattr(sys.modules.get(name), "__file__", None)
        if name not in ENTERED and file is not None and (is_library(file) or package_of(file) == name):
            importlib.import_module(rules)
            enter_standard()
            ENTERED.add(name)
    modules = [sys.modules[name] for name in (*MODULES, *STANDARD_MODULES) if name in sys.modules]
    return [module for module in modules if type(module) is ModuleType or isinstance(module, Watched)]


_WATCH = _Watch()


@contextmanager
def intercepted() -> Generator[None]:
    """Let the code of a trace find functions that take traced values in lists under NumPy's names."""
    _WATCH.begin()
    try:
        yield
    finally:
        _WATCH.end()
