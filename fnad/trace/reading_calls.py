"""Callees that read attributes, modules or environment variables, replaced by functions that record the reads.

`getattr(o, name)`, `vars(o)`, `copy.copy(o)`, `operator.attrgetter("x")(o)`, `importlib.import_module(name)` read
attributes without a hook.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import resolve_name
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from fnad.ir.builder import is_tracing
from fnad.numpy.namespace import CALLS
from fnad.trace.contents import is_users
from fnad.trace.effects import COMPUTED, DRAW
from fnad.trace.recording import RECORDING
from fnad.trace.source import current_source


def named(function: Any) -> Any:
    """`getattr` or `hasattr`: the attribute is noted."""

    def ask(*args: Any) -> Any:
        try:
            return function(*args)
        finally:
            if len(args) > 1 and isinstance(args[1], str):
                for recorder in RECORDING.values:
                    recorder.attribute(args[0], args[1])

    return ask


def listed(function: Any) -> Any:
    """A function that reads attributes of its argument: all are noted; without one, `vars` or `dir` of the caller."""

    def ask(*args: Any, **kwargs: Any) -> Any:
        if not args:
            names = sys._getframe(1).f_locals  # pyright: ignore[reportPrivateUsage]
            return sorted(names) if function is dir else names
        for recorder in RECORDING.values:
            if isinstance(args[0], ModuleType):
                recorder.meet(COMPUTED, current_source())
            for arg in args:
                recorder.list_attributes(arg)
        return function(*args, **kwargs)

    return ask


def getting(getter: Any) -> Any:
    """An `operator.attrgetter`: each part of a dotted name is noted of the object that it is read from."""

    def ask(owner: Any) -> Any:
        for path in getter.__reduce__()[1]:
            found = owner
            for name in path.split("."):
                for recorder in RECORDING.values:
                    recorder.attribute(found, name)
                found = getattr(found, name, None)
        return getter(owner)

    return ask


def checking(function: Any) -> Any:
    """`isinstance` or `issubclass`, which reads the attributes that a protocol has."""

    def ask(value: Any, kind: Any) -> Any:
        if getattr(kind, "_is_protocol", False):
            for recorder in RECORDING.values:
                for name in {*vars(kind), *vars(kind).get("__annotations__", ())}:
                    recorder.attribute(value, name)
        return function(value, kind)

    return ask


def importing(function: Any) -> Any:
    """`importlib.import_module` or `__import__`."""

    def ask(name: Any, *args: Any, **kwargs: Any) -> Any:
        package = kwargs.get("package", args[0] if args else None)
        with suppress(ImportError, TypeError, AttributeError, KeyError):
            full = resolve_name(name, package if isinstance(package, str) else "") if name.startswith(".") else name
            for recorder in RECORDING.values:
                recorder.imports([full])
        return function(name, *args, **kwargs)

    return ask


def of_environment(function: Any) -> Any:
    """`os.getenv`."""

    def ask(*args: Any, **kwargs: Any) -> Any:
        for recorder in RECORDING.values:
            recorder.follow(os.environ)
        return function(*args, **kwargs)

    return ask


def seeding(function: Any) -> Any:
    """A function that makes a generator of random numbers: without a seed these are others each time."""

    def ask(*args: Any, **kwargs: Any) -> Any:
        if all(value is None for value in (*args, *kwargs.values())):
            for recorder in RECORDING.values:
                recorder.meet(DRAW, current_source())
        return function(*args, **kwargs)

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
        CALLS["enter_imported"]()
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

READING: dict[tuple[str, str], Callable[[Any], Any]] = {
    **dict.fromkeys([("builtins", "getattr"), ("builtins", "hasattr")], named),
    **dict.fromkeys([("builtins", "vars"), ("builtins", "dir"), ("inspect", "getmembers")], listed),
    **dict.fromkeys([("dataclasses", "asdict"), ("dataclasses", "astuple"), ("dataclasses", "replace")], listed),
    **dict.fromkeys([("copy", "copy"), ("copy", "deepcopy"), ("copy", "replace"), ("_pickle", "dumps")], listed),
    **dict.fromkeys([("builtins", "isinstance"), ("builtins", "issubclass")], checking),
    **dict.fromkeys([("importlib", "import_module"), ("builtins", "__import__")], importing),
    ("os", "getenv"): of_environment,
    ("random", "Random"): seeding,
    **dict.fromkeys([("numpy.random", name) for name in SEEDED], seeding),
}
"""Functions that read attributes, modules or the environment, by module and name, each with one that notes it."""

COMPUTING = {id(function) for function in (globals, eval, exec)}
"""Functions that read unknown names. User code calls them directly, because they read its frame."""


def recorded(function: Any) -> Any:
    """A callee that notes what it reads; the call itself is noted now.

    An object of a user class runs its `__call__`, and may run more user code where an attribute of it is read.
    """
    kind = type(function)
    if kind is np.ufunc:
        return function
    is_in_python = isinstance(kind.__call__, FunctionType) and not issubclass(kind, type)
    if is_in_python and is_users(kind):  # Cython's functions seem to be of a user class
        return function
    for recorder in RECORDING.values:
        if id(function) in COMPUTING:
            recorder.meet(COMPUTED, current_source())
        else:
            recorder.call(function)
    module = str(getattr(function, "__module__", ""))
    module = "numpy.random" if module.startswith("numpy.random.") else module
    make = READING.get((module, getattr(function, "__name__", "")))
    if make is not None:
        return make(CALLS["standing_for"](function))
    return getting(function) if isinstance(function, operator.attrgetter) else function
