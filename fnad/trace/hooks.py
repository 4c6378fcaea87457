"""The hooks in converted user code: what is called, read and iterated there while a trace runs.

`callee` is the one place that decides what runs in the place of a callee: a replacement (`fnad.trace.stand_ins`), the
twin of a user function (`fnad.trace.conversion`), or the callee itself. It returns what is to be called, and the user's
code calls it. So no frame is in between, except around library callees (`calling_back`). In a thread that does not
trace each hook does what the plain code does.
"""

from __future__ import annotations

import bisect
import functools
import heapq
import operator
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from fnad.codes import original_of, with_code
from fnad.ir.builder import is_tracing
from fnad.numpy.bodies import XP
from fnad.numpy.indexing_routines import c_, r_
from fnad.numpy.namespace import MAKING
from fnad.trace import escape
from fnad.trace.attempts import trying, within
from fnad.trace.capture import READ
from fnad.trace.compiled import converted_on_traced, of_compiled, of_numba
from fnad.trace.conversion import HOOKS, converted, converted_code, facts_in, own_function
from fnad.trace.dispatch import is_written
from fnad.trace.draws import drawing_again
from fnad.trace.entering import constructing, entered, operand
from fnad.trace.handle import Handle
from fnad.trace.libraries import is_entered, is_numba_class, is_of_numba, is_standard, is_trusted, is_users
from fnad.trace.listed import summed
from fnad.trace.loading import decided, drawing, filling, is_native, load, of_ordinary, read, traced
from fnad.trace.loop_hooks import comprehended, comprehends, each, leaves, listed, turns
from fnad.trace.looping import LOOPING, Refused, notes_cache
from fnad.trace.parts import CACHED
from fnad.trace.reading_calls import answering, imported, imports, matched, recorded
from fnad.trace.recording import RECORDING, Recorder
from fnad.trace.source import is_called_by, warning_users
from fnad.trace.sourceless import without_source
from fnad.trace.stand_ins import (
    MADE,
    STAND_INS,
    calling_back,
    enter,
    enter_imported,
    filled,
    of_lists,
    standing_for,
    twin,
)
from fnad.trace.standard import class_of
from fnad.trace.user_methods import METHODS
from fnad.trace.value_classes import asking
from fnad.trace.variables import Facts
from fnad.trace.vectorized import vectorized
from fnad.trace.wrapping import handles_in, has_traced
from fnad.trace.writes import CHANGING, KEPT, UNDOING, changing, kept
from fnad.upward import UPWARD

Call = Callable[..., Any]

SETTING = ("__setattr__", "__delattr__")

PLAIN_INDICES = {*map(id, (int, str, slice))}


INDEXED = {id(type(np.r_)): r_, id(type(np.c_)): c_}
"""The identities of the classes of what NumPy has to be indexed, with the replacement."""


# ---- calls -----------------------------------------------------------------------------------------------------------


def callee(function: Any) -> Any:
    """The function that traced user code calls in the place of a callee."""
    return _called(function) if is_tracing() else function


def _called(function: Any) -> Any:
    """The replacement for a callee, whose call is noted."""
    loops = LOOPING.loops
    if loops is not None:
        if LOOPING.steps:
            LOOPING.steps[-1].calls(function)
        if function is vars:
            loops.reads_caches()
        elif function is sum and loops.marked:
            return summed
    return replaced(recorded(function) if RECORDING.values else function)


UPWARD.callee = callee
UPWARD.converted_code = converted_code


def replaced(function: Any) -> Any:
    """The replacement for a callee, or the callee."""
    found = MADE.get(id(function))
    if found is not None:
        return found[1]
    kind = type(function)
    may_have_rule = kind is not FunctionType and kind is not MethodType  # in a library: see `of_library`
    if (may_have_rule or id(function) in STAND_INS) and (found := standing_for(function)) is not function:
        return found
    if kind is MethodType:
        return of_method(function)
    if kind is FunctionType:
        return of_user(function) if not is_trusted(function.__code__.co_filename) else of_library(function)
    if kind is functools.partial:
        return of_partial(function)
    if kind is operator.methodcaller:
        return calling_method(function)
    if issubclass(kind, BuiltinFunctionType) or kind.__name__ == "cython_function_or_method":
        return of_c(function)
    if issubclass(kind, type):
        METHODS.enter_class(function)
        return constructing(function) if is_users(function) else calling_back(constructing(function))
    return of_instance(function, kind)


