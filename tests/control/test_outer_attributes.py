"""Arrays outside of a body of a loop that attributes and elements lead to, and that it writes ordinary numbers into."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.errors import MutationError

LIST, DICT, TUPLE = [np.zeros(3)], {"key": np.zeros(3)}, (np.zeros(3),)
CONFIG: Any = ModuleType("config")
CONFIG.table = np.zeros(3)


class Slotted:
    """An object whose array is in a slot."""

    __slots__ = ("table",)

    def __init__(self) -> None:
        self.table = np.zeros(3)


class Holder:
    """An object with arrays, whose methods write into them."""

    shared = np.zeros(3)

    def __init__(self) -> None:
        self.table, self.slotted = np.zeros(3), Slotted()

    def method(self, x: Any) -> Any:
        self.table[0] += 1.0
        return x

    def another(self, x: Any) -> Any:
        return self.method(x)

    def two(self, i: Any, x: Any) -> Any:
        return self.method(x)

    def in_the_class(self, x: Any) -> Any:
        Holder.shared[1] = 3.0
        return x

    @property
    def value(self) -> float:
        self.table[1] = 2.0
        return 1.0

    def __call__(self, x: Any) -> Any:
        self.table += 4.0
        return x


HOLDER, OWN = Holder(), np.zeros(3)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "method": HOLDER.method,
    "method by a method": HOLDER.another,
    "class": HOLDER.in_the_class,
    "object": HOLDER,
}


def case(write: Callable[[], Any]) -> Callable[[], Any]:
    """Enter what writes into an array as a function of x."""

    def f(x: Any) -> Any:
        write()
        return x

    FUNCTIONS[write.__name__] = f
    return write


@case
def attribute() -> None:
    HOLDER.table[0] = 1.0


@case
def slot() -> None:
    HOLDER.slotted.table[0:2] = 1.0


@case
def called() -> None:
    HOLDER(1.0)


@case
def asked() -> float:
    return HOLDER.value


@case
def in_a_list() -> None:
    for array in LIST:
        array[0] = 1.0


@case
def in_a_dict() -> None:
    DICT["key"].fill(1.0)


@case
def in_a_tuple() -> None:
    np.add(TUPLE[0], 1.0, TUPLE[0])


@case
def in_a_module() -> None:
    CONFIG.table.flat[1] = 1.0


@case
def bound_anew() -> None:
    global OWN  # noqa: PLW0603  # it stays the same array
    OWN += 1.0


@case
def by_another_name() -> None:
    array = OWN
    array += 1.0


@case
def passed_on() -> None:
    write_element(HOLDER)


@case
def of_a_function() -> None:
    write_element(write_element)


def write_element(holder: Any) -> None:
    holder.table[2] = 1.0


write_element.table = np.zeros(3)  # pyright: ignore[reportFunctionMemberAccess]
FUNCTIONS["partial"] = functools.partial(lambda array, x: (array.fill(2.0), x)[1], OWN)
FUNCTIONS["transformed"] = fnad.jit(FUNCTIONS["attribute"])


def contents() -> list[Any]:
    arrays = [OWN, HOLDER.table, HOLDER.slotted.table, Holder.shared, *LIST, *TUPLE, *DICT.values(), CONFIG.table]
    return [array.tolist() for array in (*arrays, vars(write_element)["table"])]


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_writes_where_attributes_and_elements_lead_are_an_error(f: Any) -> None:
    before = contents()
    for transform in fnad.grad, fnad.jit:
        with pytest.raises(MutationError, match="an array outside of it") as caught:
            transform(lambda x: fnad.fori_loop(0, 3, lambda i, x: f(x), x))(2.0)
        assert caught.value.source is not None
        assert caught.value.source.file == __file__
        assert contents() == before


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda i, x: (attribute(), x)[1], "attribute writes into table, "),
        (lambda i, x: (in_a_dict(), x)[1], "in_a_dict writes into DICT, "),
        (Holder().two, "method writes into table, "),
        (lambda i, x: (in_a_tuple(), x)[1], "in_a_tuple writes into TUPLE, "),
    ],
)
def test_the_error_has_the_function_and_a_name(f: Any, words: str) -> None:
    with pytest.raises(MutationError, match=words):
        fnad.fori_loop(0, 3, f, 1.0)


def test_an_object_that_is_made_in_a_loop_may_be_written_to() -> None:
    def body(i: Any, x: Any) -> Any:
        class Made:
            table = np.zeros(1)

        made = Holder()
        made.table[0] = 1.0
        made.slotted.table += HOLDER.table
        Made.table[0] = Made().table[0] + 1.0
        return made.another(x) * made.table[0] * Made.table[0]

    assert fnad.fori_loop(0, 2, body, 1.0) == 4.0


def test_an_array_of_a_class_may_be_reached_by_an_object_that_is_made() -> None:
    def body(i: Any, x: Any) -> Any:
        Holder().shared[1] = 3.0
        return x

    with pytest.raises(MutationError, match="an array outside of it"):
        fnad.fori_loop(0, 2, body, 1.0)
    assert not Holder.shared.any()


def test_no_code_runs_to_see_what_is_there() -> None:
    class Refusing:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    gone = weakref.proxy(Holder())
    things = [Refusing(), gone, np, object(), Slotted.__new__(Slotted), int, Holder, None, [[]], {1: {2: 3}}, print]

    def body(i: Any, x: Any) -> Any:
        made = np.zeros(1)
        made[0] = len(things)
        return x * made[0]

    assert fnad.fori_loop(0, 2, body, 1.0) == len(things) ** 2


TEXT = """
def element(x):
    TABLE[0] += 1.0
    return x
def attribute(x):
    HOLDER.table[0] += 1.0
    return x
def called(x):
    return attribute(x)
"""


@pytest.mark.filterwarnings("ignore::fnad.errors.RetraceWarning")
@pytest.mark.parametrize("name", ["element", "attribute", "called"])
def test_code_without_source(name: str) -> None:
    names: dict[str, Any] = {"TABLE": np.zeros(1), "HOLDER": Holder()}
    exec(TEXT, names)
    f = names[name]
    for transform in fnad.grad, fnad.jit:
        with pytest.raises(MutationError, match="an array outside of it"):
            transform(lambda x: fnad.fori_loop(0, 3, lambda i, x: f(x), x))(2.0)
        assert not np.any([*names["TABLE"], *names["HOLDER"].table])
