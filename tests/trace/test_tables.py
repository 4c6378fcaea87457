"""Tables of pandas that a compiled function reads: the values of the table, and a trace again where they change."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad

pandas = pytest.importorskip("pandas")

NUMBERS = np.array([[1.0, 2.0], [3.0, 4.0]])


class Label:
    """A label of user code."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Label) and self.name == other.name


class Table(pandas.DataFrame):
    """A table of user code."""


class Column(pandas.Series):
    """A column of user code."""


def kept(table: Any) -> Any:
    """Return the table with an object in `attrs`."""
    table.attrs["note"] = Label("note")
    return table


NAMED, COLUMN = pandas.DataFrame(NUMBERS, columns=["a", "b"]), pandas.DataFrame([[2.0], [4.0]])
MASK = np.array([True, True])
READS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "a text": (NAMED, lambda d: d["b"]),
    "a number": (pandas.DataFrame(NUMBERS), lambda d: d[1]),
    "two levels": (pandas.DataFrame(NUMBERS, columns=[["a", "a"], ["b", "c"]]), lambda d: d["a", "c"]),
    "a mask": (COLUMN, lambda d: d[MASK]),
    "a mask, other arrays": (pandas.DataFrame([[2.0], [4.0]], dtype="Float64"), lambda d: d[MASK]),
    "a mask of pandas": (COLUMN.copy(), lambda d: d[pandas.Series([True, True])]),
    "with an object kept": (kept(COLUMN.copy()), lambda d: d[0]),
    "several": (NAMED.copy(), lambda d: d[["b"]]),
    "a label of user code": (pandas.DataFrame(NUMBERS, columns=["a", Label("b")]), lambda d: d[Label("b")]),
    "beside labels of user code": (pandas.DataFrame(NUMBERS, columns=[Label("a"), "b"]), lambda d: d["b"]),
    "a table of user code": (Table(NUMBERS, columns=["a", "b"]), lambda d: d["b"]),
    "values": (COLUMN.copy(), lambda d: d.values),
    "values of a table of user code": (Table([[2.0], [4.0]]), lambda d: d.values),
    "places": (pandas.Series([2.0, 4.0]), lambda s: np.array([s.iloc[0], s.iloc[1]])),
    "a slice": (pandas.Series([2.0, 4.0]), lambda s: s.iloc[0:2]),
    "a column of user code": (Column([2.0, 4.0]), lambda s: s.iloc[:]),
    "integers": (pandas.Series([2, 4]), lambda s: s.to_numpy()),
}


@pytest.mark.parametrize("name", READS)
def test_a_table_that_changes(name: str) -> None:
    table, read = READS[name]
    compiled = fnad.jit(lambda x: np.sum(x * np.asarray(read(table), float).ravel()))
    for _ in range(2):
        assert compiled(np.ones(2)) == 6.0
    table.iloc[(0, table.shape[1] - 1) if table.ndim == 2 else 0] = 7
    for _ in range(2):
        assert compiled(np.ones(2)) == 11.0


@pytest.mark.parametrize("column", [pandas.Series([0, 1]), Column([0, 1])])
def test_a_column_as_an_index(column: Any) -> None:
    compiled = fnad.jit(lambda x: np.sum(x[column]))
    assert compiled(np.array([2.0, 4.0])) == 6.0
    column.iloc[1] = 0
    assert compiled(np.array([2.0, 4.0])) == 4.0


def test_a_label_that_is_not_there() -> None:
    with pytest.raises(KeyError, match="b"):
        fnad.jit(lambda x: np.sum(x * COLUMN["b"].to_numpy()))(np.ones(1))


def test_another_table_and_another_label() -> None:
    tables: dict[str, Any] = {"a": pandas.DataFrame({"a": [1.0, 2.0]})}
    column = "a"
    compiled = fnad.jit(lambda x: np.sum(x * tables["a"][column].to_numpy()))
    for _ in range(4):
        assert compiled(np.ones(2)) == 3.0
    tables["a"] = pandas.DataFrame({"a": [1.0, 5.0], "b": [0.0, 7.0]})
    assert compiled(np.ones(2)) == 6.0
    column = "b"
    assert compiled(np.ones(2)) == 7.0
    tables["a"].loc[0, "b"] = 1.0
    assert compiled(np.ones(2)) == 8.0
