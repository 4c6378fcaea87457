"""Callees that read attributes, modules or environment variables, replaced by functions that record the reads.

`getattr(o, name)`, `vars(o)`, `copy.copy(o)`, `operator.attrgetter("x")(o)`, `importlib.import_module(name)` read
attributes without a hook.
"""

from __future__ import annotations

import inspect
import operator
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import resolve_name
from types import FunctionType, ModuleType
from typing import Any, cast

import numpy as np

from fnad.ir.builder import is_tracing
from fnad.trace.effects import COMPUTED, DRAW, runs_python
from fnad.trace.libraries import is_trusted, is_users
from fnad.trace.reads import Read, answer
from fnad.trace.recording import RECORDING, Recorder
from fnad.trace.source import current_source
from fnad.upward import UPWARD


def noting(note: Callable[..., None]) -> Callable[[Any], Any]:
    """The function that makes of a function another one: each recorder notes the arguments of a call after it."""

    def make(function: Any) -> Any:
        def ask(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            finally:
                for recorder in RECORDING.values:
                    note(recorder, *args, **kwargs)

        return ask

    return make


def followed(function: Any) -> Any:
    """`function` with results that recorders follow, because later calls return the same objects."""

    def ask(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        for recorder in RECORDING.values:
            recorder.follow(found)
        return found

    return ask


def note_attribute(recorder: Recorder, *args: Any) -> None:
    """Note the attribute of `getattr` or `hasattr`."""
    if len(args) > 1 and isinstance(args[1], str):
        recorder.attribute(args[0], args[1])


def note_attributes(recorder: Recorder, *args: Any, **_: Any) -> None:
    """Note all attributes of arguments."""
    if args and isinstance(args[0], ModuleType):
        recorder.meet(COMPUTED, current_source())
    for arg in args:
        recorder.list_attributes(arg)


def note_getter(paths: Sequence[str], recorder: Recorder, owner: Any) -> None:
    """Note each part of the dotted names of an `operator.attrgetter`, of the object that it is read from."""
    for path in paths:
        found = owner
        for name in path.split("."):
            recorder.attribute(found, name)
            found = getattr(found, name, None)


def fields_of(text: str) -> Iterator[str]:
    """The fields of a text for `str.format`, with those in formats of fields."""
    for _, field, form, _ in import_module("string").Formatter().parse(text):
        if field is not None:
            yield field
            yield from fields_of(form or "")


def note_fields(recorder: Recorder, text: str, *args: Any, **named: Any) -> None:
    """Note the attributes that `str.format` reads, as in `"{0.scale:.3f}"`."""
    in_order = iter(args)
    for field in fields_of(text):
        first, *steps = re.findall(r"^[^.[]*|\.[^.[]+|\[[^]]*", field)
        found = next(in_order) if not first else args[int(first)] if first.isdigit() else named[first]
        for step in steps:
            name = step[1:]
            if step[0] == ".":
                recorder.attribute(found, name)
            found = getattr(found, name) if step[0] == "." else found[int(name) if name.isdigit() else name]


def formatting(function: Any) -> Callable[..., Any]:
    """`text.format` or `text.format_map`, with the attributes noted that it reads."""
    text, takes_map = getattr(function, "__self__", None), function.__name__ == "format_map"

    def note(recorder: Recorder, *args: Any, **named: Any) -> None:
        own, *others = (text, *args) if isinstance(text, str) else args
        with suppress(Exception):  # the call has raised it too
            note_fields(recorder, own, *others, **(dict(others[0]) if takes_map else named))

    return noting(note)(function)


def note_protocol(recorder: Recorder, value: Any, kind: Any) -> None:
    """Note the attributes that `isinstance` or `issubclass` reads for a protocol."""
    if getattr(kind, "_is_protocol", False):
        for name in {*vars(kind), *vars(kind).get("__annotations__", ())}:
            recorder.attribute(value, name)


def note_import(recorder: Recorder, name: Any, *args: Any, **kwargs: Any) -> None:
    """Note the module that `importlib.import_module` or `__import__` imports."""
    package = kwargs.get("package", args[0] if args else None)
    with suppress(ImportError, TypeError, AttributeError, KeyError):
        own = package if isinstance(package, str) else ""
        recorder.imports([resolve_name(name, own) if name.startswith(".") else name])


def note_seed(recorder: Recorder, *args: Any, **kwargs: Any) -> None:
    """Note that a generator of random numbers is made without a seed, whose numbers are others each time."""
    if all(value is None for value in (*args, *kwargs.values())):
        recorder.meet(DRAW, current_source())


def listed(function: Any) -> Any:
    """`vars` or `dir`, without an argument of the caller."""
    ask = noting(note_attributes)(function)

    def of_caller(*args: Any) -> Any:
        names = sys._getframe(1).f_locals  # pyright: ignore[reportPrivateUsage]
        return ask(*args) if args else sorted(names) if function is dir else names

    return of_caller


def answering(function: Any) -> Any:
    """A function under `functools.lru_cache` without traced values: later calls compare its answers.

    User code may clear the cache.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    if not RECORDING.values or code is None or is_trusted(code.co_filename):
        return function

    def ask(*args: Any, **kwargs: Any) -> Any:
        found, given = function(*args, **kwargs), (args, tuple(kwargs.items()))
        for recorder in RECORDING.values if function.cache_parameters()["maxsize"] != 0 else ():
            if recorder.has_read(function):
                key: Any = answer, id(function), given
                recorder.environment.reads.setdefault(key, Read(answer, function, cast("str", given), found))
        return found

    return ask


def imports(names: tuple[Any, ...]) -> None:
    """An import statement: the number of leading dots, the names of modules, and the names taken from them."""
    if RECORDING.values and is_tracing():
        level, modules, attributes = names
        package = sys._getframe(1).f_globals.get("__package__") or ""  # pyright: ignore[reportPrivateUsage]
        with suppress(ImportError):
            found = [resolve_name("." * level + name, package) for name in modules]
            for recorder in RECORDING.values:
                recorder.imports(found, attributes)


def imported(*values: Any) -> None:
    """The values that an import statement has bound."""
    if is_tracing():
        UPWARD.enter_imported()
        for recorder in RECORDING.values:
            for value in values:
                recorder.follow(value)


def matched(value: Any, names: tuple[str, ...]) -> Any:
    """The subject of a `match` statement with patterns that read attributes."""
    if is_tracing():
        for recorder in RECORDING.values:
            recorder.matched(value, frozenset(names))
    return value


SEEDED = ("default_rng", "RandomState", "SeedSequence", "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")
"""Functions and classes of numpy.random that take a seed; SciPy gives some of them another `__module__`."""

LISTING = noting(note_attributes)
READING: dict[tuple[str, str], Callable[[Any], Any]] = {
    **dict.fromkeys([("builtins", "getattr"), ("builtins", "hasattr")], noting(note_attribute)),
    ("inspect", "getattr_static"): noting(note_attribute),
    **dict.fromkeys([("builtins", "vars"), ("builtins", "dir")], listed),
    **dict.fromkeys([("dataclasses", name) for name in ("asdict", "astuple", "replace")], LISTING),
    **dict.fromkeys([("copy", "copy"), ("copy", "deepcopy"), ("copy", "replace"), ("_pickle", "dumps")], LISTING),
    ("inspect", "getmembers"): LISTING,
    **dict.fromkeys([(module, name) for module in ("", "None") for name in ("format", "format_map")], formatting),
    **dict.fromkeys([("builtins", "isinstance"), ("builtins", "issubclass")], noting(note_protocol)),
    **dict.fromkeys([("importlib", "import_module"), ("builtins", "__import__")], noting(note_import)),
    ("os", "getenv"): noting(lambda recorder, *_, **__: recorder.follow(os.environ)),
    **dict.fromkeys([("logging", name) for name in ("getLogger", "getChild", "getHandlerByName")], followed),
    ("random", "Random"): noting(note_seed),
    **dict.fromkeys([("numpy.random", name) for name in SEEDED], noting(note_seed)),
}
"""Functions that read attributes, modules or the environment, by module and name, each with one that notes it."""

COMPUTING = {id(function) for function in (globals, eval, exec)}
"""Functions that read unknown names. User code calls them directly, because they read its frame."""


def recorded(function: Any) -> Any:
    """A callee that notes what it reads; the call itself is noted now.

    An object of a user class runs its `__call__`, and may run more user code where an attribute of it is read.
    """
    recorders, kind = RECORDING.values, type(function)
    if kind is np.ufunc and not runs_python(function):
        return function
    for recorder in recorders:
        if recorder.silent.get(id(function)) is not function:
            break
    else:
        return function
    is_in_python = isinstance(kind.__call__, FunctionType) and not issubclass(kind, type)
    if is_in_python and is_users(kind):  # Cython's functions seem to be of a user class
        return function
    if id(function) in COMPUTING:
        for recorder in recorders:
            recorder.meet(COMPUTED, current_source())
        return function
    silent = [recorder for recorder in recorders if recorder.call(function)]
    module = str(getattr(function, "__module__", ""))
    module = "numpy.random" if module.startswith("numpy.random.") else module
    make = READING.get((module, getattr(function, "__name__", "")))
    if make is not None:
        return make(UPWARD.standing_for(function))
    if kind is operator.attrgetter:
        return noting(partial(note_getter, function.__reduce__()[1]))(function)
    for recorder in silent:
        recorder.silent[id(function)] = function
    return function
