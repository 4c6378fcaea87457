"""Convolution over all axes.

    full:   z_i = Σ_j x_(i-j) y_j      for all i where there is a term
    valid:  the same, for those i where no term is missing; y is the smaller one along every axis

Each is bilinear, and the transposes are convolutions with the reversed operand: of the full one valid, of the valid one
full in x and valid in y.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fnad.errors import ShapeError
from fnad.ir.axes import Opaque
from fnad.ir.primitive import Bilinear, Library, Primitive, Sample, register
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval
from fnad.ops.constructors import NUMBERS, by_name, check_dtype, check_one_dtype
from fnad.ops.shape import reverse, sample
from fnad.placement import scipy_module


def _infer_convolve(x: Aval, y: Aval, *, mode: str) -> Aval:
    check_dtype("convolve", x.dtype, NUMBERS)
    check_one_dtype("convolve", x, y)
    if x.ndim != y.ndim or x.ndim == 0 or 0 in (*x.shape, *y.shape):
        raise ShapeError(f"convolve takes arrays of as many axes, none of them empty, got {x} and {y}")
    if mode == "full":
        return x.with_shape(tuple(n + m - 1 for n, m in zip(x.shape, y.shape, strict=True)))
    if any(n < m for n, m in zip(x.shape, y.shape, strict=True)):
        raise ShapeError(f"a valid convolve takes the smaller array along every axis as the second, got {x} and {y}")
    return x.with_shape(tuple(n - m + 1 for n, m in zip(x.shape, y.shape, strict=True)))


def _convolve(x: Any, y: Any, *, mode: str) -> Any:
    return scipy_module(x, "signal").convolve(x, y, mode, "direct").astype(x.dtype)


def backwards(x: Symbol) -> Symbol:
    """The operand reversed along every axis."""
    return reverse(x, axes=tuple(range(x.ndim)))


def _transpose_x(ct: Symbol, x: Symbol, y: Symbol, *, mode: str) -> Symbol:
    return convolve(ct, backwards(y), mode="valid" if mode == "full" else "full")


def _transpose_y(ct: Symbol, x: Symbol, y: Symbol, *, mode: str) -> Symbol:
    if mode == "full":
        return convolve(ct, backwards(x), mode="valid")
    return backwards(convolve(x, backwards(ct), mode="valid"))


def _convolve_samples() -> Iterable[Sample]:
    for dtype in by_name(NUMBERS):
        yield Sample((sample((4,), dtype), sample((3,), dtype, 1)), {"mode": "full"})
    for x, y in (((5,), (2,)), ((3, 4), (2, 3)), ((1,), (1,)), ((3, 1, 2), (1, 1, 2))):
        for mode in ("full", "valid"):
            yield Sample((sample(x), sample(y, seed=1)), {"mode": mode})


convolve = register(
    Primitive(
        "convolve",
        _infer_convolve,
        _convolve,
        Bilinear((_transpose_x, _transpose_y)),
        Library("convolve", raises=False, dispatched=True),
        _convolve_samples,
        "Convolution over all axes, as a sum of products; `mode` full or valid.",
        axes=Opaque("it convolves over all axes"),
    )
)
