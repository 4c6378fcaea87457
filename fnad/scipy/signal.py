"""scipy.signal's convolutions and recursive filters, for traced values: NumPy's protocols do not reach them.

>>> import fnad
>>> import numpy as np
>>> fnad.grad(lambda x: convolve(x, np.array([1.0, 2.0]))[1])(np.array([3.0, 4.0]))
array([2., 1.])

Along an axis the full convolution of n with m elements has n + m - 1. Of these "same" keeps the middle n, and "valid"
the n - m + 1 (or m - n + 1) that overlap completely.
"""

from __future__ import annotations

import math
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from fnad.errors import ShapeError
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, Shape
from fnad.numpy.bodies import XP
from fnad.numpy.namespace import follows
from fnad.numpy.operands import of_one_dtype, to_dtype
from fnad.numpy.padding import pad
from fnad.ops.arithmetic import mul
from fnad.ops.convolution import convolve as convolve_op
from fnad.ops.shape import slice_
from fnad.scipy import interpolate
from fnad.scipy.rule import body_of, on_values, others_of, rule_of

of_scipy, on_values_of_scipy = rule_of("scipy.signal"), on_values("scipy.signal")


@on_values_of_scipy
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The convolution over all axes, in the common dtype, by sums of products ("direct") or transforms ("fft").

    Both have as many axes. "auto" takes SciPy's choice, which depends on sizes and dtypes, of integers also on values:
    traced ones are summed directly.

    >>> convolve([1.0, 2.0], [1.0, 0.0, 3.0])
    array([1., 2., 3., 6.])
    """
    x, y = XP.asarray(in1), XP.asarray(in2)
    check_operands(x, y, mode)
    dtype = np.result_type(x.dtype, y.dtype)
    if method == "auto":
        shapes = (np.empty(operand.shape, dtype) for operand in (x, y))
        is_small = x.ndim == 0 or dtype.kind in "biu"
        method = "direct" if is_small else import_module("scipy.signal").choose_conv_method(*shapes, mode)
    if method == "fft":
        found = fftconvolve(x, y, mode)
        return (XP.rint(found) if dtype.kind in "iu" else found).astype(dtype)
    if method != "direct":
        raise ShapeError("Acceptable method flags are 'auto', 'direct', or 'fft'.")
    return _summed(x, y, mode)


@of_scipy
def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """The convolution of two images, where the first one goes on outside: with `fillvalue`, periodic or mirrored.

    >>> convolve2d([[1.0, 2.0]], [[1.0, 1.0]], boundary="wrap")
    array([[3., 3., 3.]])
    """
    x, y = of_one_dtype(in1, in2)
    check_operands(x, y, mode)
    if x.ndim != 2:
        raise ShapeError("convolve2d inputs must both be 2-D arrays")
    if boundary not in OUTSIDE:
        raise ShapeError("Acceptable boundary flags are 'fill', 'circular' (or 'wrap'), and 'symmetric' (or 'symm').")
    if mode == "valid" or (boundary == "fill" and isinstance(fillvalue, (int, float)) and fillvalue == 0):
        return directly(x, y, mode)
    options = {"constant_values": fillvalue} if boundary == "fill" else {}
    wider = pad(x, [(m - 1, m - 1) for m in y.shape], OUTSIDE[boundary], **options).read()
    whole = convolve_op(to_dtype(wider, y.dtype), y, mode="valid")
    return whole if mode == "full" else centered(whole, x.shape)


OUTSIDE = {"fill": "constant", "wrap": "wrap", "circular": "wrap", "symm": "symmetric", "symmetric": "symmetric"}
"""NumPy's names for the ways in which an image is extended."""


