"""Functions that replace a callee in converted user code, for traced arguments (`fnad.trace.hooks`).

NumPy's protocols do not dispatch `np.array([[t, 1.0]])`, `np.full(n, t)`, `np.r_[t, v]`, `np.exp([t, u])`; `float(t)`
and `math.exp(t)` need a number; `type(t)` is the class of traced values. A replacement follows the rule of the
function if an argument is traced, in a list too, and calls the function otherwise. It is found by the identity of the
function, whatever its name, and made at the first call.
"""

from __future__ import annotations

import functools
import gc
import importlib
import itertools
import operator
import sys
from collections.abc import Callable
from contextlib import suppress
from pkgutil import resolve_name
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from fnad import forks
from fnad.ir.builder import is_tracing
from fnad.ir.size import is_size
from fnad.ir.types import NAMES
from fnad.numpy.bodies import SUBSTITUTES
from fnad.numpy.namespace import MAKING, NEW, made_traced, on_trace, on_traced
from fnad.numpy.registry import RULES
from fnad.trace.attempts import Suppressing
from fnad.trace.classes import CLASSES
from fnad.trace.conversion import own_function
from fnad.trace.dispatch import call, call_function, go_straight
from fnad.trace.entering import OPERATORS, holds_traced, operand
from fnad.trace.handle import Handle
from fnad.trace.libraries import is_library, is_trusted, package_of
from fnad.trace.listed import Listed, as_array
from fnad.trace.parts import CACHED
from fnad.trace.ranges import counted
from fnad.trace.scipy_table import TABLE, offered_by
from fnad.trace.standard import STANDARD, class_of, on_numbers
from fnad.trace.value_classes import asking
from fnad.trace.wrapping import SEQUENCES, has_traced
from fnad.upward import UPWARD

CALLING = (np.apply_along_axis, np.apply_over_axes, np.fromiter, np.piecewise)
"""NumPy functions that call a user function."""

LATER = {
    "numpy.polynomial": "fnad.numpy.series",
    "statistics": "fnad.trace.standard_statistics",
    "bottleneck": "fnad.trace.bottleneck_functions",
}
"""Modules whose rules are imported when the module is there."""

Make = Callable[[Any], Any]

ORDERING = type(functools.cmp_to_key(operator.lt))
"""The class of the results of `functools.cmp_to_key`."""

STAND_INS: dict[int, tuple[Any, Make]] = {}
"""Functions and classes by identity, each with the function that makes its replacement."""

FUNCTIONS = (FunctionType, BuiltinFunctionType, type(np.sum))

MADE: dict[int, tuple[Any, Any]] = {}
"""The functions and classes that were called, each with its replacement."""


def enter(original: Any, make: Make) -> None:
    """Replace a function or a class by the result of `make` for it."""
    STAND_INS[id(original)] = original, make


