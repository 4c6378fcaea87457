"""Reads of values from outside: the way to a value, what it was, and the comparison with what it is now.

A way is a function of an owner, a name and a default, as `dict.get` and `getattr` are. The other ways are the functions
here: a variable of an enclosing function, the elements of a container, the content of an array. Two values are the same
if they are one object, or numbers or strings that are equal to the bit. What is too large or too short-lived to be kept
is `Remembered`.
"""

from __future__ import annotations

import pickle
import weakref
from abc import get_cache_token
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import partial
from operator import is_
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fnad.codes import original_of
from fnad.ir.content import static_key
from fnad.trace.capture import SMALL, Array, may_change, same_bits
from fnad.trace.libraries import is_table, is_users
from fnad.trace.parts import CONSTANTS, CONTAINERS, MISSING, elements_of, is_own, is_proxy, namespace_of

Way: TypeAlias = Callable[[Any, Any, Any], Any]
"""From an owner, a name and a default to the present value."""

NUMBERS = {*map(id, (bool, int, float))}
"""The identities of the classes of counters."""

LASTING = (*CONSTANTS, type, ModuleType, BuiltinFunctionType)
"""Classes of values from which nothing leads back to an object of user code."""


class Read(NamedTuple):
    """A value that was read, and the way to it."""

    way: Way
    owner: Any
    name: str
    value: Any

    def now(self) -> Any:
        """The present value."""
        return self.way(self.owner, self.name, MISSING)

    def holds(self) -> bool:
        """True if the value is what it was."""
        now = self.way(self.owner, self.name, MISSING)
        return now is self.value or same(now, self.value)

    def check(self) -> Callable[[], bool]:
        """The test that the value is what it was, with few calls for an array."""
        is_array = self.way is array_in and type(self.owner) is np.ndarray
        return partial(self.value.is_of, self.owner) if is_array else self.holds

    def is_counted(self) -> bool:
        """True if it is a number, or a list or dict of numbers; or if it was not there, as where a class has it yet."""
        now = self.now()
        if self.way is elements:
            return True  # the container itself has a name
        if type(self.value) in (list, dict):
            return now is self.value and has_numbers(now)
        return id(type(now)) in NUMBERS or (now is MISSING and self.value is MISSING)

    def conditions(self) -> Iterator[tuple[Any, ...]]:
        """The condition in the kinds that native code tests, each with its objects; any other one is asked of Python.

        Native code compares objects, so a value that is only equal to what it was has a test in Python.
        """
        way, owner, name, value = self
        if way is kind and self.holds():
            yield "KIND", owner, value
        elif way is code_of and self.holds():  # what a function does not have is None in Python, and no object in C
            yield "FUNCTION", owner, *[MISSING if part is None else part for part in value]
        elif way in (names_in, elements) and type(owner) is dict and not value:
            yield "EMPTY", owner
        elif way is content_of and self.now() is value:
            yield "CELL", owner, value
        elif way in NATIVE and self.now() is value:
            yield NATIVE[way], owner, name, value
        else:
            yield "ASKED", self.check()


def same(now: Any, before: Any) -> bool:
    """True if two values are one object, or numbers or strings of one type that are equal to the bit.

    Tuples are compared element by element. Traced values, which pass for numbers, are what they are only themselves.
    """
    if now is before:
        return True
    own = type(before)
    if own is Remembered:
        return before.is_of(now)
    if own is tuple is type(now) and len(now) == len(before) and all(map(is_, now, before)):
        return True
    if type(now) is not type(before) or is_proxy(type(now)) or is_own(now):
        return False
    if isinstance(now, tuple):
        try:
            return len(now) == len(before) and all(map(same, now, before))
        except RecursionError:  # nested too deeply to be compared
            return False
    if isinstance(now, np.generic):
        return now.dtype == before.dtype and now.tobytes() == before.tobytes()
    return isinstance(now, CONSTANTS) and static_key(now) == static_key(before)


