"""Rows of arrays, at places that are known or that only a run knows."""

from __future__ import annotations

from fnad.ir.symbol import Symbol
from fnad.ir.types import I64
from fnad.ops.indexing import dynamic_slice, dynamic_update_slice
from fnad.ops.shape import constant, reshape_to, slice_axis


def row(x: Symbol, index: Symbol | int) -> Symbol:
    """x[index]."""
    if isinstance(index, int):
        return reshape_to(slice_axis(x, 0, index, index + 1), x.shape[1:])
    return reshape_to(dynamic_slice(x, *_start(x, index), sizes=(1, *x.shape[1:])), x.shape[1:])


def put_row(x: Symbol, value: Symbol, index: Symbol) -> Symbol:
    """The array with x[index] = value."""
    return dynamic_update_slice(x, raised(value), *_start(x, index))


def raised(x: Symbol) -> Symbol:
    """The array of which x is the one row."""
    return reshape_to(x, (1, *x.shape))


def but_first(x: Symbol) -> Symbol:
    """x[1:]."""
    return slice_axis(x, 0, 1, x.shape[0])


def but_last(x: Symbol) -> Symbol:
    """x[:-1]."""
    return slice_axis(x, 0, 0, x.shape[0] - 1)


def _start(x: Symbol, index: Symbol) -> list[Symbol]:
    return [index, *[constant(0, I64)] * (x.ndim - 1)]
