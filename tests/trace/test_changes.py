"""What is said of a change for which a compiled function is traced again."""

from __future__ import annotations

import collections
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad
from fnad import jit
from fnad.errors import RetraceWarning
from fnad.trace.environment import Environment
from tests.together import in_groups


class First:
    pass


class Second:
    pass


class Values(np.ndarray):
    pass


def put(place: Any, to: Any) -> Callable[[Any], Any]:
    """Return what writes an element."""
    return lambda value: value.__setitem__(place, to)


def exchanged(to: Any) -> Callable[[Any], Any]:
    """Return what has another value in the place of one."""
    return lambda _: to


def renamed(value: dict[str, Any]) -> None:
    value["b"] = value.pop("a")


def of_shape(value: Any) -> None:
    value.shape = 3, 2


def of_dtype(value: Any) -> None:
    value.dtype = np.int64


def of_class(value: Any) -> None:
    value.__class__ = Second


def of_namespace(value: Any) -> None:
    value.__dict__ = {"m": 1}


CONTENT = "the {} value has another content"
CASES: dict[str, tuple[Any, Callable[[Any], Any], str]] = {
    "an element": (np.zeros(3), put(1, 2.0), ", where element 1 was 0.0, and is 2.0"),
    "several": (
        np.zeros(3),
        put(slice(1, 3), -0.0),
        ", where element 1 was 0.0, and is -0.0, the first of 2 that differ",
    ),
    "a matrix": (np.zeros((3, 4), np.float32, "F"), put((1, 2), 0.1), ", where element (1, 2) was 0.0, and is 0.1"),
    "no axis": (np.array(1), put((), 2), ", where its element was 1, and is 2"),
    "a large array": (
        np.zeros((100, 100), order="F"),
        put((slice(None), 7), np.nan),
        ", where element (0, 7) was 0.0, and is nan, the first of 100 that differ",
    ),
    "every other": (np.zeros(5000, complex)[::2], put(4, 1j), ", where element 4 was 0j, and is 1j"),
    "extended": (np.zeros(1000, np.longdouble), put(3, 1), ", where element 3 was 0.0, and is 1.0"),
    "texts": (np.array(["a", "b"]), put(1, "c"), ", where element 1 was 'b', and is 'c'"),
    "records": (
        np.zeros(2, [("a", "f8"), ("b", "i4")]),
        put(1, (1.0, 2)),
        ", where element 1 was (0.0, 0), and is (1.0, 2)",
    ),
    "objects": (np.array([1, None], object), put(0, 3), ", where element 0 was 1, and is 3"),
    "a class of the user's": (np.zeros(3).view(Values), put(1, 5), ", where element 1 was 0.0, and is 5.0"),
    "a shape": (np.zeros((2, 3)), of_shape, ": its shape was (2, 3), and is (3, 2)"),
    "a dtype": (np.zeros((2000, 3)), of_dtype, ": its dtype was float64, and is int64"),
    "a list": ([1, 2], put(1, 3), ", where element 1 was 2, and is 3"),
    "a longer list": ([1, 2], lambda value: value.append(3), ": it had 2 elements, and has 3"),
    "a deque": (collections.deque([1, 2]), put(1, 3), ", where element 1 was 2, and is 3"),
    "a dict": ({"a": 1, "b": 2}, put("b", 3), ", where the value of 'b' was 2, and is 3"),
    "a key": ({"a": 1}, renamed, ", where key 0 was 'a', and is 'b'"),
    "a set": ({1}, lambda value: value.symmetric_difference_update({1, 2}), ", where an element was 1, and is 2"),
    "an element of another class": (
        [First()],
        put(0, Second()),
        ", where element 0 was of class First, and is of class Second",
    ),
    "an element of the class": ([First()], put(0, First()), ", where element 0 is another First"),
    "no number any more": ([1], put(0, First()), ", where element 0 was 1, and is of class First"),
}
NAMES: dict[str, tuple[Any, Callable[[Any], Any], str]] = {
    "a number": (1, exchanged(2.0), "value was 1, and is 2.0"),
    "an object": (First(), exchanged(First()), "value is another First"),
    "an object of another class": (First(), exchanged(Second()), "value was of class First, and is of class Second"),
    "of another class now": (First(), of_class, "value was of class First, and is of class Second"),
    "another namespace": (First(), of_namespace, "value has another __dict__"),
    "a function": (of_shape, exchanged(of_dtype), "value is another function"),
}
value: Any = None


def environment_of(run: Any) -> Environment:
    """Return what the first path of a compiled function was traced from."""
    return next(iter(run._paths.values())).known[0].environment


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # NumPy's, to set a shape or dtype
@in_groups("name", [*CASES, *NAMES])
def test_what_has_changed(name: str) -> None:
    global value  # noqa: PLW0603
    kept, change, expected = (CASES | NAMES)[name]
    value, text = kept, (CONTENT.format(type(kept).__name__) if name in CASES else "") + expected

    def reads(x: Any) -> Any:
        return x, value is None

    run = jit(reads)
    run(1.0)
    environment = environment_of(run)
    assert environment.holds()
    if (other := change(kept)) is not None:
        value = other
    assert not environment.holds()
    found = environment.difference()
    assert (found.what, found.source.function if found.source else None) == (text, "reads")


def test_what_has_changed_in_the_object_of_a_method() -> None:
    class Kind:
        def __init__(self) -> None:
            self.w, self.seen = np.zeros(3), list[int]()

        @jit
        def scaled(self, x: Any) -> Any:
            return x * self.w[0]

        @jit
        def noted(self, x: Any) -> Any:
            self.seen.append(1)
            return x

    def run(change: Callable[[int], Any], call: Callable[[float], Any]) -> str:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for i in range(5):
                change(i)
                call(1.0)
        assert [warning.category for warning in caught] == [RetraceWarning]
        return str(caught[0].message).partition(": ")[2].splitlines()[0]

    model = Kind()
    elements = "the ndarray w has another content, where element 1 was 2.0, and is 3.0"
    assert run(lambda i: put(1, i)(model.w), model.scaled) == elements
    assert run(lambda _: None, model.noted) == "seen is another list, or has another content"


def test_what_is_counted_and_is_no_number_any_more() -> None:
    model: Any = First()
    model.n, calls = 0, [0]

    @fnad.jit
    def counts(x: Any) -> Any:
        model.n += 1
        calls[0] += 1
        return x

    counts(1.0)
    environment = environment_of(counts)
    assert environment.holds()
    model.n = First()
    assert not environment.holds()
    assert environment.difference().what == "n was 0, and is of class First"
    model.n, calls[0] = 7, First()  # type: ignore[call-overload]
    assert environment.difference().what == "calls has more than numbers in it"
    calls = [0]
    assert environment.difference().what == "calls is another list"
    calls[0] = 1
    assert not environment.holds()
