"""Data movement: moves that change nothing, cancel or merge."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from fnad.ir.symbol import Symbol
from fnad.ir.types import Shape
from fnad.ops.constructors import NUMBERS
from fnad.ops.shape import Ints, broadcast_in_dim, concatenate, pad, reshape_to, reverse, slice_, transpose_to
from fnad.transforms.pattern import Rule


def _broadcast_of_reshape(x: Symbol, between: Shape, shape: Shape, dims: Ints) -> Symbol | None:
    """The broadcast of x itself where the reshape only puts axes of one element between its axes."""
    kept: list[int] = []
    for dim, n in zip(dims, between, strict=True):
        if len(kept) < x.ndim and x.shape[len(kept)] == n:
            kept.append(dim)
        elif n != 1:
            return None
    return broadcast_in_dim(x, shape=shape, dims=tuple(kept)) if len(kept) == x.ndim else None


def _reshape_of_transpose_of_reshape(x: Symbol, between: Shape, permutation: Ints, shape: Shape) -> Symbol | None:
    """The transpose of x itself where the inner reshape only adds and drops axes of one element."""
    long = [axis for axis, n in enumerate(x.shape) if n != 1]
    among = [axis for axis, n in enumerate(between) if n != 1]
    if [x.shape[axis] for axis in long] != [between[axis] for axis in among]:
        return None
    order = iter(long[among.index(axis)] for axis in permutation if axis in among)
    return reshape_to(transpose_to(x, tuple(next(order) if n != 1 else axis for axis, n in enumerate(x.shape))), shape)


def _same_shape(x: Symbol, shape: Shape) -> Symbol | None:
    return x if x.shape == shape else None


# ---- slice and pad -----------------------------------------------------------------------------------------------


def _whole_slice(x: Symbol, starts: Ints, limits: Ints, strides: Ints) -> Symbol | None:
    return x if limits == x.shape and not any(starts) and set(strides) <= {1} else None


def _strided(x: Symbol, starts: Sequence[int], strides: Sequence[int], counts: Shape) -> Symbol:
    """A slice of this many elements per axis, from a start, with strides."""
    limits = tuple(a + (n - 1) * s + 1 if n else a for a, s, n in zip(starts, strides, counts, strict=True))
    return slice_(x, starts=tuple(starts), limits=limits, strides=tuple(strides))


def _counts(starts: Ints, limits: Ints, strides: Ints) -> Shape:
    return tuple(-(-(limit - start) // stride) for start, limit, stride in zip(starts, limits, strides, strict=True))


def _merge_slices(x: Symbol, a: Ints, s: Ints, starts: Ints, limits: Ints, strides: Ints) -> Symbol:
    counts = _counts(starts, limits, strides)
    merged = [start + inner * outer if n else 0 for start, inner, outer, n in zip(a, s, starts, counts, strict=True)]
    return _strided(x, merged, [inner * outer for inner, outer in zip(s, strides, strict=True)], counts)


def _slice_of_pad(x: Symbol, low: Ints, interior: Ints, starts: Ints, limits: Ints, strides: Ints) -> Symbol | None:
    """A slice that reads only elements of x can read them from x."""
    counts = _counts(starts, limits, strides)
    inner_starts: list[int] = []
    inner_strides: list[int] = []
    for n, a, i, start, stride, count in zip(x.shape, low, interior, starts, strides, counts, strict=True):
        first, past = divmod(start - a, i + 1)
        step, between = divmod(stride, i + 1)
        if count == 0 or past or between or first < 0 or first + (count - 1) * step >= n:
            return None
        inner_starts.append(first)
        inner_strides.append(step)
    return _strided(x, inner_starts, inner_strides, counts)


def _slice_of_padded_sum(
    z: Symbol, x: Symbol, low: Ints, interior: Ints, starts: Ints, limits: Ints, strides: Ints
) -> Symbol | None:
    """A slice that reads only elements of x, or only zeros, needs neither the padded array nor all of the sum."""
    read = _slice_of_pad(x, low, interior, starts, limits, strides)
    if read is None and not _is_apart(x.shape, low, interior, starts, limits):
        return None
    rest = slice_(z, starts=starts, limits=limits, strides=strides)
    return rest + (0 if read is None else read)


def _is_apart(shape: Shape, low: Ints, interior: Ints, starts: Ints, limits: Ints) -> bool:
    """True if a box has no element of an array of this shape that is padded."""
    ends = (a + (n - 1) * (i + 1) + 1 for n, a, i in zip(shape, low, interior, strict=True))
    return any(limit <= a or start >= end for start, limit, a, end in zip(starts, limits, low, ends, strict=True))


def _no_padding(x: Symbol, low: Ints, high: Ints, interior: Ints) -> Symbol | None:
    between = any(i and n > 1 for i, n in zip(interior, x.shape, strict=True))
    return None if between or any(low) or any(high) else x


def _merge_pads(x: Symbol, a: Ints, b: Ints, i: Ints, low: Ints, high: Ints, interior: Ints) -> Symbol | None:
    if any(interior) or any(i):
        return None
    below = tuple(m + n for m, n in zip(a, low, strict=True))
    above = tuple(m + n for m, n in zip(b, high, strict=True))
    return pad(x, low=below, high=above, interior=interior)


# ---- concatenate -------------------------------------------------------------------------------------------------


def _drop_empty(xs: Sequence[Symbol], axis: int) -> Symbol | None:
    kept = [x for x in xs if x.shape[axis]] or list(xs[:1])
    return kept[0] if len(kept) == 1 else concatenate(*kept, axis=axis) if len(kept) < len(xs) else None


def _slice_of_concatenate(xs: Sequence[Symbol], axis: int, starts: Ints, limits: Ints, strides: Ints) -> Symbol | None:
    ends = accumulate(x.shape[axis] for x in xs)
    for x, end in zip(xs, ends, strict=True):
        begin = end - x.shape[axis]
        if begin <= starts[axis] < limits[axis] <= end:
            moved = [tuple(bound - begin * (a == axis) for a, bound in enumerate(b)) for b in (starts, limits)]
            return slice_(x, starts=moved[0], limits=moved[1], strides=strides)
    return None


# ---- padded pieces -----------------------------------------------------------------------------------------------


def pad_in(x: Symbol, low: Ints, shape: Shape) -> Symbol:
    """Pad x with zeros to this shape; x starts at `low`."""
    high = tuple(n - a - m for n, a, m in zip(shape, low, x.shape, strict=True))
    return pad(x, low=low, high=high, interior=(0,) * x.ndim)


def join(x: Symbol, at: Ints, y: Symbol, there: Ints) -> tuple[Symbol, Ints] | None:
    """Join two adjacent pieces of one array; return the start of the joined piece too."""
    for first, start, second, behind in ((x, at, y, there), (y, there, x, at)):
        axis = _axis_between(first, start, second, behind)
        if axis is not None:
            return concatenate(first, second, axis=axis), start
    return None


def _axis_between(x: Symbol, at: Ints, y: Symbol, behind: Ints) -> int | None:
    """The axis along which y directly follows x, aligned with it in all others."""
    apart = [axis for axis in range(x.ndim) if (at[axis], x.shape[axis]) != (behind[axis], y.shape[axis])]
    return apart[0] if len(apart) == 1 and at[apart[0]] + x.shape[apart[0]] == behind[apart[0]] else None


def _add_pads(x: Symbol, a: Ints, b: Ints, i: Ints, y: Symbol, low: Ints, j: Ints) -> Symbol | None:
    """Add padded pieces by joining them."""
    joined = None if any(i) or any(j) else join(x, a, y, low)
    total = tuple(m + n + k for m, n, k in zip(a, x.shape, b, strict=True))
    return None if joined is None else pad_in(*joined, total)


def _add_last_pads(z: Symbol, x: Symbol, a: Ints, b: Ints, i: Ints, y: Symbol, low: Ints, j: Ints) -> Symbol | None:
    joined = _add_pads(x, a, b, i, y, low, j)
    return None if joined is None else z + joined


# ---- reverse ---------------------------------------------------------------------------------------------


def _no_reverse(x: Symbol, axes: Ints) -> Symbol | None:
    return None if any(x.shape[axis] > 1 for axis in axes) else x


def _merge_reverses(x: Symbol, inner: Ints, outer: Ints) -> Symbol:
    return reverse(x, axes=tuple(sorted(set(inner) ^ set(outer))))


MOVEMENT = (
    Rule("broadcast_in_dim(x, shape=shape) = x where the shape is that of x", _same_shape),
    Rule(
        "broadcast_in_dim(broadcast_in_dim(x, dims=inner), shape=shape, dims=outer) = broadcast_in_dim(x)",
        lambda x, inner, shape, outer: broadcast_in_dim(x, shape=shape, dims=tuple(outer[d] for d in inner)),
    ),
    Rule(
        "broadcast_in_dim(reshape(x, shape=between), shape=shape, dims=dims) = broadcast_in_dim(x) if that adds axes",
        _broadcast_of_reshape,
    ),
    Rule("reshape(x, shape=shape) = x where the shape is that of x", _same_shape),
    Rule("reshape(reshape(x), shape=shape) = reshape(x)", reshape_to),
    Rule(
        "reshape(transpose(reshape(x, shape=between), permutation=p), shape=shape) = reshape(transpose(x))"
        " where the inner one adds or drops axes of one element",
        _reshape_of_transpose_of_reshape,
    ),
    Rule("transpose(x, permutation=p) = x where no axis moves", lambda x, p: x if p == tuple(range(x.ndim)) else None),
    Rule(
        "transpose(transpose(x, permutation=p), permutation=q) = transpose(x, p[q])",
        lambda x, p, q: transpose_to(x, tuple(p[axis] for axis in q)),
    ),
    Rule("slice(x, starts=starts, limits=limits, strides=strides) = x where it is all of x", _whole_slice),
    Rule(
        "slice(slice(x, starts=a, strides=s), starts=starts, limits=limits, strides=strides) = slice(x)", _merge_slices
    ),
    Rule(
        "slice(pad(x, low=low, interior=interior), starts=starts, limits=limits, strides=strides) = slice(x)",
        _slice_of_pad,
    ),
    Rule(
        "slice(add(z, pad(x, low=low, interior=interior)), starts=starts, limits=limits, strides=strides)"
        " = slice(z) + slice(x) or slice(z) + 0 where it reads nothing else",
        _slice_of_padded_sum,
        NUMBERS,
    ),
    Rule(
        "slice(concatenate(*xs, axis=axis), starts=starts, limits=limits, strides=strides) = slice(x of xs)",
        _slice_of_concatenate,
    ),
    Rule("pad(x, low=low, high=high, interior=interior) = x where there is no padding", _no_padding),
    Rule("pad(pad(x, low=a, high=b, interior=i), low=low, high=high, interior=interior) = pad(x)", _merge_pads),
    Rule(
        "add(pad(x, low=a, high=b, interior=i), pad(y, low=low, interior=j)) = pad(concatenate(x, y))",
        _add_pads,
        NUMBERS,
        up_to="the sign of zero",
    ),
    Rule(
        "add(add(z, pad(x, low=a, high=b, interior=i)), pad(y, low=low, interior=j)) = add(z, pad(concatenate(x, y)))",
        _add_last_pads,
        NUMBERS,
        up_to="the sign of zero",
    ),
    Rule("concatenate(*xs, axis=axis) = concatenate(*xs that are not empty)", _drop_empty),
    Rule("reverse(x, axes=axes) = x where these axes have one element", _no_reverse),
    Rule("reverse(reverse(x, axes=inner), axes=outer) = reverse(x, inner ^ outer)", _merge_reverses),
)
