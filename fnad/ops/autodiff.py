"""Primitives that concern only differentiation."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from fnad.ir.axes import Opaque
from fnad.ir.primitive import Library, NoFormula, NonDifferentiable, Partials, Sample, Scalar, everywhere
from fnad.ir.symbol import Symbol
from fnad.ir.types import DTYPES, F64, I64, Aval, Dtype, Shape, is_inexact
from fnad.ops.arithmetic import add
from fnad.ops.comparison import eq
from fnad.ops.constructors import ANY, LINE, elementwise, primitive
from fnad.ops.conversion import convert_to
from fnad.ops.shape import constant, iota, reshape_to, sample

stop_gradient = elementwise(
    "stop_gradient",
    lambda x: x,
    "{0}",
    NonDifferentiable(),
    domain=ANY,
    over=(LINE,),
    cost=0,
    bounded=everywhere,
    bounds=lambda x: x,
    doc="The value itself, taken as a constant by every derivative.",
)


class _NamedByParams(NoFormula):
    """The error for a missing partial, of the function and the operand that the params name."""

    def __call__(self, *_: Any, **params: Any) -> Any:
        return NoFormula(**params)()


@primitive(
    lambda x, *, function, operand: x,
    Partials((_NamedByParams("without_formula", "x"),)),
    Scalar(lambda *, function, operand: "{0}", 0),
    lambda: [Sample((sample((2, 3)),), {"function": "f", "operand": "x"}, smooth=False)],
)
def without_formula(x: Any, *, function: Any, operand: Any) -> Any:
    """The value itself; its derivative is an error that names the `operand` of the `function` that has no formula."""
    return x


# ---- the directions of a Jacobian --------------------------------------------------------------------------------


def _infer_directions(*, dtype: Dtype, count: int, start: int, shape: Shape) -> Aval:
    return Aval(dtype, (count, *shape))


def _expanded_directions(*, dtype: Dtype, count: int, start: int, shape: Shape) -> Symbol:
    flat = count, math.prod(shape)
    row, column = (iota(dtype=I64, shape=flat, axis=axis) for axis in (0, 1))
    return reshape_to(convert_to(eq(row, add(column, constant(start, I64, flat))), dtype), (count, *shape))


def _directions_samples() -> Iterable[Sample]:
    for dtype in filter(is_inexact, DTYPES.values()):
        yield Sample((), {"dtype": dtype, "count": 6, "start": 0, "shape": (2, 3)})
    yield Sample((), {"dtype": F64, "count": 5, "start": 2, "shape": (2,)})
    yield Sample((), {"dtype": F64, "count": 2, "start": 1, "shape": ()})


@primitive(
    _infer_directions,
    NonDifferentiable(),
    Library(raises=False, expansion=_expanded_directions),
    _directions_samples,
    axes=Opaque("it has no operands"),
    bounded=everywhere,
)
def directions(*, dtype: Dtype, count: int, start: int, shape: Shape) -> Any:
    """One array for each of `count` directions: 1 in one element, from direction `start` on, and 0 in the others."""
    return np.eye(count, math.prod(shape), -start, dtype).reshape((count, *shape))
