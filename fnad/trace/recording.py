"""Recording what traced user code reads from outside, at the place where it reads it.

The hooks of converted code (`fnad.trace.hooks`) report the globals of a function when it begins, attributes, elements,
callees, imports and stores. A `Recorder` decides which of these are of values from outside, and enters them into an
`Environment`.

A value is from outside if it was read from something outside: the traced function with its defaults and variables, its
globals, and the attributes and elements of what these are. A function that runs converted code was made in a trace, and
so are the objects that user code makes; of these only what their classes have is recorded.

Two things are not followed. Functions and classes of the standard library, NumPy, what else this package stands on
and pandas are taken to do what they do, though a name of their modules may be bound anew. An array that cannot be
written to, nor what it is a view of, keeps its content. Results of `functools.lru_cache` are compared.
"""

from __future__ import annotations

import builtins
import sys
import threading
from abc import ABCMeta
from collections import defaultdict, deque
from collections.abc import Generator, Iterable
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType, ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np

from fnad import forks
from fnad.blocks import ListedBlocks
from fnad.codes import names_of, original_of
from fnad.ir.builder import is_tracing
from fnad.ir.program import Source
from fnad.placement import is_on_device
from fnad.trace.conversion import converted_code, facts_of, is_generated, own_function
from fnad.trace.effects import COMPUTED, DRAW, effect_of_callee, effect_of_object, reads_outside
from fnad.trace.environment import Environment, Met
from fnad.trace.generators import draws_numbers, have_drawn, is_shared, shared_states
from fnad.trace.handle import Handle
from fnad.trace.libraries import are_of_library, is_library_module, is_machinery_class, is_table, is_trusted, is_users
from fnad.trace.parts import (
    CACHED,
    CONTAINERS,
    MISSING,
    behind,
    classes_of,
    compiled_from,
    elements_of,
    hides_attributes,
    is_descriptor,
    is_own_class,
    is_proxy,
    keeps_plainly,
    namespace_of,
    parts,
)
from fnad.trace.reads import (
    NUMBERS,
    Way,
    abstract_classes,
    bases_and_names,
    code_of,
    content_of,
    decimal_context,
    elements,
    entry,
    has_numbers,
    in_context,
    kind,
    member,
    names_in,
    way_to_content,
)
from fnad.trace.source import current_source
from fnad.trace.variables import COUNTED, EXTENDED, READ, WRITTEN, Facts
from fnad.upward import UPWARD

SIMPLE = {*map(id, (bool, int, float, complex, str, bytes, type(None), range, slice, np.ufunc, np.float64))}
"""The identities of the commonest classes of values without a content that may change."""

OF_ELEMENTS = {*map(id, CONTAINERS)}

LASTING = {id(FunctionType), id(type(np.sum)), id(type)}
"""The identities of classes of functions that are the same objects from call to call."""

DESCRIBING = frozenset({"__name__", "__qualname__", "__doc__", "__module__", "__annotations__"})
"""Attributes of functions and classes that are not in their namespace."""

BUILTINS = vars(builtins)


