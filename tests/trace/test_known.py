"""Values that depend on no input: they have numbers while tracing, and stay right when they cease to be known."""

import math
import operator

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from numpy.testing import assert_array_equal

import fnad.numpy as fnp
from fnad import config, grad, jit
from fnad.errors import MutationError, OutOfRangeError, TracerEscapeError, UnsupportedFunctionError
from fnad.ir.known import is_known, known_value
from fnad.trace.tracer import Tracer

X = np.array([1.0, 2.0, 4.0])
TABLE = np.array([0, 2, 1])


def right(function, gradient):
    """Assert the value as NumPy's, and the gradient, traced anew and compiled."""
    value = function(np, X)
    with config.override(executor="interpreter"):
        traced = lambda x: function(fnp, x)  # noqa: E731
        assert jit(traced)(X) == value
        assert_array_equal(grad(traced)(X), gradient)
        assert_array_equal(jit(grad(traced))(X), gradient)


# ---- numbers ---------------------------------------------------------------------------------------------------------


def test_a_known_value_decides_on_branches_and_counts():
    def f(xp, x):
        count = xp.zeros(2, int)
        while count[0] < 3:
            count[0] += 1
        total = x[0]
        for k in range(count[0]):
            total = total * (k + 1) if k != count[1] else total + x[1]
        return total

    right(f, [6, 6, 0])


def test_known_elements_are_python_numbers():
    def f(xp, x):
        a = xp.array([0.5, 2.0])
        assert (float(a[0]), int(a[1]), complex(a[1]), round(a[0]), math.floor(a[1])) == (0.5, 2, 2 + 0j, 0, 2)
        assert (a[1].item(), a.tolist(), f"{a[0]:.2f}") == (2.0, [0.5, 2.0], "0.50")
        return x[0] * math.exp(a[0]) / math.sqrt(a[1])

    right(f, [math.exp(0.5) / math.sqrt(2), 0, 0])


def test_a_known_number_is_a_key():
    def f(xp, x):
        named = {0: x[0], 2: x[1] * x[2]}
        return sum(named[i] for i in xp.array([0, 2, 2]) if i in named)

    right(f, [1, 8, 4])


def test_indices_masks_and_slices():
    def f(xp, x):
        order, mask, size = xp.array([2, 0]), xp.array([True, False, True]), xp.array(2)
        y = xp.zeros(3)
        y[mask] = x[order]
        return (
            (x[mask] * 3).sum() + x[:size].sum() + (y * xp.arange(1, 4)).sum() + xp.zeros(size[()]).size * x[order[1]]
        )

    right(f, [3 + 1 + 3 + 2, 1, 3 + 1])


def test_a_view_at_a_known_index_is_a_view():
    def f(xp, x):
        y = xp.zeros((3, 3))
        for i in xp.arange(3):
            row = y[i]
            row += x
        return y[1].sum() + 5 * y[0, 2]

    right(f, [1, 1, 6])


def test_a_known_index_out_of_range():
    def f(x):
        return x[fnp.array(3)]

    with pytest.raises(OutOfRangeError, match="index 3 is out of bounds"):
        grad(f)(X)


def test_tables_and_grids_are_written_to():
    def f(xp, x):
        copy, grid, line = xp.copy(TABLE), xp.arange(3.0), xp.linspace(0.0, 1.0, 3)
        like = xp.zeros_like(grid)
        like[:], grid[1:], line[0] = x, x[:2], x[2]
        copy[0] = 7
        return like.sum() + (grid * copy).sum() + (line * np.array([1.0, 10, 100])).sum()

    right(f, [1 + 2, 1 + 1, 1 + 1])
    assert_array_equal(TABLE, [0, 2, 1])


def test_a_table_at_a_traced_index():
    def f(xp, x):
        return (xp.linspace(1.0, 3.0, 3)[xp.argmax(x)] * x + xp.arange(3)[xp.argmin(x)]).sum()

    right(f, [3, 3, 3])


# ---- NumPy and SciPy on known values ---------------------------------------------------------------------------------


