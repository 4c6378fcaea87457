"""Columns of pandas's tables are found without being watched, unless code of the user's may be asked for them."""

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
    """Whether what finds a column was hidden, each time that it ran while something was watched."""
    found: list[bool] = []
    own = pandas.DataFrame.__getitem__

    def find(table: Any, key: Any) -> Any:
        found.append(is_hidden())
        return own(table, key)

    monkeypatch.setattr(pandas.DataFrame, "__getitem__", find)
    return found


TABLES: dict[str, tuple[Callable[[], Any], Any, bool]] = {
    "a text": (lambda: pandas.DataFrame(NUMBERS, columns=["a", "b"]), "b", True),
    "a number": (lambda: pandas.DataFrame(NUMBERS), 1, True),
    "two levels": (lambda: pandas.DataFrame(NUMBERS, columns=[["a", "a"], ["b", "c"]]), ("a", "c"), True),
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
