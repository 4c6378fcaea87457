"""`c += t` on an ordinary array: a traced array takes the name, if nobody else has the array."""

import operator

import numpy as np
import pytest

from fnad.errors import MutationError
from tests.numpy.against_numpy import check, traced

V = np.array([1.0, 2.0, 3.0])
SHARED = np.zeros(3)


def a_local_name(v):
    c = np.zeros(3)
    c += v
    c *= 2
    c -= c[0]
    return c


def in_a_loop(v):
    c = np.zeros(3)
    for i in range(3):
        c += v * i
    return c


def an_element_of_a_list(v):
    rows = [np.zeros(3), np.ones(3)]
    for i in range(2):
        rows[i] += v
    return rows


class Holder:
    pass


def an_attribute(v):
    holder = Holder()
    holder.c = np.zeros(3)
    holder.c += v
    return holder.c


def a_view_that_nobody_else_has(v):
    c = np.zeros((1, 3))[0]
    c += v
    return c


def another_dtype(v):
    c = np.zeros(3, np.float32)
    c += v
    return c


def a_closure(v):
    c = np.zeros(3)

    def add():
        nonlocal c
        c += v

    add()
    return c


@pytest.mark.parametrize(
    "function",
    [
        a_local_name,
        in_a_loop,
        an_element_of_a_list,
        an_attribute,
        a_view_that_nobody_else_has,
        another_dtype,
        a_closure,
    ],
)
def test_as_numpy(function):
    check(function, V)


def alias(v):
    c = np.zeros(3)
    d = c
    c += v
    return d


def a_view_of_it(v):
    c = np.zeros(3)
    d = c[1:]
    c += v
    return d


def a_view(v):
    c = np.zeros(3)
    d = c[1:]
    d += v[1:]
    return c


def an_argument_of_the_callers(v):
    def add(c):
        c += v

    c = np.zeros(3)
    add(c)
    return c


def shared_through_a_list(v):
    c = np.zeros(3)
    kept = [c]
    c += v
    return kept[0]


OTHERS = (
    "a traced value cannot be put into an ordinary array that has other names or views: they would not see it\n"
    "  at test_rebinding.py:{} in {}:  {}\n"
    "  write c = c + t, or make the array with fnad.numpy (zeros, empty, array) in place of numpy"
)


@pytest.mark.parametrize(
    ("function", "line", "name", "text"),
    [
        (alias, 3, "alias", "c += v"),
        (a_view_of_it, 3, "a_view_of_it", "c += v"),
        (a_view, 3, "a_view", "d += v[1:]"),
        (an_argument_of_the_callers, 2, "add", "c += v"),
        (shared_through_a_list, 3, "shared_through_a_list", "c += v"),
    ],
)
def test_refused_where_others_would_not_see_it(function, line, name, text):
    with pytest.raises(MutationError) as raised:
        traced(function, V)
    assert str(raised.value) == OTHERS.format(function.__code__.co_firstlineno + line, name, text)


def test_a_global_that_others_have_too():
    def function(v):
        global SHARED  # noqa: PLW0603
        SHARED += v

    kept = SHARED
    with pytest.raises(MutationError):
        traced(function, V)
    assert SHARED is kept
    np.testing.assert_array_equal(SHARED, 0)


def out_of_an_ordinary_array(v):
    c = np.zeros(3)
    np.add(c, v, out=c)
    return c


@pytest.mark.parametrize(
    "write",
    [
        out_of_an_ordinary_array,
        lambda v: np.add(v, 1, out=np.zeros(3)),
        lambda v: np.sum(v, out=np.zeros(())),
        lambda v: operator.iadd(np.zeros(3), v),
        lambda v: np.add.reduce(v, out=np.zeros(())),
        lambda v: v.cumsum(out=np.zeros(3)),
    ],
)
def test_out_is_refused(write):
    with pytest.raises(MutationError) as raised:
        traced(write, V)
    assert str(raised.value).startswith("a traced value cannot be written into an ordinary array given as out=\n  at ")
