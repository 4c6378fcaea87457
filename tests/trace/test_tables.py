"""Parts of pandas's tables are found without being watched, unless code of the user's may be asked for them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.watch import is_hidden

pandas = pytest.importorskip("pandas")

NUMBERS = np.array([[1.0, 2.0], [3.0, 4.0]])


class Label:
    """A label of the user's."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Label) and self.name == other.name


class Table(pandas.DataFrame):
    """A table of the user's."""


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether what finds a part of a table was hidden, each time that it ran while something was watched."""
    return noting(monkeypatch, pandas.DataFrame, "__getitem__")


def noting(monkeypatch: pytest.MonkeyPatch, kind: type, name: str) -> list[bool]:
    """Have a method, or a property, note whether it is hidden."""
    found: list[bool] = []
    own: Any = getattr(kind, name)
    called = getattr(own, "fget", own)

    def find(*args: Any) -> Any:
        found.append(is_hidden())
        return called(*args)

    monkeypatch.setattr(kind, name, property(find) if isinstance(own, property) else find)
    return found


def kept(table: Any) -> Any:
    """A table with something in `attrs`."""
    table.attrs["note"] = Label("note")
    return table


TABLES: dict[str, tuple[Callable[[], Any], Any, bool]] = {
    "a text": (lambda: pandas.DataFrame(NUMBERS, columns=["a", "b"]), "b", True),
    "a number": (lambda: pandas.DataFrame(NUMBERS), 1, True),
    "two levels": (lambda: pandas.DataFrame(NUMBERS, columns=[["a", "a"], ["b", "c"]]), ("a", "c"), True),
    "a mask": (lambda: pandas.DataFrame([[2.0], [4.0]]), np.array([True, True]), True),
    "a mask, other arrays": (lambda: pandas.DataFrame([[2.0], [4.0]], dtype="Float64"), np.array([True, True]), False),
    "a mask, objects": (lambda: pandas.DataFrame([[2.0], [4.0]], dtype=object), np.array([True, True]), False),
    "a mask of pandas's": (lambda: pandas.DataFrame([[2.0], [4.0]]), pandas.Series([True, True]), False),
    "with something kept": (lambda: kept(pandas.DataFrame([[2.0], [4.0]])), 0, False),
    "several": (lambda: pandas.DataFrame(NUMBERS, columns=["a", "b"]), ["b"], False),
    "a label of the user's": (lambda: pandas.DataFrame(NUMBERS, columns=["a", Label("b")]), Label("b"), False),
    "beside labels of the user's": (lambda: pandas.DataFrame(NUMBERS, columns=[Label("a"), "b"]), "b", False),
    "a table of the user's": (lambda: Table(NUMBERS, columns=["a", "b"]), "b", False),
}


@pytest.mark.parametrize(("make", "key", "expected"), TABLES.values(), ids=TABLES)
def test_a_column(make: Callable[[], Any], key: Any, expected: bool, hidden: list[bool]) -> None:
    table, own = make(), pandas.DataFrame.__getitem__
    found = fnad.jit(lambda x: np.sum(x * table[key].to_numpy().ravel()))(np.ones(2))
    assert found == 6.0
    assert set(hidden) == {expected}
    assert pandas.DataFrame.__getitem__ is own


NUMBERED: dict[str, tuple[Any, bool]] = {
    "pandas's": (pandas.DataFrame([[2.0], [4.0]]), True),
    "other arrays": (pandas.DataFrame([[2.0], [4.0]], dtype="Float64"), False),
    "the user's": (Table([[2.0], [4.0]]), False),
}


@pytest.mark.parametrize(("table", "expected"), NUMBERED.values(), ids=NUMBERED)
def test_the_numbers_of_a_table(table: Any, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = noting(monkeypatch, pandas.DataFrame, "values")
    assert fnad.jit(lambda x: np.sum(x * table.values.astype(float).ravel()))(np.ones(2)) == 6.0
    assert set(found) == {expected}


class Column(pandas.Series):
    """A column of the user's."""


COLUMNS: dict[str, tuple[Any, Any, bool]] = {
    "a place": (pandas.Series([2.0, 4.0]), 1, True),
    "a slice": (pandas.Series([2.0, 2.0]), slice(2), False),
    "other arrays": (pandas.Series([2.0, 4.0], dtype="Float64"), 1, False),
    "objects": (pandas.Series([2.0, 4.0], dtype=object), 1, False),
    "the user's": (Column([2.0, 4.0]), 1, False),
}


@pytest.mark.parametrize(("column", "place", "expected"), COLUMNS.values(), ids=COLUMNS)
def test_a_number_of_a_column(column: Any, place: Any, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type(column.iloc)
    found = noting(monkeypatch, kind, "__getitem__")
    assert fnad.jit(lambda x: np.sum(x * np.asarray(column.iloc[place])))(np.ones(2)) in (4.0, 8.0)
    assert set(found) == {expected}


def test_an_inherited_method_is_inherited_again() -> None:
    column = pandas.Series([2.0, 4.0])
    fnad.jit(lambda x: x * column.iloc[1])(1.0)
    assert "__getitem__" not in vars(type(column.iloc))


@pytest.mark.parametrize(("column", "expected"), [(pandas.Series([0, 1]), True), (Column([0, 1]), False)])
def test_a_column_as_an_index(column: Any, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = noting(monkeypatch, pandas.Series, "__array__")
    assert fnad.jit(lambda x: np.sum(x[column]))(np.array([2.0, 4.0])) == 6.0
    assert set(found) == {expected}


def test_the_class_has_its_own_method_again_after_an_error() -> None:
    own, table = pandas.DataFrame.__getitem__, pandas.DataFrame({"a": [1.0]})
    with pytest.raises(KeyError, match="b"):
        fnad.jit(lambda x: np.sum(x * table["b"].to_numpy()))(np.ones(1))
    assert pandas.DataFrame.__getitem__ is own


def test_a_function_that_is_called_for_the_table_is_watched() -> None:
    kept: dict[str, Any] = {"a": pandas.DataFrame({"a": [1.0, 2.0]})}
    column = "a"

    def total(x: Any) -> Any:
        return np.sum(x * kept["a"][column].to_numpy())

    compiled = fnad.jit(total)
    for _ in range(4):  # which pay for the traces that follow
        assert compiled(np.ones(2)) == 3.0
    kept["a"] = pandas.DataFrame({"a": [1.0, 5.0], "b": [0.0, 7.0]})
    assert compiled(np.ones(2)) == 6.0
    column = "b"
    assert compiled(np.ones(2)) == 7.0
    kept["a"].loc[0, "b"] = 1.0
    assert compiled(np.ones(2)) == 8.0
