"""Reading and writing at run-time positions, in dual pairs.

    gather / scatter_add        dynamic_slice / dynamic_update_slice        scatter: assignment, the last one wins

Negative indices count from the end, as in NumPy; one outside its axis raises `OutOfRangeError` when the program runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fnad.errors import DtypeError, OutOfRangeError, ShapeError
from fnad.ir import primitive as kinds
from fnad.ir.axes import AxisPairs, Custom, Opaque
from fnad.ir.size import estimate
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, I64, Aval, Shape
from fnad.ops.comparison import eq, lt, select
from fnad.ops.constructors import ANY, INTEGERS, NUMBERS, by_name, check_dtype, linear
from fnad.ops.conversion import convert_to
from fnad.ops.shape import (
    WIDER,
    Ints,
    broadcast_in_dim,
    constant,
    full_like,
    iota,
    reshape_to,
    sample,
    stack_operands,
    zeros_like,
)
from fnad.ops.sorting import argsort

I32 = np.dtype(np.int32)

# ---- gather / scatter_add / scatter ------------------------------------------------------------------------------


def _selected_shape(name: str, x: Aval, indices: tuple[Aval, ...]) -> Shape:
    """The shape of x[indices], where the indices are arrays of one shape over the leading axes."""
    if not 1 <= len(indices) <= x.ndim:
        raise ShapeError(f"{name} takes 1 to {x.ndim} index arrays for {x}, got {len(indices)}")
    for index in indices:
        check_dtype(f"an index of {name}", index.dtype, INTEGERS)
        if index.shape != indices[0].shape:
            raise ShapeError(f"{name} takes indices of one shape, got {' and '.join(map(str, indices))}")
    return (*indices[0].shape, *x.shape[len(indices) :])


def _infer_gather(x: Aval, *indices: Aval) -> Aval:
    return x.with_shape(_selected_shape("gather", x, indices))


def _rows(count: int, index: Symbol) -> Symbol:
    """For each element of a stack of indices, which of the stack it belongs to."""
    return iota(dtype=I64, shape=(count, *index.shape[1:]), axis=0)


def _stack_gather(count: int, operands: Sequence[Symbol], stacked: Sequence[bool]) -> Symbol:
    """Read each array of the stack with indices of its own, or one array with all of them."""
    x, *indices = stack_operands(count, operands, stacked)
    return gather(x, _rows(count, indices[0]), *indices) if stacked[0] else gather(operands[0], *indices)


def _align_gather(x: Aval, *indices: Aval) -> tuple[AxisPairs, ...]:
    place = indices[0].ndim - len(indices)
    of_x = tuple((a, place + a) for a in range(len(indices), x.ndim))
    return of_x, *[_same_axes(index) for index in indices]


def _same_axes(x: Aval) -> AxisPairs:
    return tuple((a, a) for a in range(x.ndim))


def _with_rows(count: int, operands: Sequence[Symbol], stacked: Sequence[bool]) -> list[Symbol]:
    x, updates, *indices = stack_operands(count, operands, stacked)
    return [x, updates, _rows(count, indices[0]), *indices]


def _align_scatter(x: Aval, updates: Aval, *indices: Aval) -> tuple[AxisPairs, ...]:
    place = indices[0].ndim - len(indices)
    rest = range(len(indices), x.ndim)
    return _same_axes(x), tuple((place + a, a) for a in rest), *[() for _ in indices]


FEW = 1024
"""Numbers whose sum single precision may have; of more, the last may be too small to change it."""


def _sums_at(x: Aval, ct: Symbol, indices: Sequence[Symbol]) -> Symbol:
    """The sums of cotangents by the element they belong to; many of single precision in double precision."""
    wide = WIDER.get(x.dtype, x.dtype) if estimate(ct.aval.size) > FEW else x.dtype
    sums = scatter_add(zeros_like(x.with_dtype(wide)), convert_to(ct, wide), *indices)
    return convert_to(sums, x.dtype)


def _gather_samples() -> Iterable[kinds.Sample]:
    for dtype in by_name(ANY):
        yield kinds.Sample((sample((3, 2), dtype), np.array([2, 0, 0, -1])))
    for index in by_name(INTEGERS):
        yield kinds.Sample((sample((3,)), np.array([[1, 2], [0, 0]], index)))
    yield kinds.Sample((sample((3, 2, 2)), np.array([2, 0, 2]), np.array([1, -2, 1])))
    yield kinds.Sample((sample((3, 2)), np.array(1)))
    yield kinds.Sample((sample((3, 2)), np.zeros((0,), I64)))


@linear(
    _infer_gather,
    lambda ct, x, *indices: (_sums_at(x.aval, ct, indices), *[None] * len(indices)),
    kinds.Gather(),
    _gather_samples,
    wrt=(0,),
    axes=Custom(_stack_gather, _align_gather),
)
def gather(x: Any, *indices: Any) -> Any:
    """NumPy's x[i, j, …] with integer arrays of one shape over the leading axes."""
    try:
        return x[indices]
    except IndexError as error:
        raise OutOfRangeError(str(error)) from None


