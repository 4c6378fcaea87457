"""The attributes of objects, and the classes in which they are looked up."""

from __future__ import annotations

from types import FunctionType, MemberDescriptorType, ModuleType
from typing import Any, cast

from fnad.trace.contents import is_library_module, is_users


def classes_of(owner: Any) -> tuple[type, ...]:
    """The classes in which the attributes of an object are looked up."""
    kind = type(owner)
    if kind is super:
        kind = owner.__self_class__
        return () if kind is None else kind.__mro__
    # a class has none while it is made
    return (*(owner.__mro__ or ()), *cast("Any", kind).__mro__) if issubclass(kind, type) else kind.__mro__


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
