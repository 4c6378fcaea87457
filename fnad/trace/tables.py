"""Columns of pandas's tables, found by their labels without being watched.

pandas calls some hundred functions for one, and to see each of them took most of what watching takes where data is in a
table. None of them is the user's if the table is of pandas's own class and all labels are of known ones. So while a
trace runs, the class has another `__getitem__`, which looks whether they are.
"""

from __future__ import annotations

import sys
from typing import Any

from fnad.watch import unwatched_where

LABELS = frozenset({str, int, float})


class Tables:
    """The class of tables, with its own method and the other one."""

    def __init__(self) -> None:
        self._kind: Any = None
        self._own: Any = None
        self._other: Any = None

    def begin(self) -> None:
        """Give the class the other method, if somebody has imported it."""
        self._kind = getattr(sys.modules.get("pandas.core.frame"), "DataFrame", None)
        if self._kind is None:
            return
        own = self._kind.__getitem__
        if own is not self._own:
            self._own, self._other = own, unwatched_where(self._is_column)(own)
        self._kind.__getitem__ = self._other

    def end(self) -> None:
        """Give it its own one back."""
        if self._kind is not None:
            self._kind.__getitem__ = self._own

    def _is_column(self, table: Any, key: Any) -> bool:
        """Whether pandas asks nobody else for what is under a key."""
        is_label = LABELS.issuperset(map(type, key)) if type(key) is tuple else type(key) in LABELS
        if not is_label or type(table) is not self._kind:
            return False
        return all(map(_are_known, getattr(table.columns, "levels", (table.columns,))))


def _are_known(labels: Any) -> bool:
    """Whether labels are of one class, such as texts or times: those of the user's classes are "mixed"."""
    return not labels.inferred_type.startswith("mixed")


TABLES = Tables()