def _infer_scatter(name: str, x: Aval, updates: Aval, indices: tuple[Aval, ...]) -> Aval:
    shape = _selected_shape(name, x, indices)
    if updates.dtype != x.dtype:
        raise DtypeError(f"{name} takes updates of the dtype of the array, got {updates} for {x}")
    if updates.shape != shape:
        raise ShapeError(f"{name} takes updates of shape {shape}, got {updates}")
    return x


def _infer_scatter_add(x: Aval, updates: Aval, *indices: Aval) -> Aval:
    check_dtype("scatter_add", x.dtype, NUMBERS)
    return _infer_scatter("scatter_add", x, updates, indices)


def _scatter_add_samples() -> Iterable[kinds.Sample]:
    for dtype in by_name(NUMBERS):
        yield kinds.Sample((sample((3, 2), dtype), sample((4, 2), dtype, 1), np.array([2, 0, 0, -1])))
    yield kinds.Sample(
        (sample((3, 2)), sample((2, 2), seed=1), np.array([[2, 0], [0, 2]]), np.array([[1, 1], [-1, 1]]))
    )
    yield kinds.Sample((sample((3,)), sample((0,)), np.zeros((0,), I64)))


def _in_runs(primitive: Callable[[], kinds.Primitive], x: Symbol, updates: Symbol, *indices: Symbol) -> Symbol:
    """A scatter whose updates are sorted by the element that they change."""
    number = zeros_like(indices[0].aval.with_dtype(I64))
    for given, n in zip(indices, x.shape, strict=False):
        index = _from_zero(given, n)
        number = number * n + select(lt(index, full_like(index, n)), index, zeros_like(index))
    # Half as many bits are sorted in half the time; what is out of range, 0 here as there, is told by the update.
    number = convert_to(number, I32 if x.aval.size < 2**31 else I64)
    order = argsort(reshape_to(number, (number.aval.size,)), axis=0, stable=True)
    return primitive()(x, updates, order, *indices)


def _runs(plain: kinds.Primitive) -> kinds.Primitive:
    """A scatter with an operand more, the numbers of all updates in runs of those of one element."""
    name = f"{plain.name}_runs"
    assert isinstance(plain.lower, kinds.Scatter)
    assert isinstance(plain.derivative, kinds.Linear)
    transpose = plain.derivative.transpose

    def infer(x: Aval, updates: Aval, order: Aval, *indices: Aval) -> Aval:
        found = _infer_scatter(name, x, updates, indices)
        if order.dtype != I64 or order.shape != (indices[0].size,):
            raise ShapeError(f"{name} takes the numbers of {indices[0].size} updates, got {order}")
        return found

    def transposed(ct: Symbol, x: Symbol, updates: Symbol, order: Symbol, *indices: Symbol) -> list[Symbol | None]:
        of_x, of_updates, *rest = transpose(ct, x, updates, *indices)
        return [of_x, of_updates, None, *rest]

    def samples() -> Iterable[kinds.Sample]:
        for case in plain.samples():
            x, updates, *indices = case.operands
            if updates.size:
                shape = x.shape[: len(indices)]
                number = np.ravel_multi_index([i % n for i, n in zip(indices, shape, strict=True)], shape)
                yield kinds.Sample((x, updates, np.argsort(number, axis=None, kind="stable"), *indices))

    return kinds.declare(
        name,
        infer,
        lambda x, updates, order, *indices: plain.evaluate(x, updates, *indices),
        kinds.Linear(transposed, (0, 1)),
        kinds.ScatterRuns(plain.lower.step),
        samples,
        f"`{plain.name}` with the numbers of all updates, in runs of those of one element.",
        axes=Opaque("it takes the place of a scatter when all transforms are done"),
    )


