"""Products with matrices of which only a span of each row can differ from 0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.axes import Opaque
from fnad.ir.primitive import Pull, Sample, SpanContraction
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Aval
from fnad.ops.comparison import bitwise_and, le, select
from fnad.ops.constructors import INEXACT, by_name, check_dtype, primitive
from fnad.ops.contraction import dot_general
from fnad.ops.shape import broadcast_in_dim, iota, sample, zeros_like


def _infer_contract_spans(x: Aval, y: Aval, first: Aval, last: Aval) -> Aval:
    check_dtype("contract_spans", x.dtype, INEXACT)
    for span in (first, last):
        if span != Aval(I64, x.shape[:1]):
            raise ShapeError(f"contract_spans of {x} takes places of type {Aval(I64, x.shape[:1])}, got {span}")
    if x.ndim != 2 or y.ndim != 2 or x.dtype != y.dtype or x.shape[0] != y.shape[0]:
        raise ShapeError(f"contract_spans takes two matrices of as many rows, got {x} and {y}")
    return x.with_shape((x.shape[1], y.shape[1]))


def _in_spans(x: Symbol, first: Symbol, last: Symbol) -> Symbol:
    """A matrix with zeros outside of the spans."""
    column = iota(dtype=I64, shape=x.shape, axis=1)
    low, high = (broadcast_in_dim(place, shape=x.shape, dims=(0,)) for place in (first, last))
    return select(bitwise_and(le(low, column), le(column, high)), x, zeros_like(x))


def _pull_contract_spans(results: Any, primals: Any, cts: Any) -> list[Symbol | None]:
    (x, y, first, last), (ct,) = primals, cts
    of_x = dot_general(y, ct, contract=((1,), (1,)), batch=((), ()))
    of_y = dot_general(_in_spans(x, first, last), ct, contract=((1,), (0,)), batch=((), ()))
    return [_in_spans(of_x, first, last), of_y, None, None]


def _span_samples() -> Iterable[Sample]:
    first, last = np.array([0, 2, 1, 3]), np.array([1, 2, 3, 0])
    for dtype in by_name(INEXACT):
        yield Sample((sample((4, 5), dtype), sample((4, 3), dtype, 1), first, last))
    for n, k, d in ((1, 5, 3), (4, 1, 3), (4, 5, 1), (0, 5, 3), (4, 0, 3), (4, 5, 0)):
        yield Sample((sample((n, k)), sample((n, d), seed=1), first[:n], last[:n]))


@primitive(
    _infer_contract_spans,
    Pull(_pull_contract_spans),
    SpanContraction(),
    _span_samples,
    axes=Opaque("it is made where a program is lowered, for each row a span"),
)
def contract_spans(x: Any, y: Any, first: Any, last: Any) -> Any:
    """x.T @ y, where of each row of x only the columns from `first` to `last` count."""
    column = np.arange(x.shape[1])
    inside = (first[:, None] <= column) & (column <= last[:, None])
    if np.isfinite(y).all():
        return np.where(inside, x, x.dtype.type(0)).T @ y
    return np.where(inside[:, :, None], x[:, :, None] * y[:, None, :], 0).sum(0, x.dtype)  # 0 is no factor of these