def has_numbers(value: Any) -> bool:
    """True for a list or dict of numbers alone, for which no user code runs."""
    parts = value.values() if type(value) is dict else value if type(value) is list else [None]
    return NUMBERS.issuperset(map(id, map(type, parts)))


# ---- ways ------------------------------------------------------------------------------------------------------------


def entry(namespace: Any, name: str, default: Any) -> Any:
    """The value that a mapping has under a name."""
    return namespace.get(name, default)


def member(owner: type, name: str, default: Any) -> Any:
    """The member that a class itself has under a name."""
    return vars(owner).get(name, default)


def content_of(cell: CellType, _: str = "", default: Any = None) -> Any:
    """The value of a variable of an enclosing function."""
    try:
        return cell.cell_contents
    except ValueError:  # it has no value yet
        return default


def kind(owner: Any, *_: Any) -> type:
    """The class of an object."""
    return type(owner)


def names_in(namespace: Mapping[str, Any], *_: Any) -> tuple[str, ...]:
    """The names in a namespace, in their order."""
    return tuple(namespace)


def bases_and_names(owner: type, *_: Any) -> tuple[Any, ...]:
    """The bases and names of a class: Python looks for some of these unasked."""
    return owner.__bases__, *vars(owner)


def code_of(function: Any, *_: Any) -> tuple[Any, ...]:
    """The code and the default arguments of a function."""
    return original_of(function.__code__), function.__defaults__, function.__kwdefaults__


def elements(container: Any, *_: Any) -> tuple[Any, ...]:
    """The elements of a container."""
    found = elements_of(container)
    return () if found is None else tuple(found())


def array_in(value: Any, *_: Any) -> Array:
    """An array, without the methods that its class has in user code, or the array that NumPy makes of a value."""
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ndarray):
        return np.ndarray.view(value, np.ndarray) if is_users(type(value)) else value
    return np.asarray(value)


def objects_in(value: Any, *_: Any) -> tuple[Any, ...]:
    """The shape, the dtype and the elements of what NumPy makes an array of objects of."""
    array = np.asarray(value)
    return array.shape, array.dtype, tuple(array.flat)


def pickled(value: Any, *_: Any) -> bytes:
    """The pickle of a table, or of a generator of random numbers. It has the arrays that a table consists of."""
    return pickle.dumps(value, protocol=5)


def abstract_classes(*_: Any) -> object:
    """A token that changes where a class is registered with an abstract one."""
    return get_cache_token()


def answer(cached: Any, given: Any, default: Any) -> Any:
    """The result of a function under `functools.lru_cache` for positional and named arguments."""
    args, named = given
    try:
        return cached(*args, **dict(named))
    except Exception:  # noqa: BLE001  (the next trace raises it)
        return default


def in_context(variable: ContextVar[Any], _: str, default: Any) -> Any:
    """The value of a context variable."""
    return variable.get(default)


def decimal_context(module: Any, *_: Any) -> str:
    """The settings of decimal arithmetic, without the flags that operations set."""
    context = module.getcontext().copy()
    context.clear_flags()
    return repr(context)


NATIVE: dict[Way, str] = {dict.get: "NAME", getattr: "ATTRIBUTE"}
"""Ways that native code goes, with their words there."""

NAMED = (dict.get, getattr, entry, member, content_of)
"""The ways that lead to a value by its name."""


def way_to_content(value: Any) -> Way | None:
    """The way to the content of an array, or of what NumPy can convert; None if it cannot change or be compared.

    To convert a table of numbers and texts makes an object of each number, and loses the labels.
    """
    if isinstance(value, np.ndarray):
        return array_in if may_change(value) else None
    has_array = hasattr(type(value), "__array__")
    way = None if not has_array else objects_in if np.asarray(value).dtype.hasobject else array_in
    if way is array_in and not is_table(value):
        return way
    try:
        return pickled if pickled(value) == pickled(value) else way
    except Exception:  # noqa: BLE001  (whatever the classes of others raise)
        return way