@linear(
    _infer_scatter_add,
    lambda ct, x, updates, *indices: (ct, gather(ct, *indices), *[None] * len(indices)),
    kinds.Scatter("{old} + {new}", partial(_in_runs, lambda: scatter_add_runs)),
    _scatter_add_samples,
    wrt=(0, 1),
    axes=Custom(lambda *given: scatter_add(*_with_rows(*given)), _align_scatter),
)
def scatter_add(x: Any, updates: Any, *indices: Any) -> Any:
    """The first operand with the second added at x[i, j, …]; updates at the same place add up, as in np.add.at."""
    out = np.array(x)
    try:
        np.add.at(out, indices, updates)
    except IndexError as error:
        raise OutOfRangeError(str(error)) from None
    return out


scatter_add_runs = _runs(scatter_add)


def _transpose_scatter(ct: Symbol, x: Symbol, updates: Symbol, *indices: Symbol) -> list[Symbol | None]:
    """The cotangents of a scatter: overwritten elements and replaced updates get none."""
    count = len(indices)
    order = _order(indices[0].shape)
    written = scatter(constant(0, I64, x.shape[:count]), order, *indices)
    last = eq(gather(written, *indices), order)
    won = broadcast_in_dim(last, shape=updates.shape, dims=tuple(range(last.ndim)))
    of_updates = select(won, gather(ct, *indices), zeros_like(updates))
    return [scatter(ct, zeros_like(updates), *indices), of_updates, *[None] * count]


def _order(shape: Shape) -> Symbol:
    """The positions of a shape, numbered in the order of assignment."""
    return reshape_to(iota(dtype=I64, shape=(Aval(I64, shape).size,), axis=0), shape)


def _scatter_samples() -> Iterable[kinds.Sample]:
    for dtype in by_name(ANY):
        yield kinds.Sample((sample((3, 2), dtype), sample((4, 2), dtype, 1), np.array([2, 0, 0, -1])))
    yield kinds.Sample(
        (sample((3, 2)), sample((2, 2), seed=1), np.array([[2, 0], [0, 2]]), np.array([[1, 1], [-1, 1]]))
    )
    yield kinds.Sample((sample((3,)), sample((), seed=1), np.array(-1)))


@linear(
    lambda x, updates, *indices: _infer_scatter("scatter", x, updates, indices),
    _transpose_scatter,
    kinds.Scatter("{new}", partial(_in_runs, lambda: scatter_runs)),
    _scatter_samples,
    wrt=(0, 1),
    axes=Custom(lambda *given: scatter(*_with_rows(*given)), _align_scatter),
)
def scatter(x: Any, updates: Any, *indices: Any) -> Any:
    """The first operand with the second assigned at x[i, j, …]; of updates at the same place the last one wins."""
    out = np.array(x)
    try:
        out[indices] = updates
    except IndexError as error:
        raise OutOfRangeError(str(error)) from None
    return out


scatter_runs = _runs(scatter)

# ---- dynamic_slice / dynamic_update_slice ------------------------------------------------------------------------


def _check_box(name: str, x: Aval, sizes: Shape, starts: tuple[Aval, ...]) -> None:
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise ShapeError(f"{name} takes a start and a size for each axis of {x}, got {len(starts)} and {len(sizes)}")
    if any(not 0 <= size <= n for size, n in zip(sizes, x.shape, strict=True)):
        raise ShapeError(f"{name} of a box of shape {sizes} does not fit in {x}")
    for start in starts:
        check_dtype(f"a start of {name}", start.dtype, INTEGERS)
        if start.shape:
            raise ShapeError(f"{name} takes scalar starts, got {start}")


def _box(shape: Shape, starts: tuple[Any, ...], sizes: Shape) -> tuple[slice, ...]:
    """The box as slices; raise where it does not lie in an array of this shape."""
    bounds: list[slice] = []
    for axis, (n, given, size) in enumerate(zip(shape, map(int, starts), sizes, strict=True)):
        start = given + n if given < 0 else given
        if not 0 <= start <= n - size:
            raise OutOfRangeError(f"index {given} with size {size} is out of bounds for axis {axis} with size {n}")
        bounds.append(slice(start, start + size))
    return tuple(bounds)


def _infer_dynamic_slice(x: Aval, *starts: Aval, sizes: Ints) -> Aval:
    _check_box("dynamic_slice", x, sizes, starts)
    return x.with_shape(sizes)


def _transpose_dynamic_slice(ct: Symbol, x: Symbol, *starts: Symbol, sizes: Ints) -> list[Symbol | None]:
    return [dynamic_update_slice(zeros_like(x), ct, *starts), *[None] * len(starts)]


def _first() -> Symbol:
    return constant(0, I64)


