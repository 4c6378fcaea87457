"""What NumPy makes an array of beside an array, it makes one of beside a traced one: ranges, buffers, `__array__`."""

from array import array
from collections import UserList

import numpy as np
import pytest

import fnad

X = np.array([0.3, 0.7, 1.1])


class Column:
    def __init__(self, numbers):
        self.numbers = numbers

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.numbers, dtype)


class Unit(Column):
    """A class whose operators come before those of an array."""

    __array_priority__ = 1.0

    def __rmul__(self, other):
        return np.sum(other) * 5.0


LIKES = {
    "range": range(1, 4),
    "array": array("d", [1.0, 2.0, 3.0]),
    "memoryview": memoryview(np.arange(3.0)),
    "UserList": UserList([1.0, 2.0, 3.0]),
    "__array__": Column([1, 2, 3]),
}


def squared_in_place(x, like):
    y = x * 1.0
    y *= like
    return np.sum(y)


USES = {
    "left": lambda x, like: np.sum(like / x),
    "right": lambda x, like: np.sum(x - like),
    "matmul": lambda x, like: x @ like,
    "ufunc": lambda x, like: np.sum(np.power(x, like)),
    "function": lambda x, like: np.dot(like, x),
    "compared": lambda x, like: np.sum(np.where(x < like, x, 2.0 * x)),
    "joined": lambda x, like: np.sum(np.concatenate([x, like]) ** 2),
    "in place": squared_in_place,
}


@pytest.mark.parametrize("like", LIKES.values(), ids=LIKES)
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_an_array_like_beside_a_traced_array_is_the_array_of_it(use, like):
    value, gradient = fnad.value_and_grad(lambda x: use(x, like))(X)
    assert value == use(X, like)
    np.testing.assert_array_equal(gradient, fnad.grad(lambda x: use(x, np.asarray(like)))(X))


@pytest.mark.parametrize("like", LIKES.values(), ids=LIKES)
def test_an_array_like_is_multiplied_into_the_memory_of_an_array(like):
    def f(x):
        y = x * 1.0
        seen = y[:2]
        y *= like
        return np.sum(seen)

    assert fnad.value_and_grad(f)(X)[0] == f(X)
    np.testing.assert_array_equal(fnad.grad(f)(X), [*np.asarray(like)[:2], 0.0])


def test_a_change_of_an_array_like_is_seen_by_a_compiled_function():
    likes = [array("d", [1.0, 2.0, 3.0]), UserList([1.0, 2.0, 3.0]), Column([1.0, 2.0, 3.0])]
    for like in likes:
        compiled = fnad.jit(lambda x, like=like: np.sum(x * like))
        assert compiled(X) == np.sum(X * like)
        (like.numbers if isinstance(like, Column) else like)[0] = 9.0
        assert compiled(X) == np.sum(X * like)


def test_operators_of_a_class_that_come_first_are_called():
    assert fnad.grad(lambda x: x * Unit([1.0]))(X).tolist() == [5.0, 5.0, 5.0]


def test_a_python_number_leaves_an_array_like_to_python():
    with pytest.raises(TypeError, match="unsupported operand"):
        fnad.grad(lambda t: np.sum(t * range(3)))(0.5)


def test_what_is_no_array_of_numbers_is_refused():
    with pytest.raises(fnad.errors.ArgumentTypeError, match="object is not an array or a number"):
        fnad.grad(lambda x: np.sum(np.multiply(x, object())))(X)


JOINS = {
    "alone": lambda like, x: np.sum(np.asarray(like) ** 2),
    "product": lambda like, x: np.sum(x * like),
    "dot": lambda like, x: np.dot(like, x),
    "joined": lambda like, x: np.sum(np.concatenate([like, x]) ** 3),
}


@pytest.mark.parametrize("use", JOINS.values(), ids=JOINS)
def test_an_object_may_have_a_traced_array(use):
    value, gradient = fnad.value_and_grad(lambda x: use(Column(x * 2.0), x))(X)
    assert value == use(Column(X * 2.0), X)
    np.testing.assert_array_equal(gradient, fnad.grad(lambda x: use(np.multiply(x, 2.0), x))(X))
