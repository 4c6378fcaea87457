"""Arrays that have to lie in memory in some order: a copy or the array itself, which a trace does not know."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.types import native_dtype
from fnad.numpy.operands import as_symbol
from fnad.numpy.registry import implements
from fnad.numpy.views import ArrayView, Permute, Reshape

C_ORDER = {"C", "CONTIGUOUS", "C_CONTIGUOUS"}
OTHERS = {"F", "FORTRAN", "F_CONTIGUOUS", "A", "ALIGNED", "W", "WRITEABLE", "O", "OWNDATA", "E", "ENSUREARRAY"}


def laid_out(a: Any, dtype: Any, least: int, certain: bool) -> ArrayView:
    """Return an array of at least this many axes, surely the array itself or not."""
    x = as_symbol(a, None if dtype is None else native_dtype(dtype))
    return ArrayView(x, (Reshape(x.shape or (1,) * least, certain),), is_array=True)


def other_order(a: Any, dtype: Any) -> ArrayView:
    """Return an array in an order other than C: the array itself or a copy."""
    x = as_symbol(a, None if dtype is None else native_dtype(dtype))
    backwards = Permute(tuple(range(x.ndim))[::-1])
    return ArrayView(x, (backwards, Reshape(x.shape[::-1], is_certain=False), backwards), is_array=True)


@implements(np.ascontiguousarray)
def ascontiguousarray(a: Any, dtype: Any = None) -> ArrayView:
    return laid_out(a, dtype, 1, certain=False)


@implements(np.asfortranarray)
def asfortranarray(a: Any, dtype: Any = None) -> ArrayView:
    return other_order(a, dtype) if as_symbol(a).shape else ascontiguousarray(a, dtype)


@implements(np.require)
def require(a: Any, dtype: Any = None, requirements: Any = None) -> ArrayView:
    wanted = {requirement.upper() for requirement in requirements or ()}
    if unknown := wanted - C_ORDER - OTHERS:
        raise ShapeError(f"numpy.require knows no requirement {min(unknown)!r}")
    return other_order(a, dtype) if wanted - C_ORDER else laid_out(a, dtype, 0, certain=not wanted)
