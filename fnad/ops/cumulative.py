"""Running reductions by an associative operation, and the running product.

    y[i] = x[0] ∘ x[1] ∘ … ∘ x[i]

The elements are combined in pairs, the results, half as many, are scanned in the same way, and the positions between
are filled in: about 2n operations in 2 log2 n steps (Ladner and Fischer, "Parallel prefix computation", 1980).

The derivative of a running product is the scan of dual numbers, (x, dx) ∘ (y, dy) = (xy, dx y + x dy): it divides by
nothing, and is exact to all orders where elements are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from fnad.ir.primitive import Cumulative, Push, Sample
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.ops.arithmetic import add, mul
from fnad.ops.constructors import NUMBERS, by_name, check_dtype, primitive
from fnad.ops.shape import check_axes, concatenate, reshape_to, sample, slice_axis, transpose_to
from fnad.ops.shape import reverse as reverse_axes

Parts: TypeAlias = Sequence[Symbol]
"""The parts of one element: a number, or a number and its tangent."""


def associative_scan(combine: Callable[[Parts, Parts], Parts], xs: Parts) -> Parts:
    """All prefixes along axis 0 of arrays whose elements, taken together, an operation combines."""
    count = xs[0].shape[0]
    if count < 2:
        return xs
    whole = count - count % 2
    pairs = combine(_every_other(xs, 0, whole), _every_other(xs, 1, whole))
    odd = associative_scan(combine, pairs)
    first = [slice_axis(x, 0, 0, 1) for x in xs]
    if count == 2:
        return [concatenate(a, b, axis=0) for a, b in zip(first, odd, strict=True)]
    before = [slice_axis(y, 0, 0, (count - 1) // 2) for y in odd]
    even = combine(before, _every_other(xs, 2, count))
    return [interleave(concatenate(a, b, axis=0), c) for a, b, c in zip(first, even, odd, strict=True)]


def _every_other(xs: Parts, start: int, limit: int) -> Parts:
    return [slice_axis(x, 0, start, limit, 2) for x in xs]


def interleave(even: Symbol, odd: Symbol) -> Symbol:
    """The elements of two arrays in turn, the first of which may have one more."""
    half, rest = odd.shape[0], odd.shape[1:]
    pairs = [reshape_to(slice_axis(x, 0, 0, half), (half, 1, *rest)) for x in (even, odd)]
    mixed = reshape_to(concatenate(*pairs, axis=1), (2 * half, *rest))
    return mixed if even.shape[0] == half else concatenate(mixed, slice_axis(even, 0, half, half + 1), axis=0)


def scan_along(combine: Callable[[Parts, Parts], Parts], xs: Parts, axis: int) -> Parts:
    """All prefixes along an axis."""
    order = (axis, *(i for i in range(xs[0].ndim) if i != axis))
    back = tuple(order.index(i) for i in range(len(order)))
    return [transpose_to(y, back) for y in associative_scan(combine, [transpose_to(x, order) for x in xs])]


# ---- running product ---------------------------------------------------------------------------------------------


def _infer_cumprod(x: Aval, *, axis: int, reverse: bool) -> Aval:
    check_dtype("cumprod", x.dtype, NUMBERS)
    check_axes("cumprod", (axis,), x.ndim)
    return x


def _of_duals(left: Parts, right: Parts) -> Parts:
    (a, da), (b, db) = left, right
    return [mul(a, b), add(mul(da, b), mul(a, db))]


def _push_cumprod(results: Any, primals: Any, tangents: Any, *, axis: int, reverse: bool) -> list[Symbol | None]:
    (x,), (dx,) = primals, tangents
    if dx is None:
        return [None]
    flip = partial(reverse_axes, axes=(axis,)) if reverse else lambda x: x
    return [flip(scan_along(_of_duals, [flip(x), flip(dx)], axis)[1])]


def _cumprod_samples() -> Iterable[Sample]:
    for dtype in by_name(NUMBERS):
        yield Sample((sample((2, 3), dtype),), {"axis": 1, "reverse": False})
    for n in (1, 2, 4, 5, 7):
        yield Sample((sample((n, 2)),), {"axis": 0, "reverse": n == 5})
    yield Sample((np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0]]),), {"axis": 1, "reverse": False})
    yield Sample((np.zeros((0, 2)),), {"axis": 0, "reverse": False})


@primitive(_infer_cumprod, Push(_push_cumprod), Cumulative("{acc} * {0}"), _cumprod_samples)
def cumprod(x: Any, *, axis: int, reverse: bool) -> Any:
    """Running product along `axis`, from the end if `reverse`; its derivatives are exact at zeros."""
    if not reverse:
        return np.cumprod(x, axis=axis, dtype=x.dtype)
    return np.flip(np.cumprod(np.flip(x, axis), axis=axis, dtype=x.dtype), axis)
