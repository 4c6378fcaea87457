"""Primitives that move elements: NumPy's values, exact transposes in dual pairs, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad.errors import AxisError, DtypeError, FnadError, ShapeError
from fnad.ir.primitive import Primitive
from fnad.ir.types import DTYPES, Aval
from fnad.ops.shape import (
    broadcast_in_dim,
    broadcast_to,
    concatenate,
    constant,
    flatten,
    full_like,
    iota,
    pad,
    reshape,
    reverse,
    slice_,
    transpose,
    unflatten,
)
from fnad.testing import Run
from tests.edge_cases.derivatives import value

F64, F32 = DTYPES["f64"], DTYPES["f32"]
X = np.arange(12.0).reshape(3, 4)


def test_broadcast_is_that_of_numpy(run: Run):
    for shape in ((3, 4), (2, 3, 4), (5, 2, 3, 4)):
        np.testing.assert_array_equal(value(run, lambda x, s=shape: broadcast_to(x, s), X), np.broadcast_to(X, shape))
    np.testing.assert_array_equal(value(run, lambda x: broadcast_to(x, (3, 5)), X[:, :1]), np.repeat(X[:, :1], 5, 1))


def test_slice_is_that_of_numpy(run: Run):
    found = value(run, lambda x: slice_(x, starts=(1, 0), limits=(3, 4), strides=(1, 3)), X)
    np.testing.assert_array_equal(found, X[1:3, 0:4:3])


def test_pad_is_that_of_numpy_and_dilates(run: Run):
    found = value(run, lambda x: pad(x, low=(1, 0), high=(0, 2), interior=(0, 0)), X)
    np.testing.assert_array_equal(found, np.pad(X, ((1, 0), (0, 2))))
    found = value(run, lambda x: pad(x, low=(0, 1), high=(0, 0), interior=(1, 2)), X)
    expected = np.zeros((5, 11))
    expected[::2, 1::3] = X
    np.testing.assert_array_equal(found, expected)


def test_movements_are_those_of_numpy(run: Run):
    np.testing.assert_array_equal(value(run, lambda x: reverse(x, axes=(0,)), X), X[::-1])
    np.testing.assert_array_equal(value(run, lambda x: transpose(x, permutation=(1, 0)), X), X.T)
    np.testing.assert_array_equal(value(run, lambda x: reshape(x, shape=(2, 6)), X), X.reshape(2, 6))
    np.testing.assert_array_equal(value(run, lambda x: concatenate(x, x, axis=1), X), np.hstack([X, X]))


def test_constants_have_their_shape_and_dtype(run: Run):
    np.testing.assert_array_equal(value(run, lambda x: full_like(x, 2.5), X), np.full((3, 4), 2.5))
    found = value(run, lambda x: constant(3, F32, (2,)), X)
    assert (found.dtype, found.tolist()) == (F32, [3, 3])
    np.testing.assert_array_equal(value(run, lambda x: iota(dtype=F64, shape=(2, 3), axis=1), X), [[0, 1, 2]] * 2)


def test_positions_and_indices_are_inverse():
    shape = (2, 3, 4)
    for position in range(24):
        assert flatten(unflatten(position, shape), shape) == position


def refused(error: type[FnadError], primitive: Primitive, *avals: Aval, **params: Any) -> str:
    with pytest.raises(error) as raised:
        primitive.infer(*avals, **params)
    return str(raised.value)


def test_shape_primitives_refuse_wrong_params_by_name():
    x = Aval(F64, (3, 4))
    assert refused(ShapeError, broadcast_in_dim, x, shape=(3, 5), dims=(0, 1)) == (
        "cannot broadcast f64[3,4] to shape (3, 5) along axes (0, 1)"
    )
    assert refused(ShapeError, reshape, x, shape=(5,)) == "cannot reshape array of size 12 into shape (5,)"
    assert refused(AxisError, transpose, x, permutation=(0, 0)) == "(0, 0) is no permutation of the axes of f64[3,4]"
    assert refused(AxisError, reverse, x, axes=(2,)) == "reverse over axes (2,) of an array of 2 dimensions"
    assert refused(ShapeError, slice_, x, starts=(0, 0), limits=(4, 4), strides=(1, 1)) == (
        "slice 0:4:1 does not lie in an axis of size 3"
    )
    assert refused(ShapeError, pad, x, low=(-1, 0), high=(0, 0), interior=(0, 0)) == (
        "pad of f64[3,4] takes 2 non-negative widths, got (-1, 0), (0, 0), (0, 0)"
    )
    assert refused(ShapeError, concatenate, x, Aval(F64, (2, 3)), axis=1) == (
        "concatenate along axis 1 takes arrays alike but for that axis, got f64[3,4], f64[2,3]"
    )
    assert "iota does not take bool" in refused(DtypeError, iota, dtype=DTYPES["bool"], shape=(2,), axis=0)
