"""Draws: the same to the bit wherever they are made, of the shapes and dtypes asked for, in their ranges."""

from __future__ import annotations

import tracemalloc

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fnad
from fnad import draws, errors, random
from fnad.random.continuous import between
from fnad.random.integers import high_product
from tests.together import in_groups

KEY = random.key(11)
LOGITS = np.random.default_rng(0).normal(size=(5, 4, 6))
P = np.array([0.1, 0.2, 0.0, 0.7])

CALLS = {
    "bits": lambda k: random.bits(k, (3, 5)),
    "bits u8": lambda k: random.bits(k, (3, 5), np.uint8),
    "split": lambda k: random.split(k, 3),
    "fold_in": lambda k: random.fold_in(k, 3),
    "uniform": lambda k: random.uniform(k, (3, 500)),
    "uniform f32": lambda k: random.uniform(k, (500,), np.float32),
    "uniform between": lambda k: random.uniform(k, (3, 500), minval=-3.0, maxval=np.arange(500.0)),
    "normal": lambda k: random.normal(k, (2, 3, 500)),
    "normal scalar": lambda k: random.normal(k),
    "normal empty": lambda k: random.normal(k, (0, 3)),
    "normal f32": lambda k: random.normal(k, 500, np.float32),
    "exponential": lambda k: random.exponential(k, (3, 500)),
    "gumbel": lambda k: random.gumbel(k, (3, 500)),
    "laplace": lambda k: random.laplace(k, (3, 500)),
    "cauchy": lambda k: random.cauchy(k, (3, 500)),
    "gamma": lambda k: random.gamma(k, np.geomspace(1e-3, 1e5, 500), (3, 500)),
    "gamma f32": lambda k: random.gamma(k, np.float32(0.3), (500,), np.float32),
    "randint": lambda k: random.randint(k, (3, 500), -5, 2**62),
    "randint i8": lambda k: random.randint(k, (500,), -128, 128, np.int8),
    "randint u64": lambda k: random.randint(k, (500,), 1, 2**64 - 1, np.uint64),
    "randint bounds": lambda k: random.randint(k, (4, 3), np.array([0, -9, 7]), np.array([2, 9, 8])),
    "poisson": lambda k: random.poisson(k, np.geomspace(1e-3, 1e5, 500), (3, 500)),
    "rademacher": lambda k: random.rademacher(k, (500,)),
    "bernoulli": lambda k: random.bernoulli(k, np.linspace(0.0, 1.0, 50), (3, 50)),
    "categorical": lambda k: random.categorical(k, LOGITS),
    "categorical axis": lambda k: random.categorical(k, LOGITS, axis=1),
    "categorical many": lambda k: random.categorical(k, LOGITS, axis=0, shape=(7, 4, 6)),
    "permutation": lambda k: random.permutation(k, 100),
    "permutation rows": lambda k: random.permutation(k, LOGITS),
    "permutation columns": lambda k: random.permutation(k, LOGITS, -1),
    "permutation lines": lambda k: random.permutation(k, LOGITS, 1, independent=True),
    "choice": lambda k: random.choice(k, 10, (3, 4)),
    "choice p": lambda k: random.choice(k, 4, (100,), p=P),
    "choice rows": lambda k: random.choice(k, LOGITS, (2, 2), axis=-1),
    "choice without": lambda k: random.choice(k, 10, (3,), replace=False),
    "choice without p": lambda k: random.choice(k, np.arange(4.0), (3,), replace=False, p=P),
    "choice one": lambda k: random.choice(k, 10, replace=False),
}


@pytest.mark.parametrize("name", CALLS)
def test_traced_draws_are_the_untraced_to_the_bit(name):
    expected, found = CALLS[name](KEY), fnad.jit(CALLS[name])(KEY)
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert_array_equal(found, expected, strict=True)


@in_groups("name", CALLS)
def test_a_draw_does_not_change_what_it_is_given(name):
    kept = LOGITS.copy(), P.copy(), KEY.copy()
    CALLS[name](KEY)
    assert all(np.array_equal(*pair) for pair in zip(kept, (LOGITS, P, KEY), strict=True))


def test_draws_in_a_loop_that_uses_them():
    """The draw is computed where it is used, and rounds as it does alone."""

    def noisy(key, x):
        return np.sum(x * random.normal(key, x.shape), axis=1) > 0.0

    x = np.random.default_rng(1).normal(size=(20, 30))
    assert_array_equal(fnad.jit(noisy)(KEY, x), noisy(KEY, x))


def test_a_key_from_outside_a_trace_gives_its_numbers():
    assert_array_equal(fnad.jit(lambda x: x + random.normal(KEY, (3,)))(np.zeros(3)), random.normal(KEY, (3,)))


def test_compiled_for_one_key_is_compiled_for_all():
    draw = fnad.jit(lambda k: random.normal(k, (4,)))
    keys = random.split(KEY, 10)
    assert_array_equal([draw(k) for k in keys], [random.normal(k, (4,)) for k in keys])


