"""Indexing and writing beside NumPy's, by every kind of index."""

import operator

import numpy as np
import pytest

import fnad
from fnad.errors import OutOfRangeError, TracerEscapeError
from tests.numpy.against_numpy import check, check_error, sample, traced
from tests.together import in_groups

Q = sample((4, 5, 6), "f64")
J = np.array([2, 0, 1])
K = np.int64(2)


class Second:
    def __index__(self):
        return 1

    def __repr__(self):
        return "second"


BASIC = [
    *[
        np.s_[i]
        for i in (0, -1, slice(None), slice(1, 3), slice(None, None, 2), slice(None, None, -1), slice(3, 0, -2))
    ],
    *[
        np.s_[i]
        for i in (slice(1, 1), slice(10, None), slice(5, 2), slice(-2, None), slice(None, -10), slice(2, None, -1))
    ],
    *[
        np.s_[i]
        for i in ((0, 1), (0, 1, 2), (slice(None), slice(None, None, -2), slice(1, -1)), np.uint8(3), np.int64(-1))
    ],
    *[np.s_[i] for i in (..., (..., 0), (0, ...), (1, ..., 2), None, (slice(None), None, 1), (..., None), ())],
]
ARRAYS = [
    *[
        np.s_[i]
        for i in ([0, 1], [0, -1], J, (slice(None), J), (..., J), (J, J), (J, slice(None), J), (0, slice(None), J))
    ],
    *[np.s_[i] for i in ((slice(None), 0, J), (J, slice(1, 3)), (slice(1, 3), J, slice(None, None, 2)), (J, None, J))],
    *[
        np.s_[i]
        for i in (([[0], [1]], [[0, 1]]), (None, J, J), (J, ..., J), (J, slice(None), 0), np.array(1), [], (0, []))
    ],
    *[np.s_[i] for i in (J.astype("u1"), (slice(1, 2), [0, 1]), (np.array(1), 2, J))],
    *[np.s_[i] for i in (Second(), (Second(), Second(), ...), (J, Second()))],
]
MASKS = [
    np.array([True, False, True, True]),
    [True, False, True, False],
    np.s_[:, np.array([True, False, True, True, False])],
    np.ones((4, 5), bool),
    np.arange(120).reshape(4, 5, 6) % 3 == 0,
    np.s_[np.array([True, False, True, True]), 0],
    np.s_[np.array([True, False, True, False]), :, [0, 1]],
]
REFUSED = [
    4,
    -5,
    np.s_[0, 0, 0, 0],
    [4],
    1.0,
    "a",
    np.array([1.0, 2.0]),
    [True, False],
    np.s_[..., ...],
    np.ones((4, 4), bool),
]


@in_groups("index", [*BASIC, *ARRAYS, *MASKS], ids=str)
def test_any_index_reads_as_numpy(index):
    check(operator.itemgetter(index), Q)


@in_groups("index", [*BASIC, *ARRAYS, *MASKS], ids=str)
def test_any_index_writes_as_numpy(index):
    def write(x):
        y, z = x * 1, x * 1
        y[index] = 7.5
        z[index] = x[index] * 2
        z[index] += 1
        part = z[index]
        z[index] *= x[index]
        return y, z, part

    check(write, Q)


@pytest.mark.parametrize("index", REFUSED, ids=str)
def test_what_numpy_refuses(index):
    check_error(operator.itemgetter(index), Q)
    check_error(lambda x: operator.setitem(x * 1, index, 0.0), Q)


def test_values_are_broadcast_and_cast():
    def write(x, i):
        y = x * 1
        y[1:3] = np.arange(6.0)
        y[0] = np.ones((1, 1, 5, 1))
        i[0] = 3.7
        i[1] = True
        return y, i

    check(write, Q, sample((3, 2), "i32"))
    check_error(lambda x: operator.setitem(x * 1, slice(1, 3), np.ones((3, 5, 6))), Q)
    check_error(lambda u: operator.setitem(u, 0, 300), sample(3, "u8"))


# ---- indices known when the program runs -----------------------------------------------------------------------------


def test_traced_integers_index_as_numpys():
    check(lambda x, k: (x[k], x[k, 1], x[:, k, ::2], x[k, k], x[-k, k - 1], x[k, None], x[k, ::-1]), Q, K)
    check(lambda v, k: (v[k], v[k + np.arange(2)]), sample(5, "f64"), K)


def test_traced_arrays_index_as_numpys():
    check(lambda x, j: (x[j], x[:, j, 0], x[j, j[:, None]], x[[j[0], 1]], x[j, ::2]), Q, J)


def test_writing_at_traced_indices():
    def write(x, k, j):
        y = x * 1
        y[k] = 0
        y[:, k, 1] += 1
        y[j] *= x[j]
        y[k][1] = 5
        return y

    check(write, Q, K, J)


def test_writing_by_a_traced_mask():
    def write(x):
        y = x * 1
        y[x > 0.5] = 0
        y[x[..., 0] > 0.3] = 1.5
        return y

    check(write, Q)
    with pytest.raises(TracerEscapeError, match="the shape of the result depends on a traced value"):
        traced(lambda x: operator.setitem(x, x > 0.5, np.ones(3)), Q)


def test_out_of_range_when_the_program_runs():
    for index in (4, -5):
        with pytest.raises(OutOfRangeError):
            traced(lambda x, k: x[k], Q, np.int64(index))


def test_shapes_do_not_depend_on_traced_values():
    with pytest.raises(TracerEscapeError, match="the shape of the result depends on a traced value"):
        traced(lambda x: x[x > 0.5], Q)
    with pytest.raises(TracerEscapeError, match="a bound of a slice was given as a traced value"):
        traced(lambda x, k: x[:k], Q, K)


@pytest.mark.parametrize(
    "index",
    [True, False, np.True_, np.array(False), (True, 0), (0, True), (True, [0, 1]), (..., True), (None, True)]
    + [(slice(None), True), (True, ..., False), (0, ..., True), (slice(0, 1), True, None)],
    ids=str,
)
def test_a_single_bool_is_a_mask_without_dimensions(index):
    def write(x):
        y = x * 1.0
        y[index] = 7.0
        return y

    x = np.arange(6.0).reshape(2, 3)
    for f in (lambda x: x[index], write):
        check(f, x)
        np.testing.assert_array_equal(fnad.jit(f)(x), f(x))
    chosen = write(np.zeros((2, 3))) / 7.0
    np.testing.assert_array_equal(fnad.grad(lambda x: np.sum(x[index] ** 2))(x), 2 * x * chosen)
