"""Membership, and the functions of sets, which are refused: how many elements differ depends on their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from fnad.errors import DomainError, TracerEscapeError
from fnad.ir.types import BOOL, I64
from fnad.numpy.operands import as_symbol, common_dtype
from fnad.numpy.rearranging import fresh
from fnad.numpy.registry import implements
from fnad.numpy.sorting import searchsorted, sorted_along
from fnad.numpy.views import ArrayView
from fnad.ops.comparison import bitwise_not, eq
from fnad.ops.indexing import gather
from fnad.ops.piecewise import minimum
from fnad.ops.shape import constant, reshape_to


@implements(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> ArrayView:
    dtype = common_dtype(element, test_elements)
    if kind not in (None, "sort", "table"):
        raise DomainError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    if kind == "table" and dtype.kind not in "biu":
        raise DomainError("The 'table' method is only supported for boolean or integer arrays.")
    x, tests = as_symbol(element, dtype), as_symbol(test_elements, dtype)
    n = tests.aval.size
    if n == 0:
        return fresh(constant(invert, BOOL, x.shape))
    ordered = sorted_along(reshape_to(tests, (n,)), 0)
    place = minimum(searchsorted(ordered, x), constant(n - 1, I64, x.shape))
    found = eq(gather(ordered, place), x)
    return fresh(bitwise_not(found) if invert else found)


def _depends_on_values(function: Callable[..., Any], remedy: str) -> None:
    """Enter a function that is refused because of the shape of its result."""

    def rule(*args: Any, **kwargs: Any) -> NoReturn:
        raise TracerEscapeError(
            f"the shape of the result of numpy.{function.__name__} depends on traced values", remedy=remedy
        )

    implements(function)(rule)


SETS = (
    np.unique,
    np.unique_all,
    np.unique_counts,
    np.unique_inverse,
    np.unique_values,
    np.union1d,
    np.intersect1d,
    np.setdiff1d,
    np.setxor1d,
)
"""Functions whose result has as many elements as there are different ones."""

for _function in SETS:
    _depends_on_values(
        _function, "sort with np.sort, compare neighbours, and reduce with where=; or compute the set outside"
    )
_depends_on_values(np.trim_zeros, "count the zeros outside, and take a slice of that size")
for _function in (np.nonzero, np.flatnonzero, np.argwhere):
    _depends_on_values(
        _function, "use the condition itself: np.where(condition, a, b), np.sum(x, where=condition), x[condition] = v"
    )
