"""Vectors: values of several avals raveled into one, and what solvers compute with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fnad.control.signatures import Symbols
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.ops.arithmetic import mul
from fnad.ops.conversion import convert_to
from fnad.ops.elementary import sqrt
from fnad.ops.shape import broadcast_to, concatenate, reduce_sum, reshape_to, slice_axis


class Raveling(NamedTuple):
    """The layout of values of these avals in one vector, one after the other, in the dtype they promote to."""

    avals: tuple[Aval, ...]

    @classmethod
    def of(cls, avals: Sequence[Aval]) -> Raveling:
        return cls(tuple(avals))

    @property
    def aval(self) -> Aval:
        """The aval of the vector."""
        dtype = max((aval.dtype for aval in self.avals), key=lambda dtype: dtype.itemsize)
        return Aval(dtype, (sum(aval.size for aval in self.avals),))

    def ravel(self, values: Symbols) -> Symbol:
        """The values as one vector."""
        dtype = self.aval.dtype
        pieces = [reshape_to(convert_to(value, dtype), (value.aval.size,)) for value in values]
        return pieces[0] if len(pieces) == 1 else concatenate(*pieces, axis=0)

    def unravel(self, vector: Symbol) -> list[Symbol]:
        """The values that a vector holds."""
        return [reshape_to(piece, aval.shape) for aval, piece in self._pieces(vector, 0)]

    def unravel_rows(self, rows: Symbol) -> list[Symbol]:
        """The values that vectors hold, a row each, stacked."""
        return [reshape_to(piece, (rows.shape[0], *aval.shape)) for aval, piece in self._pieces(rows, 1)]

    def _pieces(self, x: Symbol, axis: int) -> Iterator[tuple[Aval, Symbol]]:
        start = 0
        for aval in self.avals:
            yield aval, convert_to(slice_axis(x, axis, start, start + aval.size), aval.dtype)
            start += aval.size


def scaled(factor: Symbol, x: Symbol) -> Symbol:
    """The vector times a scalar."""
    return mul(broadcast_to(factor, x.shape), x)


def dot(x: Symbol, y: Symbol) -> Symbol:
    """The sum of the products of two vectors' elements."""
    return reduce_sum(mul(x, y), axes=(0,))


def norm(x: Symbol) -> Symbol:
    """The Euclidean norm of a vector."""
    return sqrt(dot(x, x))
