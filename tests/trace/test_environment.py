"""What is read from outside in odd ways: a compiled function gives what Python gives after each change of it.

Programs run in the interpreter here. A case is a function that reads something, and what changes that afterwards.
"""

from __future__ import annotations

import abc
import array
import builtins
import codecs
import collections
import collections.abc
import configparser
import contextvars
import ctypes
import dataclasses
import decimal
import functools
import gc
import heapq
import importlib
import inspect
import linecache
import logging
import math
import operator
import os
import pathlib
import queue
import random
import sys
import threading
import tracemalloc
import types
import typing
import warnings
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import scipy.io

import fnad
from fnad import jit
from tests.steps import steps
from tests.together import together

pytestmark = pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")  # what is read changes on purpose

Change = Callable[[], object]
Case = Callable[..., tuple[Callable[[Any], Any], Change]]
CASES: list[Case] = []


def case(make: Case) -> Case:
    CASES.append(make)
    return make


@pytest.fixture(autouse=True)
def _interpreted() -> Iterator[None]:
    with fnad.config.override(executor="interpreter"):
        yield


class Plain:
    pass


def kind(*bases: type, **members: Any) -> Any:
    return type("Kind", bases, members)


def setting(o: Any, name: str, value: Any) -> Change:
    return lambda: setattr(o, name, value)


# ---- attributes that are absent at first -----------------------------------------------------------------------------


def check_absent(o: Any, change: Change) -> None:  # noqa: C901  # many small functions
    """Check the ways to ask an object for its attribute `s` that go on without it."""

    def handled(x: Any) -> Any:
        try:
            return x * o.s
        except AttributeError:
            return x

    def inner() -> Any:
        return o.s

    def handled_outside(x: Any) -> Any:
        try:
            return x * inner()
        except Exception:  # noqa: BLE001
            return x

    def matched(x: Any) -> Any:
        match o:
            case object(s=s):
                return x * s
            case _:
                return x

    def by_name(x: Any) -> Any:
        return x * getattr(o, "s", 1.0)

    def by_other_name(x: Any) -> Any:
        return x * ask(o, "s", 1.0)

    def by_computed_name(x: Any) -> Any:
        return x * sum(getattr(o, letter, 1.0) for letter in "rs")

    def whether(x: Any) -> Any:
        return x * (2.0 if hasattr(o, "s") else 1.0)

    ask = getattr
    ways = [handled, handled_outside, matched, by_name, by_other_name, whether]
    ways += [] if isinstance(o, types.ModuleType) else [by_computed_name]
    runs = [jit(way) for way in ways]
    before = [run(2.0) for run in runs]
    change()
    for way, run, was in zip(ways, runs, before, strict=True):
        assert run(2.0) == way(2.0) != was, way.__name__


class Slotted:
    __slots__ = ("s",)


@pytest.mark.parametrize("others", [{}, {"other": 1.0}])
def test_an_attribute_that_something_gets(others: dict[str, float]) -> None:
    module, empty = types.ModuleType("absent"), Plain()
    vars(module).update(others)
    vars(empty).update(others)
    for o in (SimpleNamespace(**others), empty, Slotted(), module, lambda: None, kind(**others)):
        check_absent(o, setting(o, "s", 5.0))


def test_an_attribute_that_its_class_gets() -> None:
    base = kind()
    check_absent(kind(base)(), setting(base, "s", 5.0))


def test_a_name_that_a_module_gets() -> None:
    namespace: dict[str, Any] = {}
    exec("def f(x):\n try: return x * absent\n except NameError: return x", namespace)
    run = jit(namespace["f"])
    assert run(2.0) == 2.0
    namespace["absent"] = 3.0
    assert run(2.0) == 6.0


@case
def vars_of_an_object() -> Any:
    o = SimpleNamespace()
    return lambda x: x * len(vars(o)), setting(o, "s", 1)


@case
def namespace_of_a_function() -> Any:
    def o() -> None: ...

    return lambda x: x * len(o.__dict__), setting(o, "s", 1)


@case
def vars_of_a_class() -> Any:
    own = kind()
    return lambda x: x * len(vars(own)), setting(own, "s", 1)


@case
def names_of_an_object() -> Any:
    own = kind()
    o = own()
    return lambda x: x * len(dir(o)), setting(own, "t", 1)


@case
def order_of_names() -> Any:
    o = SimpleNamespace(a=1.0, b=2.0)
    return lambda x: x * next(iter(vars(o).values())), lambda: vars(o).update(a=vars(o).pop("a"))


@case
def computed_name_in_a_class() -> Any:
    o = (k := kind(w0=1.0, w1=2.0))()
    return lambda x: x * sum(getattr(o, f"w{i}") for i in range(2)), setting(k, "w1", 3.0)


@case
def attribute_made_by_getattr() -> Any:
    o = kind(__getattr__=lambda self, name: 2.0)()
    return lambda x: x * o.s, setting(o, "s", 3.0)


@case
def attribute_made_by_a_module() -> Any:
    module = types.ModuleType("makes")
    exec("def __getattr__(name): return 1.0", vars(module))
    return lambda x: x * module.s, setting(module, "s", 3.0)


@case
def cached_property() -> Any:
    cached: Any = functools.cached_property(lambda self: 1.0)
    cached.__set_name__(None, "s")
    o = kind(s=cached)()
    return lambda x: x * o.s, lambda: vars(o).update(s=3.0)


