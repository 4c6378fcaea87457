"""Functions without a call in user code, which have other code while a trace runs.

`Point(x, y)` runs `__init__`, `p + q` runs `__add__`, `p.norm` may be a property. For classes of user code that a trace
encounters, such methods have converted code (`fnad.trace.conversion`). So have user functions that user code reads
without calling them, `stack.callback(f, x)`. SciPy methods and numpy.ma functions with a rule
(`fnad.trace.scipy_table`) call each other in their own bodies. Their other code calls the rule in a thread that
traces, and the own code in any other thread.

`METHODS.blocks` are the traces under way in all threads. `settle` gives all methods the code that follows from the
blocks; it may be called at any time, and a second call does nothing. After an interrupt in `settle` the next call, at
the latest the begin of the next trace, finishes the work.
"""

from __future__ import annotations

import functools
import gc
import operator
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from inspect import signature
from pkgutil import resolve_name
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

from fnad.blocks import Holding, SharedBlocks
from fnad.codes import with_code
from fnad.forks import lock
from fnad.ir.builder import is_tracing
from fnad.numpy.bodies import OWN
from fnad.numpy.namespace import CALLS
from fnad.trace.contents import is_users
from fnad.trace.conversion import converted_code
from fnad.trace.libraries import is_trusted
from fnad.trace.scipy_table import TABLE

# ---- SciPy and numpy.ma ----------------------------------------------------------------------------------------------


@cache
def _code(free: int) -> CodeType:
    """The other code of functions with so many free variables: a frame copies as many as its function has."""
    names = ", ".join(["", *[f"v{i}" for i in range(free)]])
    source = f"""
def around(_{names}):
    def exchanged(*args, **kwargs):
        if False: (None{names})
        return "an Offered".call(*args, **kwargs)
    return exchanged
"""
    namespace: dict[str, Any] = {}
    exec(source, namespace)  # which is written above
    return namespace["around"](*[None] * (free + 1)).__code__


