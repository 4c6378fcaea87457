"""Indexing as NumPy does it: what an index selects, and what writing there leaves.

An index is brought to one entry an axis. Integers, slices, `...` and `newaxis` are views: boxes, reversed axes and
reshapes. Integer arrays are gathered: the basic entries are applied first, then the axes with arrays are brought to
the front, read at the arrays' common shape, and the new axes put where NumPy has them: in the place of the
arrays if those are neighbours, else in front.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from types import EllipsisType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fnad.errors import OutOfRangeError, ShapeError, UnsupportedFunctionError
from fnad.ir.known import known_value
from fnad.ir.size import is_size, slice_bounds
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64, Aval, Shape
from fnad.numpy.operands import as_symbol, broadcast_all, contains_symbol, static_array, static_number, to_dtype
from fnad.numpy.registry import OF_PLACES
from fnad.numpy.views import ArrayView, Box, MovingBox, Reshape, Reverse, Steps, fitted, read, write
from fnad.ops.comparison import select
from fnad.ops.indexing import gather, scatter
from fnad.ops.shape import Ints, broadcast_to, constant, invert, iota, reshape_to, reverse, transpose_to

PART = "for a part of fixed size write x[start + np.arange(size)]"
COLUMN = "an array has no names of columns: pass that of a DataFrame by itself, df['a'].to_numpy()"

Entry: TypeAlias = "int | slice | Symbol | np.ndarray[Any, Any] | EllipsisType | None"
"""An entry of an index: a symbol is an integer, known when the program runs, or an array of integers."""


def getitem(x: Symbol, index: Any) -> ArrayView | Symbol:
    """X[index]: a view for a basic index, new memory where there are integer or bool arrays.

    Raises `OutOfRangeError` (an IndexError) for an index outside its axis, `TracerEscapeError` where the shape would
    depend on a traced value.
    """
    x, index = with_axes_for_bools(x, index)
    entries = entries_of(index, x.shape)
    if not any(map(is_array, entries)):
        steps = Basic.of(entries, x.shape).steps
        is_scalar = not any(entry is None or isinstance(entry, slice) for entry in entries) and not has_ellipsis(index)
        return read(steps, x) if is_scalar else ArrayView(x, steps, is_array=True)
    return Advanced.of(entries, x.shape).read(x)


def setitem(x: Symbol, index: Any, value: Any) -> Symbol:
    """The value of x after `x[index] = value`."""
    if is_traced_mask(index) and as_symbol(value).ndim <= x.ndim - index.ndim:
        return _set_where(x, index, value)
    shape = x.shape
    x, index = with_axes_for_bools(x, index)
    entries = entries_of(index, x.shape)
    way = Advanced if any(map(is_array, entries)) else Basic
    return reshape_to(way.of(entries, x.shape).write(x, value), shape)


# ---- single places ---------------------------------------------------------------------------------------------------

INTS = frozenset({int})
BASIC = (slice, int, np.integer, type(None), type(Ellipsis))


def is_basic(index: Any) -> bool:
    """True if no part of an index is an array or a bool."""
    kinds = map(type, index if type(index) is tuple else (index,))
    return all(kind is not bool and issubclass(kind, BASIC) for kind in kinds)


def is_place(index: Any) -> bool:
    """True if an index is an integer or several, as a loop over elements has them."""
    return type(index) is int or (type(index) is tuple and len(index) > 0 and INTS.issuperset(map(type, index)))


def read_at(x: Symbol, index: Any) -> ArrayView | Symbol:
    """X[i], or x[i, j, …]: the same as `getitem` in less time."""
    found = _place(index, x.aval.shape)
    if found is None:
        return getitem(x, index)
    box, shape = found
    return ArrayView(x, (box, Reshape(shape)), is_array=True) if shape else reshape_to(box.read(x), shape)


def write_at(x: Symbol, index: Any, value: Any) -> Symbol:
    """The value of x after `x[i] = value`, or `x[i, j, …] = value`: the same as `setitem` in less time."""
    found = _place(index, x.aval.shape)
    if found is None:
        return setitem(x, index, value)
    box, shape = found
    part = fitted(value, Aval(x.aval.dtype, shape))
    return box.write(x, reshape_to(part, (*[1] * (len(box.starts) - len(shape)), *shape)))


OF_PLACES.update((read_at, write_at))


def _place(index: Any, whole: Shape) -> tuple[Box, Shape] | None:
    """The box that integers select and the shape of what is there; none where an axis has one element, or no such."""
    places = index if type(index) is tuple else (index,)
    axes, rest = whole[: len(places)], whole[len(places) :]
    if len(places) != len(axes) or any(n == 1 or not -n <= i < n for i, n in zip(places, axes, strict=True)):
        return None
    starts = [i % n for i, n in zip(places, axes, strict=True)]
    return Box((*starts, *[0] * len(rest)), (*[i + 1 for i in starts], *rest), (1,) * len(whole)), rest


# ---- masks known only when the program runs --------------------------------------------------------------------------


def is_traced_mask(index: Any) -> bool:
    """True if the index is a bool array that is traced."""
    return isinstance(index, Symbol) and index.dtype == BOOL and known_value(index) is None


def _set_where(x: Symbol, mask: Symbol, value: Any) -> Symbol:
    if mask.shape != x.shape[: mask.ndim]:
        raise OutOfRangeError(
            f"boolean index did not match indexed array: shape of the array is {x.shape}, of the index {mask.shape}"
        )
    new = as_symbol(value, x.dtype)
    trailing = (*mask.shape, *(1,) * (x.ndim - mask.ndim))
    return select(broadcast_to(reshape_to(mask, trailing), x.shape), broadcast_to(new, x.shape), x)


# ---- single bools ----------------------------------------------------------------------------------------------------


def with_axes_for_bools(x: Symbol, index: Any) -> tuple[Symbol, Any]:
    """X and the index with, for each single bool, a new axis and an array that takes all of it, or nothing.

    That is what a mask without dimensions means.
    """
    parts = [_decided(part) for part in as_tuple(index)]
    found = [i for i, part in enumerate(parts) if _is_single_bool(part)]
    if not found:
        return x, index
    for i in found:
        axis = _axis_before(parts, i, x.ndim)
        x = reshape_to(x, (*x.shape[:axis], 1, *x.shape[axis:]))
        parts[i] = np.zeros(int(bool(parts[i])), np.int64)
    return x, tuple(parts)


def _decided(part: Any) -> Any:
    is_traced = isinstance(part, Symbol) and part.dtype == BOOL and not part.shape
    return bool(static_array(part)) if is_traced else part


def _is_single_bool(part: Any) -> bool:
    is_bool = isinstance(part, (bool, np.bool_)) or (isinstance(part, np.ndarray) and part.dtype == BOOL)
    return is_bool and np.ndim(part) == 0


def _axis_before(parts: Sequence[Any], place: int, ndim: int) -> int:
    """The number of axes that the parts of an index before one stand for."""
    widths = [0 if _is_single_bool(part) else _width(_plain(with_known(part))) for part in parts]
    if any(part is Ellipsis for part in parts[:place]):
        return ndim - sum(widths[place:])
    return sum(widths[:place])


def _width(entries: Sequence[Any]) -> int:
    return sum(entry is not None and entry is not Ellipsis for entry in entries)


# ---- one entry an axis -----------------------------------------------------------------------------------------------


def entries_of(index: Any, shape: Shape) -> list[Entry]:
    """The index with one entry for each axis, and None for each new one.

    An ellipsis between arrays that stands for no axis is left there, since it still parts them.
    """
    if type(index) is int and shape:  # the most frequent one
        return [index, *[slice(None)] * (len(shape) - 1)]
    index = tuple(map(with_known, as_tuple(index)))
    parts = [_plain(part) for part in index]
    widths = [_width(part) for part in parts]
    if sum(widths) > len(shape):
        raise OutOfRangeError(
            f"too many indices for array: array is {len(shape)}-dimensional, but {sum(widths)} were indexed"
        )
    ellipses = [i for i, part in enumerate(parts) if part and part[0] is Ellipsis]
    if len(ellipses) > 1:
        raise OutOfRangeError("an index can only have a single ellipsis ('...')")
    at = ellipses[0] if ellipses else len(parts)
    missing = len(shape) - sum(widths)
    _check_masks(as_tuple(index), [w if i != at else missing for i, w in enumerate(widths)], shape)
    head, tail = list(chain(*parts[:at])), list(chain(*parts[at + 1 :]))
    if not missing and _arrays(head) and _arrays(tail) and any(map(is_array, (*head, *tail))):
        return [*head, Ellipsis, *tail]
    return [*head, *[slice(None)] * missing, *tail]


def _check_masks(parts: Sequence[Any], widths: Sequence[int], shape: Shape) -> None:
    """Raise where a mask has not the shape of the axes it stands for."""
    axis = 0
    for part, width in zip(parts, widths, strict=True):
        is_mask = isinstance(part, (np.ndarray, list)) and not contains_symbol(part) and np.asarray(part).dtype == BOOL
        if is_mask and np.shape(part) != shape[axis : axis + width]:
            raise OutOfRangeError(
                f"boolean index did not match indexed array along axis {axis}: "
                f"the array has shape {shape[axis : axis + width]} there, the index {np.shape(part)}"
            )
        axis += width


def with_known(part: Any) -> Any:
    """A part of an index with the number in place of a traced value that is known, and of a mask."""
    if isinstance(part, Symbol):
        known = static_array(part) if part.dtype == BOOL else known_value(part)
        return part if known is None else known[()]
    if isinstance(part, slice) and contains_symbol((part.start, part.stop, part.step)):
        return slice(*map(with_known, (part.start, part.stop, part.step)))
    return part


def as_tuple(index: Any) -> tuple[Any, ...]:
    """The entries of an index as written."""
    return index if isinstance(index, tuple) else (index,)


def has_ellipsis(index: Any) -> bool:
    """True if there is an ellipsis in an index."""
    return any(part is Ellipsis for part in as_tuple(index))


def _plain(part: Any) -> Sequence[Any]:
    """A part of an index as entries; a mask becomes the positions where it is true, one array an axis."""
    if part is None or part is Ellipsis or isinstance(part, slice) or is_size(part):
        return (part,)
    if isinstance(part, Symbol):
        return (_traced(part),)
    if contains_symbol(part):
        return _plain(with_known(as_symbol(part)))
    array = np.asarray(operator.index(part) if is_index_of_user(part) else part)
    if array.dtype == BOOL:
        return _positions(part, array)
    if array.size == 0 and isinstance(part, (list, tuple)):
        array = array.astype(I64)
    if array.dtype.kind not in "iu":
        raise OutOfRangeError(
            "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays "
            f"are valid indices, not {type(part).__name__} of dtype {array.dtype}",
            remedy=COLUMN if array.dtype.kind == "U" else None,
        )
    return (array,) if array.ndim or isinstance(part, np.ndarray) else (int(array),)


def is_index_of_user(part: Any) -> bool:
    """True for an object that user code makes an integer, by `__index__`."""
    return hasattr(type(part), "__index__") and not isinstance(part, (int, np.ndarray, np.generic))


def _traced(index: Symbol) -> Symbol:
    if index.dtype.kind not in "iu":
        raise OutOfRangeError(f"arrays used as indices must be of integer (or boolean) type, got {index.aval}")
    return index


def _positions(mask: Any, array: Any) -> Sequence[Any]:
    static_array(mask)
    return np.nonzero(array)


def is_array(entry: Entry) -> bool:
    """True if an entry is an array of integers."""
    return isinstance(entry, np.ndarray) or (isinstance(entry, Symbol) and entry.ndim > 0)


# ---- basic indexing --------------------------------------------------------------------------------------------------


class Basic(NamedTuple):
    """An index without arrays: `boxes` of an array, of which the axes `backward` are reversed, in another `shape`."""

    boxes: Steps
    counts: Shape
    backward: Ints
    shape: Shape

    @staticmethod
    def of(entries: Sequence[Entry], shape: Shape) -> Basic:
        """Read an index."""
        old = [entry for entry in entries if entry is not None]
        spans = [span(entry, n, axis) for axis, (entry, n) in enumerate(zip(old, shape, strict=True))]
        counts = tuple(1 if isinstance(entry, Symbol) else s.count for entry, s in zip(old, spans, strict=True))
        backward = tuple(axis for axis, s in enumerate(spans) if s.is_backward)
        return Basic(_boxes(old, spans, counts, shape), counts, backward, _selected_shape(entries, spans))

    @property
    def steps(self) -> Steps:
        """The steps to what is selected."""
        turned = (Reverse(self.backward),) if self.backward else ()
        return (*self.boxes, *turned, Reshape(self.shape))

    def write(self, x: Symbol, value: Any) -> Symbol:
        part = reshape_to(fitted(value, Aval(x.dtype, self.shape)), self.counts)
        return write(self.boxes, x, reverse(part, axes=self.backward) if self.backward else part)


def _fixed_box(spans: Sequence[Span], shape: Shape) -> Steps:
    if all(s.first == 0 and s.count == n and s.stride == 1 for s, n in zip(spans, shape, strict=True)):
        return ()
    starts = tuple(s.first for s in spans)
    limits = tuple(s.first + (s.count - 1) * s.stride + 1 if s.count else s.first for s in spans)
    return (Box(starts, limits, tuple(s.stride for s in spans)),)


def _boxes(entries: Sequence[Entry], spans: Sequence[Span], counts: Shape, shape: Shape) -> Steps:
    """The step to what is selected, or two where integers are traced and other axes have strides."""
    if not any(isinstance(entry, Symbol) for entry in entries):
        return _fixed_box(spans, shape)
    is_one = all(s.stride == 1 for s in spans)
    starts = tuple(
        entry if isinstance(entry, Symbol) else constant(s.first if is_one else 0, I64)
        for entry, s in zip(entries, spans, strict=True)
    )
    return (*(() if is_one else _fixed_box(spans, shape)), MovingBox(starts, counts))


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """The part of an axis that an entry selects: from `first` on, `count` elements, each `stride` further."""

    first: int
    count: int
    stride: int = 1
    is_backward: bool = False


def span(entry: Entry, n: int, axis: int) -> Span:
    """The part of an axis of size n that an integer or a slice selects; all of it for an integer that is traced."""
    if isinstance(entry, slice):
        return _slice_span(entry, n)
    if isinstance(entry, int):
        if not -n <= entry < n:
            raise OutOfRangeError(f"index {entry} is out of bounds for axis {axis} with size {n}")
        return Span(entry % n, 1)
    return Span(0, n)


def _slice_span(entry: slice, n: int) -> Span:
    bounds = (entry.start, entry.stop, entry.step)
    if contains_symbol(bounds):
        entry = slice(*[static_number(bound, "a bound of a slice", PART) for bound in bounds])
    if isinstance(entry.step, int) and entry.step == 0:
        raise ShapeError("slice step cannot be zero", remedy="leave it out, or give -1 to go backwards")
    start, stop, step = slice_bounds(entry, n)
    distance, stride = (stop - start, step) if step > 0 else (start - stop, -step)
    count = max(0, (distance + stride - 1) // stride)
    if step > 0:
        return Span(min(start, n), count, step)
    last = start + (count - 1) * step
    return Span(last if count else 0, count, -step, is_backward=True)


def _selected_shape(entries: Sequence[Entry], spans: Sequence[Span]) -> Shape:
    counts = iter(s.count for s in spans)
    shape: list[int] = []
    for entry in entries:
        if entry is None:
            shape.append(1)
            continue
        count = next(counts)
        if isinstance(entry, slice):
            shape.append(count)
    return tuple(shape)


# ---- integer arrays --------------------------------------------------------------------------------------------------


def _arrays(entries: Sequence[Entry]) -> list[int]:
    """The places of arrays, and of integers, which count as such beside them."""
    return [i for i, entry in enumerate(entries) if isinstance(entry, (int, Symbol, np.ndarray))]


def _broadcast(indices: Sequence[Symbol]) -> tuple[Symbol, ...]:
    try:
        return tuple(broadcast_all(indices))
    except ShapeError:
        shapes = " ".join(str(index.shape) for index in indices)
        message = f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
        raise OutOfRangeError(message) from None


def _are_neighbours(places: Sequence[int]) -> bool:
    return not places or places[-1] - places[0] == len(places) - 1


class Advanced(NamedTuple):
    """An index with arrays: basic `steps`, then `order` brings the axes with arrays to the front, where they are read.

    `back` puts the result's axes where NumPy has them.
    """

    steps: Steps
    order: Ints
    indices: tuple[Symbol, ...]
    back: Ints

    @staticmethod
    def of(entries: Sequence[Entry], shape: Shape) -> Advanced:
        """Read an index. Integers beside arrays count as arrays."""
        together = _are_neighbours(_arrays(entries))
        entries = [entry for entry in entries if entry is not Ellipsis]
        arrays = _arrays(entries)
        if not arrays:
            raise UnsupportedFunctionError("ufunc.at has no rule for slices alone", remedy="use x[index] += values")
        sizes = iter(shape)
        at = {i: next(sizes) for i, entry in enumerate(entries) if entry is not None}
        indices = _broadcast([_in_bounds(entries[i], at[i], i) for i in arrays])
        basic = [slice(None) if i in arrays else entry for i, entry in enumerate(entries)]
        rest = tuple(i for i in range(len(entries)) if i not in arrays)
        place = sum(i < arrays[0] for i in rest) if together else 0
        count = indices[0].ndim
        axes = range(count + len(rest))
        back = (*axes[count : count + place], *axes[:count], *axes[count + place :])
        return Advanced(Basic.of(basic, shape).steps, (*arrays, *rest), indices, back)

    def selected(self, part: Aval) -> Aval:
        """The aval of what is read of an array, after `steps`."""
        rest = tuple(part.shape[axis] for axis in self.order[len(self.indices) :])
        shape = (*self.indices[0].shape, *rest)
        return part.with_shape(tuple(shape[axis] for axis in self.back))

    def read(self, x: Symbol) -> Symbol:
        moved = transpose_to(read(self.steps, x), self.order)
        return transpose_to(gather(moved, *self.indices), self.back)

    def write(self, x: Symbol, value: Any) -> Symbol:
        part = read(self.steps, x)
        moved = transpose_to(part, self.order)
        updates = fitted(value, self.selected(part.aval))
        written = scatter(moved, transpose_to(updates, invert(self.back)), *self.indices)
        return write(self.steps, x, transpose_to(written, invert(self.order)))


def _in_bounds(entry: Any, n: int, axis: int) -> Symbol:
    """An index as a symbol; raise where it is known to lie outside its axis."""
    if not isinstance(entry, Symbol):
        values = np.asarray(entry)
        wrong = values[(values < -n) | (values >= n)]
        if wrong.size:
            raise OutOfRangeError(f"index {wrong.flat[0]} is out of bounds for axis {axis} with size {n}")
        if is_counting(values, n):  # as the rows in x[np.arange(n), columns], which the compiler sees one by one
            return iota(dtype=I64, shape=values.shape, axis=values.shape.index(n))
    return to_dtype(as_symbol(entry), I64)


def is_counting(values: np.ndarray[Any, Any], n: int) -> bool:
    """True if integers are 0, 1, …, n - 1 along an axis, of several."""
    return values.size == n > 1 and n in values.shape and np.array_equal(values.ravel(), np.arange(n))
