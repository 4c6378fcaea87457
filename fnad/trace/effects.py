"""What a function does beside computing: whether to run it once more would do something that is seen elsewhere.

The code of the user's may write a file, show a text, count its calls. A profiler sees each function that it calls. Of
functions in C those pass that compute, and the methods of containers, which change nothing but the container: if that
is not the function's own, its content is watched (`fnad.trace.environment`). Anything else may have an effect.
"""

from __future__ import annotations

import builtins
import cmath
import functools
import math
import operator
from collections import deque
from contextvars import ContextVar
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GenericAlias,
    GetSetDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
)
from typing import Any, cast

import numpy as np

from fnad.codes import remembered
from fnad.trace.bytecode import reads_of
from fnad.trace.contents import CONSTANTS, elements_of, in_library, is_table, is_users
from fnad.trace.libraries import is_machinery, is_testing, is_trusted

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
WRITING = {"tofile", "dump"}
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
"""What a class has that is written in C, other than under these names: nothing says what it reads."""

SETTING = {"seed", "random", "default_rng", "seterr", "seterrcall", "setbufsize", "set_printoptions"}
"""Attributes of NumPy under which it keeps a state of its own, or changes it."""


def effect_of_function(function: Any, code: CodeType) -> str | None:
    """What a function of C may do that this code calls; None if it only computes."""
    if function in PURE or is_trusted(code.co_filename):
        return None
    owner = getattr(function, "__self__", None)
    if isinstance(owner, type):
        is_pure = issubclass(owner, CONTAINERS)
    elif isinstance(owner, CONTAINERS) and owner is not None:
        is_pure = function.__name__ not in WRITING
    else:
        is_pure = str(function.__module__).partition(".")[0] == "numpy"
    return None if is_pure else f"{function.__name__} is called"


@remembered
def effect_of_code(code: CodeType, module: str) -> str | None:
    """What code of a module may do beside computing, as far as its file and its names tell; None if nothing."""
    if is_machinery(code.co_filename) or is_testing(code.co_filename):
        return None
    if is_trusted(code.co_filename):
        return None if module in PURE_MODULES or computes(module) else f"{module} is run"
    reads = reads_of(code)
    if reads.reflects:
        return "names are asked for by strings"  # of a module, they are not watched
    setting = SETTING & (reads.attributes | reads.names)
    return f"{min(setting)} is used" if setting else None


def computes(module: str) -> bool:
    """Whether the code of a module of a library only computes, in tables of its own too."""
    package, _, rest = module.partition(".")
    return package == "optree" or (package == "pandas" and rest.partition(".")[0] not in ("io", "plotting"))


def effect_of_object(value: Any) -> str | None:
    """What an object may have or do that is not seen; None if Python code of the user's says it."""
    kind = cast("type[Any]", type(value))
    if is_table(value) or isinstance(value, HARMLESS):
        return None
    if in_library(getattr(kind, "__module__", "")):
        has_state = bool(getattr(value, "__dict__", None)) and elements_of(value) is None
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
