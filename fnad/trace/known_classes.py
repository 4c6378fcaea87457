"""What is known of the classes of objects that a function reads: where these keep attributes, and what they may have.

Of a class of a library's this does not change, and of the user's classes it holds as long as they have the names they
have. So it is remembered, by the identities of the classes, none of which is kept alive.
"""

from __future__ import annotations

import functools
import operator
import sys
import threading
from abc import ABCMeta
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextvars import ContextVar
from itertools import repeat
from operator import is_
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType, MethodWrapperType
from typing import Any, TypeAlias
from weakref import ref

import numpy as np

from fnad.records import NamedTuple
from fnad.trace.contents import CACHED, ClassNames, in_library, is_numba_class, is_own_class, is_users, names_in
from fnad.trace.libraries import is_machinery

Get: TypeAlias = Callable[[str, object], Any]
"""Like dict.get: from a name and a default to what the name stands for now."""


DESCRIBING = {"__name__", "__qualname__", "__doc__", "__module__", "__annotations__"}
"""What a function or class keeps beside its namespace."""

EMPTY = (MethodType, BuiltinFunctionType, MethodWrapperType, functools.partial, property, type(np.sum), ContextVar)
"""Classes of what has neither elements nor numbers."""

WRAPPERS = (
    *(MethodType, BuiltinFunctionType, MethodWrapperType, functools.partial, functools.cached_property, ref, CACHED),
    *(staticmethod, classmethod, property, operator.attrgetter, operator.methodcaller, ContextVar),
)
"""Classes of what leads to something else, or asks for it."""

CONTENT = {"__array__", "__buffer__", "__class__", "__cuda_array_interface__", "__dlpack_device__", "__next__"}
"""What objects have that may have content beside their attributes."""


class Classes(NamedTuple):
    """What is known of classes while a function is traced: their `names`, and those of which a value may be noted.

    These are the user's, `users` with the names in each, and those that say where an object keeps attributes outside of
    its namespace. Each thread has a namespace of its own of what is `is_local`. Where `is_unwatched`, functions of a
    library may read any attribute of an object, which nobody sees. What has only attributes has no content beside.
    """

    classes: tuple[type, ...]  # kept, since it is found by its identity
    names: AbstractSet[str]
    users: dict[type, ClassNames]
    noted: tuple[tuple[type, Get], ...]
    is_local: bool
    is_unwatched: bool
    has_content: bool

    def telling(self, names: AbstractSet[str]) -> AbstractSet[str]:
        """Those names under which something is noted of what finds attributes in these classes."""
        return names if self.is_local else names & self.names


def has_slots(kind: type) -> bool:
    """Whether objects of a class keep attributes of theirs outside of a namespace."""
    return any(isinstance(value, MemberDescriptorType) for value in vars(kind).values())


class LibraryClass(NamedTuple):
    """What is known of a class that is a library's, with all its bases, so that it does not change.

    `names` are those of its attributes; it `is_others` if it is neither this package's nor Numba's. For `is_unwatched`
    see `Classes`; elements of its containers are compared.
    """

    reference: ref[type]
    names: frozenset[str]
    has_slots: bool
    has_namespace: bool
    has_content: bool
    makes_attributes: bool
    is_wrapper: bool
    is_others: bool
    is_unwatched: bool


_LIBRARY: dict[int, LibraryClass] = {}
"""By the identity of the class."""


def library_class(kind: type[Any]) -> LibraryClass | None:
    """What is known of a class; None if it, or one of its bases, is the user's."""
    found = _LIBRARY.get(id(kind))
    if found is not None and found.reference() is kind:
        return found
    classes = kind.__mro__
    if any(map(is_users, classes)):
        return None
    address = id(kind)
    made = _LIBRARY[address] = LibraryClass(
        ref(kind, lambda _, forget=_LIBRARY.pop: forget(address, None)),
        frozenset(DESCRIBING).union(*map(vars, classes)),
        has_slots=issubclass(kind, threading.local) or any(map(has_slots, classes)),
        has_namespace=any("__dict__" in vars(base) for base in classes),
        has_content=kind not in EMPTY,
        makes_attributes=any("__getattr__" in vars(base) for base in classes),
        is_wrapper=issubclass(kind, WRAPPERS),
        is_others=not is_own_class(kind) and not is_numba_class(kind),
        is_unwatched=kind not in EMPTY and np.ndarray not in classes and any(map(is_of_machinery, classes)),
    )
    return made


