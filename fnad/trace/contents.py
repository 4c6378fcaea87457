"""The parts of ordinary Python values, and the test that they are unchanged."""

from __future__ import annotations

import builtins
import ctypes
import functools
import operator
import os
import pickle
import sys
import weakref
from collections import UserString, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextvars import ContextVar
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, MethodWrapperType, ModuleType, NoneType
from typing import Any, TypeAlias, cast

import numpy as np

from fnad import forks
from fnad.codes import original_of
from fnad.ir.content import static_key
from fnad.records import NamedTuple
from fnad.trace.capture import Array, may_change, same_bits
from fnad.trace.handle import Handle
from fnad.trace.libraries import is_machinery, is_trusted

Check: TypeAlias = Callable[[], bool]
Elements: TypeAlias = Callable[[], Iterable[Any]]

CONSTANTS = (bool, int, float, complex, str, bytes, NoneType, range, np.dtype, np.generic)
CONTAINERS = (dict, list, tuple, set, frozenset, deque)
KEPT = (*CONSTANTS, type, ModuleType, BuiltinFunctionType)
"""Of these nothing leads back to a user instance."""
CACHED = type(functools.lru_cache(len))
BUILT_IN = frozenset(sys.builtin_module_names)
EMPTY = (MethodType, BuiltinFunctionType, MethodWrapperType, functools.partial, property, type(np.sum), ContextVar)
"""Classes of values with neither elements nor numbers."""
HEAP_TYPE = 1 << 9
"""The flag of classes that were made while Python runs."""
SMALL = 4096
"""Bytes up to which a copy of an array is compared as one string."""


def same(now: Any, before: Any) -> bool:
    """True if two values are one object, or numbers or strings of one type that are equal to the bit.

    Tuples are compared element by element. Traced values, which pass for numbers, are what they are only themselves.
    """
    if now is before:
        return True
    if type(before) is Remembered:
        return before.is_of(now)
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


class Remembered(NamedTuple):
    """The record of a value that is not kept alive: the test that another value is equal."""

    is_of: Callable[[Any], bool]


class Memory:
    """Makes what is remembered of values, with what was in containers `before`.

    A container may go, and another one be made at its address. That has the same elements then, for the address is
    compared wherever one stood, and at the first of these places the elements.
    """

    def __init__(self, before: Mapping[int, tuple[Any, ...]]) -> None:
        self._before = before
        self.seen: set[int] = set()

    def of(self, value: Any) -> Any:
        """The record of a value; the value itself, if nothing leads from it to a user object."""
        if isinstance(value, KEPT):
            return value
        if isinstance(value, MethodType):
            return self._of_method(value)
        if isinstance(value, CONTAINERS):
            return self._of_container(value)
        reference = reference_to(value)
        return value if reference is None else Remembered(lambda now: now is reference())

    def _of_method(self, value: MethodType) -> Remembered:
        receiver, function = self.of(value.__self__), self.of(value.__func__)
        return Remembered(
            lambda now: type(now) is MethodType and same(now.__self__, receiver) and same(now.__func__, function)
        )

    def _of_container(self, value: Any) -> Remembered:
        address, kind = id(value), type(value)
        if kind is tuple:
            found = tuple(map(self.of, value))
            return Remembered(lambda now: type(now) is tuple and _same_all(now, found))
        if address in self.seen or address not in self._before:
            return Remembered(lambda now: id(now) == address)
        self.seen.add(address)
        found = tuple(map(self.of, self._before[address]))
        return Remembered(
            lambda now: (
                id(now) == address
                and type(now) is kind
                and _same_all(tuple(cast("Elements", elements_of(now))()), found)
            )
        )


def _same_all(now: tuple[Any, ...], before: tuple[Any, ...]) -> bool:
    return len(now) == len(before) and all(map(same, now, before))


def reference_to(value: Any) -> weakref.ref[Any] | None:
    """A weak reference, if a value can have some."""
    try:
        return weakref.ref(value)
    except TypeError:
        return None


def compiled_from(value: Any) -> Any:
    """The Python function in one that Numba compiles; None for anything else."""
    return getattr(value, "py_func", None) if is_numba_class(type(value)) else None


def is_numba_class(kind: type) -> bool:
    """True if a class is Numba's."""
    return str(getattr(kind, "__module__", "")).startswith("numba.")  # of a Cython class, it is not text


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


