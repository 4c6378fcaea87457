"""The conditions under which a program may run again, in the kinds that native code tests without Python."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from types import CellType
from typing import Any, TypeAlias

from fnad.records import NamedTuple
from fnad.trace.contents import Check, FunctionCheck

MISSING: Any = object()
"""In the place of a value that is not there."""

Name: TypeAlias = tuple[dict[str, Any], str, Any]
Cell: TypeAlias = tuple[CellType, Any]
Attribute: TypeAlias = tuple[Any, str, Any]


class Conditions(NamedTuple):
    """Each of `names` stands for the same object in its namespace; cells, attributes and variables have the same one.

    Objects are of their `kinds`, `functions` are as they were, dictionaries are `empty`, and `others` true. Where one
    does not hold, the program may still run: objects may be equal, or a function exchanged for a while.
    """

    names: Sequence[Name]
    cells: Sequence[Cell]
    attributes: Sequence[Attribute]
    kinds: Sequence[tuple[Any, type]]
    functions: Sequence[FunctionCheck]
    empty: Sequence[dict[str, Any]]
    others: Sequence[Check]
    variables: Sequence[tuple[ContextVar[Any], Any]] = ()
