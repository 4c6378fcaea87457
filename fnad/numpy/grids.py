"""Grids of points: from their axes, and along a line whose ends are traced."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, native_dtype
from fnad.numpy.creating import linspace
from fnad.numpy.joining import join
from fnad.numpy.operands import as_array, common_dtype, static_array, to_dtype
from fnad.numpy.rearranging import expand_dims, fresh, moveaxis, reshape_steps
from fnad.numpy.registry import RULES, implements
from fnad.numpy.ufuncs import divide, multiply
from fnad.numpy.views import ArrayView, Broadcast, Reshape
from fnad.ops.shape import broadcast_to, reshape_to, slice_axis


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        raise ShapeError("Valid values for `indexing` are 'xy' and 'ij'.")
    axes = [as_array(x) for x in xi]
    places = list(range(len(axes)))
    if indexing == "xy" and len(axes) > 1:
        places[:2] = [1, 0]
    sizes = [x.aval.size for x in axes]
    shape = tuple(sizes[place] for place in places)
    laid = [tuple(x.aval.size if i == p else 1 for i in range(len(axes))) for x, p in zip(axes, places, strict=True)]
    steps = [reshape_steps(x.shape, form, "C") for x, form in zip(axes, laid, strict=True)]
    views = [ArrayView(x, s if sparse else (*s, Broadcast(shape))) for x, s in zip(axes, steps, strict=True)]
    if copy:
        return tuple(fresh(view.read()) for view in views)
    return views if sparse else tuple(views)


@implements(np.ix_)
def ix_(*args: Any) -> tuple[ArrayView, ...]:
    axes = [as_array(static_array(a) if as_array(a).dtype == BOOL else a) for a in args]
    if any(x.ndim != 1 for x in axes):
        raise ShapeError("Cross index must be 1 dimensional")
    count = len(axes)
    return tuple(
        ArrayView(x, (Reshape(tuple(x.shape[0] if j == i else 1 for j in range(count))),)) for i, x in enumerate(axes)
    )


# ---- along a line ----------------------------------------------------------------------------------------------------


@implements(np.logspace)
def logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: Any = 0,
) -> Symbol:
    bases = as_array(base)
    if bases.ndim:
        start, stop, bases = _of_one_rank([start, stop, bases])
        bases = expand_dims(bases, axis).read()
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    result = RULES[np.power](bases if bases.ndim else base, exponents)
    return result if dtype is None else to_dtype(result, native_dtype(dtype))


def _of_one_rank(values: list[Any]) -> list[Symbol]:
    arrays = [as_array(value) for value in values]
    ndim = max(x.ndim for x in arrays)
    return [reshape_to(x, (1,) * (ndim - x.ndim) + x.shape) for x in arrays]


@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: Any = 0) -> Symbol:
    wanted = np.dtype(float if dtype is None else dtype)
    kind = np.result_type(common_dtype(as_array(start), as_array(stop)), float(0), np.zeros((), wanted))
    first, last = as_array(start, kind), as_array(stop, kind)
    sign = RULES[np.sign](first)
    first, last = divide(first, sign), divide(last, sign)
    logs = RULES[np.log10](first), RULES[np.log10](last)
    inner = to_dtype(logspace(*logs, num, endpoint), kind)
    result = multiply(_with_ends(inner, first, last, endpoint), sign)
    return to_dtype(moveaxis(result, 0, axis).read(), kind if dtype is None else native_dtype(dtype))


def _with_ends(samples: Symbol, first: Symbol, last: Symbol, endpoint: bool) -> Symbol:
    """Return samples along axis 0 that hit the ends exactly."""
    n = samples.shape[0]
    row = (1, *samples.shape[1:])
    parts = [broadcast_to(first, row)] if n else []
    hits_last = endpoint and n > 1
    parts.append(slice_axis(samples, 0, len(parts), n - hits_last))
    return join([*parts, *([broadcast_to(last, row)] if hits_last else [])], 0)
