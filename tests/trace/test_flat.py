"""x.flat: elements in C order, read and written as NumPy's iterator does."""

import numpy as np
import pytest

import fnad
from tests.numpy.against_numpy import check, check_error, sample

X = sample((2, 3), "f64")
V = sample(4, "f64", 1)
K = np.array([1, 3])

READ = {
    "elements": (lambda x: (x.flat[0], x.flat[-1], x.flat[(2,)], x.flat[np.array(1)]), X),
    "copies": (lambda x: (x.flat[1:4], x.flat[::-2], x.flat[...], x.flat[()], x.flat.copy()), X),
    "integers": (lambda x: (x.flat[[0, 5]], x.flat[np.array([[1, 2]])], x.flat[np.arange(6) > 3]), X),
    "traced integers": (lambda x, i: (x.flat[i], x.flat[i[0]]), X, K),
    "iteration": (lambda x: [a * k for k, a in enumerate(x.flat)], X),
    "transposed": (lambda x: (x.T.flat[1], list(x.T.flat), x[:, ::-1].flat[:2]), X),
    "as an array": (
        lambda x: (np.sum(x.flat), np.asarray(x.flat), np.array(x.flat), np.sin(x.flat), x[0, 0] * x.flat),
        X,
    ),
    "comparison": (lambda x: (x.flat > 0.5, x.flat == x.flat), X),
    "its attributes": (lambda x: x * len(x.flat) * x.flat.index * len(x.flat.coords), X),
    "0-d and scalars": (lambda a, s: (a.flat[0], list(a.flat), s.flat[0]), np.array(2.0), np.float64(3.0)),
    "known": (lambda x: x * float(np.ones_like(x).flat[1]), X),
}


def written(index, value):
    """Return a function that writes into x.flat, of an array and of a view."""

    def call(x, v):
        y, z = x * 1, x * 2
        y.flat[index(v)] = value(x, v)
        z.T.flat[index(v)] = value(x, v)
        return y, z

    return call, X, V


WRITTEN = {
    "element": written(lambda v: 1, lambda x, v: v[0]),
    "from the end": written(lambda v: (-1,), lambda x, v: 5),
    "slice": written(lambda v: slice(1, 5), lambda x, v: v),
    "repeated": written(lambda v: slice(None), lambda x, v: v),
    "cut off": written(lambda v: slice(0, 2), lambda x, v: v),
    "no values": written(lambda v: slice(0, 2), lambda x, v: []),
    "integers": written(lambda v: [[0, 5]], lambda x, v: v[:2]),
    "mask": written(lambda v: np.arange(6) > 2, lambda x, v: x),
    "traced mask": written(lambda v: np.arange(6) * v[0] > 0.5, lambda x, v: 7.0),
    "traced integer": written(lambda v: (v[0] * 0).astype(int) + 2, lambda x, v: v[1]),
    "all": written(lambda v: ..., lambda x, v: v[:3]),
}


@pytest.mark.parametrize("call", [*READ.values(), *WRITTEN.values()], ids=[*READ, *WRITTEN])
def test_flat_of_a_traced_array_reads_and_writes_as_numpy(call):
    check(*call)


def test_assignment_to_flat():
    def f(x, v):
        y, row = x * 1, x * 1
        y.flat = v
        row[0].flat = 2
        y[1].flat[0] += 10
        return y, row

    check(f, X, V)


@pytest.mark.parametrize("index", [7, (1, 2), None, [0, 9]])
def test_flat_refuses_the_indices_that_numpy_refuses(index):
    check_error(lambda x: x.flat[index], X)


@pytest.mark.peers
def test_flat_refuses_the_writes_that_numpy_refuses():
    def f(x, index, value):
        y = x * 1
        y.flat[index] = value
        return y

    for index, value in [(1, [1.0, 2.0]), ((), 1.0), (9, 1.0)]:
        check_error(lambda x, index=index, value=value: f(x, index, value), X)


def test_gradient_through_writes_of_flat_is_exact():
    def f(x):
        y = np.zeros_like(x)
        y.flat[::2] = x.flat[:3] ** 2
        return sum(a * k for k, a in enumerate(y.flat))

    expected = np.zeros(6)
    expected[:3] = 2 * X.ravel()[:3] * [0, 2, 4]
    np.testing.assert_allclose(fnad.grad(f)(X), expected.reshape(2, 3))
    np.testing.assert_allclose(fnad.jit(fnad.grad(f))(X), expected.reshape(2, 3))


def test_flat_of_a_traced_array_is_a_flatiter():
    def f(x):
        assert isinstance(x.flat, np.flatiter)
        assert x.flat.base is x
        assert next(x.flat).shape == ()
        return x

    check(f, X)