def default_arguments(function: FunctionType) -> tuple[Any, ...]:
    """The default arguments of a function."""
    return (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())


def parts(value: Any) -> tuple[Any, ...]:
    """The functions and objects inside a wrapper."""
    inside = next((INSIDE[id(base)] for base in type(value).__mro__ if id(base) in INSIDE), None)
    return () if inside is None else inside(value)


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


ENVIRONMENT = type(os.environ)


def elements_of(value: Any) -> Elements | None:
    """The function that lists what a container holds now; None for what is no container."""
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


def check_of_elements(elements: Elements, before: tuple[Any, ...] | None = None) -> Check:
    """The check that a container holds what it held `before`, which is now if nothing is given."""
    found = tuple(elements()) if before is None else before

    def check() -> bool:
        now = tuple(elements())
        return len(now) == len(found) and (all(map(operator.is_, now, found)) or same(now, found))

    return check


def check_of_remembered_function(function: FunctionType, memory: Memory) -> Check:
    """The check that a function, which is not kept alive, keeps its code and its defaults."""
    reference, code = weakref.ref(function), original_of(function.__code__)
    defaults, by_name = memory.of(function.__defaults__), memory.of(function.__kwdefaults__)

    def check() -> bool:
        now = reference()
        if now is None or original_of(now.__code__) is not code:
            return False
        return same(now.__defaults__, defaults) and same(now.__kwdefaults__, by_name)

    return check


class NamesCheck(NamedTuple):
    """The check that a namespace has these names, in this order."""

    namespace: Mapping[str, Any]
    names: tuple[str, ...]

    def __call__(self) -> bool:
        return tuple(self.namespace) == self.names


def check_of_names(namespace: Mapping[str, Any]) -> NamesCheck:
    """The check that a namespace has the names it has, in their order."""
    return NamesCheck(namespace, tuple(namespace))


class ClassNames(NamedTuple):
    """The names that a class has, and those of special methods among them."""

    reference: weakref.ref[type]
    names: AbstractSet[str]
    special: tuple[str, ...]