class KnownClasses(NamedTuple):
    """What is known of classes as long as they have the names they have; it keeps none of them alive."""

    reference: ref[type]
    users: tuple[tuple[int, ClassNames], ...]  # with their places
    noted: tuple[int, ...]
    names: AbstractSet[str]
    is_local: bool
    is_unwatched: bool
    has_content: bool


_KNOWN: dict[tuple[int, ...], KnownClasses] = {}
"""By the identities of the classes."""


def known_of(classes: tuple[type, ...]) -> Classes:
    """What is known of the classes of an object, or of a class and its metaclass, for as long as a trace takes."""
    key = tuple(map(id, classes))
    known = _KNOWN.get(key)
    if known is None or known.reference() is not classes[0] or not _have_names(classes, known):
        known = _KNOWN[key] = _known_of(key, classes)
    users = {classes[i]: names for i, names in known.users}
    noted = tuple([(classes[i], vars(classes[i]).get) for i in known.noted])
    return Classes(classes, known.names, users, noted, known.is_local, known.is_unwatched, known.has_content)


def _have_names(classes: tuple[type, ...], known: KnownClasses) -> bool:
    return all(names_in(classes[i]) is names for i, names in known.users)


def _known_of(key: tuple[int, ...], classes: tuple[type, ...]) -> KnownClasses:
    library = library_class(classes[0])
    facts = list(map(library_class, classes))
    users = [i for i, kind in enumerate(classes) if facts[i] is None and is_users(kind)]
    return KnownClasses(
        ref(classes[0], lambda _, forget=_KNOWN.pop: forget(key, None)),
        tuple([(i, names_in(classes[i])) for i in users]),
        noted=tuple([i for i, fact in enumerate(facts) if fact is None or fact.has_slots]),
        names=frozenset(DESCRIBING).union(*map(vars, classes)) if library is None else library.names,
        is_local=any(map(is_, classes, repeat(threading.local))),
        is_unwatched=are_unwatched(classes) if library is None else library.is_unwatched,
        has_content=len(users) < len(classes) - 1 or classes[-1] is not object or any(map(tells_content, classes[:-1])),
    )


def tells_content(kind: type) -> bool:
    """Whether a class of the user's may have objects with more than attributes, beside what it has of its bases."""
    module = str(getattr(kind, "__module__", ""))
    return (
        type(kind) not in (type, ABCMeta)
        or in_library(module)
        or module.startswith(("numpy", "random", "pandas", "cupy"))
        or not CONTENT.isdisjoint(vars(kind))
    )


def are_unwatched(classes: tuple[type, ...]) -> bool:
    """Whether one of these classes has functions of NumPy or SciPy, or is a library's container to derive others from.

    It is not noted what the code of a library reads from an object. Of an array the content is compared anyway.
    """
    if type in classes or np.ndarray in classes:
        return False
    return any(is_of_machinery(kind) or (keeps_elements(kind) and not is_users(kind)) for kind in classes)


def is_of_machinery(kind: type) -> bool:
    """Whether a class is NumPy's or SciPy's."""
    module = sys.modules.get(str(kind.__module__))
    return is_machinery(str(getattr(module, "__file__", "")))


def keeps_elements(kind: type) -> bool:
    """Whether a class has a function in Python that finds elements, as `UserDict` has, and `Mapping` has not."""
    find = vars(kind).get("__getitem__")
    return isinstance(find, FunctionType) and not getattr(find, "__isabstractmethod__", False)
