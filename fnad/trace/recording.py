"""Recording what traced user code reads from outside, at the place where it reads it.

The hooks of converted code (`fnad.trace.hooks`) report the globals of a function when it begins, attributes, elements,
callees, imports and stores. A `Recorder` decides which of these are of values from outside, and enters them into an
`Environment`.

A value is from outside if it was read from something outside: the traced function with its defaults and variables, its
globals, and the attributes and elements of what these are. A function that runs converted code was made in a trace, and
so are the objects that user code makes; of these only what their classes have is recorded.

Three things are not followed. Functions and classes of the standard library, NumPy, what else this package stands on
and pandas are taken to do what they do, though a name of their modules may be bound anew. An array that cannot be
written to, nor what it is a view of, keeps its content. A function under `functools.lru_cache` returns the same again.
"""

from __future__ import annotations

import builtins
import functools
import sys
import threading
from abc import ABCMeta, get_cache_token
from collections import defaultdict, deque
from collections.abc import Generator, Iterable
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from types import FunctionType, MemberDescriptorType, MethodType, ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np

from fnad import forks
from fnad.blocks import ListedBlocks
from fnad.codes import names_of, original_of
from fnad.ir.builder import is_tracing
from fnad.ir.program import Source
from fnad.placement import is_on_device
from fnad.trace.attributes import classes_of, hides_attributes, keeps_plainly
from fnad.trace.capture import Array
from fnad.trace.conditions import MISSING
from fnad.trace.contents import (
    CACHED,
    CONTAINERS,
    Elements,
    FunctionCheck,
    behind,
    check_of_array,
    check_of_array_like,
    check_of_class,
    check_of_elements,
    check_of_generator,
    check_of_names,
    check_of_table,
    compiled_from,
    draws_numbers,
    elements_of,
    have_drawn,
    in_library,
    is_library_module,
    is_machinery_class,
    is_own_class,
    is_proxy,
    is_shared,
    is_table,
    is_users,
    names_in,
    namespace_of,
    parts,
    shared_states,
)
from fnad.trace.conversion import converted_code, facts_of, is_generated, own_function
from fnad.trace.effects import COMPUTED, DRAW, effect_of_callee, effect_of_object, reads_outside
from fnad.trace.environment import NUMBERS, Environment, Get, Namespace, Noted, content, has_numbers
from fnad.trace.handle import Handle
from fnad.trace.libraries import is_trusted
from fnad.trace.rewriting import COUNTED, EXTENDED, READ, WRITTEN, Facts
from fnad.trace.source import current_source

SIMPLE = {*map(id, (bool, int, float, complex, str, bytes, type(None), range, slice, np.ufunc, np.float64))}
"""The identities of the commonest classes of values without a content that may change."""

OF_ELEMENTS = {*map(id, CONTAINERS)}

DESCRIBING = frozenset({"__name__", "__qualname__", "__doc__", "__module__", "__annotations__"})
"""Attributes of functions and classes that are not in their namespace."""

BUILTINS = vars(builtins).get


