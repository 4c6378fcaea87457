"""The elements of sparse matrices with traced elements, and their attributes that depend on which elements are 0.

SciPy stores the elements of an array that are not 0. fnad stores all of them, because the derivative by an element that
is 0 is not 0. So the stored elements and their places are other ones than in SciPy, and user code does not get them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fnad.errors import UnsupportedFunctionError
from fnad.upward import UPWARD


class Triplets(NamedTuple):
    """The elements of a matrix and their rows and columns."""

    values: Any
    rows: Any
    columns: Any


class AllElements(Triplets):
    """Elements of which SciPy stores those that are not 0."""

    __slots__ = ()


def kind_of(*origins: Triplets) -> type[Triplets]:
    """The class of elements that are computed from others."""
    return AllElements if any(isinstance(origin, AllElements) for origin in origins) else Triplets


STORED = {"data", "indices", "indptr", "coords", "row", "col"}


def stored(self: Any, name: str) -> Any:
    """`__getattribute__` of a matrix: user code reads what is stored if SciPy stores the same, and SciPy always."""
    if name in STORED and object.__getattribute__(self, "_is_whole"):
        check_reader(name)
    return object.__getattribute__(self, name)


def check_reader(name: str) -> None:
    """Raise where no function of SciPy reads an attribute."""
    if not UPWARD.is_called_by("scipy."):
        what = f"{name} of a sparse matrix depends on traced values, because SciPy stores no zeros"
        raise UnsupportedFunctionError.here(what, remedy="compute with A.toarray(); np.count_nonzero counts elements")