def namespace_of(value: Any) -> Mapping[str, Any] | None:
    """The `__dict__` of an object, None if it has none; no user code runs."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


_NAMES: dict[int, ClassNames] = {}
"""By the identity of the class: to compare its names with those it had takes less than to look through them."""


def names_in(kind: type) -> ClassNames:
    """The names that a class has now."""
    found, namespace = _NAMES.get(id(kind)), vars(kind)
    if found is not None and found.reference() is kind and namespace.keys() == found.names:
        return found
    address, names = id(kind), dict.fromkeys(namespace).keys()
    reference = weakref.ref(kind, functools.partial(_NAMES.pop, address))
    made = _NAMES[address] = ClassNames(reference, names, tuple(filter(_is_special, names)))
    return made


def check_of_class(kind: type, names: AbstractSet[str]) -> Check:
    """The check that a class has the bases and names it has: Python looks for some of them unasked."""
    namespace, bases = vars(kind), kind.__bases__
    return lambda: kind.__bases__ is bases and namespace.keys() == names


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name != "__doc__"


def check_of_array(value: Array) -> Check | None:
    """The check that an array keeps its content, shape and dtype; None where nobody can write to it."""
    if not may_change(value):
        return None
    if is_users(type(value)):  # it may have methods of its own, and other than an array's
        return _check_of_memory(value)
    dtype = value.dtype
    if value.nbytes <= SMALL or dtype.itemsize not in (1, 2, 4, 8, 16) or dtype.kind not in "biufc":
        return functools.partial(_has_bytes, value, value.shape, dtype, value.tobytes())
    return functools.partial(_has_bits, value, value.copy("K"))


def _has_bytes(value: Array, shape: tuple[int, ...], dtype: np.dtype[Any], content: bytes) -> bool:
    return value.shape == shape and value.dtype == dtype and value.tobytes() == content


def _has_bits(value: Array, snapshot: Array) -> bool:
    return value.dtype == snapshot.dtype and same_bits(value, snapshot)


def _check_of_memory(value: Array) -> Check:
    """The check that the memory of an array keeps its content, whatever the methods of its class do."""
    return functools.partial(_has_memory, value, memory_of_array(value).copy("K"))


def _has_memory(value: Array, snapshot: Array) -> bool:
    return _has_bits(memory_of_array(value), snapshot)


def memory_of_array(value: Array) -> Array:
    """The array without what its class makes of it."""
    return np.ndarray.view(value, np.ndarray)


def array_before(check: Check) -> Array | None:
    """The former array of a check; None if this is the check of another kind of value."""
    if not isinstance(check, functools.partial):
        return None
    if check.func is _has_bytes:
        _, shape, dtype, content = check.args
        return np.ndarray(shape, dtype, content)
    return check.args[1] if check.func in (_has_bits, _has_memory) else None


def unequal_elements(now: Array, before: Array) -> Array:
    """The places, in C order, at which two arrays of one shape and dtype differ in some bit."""
    rows = [np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(x.size, -1) for x in (now, before)]
    return np.flatnonzero((rows[0] != rows[1]).any(axis=1))


def check_of_array_like(value: Any) -> Check:
    """The check that something NumPy can convert, of another library, keeps its content."""
    seen = np.asarray(value)
    if seen.dtype.hasobject:
        return _check_of_pickle(value) or _check_of_objects(value)
    dtype, snapshot = seen.dtype, seen.copy("K")

    def check() -> bool:
        now = np.asarray(value)
        return now.dtype == dtype and same_bits(now, snapshot)

    return check


def check_of_table(value: Any) -> Check | None:
    """The check that an object of pandas keeps its content, with all labels; None where it cannot be compared."""
    return _check_of_pickle(value) or (check_of_array_like(value) if hasattr(type(value), "__array__") else None)


def is_table(value: Any) -> bool:
    """True if a value is an object of pandas, of whose code it is not noted what that reads."""
    return any(str(getattr(kind, "__module__", "")).partition(".")[0] == "pandas" for kind in type(value).__mro__)


def _check_of_objects(value: Any) -> Check:
    def content() -> tuple[Any, ...]:
        seen = np.asarray(value)
        return seen.shape, seen.dtype, tuple(seen.flat)

    found = content()
    return lambda: same(content(), found)


def _check_of_pickle(value: Any) -> Check | None:
    """The check by the value's pickle; None where it has none, or another one each time.

    To convert a table of numbers and texts makes an object of each number. Its pickle has the arrays it consists of.
    """

    def content() -> tuple[bytes, list[Array]]:
        buffers: list[pickle.PickleBuffer] = []
        text = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        return text, [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]

    def check() -> bool:
        now, parts = content()
        return now == text and len(parts) == len(found) and all(map(same_bits, parts, found))

    try:
        text, parts = content()
        found = [part.copy() for part in parts]
        return check if check() else None
    except Exception:  # noqa: BLE001  (whatever the classes of others raise)
        return None


def check_of_generator(value: Any) -> Check:
    """The check that a generator of random numbers has drawn none."""
    state = pickle.dumps(value)
    return lambda: pickle.dumps(value) == state


def draws_numbers(value: Any) -> bool:
    """True if a value is a generator of random numbers, of NumPy or Python."""
    return any(
        str(getattr(kind, "__module__", "")).startswith(("numpy.random", "random")) for kind in type(value).__mro__
    )


def shared_states() -> tuple[object, ...]:
    """The states of the generators that `random` and `numpy.random` share among all their users."""
    import random  # noqa: PLC0415 - not by `import fnad`

    numpy_random = forks.loaded("numpy.random")
    of_numpy = () if numpy_random is None else _state_of_numpy(numpy_random.mtrand._rand)
    return *_state_of_python(cast("Any", random)._inst), *of_numpy


def have_drawn(before: tuple[object, ...]) -> bool:
    """True if a shared generator has another state than `before`; one that was imported since, if it was used."""
    now = shared_states()
    is_imported = now[: len(before)] == before and len(now) > len(before)
    return now != before and not (is_imported and _is_unused(sys.modules["numpy.random"].mtrand._rand))


def _is_unused(shared: Any) -> bool:
    """True if NumPy's shared generator is as its seed leaves it, which sets the first word to 2**31."""
    state = shared._bit_generator.state
    words, place = state["state"].get("key", [0]), state["state"].get("pos")
    return words[0] == 2**31 and place == len(words) - 1


def is_shared(value: Any) -> bool:
    """True if a value is the generator that all users of `numpy.random` share."""
    numpy_random = forks.loaded("numpy.random")
    return numpy_random is not None and value is numpy_random.mtrand._rand