def test_a_longer_draw_begins_with_the_shorter():
    for name in ("bits", "uniform", "normal", "exponential", "laplace"):
        draw = getattr(random, name)
        assert_array_equal(draw(KEY, (10, 10)).ravel()[:7], draw(KEY, (7,)))


def test_large_draws_are_drawn_block_by_block():
    size = 5 * draws.CHUNK + 3
    whole = random.normal(KEY, (size,))
    assert_array_equal(whole[-5:], fnad.jit(lambda k: random.normal(k, (size,)))(KEY)[-5:])
    tracemalloc.start()
    try:
        random.normal(KEY, (1_000_000,))
        assert tracemalloc.get_traced_memory()[1] < 5 * 8e6
    finally:
        tracemalloc.stop()


def test_compiled_draws_keep_no_counters():
    """A mean of 10**7 draws: the counters are the loop's own."""
    assert abs(fnad.jit(lambda k: np.mean(random.normal(k, (10_000_000,))))(KEY)) < 4 / np.sqrt(1e7)


# ---- ranges and accuracy -------------------------------------------------------------------------------------------


def test_uniform_numbers_have_all_their_digits():
    for dtype, digits in ((np.float64, 53), (np.float32, 24)):
        multiples = random.uniform(KEY, (100_000,), dtype).astype(np.float64) * 2.0**digits
        assert np.all(multiples == np.floor(multiples))
        assert np.min(multiples) >= 0
        assert np.max(multiples) < 2**digits
        assert abs(np.mean(multiples % 2) - 0.5) < 0.01


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("bounds", [(1.0, 1.0000002), (-1e9, 1.0), (5.0, 5.0), (1.0, 2.0), (-0.5, 0.0)])
@pytest.mark.parametrize("compiled", [False, True])
def test_uniform_numbers_are_below_the_upper_bound(dtype, bounds, compiled):
    low, high = map(dtype, bounds)
    call = fnad.jit(_uniform, static_argnums=(3,)) if compiled else _uniform
    x = call(KEY, low, high, dtype)
    assert x.dtype == dtype
    assert np.all((low <= x) & ((x < high) | (low == high)))


def _uniform(key, low, high, dtype):
    return random.uniform(key, (20_000,), dtype, low, high)


def test_rounding_up_to_the_bound_does_not_happen():
    """Of the largest number below 1, moved to [1, 2), the nearest would be 2."""
    assert between(np.array([1 - 2.0**-53]), np.float64(1.0), np.float64(2.0)) == 1.0


@pytest.mark.parametrize(
    ("bounds", "dtype"), [((-128, 128), np.int8), ((0, 3), np.uint8), ((-(2**63), 2**63 - 1), "i8")]
)
def test_integers_take_their_whole_range(bounds, dtype):
    n = random.randint(KEY, (20_000,), *bounds, dtype)
    low, high = bounds
    assert n.dtype == dtype
    assert low <= int(n.min()) <= low + (high - low) / 1000
    assert high - 1 - (high - low) / 1000 <= int(n.max()) < high


def test_the_upper_half_of_a_product():
    x, y = random.split(KEY, (2, 1000))
    expected = [int(a) * int(b) >> 64 for a, b in zip(x, y, strict=True)]
    assert_array_equal(high_product(x, y), np.array(expected, np.uint64))


POINTS = np.concatenate(
    [np.geomspace(2.0**-53, 1.0, 300), 1 - np.geomspace(1e-16, 0.5, 100), np.geomspace(1, 1e300, 50)]
)


def test_the_logarithm_is_accurate():
    found = draws.log(draws.NUMPY, POINTS)
    exact = np.array([float(mpmath.log(float(x))) for x in POINTS])
    assert np.all(np.abs(found - exact) <= np.spacing(np.abs(exact)))


def test_the_exponential_is_accurate():
    x = -np.concatenate([np.geomspace(1e-20, 707, 400), np.array([0.0, 1000.0, np.inf])])
    exact = np.array([float(mpmath.exp(float(v))) for v in x])
    assert np.all(np.abs(draws.exp(draws.NUMPY, x) - exact) <= np.spacing(exact))


def test_the_sine_is_accurate():
    t = np.concatenate([-np.geomspace(1e-16, 0.5, 100), np.linspace(0.0, 0.5, 100)])
    exact = np.array([float(mpmath.sinpi(float(v))) for v in t])
    assert np.all(np.abs(draws.sin_pi(t) - exact) <= 4 * np.spacing(np.abs(exact)))


