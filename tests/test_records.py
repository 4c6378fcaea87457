"""Named tuples and dataclasses behave as those of the standard library."""

import copy
import dataclasses
import inspect
import pickle
import typing
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import field
from typing import Any

import optree
import pytest

from fnad.records import NamedTuple, dataclass
from tests.together import in_groups


class Point(NamedTuple):
    """A place."""

    x: float
    y: "list[int]"
    name: str = "here"

    @property
    def size(self) -> float:
        return abs(self.x)

    def moved(self, by: float) -> "Point":
        return self._replace(x=self.x + by)


class Reference(typing.NamedTuple):
    x: float
    y: "list[int]"
    name: str = "here"


class Empty(NamedTuple):
    pass


class Long(NamedTuple):
    x: int = 1


CASES: list[Any] = [
    lambda kind: kind(1.0, [2]),
    lambda kind: kind(y=[2], x=1.0),
    lambda kind: kind(1.0, [2], "there")[-1],
    lambda kind: kind(1.0, [2]) == (1.0, [2], "here"),
    lambda kind: hash(kind(1.0, 2, "a")) == hash((1.0, 2, "a")),
    lambda kind: repr(kind(1.0, [2])).replace("Reference", "Point"),
    lambda kind: kind(1.0, [2])._asdict(),
    lambda kind: kind(1.0, [2])._replace(name="there"),
    lambda kind: kind._make([1.0, [2], "there"]),
    lambda kind: (kind._fields, kind.__match_args__, kind._field_defaults, kind.__slots__),
    lambda kind: [kind(1.0, [2]).x, kind(1.0, [2]).y, kind(1.0, [2]).name],
    lambda kind: pickle.loads(pickle.dumps(kind(1.0, [2]))),
    lambda kind: optree.tree_leaves(kind(1.0, [2.0, 3.0])),
    lambda kind: typing.get_type_hints(kind),
    lambda kind: isinstance(kind(1.0, [2]), tuple) and kind.__mro__[-2] is tuple,
]


@pytest.mark.parametrize("n", range(len(CASES)))
def test_they_are_as_those_of_typing(n: int) -> None:
    assert CASES[n](Point) == CASES[n](Reference)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda kind: kind(1.0),
        lambda kind: kind(1.0, [2], "a", 4),
        lambda kind: kind(1.0, [2], z=3),
        lambda kind: kind(1.0, [2], x=3),
        lambda kind: kind._make([1.0]),
        lambda kind: setattr(kind(1.0, [2]), "x", 2.0),
        lambda kind: setattr(kind(1.0, [2]), "z", 2.0),
    ],
)
def test_mistakes_are_the_same(mistake: Any) -> None:
    errors: list[type[Exception]] = []
    for kind in (Point, Reference):
        with pytest.raises((TypeError, AttributeError)) as caught:
            mistake(kind)
        errors.append(caught.type)
    assert errors[0] is errors[1]
    with pytest.raises(TypeError, match=r"Point.__new__\(\) missing 1 required positional argument: 'y'"):
        Point(1.0)  # pyright: ignore[reportCallIssue]
    with pytest.raises((TypeError, ValueError)):
        Point(1.0, [2])._replace(z=3)


def test_methods_and_patterns():
    assert Point(-1.0, []).size == 1.0
    assert Point(-1.0, []).moved(3.0) == (2.0, [], "here")
    match Point(1.0, [2]):
        case Point(x, [y], name="here"):
            assert (x, y) == (1.0, 2)
        case _:
            raise AssertionError
    assert Point.__doc__ == "A place."
    assert Empty() == ()
    assert repr(Empty()) == "Empty()"
    assert Long() == (1,)


def test_a_field_without_a_default_cannot_follow_one_with_a_default():
    with pytest.raises(TypeError, match=r"Wrong has a field without a default after one|cannot follow default field"):

        class Wrong(NamedTuple):
            a: int = 1
            b: int  # pyright: ignore[reportGeneralTypeIssues]


# ---- dataclasses -----------------------------------------------------------------------------------------------------


def classes_of(decorator: Callable[..., Any]) -> dict[str, Any]:
    """Classes of each kind."""

    @decorator(frozen=True, slots=True)
    class Frozen:
        """One."""

        a: int
        b: "list[int]"
        c: str = "c"
        d: Any = field(default_factory=list)

        def twice(self) -> int:
            return 2 * self.a

    @decorator(frozen=True, slots=True, eq=False)
    class ById:
        a: int

        @property
        def half(self) -> float:
            return self.a / 2

    @decorator(slots=True)
    class Open:
        a: int
        mode: str = field(default="", compare=False)
        hidden: int = field(default=3, repr=False)
        later: Any = field(default=None, init=False, repr=False)

    @decorator(frozen=True)
    class Checked:
        a: int
        b: Any = None

        def __post_init__(self) -> None:
            if self.a < 0:
                raise ValueError("negative")
            object.__setattr__(self, "b", (self.b, self.a))

    @decorator(frozen=True, slots=True, weakref_slot=True)
    class Weak:
        a: int

        def __repr__(self) -> str:
            return f"<{self.a}>"

    class Base(ABC):
        __slots__ = ()

        @abstractmethod
        def go(self) -> int: ...

    @decorator(frozen=True, slots=True)
    class Derived(Base):
        a: int

        def go(self) -> int:
            return self.a

    @decorator(frozen=True, slots=True)
    class Nothing:
        pass

    found = [Frozen, ById, Open, Checked, Weak, Derived, Nothing]
    return {kind.__name__: kind for kind in found}