def _state_of_numpy(shared: Any) -> tuple[object, ...]:
    """The state of NumPy's shared generator, whose numbers somebody else's class may make."""
    bits = shared._bit_generator
    is_numpys = type(bits).__module__.startswith("numpy.random.")
    return memory_of(shared, type(shared)), memory_of(bits, type(bits)) if is_numpys else pickle.dumps(bits)


def _state_of_python(shared: Any) -> tuple[object, ...]:
    """The state of Python's shared generator, with the number that `gauss` has left over."""
    return memory_of(shared, type(shared).__mro__[1]), shared.gauss_next


def memory_of(value: Any, kind: type) -> bytes:
    """The memory of an object that is of a class written in C, without what every object has.

    To ask generators for their states makes hundreds of numbers, which takes longer than a short trace.
    """
    return _block_of(kind).from_address(id(value) + object.__basicsize__).raw


@functools.cache
def _block_of(kind: type) -> type[ctypes.Array[ctypes.c_char]]:
    return ctypes.c_char * (kind.__basicsize__ - object.__basicsize__)


class FunctionCheck(NamedTuple):
    """The check that a function keeps its code and its defaults."""

    function: Any
    code: CodeType
    defaults: tuple[Any, ...] | None
    by_name: dict[str, Any] | None

    def __call__(self) -> bool:
        function, code = self.function, self.code
        if function.__kwdefaults__ is not self.by_name:
            return False
        if function.__code__ is not code and original_of(function.__code__) is not code:
            return False
        return function.__defaults__ is self.defaults or same(function.__defaults__, self.defaults)


def in_library(name: Any) -> bool:
    """True if a module is one whose content is taken not to change; Cython classes have a member in its place."""
    if not isinstance(name, str) or name in BUILT_IN or name.startswith("namedtuple_"):
        return True
    module = sys.modules.get(name)
    return module is not None and is_library_module(module)


_USERS: dict[int, weakref.ref[type]] = {}
"""The classes of which it was found out, by identity."""


def is_users(kind: type) -> bool:
    """True if a class is no library's, so that it may change; one made where no name is may have no module."""
    address = id(kind)
    found = _USERS.get(address)
    if found is not None and found() is kind:
        return True
    module = getattr(kind, "__module__", "")
    if not (_is_made_by_code(kind) if module == "builtins" else not in_library(module)):
        return False
    _USERS[address] = weakref.ref(kind, functools.partial(_USERS.pop, address))
    return True


def _is_made_by_code(kind: type) -> bool:
    """True if a class only seems to be built in: made by code whose globals have no name, it takes that of builtins."""
    return bool(kind.__flags__ & HEAP_TYPE) and kind.__name__ not in vars(builtins)


def is_own(value: Any) -> bool:
    """True if a value is traced, or of a class of this package."""
    return isinstance(value, Handle) or is_own_class(type(value))


def is_own_class(kind: type) -> bool:
    """True if a class is of traced values, or of this package."""
    return issubclass(kind, Handle) or str(getattr(kind, "__module__", "")).partition(".")[0] == "fnad"


def is_library_module(module: ModuleType) -> bool:
    """True if a module is built in, or its file belongs to a library."""
    file = file_of(module)
    return namespace_in(module).get("__name__") in BUILT_IN or (file is not None and is_trusted(file))


def namespace_in(module: Any) -> dict[str, Any]:
    """The namespace of what is in `sys.modules`, where user code may have put an object with a `__getattr__`."""
    return getattr(module, "__dict__", {})


def file_of(module: Any) -> str | None:
    """The file of a module, if it has one."""
    return namespace_in(module).get("__file__")


def is_machinery_class(kind: type) -> bool:
    """True if NumPy's or SciPy's code, or that of a container to derive others from, may read any attribute."""
    if any(kind is each for each in EMPTY) or issubclass(kind, np.ndarray):
        return False
    return any(is_of_machinery(base) or (keeps_elements(base) and not is_users(base)) for base in kind.__mro__)


def is_of_machinery(kind: type) -> bool:
    """True for the classes of NumPy and SciPy."""
    return is_machinery(str(file_of(sys.modules.get(str(kind.__module__)))))


def keeps_elements(kind: type) -> bool:
    """True if a class has a function in Python that finds elements, as `UserDict` has, and `Mapping` has not."""
    find = vars(kind).get("__getitem__")
    return isinstance(find, FunctionType) and not getattr(find, "__isabstractmethod__", False)
