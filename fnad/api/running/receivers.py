"""The objects on which compiled methods are called.

An object or class that is no pytree of arrays is watched as what a function takes from its closure is. It belongs to
the signature by its identity, through a weak reference: with it go the traces that were made for it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, cast

from fnad.api.staging.leaves import Function, function_name, type_name
from fnad.errors import ArgumentTypeError


class Receiver(weakref.ref[Any]):
    """The key of an object: equal to itself alone, whatever `==` says of the object."""

    __slots__ = ("address",)
    __hash__ = object.__hash__
    __eq__ = object.__eq__
    address: int


class Receivers:
    """The objects that one function is called on as a method.

    `member()` is what their classes have under its name. That and the owner of `forget` have this object, which does
    not keep them alive, so that what was compiled is freed as soon as nobody has it.
    """

    def __init__(self, f: Function, forget: Callable[[Receiver], None], member: Callable[[], Any]) -> None:
        self._member = member
        self._f = f
        self._forget = weakref.WeakMethod(forget)
        self._classes = weakref.WeakValueDictionary[int, type]()
        self._known: dict[int, Receiver] = {}

    def admit(self, value: Any) -> bool:
        """True if it is the first object of its class that is met, and the function is a method of that."""
        kind = _class_of(value)
        if id(kind) in self._classes or not any(map(self._is_defined_in, kind.__mro__)):
            return False
        self._classes[id(kind)] = kind
        return True

    def key(self, value: Any) -> Receiver | None:
        """The key of an object of an admitted class, else None."""
        if id(_class_of(value)) not in self._classes:
            return None
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = self._new(value)
            known.address = id(value)
        return known

    def _new(self, value: Any) -> Receiver:
        try:
            return Receiver(value, self._drop)
        except TypeError:
            raise ArgumentTypeError.here(
                f"{type_name(value)}, whose method {function_name(self._f)} is compiled, has no weak references",
                remedy="add '__weakref__' to its __slots__, or compile the bound method, fnad.jit(x.method)",
            ) from None

    def _drop(self, receiver: Receiver) -> None:
        self._known.pop(receiver.address, None)
        forget = self._forget()
        if forget is not None:
            forget(receiver)

    def _is_defined_in(self, kind: type) -> bool:
        """True if a class has the function in its body, with other decorators too, or has got it since."""
        name = f"{kind.__qualname__}.{function_name(self._f)}"
        if (getattr(self._f, "__module__", None), getattr(self._f, "__qualname__", None)) == (kind.__module__, name):
            return True
        member = self._member()
        return any(getattr(value, "__func__", value) is member for value in vars(kind).values())


def _class_of(value: Any) -> type:
    return cast("type[Any]", value if isinstance(value, type) else type(value))
