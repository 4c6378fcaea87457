"""What a compiled function counts up is not what its program depends on, unless it is read as well."""

from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import dataclasses
import functools
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pytest

import fnad
from fnad import jit

Case: TypeAlias = Callable[[], tuple[Callable[[Any], Any], Callable[[], Any]]]
"""Makes a function that counts, and one that says how far."""


class Model:
    """An object with counters in it, in its class and in another object."""

    made = 0

    def __init__(self) -> None:
        self.n = 0
        self.inner: Any = self

    def total(self, x: Any) -> Any:
        self.n += 1
        return np.sum(x)

    def bump(self) -> None:
        self.n += 1

    def told(self) -> Any:
        return self.n


class Slotted:
    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0


@dataclasses.dataclass
class Record:
    n: int = 0
    w: float = 1.0


def of_an_object() -> Any:
    model = Model()

    def f(x: Any) -> Any:
        model.n += 1
        return np.sum(x)

    return f, lambda: model.n


def at_length() -> Any:
    model = Model()

    def f(x: Any) -> Any:
        model.n = model.n + 1
        return np.sum(x)

    return f, lambda: model.n


def downwards() -> Any:
    model = Model()

    def f(x: Any) -> Any:
        model.n -= 1
        return np.sum(x)

    return f, lambda: -model.n


def of_the_receiver() -> Any:
    model = Model()
    return model.total, lambda: model.n


def nested() -> Any:
    model = Model()
    model.inner = Model()

    def f(x: Any) -> Any:
        model.inner.n += 1
        model.inner.n = model.inner.n + 2
        return np.sum(x)

    return f, lambda: model.inner.n // 3


def of_a_slot() -> Any:
    model = Slotted()

    def f(x: Any) -> Any:
        model.n += 1
        return np.sum(x)

    return f, lambda: model.n


def of_a_record() -> Any:
    record = Record()

    def f(x: Any) -> Any:
        record.n += 1
        return np.sum(x) * record.w

    return f, lambda: record.n


def of_a_class() -> Any:
    class Kind:
        n = 0

    def f(x: Any) -> Any:
        Kind.n += 1
        return np.sum(x)

    return f, lambda: Kind.n


def of_the_class_of_an_object() -> Any:
    class Kind:
        n = 0

        def total(self, x: Any) -> Any:
            type(self).n += 1
            return np.sum(x)

    return Kind().total, lambda: Kind.n


def first_of_the_class() -> Any:
    class Kind:
        n = 0

    model = Kind()

    def f(x: Any) -> Any:
        model.n += 1
        return np.sum(x)

    return f, lambda: model.n


def of_a_module() -> Any:
    module: Any = types.ModuleType("counting")
    module.n = 0

    def f(x: Any) -> Any:
        module.n += 1
        return np.sum(x)

    return f, lambda: module.n


def of_the_function() -> Any:
    def f(x: Any) -> Any:
        f.n += 1  # type: ignore[attr-defined]
        return np.sum(x)

    f.n = 0  # type: ignore[attr-defined]
    return f, lambda: f.n  # type: ignore[attr-defined]


def of_a_default() -> Any:
    def f(x: Any, model: Any = Model()) -> Any:  # noqa: B008
        model.n += 1
        return np.sum(x)

    return f, lambda: f.__defaults__[0].n  # type: ignore[index]


def of_a_constant() -> Any:
    model = Model()
    return functools.partial(Model.total, model), lambda: model.n


def of_several_objects() -> Any:
    first, second = Model(), Slotted()

    def f(x: Any) -> Any:
        first.n += 1
        second.n += 1
        Model.made += 0
        return np.sum(x)

    return f, lambda: max(first.n, second.n)


def under_a_lock() -> Any:
    model, lock = Model(), contextlib.nullcontext()

    def f(x: Any) -> Any:
        with lock:
            model.n += 1
        return np.sum(x)

    return f, lambda: model.n


def of_an_element() -> Any:
    calls, table = [0], {"n": 0}

    def f(x: Any) -> Any:
        calls[0] += 1
        table["n"] += 1
        return np.sum(x)

    return f, lambda: max(calls[0], table["n"])


def of_an_element_of_an_attribute() -> Any:
    model: Any = Model()
    model.calls, model.table = [0], {"n": 0}

    def f(x: Any) -> Any:
        model.calls[0] += 1
        model.table["n"] += 1
        return np.sum(x)

    return f, lambda: max(model.calls[0], model.table["n"])


def of_a_float() -> Any:
    n = 0.0

    def f(x: Any) -> Any:
        nonlocal n
        n += 1.0
        return np.sum(x)

    return f, lambda: n