def test_extreme_bits_give_finite_draws():
    """What the rarest blocks hold, that no test would meet by chance."""
    halves = np.array([0, 1, 2**11, 2**63 - 1, 2**63, 2**64 - 2**11, 2**64 - 1], np.uint64)
    low, high = (half.ravel() for half in np.meshgrid(halves, halves))
    normal = draws.normal_of(draws.NUMPY, low, high)
    exponential = draws.exponential_of(draws.NUMPY, low)
    assert np.all(np.isfinite(normal))
    assert 8 < np.max(normal) == -np.min(normal) < 9
    assert 0 < np.min(exponential) < 2e-16
    assert 36 < np.max(exponential) < 37


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda k: random.normal(k, (2, -1)), ValueError, "negative dimensions are not allowed, got the shape (2, -1)"),
        (lambda k: random.normal(k, 2.5), TypeError, "float"),
        (lambda k: random.normal(k, (2,), np.int64), TypeError, "a continuous draw cannot be i64"),
        (lambda k: random.normal(k, (2,), np.float16), TypeError, "float16 is not supported"),
        (lambda k: random.bits(k, (2,), np.int32), TypeError, "bits are unsigned integers, not i32"),
        (lambda k: random.randint(k, (2,), 0, 5, np.float64), TypeError, "integers cannot be drawn as f64"),
        (lambda k: random.randint(k, (2,), 0.0, 5), TypeError, "bounds are integers of 64 bits, not float64"),
        (lambda k: random.randint(k, (2,), 0, 2**64), TypeError, "bounds are integers of 64 bits, not object"),
        (lambda k: random.randint(k, (2,), 5, 5), ValueError, "minval is not below maxval"),
        (lambda k: random.poisson(k, -1.0), ValueError, "lam is not in [0, 2**52]"),
        (lambda k: random.poisson(k, np.ones(3), (2,)), ValueError, "lam of shape (3,) cannot be broadcast"),
        (lambda k: random.poisson(k, 1.0, dtype=float), TypeError, "integers cannot be drawn as f64"),
        (lambda k: random.randint(k, (2,), 0, 300, np.int8), OverflowError, "integers from 0 to 300 do not fit i8"),
        (lambda k: random.randint(k, (2,), -1, 3, np.uint8), OverflowError, "integers from -1 to 3 do not fit u8"),
        (lambda k: random.randint(k, (2,), np.zeros(3, int), 5), ValueError, "cannot be broadcast to a draw of shape"),
        (
            lambda k: random.uniform(k, (2,), minval=2.0),
            ValueError,
            "minval and maxval are not finite numbers in order",
        ),
        (lambda k: random.uniform(k, (2,), minval=-1e308, maxval=1e308), ValueError, "not finite numbers in order"),
        (lambda k: random.uniform(k, (), minval=np.zeros(3)), ValueError, "bounds of shape (3,) and ()"),
        (lambda k: random.bernoulli(k, 1.5), ValueError, "p is not in [0, 1]"),
        (lambda k: random.bernoulli(k, np.nan), ValueError, "p is not in [0, 1]"),
        (lambda k: random.gamma(k, 0.0), ValueError, "a is not positive and finite"),
        (lambda k: random.gamma(k, np.ones(3), (2,)), ValueError, "a of shape (3,) cannot be broadcast"),
        (lambda k: random.categorical(k, np.zeros((2, 3)), shape=(3,)), ValueError, "logits without the axis of shape"),
        (lambda k: random.categorical(k, np.full(3, -np.inf)), ValueError, "the logits of a choice have a nan or are"),
        (lambda k: random.categorical(k, np.array([0.0, np.nan])), ValueError, "the logits of a choice have a nan"),
        (lambda k: random.categorical(k, np.zeros(3), axis=1), IndexError, "axis 1 is out of bounds"),
        (lambda k: random.categorical(k, np.zeros((2, 0))), ValueError, "cannot choose 2 of 0"),
        (lambda k: random.permutation(k, np.zeros(3), 1), IndexError, "axis 1 is out of bounds"),
        (lambda k: random.permutation(k, -1), ValueError, "negative dimensions"),
        (lambda k: random.permutation(k, 2.5), TypeError, "float"),
        (lambda k: random.choice(k, 0), ValueError, "cannot choose 1 of 0"),
        (lambda k: random.choice(k, 3, (2, 2), replace=False), ValueError, "cannot choose 4 of 3 without replacement"),
        (lambda k: random.choice(k, 4, p=P[:3]), ValueError, "p of shape (3,) does not give each of 4 a probability"),
        (lambda k: random.choice(k, 4, p=2 * P), ValueError, "p does not sum to 1"),
        (lambda k: random.choice(k, 2, p=np.array([1.5, -0.5])), ValueError, "p is negative"),
        (lambda k: random.choice(k, 4, (4,), replace=False, p=P), ValueError, "fewer than 4 elements of p are not 0"),
    ],
)
@pytest.mark.parametrize("traced", [False, True])
def test_draws_refuse_wrong_arguments_traced_or_not(call, error, message, traced):
    with pytest.raises(error) as refused:
        (fnad.jit(call) if traced else call)(KEY)
    assert message in str(refused.value)
    assert isinstance(refused.value, errors.FnadError) == (message != "float")
