"""Contractions as matrix products: which axes form the rows, and which operands are matrices without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from fnad.ir.types import Aval, Shape
from fnad.lower.index import Counter, Index
from fnad.lower.loop_ir import Matrix
from fnad.lower.nodes import Buffer

Axes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Dimensions:
    """A contraction as out[batch, m, n] = Σ_k x[batch, m, k] · y[batch, k, n].

    `left_axes` are the axes of x in the order batch, m, k; `right_axes` those of y in the order batch, k, n.
    """

    batch: Shape
    m: Shape
    k: Shape
    n: Shape
    left_axes: Axes
    right_axes: Axes

    @property
    def is_outer(self) -> bool:
        """True if nothing is summed."""
        return prod(self.k) == 1

    def operand_indices(self, indices: Sequence[Index]) -> tuple[list[Index], list[Index]]:
        """The indices of x and of y for indices in the order batch, m, n, k."""
        ends = len(self.batch), len(self.batch) + len(self.m), len(indices) - len(self.k)
        b, m, n, k = indices[: ends[0]], indices[ends[0] : ends[1]], indices[ends[1] : ends[2]], indices[ends[2] :]
        left, right = [*b, *m, *k], [*b, *k, *n]
        return (
            [left[self.left_axes.index(a)] for a in range(len(left))],
            [right[self.right_axes.index(a)] for a in range(len(right))],
        )


def contraction_dimensions(x: Aval, y: Aval, *, contract: tuple[Axes, Axes], batch: tuple[Axes, Axes]) -> Dimensions:
    """The dimensions of `dot_general`."""
    free = [
        tuple(a for a in range(v.ndim) if a not in c and a not in b)
        for v, c, b in zip((x, y), contract, batch, strict=True)
    ]
    return Dimensions(
        tuple(x.shape[a] for a in batch[0]),
        tuple(x.shape[a] for a in free[0]),
        tuple(x.shape[a] for a in contract[0]),
        tuple(y.shape[a] for a in free[1]),
        (*batch[0], *free[0], *contract[0]),
        (*batch[1], *contract[1], *free[1]),
    )


def strides(address: Index, indices: Sequence[Index], shape: Shape) -> list[int] | None:
    """The stride of each axis, if the address is affine in the counters."""
    if not all(isinstance(atom, Counter) for atom, _ in address.terms):
        return None
    return [address.coefficient(i.terms[0][0]) if n != 1 else 0 for i, n in zip(indices, shape, strict=True)]


def matrix(
    buffer: Buffer,
    address: Index,
    spread: Sequence[int],
    batch: Shape,
    rows: Shape,
    columns: Shape,
    indices: Sequence[Index],
) -> Matrix | None:
    """The matrix that axes of these strides form, if each group of axes acts as one axis and one stride is 1."""
    b, r = len(batch), len(batch) + len(rows)
    row_stride, column_stride = joined(rows, spread[b:r]), joined(columns, spread[r:])
    if row_stride is None or column_stride is None:
        return None
    fitted = fit(prod(rows), prod(columns), row_stride, column_stride)
    if fitted is None:
        return None
    counted = {index.terms[0][0] for index in indices[b:] if index.terms}
    offset = Index(address.constant, tuple(term for term in address.terms if term[0] not in counted))
    return Matrix(buffer, offset, *fitted)


def joined(sizes: Shape, spread: Sequence[int]) -> int | None:
    """The single stride of axes that are contiguous in each other, 0 if all have size 1; None if there is none."""
    kept = [(n, s) for n, s in zip(sizes, spread, strict=True) if n != 1]
    for (_, outer), (n, inner) in pairwise(kept):
        if outer != n * inner:
            return None
    return kept[-1][1] if kept else 0


def fit(rows: int, columns: int, row_stride: int, column_stride: int) -> tuple[int, int] | None:
    """Strides that BLAS accepts, one of them 1 and the other at least the size along it, if there are any."""
    if columns == 1:
        column_stride = 1
    if rows == 1:
        row_stride = max(columns, 1) if column_stride == 1 else 1
    if column_stride == 1 and row_stride >= columns:
        return row_stride, 1
    if row_stride == 1 and column_stride >= rows:
        return 1, column_stride
    return None