COUNTED = [
    *(of_an_object, at_length, downwards, of_the_receiver, nested, of_a_slot, of_a_record, of_a_class),
    *(of_the_class_of_an_object, first_of_the_class, of_a_module, of_the_function, of_a_default, of_a_constant),
    *(of_several_objects, under_a_lock, of_an_element, of_an_element_of_an_attribute, of_a_float),
]


@pytest.mark.parametrize("make", COUNTED, ids=lambda make: make.__name__)
def test_what_is_only_counted_is_not_what_a_program_depends_on(make: Case) -> None:
    f, count = make()
    run = jit(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [run(np.ones(3)) for _ in range(20)] == [3.0] * 20
    assert count() == 1
    f, count = make()
    derivative = fnad.grad(f)
    for _ in range(3):
        np.testing.assert_array_equal(derivative(np.ones(3)), np.ones(3))
    assert count() == 3  # without `jit` it counts the calls


# ---- what is read as well --------------------------------------------------------------------------------------------


def as_an_operand(model: Any, x: Any) -> Any:
    model.n += 1
    return np.sum(x) * model.n


def before_it_is_counted(model: Any, x: Any) -> Any:
    result = np.sum(x) * model.n
    model.n += 1
    return result


def by_a_branch(model: Any, x: Any) -> Any:
    model.n += 1
    return np.sum(x) if model.n % 2 else np.max(x)


def by_another_function_later(model: Any, x: Any) -> Any:
    model.bump()
    return np.sum(x) * model.told()


def by_another_function_before(model: Any, x: Any) -> Any:
    result = np.sum(x) * model.told()
    model.bump()
    return result


def by_a_name_that_is_computed(model: Any, x: Any) -> Any:
    model.bump()
    return np.sum(x) * getattr(model, "n")  # noqa: B009


def by_its_namespace(model: Any, x: Any) -> Any:
    model.bump()
    return np.sum(x) * vars(model)["n"]


def of_a_copy(model: Any, x: Any) -> Any:
    model.bump()
    return np.sum(x) * copy.copy(model).told()


def into_another_attribute(model: Any, x: Any) -> Any:
    model.m = model.n + 1
    model.n += 1
    return np.sum(x) * model.m


def under_a_name_of_its_own(model: Any, x: Any) -> Any:
    model.n = (n := model.n + 1)
    return np.sum(x) * n


def by_way_of_what_is_made(model: Any, x: Any) -> Any:
    made = Model()
    made.n = model.n + 1
    model.bump()
    return np.sum(x) * made.told()


def of_a_choice(model: Any, x: Any) -> Any:
    model.n = (model.n if model.n < 2 else 7) + 1
    return np.sum(x)


READ = [
    *(as_an_operand, before_it_is_counted, by_a_branch, by_another_function_later, by_another_function_before),
    *(by_a_name_that_is_computed, by_its_namespace, of_a_copy, into_another_attribute, under_a_name_of_its_own),
    *(by_way_of_what_is_made, of_a_choice),
]


@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")
@pytest.mark.parametrize("read", READ, ids=lambda read: read.__name__)
def test_a_counter_that_is_read_is_what_a_program_depends_on(read: Callable[[Any, Any], Any]) -> None:
    model, other = Model(), Model()
    run, x = jit(lambda x: read(model, x)), np.array([1.0, 2.0])
    assert [run(x) for _ in range(5)] == [read(other, x) for _ in range(5)]
    assert model.n == other.n
    model.n = other.n = 3  # as it was before one of the calls
    assert run(x) == read(other, x)


class ByProperty(Model):
    _n = 0

    @property
    def n(self) -> Any:
        return self._n

    @n.setter
    def n(self, value: Any) -> None:
        self._n = value
        self.w = 1.0 + value % 2


class BySetting(Model):
    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name == "n":
            object.__setattr__(self, "w", 1.0 + value % 2)


class ByGetting(Model):
    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        if name == "n":
            self.w = 1.0 + found % 2
        return found


class Meta(type):
    w: float

    def __setattr__(cls, name: str, value: Any) -> None:
        type.__setattr__(cls, name, value)
        if name == "n":
            type.__setattr__(cls, "w", 1.0 + value % 2)


class Growing(int):
    """A number of somebody's own."""

    def __add__(self, other: int) -> Growing:
        Watched.w = 1.0 + int(self) % 2
        return Growing(int(self) + other)


class Watched:
    w = 1.0

    def __init__(self) -> None:
        self.n: Any = Growing(0)


def of_a_metaclass() -> Any:
    return Meta("Kind", (), {"n": 0, "w": 1.0})


@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")
@pytest.mark.parametrize("kind", [ByProperty, BySetting, ByGetting, of_a_metaclass, Watched])
def test_what_runs_code_when_it_is_counted(kind: Callable[[], Any]) -> None:
    def f(model: Any, x: Any) -> Any:
        model.n += 1
        return np.sum(x) * model.w

    def expected() -> list[Any]:
        Watched.w = 1.0
        other = kind()
        return [f(other, np.ones(2)) for _ in range(5)]

    found = expected()
    Watched.w = 1.0
    model = kind()
    run = jit(lambda x: f(model, x))
    assert [run(np.ones(2)) for _ in range(5)] == found


@pytest.mark.parametrize("kind", [types.SimpleNamespace, argparse.Namespace, threading.local])
@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")
def test_objects_whose_attributes_a_library_may_read(kind: Any) -> None:
    model, two = kind(), kind()
    model.n, two.n = 0, 2

    def f(x: Any) -> Any:
        model.n += 1
        return np.sum(x) * (2.0 if model == two else 1.0)

    run = jit(f)
    found = [run(np.ones(2)) for _ in range(4)]
    assert found == [2.0, 2.0 if kind is threading.local else 4.0, 2.0, 2.0]  # which are equal in the second call


def returned(record: Any, x: Any) -> Any:
    record.n += 1
    return x, record


def copied(record: Any, x: Any) -> Any:
    made = copy.copy(record)
    made.n += 1
    record.n += 1
    return x, made


def made_of(record: Any, x: Any) -> Any:
    made = Record()
    made.n = record.n + 1
    record.n += 1
    return x, made


@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")
@pytest.mark.parametrize("f", [returned, copied, made_of])
def test_a_counter_of_a_record_among_the_results(f: Callable[[Any, Any], Any]) -> None:
    record = Record()
    run = jit(lambda x: f(record, x))
    assert [int(run(1.0)[1].n) for _ in range(4)] == [1, 2, 3, 4]


RECORD = Record()
RECORDS: Mapping[str, Callable[[Any], Any]] = {
    "returned": lambda x: (x, RECORD)[1],
    "returned in a list": lambda x: [x, {"a": RECORD}][1]["a"],
    "mapped": lambda x: fnad.tree.map(lambda v: v * x, RECORD),
}


@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")
@pytest.mark.parametrize("f", RECORDS.values(), ids=RECORDS)
def test_a_record_of_which_nobody_names_the_attributes(f: Callable[[Any], Any]) -> None:
    run = jit(f)
    for w in (1.0, 2.0, 2.0, 3.0):
        RECORD.w = w
        assert run(1.0).w == w
    RECORD.extra = 5.0  # type: ignore[attr-defined]
    assert run(1.0).extra == 5.0
    del RECORD.extra  # type: ignore[attr-defined]
    assert not hasattr(run(1.0), "extra")


def test_a_record_that_a_derivative_reads() -> None:
    derivative = fnad.grad(lambda x: sum(fnad.tree.leaves(RECORD)) * x)
    for w in (1.0, 2.0, 2.0, 3.0):
        RECORD.w = w
        assert derivative(1.0) == w


def test_a_counter_that_becomes_something_else() -> None:
    model, calls = Model(), [0]
    traces: list[int] = []

    def f(x: Any) -> Any:
        traces.append(1)
        model.n += 1
        calls[0] += 1
        return np.sum(x)

    run: Any = jit(f)
    for _ in range(20):
        run(np.ones(2))
    model.n = 100
    calls[0] = 3
    run(np.ones(2))
    assert len(traces) == 1
    model.n = np.zeros(1)  # type: ignore[assignment]
    run(np.ones(2))
    assert len(traces) == 2
    model.n, calls[0] = 0, np.zeros(1)  # type: ignore[call-overload]
    run(np.ones(2))
    assert len(traces) == 3
    del model.n
    with pytest.raises(AttributeError):
        run(np.ones(2))


def test_an_object_that_counts_is_not_kept() -> None:
    class Kind:
        def __init__(self) -> None:
            self.n = 0

        @jit
        def total(self, x: Any) -> Any:
            self.n += 1
            return np.sum(x)

    model = Kind()
    for _ in range(20):
        assert model.total(np.ones(2)) == 2.0
    assert model.n == 1
    reference = weakref.ref(model)
    del model
    assert reference() is None


@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")
def test_lists_and_dicts_that_are_read_as_well() -> None:
    calls, table, others = [0], {"n": 0}, collections.Counter[str]()
    model: Any = Model()
    model.calls, model.seen = [0], calls

    def bump() -> None:
        model.calls[0] += 1
        calls[0] += 1
        table["n"] += 1
        others["n"] += 1

    def f(x: Any) -> Any:
        bump()
        return x * told()

    def told() -> int:
        return model.seen[0] + 10 * table["n"] + 100 * others["n"] + 1000 * model.calls[0]

    run = jit(f)
    assert [run(1.0) for _ in range(4)] == [1111.0, 2222.0, 3333.0, 4444.0]
