"""Whether what a function reads is what it was, and what it costs to ask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad.trace import contents


class Table:
    """Columns of several dtypes, as another library may have: as one array they are objects, made anew each time."""

    def __init__(self, *columns: Any) -> None:
        self.columns = list(columns)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([column.astype(object) for column in self.columns]).T


class Unpicklable(Table):
    def __reduce__(self) -> Any:
        raise TypeError


class Restless(Table):
    """A table whose pickle counts how often it was asked for."""

    asked = 0

    def __getstate__(self) -> Any:
        self.asked += 1
        return self.asked


@pytest.mark.parametrize("kind", [Table, Unpicklable, Restless])
def test_a_table_keeps_its_content(kind: type[Table]) -> None:
    numbers, texts = np.arange(3.0), np.array(["a", "b", "c"])
    holds = contents.check_of_array_like(kind(numbers, texts))
    assert holds()
    assert holds()
    for column, old, new in ((numbers, 1.0, np.nan), (texts, "b", "x"), (numbers, 0.0, -0.0)):
        at = list(column).index(old)
        column[at] = new
        assert not holds()
        column[at] = old
        assert holds()


def test_a_table_is_compared_by_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    holds = contents.check_of_array_like(Table(np.arange(3.0), np.array(["a", "b", "c"])))
    monkeypatch.setattr(contents, "same", pytest.fail)
    assert holds()


def test_a_table_of_one_dtype_is_compared_to_the_bit() -> None:
    class Column:
        values = np.array([0.0, np.nan])

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return self.values

    column = Column()
    holds = contents.check_of_array_like(column)
    assert holds()
    for values in (np.array([-0.0, np.nan]), np.array([0.0]), np.array([0.0, np.nan], ">f8"), np.zeros(2)):
        column.values = values
        assert not holds()
