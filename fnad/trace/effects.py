"""Effects of a function beside its result: a second run of the function would repeat them.

User code may write a file, print text, count its calls. Hooks report each callee of user code. C functions that only
compute have no effect. Methods of containers change only the container; if it is from outside, its content is compared
(`fnad.trace.recording`). Any other callee may have an effect.
"""

from __future__ import annotations

import builtins
import cmath
import functools
import inspect
import math
import operator
import os
import sys
import time
from collections import deque
from contextvars import ContextVar
from types import (
    BuiltinFunctionType,
    FunctionType,
    GenericAlias,
    GetSetDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, cast

import numpy as np

from fnad.trace.libraries import (
    in_library,
    is_machinery,
    is_machinery_class,
    is_table,
    is_testing,
    is_trusted,
    is_users,
)
from fnad.trace.parts import CONSTANTS, elements_of

PURE_BUILTINS = (
    *("abs", "all", "any", "ascii", "bin", "callable", "chr", "divmod", "format", "getattr", "hasattr", "hex"),
    *("isinstance", "issubclass", "iter", "len", "max", "min", "next", "oct", "ord", "pow", "repr", "round"),
    *("sorted", "sum"),
)
PURE = {
    *(getattr(builtins, name) for name in PURE_BUILTINS),
    *(f for module in (math, cmath, operator, functools) for f in vars(module).values() if callable(f)),
}
"""Functions that only compute; those of `operator` that write do so into containers and attributes."""

CONTAINERS = (list, dict, set, frozenset, tuple, deque, ContextVar, np.ndarray, np.ufunc, *CONSTANTS)
SAVING = {"tofile", "dump"}
"""Methods of these that write files."""

HARMLESS = (np.ufunc, type(np.sum), staticmethod, classmethod, GenericAlias)
"""Classes of what may have a namespace and has no state. NumPy's functions that set something are known by name."""

PURE_MODULES = {
    *("abc", "collections", "collections.abc", "contextlib", "dataclasses", "enum", "functools", "numbers"),
    *("operator", "types", "typing", "_collections_abc"),
}
"""Modules of the standard library whose Python code only computes."""

DESCRIBED = {"__dict__", "__weakref__"}
IN_C = (GetSetDescriptorType, MethodDescriptorType, WrapperDescriptorType)
"""The attributes of classes written in C; other attributes have no record of what they read."""

SETTING = {"seed", "random", "default_rng", "seterr", "seterrcall", "setbufsize", "set_printoptions"}
"""Attributes of NumPy under which it keeps a state of its own, or changes it."""


def effect_of_callee(function: Any) -> str | None:
    """The effect that a callee may have; None if it only computes, or is user code, whose own calls are reported."""
    if isinstance(function, MethodType):
        return effect_of_callee(function.__func__)
    if isinstance(function, FunctionType):
        return _effect_of_module(function.__code__.co_filename, str(function.__globals__.get("__name__")))
    if isinstance(function, type):
        init = getattr(function, "__init__", None)
        return effect_of_callee(init) if isinstance(init, FunctionType) else None
    if not isinstance(function, BuiltinFunctionType) or function in PURE:
        return None
    owner = getattr(function, "__self__", None)
    if isinstance(owner, type):
        is_pure = issubclass(owner, CONTAINERS)
    elif isinstance(owner, CONTAINERS) and owner is not None:
        is_pure = function.__name__ not in SAVING
    else:
        is_numpys = str(function.__module__).partition(".")[0] == "numpy"
        is_pure = is_numpys and function.__name__ not in SETTING
    return None if is_pure else f"{function.__name__} is called"


def _effect_of_module(file: str, module: str) -> str | None:
    if not is_trusted(file) or is_testing(file) or module in PURE_MODULES or computes(module):
        return None
    return f"{module} is run" if not is_machinery(file) or module.startswith("numpy.random") else None


# ---- reading outside the process -------------------------------------------------------------------------------------

FILE, DRAW, CLOCK = "a file is read", "random numbers are drawn", "the clock is read"
COMPUTED, STATE = "names are computed", "the state of the process is read"
OUTSIDE = {
    **dict.fromkeys((open, np.fromfile, np.load, np.loadtxt, np.genfromtxt, np.fromregex, np.memmap), FILE),
    **dict.fromkeys((time.time, time.time_ns, time.monotonic, time.monotonic_ns, time.process_time), CLOCK),
    **dict.fromkeys((time.perf_counter, time.perf_counter_ns, time.localtime, time.gmtime, time.ctime), CLOCK),
    **dict.fromkeys((np.geterr, np.geterrcall, np.getbufsize, np.get_printoptions), STATE),
    **dict.fromkeys((os.path.abspath, os.path.realpath, os.path.relpath, os.path.expanduser), STATE),
    **dict.fromkeys((os.path.expandvars, os.path.islink, os.path.lexists, os.path.ismount), STATE),
    **dict.fromkeys((getattr(sys, "_getframe"), inspect.currentframe, inspect.stack), COMPUTED),  # noqa: B009
    inspect.getclosurevars: COMPUTED,
    **dict.fromkeys((sys.getrecursionlimit, sys.getswitchinterval, sys.gettrace, sys.getprofile), STATE),
    **dict.fromkeys((sys.get_int_max_str_digits, sys.getallocatedblocks), STATE),
    input: "input is read",
}
"""Functions that read outside of the values of Python, each with what it reads."""

OUTSIDE_MODULES = {
    **dict.fromkeys(("posix", "nt", "genericpath", "shutil", "tempfile", "glob", "fileinput", "io", "_io"), FILE),
    **dict.fromkeys(
        ("mmap", "sqlite3", "_sqlite3", "shelve", "dbm", "zipfile", "tarfile", "csv", "_csv", "linecache"), FILE
    ),
    **dict.fromkeys(("threading", "_thread", "queue", "_queue", "multiprocessing", "asyncio", "signal"), STATE),
    **dict.fromkeys(
        ("socket", "_socket", "ssl", "_ssl", "select", "subprocess", "urllib", "http", "concurrent"), STATE
    ),
    **dict.fromkeys(
        ("locale", "_locale", "resource", "getpass", "uuid", "decimal", "gc", "contextvars", "platform"), STATE
    ),
    **dict.fromkeys(("tracemalloc", "_tracemalloc", "faulthandler"), STATE),
    **dict.fromkeys(("pkgutil", "scipy.io"), FILE),
    "secrets": DRAW,
}
"""Modules and packages whose functions and methods do."""

PURE_OUTSIDE = {os.fspath, os.fsencode, os.fsdecode}
"""Functions in these modules that do not."""

LEVELS = {
    *("isEnabledFor", "getEffectiveLevel", "hasHandlers", "getLevelName", "getLevelNamesMapping"),
    *("getLogRecordFactory", "getLoggerClass", "disable"),
}
"""Functions of logging that read levels and settings; those that log are effects, which a trace has once."""

CLOCKS = {"now", "today", "utcnow"}
"""Methods of the classes of datetime that read the clock."""


def runs_python(function: Any) -> bool:
    """True for a ufunc of `np.frompyfunc`, and for a method of one: it calls a function that cannot be found."""
    ufunc = function if type(function) is np.ufunc else getattr(function, "__self__", None)
    return type(ufunc) is np.ufunc and ufunc.ntypes == 1 and set(ufunc.types[0]) == set("O->")


def reads_outside(function: Any) -> tuple[str, bool] | None:
    """A name for the state outside Python values that a callee reads, and True if each call is traced for it."""
    is_function = issubclass(type(function), (FunctionType, MethodType, BuiltinFunctionType))
    own = getattr(function, "__func__", function) if is_function else function  # a class may make any attribute
    try:
        what = OUTSIDE.get(own)
    except TypeError:  # it has no hash
        return None
    if what is not None:
        return what, what != CLOCK
    if runs_python(function):
        return "a ufunc of Python code is called", True
    if not is_function:
        return None
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    kind = cast("type[Any]", owner if isinstance(owner, type) else type(owner))
    if "pathlib" in sys.modules and issubclass(kind, sys.modules["pathlib"].Path):
        return None if hasattr(sys.modules["pathlib"].PurePath, name) else (FILE, True)  # pure paths read no files
    if name == "__subclasses__":
        return STATE, True
    if name in CLOCKS and isinstance(owner, type) and owner.__module__ == "datetime":
        return CLOCK, False
    if name in LEVELS and own.__module__ == "logging":
        return STATE, True
    kind = type(owner) if isinstance(function, BuiltinFunctionType) and not isinstance(owner, ModuleType) else own
    module = str(getattr(kind, "__module__", ""))
    package, *rest = module.split(".")
    if package == "pandas" and name.startswith("read_"):
        return FILE, True
    found = OUTSIDE_MODULES.get(".".join((package, *rest[:1]))) or OUTSIDE_MODULES.get(package)
    return None if found is None or own in PURE_OUTSIDE or not in_library(module) else (found, True)


def computes(module: str) -> bool:
    """True if the code of a module of a library only computes, in tables of its own too."""
    package, _, rest = module.partition(".")
    return package == "optree" or (package == "pandas" and rest.partition(".")[0] not in ("io", "plotting"))


def effect_of_object(value: Any) -> str | None:
    """The effect or state that an object may hide; None if its class is user code in Python."""
    kind = cast("type[Any]", type(value))
    if is_table(value) or issubclass(kind, HARMLESS):
        return None
    if kind.__name__ == "cython_function_or_method" and str(value.__module__).startswith("numpy.random"):
        return None  # the state of its generator is compared
    if in_library(getattr(kind, "__module__", "")):
        is_listed = elements_of(value) is not None or is_machinery_class(kind)  # all of its attributes are compared
        has_state = bool(getattr(value, "__dict__", None)) and not is_listed
        return f"a {kind.__name__} is read" if has_state else _effect_of_calling(value)
    own = (
        part for base in kind.__mro__ if is_users(base) for name, part in vars(base).items() if name not in DESCRIBED
    )
    return f"a {kind.__name__} is read" if any(isinstance(part, IN_C) for part in own) else _effect_of_calling(value)


def _effect_of_calling(value: Any) -> str | None:
    known = (BuiltinFunctionType, functools.partial, operator.attrgetter, operator.itemgetter, operator.methodcaller)
    if not callable(value) or isinstance(value, known) or isinstance(type(value).__call__, FunctionType):
        return None
    passed_on = getattr(type(value), "__module__", "") in ("builtins", "functools", "weakref")
    return None if passed_on else f"a {cast('type[Any]', type(value)).__name__} may be called"
