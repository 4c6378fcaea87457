"""Named tuples and dataclasses as those of the standard library, whose classes take a tenth of the time to make.

That compiles several functions for each class, which is a third of the time of `import fnad` with its hundred classes.
Here only constructors are compiled, and those of as many fields share code, in which the fields have other names. Code
objects are CPython's own matter, so versions that this was not tried on have the standard library's.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

__all__ = ["NamedTuple", "dataclass"]

if TYPE_CHECKING or sys.version_info >= (3, 14):
    from dataclasses import dataclass
    from typing import NamedTuple
else:
    import dataclasses
    from collections import namedtuple
    from dataclasses import MISSING, Field, FrozenInstanceError
    from functools import cache
    from operator import attrgetter
    from types import FunctionType

    def _compiled(text, mode):
        """Code that is told by its file to be this package's, as it has to be where a function is watched."""
        return compile(text, __file__, mode)

    def _function(shared, names, name, owner, values, defaults, annotations):
        """A function with other names in its code, and these globals."""
        other = {f"f{n}": field for n, field in enumerate(names)}
        renamed = lambda words: tuple(other.get(word, word) if type(word) is str else word for word in words)  # noqa: E731
        code = shared.replace(
            co_name=name,
            co_qualname=f"{owner}.{name}",
            co_varnames=renamed(shared.co_varnames),
            co_names=renamed(shared.co_names),
            co_consts=renamed(shared.co_consts),
        )
        made = FunctionType(code, values, None, tuple(defaults))
        made.__annotations__ = annotations
        return made

    def _check_order(owner, names, defaults):
        """Raise `TypeError` where a field without a default follows one with a default."""
        if list(defaults) != list(names)[len(names) - len(defaults) :]:
            raise TypeError(f"{owner} has a field without a default after one with a default")

    # ---- named tuples ------------------------------------------------------------------------------------------------

    LONGEST = namedtuple("LONGEST", [f"f{n}" for n in range(32)])  # noqa: PYI024
    GETTERS = [vars(LONGEST)[name] for name in LONGEST._fields]

    @cache
    def _tuple_of(count):
        """The code of a function that makes a tuple of so many arguments."""
        names = "".join(f"f{n}, " for n in range(count))
        return eval(_compiled(f"lambda cls, {names}: new(cls, ({names}))", "eval")).__code__

    class Fields(tuple):
        """The operations of named tuples."""

        __slots__ = ()
        _fields = ()

        @classmethod
        def _make(cls, values):
            return cls(*values)

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, /, **changes):
            return type(self)(**{**self._asdict(), **changes})

        def __repr__(self):
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

        def __getnewargs__(self):
            return tuple(self)

    class Definition(type):
        """The type of `NamedTuple`, which makes of a class with fields a class of tuples."""

        def __new__(cls, name, bases, namespace):
            """A class with these annotations as fields."""
            fields = tuple(namespace.get("__annotations__", ()))
            defaults = {field: namespace.pop(field) for field in fields if field in namespace}
            _check_order(name, fields, defaults)
            new = {"new": tuple.__new__}
            types = dict(namespace.get("__annotations__", {}))
            code = _tuple_of(len(fields))
            namespace["__new__"] = _function(code, fields, "__new__", name, new, defaults.values(), types)
            named = {field: GETTERS[n] for n, field in enumerate(fields)}
            namespace |= named | {"__slots__": (), "_fields": fields, "__match_args__": fields}
            return type(name, (Fields,), namespace | {"_field_defaults": defaults})

    NamedTuple = type.__new__(Definition, "NamedTuple", (), {})

    # ---- dataclasses -------------------------------------------------------------------------------------------------

    @cache
    def _initializer(kinds, frozen, checked):
        """The code of a constructor for fields of these kinds: given, default, made by a factory, or not given."""
        values = {"given": "f{0}", "made": "make{0}() if f{0} is MISSING else f{0}", "constant": "value{0}"}
        store = "set(self, 'f{0}', {1})" if frozen else "self.f{0} = {1}"
        arguments = ", ".join(["self", *(f"f{n}" for n, kind in enumerate(kinds) if kind != "constant")])
        body = [store.format(n, values[kind].format(n)) for n, kind in enumerate(kinds)]
        names = {}
        text = f"def new({arguments}): {'; '.join([*body, *['self.__post_init__()'] * checked]) or 'pass'}"
        exec(_compiled(text, "exec"), names)
        return names["new"].__code__

    def dataclass(cls=None, /, **options):
        """The decorator: of `dataclasses.dataclass`, it takes `frozen`, `slots`, `weakref_slot` and `eq`."""
        return (lambda cls: _made(cls, **options)) if cls is None else _made(cls, **options)

    def _made(cls, *, frozen=False, slots=False, weakref_slot=False, eq=True):
        own = vars(cls).get("__annotations__", {})
        fields = {}
        for base in cls.__mro__[:0:-1]:
            fields |= vars(base).get("_definitions", {})
        fields |= {name: _field(vars(cls).get(name, MISSING), kind) for name, kind in own.items()}
        namespace = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__", *own)}
        inherited = {slot for base in cls.__mro__[1:] for slot in vars(base).get("__slots__", ())}
        added = {
            "__init__": _constructor(cls, fields, frozen),
            "__match_args__": tuple(name for name, field in fields.items() if field.init),
            "__dataclass_fields__": StandardFields(),
            "_definitions": fields,
        }
        added |= _methods(fields, frozen=frozen, slots=slots, eq=eq, own=namespace)
        if not slots:
            for name, value in added.items():
                setattr(cls, name, value)
            return cls
        namespace["__slots__"] = (*(name for name in own if name not in inherited), *["__weakref__"] * weakref_slot)
        return type(cls)(cls.__name__, cls.__bases__, namespace | added | {"__qualname__": cls.__qualname__})

    def _field(default, kind):
        field = default if isinstance(default, Field) else dataclasses.field(default=default)
        field.type = kind
        if not field.init and field.default is MISSING:
            raise TypeError("a field that is not given has to have a default")
        return field

    def _kind(field):
        return "constant" if not field.init else "given" if field.default_factory is MISSING else "made"

    def _constructor(cls, fields, frozen):
        given = {name: field for name, field in fields.items() if field.init}
        defaults = {n: f.default for n, f in given.items() if f.default is not MISSING or _kind(f) == "made"}
        _check_order(cls.__name__, given, defaults)
        globals_ = {"set": object.__setattr__, "MISSING": MISSING}
        for n, field in enumerate(fields.values()):
            globals_ |= {f"make{n}": field.default_factory, f"value{n}": field.default}
        code = _initializer(tuple(map(_kind, fields.values())), frozen, hasattr(cls, "__post_init__"))
        types = {name: fields[name].type for name in given} | {"return": None}
        return _function(code, fields, "__init__", cls.__qualname__, globals_, defaults.values(), types)

    def _methods(fields, *, frozen, slots, eq, own):
        shown = [name for name, field in fields.items() if field.repr]
        compared = [name for name, field in fields.items() if field.compare]
        found = {"__repr__": lambda self: f"{type(self).__qualname__}({', '.join(_shown(self, shown))})"}
        if eq:
            parts = _getter(compared)
            found["__eq__"] = lambda self, other: (
                parts(self) == parts(other) if type(self) is type(other) else NotImplemented
            )
            found["__hash__"] = (lambda self: hash(parts(self))) if frozen else None
        found = {name: method for name, method in found.items() if own.get(name) is None}
        if frozen:
            found |= {"__setattr__": _refuse, "__delattr__": _refuse}
        if frozen and slots:
            state = _getter(list(fields))
            found |= {"__getstate__": lambda self: (*state(self),), "__setstate__": _set_state}
        return found

    def _getter(names):
        if len(names) > 1:
            return attrgetter(*names)
        return lambda self: tuple(getattr(self, name) for name in names)

    def _shown(self, names):
        return [f"{name}={getattr(self, name)!r}" for name in names]

    def _refuse(self, name, *_):
        raise FrozenInstanceError(f"cannot change field {name!r}")

    def _set_state(self, values):
        for name, value in zip(self._definitions, values, strict=True):
            object.__setattr__(self, name, value)

    class StandardFields:
        """The class attributes that `dataclasses.replace` and `fields` read, made when they are read."""

        def __get__(self, instance, owner=None):
            """The fields as the standard library describes them."""
            cls = owner or type(instance)
            types = {name: field.type for name, field in cls._definitions.items()}
            plain = type(cls.__name__, (), {**cls._definitions, "__annotations__": types})
            options = {"init": False, "repr": False, "eq": False, "frozen": cls.__setattr__ is _refuse}
            mirror = dataclasses.dataclass(**options)(plain)
            cls.__dataclass_params__ = mirror.__dataclass_params__
            cls.__dataclass_fields__ = mirror.__dataclass_fields__
            return cls.__dataclass_fields__
