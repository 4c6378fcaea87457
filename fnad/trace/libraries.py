"""Whose code it is, the user's or a library's: by its file, and of classes and modules by theirs."""

from __future__ import annotations

import builtins
import functools
import os
import sys
import weakref
from contextvars import ContextVar
from functools import cache, lru_cache
from importlib.util import find_spec
from types import BuiltinFunctionType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any

import numpy as np

_OWN = __file__.rpartition(f"trace{os.sep}")[0]
_STANDARD = os.__file__.removesuffix("os.py")
_THIRD_PARTY = tuple(f"{_STANDARD}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
_COMMAND = f"{sys.executable.rpartition(os.sep)[0]}{os.sep}fnad"
"""The script that pip writes for the command."""
_INTERNAL = ("<frozen ", "<__array_function__ ")


@cache
def _folders(*packages: str) -> tuple[str, ...]:
    """The directories of packages; each may be in another one, as with several environments in one path, or in Nix."""
    found = (find_spec(package) for package in packages)
    places = [place for spec in found if spec is not None for place in spec.submodule_search_locations or ()]
    return tuple(f"{place}{os.sep}" for place in places)


@lru_cache(maxsize=4096)
def is_machinery(file: str) -> bool:
    """True if a file belongs to fnad, NumPy or SciPy: what runs between the user's line and a primitive."""
    return file.startswith((_OWN, *_folders("numpy", "scipy")))


@lru_cache(maxsize=4096)
def is_entered(file: str) -> bool:
    """True for the files of SciPy and NumPy, of which a function may be converted."""
    return file.startswith(_folders("numpy", "scipy"))


@lru_cache(maxsize=4096)
def is_standard(file: str) -> bool:
    """True for the files of the standard library."""
    return file.startswith(_STANDARD) and not file.startswith(_THIRD_PARTY)


@lru_cache(maxsize=4096)
def is_of_numba(file: str) -> bool:
    """True for the files of Numba."""
    return file.startswith(_folders("numba"))


@lru_cache(maxsize=4096)
def is_testing(file: str) -> bool:
    """True if a file belongs to pytest, whose code an `assert` runs, or that CPython or NumPy runs unasked."""
    return file.startswith((*_folders("_pytest", "pluggy"), *_INTERNAL))


@lru_cache(maxsize=4096)
def is_library(file: str) -> bool:
    """True if a file belongs to the standard library, to this package or what it stands on, or to pytest."""
    if is_machinery(file) or is_testing(file) or file.startswith(_folders("numba", "llvmlite", "optree")):
        return True
    if file == _COMMAND:
        return True
    return is_standard(file)


@lru_cache(maxsize=4096)
def is_trusted(file: str) -> bool:
    """True if what the code of a file reads is not noted: a library's, or pandas's, whose objects are compared."""
    return is_library(file) or package_of(file) == "pandas"


@lru_cache(maxsize=4096)
def package_of(file: str) -> str | None:
    """The installed package that a file belongs to; None for the user's own files."""
    inside = next((file.partition(folder)[2] for folder in _INSTALLED if folder in file), "")
    return inside.partition(os.sep)[0] or None


# ---- modules and classes ---------------------------------------------------------------------------------------------

BUILT_IN = frozenset(sys.builtin_module_names)
PARTS_IN_C = (MethodType, BuiltinFunctionType, MethodWrapperType, functools.partial, property, type(np.sum), ContextVar)
"""Classes of values with neither elements nor numbers."""
HEAP_TYPE = 1 << 9
"""The flag of classes that were made while Python runs."""


def namespace_in(module: Any) -> dict[str, Any]:
    """The namespace of what is in `sys.modules`, where user code may have put an object with a `__getattr__`."""
    return getattr(module, "__dict__", {})


def file_of(module: Any) -> str | None:
    """The file of a module, if it has one."""
    return namespace_in(module).get("__file__")


def is_library_module(module: ModuleType) -> bool:
    """True if a module is built in, or its file belongs to a library."""
    file = file_of(module)
    return namespace_in(module).get("__name__") in BUILT_IN or (file is not None and is_trusted(file))


def in_library(name: Any) -> bool:
    """True if a module is one whose content is taken not to change; Cython classes have a member in its place."""
    if not isinstance(name, str) or name in BUILT_IN:
        return True
    module = sys.modules.get(name)
    return module is not None and is_library_module(module)


def are_of_library(namespace: dict[str, Any]) -> bool:
    """True for the globals of a module of a library; other code, such as what `exec` runs, may have its name."""
    name = namespace.get("__name__", "")
    return in_library(name) and namespace_in(sys.modules.get(name)) is namespace


_USERS: dict[int, tuple[weakref.ref[type], bool]] = {}
"""The answers of `is_users`, by the identities of classes."""


def is_users(kind: type) -> bool:
    """True if a class is user code, so that it may change. A class without a name in scope may have no module."""
    address = id(kind)
    found = _USERS.get(address)
    if found is None or found[0]() is not kind:
        module = getattr(kind, "__module__", "")
        is_known = not _is_made_by_code(kind) if module == "builtins" else in_library(module)
        _USERS[address] = found = (
            weakref.ref(kind, functools.partial(_USERS.pop, address)),  # C code, which no interrupt stops halfway
            not is_known or any(map(_is_of_other_code, vars(kind).values())),
        )
    return found[1]


def _is_of_other_code(value: Any) -> bool:
    """True for a function of code that only has the name of a library's module."""
    if type(value) is not FunctionType or is_trusted(value.__code__.co_filename):
        return False
    namespace = value.__globals__
    return "__name__" in namespace and in_library(namespace["__name__"]) and not are_of_library(namespace)


def _is_made_by_code(kind: type) -> bool:
    """True if a class only seems to be built in: made by code whose globals have no name, it takes that of builtins."""
    return bool(kind.__flags__ & HEAP_TYPE) and kind.__name__ not in vars(builtins)


def is_machinery_class(kind: type) -> bool:
    """True if NumPy's or SciPy's code, or that of a container to derive others from, may read any attribute."""
    if any(kind is each for each in PARTS_IN_C) or issubclass(kind, np.ndarray):
        return False
    return any(is_of_machinery(base) or (keeps_elements(base) and not is_users(base)) for base in kind.__mro__)


def is_of_machinery(kind: type) -> bool:
    """True for the classes of NumPy and SciPy."""
    return is_machinery(str(file_of(sys.modules.get(str(kind.__module__)))))


def keeps_elements(kind: type) -> bool:
    """True if a class has a function in Python that finds elements, as `UserDict` has, and `Mapping` has not."""
    find = vars(kind).get("__getitem__")
    return isinstance(find, FunctionType) and not getattr(find, "__isabstractmethod__", False)


def is_numba_class(kind: type) -> bool:
    """True if a class is Numba's."""
    return str(getattr(kind, "__module__", "")).startswith("numba.")  # of a Cython class, it is not text


def is_table(value: Any) -> bool:
    """True if a value is an object of pandas, of whose code it is not noted what that reads."""
    return any(str(getattr(kind, "__module__", "")).partition(".")[0] == "pandas" for kind in type(value).__mro__)
