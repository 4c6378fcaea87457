"""Reading and writing at run-time positions: NumPy's values, and its errors out of range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad.errors import DtypeError, FnadError, OutOfRangeError, ShapeError
from fnad.ir.primitive import Primitive
from fnad.ir.types import DTYPES, Aval
from fnad.ops.indexing import dynamic_slice, dynamic_update_slice, gather, scatter, scatter_add
from fnad.testing import Run
from tests.edge_cases.derivatives import forward, reverse, value

F64, F32, I64 = DTYPES["f64"], DTYPES["f32"], DTYPES["i64"]
X = np.arange(12.0).reshape(4, 3)


def test_gather_is_indexing(run: Run):
    i, j = np.array([[0, -1], [2, 2]]), np.array([[1, 0], [-3, 2]])
    np.testing.assert_array_equal(value(run, gather, X, i), X[i])
    np.testing.assert_array_equal(value(run, gather, X, i, j), X[i, j])


def test_row_45_gradient_of_repeated_indices(run: Run):
    np.testing.assert_array_equal(reverse(run, gather, np.ones(3), np.array([0, 0, 1])), [2, 1, 0])


def test_row_33_scatter_add_adds_every_update(run: Run):
    np.testing.assert_array_equal(value(run, scatter_add, np.zeros(2), np.ones(2), np.array([0, 0])), [2, 0])
    np.testing.assert_array_equal(reverse(run, scatter_add, np.zeros(2), np.ones(2), np.array([0, 0])), [1, 1, 1, 1])


def test_scatter_takes_the_last_update(run: Run):
    operands = np.zeros(3), np.array([1.0, 2.0, 3.0]), np.array([0, -3, 2])
    np.testing.assert_array_equal(value(run, scatter, *operands), [2, 0, 3])
    np.testing.assert_array_equal(reverse(run, scatter, *operands), [0, 1, 0, 0, 1, 1])
    np.testing.assert_array_equal(forward(run, scatter, *operands), [0, 1, 0, 0, 1, 1])


def test_scatter_leaves_its_operand_alone(run: Run):
    x = np.zeros(3)
    value(run, scatter, x, np.ones(1), np.array([0]))
    value(run, scatter_add, x, np.ones(1), np.array([0]))
    value(run, dynamic_update_slice, x, np.ones(1), np.int64(0))
    np.testing.assert_array_equal(x, 0)


def box(x: Any, *starts: Any) -> Any:
    return dynamic_slice(x, *starts, sizes=(2, 2))


@pytest.mark.parametrize(("i", "j"), [(0, 0), (2, 1), (-4, -2), (-2, -3)])
def test_dynamic_slice_is_slicing(i: int, j: int, run: Run):
    rows, columns = i % 4, j % 3
    np.testing.assert_array_equal(
        value(run, box, X, np.int64(i), np.int32(j)), X[rows : rows + 2, columns : columns + 2]
    )
    expected = X.copy()
    expected[rows : rows + 2, columns : columns + 2] = 7
    found = value(run, dynamic_update_slice, X, np.full((2, 2), 7.0), np.int64(i), np.int64(j))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("index", [4, -5, 2**40])
@pytest.mark.parametrize("primitive", [gather, scatter, scatter_add], ids=str)
def test_row_46_index_out_of_range(primitive: Primitive, index: int, run: Run):
    operands = [X] if primitive is gather else [X, np.ones((1, 3))]
    with pytest.raises(OutOfRangeError, match=f"index {index} is out of bounds for axis 0 with size 4") as raised:
        value(run, primitive, *operands, np.array([index]))
    assert isinstance(raised.value, IndexError)


@pytest.mark.parametrize("start", [3, -5])
def test_row_46_box_out_of_range(start: int, run: Run):
    message = f"index {start} with size 2 is out of bounds for axis 0 with size 4"
    with pytest.raises(OutOfRangeError, match=message):
        value(run, box, X, np.int64(start), np.int64(0))
    with pytest.raises(OutOfRangeError, match=message):
        value(run, dynamic_update_slice, X, np.ones((2, 2)), np.int64(start), np.int64(0))


def refused(error: type[FnadError], primitive: Primitive, *avals: Aval, **params: Any) -> str:
    with pytest.raises(error) as raised:
        primitive.infer(*avals, **params)
    return str(raised.value)


def test_gather_refuses_wrong_indices_by_name():
    x = Aval(F64, (4, 3))
    assert refused(ShapeError, gather, x) == "gather takes 1 to 2 index arrays for f64[4,3], got 0"
    assert "an index of gather does not take f64" in refused(DtypeError, gather, x, Aval(F64, (2,)))
    assert refused(ShapeError, gather, x, Aval(I64, (2,)), Aval(I64, (3,))) == (
        "gather takes indices of one shape, got i64[2] and i64[3]"
    )


def test_scatter_refuses_wrong_updates_by_name():
    x, i = Aval(F64, (4, 3)), Aval(I64, (2,))
    assert refused(ShapeError, scatter, x, Aval(F64, (3,)), i) == "scatter takes updates of shape (2, 3), got f64[3]"
    assert refused(DtypeError, scatter_add, x, Aval(F32, (2, 3)), i) == (
        "scatter_add takes updates of the dtype of the array, got f32[2,3] for f64[4,3]"
    )


def test_dynamic_slice_refuses_wrong_boxes_by_name():
    x, start = Aval(F64, (4, 3)), Aval(I64)
    assert refused(ShapeError, dynamic_slice, x, start, sizes=(2, 2)) == (
        "dynamic_slice takes a start and a size for each axis of f64[4,3], got 1 and 2"
    )
    assert refused(ShapeError, dynamic_slice, x, start, start, sizes=(5, 2)) == (
        "dynamic_slice of a box of shape (5, 2) does not fit in f64[4,3]"
    )
    assert refused(ShapeError, dynamic_slice, x, start, Aval(I64, (1,)), sizes=(2, 2)) == (
        "dynamic_slice takes scalar starts, got i64[1]"
    )
    assert refused(ShapeError, dynamic_update_slice, x, Aval(F64, (2,)), start, start) == (
        "dynamic_update_slice takes an update of the array's dtype and rank, got f64[2] for f64[4,3]"
    )
