"""`True` and `False` compared by identity: a traced bool is one of the two, as a comparison of Python numbers is."""

import math
import operator

import numpy as np
import pytest

import fnad

YES = True


class Pair:
    __match_args__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


def bare(x):
    match x > 1:
        case True:
            return 2 * x
        case False:
            return 3 * x
        case _:
            return 4 * x


def two(x):
    match (x > 1, x > 2):
        case (True, True):
            return 5 * x
        case (True, _) if x > 1.2:
            return 2 * x
        case (True | False as large, False):
            return 3 * x + large
        case _:
            return 100 * x


def nested(x):
    match {"a": [Pair(x > 1, x), None]}:
        case {"a": [Pair(True, b=b), None]}:
            return 2 * b
        case {"a": [Pair(a=False, b=b), *_]}:
            return 3 * b
        case _:
            return 100 * x


def alternatives(x):
    match (x > 1, [x < 2, x]):
        case (False, [True | None, v]) | (True, [False, v]):
            return 2 * v
        case (True | 7, [np.bool_() | True | None, v]):
            return 3 * v
        case _:
            return 100 * x


def of_arrays(x):
    match np.array([x, x]):
        case (True, 1) | True | None:
            return 2 * x
        case _:
            return 3 * x


def in_a_loop(x):
    total = 0.0
    for k in range(4):
        match x > k:
            case True:
                total += k * x
            case False if x < 1:
                total += 0.5 * x
            case _:
                total -= x
    return total


def among(x, large):
    return 2 * x if None is not large is True is not (x > 2) and 1 == large is True else 3 * x


def greater(x, y):
    return x > y


def chained_in_a_loop(x):
    return sum((k * x for k in range(4) if False is not greater(x, k) is True), 0.0)


def chained_in_a_class(x):
    class Chain:
        found = tuple(k + 1 for k in ([1, 2] if 0 == greater(x, 1) is False else [3]))
        other = 0 <= greater(x, 1.7) is True

    return x * sum(Chain.found) + 5 * Chain.other


FORMS = {
    "is True": lambda x: 2 * x if (x > 1) is True else 3 * x,
    "is not True": lambda x: 2 * x if (x > 1) is not True else 3 * x,
    "is False": lambda x: 2 * x if (x > 1) is False else 3 * x,
    "False is": lambda x: 2 * x if False is (x > 1) else 3 * x,
    "a name": lambda x: 2 * x if (x > 1) is YES else 3 * x,
    "two traced ones": lambda x: 2 * x if (x > 1) is (x < 3) else 3 * x,
    "two that differ": lambda x: 2 * x if (x > 1) is not (x > 3) else 3 * x,
    "NumPy's": lambda x: 2 * x if np.isnan(x) is np.False_ else 3 * x,
    "math": lambda x: 2 * x if math.isnan(x) is False else 3 * x,
    "operator.is_": lambda x: 2 * x if operator.is_(x > 1, True) else 3 * x,
    "operator.is_not": lambda x: 2 * x if operator.is_not(x > 1, False) else 3 * x,
    "chained": lambda x: 2 * x if (0.7 < x < 1.7) is True else 3 * x,
    "a is b is True": lambda x: 2 * x if (x > 1) is (x > 0.7) is True else 3 * x,
    "a is b is not c": lambda x: 2 * x if (x > 1) is (x > 2) is not (x > 0.7) else 3 * x,
    "names": lambda x, yes=True: 2 * x if (x < 3) is YES is yes is not (x > 1) else 3 * x,
    "a < b is True": lambda x: among(x, x > 1),
    "a < f() is True": lambda x: 2 * x if 0 < greater(x, 1) is True else 3 * x,
    "a is f() != b": lambda x: 2 * x if True is greater(x, 1) != greater else 3 * x,
    "a < b.c is not d": lambda x, yes=True: 2 * x if 0 == np.float64(x).__gt__(1) is not yes else 3 * x,
    "chained in a loop": chained_in_a_loop,
    "chained in a class": chained_in_a_class,
    "and": lambda x: 2 * x if ((x > 1) & (x < 1.7)) is True else 3 * x,
    "None": lambda x: 2 * x if (x > 1) is None else 3 * x,
    "an array": lambda x: 2 * x if (np.array([x, x]) > 1) is True else 3 * x,
    "case": bare,
    "cases of two": two,
    "nested cases": nested,
    "alternatives with parts": alternatives,
    "an array beside alternatives": of_arrays,
    "cases in a loop": in_a_loop,
}


@pytest.mark.parametrize("kind", [float, np.float64])
@pytest.mark.parametrize("name", FORMS)
def test_of_numbers(name, kind):
    """NumPy's scalars compare to np.bool_, which is neither object of Python."""
    f = FORMS[name]
    value, gradient = fnad.jit(f), fnad.jit(fnad.grad(f))
    for x in map(kind, (1.5, 0.5, 2.5, 1.1)):
        slope = (f(x + 1e-3) - f(x - 1e-3)) / 2e-3
        np.testing.assert_allclose([value(x), fnad.grad(f)(x), gradient(x)], [f(x), slope, slope], rtol=1e-9)


def test_of_rows_that_differ():
    rows = np.array([0.5, 1.5])
    np.testing.assert_allclose(fnad.vmap(lambda row: bare(row.item()))(rows), [bare(x) for x in rows.tolist()])
