"""Complex numbers in lexicographic order: by the real parts, in a tie by the imaginary parts.

The extrema here take real numbers too, as the primitives do. Of complex numbers a nan, in either part, is the extremum,
the first one if there are several; where equal numbers are the extremum they share its derivative evenly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, real_dtype
from fnad.numpy.operands import Ints
from fnad.ops import comparison, piecewise, reduction
from fnad.ops.comparison import bitwise_and, bitwise_not, bitwise_or, eq, isnan, select
from fnad.ops.conversion import complex_, imag, real
from fnad.ops.shape import broadcast_to, constant, in_front, iota, reshape_to

Compute = Callable[..., Any]


def ordered(strict: Compute, compare: Compute) -> Compute:
    """The comparison by the real parts, strictly, and in a tie by the imaginary parts; nan is in no order."""

    def by_parts(x: Symbol, y: Symbol) -> Symbol:
        known = bitwise_not(bitwise_or(isnan(imag(x)), isnan(imag(y))))
        before = bitwise_and(strict(real(x), real(y)), known)
        return bitwise_or(before, bitwise_and(eq(real(x), real(y)), compare(imag(x), imag(y))))

    return by_parts


def of_complex(otherwise: Compute, primitive: Compute) -> Compute:
    """A primitive of real numbers, but something else for complex ones."""
    return lambda x, *operands, **params: (otherwise if x.dtype.kind == "c" else primitive)(x, *operands, **params)


# ---- of two numbers --------------------------------------------------------------------------------------------------


def _chosen(is_first: Compute, of_parts: Compute) -> Compute:
    def choose(x: Symbol, y: Symbol) -> Symbol:
        tie = complex_(of_parts(real(x), real(y)), of_parts(imag(x), imag(y)))
        return select(eq(x, y), tie, select(is_first(x, y), x, y))

    return choose


at_least = ordered(comparison.gt, comparison.ge)
at_most = ordered(comparison.lt, comparison.le)

maximum = of_complex(_chosen(lambda x, y: bitwise_or(at_least(x, y), isnan(x)), piecewise.maximum), piecewise.maximum)
minimum = of_complex(_chosen(lambda x, y: bitwise_or(at_most(x, y), isnan(x)), piecewise.minimum), piecewise.minimum)
fmax = of_complex(_chosen(lambda x, y: bitwise_or(at_least(x, y), isnan(y)), piecewise.maximum), piecewise.fmax)
fmin = of_complex(_chosen(lambda x, y: bitwise_or(at_most(x, y), isnan(y)), piecewise.minimum), piecewise.fmin)

# ---- along axes ------------------------------------------------------------------------------------------------------


class End(NamedTuple):
    """An end of the order: the reduction of real numbers to it, and the number at the other end."""

    reduce: Compute
    other: float

    def extremum(self, z: Symbol, *, axes: Ints) -> Symbol:
        """The extremum over axes."""
        kept = tuple(a for a in range(z.ndim) if a not in axes)
        rows = in_front(z, axes)
        chosen = self._among(rows)
        parts = [self.reduce(select(chosen, part(rows), self._others(rows)), axes=(0,)) for part in (real, imag)]
        return reshape_to(complex_(*parts), tuple(z.shape[a] for a in kept))

    def position(self, z: Symbol, *, axis: int) -> Symbol:
        """The position of the first extremum along an axis."""
        nan = isnan(z)
        return reduction.argmax(select(_spread(nan, axis), nan, self._tied(z, axis)), axis=axis)

    def _among(self, z: Symbol) -> Symbol:
        """True if each number along axis 0 is the extremum: all that are equal, or the first nan."""
        first = broadcast_to(self.position(z, axis=0), z.shape)
        is_first = eq(iota(dtype=I64, shape=z.shape, axis=0), first)
        return select(_spread(isnan(z), 0), is_first, self._tied(z, 0))

    def _tied(self, z: Symbol, axis: int) -> Symbol:
        foremost = self._is_extremum(real(z), axis)
        return bitwise_and(foremost, self._is_extremum(select(foremost, imag(z), self._others(z)), axis))

    def _is_extremum(self, x: Symbol, axis: int) -> Symbol:
        return eq(x, _along(self.reduce(x, axes=(axis,)), x.shape, axis))

    def _others(self, z: Symbol) -> Symbol:
        return constant(self.other, real_dtype(z.dtype), z.shape)


def _along(x: Symbol, shape: tuple[int, ...], axis: int) -> Symbol:
    return broadcast_to(reshape_to(x, tuple(1 if i == axis else n for i, n in enumerate(shape))), shape)


def _spread(mask: Symbol, axis: int) -> Symbol:
    """True if any is true along an axis, in the shape of the mask."""
    return _along(reduction.reduce_or(mask, axes=(axis,)), mask.shape, axis)


LAST, FIRST = End(reduction.reduce_max, -np.inf), End(reduction.reduce_min, np.inf)

reduce_max = of_complex(LAST.extremum, reduction.reduce_max)
reduce_min = of_complex(FIRST.extremum, reduction.reduce_min)
argmax = of_complex(LAST.position, reduction.argmax)
argmin = of_complex(FIRST.position, reduction.argmin)