def of_user(function: FunctionType) -> FunctionType:
    """The twin of a user function; without a twin, the reads of the function are unknown."""
    twin = converted(function)
    if function.__closure__ is not None and UNDOING.values and (facts := facts_in(twin.__code__)) is not None:
        for changes in UNDOING.values if facts.rebound else ():
            changes.cells(function, facts)
    if twin is function and original_of(function.__code__) is function.__code__:
        return without_source(function)
    if function.__defaults__ is not None or function.__kwdefaults__ is not None:
        for loaded in READ.values:
            loaded[id(function)] = function
    return twin if MAKING.innermost is None else with_traced_defaults(twin)


def with_traced_defaults(function: FunctionType) -> FunctionType:
    """A function in a second run: its default arguments are read as traced values."""
    defaults, by_name = function.__defaults__, function.__kwdefaults__
    if not any(isinstance(value, np.ndarray) for value in (*(defaults or ()), *(by_name or {}).values())):
        return function
    made = with_code(function, function.__code__)
    made.__defaults__ = defaults and tuple(map(read, defaults))
    made.__kwdefaults__ = by_name and {name: read(value) for name, value in by_name.items()}
    return made


def of_library(function: FunctionType) -> Any:
    """The callee for a library function. Functions made by decorators have user functions in their closures."""
    enter_imported()  # its module may be imported by this very trace, as np.polynomial is where it is read
    found = standing_for(function)
    if found is not function:
        return found
    file = function.__code__.co_filename
    if is_of_numba(file):
        return of_numba(function)
    if is_entered(file):
        return (
            XP.asarray
            if function is np.asarray_chkfinite and is_called_by("scipy.")
            else calling_back(entered(function))
        )
    if function.__closure__ is None or not is_standard(file):
        return calling_back(function)
    return with_code(function, converted_code(function.__code__, function.__globals__) or function.__code__)


def calling_method(caller: operator.methodcaller) -> Any:
    """The callee for an `operator.methodcaller`: a function that calls the method."""
    found: Any = caller.__reduce__()
    make, given = found
    (name, *args), options = (given, {}) if make is type(caller) else ((*make.args, *given), make.keywords)
    return lambda owner: method(owner, name)(*args, **options)


def of_method(method: MethodType) -> Any:
    """The callee for a method: the callee for its function, bound to the same object."""
    own: Any = method.__func__
    METHODS.enter_class(type(method.__self__))
    module = str(getattr(own, "__module__", ""))
    is_numpys = module.startswith("numpy.random") and type(own) is not FunctionType
    draw: Any = drawing(drawing_again(method)) if is_numpys else method
    if UNDOING.values and (is_numpys or module == "random"):
        kept(method.__self__)
        if own.__name__ == "shuffle":
            return changing(draw)
    if is_numpys:
        return draw
    found = replaced(own)
    return method if found is own else MethodType(found, method.__self__)


def of_partial(partial: functools.partial[Any]) -> functools.partial[Any]:
    """The callee for a partial function: a partial of the callees for the functions in it."""
    made = functools.partial(_called(partial.func), *map(twin, partial.args), **partial.keywords)
    vars(made).update(vars(partial))
    return made


def of_instance(instance: Any, kind: type) -> Any:
    """The callee for an object: a function in it, or the `__call__` of its class."""
    if issubclass(kind, CACHED):
        return converted_on_traced(answering(instance), instance.__wrapped__)
    if issubclass(kind, np.vectorize) and callable(instance.pyfunc):  # which is none in `@np.vectorize(otypes=...)`
        return lambda *args, **kwargs: vectorized(instance, args, kwargs)
    if is_numba_class(kind):
        return of_compiled(instance)
    if kind is MethodWrapperType and instance.__name__ in SETTING:
        return setting(instance)
    if issubclass(kind, (MethodDescriptorType, WrapperDescriptorType)) and instance.__name__ in CHANGING:
        return changing(instance)
    METHODS.enter_class(kind)
    call = next((vars(base)["__call__"] for base in kind.__mro__ if "__call__" in vars(base)), None)
    if not isinstance(call, FunctionType):
        return instance
    found = replaced(call)
    return instance if found is call else MethodType(found, instance)


