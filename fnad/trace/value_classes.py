"""The class of a traced value as Python sees it: that of the value NumPy or Python would have instead.

There is a class of traced values for each class that they stand for: `np.ndarray`, NumPy's numbers, Python's. It has
the members that this class has, so that `hasattr`, `len`, `iter` and `isinstance(x, Iterable)` answer as they do
outside, and is equal to it: `type(x) == float`, `type(x) in (int, float)`, `type(x).__name__`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ir.types import DTYPES
from fnad.numpy.operands import NUMBERS, PYTHON_TYPES, WeakSymbol
from fnad.trace.handle import Handle
from fnad.upward import UPWARD

KINDS: tuple[type[Any], ...] = (np.ndarray, *[dtype.type for dtype in DTYPES.values()], *NUMBERS)
"""The classes that traced values stand for."""

OWN = {"__doc__", "__module__", "__qualname__", "__slots__", "__dict__", "__weakref__"}
"""The attributes that every class has."""


def kind_of(symbol: Symbol, *, is_scalar: bool) -> type[Any]:
    """The class of what a symbol stands for."""
    if not is_scalar:
        return np.ndarray
    return PYTHON_TYPES[symbol.aval.dtype.kind] if isinstance(symbol, WeakSymbol) else symbol.aval.dtype.type


def _meant(cls: type[Any]) -> type[Any]:
    return cls.meant or cls if isinstance(cls, Kind) else cls


def _of_meant(name: str) -> Any:
    get = vars(type)[name].__get__
    return property(lambda cls: get(_meant(cls)))


class Kind(type):
    """The class of a class of traced values, which is equal to the class that is `meant`, and has its name and bases.

    By the bases Python answers `isinstance(x, Hashable)`: an array is not, though a traced one has a hash that refuses.
    It has the protocols of arrays for functions: NumPy looks them up in the class of a number, which has none itself.
    """

    meant: type[Any] | None = None
    __array_ufunc__: Any
    __array_function__: Any

    def __eq__(cls, other: object) -> bool:
        return isinstance(other, type) and _meant(cls) is _meant(other)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.meant is not None:  # the user wrote type(x)(y)
            return UPWARD.standing_for(cls.meant)(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    __hash__ = type.__hash__  # not that of what is meant: NumPy looks classes of numbers up in a dict, and reads those

    def __repr__(cls) -> str:
        return type.__repr__(cls) if cls.meant is None else repr(cls.meant)

    def mro(cls) -> list[type[Any]]:
        return super().mro() if ORDER(cls) is None else list(cls.__mro__)  # None while the class is made

    __name__, __bases__ = map(_of_meant, ("__name__", "__bases__"))
    __mro__, __base__ = map(_of_meant, ("__mro__", "__base__"))  # pyright: ignore[reportIncompatibleMethodOverride]


NAME, ORDER = vars(type)["__name__"].__get__, vars(type)["__mro__"].__get__


def classes_of(base: type[Any], members: Mapping[str, Any]) -> dict[type[Any], type[Any]]:
    """The class of traced values for each kind: the base with those of the members that the kind has."""
    return {kind: _class_for(kind, base, members) for kind in KINDS}


def _class_for(kind: type[Any], base: type[Any], members: Mapping[str, Any]) -> type[Any]:
    kinds = {name for base in kind.__mro__ for name in vars(base)}  # not what it has as a class: float | int
    namespace = {name: member for name, member in members.items() if name not in OWN and name in kinds}
    if "__getitem__" in namespace and not hasattr(kind, "__iter__"):
        namespace |= NOT_ITERABLE
    namespace |= {PRIORITY: getattr(kind(0), PRIORITY)} if hasattr(kind, PRIORITY) else {}
    namespace |= {"__array__": members["__array__"]}
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__class__": kind}
    namespace["is_weak"] = kind in NUMBERS
    return Kind(NAME(base), (base,), {"__slots__": (), "__hash__": base.__hash__, "meant": kind, **names, **namespace})


PRIORITY = "__array_priority__"


def asking(function: Any) -> Any:
    """`hasattr` or `getattr`, by the class that a traced value represents: Python's numbers have no `__array__`."""

    def ask(*args: Any) -> Any:
        if len(args) > 1 and isinstance(args[0], Handle):
            kind, name = args[0].__class__, args[1]
            is_there = any(name in vars(base) for base in kind.__mro__)
            if is_there and function is hasattr:
                return True
            if name == "__array__" and not is_there:
                return function(kind, *args[1:])
        return function(*args)

    return ask


def _without_iter(self: Any, name: str) -> Any:
    if name == "__iter__":
        raise AttributeError(f"a traced number has no {name!r}", name=name, obj=self)
    return object.__getattribute__(self, name)


NOT_ITERABLE: dict[str, Any] = {
    "__iter__": None,
    "__getattribute__": _without_iter,
    "symbol": property(vars(Handle)["_symbol"].__get__),
}
"""Members of a class that can be indexed and not iterated: without `__iter__` Python would iterate by the index.

Each attribute of its objects costs a call. So a number, which nobody writes to, has its symbol at once.
"""