def test_functions_without_a_rule():
    def f(xp, x):
        matrix = xp.array([[2.0, 1.0], [1.0, 2.0]])
        assert_array_equal(np.packbits(xp.array([True, False, True])), [160])
        assert_array_equal(np.where(xp.array([0, 1, 0])), [[1]])
        return x[0] * scipy.special.ellipk(xp.zeros(1))[0] + x[1] * scipy.linalg.logm(matrix)[0, 0]

    right(f, [scipy.special.ellipk(0.0), scipy.linalg.logm([[2.0, 1.0], [1.0, 2.0]])[0, 0], 0])


def test_one_unknown_argument_is_refused():
    with pytest.raises(UnsupportedFunctionError, match=r"numpy.packbits has no rule"):
        grad(lambda x: np.packbits(x > fnp.zeros(3)).sum())(X)


def test_what_was_given_out_is_not_written_to():
    def f(x):
        y = fnp.zeros(3)
        kept = y.__array__()
        y[0] = x[0]
        return y.sum() + kept.sum()

    with pytest.raises(MutationError, match="had been given out as an ordinary array"):
        grad(f)(X)


def test_what_was_given_out_takes_no_write():
    def f(x):
        given = fnp.zeros(3).__array__()
        given[0] = 1.0
        return x.sum()

    with pytest.raises(ValueError, match="read-only"):
        grad(f)(X)


def test_a_copy_is_free():
    def f(x):
        y = fnp.zeros(3)
        copy = y.__array__(copy=True)
        copy[0] = 1.0
        y[:] = x
        return y.sum() + copy.sum()

    assert_array_equal(grad(f)(X), [1, 1, 1])


def test_what_nobody_keeps_hinders_no_write():
    def f(xp, x):
        y = xp.zeros(3)
        assert scipy.linalg.norm(y) == 0
        y[:] = x
        return y.sum()

    right(f, [1, 1, 1])


UNPACK = operator.methodcaller("__float__")
"""It asks a value for its number, as much else of Python's does."""

# ---- what follows from an input has none -----------------------------------------------------------------------------


def test_a_buffer_with_a_traced_element_has_no_number():
    def f(x):
        y = fnp.zeros(3)
        assert y[0] == 0
        y[0] = x[0]
        return x[0] * UNPACK(y[1])

    with pytest.raises(TracerEscapeError, match="asked for its float"):
        grad(f)(X)


@pytest.mark.parametrize("function", [lambda x: x[0], lambda x: x[0] * 0, lambda x: np.maximum(x, 0.0)[0]])
def test_inputs_are_unknown(function):
    with pytest.raises(TracerEscapeError):
        grad(lambda x: UNPACK(function(x)) * x[1])(X)


def test_known_across_traces():
    def f(x):
        scale = fnp.array([2.0, 3.0])
        inner = lambda y: y**2 * scale[0] if scale[1] > 2 else y  # noqa: E731
        return grad(inner)(x[1]) + grad(inner)(scale[0]) * x[0]

    assert_array_equal(grad(f)(X), [8, 4, 0])


def test_the_argument_of_an_outer_transform_is_unknown_in_an_inner_one():
    with pytest.raises(TracerEscapeError):
        grad(lambda x: grad(lambda y: y * UNPACK(x[0]))(x[1]))(X)


def test_a_compiled_function_follows_a_table_that_changes():
    table = np.array([1, 5])

    @jit
    def f(x):
        return x[fnp.asarray(table)[0]] * (10 if fnp.asarray(table)[1] > 3 else 1)

    with config.override(executor="interpreter"):
        assert f(X) == 20
        table[:] = 2, 0
        assert f(X) == 4


def test_each_equation_is_evaluated_once():
    def f(x):
        y = fnp.array([1.0])
        for _ in range(30):
            y = y + y
        assert isinstance(y, Tracer)
        assert is_known(y.symbol)
        assert known_value(y.symbol) is known_value(y.symbol)
        assert not is_known(x.symbol)
        return x[0] * float(np.sum(y))

    assert grad(f)(X)[0] == 2.0**30