def of_c(function: Any) -> Any:
    """The callee for a function or method in C."""
    if function.__name__ == "cache_info" and LOOPING.loops is not None:
        LOOPING.loops.reads_caches()
    if function.__name__ in CHANGING:
        owner = getattr(function, "__self__", None)
        kept(owner)
        if function.__name__ == "fill" and type(owner) is np.ndarray:
            return filling(function)
    takes_lists = type(getattr(function, "__self__", None)) is np.ufunc and function.__name__ != "at"
    made = of_lists(function) if takes_lists else calling_back(function)
    return made if MAKING.innermost is None else of_ordinary(made)


# ---- reads and writes ------------------------------------------------------------------------------------------------


def variable(value: Any) -> Any:
    """A global, or a variable of an enclosing function."""
    if not is_tracing():
        return value
    return load(value)


def method(owner: Any, name: str) -> Any:
    """The callee for an attribute."""
    if not is_tracing():
        return getattr(owner, name)
    kind = type(owner)
    if issubclass(kind, Handle):
        found = getattr(owner, name)
        return found if type(found) is MethodType else _called(found)
    recorders = RECORDING.values
    is_plain = kind is ModuleType or (not recorders and kind is not np.ndarray and id(kind) in METHODS.kinds)
    if LOOPING.steps or not is_plain:
        return _called(_found(owner, name))
    for recorder in recorders:
        if (id(owner), name) not in recorder.attributes:
            return _called(_found(owner, name))
    found = getattr(owner, name)  # most calls are of these: `_called`, written out
    made = MADE.get(id(found))
    if made is None:
        return _called(found) if recorders else replaced(found)
    for recorder in recorders:
        if type(found) is not np.ufunc and recorder.silent.get(id(found)) is not found:
            return _called(found)
    return made[1]


def attribute(owner: Any, name: str) -> Any:
    """`owner.name`."""
    if not is_tracing():
        return getattr(owner, name)
    if issubclass(type(owner), Handle):
        return getattr(owner, name)
    return load(_found(owner, name))


def _found(owner: Any, name: str) -> Any:
    """An attribute; it is recorded when it was looked up, which may make it."""
    if LOOPING.steps or name == "__dict__":
        notes_cache(owner, name)
    if issubclass(type(owner), type):
        METHODS.enter_class(owner)  # for the methods of its descriptors
    try:
        return getattr(load(owner), name)
    finally:
        key = id(owner), name
        for recorder in RECORDING.values:
            if key not in recorder.attributes:
                recorder.attribute(owner, name)


def item(owner: Any, index: Any) -> Any:
    """`owner[index]`; an ordinary array at a traced index is read as a traced one."""
    if not is_tracing():
        return owner[index]
    kind = type(owner)
    if issubclass(kind, Handle):
        return owner[index]
    for recorder in RECORDING.values:
        recorder.element(owner, index)
    if issubclass(kind, type):
        METHODS.enter_class(owner)
    if kind is dict or kind is list or (id(type(index)) in PLAIN_INDICES and kind is not defaultdict):
        return load(load(owner)[index])
    if kind is defaultdict and index not in owner and owner.default_factory is not None:
        owner[index] = twin(owner.default_factory)()
    if kind is np.ndarray and has_traced(index):
        return traced(owner)[index] if is_native(owner) else owner[decided(index)]
    return load((INDEXED[id(kind)] if id(kind) in INDEXED else load(owner))[index])


def place(owner: Any) -> Any:
    """The object that `x[i] = v` writes into."""
    if is_tracing():
        if LOOPING.steps:
            LOOPING.steps[-1].writes(owner)
        kept(owner)
        if issubclass(type(owner), (np.ndarray, np.flatiter)):
            return WrittenArray(owner)
    return owner


