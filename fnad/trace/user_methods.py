"""Methods of user classes without a call in user code, which have other code while a trace runs.

`Point(x, y)` runs `__init__`, `p + q` runs `__add__`, `p.norm` may be a property. For classes of user code that a trace
encounters, such methods have converted code (`fnad.trace.conversion`). In a thread that does not trace, the other code
does what the own does.

`METHODS.blocks` are the traces under way in all threads. `settle` gives all methods the code that follows from the
blocks; it may be called at any time, and a second call does nothing. After an interrupt in `settle` the next call, at
the latest the begin of the next trace, finishes the work.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from operator import is_
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, cast

from fnad.blocks import Holding, SharedBlocks
from fnad.codes import original_of, with_code
from fnad.forks import lock
from fnad.ir.builder import is_tracing
from fnad.trace.conversion import TWINS, converted_code, is_generated
from fnad.trace.libraries import is_trusted, is_users
from fnad.trace.parts import CACHED, is_descriptor
from fnad.trace.reads import content_of
from fnad.trace.sourceless import watched_code
from fnad.upward import UPWARD

SERIES = "numpy.polynomial."
"""The first part of the names of NumPy's modules whose classes have operators in Python."""


def is_converted(kind: type) -> bool:
    """True for a class whose special methods have converted code in a trace."""
    return is_users(kind) or str(kind.__module__).startswith(SERIES)


def called_by_python(kind: type) -> Iterator[FunctionType]:
    """The functions of a class that are called without a call being written: special methods, properties, pytrees."""
    for name, member in tuple(vars(kind).items()):
        is_special = name.startswith("__") and name.endswith("__")
        found = (member, getattr(member, "__func__", None)) if is_special else ()
        if isinstance(member, property):
            found = (member.fget, member.fset, member.fdel)
        elif hasattr(type(member), "__get__") and isinstance(getattr(member, "func", None), FunctionType):
            found = (member.func,)  # of a cached property
        for function in found:
            inner = getattr(function, "__wrapped__", None) if isinstance(function, (FunctionType, CACHED)) else None
            yield from (each for each in (function, inner) if isinstance(each, FunctionType))
    optree: Any = None if type(kind).__hash__ is None else sys.modules.get("optree")
    node = None if optree is None else optree.register_pytree_node.get(kind, namespace="fnad")
    if node is not None:
        yield from (f for f in (node.flatten_func, node.unflatten_func) if isinstance(f, FunctionType))


def constructing_code(function: FunctionType) -> CodeType:
    """The code that replaces a constructor without source. It calls the functions that make default values."""
    own, closure = function.__code__, function.__closure__ or ()
    cells = tuple(map(_cell, closure))
    return own if all(map(is_, cells, closure)) else watched_code(function, with_code(function, own, cells))


def _cell(cell: CellType) -> CellType:
    found = content_of(cell)
    is_own = not isinstance(found, FunctionType) or is_trusted(found.__code__.co_filename)
    return cell if is_own else CellType(UPWARD.callee(found))


class Methods:
    """The methods with other code, each with its own, and the blocks in which a trace is under way."""

    def __init__(self) -> None:
        self.blocks: SharedBlocks[None] = SharedBlocks(self.settle)
        self.kinds: dict[int, type] = {id(ModuleType): ModuleType}
        self._own_kinds: dict[int, type] = {}
        self._lock = lock()
        self._are_others: bool | None = False
        self._users: dict[FunctionType, tuple[CodeType, CodeType]] = {}

    def settle(self) -> None:
        """Give all methods the code that follows from the blocks; `_are_others` is None meanwhile."""
        with self._lock:
            is_under_way = bool(self.blocks.under_way)
            if self._are_others is is_under_way:
                return
            self._are_others = None
            for function, (own, other) in self._users.items():
                old, new = (own, other) if is_under_way else (other, own)
                if function.__code__ is old:
                    function.__code__ = new
            if not is_under_way:
                while self._own_kinds:  # first: a class that is known has its methods among the functions
                    self.kinds.pop(self._own_kinds.popitem()[0], None)
                self._users.clear()
                TWINS.clear()
            self._are_others = is_under_way

    def enter_class(self, kind: type) -> None:
        """Give the methods of a user class, and of its bases and metaclass, converted code until the trace ends."""
        if id(kind) in self.kinds:
            return
        for base in (*(kind.__mro__ or ()), *cast("Any", type(kind)).__mro__):
            if id(base) not in self.kinds and is_converted(base):
                self._own_kinds.update({id(base): base, id(kind): kind})
                for function in called_by_python(base):
                    self._enter(function)
                for member in tuple(vars(base).values()):
                    if is_descriptor(member):
                        self.enter_class(type(member))
            if is_users(base) or not hasattr(base, "__next__"):  # an iterator is replayed each time that it is read
                self.kinds[id(base)] = base

    def _enter(self, function: FunctionType) -> None:
        own = function.__code__
        if (not is_trusted(own.co_filename) or str(function.__module__).startswith(SERIES)) and original_of(own) is own:
            is_made = function.__name__ in ("__init__", "__new__") and is_generated(function)  # it stores its arguments
            other = constructing_code(function) if is_made else converted_code(own, function.__globals__)
            other = other or watched_code(function)
            with self._lock:
                self._users[function] = own, other
                if self.blocks.under_way:
                    function.__code__ = other


METHODS = Methods()
UPWARD.enter_class = METHODS.enter_class


def exchanged() -> Holding[None]:
    """A block in which the methods that Python calls have converted code."""
    if not is_tracing():
        UPWARD.enter_imported()
    return METHODS.blocks.holding(None)
