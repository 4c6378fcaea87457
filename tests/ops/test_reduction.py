"""Reductions against NumPy's, over every choice of axes, and their errors."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from fnad.errors import AxisError, DtypeError, ShapeError
from fnad.ir.primitive import Primitive
from fnad.ir.types import DTYPES, Aval
from fnad.ops.reduction import argmax, argmin, cumsum, reduce_and, reduce_max, reduce_min, reduce_or, reduce_prod
from fnad.ops.shape import reduce_sum
from fnad.testing import Run
from tests.edge_cases.derivatives import value

X = np.random.default_rng(0).standard_normal((2, 3, 4))
AXES = [axes for count in range(4) for axes in combinations(range(3), count)]
REDUCTIONS = {reduce_sum: np.sum, reduce_prod: np.prod, reduce_max: np.max, reduce_min: np.min}


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("primitive", REDUCTIONS, ids=str)
def test_reduction_over_axes(primitive: Primitive, axes: tuple[int, ...], run: Run):
    found = value(run, lambda x: primitive(x, axes=axes), X)
    np.testing.assert_allclose(found, REDUCTIONS[primitive](X, axis=axes), rtol=1e-14)


@pytest.mark.parametrize("axes", AXES, ids=str)
def test_logical_reduction_over_axes(axes: tuple[int, ...], run: Run):
    for threshold in (-3.0, 0.0, 3.0):
        x = threshold < X
        np.testing.assert_array_equal(value(run, lambda x: reduce_and(x, axes=axes), x), np.all(x, axis=axes))
        np.testing.assert_array_equal(value(run, lambda x: reduce_or(x, axes=axes), x), np.any(x, axis=axes))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_argmax_and_argmin_take_the_first_of_ties(axis: int, run: Run):
    x = np.round(X)  # with ties
    for primitive, numpy in ((argmax, np.argmax), (argmin, np.argmin)):
        np.testing.assert_array_equal(value(run, lambda x, p=primitive: p(x, axis=axis), x), numpy(x, axis=axis))


def test_positions_of_nan_and_of_zeros_of_either_sign(run: Run):
    x = np.array([[1, np.nan, np.nan], [0.0, -0.0, 0.0], [np.inf, 1, np.inf], [-np.inf, 1, -np.inf]])
    for primitive, numpy in ((argmax, np.argmax), (argmin, np.argmin)):
        np.testing.assert_array_equal(value(run, lambda x, p=primitive: p(x, axis=1), x), numpy(x, axis=1))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumsum_adds_along_an_axis_from_either_end(axis: int, reverse: bool, run: Run):
    flipped = np.flip(X, axis) if reverse else X
    sums = np.cumsum(flipped, axis)
    found = value(run, lambda x: cumsum(x, axis=axis, reverse=reverse), X)
    np.testing.assert_allclose(found, np.flip(sums, axis) if reverse else sums, rtol=1e-14, atol=1e-15)


def test_reductions_of_no_elements_are_identities_or_refused(run: Run):
    x = np.zeros((2, 0))
    np.testing.assert_array_equal(value(run, lambda x: reduce_sum(x, axes=(1,)), x), [0, 0])
    np.testing.assert_array_equal(value(run, lambda x: reduce_prod(x, axes=(1,)), x), [1, 1])
    assert value(run, lambda x: reduce_max(x, axes=(0,)), x).shape == (0,)
    for infer in (lambda: reduce_max.infer(Aval(x.dtype, x.shape), axes=(1,)), lambda: argmin_of(x)):
        with pytest.raises(ShapeError, match="which has no identity"):
            infer()


def argmin_of(x: Any) -> Any:
    return argmin.infer(Aval(x.dtype, x.shape), axis=1)


def test_message_for_no_elements():
    with pytest.raises(ShapeError) as raised:
        reduce_max.infer(Aval(DTYPES["f64"], (2, 0)), axes=(1,))
    assert str(raised.value) == "zero-size array to reduce_max, which has no identity: f64[2,0] over axes (1,)"


@pytest.mark.parametrize("primitive", REDUCTIONS, ids=str)
def test_axes_that_are_not_there(primitive: Primitive):
    for axes in ((3,), (-1,), (1, 0), (0, 0)):
        with pytest.raises(AxisError) as raised:
            primitive.infer(Aval(DTYPES["f64"], (2, 3, 4)), axes=axes)
        assert str(raised.value) == f"{primitive} over axes {axes} of an array of 3 dimensions"


def test_dtypes_that_are_not_taken():
    for primitive, dtype in ((reduce_max, "c128"), (reduce_and, "f64"), (reduce_sum, "bool")):
        with pytest.raises(DtypeError, match=f"{primitive} does not take {dtype}"):
            primitive.infer(Aval(DTYPES[dtype], (2,)), axes=(0,))