class Offered:
    """A function of SciPy with its own code and the other one, which has this object among its constants."""

    def __init__(self, function: FunctionType, path: str) -> None:
        self.function, self.path, self.own_code = function, path, function.__code__
        self.own = with_code(function, function.__code__)
        self.other_code = self._other(function.__code__)
        if not (hasattr(function, "__wrapped__") or hasattr(function, "__signature__")):
            function.__signature__ = signature(function)  # type: ignore[attr-defined]  # which is read off the code
        OWN[function] = self.own

    def _other(self, code: CodeType) -> CodeType:
        like = _code(len(code.co_freevars))
        constants = tuple(self if constant == "an Offered" else constant for constant in like.co_consts)
        return like.replace(
            co_consts=constants,
            co_freevars=code.co_freevars,
            co_filename=code.co_filename,
            co_firstlineno=code.co_firstlineno,
            co_name=self.function.__name__,
            co_qualname=self.function.__qualname__,
        )

    @cached_property
    def offered(self) -> Callable[..., Any]:
        """The function of fnad.scipy in its place."""
        return resolve_name(self.path)

    def call(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the rule where a trace runs in this thread, and the own code elsewhere."""
        return (self.offered if is_tracing() else self.own)(*args, **kwargs)


def offered_by(module: ModuleType) -> Iterator[tuple[FunctionType, str]]:
    """The functions of a module that have a rule, each with the path of that."""
    for offering, names in TABLE[module.__name__].items():
        for name in names:
            function: Any = module
            for part in name.split("."):
                function = getattr(function, part, None)
            if isinstance(function, FunctionType):
                yield function, f"{offering}:{name}"


# ---- methods of user classes -----------------------------------------------------------------------------------------


def called_by_python(kind: type) -> Iterator[FunctionType]:
    """The functions of a class that are called without a call being written: special methods, properties, pytrees."""
    for name, member in tuple(vars(kind).items()):
        is_special = name.startswith("__") and name.endswith("__")
        found = (member, getattr(member, "__func__", None)) if is_special else ()
        if isinstance(member, property):
            found = (member.fget, member.fset, member.fdel)
        elif hasattr(type(member), "__get__") and isinstance(getattr(member, "func", None), FunctionType):
            found = (member.func,)  # of a cached property
        yield from (function for function in found if isinstance(function, FunctionType))
    fields: dict[str, Any] = vars(kind).get("__dataclass_fields__", {})
    yield from (f for field in fields.values() if isinstance(f := field.default_factory, FunctionType))
    optree: Any = sys.modules.get("optree")
    node = None if optree is None else optree.register_pytree_node.get(kind, namespace="fnad")
    if node is not None:
        yield from (f for f in (node.flatten_func, node.unflatten_func) if isinstance(f, FunctionType))


GIVEN = {CodeType, FunctionType, defaultdict, type(functools.cmp_to_key(cast("Any", operator.sub)))}
"""Classes of functions, of their code, and of objects in C that call one, which only the garbage collector finds."""


class Methods:
    """The functions with other code, each with its own, and the blocks in which a trace is under way."""

    def __init__(self) -> None:
        self.blocks: SharedBlocks[None] = SharedBlocks(self.settle)
        self.kinds: set[type] = set()
        self._own_kinds: set[type] = set()
        self._lock = lock()
        self._are_others: bool | None = False
        self._offered: dict[FunctionType, tuple[CodeType, CodeType]] = {}
        self._users: dict[FunctionType, tuple[CodeType, CodeType]] = {}

    def settle(self) -> None:
        """Give all functions the code that follows from the blocks; `_are_others` is None meanwhile."""
        with self._lock:
            is_under_way = bool(self.blocks.under_way)
            if self._are_others is is_under_way:
                return
            self._are_others = None
            for functions in (self._offered, self._users):
                for function, (own, other) in functions.items():
                    old, new = (own, other) if is_under_way else (other, own)
                    if function.__code__ is old:
                        function.__code__ = new
            if not is_under_way:
                self.kinds -= self._own_kinds  # first: a class that is known has its methods among the functions
                self._own_kinds.clear()
                self._users.clear()
            self._are_others = is_under_way

    def enter_class(self, kind: type) -> None:
        """Give the methods of a user class, and of its bases and metaclass, converted code until the trace ends."""
        if kind in self.kinds:
            return
        for base in (*kind.__mro__, *cast("Any", type(kind)).__mro__):
            if base not in self.kinds and is_users(base):
                self._own_kinds.update((base, kind))
                for function in called_by_python(base):
                    self._enter(function)
                for member in tuple(vars(base).values()):
                    if hasattr(type(member), "__get__") and is_users(type(member)):
                        self.enter_class(type(member))
            self.kinds.add(base)

    def enter_value(self, value: Any) -> None:
        """Give what other code may call of a value converted code."""
        kind: type = type(value)
        if kind is FunctionType:
            self.enter_function(value)
        elif kind in GIVEN:
            for each in gc.get_referents(value):
                if isinstance(each, FunctionType):
                    self.enter_function(each)
        self.enter_class(kind)

    def enter_function(self, function: FunctionType) -> None:
        """Give a user function that other code may call converted code."""
        if function not in self._users:
            self._enter(function)

    def _enter(self, function: FunctionType) -> None:
        own = function.__code__
        other = None if is_trusted(own.co_filename) else converted_code(own, function.__globals__)
        if other is not None:
            with self._lock:
                self._users[function] = own, other
                if self.blocks.under_way:
                    function.__code__ = other

    def enter_offered(self, function: FunctionType, path: str) -> None:
        """Have a function of SciPy call its rule in threads that trace."""
        with self._lock:
            if function in self._offered:
                return
            made = Offered(function, path)
            self._offered[function] = made.own_code, made.other_code
            if self.blocks.under_way:
                function.__code__ = made.other_code


METHODS = Methods()


def exchanged() -> Holding[None]:
    """A block in which the methods that Python calls have converted code."""
    if not is_tracing():
        CALLS["enter_imported"]()
    return METHODS.blocks.holding(None)