def register(function: Any, rule: Callable[..., Any]) -> None:
    """Have traces call a rule in the place of a function where an argument is traced."""

    def making(_: Any) -> Callable[..., Any]:
        @functools.wraps(function, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            return (UPWARD.callee(rule) if holds_traced((args, kwargs)) else function)(*args, **kwargs)

        return call

    enter(function, making)
    MADE.pop(id(function), None)


def standing_for(value: Any) -> Any:
    """The replacement for a value, or the value."""
    found = MADE.get(id(value))
    if type(value) is ORDERING:
        compare = next(each for each in gc.get_referents(value) if not isinstance(each, type))
        return functools.cmp_to_key(UPWARD.callee(compare))
    if found is None:
        make = STAND_INS.get(id(value), (None, None))[1] or _made_by_rule(value)
        if make is None:
            return value
        found = MADE.setdefault(id(value), (value, make(value)))  # the first one, if several threads come here
    return found[1]


def _made_by_rule(value: Any) -> Make | None:
    """The function that makes the replacement for a function with a rule (`fnad.numpy.registry`)."""
    kind = type(value)  # not `isinstance`, which reads `__class__` of an object of user code
    if issubclass(kind, (FunctionType, type)) and value.__name__ in SUBSTITUTES:
        return (lambda value: SUBSTITUTES[value.__name__]) if str(value.__module__).startswith("scipy.") else None
    if issubclass(kind, np.ufunc):
        rules = importlib.import_module("fnad.numpy.scipy_ufuncs") if value not in RULES else None
        return OfElements if rules is None or rules.special_rule(value) else None
    is_named = issubclass(kind, FUNCTIONS) and value is not operator.pow  # whose rule is for the operator
    return replacement if is_named and value in RULES else None


UPWARD.standing_for = standing_for


class OfNew:
    """The replacement for a NumPy function that makes a new array, which is a traced one in a second run."""

    def __init__(self, function: Any) -> None:
        self.__name__ = function.__name__
        self._plain, self._making = on_traced(function), on_trace(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._making(*args, **kwargs) if MAKING.is_traced else self._plain(*args, **kwargs)

    def filled(self, *args: Any, **kwargs: Any) -> Any:
        """A traced array, if one can have the dtype."""
        found = self(*args, **kwargs)
        is_native = type(found) is np.ndarray and found.dtype.newbyteorder("=") in NAMES
        return self._making(*args, **kwargs) if is_native else found


def filled(function: Any, names: tuple[str, ...]) -> Any:
    """The callee that makes an array to be filled with what the variables of these names lead to."""
    if not is_tracing():
        return function
    copied = function.__self__ if type(function) is BuiltinFunctionType else None
    if type(function) is not OfNew and type(copied) is not np.ndarray:
        return function
    frame: Any = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    variables = frame.f_locals
    while frame.f_code.co_name.startswith("<"):  # a comprehension has a frame before Python 3.12
        frame = frame.f_back
        variables = frame.f_locals | variables
    if not any(holds_traced(variables.get(name)) for name in names):
        return function
    own: Any = function
    return own.filled if copied is None else functools.partial(standing_for(np.copy).filled, copied)


class OfElements:
    """The replacement for a ufunc; it takes traced values in lists too, which NumPy's protocols do not dispatch on."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._function, self._count, self.__name__ = ufunc, ufunc.nin, ufunc.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and len(args) == self._count and go_straight(args):
            return call(RULES[self._function], args, kwargs)
        return self._function(*map(array_of, args), **kwargs)


def array_of(values: Any) -> Any:
    """A list as a traced array, if there are traced values in it."""
    values = as_array(values)
    is_traced = isinstance(values, SEQUENCES) and has_traced(values)
    return call_function(np.asarray, (values,), {}) if is_traced else values


def of_lists(method: Callable[..., Any]) -> Callable[..., Any]:
    """The replacement for a method of a ufunc, which takes traced values in lists too."""

    def call(*args: Any, **kwargs: Any) -> Any:
        options = {name: value if name == "out" else array_of(value) for name, value in kwargs.items()}
        return method(*map(array_of, args), **options)

    return call


def replacement(function: Callable[..., Any]) -> Callable[..., Any]:
    """The replacement for a NumPy function: it follows the rule, and makes a traced array where that is asked for."""
    if function in CALLING:
        return handing_on(on_trace(function), functions_alone)
    is_new = function.__name__ in NEW and hasattr(np, function.__name__)
    return OfNew(function) if is_new else making(function)


def making(function: Callable[..., Any]) -> Callable[..., Any]:
    """The replacement for a function of which only some results are new arrays."""
    follow = on_traced(function)

    @functools.wraps(follow)
    def call(*args: Any, **kwargs: Any) -> Any:
        return made_traced(follow(*args, **kwargs), (*args, *kwargs.values()))

    return call


def any_callee(value: Any) -> Any:
    """The replacement for a value that is called."""
    return UPWARD.callee(value) if callable(value) else value


def functions_alone(value: Any) -> Any:
    """The replacement for a function, also in a list; a class is a dtype here."""
    if type(value) is list:
        return list(map(functions_alone, value))
    return value if isinstance(value, type) else any_callee(value)


def handing_on(function: Callable[..., Any], given: Callable[[Any], Any] = any_callee) -> Callable[..., Any]:
    """A function that calls what it is given: it is given what replaces that."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return own_function(function(*map(given, args), **{name: given(value) for name, value in kwargs.items()}))

    return call


KEEPING = {
    *("_abc", "_codecs", "_collections", "_functools", "_io", "_operator", "_pickle", "_queue", "_random", "_signal"),
    *("_struct", "_thread", "_weakref", "_weakrefset", "abc", "ast", "atexit", "builtins", "codecs", "collections"),
    *("contextlib", "copy", "copyreg", "dataclasses", "datetime", "decimal", "dis", "enum", "fnad", "fractions"),
    *("functools", "gc", "hashlib", "inspect", "io", "itertools", "logging", "marshal", "math", "multiprocessing"),
    *("numba", "numpy", "operator", "pickle", "posix", "queue", "random", "signal", "struct", "sys", "time"),
    *("traceback", "types", "typing", "uuid", "warnings", "weakref", "zlib"),
}
"""Packages whose functions store or describe the functions that they are given, and do not call them."""

BACK = {
    *("_GeneratorContextManager", "cache", "callback", "defaultdict", "finalize", "frompyfunc", "iter", "lru_cache"),
    *("push", "sort"),
}
"""Functions and classes of these packages that call them."""


@functools.lru_cache(maxsize=4096)
def keeps(module: str, name: str) -> bool:
    """True if a function or class, or a method of a class of this module, is given user functions as they are."""
    is_known = module.partition(".")[0] in KEEPING and name not in BACK
    return is_known or module == "concurrent.futures.process"  # which pickles functions


def calling_back(function: Any) -> Any:
    """The callee for a library function or class: if it may call what it is given, it is given twins."""
    owner = getattr(function, "__self__", None) if type(function) is BuiltinFunctionType else None
    kind = function if owner is None or type(owner) is ModuleType else type(owner)
    module = str(getattr(kind, "__module__", ""))
    return function if keeps(module, function.__name__) else handing_on(function, twin)


HOLDING, LEADING = {*map(id, (list, tuple, dict))}, {*map(id, (MethodType, CACHED, ORDERING))}
"""The identities of the classes of containers, and of objects in C, that user functions may be in."""


def twin(value: Any) -> Any:
    """The replacement for a user function, alone, bound or in a container of up to 16 elements."""
    kind = type(value)
    if id(kind) not in HOLDING or len(value) > 16:
        return UPWARD.callee(value) if is_given(value) else value
    parts = value.values() if kind is dict else value
    if not any(map(is_given, parts)):
        return value
    made = [UPWARD.callee(part) if is_given(part) else part for part in parts]
    return dict(zip(value, made, strict=True)) if kind is dict else kind(made)


def is_given(value: Any) -> bool:
    """True for a user function, and for what leads to one: a method, a partial or cached function."""
    kind = type(value)
    if kind is FunctionType:
        return not is_trusted(value.__code__.co_filename)
    if kind is functools.partial:
        return any(map(is_given, (value.func, *value.args)))
    return id(kind) in LEADING and any(map(is_given, gc.get_referents(value)))


def of_numbers(function: Any) -> Callable[..., Any]:
    """The replacement for a function on Python numbers; `min` and `max` take a function as `key`."""
    rule = on_numbers(function)
    return handing_on(rule) if function in (min, max) else rule


def of_operands(function: Any) -> Callable[..., Any]:
    """The replacement for a function of `operator`."""
    return lambda x, y, /: function(operand(x), y)


def length(*args: Any) -> Any:
    """`len`, which may be a symbol for a traced array (`fnad.ir.size`)."""
    if len(args) == 1 and type(args[0]) is Listed:
        return args[0].length
    sizes = [x.aval.shape[0] for x in args if isinstance(x, Handle) and x.aval.shape]
    return sizes[0] if len(args) == 1 and any(map(is_size, sizes)) else len(*args)


def calling_class(kind: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`type.__call__`."""
    return class_of(*args, **kwargs) if kind is type else type.__call__(kind, *args, **kwargs)


def enter_imported() -> None:
    """Enter what replaces functions of modules that have been imported since."""
    for name in sys.modules.keys() & tuple(LATER):
        file = getattr(forks.loaded(name), "__file__", None)
        if file is not None and (is_library(file) or package_of(file) == name):  # not a user module with that name
            importlib.import_module(LATER[name])
            for function in STANDARD:
                enter(function, of_numbers)
            LATER.pop(name, None)  # last: what an interrupt leaves is done at the next trace
    for name in sorted(name for name in sys.modules.keys() & tuple(WAITING) if forks.loaded(name) is not None):
        for function, path in offered_by(sys.modules[name]):
            enter(function, lambda _, path=path: resolve_name(path))
        WAITING.discard(name)


UPWARD.enter_imported = enter_imported


WAITING = set(TABLE)
"""Modules of SciPy that have functions with a rule, and were not imported when a trace last began."""

HANDING = (map, filter, sorted, functools.reduce, functools.cmp_to_key, operator.call)
ITERATING = ("accumulate", "dropwhile", "filterfalse", "groupby", "starmap", "takewhile")
"""Functions in C that call what they are given; those of itertools."""

for _function in STANDARD:
    enter(_function, of_numbers)
for _kind in CLASSES:
    enter(_kind, CLASSES.__getitem__)
for _function in (*HANDING, *(getattr(itertools, name) for name in ITERATING)):
    enter(_function, handing_on)
for _function in OPERATORS.values():
    enter(_function, of_operands)
enter(type, lambda _: class_of)
enter(type.__call__, lambda _: calling_class)
enter(hasattr, asking)
enter(len, lambda _: length)
enter(range, lambda _: counted)
enter(suppress, lambda _: Suppressing)
