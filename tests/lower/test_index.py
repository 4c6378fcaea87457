"""Index expressions against Python's integers, at every value of their counters."""

from __future__ import annotations

from itertools import product

import pytest

from fnad.lower.index import Counter, Index, Quotient, Remainder, counter

EXTENTS = (3, 4, 5)
COUNTERS = [counter(depth, extent) for depth, extent in enumerate(EXTENTS)]
FIRST, SECOND, THIRD = COUNTERS


def value(index: Index, counters: tuple[int, ...]) -> int:
    total = index.constant
    for atom, coefficient in index.terms:
        match atom:
            case Counter(depth, _):
                total += coefficient * counters[depth]
            case Quotient(dividend, divisor):
                total += coefficient * (value(dividend, counters) // divisor)
            case Remainder(dividend, divisor):
                total += coefficient * (value(dividend, counters) % divisor)
            case _:
                raise AssertionError(atom)
    return total


FORMULAS = [
    lambda i, j, k: i * 20 + j * 5 + k,
    lambda i, j, k: (i * 20 + j * 5 + k) // 5,
    lambda i, j, k: (i * 20 + j * 5 + k) // 5 % 4,
    lambda i, j, k: (i * 20 + j * 5 + k) // 7 * 7 + (i * 20 + j * 5 + k) % 7,
    lambda i, j, k: (i * 20 + j * 5 + k) // 10,
    lambda i, j, k: (4 * i + j) // 12 + (4 * i + j) % 6 * 3,
    lambda i, j, k: (2 - i) * 5 - (k - 4) * 3 + (j - 1) // 2,
    lambda i, j, k: (j - 3) // 2 + (j - 3) % 2,
    lambda i, j, k: (7 * i - 11 * j + k) // 6 * 3 + (7 * i - 11 * j + k) // 2 % 3,
    lambda i, j, k: ((i * 20 + j * 5 + k) // 3 % 7) // 2,
    lambda i, j, k: (4 * i + k) // 8 + (5 * i + k) // 10,
    lambda i, j, k: (6 * i + 3 * j - 5) // 9 + (i - j - k) % 4,
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_arithmetic_is_that_of_integers(formula):
    index = formula(FIRST, SECOND, THIRD)
    low, high = index.range
    for counters in product(*map(range, EXTENTS)):
        expected = formula(*counters)
        assert value(index, counters) == expected
        assert low <= expected <= high


SPREAD = [*FORMULAS[:3], lambda i, j, k: i * 5 + k, lambda i, j, k: 3 - 4 * i + j, lambda i, j, k: 8 * j - 7]


@pytest.mark.parametrize("n", [2, 3, 5, 6, 7])
@pytest.mark.parametrize("formula", SPREAD)
def test_the_part_of_a_multiple_is_zero_and_its_quotient_whole(formula, n):
    index = formula(FIRST, SECOND, THIRD)
    rest = (index % n).remainder
    for counters in product(*map(range, EXTENTS)):
        number = formula(*counters)
        assert (value(index.part(n), counters) == 0) == (number % n == 0)
        if number % n == 0 and rest is not None:
            assert value((index // n).where_zero(rest), counters) == number // n


def test_the_diagonal_of_a_square_takes_no_division():
    position, column = FIRST * 3 + counter(1, 3), counter(1, 3)
    rest = (position % 4).remainder
    assert rest is not None
    assert position.part(4) == column - FIRST
    assert (position // 4).where_zero(rest) == FIRST


def test_address_of_a_reshape_is_that_of_the_array():
    """unflatten, then flatten, of a row-major position is the position."""
    position = FIRST * 20 + SECOND * 5 + THIRD
    rows, columns = position // 6 % 10, position % 6
    assert rows * 6 + columns == position
    flat = counter(0, 420)
    assert ((flat // 42) * 7 + flat // 6 % 7) * 6 + flat % 6 == flat
    assert (flat // 42) * 21 + flat // 6 % 7 * 3 == flat // 6 * 3


def test_whole_dimensions_come_out_of_a_flat_position():
    position = FIRST * 20 + SECOND * 5 + THIRD
    assert [position // 20, position // 5 % 4, position % 5] == [FIRST, SECOND, THIRD]


def test_a_loop_of_one_turn_has_index_zero():
    assert counter(3, 1) == Index(0)


def test_depth_is_that_of_the_innermost_counter():
    assert [Index(7).depth, FIRST.depth, (SECOND + FIRST).depth, ((THIRD * 3) // 2).depth] == [0, 1, 2, 3]