# ---- values that are not kept ----------------------------------------------------------------------------------------


class Remembered(NamedTuple):
    """The record of a value that is not kept: the test that another value is equal, and the content of an array."""

    is_of: Callable[[Any], bool]
    content: Array | None = None


def first_read(way: Way, owner: Any, name: str) -> Read:
    """The read of a value as it is now; of an array, with a copy."""
    value = way(owner, name, MISSING)
    if way is array_in:
        content = value.copy("K")
        dtype, shape, text = content.dtype, content.shape, content.tobytes() if content.nbytes <= SMALL else None
        if text is None:
            is_of: Callable[[Any], bool] = lambda now: now.dtype == dtype and same_bits(now, content)  # noqa: E731
        else:
            is_of = lambda now: now.tobytes() == text and now.shape == shape and now.dtype == dtype  # noqa: E731
        value = Remembered(is_of, content)
    return Read(way, owner, name, value)


class Memory:
    """Makes the records of values, with the elements that containers had.

    A container may go, and another one be made at its address. That has the same elements then, for the address is
    compared wherever one stood, and at the first of these places the elements.
    """

    def __init__(self, before: Mapping[int, tuple[Any, ...]]) -> None:
        self._before = before
        self.seen: set[int] = set()

    def of(self, value: Any) -> Any:
        """The record of a value; the value itself, if nothing leads from it to a user object."""
        if isinstance(value, (*LASTING, Remembered)):
            return value
        if isinstance(value, MethodType):
            receiver, function = self.of(value.__self__), self.of(value.__func__)
            return Remembered(
                lambda now: type(now) is MethodType and same(now.__self__, receiver) and same(now.__func__, function)
            )
        if isinstance(value, CONTAINERS):
            return self._of_container(value)
        reference = reference_to(value)
        return value if reference is None else Remembered(lambda now: now is reference())

    def _of_container(self, value: Any) -> Remembered:
        address, own = id(value), type(value)
        if own is tuple:
            found = tuple(map(self.of, value))
            return Remembered(lambda now: type(now) is tuple and same(now, found))
        if address in self.seen or address not in self._before:
            return Remembered(lambda now: id(now) == address)
        self.seen.add(address)
        found = tuple(map(self.of, self._before[address]))
        return Remembered(lambda now: id(now) == address and type(now) is own and same(elements(now), found))


def reference_to(value: Any) -> weakref.ref[Any] | None:
    """A weak reference, if a value can have some."""
    try:
        return weakref.ref(value)
    except TypeError:
        return None


def released(read: Read, memory: Memory, owners: Mapping[int, tuple[weakref.ref[Any], Callable[[Any], Any]]]) -> Read:
    """A read that keeps alive neither its owner nor the value; the owner is found again by way of another object."""
    way, owner, name, value = read
    if id(owner) not in owners:
        return Read(way, owner, name, memory.of(value))
    reference, reach = owners[id(owner)]
    return Read(partial(_through, way, reach), reference, name, memory.of(value))


def _through(way: Way, reach: Callable[[Any], Any], reference: weakref.ref[Any], name: str, default: Any) -> Any:
    found = reference()
    return default if found is None else way(reach(found), name, default)


def reached_from(owner: Any) -> Iterator[tuple[int, tuple[weakref.ref[Any], Callable[[Any], Any]]]]:
    """An object, its namespace and the cells of a function, each by identity, with the way from the object to it."""
    reference = reference_to(owner)
    if reference is not None and not isinstance(owner, (ModuleType, type)):
        yield id(owner), (reference, lambda found: found)
        yield id(namespace_of(owner)), (reference, namespace_of)
        for i, cell in enumerate(owner.__closure__ or () if isinstance(owner, FunctionType) else ()):
            yield id(cell), (reference, lambda found, i=i: found.__closure__[i])