@case
def method_caller() -> Any:
    o = kind(m=lambda self: 1.0)()
    call = operator.methodcaller("m")
    return lambda x: x * call(o), setting(o, "m", lambda: 3.0)


@case
def fields() -> Any:
    @dataclasses.dataclass
    class Fields:
        a: float = 1.0

    o = Fields()
    return lambda x: x * dataclasses.asdict(o)["a"], setting(o, "a", 3.0)


# ---- classes ---------------------------------------------------------------------------------------------------------


class Base:
    def m(self) -> float:
        return 1.0


class Derived(Base):
    def m(self) -> float:
        return super().m()


@case
def method_above(patch: pytest.MonkeyPatch) -> Any:
    o = Derived()
    return lambda x: x * o.m(), lambda: patch.setattr(Base, "m", lambda self: 3.0)


@case
def class_of_an_object() -> Any:
    o = kind(m=lambda self: 1.0)()
    return lambda x: x * o.m(), setting(o, "__class__", kind(m=lambda self: 2.0))


@case
def class_that_is_asked_for() -> Any:
    o, other = Plain(), kind()
    return lambda x: x * (2.0 if isinstance(o, other) else 1.0), setting(o, "__class__", other)


@case
def namespace_of_an_object() -> Any:
    o = Plain()
    o.s = 1.0  # type: ignore[attr-defined]
    return lambda x: x * o.s, setting(o, "__dict__", {"s": 3.0})  # type: ignore[attr-defined]


@case
def bases() -> Any:
    k = kind(kind(s=1.0))
    o = k()
    return lambda x: x * o.s, setting(k, "__bases__", (kind(s=2.0),))


@case
def callable_object() -> Any:
    o = (k := kind())()
    return lambda x: x * (2.0 if callable(o) else 1.0), setting(k, "__call__", lambda self: 1.0)


@case
def truth() -> Any:
    o = (k := kind())()
    return lambda x: x * (2.0 if o else 1.0), setting(k, "__bool__", lambda self: False)


@case
def equality() -> Any:
    k = kind()
    o, p = k(), k()
    return lambda x: x * (2.0 if o == p else 1.0), setting(k, "__eq__", lambda self, other: True)


def times(number: float) -> Callable[[Any, Any], Any]:
    return lambda self, x: x * number


@case
def special_method_of_another_name() -> Any:
    o = (k := kind(__rmul__=times(1.0)))()
    return lambda x: x * o, setting(k, "__rmul__", times(2.0))


@case
def special_method_that_is_two() -> Any:
    class Number:
        def __mul__(self, x: Any) -> Any:
            return 1.0 * x

        __rmul__ = __mul__

    o, k = Number(), Number
    return lambda x: x * o, setting(k, "__rmul__", times(2.0))


@case
def code_of_a_special_method() -> Any:
    call: Any = lambda self, x: x * 1.0  # noqa: E731  # its name is not that of the method
    o = kind(__call__=call)()
    return lambda x: o(x), setting(call, "__code__", (lambda self, x: x * 2.0).__code__)


@case
def special_method_that_is_an_object() -> Any:
    o = (k := kind(__call__=operator.methodcaller("__mul__", 1.0)))()
    return lambda x: o(x), setting(k, "__call__", operator.methodcaller("__mul__", 2.0))


@case
def special_method_of_the_class() -> Any:
    k = kind(__class_getitem__=classmethod(times(1.0)))
    return lambda x: k[x], setting(k, "__class_getitem__", classmethod(times(2.0)))


@case
def what_a_descriptor_gets() -> Any:
    k = kind(__get__=lambda self, o, kind: 1.0)
    owner = kind(d=k())
    return lambda x: x * owner.d, setting(k, "__get__", lambda self, o, kind: 2.0)


@case
def what_a_descriptor_keeps() -> Any:
    d = kind(__get__=lambda self, o, kind: self.v, __set__=lambda self, o, value: vars(self).update(v=value), v=1.0)()
    o = kind(d=d)()
    return lambda x: x * o.d, setting(o, "d", 2.0)


@case
def what_a_descriptor_keeps_of_others() -> Any:
    values: dict[int, float] = {}
    o = kind(d=kind(__get__=lambda self, o, kind: self.values.get(id(o), 1.0))())()
    vars(type(o))["d"].values = values
    return lambda x: x * o.d, lambda: values.update({id(o): 2.0})


@case
def what_a_descriptor_of_a_class_keeps() -> Any:
    owner = kind(d=(d := kind(__get__=lambda self, o, kind: self.v)()))
    d.v = 1.0
    return lambda x: x * owner.d, setting(d, "v", 2.0)


@case
def what_counts_as_an_instance() -> Any:
    meta = type("Meta", (type,), {"__instancecheck__": lambda self, o: False})
    k = meta("Kind", (), {})
    return lambda x: x * (2.0 if isinstance(1, k) else 1.0), setting(meta, "__instancecheck__", lambda self, o: True)


@case
def property_over_an_attribute() -> Any:
    o = (k := kind())()
    o.s = 1.0
    return lambda x: x * o.s, setting(k, "s", property(lambda self: 2.0))


@case
def method_of_a_library_class() -> Any:
    k = kind(dict)
    o = k(a=1.0)
    return lambda x: x * o.get("a"), setting(k, "get", lambda self, key: 3.0)