class Recorder:
    """The values from outside that a function read, in `environment`, and sets that skip known ones.

    `kept` are the values from outside by their identities. `effect` is what the function perhaps did beside computing,
    if that is asked for.
    """

    def __init__(self, *, seeks_effects: bool = False) -> None:
        self.environment = Environment()
        self.kept: dict[int, Any] = {id(value): value for value in (MISSING, sys.modules)}
        self.effect = None if seeks_effects else "not looked for"
        self._seeks_effects = seeks_effects
        self._attributes: set[tuple[int, str]] = set()
        self._counted: set[tuple[int, str]] = set()
        self._entered: set[tuple[int, int]] = set()
        self._listed: set[int] = set()
        self._imports: set[tuple[str, str]] = set()
        self._pending: list[Any] = []
        self._is_following = False

    @contextmanager
    def active(self) -> Generator[None]:
        """Record what user code reads in this block, in this thread."""
        states = shared_states()
        try:
            with RECORDING.holding(self):
                yield
        finally:
            if have_drawn(states):
                self.meet(DRAW)
            self._note_imports()

    def meet(self, what: str, source: Source | None = None, *, anew: bool = True) -> None:
        """Note a value that cannot be compared."""
        self.effect = self.effect or what
        self.environment.meet(what, source, anew=anew)

    def has_read(self, value: Any) -> bool:
        """True if a value was read from outside, or is a container from there that was counted in or extended."""
        return id(value) in self.kept or id(value) in self.environment.before

    # ---- what the hooks report ---------------------------------------------------------------------------------------

    def enter(self, facts: Facts, namespace: dict[str, Any]) -> None:
        """Note the globals of a function that begins."""
        key = id(facts), id(namespace)
        if key in self._entered:
            return
        self._entered.add(key)
        self.kept[id(namespace)] = namespace
        if in_library(namespace.get("__name__", "")):  # a body of NumPy or SciPy; what `exec` made may have no name
            return
        for name, use in facts.globals:
            self._note_use(namespace.get, namespace, name, use)
            if name not in namespace:
                self._enter(BUILTINS, builtins, name)

    def attribute(self, owner: Any, name: str) -> None:
        """Note an attribute that is read, or is about to be stored."""
        owner = behind(owner)
        key = id(owner), name
        if key not in self._attributes:
            is_outside = id(owner) in self.kept or issubclass(type(owner), (ModuleType, type))
            if is_outside:
                self._attributes.add(key)
            self._note_attribute(owner, name, is_outside)

    def element(self, owner: Any, key: Any) -> None:
        """Note a module that is looked up by its name; elements of other containers were noted with the container."""
        if owner is sys.modules and isinstance(key, str):
            self._note(sys.modules.get, sys.modules, key)

    def counter(self, owner: Any, name: str) -> None:
        """Note an attribute that is only counted up, or elements of which are: its value is kept for later readers."""
        key = id(owner), name
        if key in self._counted or (id(owner) not in self.kept and not issubclass(type(owner), (ModuleType, type))):
            return
        places = list(self._places_of(owner, name))
        values = [get(name, MISSING) for get, _ in places]
        if keeps_plainly(owner) and all(v is MISSING or id(type(v)) in NUMBERS or has_numbers(v) for v in values):
            self.effect = self.effect or f"{name} is written to"
            self._counted.add(key)
            for get, where in places:
                self._keep(get, where, name)
        else:
            self.attribute(owner, name)

    def call(self, function: Any) -> None:
        """Note a callee: what it reads outside the process, and what it may do there."""
        if self.effect is None:
            self.effect = effect_of_callee(function)
        self._note_outside(function)
        kind = type(function)
        if kind is MethodType and (name := called_by_library(function)):
            self.meet(f"a library calls {name}, so its reads are not recorded", current_source())
        if (
            kind is FunctionType
            and id(function) not in self.kept
            and original_of(function.__code__) is function.__code__
            and not is_trusted(function.__code__.co_filename)
        ):
            self.follow(function)  # one that no name led to; those made in the trace run converted code

    def _note_outside(self, function: Any) -> None:
        what = reads_outside(function)
        if what is not None:
            self.meet(what[0], current_source(), anew=what[1])
        self._note_context(function)

    def imports(self, names: Iterable[str], attributes: Iterable[str] = ()) -> None:
        """Note modules that are about to be imported, and the names that are imported from the last of them."""
        for name in names:
            self._imports.add((name, ""))
            self._imports.update((name, attribute) for attribute in attributes)

    def list_attributes(self, owner: Any) -> None:
        """Note all attributes of an object, and that it has no others; modules have too many.

        Those of a table are of pandas, and its content is compared.
        """
        if id(owner) not in self.kept or id(owner) in self._listed or isinstance(owner, ModuleType) or is_table(owner):
            return
        self._listed.add(id(owner))
        namespace = None if isinstance(owner, type) else namespace_of(owner)
        if namespace is not None:
            self._hold(owner, namespace)
            self.environment.contents.append((check_of_names(namespace), namespace))
            self.environment.before[id(namespace)] = tuple(namespace)
            for name in tuple(namespace):
                found = self._enter(namespace.get, namespace, name)
                if not is_shared(found):  # draws from it are compared
                    self.follow(found)
        for kind in classes_of(owner):
            for name, value in tuple(vars(kind).items()):
                if isinstance(value, MemberDescriptorType) or (is_users(kind) and not hasattr(type(value), "__get__")):
                    self.attribute(owner, name)

    def matched(self, value: Any, names: AbstractSet[str], depth: int = 3) -> None:
        """Note the attributes of these names that a pattern may ask for, of a value and what is in it."""
        found = [value]
        if id(value) in self.kept:
            for name in names:
                self.attribute(value, name)
            found += [
                noted.value for name in names for (_, key), noted in self.environment.names.items() if key == name
            ]
        parts_of = value if type(value) in (tuple, list) else ()
        for part in (*parts_of, *found[1:]):
            if depth:
                self.matched(part, names, depth - 1)

    # ---- names -------------------------------------------------------------------------------------------------------

    def _note(self, get: Get, where: object, name: str) -> None:
        """Note the value of a name, the first time, and follow it; `where` is the object that has the name."""
        self.follow(self._enter(get, where, name))

    def _enter(self, get: Get, where: object, name: str) -> Any:
        """Note the value of a name, not what it is made of, and return it."""
        names, key = self.environment.names, (id(where), name)
        noted = names.get(key)
        if noted is None:
            noted = names[key] = self.environment.unread.pop(key, None) or Noted(get, name, get(name, MISSING))
            self.kept.setdefault(id(where), where)
        return noted.value

    def _note_use(self, get: Get, where: object, name: str, use: str) -> None:
        """Note the value of a name, unless only its count matters here; then it is kept for later readers."""
        if use in (READ, WRITTEN):
            self._note(get, where, name)
            return
        self.effect = self.effect or f"{name} is written to"
        value = get(name, MISSING)
        if use == EXTENDED:
            if type(value) in (list, set, deque):
                self.environment.names.setdefault((id(where), name), Noted(get, name, value))
                self.environment.before.setdefault(id(value), tuple(value))
            else:
                self._note(get, where, name)
        elif id(type(value)) in NUMBERS if use == COUNTED else has_numbers(value):
            self._keep(get, where, name)
        else:
            self._note(get, where, name)

    def _keep(self, get: Get, where: object, name: str) -> None:
        """Keep the value of a counter, and its elements if it is a list or dict."""
        key = id(where), name
        if key not in self.environment.names:
            noted = self.environment.unread.setdefault(key, Noted(get, name, get(name, MISSING)))
            self.kept.setdefault(id(where), where)
            if type(noted.value) in (list, dict):
                elements = cast("Elements", elements_of(noted.value))
                self.environment.before.setdefault(id(noted.value), tuple(elements()))

    # ---- attributes --------------------------------------------------------------------------------------------------

    def _note_attribute(self, owner: Any, name: str, is_outside: bool) -> None:
        if issubclass(type(owner), ModuleType):
            self._note_in_module(owner, name)
            return
        if name == "__dict__" or (is_outside and hides_attributes(owner)):
            self.list_attributes(owner)
        for get, where in self._places_of(owner, name, of_object=is_outside):
            if where is namespace_of(owner) and name not in where:
                self._note_absent(where, name)
            else:
                self._note(get, where, name)

    def _places_of(self, owner: Any, name: str, *, of_object: bool = True) -> Iterable[tuple[Get, Any]]:
        """The places of an attribute, each with the object that has it: user classes, a slot, the namespace.

        All classes with the attribute are noted, because `super()` skips some.
        """
        for kind in classes_of(owner):
            member = vars(kind).get(name, MISSING)
            if isinstance(member, MemberDescriptorType):
                if of_object:
                    self._hold(owner, None)
                    yield functools.partial(getattr, owner), owner
            elif member is not MISSING and is_users(kind):
                self._follow_class(kind)
                yield vars(kind).get, kind
            elif isinstance(member, property):
                self._note_outside(member.fget)
        if not of_object:
            return
        if (name in DESCRIBING and isinstance(owner, (FunctionType, type))) or isinstance(owner, threading.local):
            yield functools.partial(getattr, owner), owner  # each thread has values of its own
        namespace = None if isinstance(owner, type) else namespace_of(owner)
        if namespace is not None:
            self._hold(owner, namespace)
            yield namespace.get, namespace

    def _note_in_module(self, module: ModuleType, name: str) -> None:
        namespace, is_library = vars(module), is_library_module(module)
        self._hold(module, namespace)
        if name == "__dict__":
            self.meet(COMPUTED, current_source())
        elif module is sys and name == "modules":
            self.environment.contents.append((check_of_names(sys.modules), sys.modules))
        if name not in namespace:
            self._note_absent(namespace, name)
            if not is_library and "__getattr__" in namespace:
                self._note(namespace.get, namespace, "__getattr__")
            return
        found = self._enter(namespace.get, namespace, name)
        if not (is_library and callable(found)) or isinstance(found, type):
            self.follow(found)

    def _note_absent(self, namespace: Namespace, name: str) -> None:
        self.environment.absent.setdefault(id(namespace), (namespace, set()))[1].add(name)

    def _hold(self, owner: Any, namespace: Namespace | None) -> None:
        self.environment.holders.setdefault(id(owner if namespace is None else namespace), (owner, namespace))

    def _note_imports(self) -> None:
        """Note the modules that were imported; what is in one that was not there before is known only afterwards."""
        for name, attribute in sorted(self._imports):
            for end in (*[i for i, letter in enumerate(name) if letter == "."], len(name)):
                self._enter(sys.modules.get, sys.modules, name[:end])
            module = sys.modules.get(name)
            if attribute and isinstance(module, ModuleType):
                self._note_in_module(module, attribute)

    # ---- values ------------------------------------------------------------------------------------------------------

    def follow(self, value: Any) -> None:
        """Note the parts of a value from outside, so that a change inside it is detected; containers may be deep."""
        pending = self._pending
        pending.append(value)
        if self._is_following:
            return
        self._is_following = True
        try:
            while pending:
                value, count = pending.pop(), len(pending)
                self._follow(value)
                pending[count:] = reversed(pending[count:])  # the first part first
        finally:
            self._is_following = False
            pending.clear()

    def _follow(self, value: Any) -> None:
        kind = type(value)
        if id(kind) in SIMPLE or id(value) in self.kept or (self._seeks_effects and self.effect is not None):
            return  # when effects are sought, the rest is of no use once one was found
        self.kept[id(value)] = value
        if kind is FunctionType:
            self._follow_function(value)
        elif id(kind) in OF_ELEMENTS:
            self._follow_elements(value, cast("Elements", elements_of(value)))
        elif is_proxy(kind):
            self.follow(behind(value))
        elif kind is np.ndarray and not value.dtype.hasobject:
            self._follow_array(value)
        elif issubclass(kind, type):
            self._follow_class(value)
        elif not issubclass(kind, ModuleType):
            self._follow_object(value)

    def _follow_class(self, value: type[Any]) -> None:
        self.kept[id(value)] = value
        if isinstance(value, ABCMeta):
            self._enter(lambda _, __: get_cache_token(), ABCMeta, "register")
        for kind in (*(value.__mro__ or ()), *cast("Any", type(value)).__mro__):
            if id(kind) not in self._listed and is_users(kind):
                self._listed.add(id(kind))
                self.kept[id(kind)] = kind
                _, names, special = names_in(kind)
                self.environment.contents.append((check_of_class(kind, names), kind))
                for name in special:
                    self._note(vars(kind).get, kind, name)

    def _follow_function(self, function: FunctionType) -> None:
        function = own_function(function)
        code = original_of(function.__code__)
        cells = function.__closure__ or ()
        if is_trusted(code.co_filename):  # a transform, for example: nothing else leads to its cells
            for cell in cells:
                self.follow(content(cell, "", None))
            return
        defaults, by_name = function.__defaults__, function.__kwdefaults__
        self.environment.contents.append((FunctionCheck(function, code, defaults, by_name), function))
        self._hold(function, vars(function))
        self.follow(defaults)
        self.follow(by_name)
        facts = facts_of(function)
        if facts is None and not is_generated(function) and converted_code(code, function.__globals__) is None:
            self._follow_names(function)
        uses = dict(facts.free) if facts else {}
        for name, cell in zip(code.co_freevars, cells, strict=False):
            self._note_use(functools.partial(content, cell), cell, name, uses.get(name, READ))

    def _follow_names(self, function: FunctionType) -> None:
        """Note the globals of a function without hooks, or one that code in C calls, and all attributes of these."""
        function = own_function(function)
        namespace, code, facts = function.__globals__, original_of(function.__code__), facts_of(function)
        if (id(code), id(namespace)) in self._entered or is_trusted(code.co_filename):
            return
        self._entered.add((id(code), id(namespace)))
        if facts is not None:
            self.enter(facts, namespace)
        names = names_of(code) & namespace.keys()
        found = [namespace[name] if facts else self._enter(namespace.get, namespace, name) for name in names]
        for value in (*found, *(content(cell, "", None) for cell in function.__closure__ or ())):
            self._follow(value)
            self.list_attributes(value)
            if type(value) is FunctionType:
                self._follow_names(value)

    def _follow_object(self, value: Any) -> None:
        kind = type(value)
        if issubclass(kind, Handle):
            return
        if is_own_class(kind):  # a transformed function, say: nothing else leads from it to the function
            self.follow(getattr(value, "__wrapped__", None))
            self.follow(getattr(value, "rule", None))
            return
        if (function := compiled_from(value)) is not None:
            self.follow(function)
            return
        self.effect = self.effect or effect_of_object(value)
        self._note_context(kind)
        for part in parts(value):
            self.follow(part)
            if type(part) is FunctionType and issubclass(kind, (CACHED, defaultdict)):
                self._follow_names(part)  # code in C calls it
        if issubclass(kind, ContextVar):
            self._note(lambda _, default: value.get(default), value, "value")
        namespace = namespace_of(value)
        is_of_user = any(map(is_users, kind.__mro__))
        if namespace is not None or is_of_user:
            self._note_kind(value, namespace)
        if is_of_user:
            self._follow_class(kind)
        self._follow_content(value)
        if is_machinery_class(kind) or issubclass(kind, SimpleNamespace):  # code in C reads all of its attributes
            self.list_attributes(value)

    def _note_context(self, kind: Any) -> None:
        """Note the precision and rounding that operators read, if this is the class of decimal numbers."""
        decimal = forks.loaded("decimal")
        if decimal is not None and kind is decimal.Decimal:
            for name in ("prec", "rounding"):
                self._enter(lambda name, _: getattr(decimal.getcontext(), name), decimal, name)

    def _note_kind(self, value: Any, namespace: Namespace | None) -> None:
        objects, kinds = self.environment.kinds
        objects.append(value)
        kinds.append(type(value))
        with suppress(Exception):  # what a class makes of the name
            if namespace is not None and value.__dict__ is namespace:
                holders, namespaces = self.environment.namespaces
                holders.append(value)
                namespaces.append(namespace)

    def _follow_content(self, value: Any) -> None:
        elements = elements_of(value)
        contents = self.environment.contents
        if elements is not None:
            self._follow_elements(value, elements)
        elif issubclass(type(value), np.ndarray):
            self._follow_array(value)
        elif draws_numbers(value):
            contents.append((check_of_generator(value), value))
        elif is_table(value):
            check = check_of_table(value)
            contents.extend([(check, value)] if check else [])
            if check is None:
                self.meet(f"a {type(value).__name__} of pandas is read")
        elif is_on_device(value):
            self.meet("an array of a device is read")
        elif type(value).__module__ == "decimal":
            context, now = repr((get := import_module("decimal").getcontext)()), lambda: repr(get())
            contents.append((lambda: now() == context, None))
        elif hasattr(type(value), "__array__"):
            contents.append((check_of_array_like(value), value))
        elif hasattr(type(value), "__next__") and not any(map(is_users, type(value).__mro__)):
            self.meet("an iterator is read")

    def _follow_array(self, value: Array) -> None:
        check = check_of_array(value)
        if check is not None:
            self.environment.contents.append((check, value))

    def _follow_elements(self, value: Any, elements: Elements) -> None:
        if not isinstance(value, tuple):
            before = self.environment.before.setdefault(id(value), tuple(elements()))
            self.environment.contents.append((check_of_elements(elements, before), value))
        for element in elements():
            self.follow(element)


def called_by_library(method: MethodType) -> str | None:
    """The name of a user function that the object of a library method has, and may call; None if there is none."""
    owner: Any = method.__self__
    is_library = not isinstance(owner, (type, ModuleType)) and not any(map(is_users, type(owner).__mro__))
    held = (namespace_of(owner) or {}).values() if is_library and not is_own_class(type(owner)) else ()
    functions = (f for f in held if type(f) is FunctionType and original_of(f.__code__) is f.__code__)
    return next((f.__qualname__ for f in functions if not is_trusted(f.__code__.co_filename)), None)


RECORDING: ListedBlocks[Recorder] = ListedBlocks()
"""The recorders of this thread."""


def note_attributes(value: Any) -> None:
    """Note that this package reads all attributes of an object for the function that is traced."""
    if is_tracing():
        for recorder in RECORDING.values:
            recorder.list_attributes(value)