def _indices_of_box(count: int, shape: Shape, sizes: Ints, starts: Sequence[Symbol]) -> list[Symbol]:
    """The indices of a stack of boxes, `count` by `sizes`; those outside of the array are out of range."""
    whole = (count, *sizes)
    return [
        iota(dtype=I64, shape=whole, axis=a + 1) + broadcast_in_dim(_from_zero(start, n), shape=whole, dims=(0,))
        for a, (start, n) in enumerate(zip(starts, shape, strict=True))
    ]


def _from_zero(start: Symbol, n: int) -> Symbol:
    """Starts that count from 0; one before the first element is n, which is none."""
    start = convert_to(start, I64)
    counted = select(lt(start, zeros_like(start)), start + n, start)
    return select(lt(counted, zeros_like(counted)), full_like(counted, n), counted)


def _stack_dynamic_slice(count: int, operands: Sequence[Symbol], stacked: Sequence[bool], *, sizes: Ints) -> Symbol:
    """Read one box in all, or gather boxes that lie elsewhere in each."""
    x, *starts = operands
    if not any(stacked[1:]):
        return dynamic_slice(x, _first(), *starts, sizes=(count, *sizes))
    shape = x.shape[1:] if stacked[0] else x.shape
    indices = _indices_of_box(count, shape, sizes, stack_operands(count, starts, stacked[1:]))
    return gather(x, _rows(count, indices[0]), *indices) if stacked[0] else gather(x, *indices)


def _align_nothing(*operands: Aval, **_: Any) -> tuple[AxisPairs, ...]:
    return tuple(() for _ in operands)


def _dynamic_slice_samples() -> Iterable[kinds.Sample]:
    for dtype in by_name(ANY):
        yield kinds.Sample((sample((3, 4), dtype), np.array(1), np.array(-3)), {"sizes": (2, 3)})
    for index in by_name(INTEGERS):
        yield kinds.Sample((sample((3,)), np.array(2, index)), {"sizes": (1,)})
    yield kinds.Sample((sample(()),), {"sizes": ()})


@linear(
    _infer_dynamic_slice,
    _transpose_dynamic_slice,
    kinds.DynamicSlice(),
    _dynamic_slice_samples,
    wrt=(0,),
    axes=Custom(_stack_dynamic_slice, _align_nothing),
)
def dynamic_slice(x: Any, *starts: Any, sizes: Ints) -> Any:
    """A box of static `sizes` at run-time starts, one integer an axis; a negative start counts from the end."""
    return x[_box(x.shape, starts, sizes)]


def _infer_dynamic_update(x: Aval, update: Aval, *starts: Aval) -> Aval:
    if update.dtype != x.dtype or update.ndim != x.ndim:
        raise ShapeError(f"dynamic_update_slice takes an update of the array's dtype and rank, got {update} for {x}")
    _check_box("dynamic_update_slice", x, update.shape, starts)
    return x


def _transpose_dynamic_update(ct: Symbol, x: Symbol, update: Symbol, *starts: Symbol) -> list[Symbol | None]:
    outside = dynamic_update_slice(ct, zeros_like(update), *starts)
    return [outside, dynamic_slice(ct, *starts, sizes=update.shape), *[None] * len(starts)]


def _stack_dynamic_update(count: int, operands: Sequence[Symbol], stacked: Sequence[bool]) -> Symbol:
    """Write one box in all, or scatter boxes that lie elsewhere in each."""
    x, update, *starts = stack_operands(count, operands, stacked)
    if not any(stacked[2:]):
        return dynamic_update_slice(x, update, _first(), *operands[2:])
    indices = _indices_of_box(count, x.shape[1:], update.shape[1:], starts)
    return scatter(x, update, _rows(count, indices[0]), *indices)


def _align_dynamic_update(x: Aval, *others: Aval) -> tuple[AxisPairs, ...]:
    return _same_axes(x), *[() for _ in others]


def _dynamic_update_samples() -> Iterable[kinds.Sample]:
    for dtype in by_name(ANY):
        yield kinds.Sample((sample((3, 4), dtype), sample((2, 3), dtype, 1), np.array(1), np.array(-3)))
    yield kinds.Sample((sample((3,), F64), sample((0,), F64), np.array(3)))


@linear(
    _infer_dynamic_update,
    _transpose_dynamic_update,
    kinds.DynamicUpdate(),
    _dynamic_update_samples,
    wrt=(0, 1),
    axes=Custom(_stack_dynamic_update, _align_dynamic_update),
)
def dynamic_update_slice(x: Any, update: Any, *starts: Any) -> Any:
    """The first operand with the box at run-time starts replaced by the second."""
    out = np.array(x)
    out[_box(x.shape, starts, update.shape)] = update
    return out
