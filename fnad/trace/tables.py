"""What is read of pandas's tables, found without being watched: columns by their labels, rows by masks, numbers.

pandas calls some hundred functions for one, and to see each of them took most of what watching takes where data is in a
table. None of them is the user's if the table is of pandas's own class, all labels are of known ones and, where the
data itself is asked for, that is in NumPy's arrays. So while a trace runs, the classes have other methods, which look
whether they are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from fnad.watch import unwatched_where

LABELS = frozenset({str, int, float})

Condition = Callable[..., bool]


class Method:
    """A method of a class of pandas's, and the other one, which is not watched where a condition holds."""

    def __init__(self, module: str, kind: str, name: str, condition: Condition) -> None:
        self._module, self._class, self._name, self._condition = module, kind, name, condition
        self._kind: Any = None
        self._own: Any = None
        self._other: Any = None
        self._is_inherited = False

    def begin(self) -> None:
        """Give the class the other method, if somebody has imported it."""
        self._kind = getattr(sys.modules.get(self._module), self._class, None)
        if self._kind is None:
            return
        own = getattr(self._kind, self._name)
        if own is not self._own:
            self._own, self._other = own, self._unwatched(own)
        self._is_inherited = self._name not in vars(self._kind)
        setattr(self._kind, self._name, self._other)

    def _unwatched(self, own: Any) -> Any:
        if isinstance(own, property):
            return property(unwatched_where(self._condition)(cast("Any", own.fget)), own.fset, own.fdel, own.__doc__)
        return unwatched_where(self._condition)(own)

    def end(self) -> None:
        """Give it its own one back."""
        if self._kind is None:
            return
        if self._is_inherited:
            delattr(self._kind, self._name)
        else:
            setattr(self._kind, self._name, self._own)


def _is_known_part(table: Any, key: Any) -> bool:
    """Whether pandas asks nobody else for what is under a key: the label of a column, or a mask of rows.

    What somebody has kept in `attrs` is copied, by methods of its own.
    """
    if type(table) is not class_of("frame", "DataFrame") or table.attrs:
        return False
    if type(key) is np.ndarray:
        return key.dtype == bool and _is_in_arrays(table) and isinstance(table.index.dtype, np.dtype)
    is_label = LABELS.issuperset(map(type, key)) if type(key) is tuple else type(key) in LABELS
    return is_label and all(map(_are_known, getattr(table.columns, "levels", (table.columns,))))


def _are_known(labels: Any) -> bool:
    """Whether labels are of one class, such as texts or times: those of the user's classes are "mixed"."""
    return not labels.inferred_type.startswith("mixed")


def _is_known_table(table: Any) -> bool:
    """Whether a table is pandas's own, with numbers."""
    return type(table) is class_of("frame", "DataFrame") and _is_in_arrays(table)


def _is_known_place(places: Any, key: Any) -> bool:
    """Whether it is one number, by its place in a column."""
    return type(key) is int and is_column(places.obj)


def _is_in_arrays(table: Any) -> bool:
    """Whether a table has numbers alone, in arrays of NumPy's: others may be of somebody else's class."""
    blocks = getattr(getattr(table, "_mgr", None), "blocks", None)
    return blocks is not None and all(_is_of_numbers(block.dtype) for block in blocks)


def is_column(value: Any) -> bool:
    """Whether a value is a column, or a row, of pandas's own class, with numbers in an array of NumPy's."""
    return type(value) is class_of("series", "Series") and _is_of_numbers(value.dtype)


def _is_of_numbers(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and not dtype.hasobject


def class_of(module: str, name: str) -> Any:
    """A class of pandas's, if somebody has imported it."""
    return getattr(sys.modules.get(f"pandas.core.{module}"), name, None)


class Tables:
    """The classes of tables, with their own methods and the other ones."""

    def __init__(self) -> None:
        self._methods = [
            Method("pandas.core.frame", "DataFrame", "__getitem__", _is_known_part),
            Method("pandas.core.frame", "DataFrame", "values", _is_known_table),
            Method("pandas.core.indexing", "_iLocIndexer", "__getitem__", _is_known_place),
        ]

    def begin(self) -> None:
        """Give the classes the other methods."""
        for method in self._methods:
            method.begin()

    def end(self) -> None:
        """Give them their own ones back."""
        for method in self._methods:
            method.end()


TABLES = Tables()
