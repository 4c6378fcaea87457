"""Donated arguments: results take over their memory where that is right, and are right where it is not."""

import numpy as np
import pytest

import fnad
from fnad.errors import StaticArgumentError


def descend(parameters, slopes):
    return [p - 0.1 * s for p, s in zip(parameters, slopes, strict=True)]


def test_results_lie_in_the_memory_of_donated_arguments():
    parameters, slopes = [np.arange(6.0), np.ones((2, 3))], [np.ones(6), np.ones((2, 3))]
    expected = descend(parameters, slopes)
    found = fnad.jit(descend, donate_argnums=0)(parameters, slopes)
    for result, given, right in zip(found, parameters, expected, strict=True):
        assert result is given
        np.testing.assert_array_equal(result, right)


def test_without_donation_arguments_stay():
    x = np.arange(3.0)
    assert fnad.jit(lambda x: x + 1.0)(x) is not x
    np.testing.assert_array_equal(x, [0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: (x[::-1] + y, x * y),
        lambda x, y: (x + y, x - y),
        lambda x, y: (np.cumsum(x), x @ y * x),
        lambda x, y: (x - np.mean(x), y / np.sum(x)),
        lambda x, y: (y, x),
        lambda x, y: (x, x + y),
        lambda x, y: fnad.scan(lambda c, r: (c * r + x, c), y, x),
        lambda x, y: fnad.fori_loop(0, 3, lambda i, s: (s[1] + x, s[0] * y), (x, y)),
    ],
)
@pytest.mark.parametrize("donated", [(0,), (1,), (0, 1)])
def test_results_are_right_whatever_is_donated(f, donated):
    x, y = np.arange(1.0, 6.0), np.linspace(-1.0, 1.0, 5)
    expected = fnad.jit(f)(x.copy(), y.copy())
    found = fnad.jit(f, donate_argnums=donated)(x.copy(), y.copy())
    for result, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(result, right)


def test_memory_that_is_not_the_callers_own_is_left_alone():
    base = np.arange(8.0)
    frozen = np.arange(4.0)
    frozen.flags.writeable = False
    f = fnad.jit(lambda x, y: (x + 1.0, y + 1.0), donate_argnums=(0, 1))
    for x, y in ((base[:4], base[4:]), (base[::2], frozen), (base[:4], base[:4])):
        before = x.copy(), y.copy()
        first, second = f(x, y)
        np.testing.assert_array_equal(first, before[0] + 1.0)
        np.testing.assert_array_equal(second, before[1] + 1.0)
        np.testing.assert_array_equal(x, before[0])
        np.testing.assert_array_equal(y, before[1])


def test_one_array_given_twice_stays():
    x = np.arange(4.0)
    first, second = fnad.jit(lambda x, y: (x + y, x - y), donate_argnums=(0, 1))(x, x)
    np.testing.assert_array_equal(first, [0.0, 2.0, 4.0, 6.0])
    np.testing.assert_array_equal(second, np.zeros(4))
    np.testing.assert_array_equal(x, np.arange(4.0))


def test_a_path_with_guards_keeps_its_arguments_for_another():
    f = fnad.jit(lambda x: x * 2.0 if x[0] > 0.0 else x - 1.0, donate_argnums=0)
    for _ in range(4):
        np.testing.assert_array_equal(f(np.array([1.0, 2.0])), [2.0, 4.0])
        np.testing.assert_array_equal(f(np.array([-1.0, 2.0])), [-2.0, 1.0])


def test_an_argument_that_is_not_there():
    with pytest.raises(StaticArgumentError, match="donate_argnums names argument 2 of <lambda>, which takes 1"):
        fnad.jit(lambda x: x, donate_argnums=2)


@pytest.mark.parametrize("n", [8, 3000])
def test_what_a_view_among_the_arguments_shows_is_not_written_over(n):
    f = fnad.jit(lambda x, y: x * 2.0 + y[::-1], donate_argnums=0)
    for part in (slice(None), slice(None, None, -1)):
        x = np.arange(float(n))
        wanted = x * 2.0 + x[part][::-1]
        np.testing.assert_array_equal(f(x, x[part]), wanted)
    x, y = np.arange(float(n)), np.ones(n)
    assert f(x, y) is x