OURS, STANDARD = classes_of(dataclass), classes_of(dataclasses.dataclass)


def attempt(function: Callable[[], Any]) -> Any:
    """A result, or the type of the error."""
    try:
        return function()
    except Exception as error:  # noqa: BLE001
        return type(error)


DATACLASS_CASES: list[Callable[[dict[str, Any]], Any]] = [
    lambda k: repr(k["Frozen"](1, [2])),
    lambda k: repr(k["Frozen"](a=1, b=[2], c="x", d=5)),
    lambda k: k["Frozen"](1, [2]) == k["Frozen"](1, [2]),
    lambda k: k["Frozen"](1, [2]) == (1, [2], "c", []),
    lambda k: k["Frozen"](1, 2, d=3) != k["Frozen"](1, 2, d=4),
    lambda k: hash(k["Frozen"](1, 2, d=3)),
    lambda k: k["Frozen"](1, [2]).d is k["Frozen"](1, [2]).d,
    lambda k: k["Frozen"](1, [2]).twice(),
    lambda k: k["Frozen"].__doc__,
    lambda k: k["Frozen"].__match_args__,
    lambda k: k["Frozen"].__slots__,
    lambda k: k["Frozen"].__qualname__,
    lambda k: str(inspect.signature(k["Frozen"])).partition(" d:")[0],
    lambda k: attempt(lambda: k["Frozen"](1)),
    lambda k: attempt(lambda: k["Frozen"](1, 2, 3, 4, 5)),
    lambda k: attempt(lambda: k["Frozen"](1, 2, z=3)),
    lambda k: attempt(lambda: setattr(k["Frozen"](1, 2), "a", 3)),
    lambda k: attempt(lambda: delattr(k["Frozen"](1, 2), "a")),
    lambda k: hasattr(k["Frozen"](1, 2), "__dict__"),
    lambda k: repr(dataclasses.replace(k["Frozen"](1, [2]), a=7)),
    lambda k: attempt(lambda: dataclasses.replace(k["Frozen"](1, [2]), z=7)),
    lambda k: [f.name for f in dataclasses.fields(k["Frozen"])],
    lambda k: dataclasses.asdict(k["Frozen"](1, [2])),
    lambda k: dataclasses.is_dataclass(k["Frozen"]) and not dataclasses.is_dataclass(int),
    lambda k: repr(copy.deepcopy(k["Frozen"](1, [2]))),
    lambda k: k["ById"](1) == k["ById"](1),
    lambda k: hash(k["ById"](1)) == hash(k["ById"](1)),
    lambda k: (repr(k["ById"](1)), k["ById"](1).half),
    lambda k: (repr(k["Open"](1)), k["Open"](1, mode="x") == k["Open"](1), k["Open"](1, hidden=4) == k["Open"](1)),
    lambda k: attempt(lambda: hash(k["Open"](1))),
    lambda k: attempt(lambda: k["Open"](1, later=2)),
    lambda k: (k["Open"](1).later, attempt(lambda: setattr(k["Open"](1), "later", 2))),
    lambda k: repr(dataclasses.replace(k["Open"](1, "x"), a=2)),
    lambda k: attempt(lambda: dataclasses.replace(k["Open"](1), later=2)),
    lambda k: (k["Open"].__match_args__, k["Open"].__slots__),
    lambda k: (repr(k["Checked"](1)), attempt(lambda: k["Checked"](-1)), hasattr(k["Checked"](1), "__dict__")),
    lambda k: attempt(lambda: setattr(k["Checked"](1), "a", 2)),
    lambda k: (repr(k["Weak"](1)), weakref.ref(k["Weak"](1)) is not None, k["Weak"](1) == k["Weak"](1)),
    lambda k: (k["Derived"](3).go(), repr(k["Derived"](3)), k["Derived"](3) == k["Derived"](3)),
    lambda k: attempt(lambda: weakref.ref(k["Derived"](3))),
    lambda k: (repr(k["Nothing"]()), k["Nothing"]() == k["Nothing"](), hash(k["Nothing"]())),
]


@in_groups("n", range(len(DATACLASS_CASES)))
def test_dataclasses_are_as_those_of_the_standard_library(n: int) -> None:
    assert DATACLASS_CASES[n](OURS) == DATACLASS_CASES[n](STANDARD)


@dataclass(frozen=True, slots=True)
class Kept:
    a: int
    b: Any = None


@dataclass(frozen=True, slots=True)
class KeptLonger(Kept):
    c: int = 3


def test_frozen_dataclasses_are_pickled():
    for value in (Kept(1, [2]), KeptLonger(1, c=5)):
        again = pickle.loads(pickle.dumps(value))
        assert again == value
        assert type(again) is type(value)
    assert Kept(1) != KeptLonger(1)


def test_dataclasses_are_extended():
    """By those of the standard library too."""

    @dataclasses.dataclass(frozen=True)
    class Standard(Kept):
        d: int = 7

    assert repr(Standard(1)).endswith("Standard(a=1, b=None, d=7)")
    with pytest.raises(TypeError, match="non-frozen"):
        dataclasses.dataclass(type("Open", (Kept,), {"__annotations__": {"e": int}}))
    assert KeptLonger.__slots__ == ("c",)
    assert dataclasses.replace(KeptLonger(1), a=2, c=4) == KeptLonger(2, None, 4)


def test_a_dataclass_field_without_a_default_cannot_follow_one_with_a_default():
    class Wrong:
        a: int = 1
        b: int

    for decorator in (dataclass, dataclasses.dataclass):
        with pytest.raises(TypeError, match="default"):
            decorator(Wrong)