@pytest.mark.parametrize("abstract", [type("Own", (abc.ABC,), {}), collections.abc.Sequence])
def test_a_registered_class(abstract: Any) -> None:
    k = kind()
    o, sequence = k(), collections.abc
    run = jit(lambda x: x * (2.0 if isinstance(o, abstract) else 1.0))
    by_module = jit(lambda x: x * (2.0 if isinstance(o, sequence.Sequence) else 1.0))
    assert run(1.0) == by_module(1.0) == 1.0
    abstract.register(k)
    assert run(1.0) == 2.0
    assert by_module(1.0) == 1.0 + isinstance(o, collections.abc.Sequence)


@case
def protocol() -> Any:
    @typing.runtime_checkable
    class HasScale(typing.Protocol):
        s: float

    o = SimpleNamespace()
    return lambda x: x * (2.0 if isinstance(o, HasScale) else 1.0), setting(o, "s", 1.0)


@case
def single_dispatch() -> Any:
    o, dispatch = (k := kind())(), functools.singledispatch(lambda o: 1.0)
    return lambda x: x * dispatch(o), lambda: dispatch.register(k, lambda o: 3.0)


@case
def attribute_of_a_partial() -> Any:
    """Which has a namespace, though its class is a library's, of which all that is known is known once."""
    first, o = functools.partial(len), functools.partial(abs)
    first.s = o.s = 1.0  # type: ignore[attr-defined]
    return lambda x: x * first.s * o.s, setting(o, "s", 3.0)  # type: ignore[attr-defined]


@case
def attribute_that_a_partial_gets() -> Any:
    o = functools.partial(abs)
    return lambda x: x * getattr(o, "s", 1.0), setting(o, "s", 3.0)


@case
def function_in_a_partial() -> Any:
    o = functools.partial(abs, -1.0)
    return lambda x: x * o(), lambda: o.__setstate__((abs, (-3.0,), {}, None))


@case
def receiver_of_a_method() -> Any:
    o = Plain()
    o.s = [1.0]  # type: ignore[attr-defined]
    m = types.MethodType(lambda self: self.s[0], o)
    return lambda x: x * m(), lambda: o.s.__setitem__(0, 3.0)  # type: ignore[attr-defined]


@case
def list_that_a_method_of_c_is_of() -> Any:
    numbers = [1.0, 3.0]
    o = numbers.index
    return lambda x: x * o(3.0), lambda: numbers.insert(0, 0.0)


@case
def name_of_a_function() -> Any:
    def o() -> None: ...

    return lambda x: x * len(o.__name__), setting(o, "__name__", "longer")


@case
def structure_of_c() -> Any:
    structure: Any = kind(ctypes.Structure, _fields_=[("s", ctypes.c_double)])(1.0)
    return lambda x: x * structure.s, setting(structure, "s", 3.0)


@case
def list_that_is_taken_from() -> Any:
    """Not to be taken for one that is only appended to."""
    stack = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    return lambda x: x * stack.pop(), lambda: stack.append(7.0)


ZERO: Any = 0.0
ZEROS: dict[str, Callable[[float], Any]] = {
    "Python": float, "f64": np.float64, "f32": np.float32,
    "complex": complex, "c128": np.complex128, "c64": np.complex64,
    "tuple": lambda z: (1.0, z), "list": lambda z: [z],
    "numbers": lambda z: [(np.float32(z),)],
    "no axes": np.array, "array": lambda z: np.array([z]), "long": lambda z: np.full(10_000, z),
    "f32 array": lambda z: np.full(3, z, "f4"), "complex array": lambda z: np.full(3, z, "c8"),
    "objects": lambda z: np.array([z], object),
}  # fmt: skip


