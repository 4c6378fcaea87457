"""Functions that transforms make of functions.

Such a function says what it is, binds as a method does, and is pickled: by its name where its module has it under that,
as a decorator leaves it, else as the transform of a function that is pickled. A transform that is called without a
function returns the decorator that has its options: `@fnad.grad(argnums=1)`.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial, reduce, update_wrapper, wraps
from types import FunctionType, MethodType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload
from weakref import ref

from fnad.api.staging.leaves import Function, function_name, source_of
from fnad.api.staging.selection import by_name, check_names
from fnad.errors import ArgnumsError
from fnad.signals import refuse_handlers
from fnad.trace.unknown import check_keywords
from fnad.tracebacks import boundary

P = ParamSpec("P")
Options = ParamSpec("Options")
Made_co = TypeVar("Made_co", bound="Transformed", covariant=True)


class Transformed:
    """The result of `transform(f, **options)`; `run` computes it."""

    __slots__ = ("__dict__", "__weakref__", "_options", "_run", "_transform")
    __wrapped__: Function

    def __init__(self, transform: Function, f: Function, options: dict[str, Any], run: Function) -> None:
        self.__name__ = transform.__name__
        update_wrapper(self, f)
        self._transform, self._options, self._run = transform, options, run

    @boundary
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        refuse_handlers()
        return self._run(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    @property
    def transform_name(self) -> str:
        """The name of the transform that made it."""
        return self._transform.__name__

    def __repr__(self) -> str:
        return f"<{self._words()}>"

    def _words(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        inside = self.__wrapped__
        of = inside._words() if isinstance(inside, Transformed) else described(inside)
        return f"fnad.{self._transform.__name__}{options and f'({options})'} of {of}"

    def __reduce__(self) -> Any:
        name = getattr(self, "__qualname__", "")
        if _named(self.__module__, name) is self:
            return name
        return _again, (self._transform, self.__wrapped__, self._options)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


class Traces(Protocol):
    """Caches of the traces of a function."""

    def forget(self) -> None:
        """Drop all traces."""
        ...


_KEEPERS: set[ref[Traces]] = set()


def note_keeper(traces: Traces) -> None:
    """Have `forget_traces` find it: not by a WeakSet, whose code would run as part of a function that is traced."""
    _KEEPERS.add(ref(traces, _KEEPERS.discard))


def forget_traces() -> None:
    """Drop the traces of all functions, because the rule of a function that they may call has changed."""
    _KEPT.clear()
    for traces in [keeper() for keeper in list(_KEEPERS)]:
        if traces is not None:
            traces.forget()


def described(f: Function) -> str:
    """The name of a function, and where it is defined."""
    source = source_of(f)
    place = f" at {source.file.rpartition(os.sep)[2]}:{source.line}" if source else ""
    return f"{getattr(f, '__qualname__', function_name(f))}{place}"


def _named(module: str, name: str) -> Any:
    """The value of a dotted name in a module."""
    return reduce(lambda found, part: getattr(found, part, None), name.split("."), sys.modules.get(module))


def _again(transform: Function, f: Function, options: dict[str, Any]) -> Any:
    return transform(f, **options)


# ---- transforms of the same function, again --------------------------------------------------------------------------

_TRANSFORMED: dict[tuple[Function, int], ref[Any]] = {}
"""The functions that transforms were called with, and the objects of such methods, by transform and identity."""

_KEPT: dict[Hashable, Function] = {}
"""The runners, with their traces, of transforms that are made more than once, as by `grad(f)(x)` in a loop.

That of a function's first transform is not kept, because many functions are made for one call, and refer to arrays.
"""

MOST_KEPT = 16


def _key_of_repeated(transform: Function, given: dict[str, Any]) -> Hashable:
    """The transform, the function and the options; None if the transform was not called with the function before."""
    f, *options = given.get("f"), *((name, type(value), value) for name, value in given.items() if name != "f")
    # What a subclass runs is the user's function, without the rule that the object has.
    inside = f._run if type(f) is Transformed else f  # pyright: ignore[reportPrivateUsage]
    parts = (inside.__self__, inside.__func__) if isinstance(inside, MethodType) else (inside,)
    address = transform, id(parts[0])
    found = _TRANSFORMED.get(address)
    if found is None or found() is not parts[0]:
        with suppress(TypeError):  # a class may have no weak references
            _TRANSFORMED[address] = ref(parts[0], lambda _: _TRANSFORMED.pop(address, None))
        return None
    key = transform, *map(id, parts), *options  # what is kept refers to the function: its id stays its own
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _keep(key: Hashable, run: Function) -> None:
    _KEPT[key] = run
    for oldest in list(_KEPT)[:-MOST_KEPT]:
        _KEPT.pop(oldest, None)


# ---- transforms as decorators ----------------------------------------------------------------------------------------


class Transform(Protocol[Options]):
    """A transform to a function of the same arguments, or without a function the decorator with these options."""

    __name__: str

    @overload
    def __call__(self, f: Callable[P, Any], /, *args: Options.args, **options: Options.kwargs) -> Callable[P, Any]: ...
    @overload
    def __call__(self, **options: Any) -> Callable[[Callable[P, Any]], Callable[P, Any]]: ...


class ObjectTransform(Protocol[Options, Made_co]):
    """A transform to an object of a class of its own, or without a function the decorator with these options."""

    __name__: str

    @overload
    def __call__(self, f: Function, /, *args: Options.args, **options: Options.kwargs) -> Made_co: ...
    @overload
    def __call__(self, **options: Any) -> Callable[[Function], Made_co]: ...


@overload
def with_options(transform: Callable[Concatenate[Function, Options], Made_co]) -> ObjectTransform[Options, Made_co]: ...
@overload
def with_options(transform: Callable[Concatenate[Function, Options], Function]) -> Transform[Options]: ...
def with_options(transform: Function) -> Any:
    """A transform that may be called without a function, for the decorator with these options.

    The options `argnames` and `wrt`, where a transform has them, are carried out here (`fnad.api.staging.selection`).

    A plain function that it returns is that which a `Transformed` runs; anything else is what it returns, for the same
    function again the same object if its class `is_shared`.
    """
    names = tuple(inspect.signature(transform).parameters)
    known = frozenset(names)

    @boundary
    @wraps(transform)
    def made(*args: Any, **options: Any) -> Any:
        if not known.issuperset(options):
            check_keywords(transform.__name__, names, options)
        if not args and "f" not in options:
            return partial(made, **options)
        given = dict(zip(names, args, strict=False)) | options
        key = _key_of_repeated(made, given)
        run = _KEPT.get(key) or _result(transform, names, args, options)
        is_function = isinstance(run, FunctionType)
        if key is not None and (is_function or getattr(type(run), "is_shared", False)):
            _keep(key, run)
        return Transformed(made, given.pop("f"), given, run) if is_function else run

    return made


def _result(transform: Function, names: Sequence[str], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The result of a transform, with respect to arguments that are selected by name if that is an option given."""
    selected = {name: options[name] for name in ("argnames", "wrt") if options.get(name) is not None}
    if not selected:
        return transform(*args, **options)
    given = dict(zip(names, args, strict=False)) | {name: v for name, v in options.items() if name not in selected}
    if len(selected) > 1 or "argnums" in given:
        what = f"{transform.__name__} was given {' and '.join([*selected, *('argnums',) * ('argnums' in given)])}"
        raise ArgnumsError.here(what, remedy="write one of them")
    (chosen,) = selected.values()
    check_names(chosen)
    return by_name(transform, given.pop("f"), chosen, given)