class WrittenArray:
    """An ordinary array that is written into: what is traced has no place there."""

    __slots__ = ("_array",)

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> Any:
        return item(self._array, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        array = self._array if isinstance(self._array, np.ndarray) else self._array.base
        if has_traced((index, value)) and not array.dtype.hasobject and is_written(array):
            raise escape.stored(next(handles_in((value, index))).aval)
        self._array[index] = value

    def __delitem__(self, index: Any) -> None:
        del self._array[index]


def is_bool(x: Any) -> bool:
    """True if it is one of two objects of its class, or such a traced value."""
    return issubclass(type(x), (bool, np.bool_, Handle)) and isinstance(x, (bool, np.bool_))


def same(a: Any, b: Any) -> bool:
    """`a is b`; the replacement for `type` is `type`, a twin the function itself, a traced bool one of two objects."""
    if is_bool(a) and is_bool(b):
        return isinstance(a, bool) is isinstance(b, bool) and bool(a) is bool(b)
    return own_function(a) is own_function(b) or (a is class_of and b is type) or (b is class_of and a is type)


class Same:
    """A value that equals the identical object: a bool of a pattern with alternatives, an operand of `a is b is c`."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return same(other.value if isinstance(other, Same) else other, self.value)


enter(operator.is_, lambda _: same)
enter(operator.is_not, lambda _: lambda a, b: not same(a, b))


# ---- what is recorded alone ------------------------------------------------------------------------------------------


def enters(facts: Facts) -> None:
    """The begin of a function that uses variables of outer scopes."""
    if LOOPING.steps and (facts.assigned or facts.rebound):
        name = sys._getframe(1).f_code.co_name  # pyright: ignore[reportPrivateUsage]
        raise Refused(f"a step calls {name}, which stores a variable of an outer scope")
    recorders = RECORDING.values
    if (recorders or UNDOING.values) and is_tracing():
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        key = id(facts), id(frame.f_globals)
        for recorder in recorders:
            if key not in recorder.entered:
                recorder.enter(facts, frame.f_globals)
        for changes in UNDOING.values if facts.assigned else ():
            changes.variables(facts, frame)


def stored(owner: Any, name: str) -> Any:
    """The object of which an attribute is stored or deleted."""
    return _stores(owner, name, Recorder.attribute) if is_tracing() else owner


def counter(owner: Any, name: str) -> Any:
    """The object of which an attribute is counted up."""
    return _stores(owner, name, Recorder.counter) if is_tracing() else owner


def _stores(owner: Any, name: str, note: Call) -> Any:
    if LOOPING.steps:
        LOOPING.steps[-1].writes(owner)
    for recorder in RECORDING.values:
        note(recorder, owner, name)
    for changes in UNDOING.values:
        changes.attribute(owner, name)
    return owner


def tally(owner: Any, name: str) -> Any:
    """The attribute of which an element is counted up."""
    return place(getattr(counter(owner, name), name))


def changed(value: Any, operand: Any) -> Any:
    """The operand of an assignment that may change the value of a variable in place."""
    if LOOPING.steps:
        LOOPING.steps[-1].changes(value)
    if id(type(value)) in KEPT and is_tracing():
        kept(value)
    return operand


def handles(kinds: Any = ()) -> None:
    """The begin of an `except` clause of these classes, or the end of a `finally` clause that ends an error.

    See Note [Errors that user code handles].
    """
    if is_tracing():
        escape.handled(sys.exception(), kinds)


def reading(get: Any) -> Call:
    """`getattr`, whose result is read."""

    def call(*args: Any) -> Any:
        if LOOPING.loops is not None and len(args) > 1:
            notes_cache(*args[:2])
        return load(get(*args))

    return call


def storing(function: Any) -> Call:
    """`setattr` or `delattr`."""
    return lambda owner, name, *value: function(stored(owner, name), name, *value)


def setting(wrapper: Any) -> Call:
    """`super().__setattr__` or `super().__delattr__`."""

    def call(name: str, *value: Any) -> None:
        stored(wrapper.__self__, name)
        wrapper(name, *value)

    return call


# ---- what is entered -------------------------------------------------------------------------------------------------


enter(getattr, lambda function: reading(asking(function)))
for _function in (setattr, delattr, *(getattr(kind, name) for kind in (object, type) for name in SETTING)):
    enter(_function, storing)
for _function in (
    bisect.insort_left,
    bisect.insort_right,
    heapq.heapify,
    heapq.heappop,
    heapq.heappush,
    *(operator.setitem, operator.delitem, operator.iadd, operator.iconcat, operator.ior),
):
    enter(_function, changing)
enter(warnings.warn, warning_users)

for _hook in (
    *(attribute, callee, changed, comprehended, comprehends, counter, each, enters, filled, handles, imported),
    *(imports, item, leaves, listed, matched, method, operand, place, same, Same, slice, stored, tally, trying),
    *(turns, variable, within),
):
    setattr(HOOKS, _hook.__name__, _hook)
for _value in (True, False):
    setattr(HOOKS, f"same_{_value}", Same(_value))
