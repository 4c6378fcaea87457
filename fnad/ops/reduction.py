"""Reductions and running sums.

`reduce_sum` is next to its transpose in `fnad/ops/shape.py`. Where several elements are the extremum they share its
derivative evenly. The derivative of a product goes down the tree of pairwise products, so that it is exact to all
orders where elements are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.primitive import ArgFold, Cumulative, Fold, NonDifferentiable, Primitive, Pull, Push, Sample, declare
from fnad.ir.ranges import NONNEGATIVE, POSITIVE, Range
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Aval
from fnad.ops.arithmetic import add, div, mul
from fnad.ops.comparison import bitwise_or, eq, isnan, select
from fnad.ops.constructors import BOOLS, NUMBERS, ORDERED, Domain, by_name, check_dtype, linear, primitive
from fnad.ops.conversion import convert
from fnad.ops.shape import (
    Ints,
    broadcast_in_dim,
    check_axes,
    concatenate,
    in_front,
    infer_reduction,
    reshape_to,
    sample,
    slice_axis,
    sum_over,
    zeros_like,
)


def reduction_samples(domain: Domain) -> Iterable[Sample]:
    """Operands for reductions: every dtype, each kind of axes."""
    for dtype in by_name(domain):
        yield Sample((sample((2, 3), dtype),), {"axes": (1,)})
    widest = by_name(domain)[-1]
    for axes in ((), (0,), (1,), (0, 2), (0, 1, 2)):
        yield Sample((sample((2, 3, 4), widest),), {"axes": axes})


# ---- product -----------------------------------------------------------------------------------------------------


def _push_prod(results: Any, primals: Any, tangents: Any, *, axes: Ints) -> list[Symbol | None]:
    (x,), (dx,) = primals, tangents
    if dx is None:
        return [None]
    return [_tangent_of_product(in_front(x, axes), in_front(dx, axes))]


def _tangent_of_product(x: Symbol, dx: Symbol) -> Symbol:
    """Multiply dual numbers pairwise along axis 0 until one is left; return its tangent."""
    if x.shape[0] == 0:
        return zeros_like(x.aval.with_shape(x.shape[1:]))
    while (count := x.shape[0]) > 1:
        half = count // 2
        (a, b), (da, db) = _halves(x, half), _halves(dx, half)
        product, tangent = mul(a, b), add(mul(da, b), mul(a, db))
        rest = slice(2 * half, count)
        x, dx = _with_rest(product, x, rest), _with_rest(tangent, dx, rest)
    return reshape_to(dx, x.shape[1:])


def _halves(x: Symbol, half: int) -> tuple[Symbol, Symbol]:
    return slice_axis(x, 0, 0, half), slice_axis(x, 0, half, 2 * half)


def _with_rest(paired: Symbol, x: Symbol, rest: slice) -> Symbol:
    return concatenate(paired, slice_axis(x, 0, rest.start, rest.stop), axis=0) if rest.start < rest.stop else paired


def _prod_samples() -> Iterable[Sample]:
    yield from reduction_samples(NUMBERS)
    yield Sample((np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0]]),), {"axes": (1,)})
    yield Sample((np.zeros((0, 2)),), {"axes": (0,)})


@primitive(
    infer_reduction("reduce_prod", NUMBERS),
    Push(_push_prod),
    Fold("{dtype}(1)", "{acc} * {0}"),
    _prod_samples,
    bounds=lambda x, *, axes: POSITIVE if x.is_positive else NONNEGATIVE if x.low >= 0 else Range(),
)
def reduce_prod(x: Any, *, axes: Any) -> Any:
    """Product over `axes`; its derivatives are exact at zeros."""
    return np.prod(x, axis=axes, dtype=x.dtype)


# ---- extrema -----------------------------------------------------------------------------------------------------


def infer_nonempty(name: str, domain: Domain) -> Callable[..., Aval]:
    """The inference rule of a reduction that has no value for no elements."""
    infer = infer_reduction(name, domain)

    def infer_where_elements_are(x: Aval, *, axes: Ints) -> Aval:
        result = infer(x, axes=axes)
        if any(x.shape[a] == 0 for a in axes):
            raise ShapeError(f"zero-size array to {name}, which has no identity: {x} over axes {axes}")
        return result

    return infer_where_elements_are


def _pull_extremum(results: Any, primals: Any, cts: Any, *, axes: Ints) -> list[Symbol]:
    """Share the cotangent among the elements that are the extremum; where it is nan, those are the nans."""
    (y,), (x,), (ct,) = results, primals, cts
    dims = tuple(a for a in range(x.ndim) if a not in axes)
    chosen = bitwise_or(eq(x, broadcast_in_dim(y, shape=x.shape, dims=dims)), isnan(x))
    part = div(ct, sum_over(convert(chosen, dtype=x.dtype), axes))
    return [select(chosen, broadcast_in_dim(part, shape=x.shape, dims=dims), zeros_like(x))]


def _extremum_samples() -> Iterable[Sample]:
    yield from reduction_samples(ORDERED)
    yield Sample((np.array([[1.0, 1.0, 0.0], [np.nan, 1.0, np.nan]]),), {"axes": (1,)}, smooth=False)


LARGEST = Fold("{lowest}", "maximum({acc}, {0})")
SMALLEST = Fold("{highest}", "minimum({acc}, {0})")


def _extremum(name: str, evaluate: Callable[..., Any], fold: Fold, doc: str) -> Primitive:
    return declare(
        name,
        infer_nonempty(name, ORDERED),
        lambda x, *, axes: evaluate(x, axis=axes),
        Pull(_pull_extremum),
        fold,
        _extremum_samples,
        doc,
        bounds=lambda x, *, axes: x,
    )


reduce_max = _extremum(
    "reduce_max", np.max, LARGEST, "Largest element over `axes`; nan if there is one. Ties share evenly."
)
reduce_min = _extremum(
    "reduce_min", np.min, SMALLEST, "Smallest element over `axes`; nan if there is one. Ties share evenly."
)

# ---- logic -------------------------------------------------------------------------------------------------------


def _logic(name: str, evaluate: Callable[..., Any], init: str, step: str, doc: str) -> Primitive:
    return declare(
        name,
        infer_reduction(name, BOOLS),
        lambda x, *, axes: evaluate(x, axis=axes),
        NonDifferentiable(),
        Fold(init, step),
        lambda: reduction_samples(BOOLS),
        doc,
    )


reduce_and = _logic("reduce_and", np.all, "{dtype}(1)", "{acc} & {0}", "Whether all are true, over `axes`.")
reduce_or = _logic("reduce_or", np.any, "{dtype}(0)", "{acc} | {0}", "Whether any is true, over `axes`.")

# ---- positions ---------------------------------------------------------------------------------------------------


def _infer_position(name: str) -> Callable[..., Aval]:
    infer = infer_nonempty(name, ORDERED | BOOLS)
    return lambda x, *, axis: infer(x, axes=(axis,)).with_dtype(I64)


def _position_samples() -> Iterable[Sample]:
    for dtype in by_name(ORDERED | BOOLS):
        yield Sample((sample((2, 3), dtype),), {"axis": 1})
    yield Sample((np.array([[1.0, 2.0, 2.0], [1.0, np.nan, np.nan]]),), {"axis": 1})
    yield Sample((np.array([[-0.0, 0.0], [1.0, 1.0]]),), {"axis": 1})


def _position(name: str, evaluate: Callable[..., Any], sign: str, extremum: Fold, doc: str) -> Primitive:
    return declare(
        name,
        _infer_position(name),
        lambda x, *, axis: evaluate(x, axis=axis),
        NonDifferentiable(),
        ArgFold(f"({{0}} {sign} {{best}}) | (({{0}} != {{0}}) & ({{best}} == {{best}}))", extremum),
        _position_samples,
        doc,
    )


argmax = _position(
    "argmax", np.argmax, ">", LARGEST, "Position of the first largest element along `axis`; a nan is largest."
)
argmin = _position(
    "argmin", np.argmin, "<", SMALLEST, "Position of the first smallest element along `axis`; a nan is smallest."
)

# ---- running sum -------------------------------------------------------------------------------------------------


def _infer_cumsum(x: Aval, *, axis: int, reverse: bool) -> Aval:
    check_dtype("cumsum", x.dtype, NUMBERS)
    check_axes("cumsum", (axis,), x.ndim)
    return x


def _cumsum_samples() -> Iterable[Sample]:
    for dtype in by_name(NUMBERS):
        yield Sample((sample((2, 3), dtype),), {"axis": 1, "reverse": False})
    yield Sample((sample((4, 2)),), {"axis": 0, "reverse": True})
    yield Sample((np.zeros((0, 2)),), {"axis": 0, "reverse": False})


def _transpose_cumsum(ct: Symbol, x: Symbol, *, axis: int, reverse: bool) -> tuple[Symbol]:
    return (cumsum(ct, axis=axis, reverse=not reverse),)


@linear(
    _infer_cumsum,
    _transpose_cumsum,
    Cumulative("{acc} + {0}"),
    _cumsum_samples,
    bounds=lambda x, *, axis, reverse: x.summed(),
)
def cumsum(x: Any, *, axis: int, reverse: bool) -> Any:
    """Running sum along `axis`, from the end if `reverse`."""
    if not reverse:
        return np.cumsum(x, axis=axis, dtype=x.dtype)
    return np.flip(np.cumsum(np.flip(x, axis), axis=axis, dtype=x.dtype), axis)