class Recorder:
    """The values from outside that a function read, in `environment`, and sets that skip known ones.

    `kept` are the values from outside by their identities. `effect` is what the function perhaps did beside computing,
    if that is asked for. `silent` are functions of which a call was noted, and read nothing that cannot be compared.
    `attributes` are those of values from outside, by owner and name, `entered` functions that began, by the identities
    of facts and globals.
    """

    def __init__(self, *, seeks_effects: bool = False) -> None:
        self.environment = Environment()
        self.kept: dict[int, Any] = {id(value): value for value in (MISSING, sys.modules)}
        self.effect = None if seeks_effects else "not looked for"
        self._seeks_effects = seeks_effects
        self.attributes: set[tuple[int, str]] = set()
        self._counted: set[tuple[int, str]] = set()
        self.entered: set[tuple[int, int]] = set()
        self._listed: set[int] = set()
        self.silent: dict[int, Any] = {}
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
        self.environment.met.append(Met(what, source, anew))

    def has_read(self, value: Any) -> bool:
        """True if a value was read from outside, or is a container from there that was counted in or extended."""
        return id(value) in self.kept or (elements, id(value), "") in self.environment.counted

    # ---- what the hooks report ---------------------------------------------------------------------------------------

    def enter(self, facts: Facts, namespace: dict[str, Any]) -> None:
        """Note the globals of a function that begins."""
        key = id(facts), id(namespace)
        if key in self.entered:
            return
        self.entered.add(key)
        self.kept[id(namespace)] = namespace
        if are_of_library(namespace):  # of a body of NumPy or SciPy
            return
        way = dict.get if type(namespace) is dict else entry
        for name, use in facts.globals:
            self._note_use(way, namespace, name, use)
            if name not in namespace:
                self._enter(dict.get, BUILTINS, name)

    def attribute(self, owner: Any, name: str) -> None:
        """Note an attribute that is read, or is about to be stored."""
        owner = behind(owner)
        key = id(owner), name
        if key not in self.attributes:
            is_outside = id(owner) in self.kept or issubclass(type(owner), (ModuleType, type))
            if is_outside:
                self.attributes.add(key)
            self._note_attribute(owner, name, is_outside)

    def element(self, owner: Any, key: Any) -> None:
        """Note a module that is looked up by its name; elements of other containers were noted with the container."""
        if owner is sys.modules and isinstance(key, str):
            self._note(dict.get, sys.modules, key)

    def counter(self, owner: Any, name: str) -> None:
        """Note an attribute that is only counted up, or elements of which are: its value is kept for later readers."""
        key = id(owner), name
        if key in self._counted or (id(owner) not in self.kept and not issubclass(type(owner), (ModuleType, type))):
            return
        places = list(self._places_of(owner, name))
        values = [way(where, name, MISSING) for way, where in places]
        if keeps_plainly(owner) and all(v is MISSING or id(type(v)) in NUMBERS or has_numbers(v) for v in values):
            self.effect = self.effect or f"{name} is written to"
            self._counted.add(key)
            for way, where in places:
                self._keep(way, where, name)
        else:
            self.attribute(owner, name)

    def call(self, function: Any) -> bool:
        """Note a callee: what it reads outside the process, and what it may do there.

        True if another call of the same object has nothing to note.
        """
        met = len(self.environment.met)
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
        is_lasting = id(kind) in LASTING or (kind is BuiltinFunctionType and type(function.__self__) is ModuleType)
        return is_lasting and len(self.environment.met) == met

    def _note_outside(self, function: Any) -> None:
        what = reads_outside(function)
        if what is not None:
            self.meet(what[0], current_source(), anew=what[1])
        decimal = forks.loaded("decimal")
        if decimal is not None and function is decimal.Decimal:
            self._enter(decimal_context, decimal)

    def imports(self, names: Iterable[str], attributes: Iterable[str] = ()) -> None:
        """Note modules that are about to be imported, and the names that are imported from the last of them."""
        self._imports.update((name, attribute) for name in names for attribute in ("", *attributes))

    def list_attributes(self, owner: Any) -> None:
        """Note all attributes of an object, and that it has no others; modules have too many.

        Those of a table are of pandas, and its content is compared.
        """
        if id(owner) not in self.kept or id(owner) in self._listed or isinstance(owner, ModuleType) or is_table(owner):
            return
        self._listed.add(id(owner))
        namespace = None if isinstance(owner, type) else namespace_of(owner)
        if namespace is not None:
            for name in self._enter(names_in, namespace):
                found = self._enter(dict.get, namespace, name)
                if not is_shared(found):  # draws from it are compared
                    self.follow(found)
        for base in classes_of(owner):
            for name, value in tuple(vars(base).items()):
                if isinstance(value, MemberDescriptorType) or (is_users(base) and not hasattr(type(value), "__get__")):
                    self.attribute(owner, name)

    def matched(self, value: Any, names: AbstractSet[str], depth: int = 3) -> None:
        """Note the attributes of these names that a pattern may ask for, of a value and what is in it."""
        found = [value]
        if id(value) in self.kept:
            for name in names:
                self.attribute(value, name)
            found += [read.value for read in self.environment.reads.values() if read.name in names]
        parts_of = value if type(value) in (tuple, list) else ()
        for part in (*parts_of, *found[1:]):
            if depth:
                self.matched(part, names, depth - 1)

    # ---- names -------------------------------------------------------------------------------------------------------

    def _note(self, way: Way, owner: Any, name: str) -> None:
        """Note the value of a name, the first time, and follow it."""
        self.follow(self._enter(way, owner, name))

    def _enter(self, way: Way, owner: Any, name: str = "") -> Any:
        """Note the value to which a way leads, not what it is made of, and return it."""
        self.kept.setdefault(id(owner), owner)
        return self.environment.read(way, owner, name)

    def _note_use(self, way: Way, owner: Any, name: str, use: str) -> None:
        """Note the value of a name, unless only its count matters here; then it is kept for later readers."""
        if use in (READ, WRITTEN):
            self._note(way, owner, name)
            return
        self.effect = self.effect or f"{name} is written to"
        value = way(owner, name, MISSING)
        if use == EXTENDED and type(value) in (list, set, deque):
            self._enter(way, owner, name)
            self.environment.count(elements, value)
        elif use != EXTENDED and (id(type(value)) in NUMBERS if use == COUNTED else has_numbers(value)):
            self._keep(way, owner, name)
        else:
            self._note(way, owner, name)

    def _keep(self, way: Way, owner: Any, name: str) -> None:
        """Keep the value of a counter, and its elements if it is a list or dict."""
        self.kept.setdefault(id(owner), owner)
        value = self.environment.count(way, owner, name)
        if type(value) in (list, dict):
            self.environment.count(elements, value)

    # ---- attributes --------------------------------------------------------------------------------------------------

    def _note_attribute(self, owner: Any, name: str, is_outside: bool) -> None:
        if issubclass(type(owner), ModuleType):
            self._note_in_module(owner, name)
            return
        if name == "__dict__" or (is_outside and hides_attributes(owner)):
            self.list_attributes(owner)
        for way, where in self._places_of(owner, name, of_object=is_outside):
            self._note(way, where, name)

    def _places_of(self, owner: Any, name: str, *, of_object: bool = True) -> Iterable[tuple[Way, Any]]:
        """The places of an attribute, each with the way to it: user classes, a slot, the namespace.

        All classes with the attribute are noted, because `super()` skips some.
        """
        for base in classes_of(owner):
            found = vars(base).get(name, MISSING)
            if isinstance(found, MemberDescriptorType):
                if of_object:
                    yield getattr, owner
            elif found is not MISSING and is_users(base):
                self._follow_class(base)
                yield member, base
            elif isinstance(found, property):
                self._note_outside(found.fget)
        if not of_object:
            return
        if (name in DESCRIBING and isinstance(owner, (FunctionType, type))) or isinstance(owner, threading.local):
            yield getattr, owner  # each thread has values of its own
        namespace = None if isinstance(owner, type) else namespace_of(owner)
        if namespace is not None:
            yield dict.get, namespace

    def _note_in_module(self, module: ModuleType, name: str) -> None:
        namespace, is_library = vars(module), is_library_module(module)
        if name == "__dict__":
            self.meet(COMPUTED, current_source())
        elif module is sys and name == "modules":
            self._enter(names_in, sys.modules)
        found = self._enter(dict.get, namespace, name)
        if found is MISSING:
            if not is_library and "__getattr__" in namespace:
                self._note(dict.get, namespace, "__getattr__")
        elif not (is_library and callable(found)) or isinstance(found, type):
            self.follow(found)

    def _note_imports(self) -> None:
        """Note the modules that were imported; what is in one that was not there before is known only afterwards."""
        for name, attribute in sorted(self._imports):
            for end in (*[i for i, letter in enumerate(name) if letter == "."], len(name)):
                self._enter(dict.get, sys.modules, name[:end])
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
        own = type(value)
        if id(own) in SIMPLE or id(value) in self.kept or (self._seeks_effects and self.effect is not None):
            return  # when effects are sought, the rest is of no use once one was found
        self.kept[id(value)] = value
        if own is FunctionType:
            self._follow_function(value)
        elif id(own) in OF_ELEMENTS:
            self._follow_elements(value)
        elif is_proxy(own):
            self.follow(behind(value))
        elif own is np.ndarray and not value.dtype.hasobject:
            self._follow_content(value)
        elif issubclass(own, type):
            self._follow_class(value)
        elif not issubclass(own, ModuleType):
            self._follow_object(value)

    def _follow_class(self, value: type[Any]) -> None:
        self.kept[id(value)] = value
        if isinstance(value, ABCMeta):
            self._enter(abstract_classes, ABCMeta, "register")
        for base in (*(value.__mro__ or ()), *cast("Any", type(value)).__mro__):
            if id(base) not in self._listed and is_users(base):
                self._listed.add(id(base))
                UPWARD.enter_class(base)
                _, *names = self._enter(bases_and_names, base)
                for name in names:
                    is_special = name[:2] == name[-2:] == "__" and name != "__doc__"
                    if is_special or is_descriptor(vars(base).get(name)):  # its methods run before the name is noted
                        self._note(member, base, name)

    def _follow_function(self, function: FunctionType) -> None:
        function = own_function(function)
        code = original_of(function.__code__)
        cells = function.__closure__ or ()
        if is_trusted(code.co_filename):  # a transform, for example: nothing else leads to its cells
            for cell in cells:
                self.follow(content_of(cell))
            return
        for part in self._enter(code_of, function)[1:]:
            self.follow(part)
        facts = facts_of(function)
        if facts is None and not is_generated(function) and converted_code(code, function.__globals__) is None:
            self._follow_names(function)
        uses = dict(facts.free) if facts else {}
        for name, cell in zip(code.co_freevars, cells, strict=False):
            self._note_use(content_of, cell, name, uses.get(name, READ))

    def _follow_names(self, function: FunctionType) -> None:
        """Note the globals of a function without hooks, or one that code in C calls, and all attributes of these."""
        function = own_function(function)
        namespace, code, facts = function.__globals__, original_of(function.__code__), facts_of(function)
        if (id(code), id(namespace)) in self.entered or is_trusted(code.co_filename):
            return
        self.entered.add((id(code), id(namespace)))
        if facts is not None:
            self.enter(facts, namespace)
        names = names_of(code) & namespace.keys()
        found = [namespace[name] if facts else self._enter(dict.get, namespace, name) for name in names]
        for value in (*found, *map(content_of, function.__closure__ or ())):
            self._follow(value)
            self.list_attributes(value)
            if type(value) is FunctionType:
                self._follow_names(value)

    def _follow_object(self, value: Any) -> None:
        own = type(value)
        if issubclass(own, Handle):
            return
        if is_own_class(own):  # a transformed function, say: nothing else leads from it to the function
            self.follow(getattr(value, "__wrapped__", None))
            self.follow(getattr(value, "rule", None))
            return
        if (function := compiled_from(value)) is not None:
            self.follow(function)
            return
        self.effect = self.effect or effect_of_object(value)
        for part in parts(value):
            self.follow(part)
            if type(part) is FunctionType and issubclass(own, (CACHED, defaultdict)):
                self._follow_names(part)  # code in C calls it
        if issubclass(own, ContextVar):
            self._note(in_context, value, "value")
        is_of_user = any(map(is_users, own.__mro__))
        if is_of_user or namespace_of(value) is not None:
            self._note_kind(value)
        self._follow_content(value)  # first: to pickle an object adds a name to its class
        if is_of_user:
            self._follow_class(own)
        if is_machinery_class(own) or issubclass(own, SimpleNamespace):  # code in C reads all of its attributes
            self.list_attributes(value)

    def _note_kind(self, value: Any) -> None:
        self._enter(kind, value)
        namespace = namespace_of(value)
        with suppress(Exception):  # what a class makes of the name
            if namespace is not None and value.__dict__ is namespace:
                self._enter(getattr, value, "__dict__")

    def _follow_content(self, value: Any) -> None:
        own = type(value)
        if elements_of(value) is not None:
            self._follow_elements(value)
        elif issubclass(own, np.ndarray) or draws_numbers(value) or is_table(value):
            way = way_to_content(value)
            if way is not None:
                self.environment.read(way, value)
            elif not issubclass(own, np.ndarray):
                self.meet(DRAW if draws_numbers(value) else f"a {own.__name__} of pandas is read")
        elif is_on_device(value):
            self.meet("an array of a device is read")
        elif own.__module__ == "decimal":
            self._enter(decimal_context, import_module("decimal"))
        elif hasattr(own, "__array__"):
            self.environment.read(cast("Way", way_to_content(value)), value)
        elif hasattr(own, "__next__") and not any(map(is_users, own.__mro__)):
            self.meet("an iterator is read")

    def _follow_elements(self, value: Any) -> None:
        for element in value if isinstance(value, tuple) else self._enter(elements, value):
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
