"""The parts of Python values: the elements of containers, what is inside wrappers, and where attributes are found."""

from __future__ import annotations

import functools
import os
import weakref
from collections import UserString, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import (
    BuiltinFunctionType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    NoneType,
)
from typing import Any, TypeAlias, cast

import numpy as np

from fnad.trace.handle import Handle
from fnad.trace.libraries import in_library, is_library_module, is_numba_class, is_users

Elements: TypeAlias = Callable[[], Iterable[Any]]

MISSING: Any = object()
"""In the place of a value that is not there."""

CONSTANTS = (bool, int, float, complex, str, bytes, NoneType, range, np.dtype, np.generic)
CONTAINERS = (dict, list, tuple, set, frozenset, deque)
CACHED = type(functools.lru_cache(len))

# ---- wrappers --------------------------------------------------------------------------------------------------------

PARTS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    MethodType: lambda value: (value.__self__, value.__func__),
    BuiltinFunctionType: lambda value: () if isinstance(value.__self__, ModuleType) else (value.__self__,),
    MethodWrapperType: lambda value: (value.__self__,),
    functools.partial: lambda value: (value.func, value.args, value.keywords),
    staticmethod: lambda value: (value.__func__,),
    classmethod: lambda value: (value.__func__,),
    property: lambda value: (value.fget, value.fset),
    functools.cached_property: lambda value: (value.func,),
    weakref.ref: lambda value: (value(),),
    CACHED: lambda value: (value.__wrapped__,),
    defaultdict: lambda value: (value.default_factory,),
}
"""The functions and objects inside wrappers, by class."""
INSIDE = {id(kind): inside for kind, inside in PARTS.items()}


def parts(value: Any) -> tuple[Any, ...]:
    """The functions and objects inside a wrapper."""
    inside = next((INSIDE[id(base)] for base in type(value).__mro__ if id(base) in INSIDE), None)
    return () if inside is None else inside(value)


def default_arguments(function: FunctionType) -> tuple[Any, ...]:
    """The default arguments of a function."""
    return (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())


def compiled_from(value: Any) -> Any:
    """The Python function in one that Numba compiles; None for anything else."""
    return getattr(value, "py_func", None) if is_numba_class(type(value)) else None


def is_proxy(kind: type) -> bool:
    """True for the classes of weak proxies."""
    return kind is weakref.ProxyType or kind is weakref.CallableProxyType


def behind(value: Any) -> Any:
    """The referent of a weak proxy, None if that is gone; any other value itself.

    What is gone cannot even be asked for its class.
    """
    if not is_proxy(type(value)):
        return value
    try:
        return value.mro()[0] if isinstance(value, type) else value.__init__.__self__
    except ReferenceError:
        return None


# ---- containers ------------------------------------------------------------------------------------------------------

ENVIRONMENT = type(os.environ)


def elements_of(value: Any) -> Elements | None:
    """The function that lists the content of a container; None for other values."""
    kind = type(value)  # `isinstance` reads the `__class__` of an object, which some hide
    if issubclass(kind, dict):
        return lambda: (*value.keys(), *value.values())
    if issubclass(kind, (tuple, list, set, frozenset, deque)):
        return lambda: cast("Iterable[Any]", value)
    if issubclass(kind, np.ndarray):
        return (lambda: value.flat) if value.dtype.hasobject else None
    if any(base is ENVIRONMENT for base in kind.__mro__):
        encoded = vars(value)["_data"]  # of which reading the mapping itself decodes all, which takes much longer
        return lambda: (*encoded.keys(), *encoded.values())
    if is_buffer(value):
        return lambda: (memoryview(value).tobytes(),)
    if not in_library(getattr(kind, "__module__", "")):
        return None
    if issubclass(kind, Mapping):
        return lambda: (*value.keys(), *value.values())
    if issubclass(kind, UserString):  # each letter is another one
        return lambda: (value.data,)
    return (lambda: value) if issubclass(kind, (Sequence, AbstractSet)) else None


def is_buffer(value: Any) -> bool:
    """True if a value lets others read its memory, as `bytearray`, `array` and the structures of ctypes do."""
    try:
        memoryview(value).release()
    except (TypeError, BufferError):
        return False
    return True


# ---- objects ---------------------------------------------------------------------------------------------------------


def is_own(value: Any) -> bool:
    """True if a value is traced, or of a class of this package."""
    return isinstance(value, Handle) or is_own_class(type(value))


def is_own_class(kind: type) -> bool:
    """True if a class is of traced values, or of this package."""
    return issubclass(kind, Handle) or str(getattr(kind, "__module__", "")).partition(".")[0] == "fnad"


def namespace_of(value: Any) -> Mapping[str, Any] | None:
    """The `__dict__` of an object, None if it has none; no user code runs."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


def classes_of(owner: Any) -> tuple[type, ...]:
    """The classes in which the attributes of an object are looked up."""
    kind = type(owner)
    if kind is super:
        kind = owner.__self_class__
        return () if kind is None else kind.__mro__
    # a class has none while it is made
    return (*(owner.__mro__ or ()), *cast("Any", kind).__mro__) if issubclass(kind, type) else kind.__mro__


def is_descriptor(member: Any) -> bool:
    """True for a descriptor of a user class."""
    return hasattr(type(member), "__get__") and is_users(type(member))


def keeps_plainly(owner: Any) -> bool:
    """True if attributes of an object are set by no user code, and read by no library in its own code."""
    kind = type(owner)
    if kind is FunctionType or kind is ModuleType:
        return kind is FunctionType or not is_library_module(owner)
    if isinstance(owner, type):
        return kind.__setattr__ is type.__setattr__ and kind.__getattribute__ is type.__getattribute__
    is_plain = kind.__setattr__ is object.__setattr__ and kind.__getattribute__ is object.__getattribute__
    libraries = [base for base in kind.__mro__ if not is_users(base)]
    members = [member for base in libraries for member in vars(base).items()]
    return is_plain and not any(name == "__dict__" or isinstance(m, MemberDescriptorType) for name, m in members)


def hides_attributes(owner: Any) -> bool:
    """True if a class has a `__getattribute__` of its own, which may read anything of the object unseen."""
    kind, plain = type(owner), (object.__getattribute__, type.__getattribute__)
    return kind.__getattribute__ not in plain and any(map(is_users, kind.__mro__))