@on_values_of_scipy
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The correlation over all axes: the convolution of in1 with conj(in2) backwards.

    >>> correlate([1.0, 2.0], [1.0, 0.0, 3.0])
    array([3., 6., 1., 2.])
    """
    return convolve(in1, XP.flip(XP.asarray(in2).conj()), mode, method)


fftconvolve = body_of("scipy.signal.fftconvolve")


# ---- the rules -------------------------------------------------------------------------------------------------------


def check_operands(x: Any, y: Any, mode: str) -> None:
    """Raise for a mode that there is not, and for operands that differ in their number of axes."""
    if mode not in ("full", "same", "valid"):
        raise ShapeError("acceptable mode flags are 'valid', 'same', or 'full'")
    if x.ndim != y.ndim:
        raise ShapeError("in1 and in2 should have the same dimensionality")


def directly(in1: Any, in2: Any, mode: str) -> Symbol:
    """The convolution by sums of products."""
    x, y = of_one_dtype(in1, in2)
    if x.ndim == 0:
        return mul(x, y)
    if mode == "valid":
        return convolve_op(*larger_first(x, y), mode="valid")
    whole = convolve_op(x, y, mode="full")
    return whole if mode == "full" else centered(whole, x.shape)


@follows(directly)
def _summed(x: Any, y: Any, mode: str) -> Any:
    """The convolution of ordinary arrays by sums of products."""
    return convolve(x, y, mode, "direct")


def larger_first(x: Symbol, y: Symbol) -> tuple[Symbol, Symbol]:
    """The operands in the order that a valid convolution takes; raise where neither is the larger."""
    if all(n >= m for n, m in zip(x.shape, y.shape, strict=True)):
        return x, y
    if all(n <= m for n, m in zip(x.shape, y.shape, strict=True)):
        return y, x
    raise ShapeError("For 'valid' mode, one must be at least as large as the other in every dimension")


def centered(x: Symbol, shape: Shape) -> Symbol:
    """The middle of x, of this shape."""
    starts = tuple((n - m) // 2 for n, m in zip(x.shape, shape, strict=True))
    limits = tuple(start + m for start, m in zip(starts, shape, strict=True))
    return slice_(x, starts=starts, limits=limits, strides=(1,) * x.ndim)


# ---- recursive filters -----------------------------------------------------------------------------------------------


def _of_one_float(*values: Any) -> list[Any]:
    """The arrays of values in their common dtype, f64 for integers."""
    arrays = list(map(XP.asarray, values))
    dtype = np.result_type(*[array.dtype for array in arrays])
    return [array.astype(dtype if dtype.kind in "fc" else F64) for array in arrays]


@on_values_of_scipy
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """The y with a₀ yₙ + a₁ yₙ₋₁ + … = b₀ xₙ + b₁ xₙ₋₁ + … along an axis, which solves a banded triangular system.

    With `zi`, the state before the first element, also the state behind the last one.

    >>> lfilter([1.0], [1.0, -0.5], [1.0, 0.0, 0.0])
    array([1.  , 0.5 , 0.25])
    """
    b, a, x, *rest = _of_one_float(XP.atleast_1d(b), XP.atleast_1d(a), x, *([] if zi is None else [zi]))
    x, order = XP.moveaxis(x, axis, 0), max(b.shape[0], a.shape[0]) - 1
    if not b.size:
        raise ShapeError("Parameter b is not a non-empty 1d array")
    if rest and (rest[0].ndim != x.ndim or rest[0].shape[axis] != order):
        raise ShapeError(f"Unexpected shape for zi: expected {order} along the axis, found {rest[0].shape}")
    b, a = b / a[0], a / a[0]
    state = XP.moveaxis(rest[0], axis, 0) if rest else None
    forced = _delayed_sum(b, x, 0)
    n = x.shape[0]
    if state is not None:
        head = min(state.shape[0], n)
        shape = (n - head, *x.shape[1:])
        start = XP.broadcast_to(state[:head], (head, *x.shape[1:]))
        forced = forced + XP.concatenate([start, XP.zeros(shape, x.dtype)])
    y = _without_feedback(a, forced)
    found = XP.moveaxis(y, 0, axis)
    if state is None:
        return found
    later = [_state_behind(a, b, x, y, state, k) for k in range(order)]
    final = XP.stack(later) if later else XP.zeros((0, *x.shape[1:]), x.dtype)
    return found, XP.moveaxis(final, 0, axis)


def _delayed_sum(weights: Any, x: Any, first: int) -> Any:
    """The sum of weights[k] x[n - k], k >= first, along the first axis; before its first element x is 0."""
    n, total = x.shape[0], XP.zeros(x.shape, x.dtype)
    for k in range(first, min(weights.shape[0], n)):
        total = total + XP.concatenate([XP.zeros((k, *x.shape[1:]), x.dtype), weights[k] * x[: n - k]])
    return total


def _without_feedback(a: Any, forced: Any) -> Any:
    """The y with yₙ + a₁ yₙ₋₁ + … = the given values."""
    n, below = forced.shape[0], min(a.shape[0], forced.shape[0]) - 1
    if below <= 0:
        return forced
    bands = XP.broadcast_to(a[: below + 1, None], (below + 1, n))
    columns = XP.reshape(forced, (n, math.prod(forced.shape[1:])))
    solved = import_module("fnad.scipy.linalg").solve_banded((below, 0), bands, columns)
    return XP.reshape(solved, forced.shape)


def _state_behind(a: Any, b: Any, x: Any, y: Any, state: Any, k: int) -> Any:
    """Element k of the state behind the last element."""
    n = x.shape[0]
    total = XP.zeros(x.shape[1:], x.dtype)
    for j in range(k + 1, min(n + k, max(a.shape[0], b.shape[0]) - 1) + 1):
        at = n + k - j
        if j < b.shape[0]:
            total = total + b[j] * x[at]
        if j < a.shape[0]:
            total = total - a[j] * y[at]
    return total + state[n + k] if n + k < state.shape[0] else total


def _over_first(b: Any, a: Any, *others: Any) -> list[Any]:
    """Coefficients over a₀, of one length; SciPy divides only if a₀ is not 1, and so has no derivative by it at 1."""
    b, a, *rest = _of_one_float(XP.atleast_1d(b), XP.atleast_1d(a), *others)
    n = max(b.shape[0], a.shape[0])
    return [*(_of_length(n, c / a[0]) for c in (b, a)), *(_of_length(n - 1, c) for c in rest)]


def _of_length(n: int, x: Any) -> Any:
    """The first n elements of a vector, with zeros behind it if it is shorter."""
    return XP.concatenate([x[:n], XP.zeros(max(n - x.shape[0], 0), x.dtype)])


@on_values_of_scipy
def lfilter_zi(b: Any, a: Any) -> Any:
    """The state of `lfilter` in which the response to a step is constant.

    >>> lfilter_zi([1.0], [1.0, -0.5])
    array([1.])
    """
    a = XP.atleast_1d(a)
    while len(a) > 1 and a[0] == 0.0:
        a = a[1:]
    b, a = _over_first(b, a)
    order, dtype = b.shape[0] - 1, b.dtype
    shifted = np.eye(order, dtype=dtype) - np.eye(order, k=1, dtype=dtype)
    return XP.linalg.solve(shifted + a[1:, None] * np.eye(1, order, dtype=dtype), b[1:] - a[1:] * b[0])


@on_values_of_scipy
def lfiltic(b: Any, a: Any, y: Any, x: Any = None) -> Any:
    """The state of `lfilter` behind its results y and the elements x before them, the last ones first.

    >>> lfiltic([1.0], [1.0, -0.5], [4.0])
    array([2.])
    """
    b, a, y, x = _over_first(b, a, y, [] if x is None else x)
    if len(x) == 0:
        return x
    return (XP.convolve(b[1:], x[::-1]) - XP.convolve(a[1:], y[::-1]))[len(x) - 1 :]


@on_values_of_scipy
def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False) -> Any:
    """The data along an axis without its mean, or without a line of least squares for each part between breakpoints.

    >>> detrend([0.0, 1.0, 5.0])
    array([ 0.5, -1. ,  0.5])
    """
    if type not in ("linear", "l", "constant", "c"):
        raise ShapeError("Trend type must be 'linear' or 'constant'.")
    x = XP.moveaxis(XP.asarray(data), axis, 0)
    ends = [0, x.shape[0]] if type in ("constant", "c") else np.unique([0, *np.ravel(bp), x.shape[0]]).tolist()
    if ends[0] < 0 or ends[-1] > x.shape[0]:
        raise ShapeError("Breakpoints must be less than length of data along given axis.")
    centred = [x[begin:end] - XP.mean(x[begin:end], axis=0) for begin, end in pairwise(ends)]
    parts = centred if type in ("constant", "c") else [_without_slope(part) for part in centred]
    return XP.moveaxis(XP.concatenate(parts), 0, axis)


def _without_slope(x: Any) -> Any:
    """Data of mean 0 along the first axis without their component along a line through 0."""
    line = np.linspace(-1, 1, x.shape[0]) if x.shape[0] > 1 else np.ones(1)
    line = line.reshape(-1, *[1] * (x.ndim - 1)).astype(np.finfo(x.dtype).dtype)
    return x - line * (XP.sum(line * x, axis=0) / float(np.sum(line.astype(F64) ** 2)))


@on_values_of_scipy
def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """The filter of sections of second order, one after the other, along an axis.

    With `zi`, a state for each section, also the states behind the last element.

    >>> sosfilt([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]], [1.0, 0.0, 0.0])
    array([1.  , 0.5 , 0.25])
    """
    sections, states, shape = XP.atleast_2d(sos), [], list(np.shape(x))
    shape[axis] = 2
    if sections.ndim != 2 or sections.shape[1] != 6:
        raise ShapeError("sos array must be shape (n_sections, 6)")
    sections = interpolate.required(
        sections, sections[:, 3] == 1, "sos[:, 3] should be all ones", "divide each row by its fourth element"
    )
    if zi is not None and np.shape(zi) != (len(sections), *shape):
        raise ShapeError(f"Invalid zi shape: expected {(len(sections), *shape)}, found {np.shape(zi)}")
    for i in range(sections.shape[0]):
        found = lfilter(sections[i, :3], sections[i, 3:], x, axis, None if zi is None else XP.asarray(zi)[i])
        x, state = (found, None) if zi is None else found
        states.append(state)
    return XP.asarray(x) if zi is None else (x, XP.stack(states))


@on_values_of_scipy
def upfirdn(h: Any, x: Any, up: int = 1, down: int = 1, axis: int = -1) -> Any:
    """Put zeros between elements so that there are `up` times as many, filter, and keep each `down`-th, along an axis.

    >>> upfirdn([1.0, 1.0], [1.0, 2.0], up=2)
    array([1., 1., 2., 2.])
    """
    weights, x = _of_one_float(h, x)
    if weights.ndim != 1 or not weights.size:
        raise ShapeError("h must be 1-D with non-zero length")
    given = XP.moveaxis(x, axis, 0)
    n, rest = given.shape[0], given.shape[1:]
    between = XP.zeros((n, up - 1, *rest), x.dtype)
    apart = XP.reshape(XP.concatenate([given[:, None], between], axis=1), (n * up, *rest))
    behind = XP.zeros((weights.shape[0] - 1, *rest), x.dtype)
    filtered = _delayed_sum(weights, XP.concatenate([apart[: (n - 1) * up + 1], behind]), 0)
    return XP.moveaxis(filtered[::down], 0, axis)


__getattr__ = others_of("scipy.signal")