@pytest.mark.parametrize("kind", ZEROS)
def test_the_sign_of_a_zero_outside(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Equal numbers may differ in their bits; a new value of a name, and an array that is written into."""

    def f(x: Any) -> Any:
        return x * np.copysign(1.0, np.ravel(np.asarray(ZERO))[-1].real)

    zero, minus = ZEROS[kind](0.0), ZEROS[kind](-0.0)
    jitted = jit(f)
    for value, expected in ((zero, 2.0), (minus, -2.0)):
        monkeypatch.setitem(globals(), "ZERO", value)
        assert [jitted(2.0) for _ in range(3)] == [expected] * 3
    if isinstance(zero, np.ndarray):
        minus[...] = zero
        assert jitted(2.0) == 2.0
    assert len(jitted.paths()) > 1, "each sign is traced, but not at each call"


# ---- modules ---------------------------------------------------------------------------------------------------------


@case
def constant_of_numpy(patch: pytest.MonkeyPatch) -> Any:
    return lambda x: x * np.pi, lambda: patch.setattr(np, "pi", 3.0)


@case
def constant_of_math(patch: pytest.MonkeyPatch) -> Any:
    return lambda x: x * math.tau, lambda: patch.setattr(math, "tau", 3.0)


@case
def ufunc(patch: pytest.MonkeyPatch) -> Any:
    return lambda x: np.sin(x), lambda: patch.setattr(np, "sin", np.cos)


@case
def function_in_a_module_of_numpy(patch: pytest.MonkeyPatch) -> Any:
    return lambda x: np.linalg.norm(np.array([x, x])), lambda: patch.setattr(np.linalg, "norm", np.sum)


@case
def builtin(patch: pytest.MonkeyPatch) -> Any:
    letter = "a"
    return lambda x: x * ord(letter), lambda: patch.setattr(builtins, "ord", lambda letter: 9.0)


@case
def environment_variable(patch: pytest.MonkeyPatch) -> Any:
    patch.setenv("FNAD_TEST_SCALE", "1")
    return lambda x: x * float(os.environ["FNAD_TEST_SCALE"]), lambda: patch.setenv("FNAD_TEST_SCALE", "3")


@case
def environment_variable_by_function(patch: pytest.MonkeyPatch) -> Any:
    return lambda x: x * float(os.getenv("FNAD_TEST_SCALE", "1")), lambda: patch.setenv("FNAD_TEST_SCALE", "3")


def module_of(patch: pytest.MonkeyPatch, name: str, value: float) -> Any:
    module: Any = types.ModuleType(name)
    module.scale = value
    patch.setitem(sys.modules, name, module)
    return module


@pytest.mark.parametrize("replaced", [False, True])
def test_modules_that_are_imported_while_it_runs(replaced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def by_statement(x: Any) -> Any:
        import fnad_scales as module  # type: ignore[import-not-found]  # noqa: PLC0415

        return x * module.scale

    part = "scales"
    ways = (
        by_statement,
        lambda x: x * __import__("fnad_scales").scale,
        lambda x: x * importlib.import_module("fnad_" + part).scale,
        lambda x: x * sys.modules["fnad_scales"].scale,
    )
    module = module_of(monkeypatch, "fnad_scales", 1.0)
    runs = [jit(way) for way in ways]
    assert [run(1.0) for run in runs] == [1.0] * 4
    if replaced:
        module_of(monkeypatch, "fnad_scales", 3.0)
    else:
        module.scale = 3.0
    assert [run(1.0) for run in runs] == [3.0] * 4


def test_only_the_module_that_is_asked_for_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others that a function could ask for may change."""
    traces: list[int] = []
    systems = {"one": "fnad_one", "other": "fnad_other"}

    @jit
    def f(x: Any) -> Any:
        traces.append(1)
        return x * importlib.import_module(systems["one"] if "fnad_other" else "fnad_other").scale

    one, other = module_of(monkeypatch, "fnad_one", 1.0), module_of(monkeypatch, "fnad_other", 1.0)
    assert f(1.0) == 1.0
    other.scale = 2.0
    assert f(1.0) == 1.0
    assert len(traces) == 1
    one.scale = 3.0
    assert f(1.0) == 3.0


@pytest.mark.parametrize("package", [None, "fnad_first"])
def test_a_module_that_cannot_be_imported_by_its_name(package: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    @jit
    def f(x: Any) -> Any:
        try:
            return x * importlib.import_module(".first" if package else "fnad_first", package).scale
        except (ImportError, TypeError):
            return x

    assert f(1.0) == 1.0
    assert f(1.0) == 1.0
    if package:
        monkeypatch.setitem(sys.modules, package, types.ModuleType(package))
    module_of(monkeypatch, "fnad_first.first" if package else "fnad_first", 2.0)
    assert f(1.0) == 2.0


def test_what_an_import_reads_is_read_once(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module is not imported again, but what its functions read when they are called by the function counts."""
    (tmp_path / "fnad_settings.py").write_text("start, factor = 1.0, 1.0")
    (tmp_path / "fnad_imported.py").write_text(
        "import os\nimport fnad_settings\n\nos.environ.get('FNAD_UNKNOWN')\n\n"
        "def first():\n    return fnad_settings.start\n\n"
        "def scaled(x):\n    return x * fnad_settings.factor\n\n"
        "class Scale:\n    value = scaled(first())\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    settings: Any = importlib.import_module("fnad_settings")
    traces: list[int] = []

    @jit
    def f(x: Any) -> Any:
        import fnad_imported  # type: ignore[import-not-found]  # noqa: PLC0415

        traces.append(1)
        return fnad_imported.scaled(x) + fnad_imported.Scale.value

    assert f(2.0) == 3.0
    settings.start = 5.0
    monkeypatch.setenv("FNAD_UNKNOWN", "1")
    assert f(2.0) == 3.0
    assert len(traces) == 1
    settings.factor = 2.0
    assert f(2.0) == 5.0
    sys.modules["fnad_imported"].Scale.value = 0.0  # type: ignore[attr-defined]
    assert f(2.0) == 4.0
    for name in ("fnad_imported", "fnad_settings"):
        monkeypatch.delitem(sys.modules, name)


def test_what_is_read_after_an_import_that_failed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fnad_broken.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path)
    scale = 2.0

    @jit
    def f(x: Any) -> Any:
        try:
            import fnad_broken  # type: ignore[import-not-found]  # noqa: F401, PLC0415
        except ImportError:
            return (lambda: x * scale)()

    assert f(1.0) == 2.0
    scale = 3.0
    assert f(1.0) == 3.0


def test_a_function_that_is_traced_while_its_module_is_imported(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fnad_early.py").write_text(
        "import fnad\n\nscale, results = 2.0, []\n\n"
        "@fnad.jit\ndef f(x):\n    exec('y = 1', globals())\n    return inner(x)\n\n"
        "def inner(x):\n    return x * scale\n\n"
        "results.append(f(1.0))\nscale = 3.0\nresults.append(f(1.0))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert importlib.import_module("fnad_early").results == [2.0, 3.0]
    monkeypatch.delitem(sys.modules, "fnad_early")


def test_a_module_that_is_imported_for_the_first_time(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        try:
            import fnad_first  # type: ignore[import-not-found]  # noqa: PLC0415
        except ImportError:
            return x
        return x * fnad_first.scale

    run = jit(f)
    assert run(1.0) == 1.0
    (tmp_path / "fnad_first.py").write_text("scale = 2.0")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "fnad_first", importlib.import_module("fnad_first"))
    assert run(1.0) == 2.0
    monkeypatch.delitem(sys.modules, "fnad_first")
    first = jit(lambda x: f(x))
    assert first(1.0) == 2.0
    sys.modules["fnad_first"].scale = 3.0  # type: ignore[attr-defined]
    assert first(1.0) == 3.0


@case
def package_of_a_module(patch: pytest.MonkeyPatch) -> Any:
    package = module_of(patch, "fnad_package", 1.0)
    package.inner = module_of(patch, "fnad_package.inner", 1.0)

    def f(x: Any) -> Any:
        import fnad_package.inner  # type: ignore[import-not-found]  # noqa: PLC0415

        return x * fnad_package.scale * fnad_package.inner.scale

    return f, setting(package, "scale", 3.0)


# ---- outside the process ---------------------------------------------------------------------------------------------


@case
def text_file(path: pathlib.Path) -> Any:
    path.write_text("1")

    def f(x: Any) -> Any:
        with open(path) as file:  # noqa: PTH123
            return x * float(file.read())

    return f, lambda: path.write_text("3")


@case
def text_of_a_path(path: pathlib.Path) -> Any:
    path.write_text("1")
    return lambda x: x * float(path.read_text()), lambda: path.write_text("3")


@case
def whether_a_path_is_there(path: pathlib.Path) -> Any:
    return lambda x: x * (2.0 if path.exists() else 1.0), path.touch


@case
def array_of_a_file(path: pathlib.Path) -> Any:
    np.save(file := path.with_suffix(".npy"), np.ones(2))
    return lambda x: x * np.load(file), lambda: np.save(file, np.zeros(2))


@case
def array_of_a_text(path: pathlib.Path) -> Any:
    np.savetxt(path, np.ones(2))
    return lambda x: x * np.loadtxt(path), lambda: np.savetxt(path, np.zeros(2))


@case
def array_of_bytes(path: pathlib.Path) -> Any:
    np.ones(2).tofile(path)
    return lambda x: x * np.fromfile(path), lambda: np.zeros(2).tofile(path)


@case
def records_by_an_expression(path: pathlib.Path) -> Any:
    path.write_text("1")
    return lambda x: x * np.fromregex(path, r"(\d)", [("a", "f8")])["a"][0], lambda: path.write_text("3")


@case
def line_of_a_file(path: pathlib.Path) -> Any:
    path.write_text("1")
    return (
        lambda x: x * float(linecache.getline(str(path), 1)),
        lambda: path.write_text("30") and linecache.clearcache(),
    )


@case
def table_of_a_file(path: pathlib.Path) -> Any:
    pandas = pytest.importorskip("pandas")
    path.write_text("a\n1\n")
    return lambda x: x * pandas.read_csv(path)["a"].to_numpy()[0], lambda: path.write_text("a\n3\n")


@case
def matrices_of_a_file(path: pathlib.Path) -> Any:
    scipy.io.savemat(path, {"a": np.ones(1)}, appendmat=False)
    change = lambda: scipy.io.savemat(path, {"a": np.zeros(1)}, appendmat=False)  # noqa: E731
    return lambda x: x * scipy.io.loadmat(path, appendmat=False)["a"][0, 0], change


DIRECTORIES: dict[str, Callable[[], str]] = {
    "os.getcwd": os.getcwd,
    "os.path.abspath": lambda: os.path.abspath("a"),  # noqa: PTH100
    "os.path.realpath": lambda: os.path.realpath("a"),
    "os.path.relpath": lambda: os.path.relpath("/a"),
    "Path.cwd": lambda: str(pathlib.Path.cwd()),
    "Path.absolute": lambda: str(pathlib.Path("a").absolute()),
    "Path.resolve": lambda: str(pathlib.Path("a").resolve()),
    "os.path.expanduser": lambda: os.path.expanduser("~"),  # noqa: PTH111
    "os.path.expandvars": lambda: os.path.expandvars("$HOME"),
    "Path.home": lambda: str(pathlib.Path.home()),
    "Path.expanduser": lambda: str(pathlib.Path("~").expanduser()),
}


def test_the_directory_and_the_users_are_read_anew(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = tmp_path, tmp_path / "ab", tmp_path
    places[1].mkdir()
    with together() as named:
        for name, function in DIRECTORIES.items():
            with named(name):
                compiled = jit(lambda x, function=function: x * len(function()))
                for place in places:
                    monkeypatch.chdir(place)
                    monkeypatch.setenv("HOME", str(place))
                    assert compiled(1.0) == compiled(1.0) == len(function())


def test_globals_through_frames_are_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: dict[str, Callable[[Any], Any]] = {
        "_getframe": lambda x: x * sys._getframe().f_globals["FRAMED"],
        "currentframe": lambda x: x * cast("Any", inspect.currentframe()).f_globals["FRAMED"],
        "getclosurevars": lambda x: x * inspect.getclosurevars(framed).globals["FRAMED"],
    }
    with together() as named:
        for name, f in reads.items():
            with named(name):
                compiled = jit(f)
                for value in (1.0, 2.0, 1.0):
                    monkeypatch.setattr(sys.modules[__name__], "FRAMED", value)
                    assert compiled(1.0) == compiled(1.0) == value


FRAMED = 1.0


def framed() -> float:
    return FRAMED


def test_generators_made_inside_are_drawn_from_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np.random.default_rng, "__module__", "numpy.random")  # as scipy.stats does
    fresh, seeded = jit(lambda x: x + np.random.default_rng().random()), lambda x: x + np.random.default_rng(0).random()
    run = jit(seeded)
    assert fresh(0.0) != fresh(0.0)
    assert run(0.0) == run(0.0) == seeded(0.0)


def test_a_file_that_a_library_reads_for_itself_is_no_matter(tmp_path: pathlib.Path) -> None:
    """A module that is imported, or the line of a warning."""
    traces: list[int] = []
    (tmp_path / "fnad_data.txt").write_text("2")
    (tmp_path / "fnad_reader.py").write_text(
        f"with open({str(tmp_path / 'fnad_data.txt')!r}) as file: scale = float(file.read())"
    )
    sys.path.insert(0, str(tmp_path))

    @jit
    def f(x: Any) -> Any:
        traces.append(1)
        return x * importlib.import_module("fnad_reader").scale

    try:
        assert [f(1.0), f(1.0)] == [2.0, 2.0]
    finally:
        sys.path.remove(str(tmp_path))
    assert len(traces) == 1


@case
def class_without_a_module() -> Any:
    names: dict[str, Any] = {}
    exec("Kind = type('Kind', (), {'w': 1.0})", names)
    return lambda x: x * names["Kind"]().w, lambda: setattr(names["Kind"], "w", 2.0)


@case
def class_of_code_without_a_name() -> Any:
    names: dict[str, Any] = {}
    exec("class Kind:\n    w = 1.0", names)
    return lambda x: x * names["Kind"].w, setting(names["Kind"], "w", 2.0)


class Quantity(np.ndarray):
    """An array whose class has methods of its own."""

    def tobytes(self, *_: Any) -> bytes:
        raise NotImplementedError

    def copy(self, *_: Any) -> Any:
        raise NotImplementedError


@case
def array_of_a_class_of_ones_own() -> Any:
    array = np.ones(3).view(Quantity)
    return lambda x: x * array.view(np.ndarray), functools.partial(array.__setitem__, 1, 2.0)


@case
def object_behind_a_weak_proxy() -> Any:
    own = kind()()
    o = SimpleNamespace(target=weakref.proxy(own), gone=weakref.proxy(kind()()), own=own)
    own.w = 1.0
    return lambda x: x * o.target.w * getattr(o, "target").w, setting(own, "w", 2.0)  # noqa: B009  # with all of o


@case
def another_weak_proxy() -> Any:
    targets = [kind(w=1.0), kind(w=2.0)()]
    o = SimpleNamespace(target=weakref.proxy(targets[0]), targets=targets)
    return lambda x: x * o.target.w, setting(o, "target", weakref.proxy(targets[1]))


# ---- all of them -----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:functools.partial will be:FutureWarning")  # of Python 3.13
@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_a_change_is_seen(make: Case, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"path": tmp_path / "read", "patch": monkeypatch}
    f, change = make(**{name: given[name] for name in inspect.signature(make).parameters})
    run = jit(f)
    before = run(2.0)
    run(2.0)
    change()
    now = run(2.0)
    assert not np.array_equal(now, before)
    if make is not list_that_is_taken_from:
        np.testing.assert_array_equal(now, f(2.0))


@pytest.mark.filterwarnings("ignore:functools.partial will be:FutureWarning")  # of Python 3.13
@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_a_change_is_seen_through_a_gradient(
    make: Case, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of which all is passed over but the function; and classes that were met before are looked at no less."""
    given = {"path": tmp_path / "read", "patch": monkeypatch}
    f, change = make(**{name: given[name] for name in inspect.signature(make).parameters})
    run = jit(fnad.value_and_grad(lambda x: np.sum(f(x))))
    before = run(2.0)
    change()
    assert run(2.0) != before


@pytest.mark.parametrize("seed", range(12))
def test_changes_in_any_order(seed: int) -> None:
    """Of several things that one function reads; each is looked at in calls before and after the others change."""
    draw = random.Random(seed)
    makes = [make for make in CASES if not inspect.signature(make).parameters and make is not list_that_is_taken_from]
    pairs = [make() for make in draw.sample(makes, 6)]

    def f(x: Any) -> Any:
        return [g(x) for g, _ in pairs]

    run = jit(f)
    for _, change in (pairs[0][0], lambda: None), *draw.sample(pairs, len(pairs)):
        change()
        for _ in range(draw.randint(1, 4)):
            for found, expected in zip(run(2.0), f(2.0), strict=True):
                np.testing.assert_array_equal(found, expected)


def scaled_by(number: float) -> tuple[Callable[[Any], Any], Callable[[float], None]]:
    def scaled(x: Any) -> Any:
        return number * x

    def change(to: float) -> None:
        nonlocal number
        number = to

    return scaled, change


def test_variables_of_functions_that_nothing_leads_to_are_read_from_the_one_that_runs() -> None:
    changes: list[Callable[[float], None]] = []
    found: Callable[[str], Any] = codecs.lookup_error
    for number in (2.0, 3.0):
        scaled, change = scaled_by(number)
        codecs.register_error(f"scaled by {number}", scaled)  # where only C has it
        changes.append(change)
    product = fnad.jit(lambda x: found("scaled by 2.0")(x) * found("scaled by 3.0")(x))
    assert product(1.0) == 6.0
    changes[0](5.0)
    assert product(1.0) == 15.0
    changes[1](5.0)
    assert product(1.0) == 25.0


def test_rules_are_followed_from_their_function() -> None:
    scale = 2.0
    f = fnad.custom_vjp(lambda x: scale * x)
    f.defvjp(lambda x: (scale * x, None), lambda _, ct: (scale * ct,))
    gradient = fnad.jit(fnad.grad(lambda x: f(x)))
    assert gradient(1.0) == 2.0
    scale = 3.0
    assert gradient(1.0) == 3.0


# ---- what is known of classes from trace to trace --------------------------------------------------------------------


class Sized:
    """A class of which another one is made in each test, so that nothing is known of it."""

    size = 1.0


def with_base(kind: type) -> None:
    kind.__bases__ = (type("Base", (Sized,), {"size": 3.0}),)


CLASS_CHANGES: dict[str, Callable[[type], None]] = {
    "an attribute": lambda kind: setattr(kind, "size", 3.0),
    "a property": lambda kind: setattr(kind, "size", property(lambda self: 3.0)),
    "a function that is asked for what is missing": lambda kind: setattr(kind, "__getattribute__", lambda *_: 3.0),
    "a base": with_base,
}


@pytest.mark.parametrize("change", CLASS_CHANGES)
def test_a_class_that_changes_between_two_traces_is_read_anew(change: str) -> None:
    kind: Any = type("Kind", (type("Base", (Sized,), {}),), {})
    thing = kind()

    runs: list[float] = []

    def read(x: float) -> float:
        runs.append(x)
        return x * thing.size

    assert jit(lambda x: read(x))(2.0) == 2.0
    CLASS_CHANGES[change](kind)
    after = jit(lambda x: read(x))
    assert after(2.0) == after(2.0) == 6.0
    assert len(runs) == 2
    for name in ("__getattribute__", "size"):
        if name in vars(kind):
            delattr(kind, name)
    kind.size = 5.0
    assert after(2.0) == 10.0


# ---- what it costs to ask --------------------------------------------------------------------------------------------


def test_what_arrays_have_again_is_compared_once() -> None:
    array = np.arange(3.0)
    f = jit(lambda x: x * array.sum())
    f(1.0)
    array[0] = 1.0
    assert (f(1.0), f(1.0)) == (4.0, 4.0)
    before = steps(lambda: f(1.0))
    array[0] = 0.0
    assert (f(1.0), f(1.0)) == (3.0, 3.0)
    array[0] = 1.0
    assert (f(1.0), f(1.0)) == (4.0, 4.0)
    assert steps(lambda: f(1.0)) == before


@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")
def test_a_trace_after_a_change_takes_few_steps_for_each_trace_before() -> None:
    """None of these holds, so that their records are not compared with the new one."""
    names = SimpleNamespace(**{f"name{n}": float(n) for n in range(60)})
    f = jit(lambda x: x * sum(getattr(names, f"name{n}") for n in range(60)))

    def after_a_change(value: float) -> int:
        names.name59 = value
        return steps(lambda: f(1.0))

    taken = [after_a_change(float(n)) for n in range(8)]
    assert f(1.0) == sum(range(59)) + 7.0
    assert taken[7] - taken[4] < 3 * 50


TWO = np.array(2.0)


# ---- functions that are made in the trace ----------------------------------------------------------------------------


def with_rest(function: Callable[..., Any], *rest: Any) -> Callable[[Any], Any]:
    """A function of the first argument."""
    return lambda x: function(x, *rest)


def test_a_trace_is_not_kept_by_functions_that_were_made_in_it() -> None:
    traces: list[weakref.ref[Any]] = []

    def product(x: Any, y: Any) -> Any:
        return x * y

    def total(x: Any, count: float) -> Any:
        traces.append(weakref.ref(x.symbol.builder))
        return np.sum(with_rest(product, x)(x)) * count  # by code that ran before it was seen to be defined

    compiled = jit(with_rest(total, 2.0))
    assert compiled(np.ones(3)) == 6.0
    assert traces
    assert traces[0]() is None


def test_a_function_made_before_is_followed_where_another_has_set_its_variable() -> None:
    def make(state: Any) -> tuple[Callable[[Any], None], Callable[[], Any]]:
        def put(value: Any) -> None:
            nonlocal state
            state = value

        def get(factor: Any = TWO) -> Any:
            return state * factor

        return put, get

    first, (put, get) = make(1.0)[1], make(1.0)
    address = id(get)

    def total(x: Any) -> Any:
        first()  # by code that ran before it was seen to be defined
        make(x)
        put(x)
        result = ctypes.cast(address, ctypes.py_object).value()
        put(1.0)
        return result

    compiled = jit(total)
    assert compiled(3.0) == 6.0
    get.__defaults__ = (np.array(5.0),)
    assert compiled(3.0) == 15.0


def standard_objects() -> dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]]:
    """Uses of objects of the standard library that have a state, each with a change of it."""
    counter, turned, chain = collections.Counter(a=1), collections.deque([1.0, 2.0]), collections.ChainMap({"a": 1.0})
    ordered, numbers, octets = collections.OrderedDict(a=1.0, b=2.0), array.array("d", [1.0]), bytearray(b"\x01")
    level, local, logger = contextvars.ContextVar("level", default=1.0), threading.local(), logging.getLogger("quiet")
    parser, local.scale = configparser.ConfigParser(), 1.0
    parser["part"] = {"scale": "1"}
    logger.setLevel(30)
    logger.disabled, logger.propagate = False, True
    logger.handlers.clear()
    options, context, third = SimpleNamespace(scale=1.0), decimal.Context(prec=7), decimal.Decimal(1)
    event, lock, tasks, drawn = threading.Event(), threading.Lock(), queue.Queue[int](), random.Random(1)
    barrier, named = threading.Barrier(2), functools.partial(logging.getLogger, "quiet")
    scale = functools.partial(getattr, options, "scale")
    return {
        "Event": (lambda x: x * event.is_set(), event.set),
        "Lock": (lambda x: x * lock.locked(), lock.acquire),
        "Queue": (lambda x: x * tasks.qsize(), lambda: tasks.put(1)),
        "Random": (lambda x: x * drawn.getstate()[1][1], lambda: drawn.seed(2)),
        "Barrier": (lambda x: x * barrier.broken, barrier.abort),
        "os.environ": (
            lambda x: x * len(os.environ.get("FNAD_TEST_STATE", "")),
            lambda: os.environ.update(FNAD_TEST_STATE="set"),
        ),
        "level of getLogger by a partial": (lambda x: x * named().level, lambda: logger.setLevel(10)),
        "getattr by a partial": (lambda x: x * scale(), lambda: setattr(options, "scale", 2.0)),
        "level of getLogger": (
            lambda x: x * logging.getLogger("quiet").level,
            lambda: logger.setLevel(10),
        ),
        "disabled of getLogger": (
            lambda x: x * logging.getLogger("quiet").disabled,
            lambda: setattr(logger, "disabled", True),
        ),
        "handlers of getLogger": (
            lambda x: x * len(logging.getLogger("quiet").handlers),
            lambda: logger.addHandler(logging.NullHandler()),
        ),
        "level of getChild": (
            lambda x: x * logging.getLogger().getChild("quiet").level,
            lambda: logger.setLevel(10),
        ),
        "hasHandlers": (lambda x: x * (3 + logger.hasHandlers()), lambda: setattr(logger, "propagate", False)),
        "logging.disable": (lambda x: x * logging.root.manager.disable, lambda: logging.disable(10)),
        "warnings.filters": (lambda x: x * len(warnings.filters), lambda: warnings.simplefilter("error", BytesWarning)),
        "Decimal from outside": (lambda x: x * float(third / 3), lambda: decimal.setcontext(context)),
        "Decimal made inside": (lambda x: x * float(decimal.Decimal(1) / 3), lambda: decimal.setcontext(context)),
        "tracemalloc": (lambda x: x * tracemalloc.is_tracing(), tracemalloc.start),
        "repr of a SimpleNamespace": (lambda x: x * len(repr(options)), lambda: setattr(options, "scale", 1.25)),
        "== of SimpleNamespaces": (
            lambda x: x * (options == SimpleNamespace(scale=1.0)),
            lambda: setattr(options, "scale", 2.0),
        ),
        "levels of loggers": (
            lambda x: x * logger.getEffectiveLevel() * (1 + logger.isEnabledFor(20)),
            lambda: logger.setLevel(10),
        ),
        "np.geterr": (lambda x: x * len(np.geterr()["divide"]), lambda: np.seterr(divide="raise")),
        "np.get_printoptions": (
            lambda x: x * np.get_printoptions()["precision"],
            lambda: np.set_printoptions(precision=3),
        ),
        "decimal.getcontext": (lambda x: x * decimal.getcontext().prec, lambda: decimal.setcontext(context)),
        "sys.getrecursionlimit": (
            lambda x: x * sys.getrecursionlimit(),
            lambda: sys.setrecursionlimit(sys.getrecursionlimit() + 10),
        ),
        "gc.get_threshold": (lambda x: x * gc.get_threshold()[1], lambda: gc.set_threshold(700, 12, 10)),
        "Counter": (lambda x: x * counter.total(), lambda: counter.update(a=3)),
        "deque": (lambda x: x * turned[0], lambda: turned.rotate(1)),
        "ChainMap": (lambda x: x * chain["a"], lambda: chain.maps[0].update(a=2.0)),
        "OrderedDict": (lambda x: x * next(iter(ordered.values())), lambda: ordered.move_to_end("a")),
        "array": (lambda x: x * numbers[0], lambda: numbers.__setitem__(0, 2.0)),
        "bytearray": (lambda x: x * octets[0], lambda: octets.__setitem__(0, 2)),
        "ContextVar": (lambda x: x * level.get(), lambda: level.set(3.0)),
        "local": (lambda x: x * local.scale, lambda: setattr(local, "scale", 2.0)),
        "Logger": (lambda x: x * logger.level, lambda: logger.setLevel(10)),
        "ConfigParser": (lambda x: x * parser.getfloat("part", "scale"), lambda: parser.set("part", "scale", "2")),
        "heapq": (lambda x: x * heapq.nsmallest(1, turned)[0], lambda: turned.append(0.5)),
    }


@pytest.mark.parametrize("name", standard_objects())
@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")
def test_state_of_the_standard_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is listed in docs/edge_cases.md."""
    monkeypatch.setenv("FNAD_TEST_STATE", "")
    f, change = standard_objects()[name]
    compiled, limit, threshold = jit(f), sys.getrecursionlimit(), gc.get_threshold()
    with np.errstate(), np.printoptions(), decimal.localcontext():
        before = [f(1.0), compiled(1.0), compiled(1.0)]
        change()
        after = [f(1.0), compiled(1.0), compiled(1.0)]
    sys.setrecursionlimit(limit)
    gc.set_threshold(*threshold)
    logging.disable(logging.NOTSET)
    tracemalloc.stop()
    assert before == [before[0]] * 3
    assert after == [after[0]] * 3 != before
