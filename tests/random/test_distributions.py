"""Distributions against those of SciPy, by Kolmogorov-Smirnov and chi-square tests with fixed keys.

A test with a fixed key is deterministic: it fails always or never. The p-values are compared with 0.001, which one
key in a thousand would miss; several keys and sizes are tried, all of them from few seeds. Each distribution draws its
key.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

import fnad
from fnad import random
from tests.together import some_of

KEYS = [random.fold_in(random.key(2024), i) for i in range(3)]
SIZE = 50_000
LEAST = 1e-3

CONTINUOUS = {
    "uniform": (random.uniform, stats.uniform()),
    "uniform between": (lambda k, n: random.uniform(k, n, minval=-3.0, maxval=5.0), stats.uniform(-3, 8)),
    "uniform f32": (lambda k, n: random.uniform(k, n, np.float32), stats.uniform()),
    "normal": (random.normal, stats.norm()),
    "normal f32": (lambda k, n: random.normal(k, n, np.float32), stats.norm()),
    "exponential": (random.exponential, stats.expon()),
    "gumbel": (random.gumbel, stats.gumbel_r()),
    "laplace": (random.laplace, stats.laplace()),
    "cauchy": (random.cauchy, stats.cauchy()),
    **{
        f"gamma {a}": (lambda k, n, a=a: random.gamma(k, a, n), stats.gamma(a))
        for a in (0.01, 0.3, 0.999, 1.0, 1.5, 10.0, 1e4)
    },
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_draws_follow_their_distribution(name):
    sample, distribution = CONTINUOUS[name]
    for key in some_of(KEYS, name):
        assert stats.kstest(sample(key, (SIZE,)), distribution.cdf).pvalue > LEAST


@pytest.mark.parametrize("name", ["uniform", "normal", "exponential", "gamma 0.3", "gamma 10.0"])
def test_moments_of_many_draws(name):
    sample, distribution = CONTINUOUS[name]
    x = fnad.jit(lambda k: sample(k, (250_000,)))(KEYS[0])
    for order in (1, 2, 3, 4):
        deviation = np.sqrt(distribution.moment(2 * order) - distribution.moment(order) ** 2)
        assert abs(np.mean(x**order) - distribution.moment(order)) < 4 * deviation / 500


@pytest.mark.parametrize("key", KEYS)
def test_neighbours_are_independent(key):
    """Pairs, by a chi-square test on a grid of quantiles."""
    p = stats.norm.cdf(random.normal(key, (SIZE, 2)))
    counts = np.histogram2d(*p.T, bins=8, range=[(0, 1), (0, 1)])[0]
    assert stats.chisquare(counts.ravel()).pvalue > LEAST


@pytest.mark.parametrize("key", KEYS)
def test_every_bit_is_fair(key):
    bytes_ = random.bits(key, (SIZE,)).view(np.uint8).reshape(SIZE, 8)
    ones = np.unpackbits(bytes_, axis=1).sum(axis=0, dtype=np.int64)
    assert stats.chisquare(np.concatenate([ones, SIZE - ones])).pvalue > LEAST


# ---- discrete --------------------------------------------------------------------------------------------------------


def fits(x, probabilities):
    """Say whether counts of 0, 1, … have these probabilities, and nothing else was drawn."""
    n = len(probabilities)
    counts = np.bincount(np.asarray(x).ravel(), minlength=n)
    possible = np.asarray(probabilities) > 0
    expected = np.asarray(probabilities)[possible] * np.sum(counts)
    return (
        len(counts) == n
        and np.all(counts[~possible] == 0)
        and stats.chisquare(counts[possible], expected).pvalue > LEAST
    )


P = np.array([0.05, 0.0, 0.25, 0.3, 0.4])
DISCRETE = {
    "randint": (lambda k: random.randint(k, (SIZE,), -3, 4) + 3, np.full(7, 1 / 7)),
    "randint u8": (lambda k: random.randint(k, (SIZE,), 0, 256, np.uint8), np.full(256, 1 / 256)),
    "randint wide": (lambda k: random.randint(k, (SIZE,), 0, 3 * 2**61) >> 61, np.full(3, 1 / 3)),
    **{
        f"poisson {mean}": (lambda k, mean=mean: random.poisson(k, mean, SIZE), stats.poisson(mean).pmf(np.arange(90)))
        for mean in (0.3, 4.0, 9.99, 10.0, 40.0)
    },
    "rademacher": (lambda k: (random.rademacher(k, (SIZE,)) + 1) // 2, [0.5, 0.5]),
    "bernoulli": (lambda k: random.bernoulli(k, 0.2, (SIZE,)).astype(int), [0.8, 0.2]),
    "categorical": (lambda k: random.categorical(k, np.log(P + 1e-300), shape=(SIZE,)), P),
    "categorical logits": (
        lambda k: random.categorical(k, np.array([3.0, 4.0]), shape=(SIZE,)),
        [0.26894142, 0.73105858],
    ),
    "choice": (lambda k: random.choice(k, 5, (SIZE,)), np.full(5, 0.2)),
    "choice p": (lambda k: random.choice(k, 5, (SIZE,), p=P), P),
    "choice of": (lambda k: random.choice(k, np.array([4, 3, 2, 1, 0]), (SIZE,), p=P), P[::-1]),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_draws_follow_their_probabilities(name):
    sample, probabilities = DISCRETE[name]
    for key in some_of(KEYS, name):
        assert fits(sample(key), probabilities)


@pytest.mark.parametrize("mean", [0.0, 1e-9, 0.5, 9.999, 10.0, 30.0, 1e3])
def test_poisson_draws_are_quantiles(mean):
    """Every draw is the quantile of the uniform draw with its key."""
    x = fnad.jit(lambda mean: random.poisson(KEYS[0], mean, 10_000))(mean)
    assert np.all(x == np.maximum(stats.poisson(mean).ppf(random.uniform(KEYS[0], 10_000) + 2.0**-54), 0))


@pytest.mark.parametrize("mean", [1e6, 1e12, 2.0**52])
def test_poisson_draws_of_large_means_have_their_moments(mean):
    x = (random.poisson(KEYS[1], mean, SIZE) - mean) / np.sqrt(mean)
    assert stats.kstest(x, stats.norm.cdf).pvalue > LEAST


def test_poisson_draws_without_a_mean():
    traced = fnad.jit(lambda mean: random.poisson(KEYS[0], mean))
    assert [traced(mean) for mean in (-1.0, np.nan, np.inf, 2.0**53)] == [-1] * 4


def test_bernoulli_of_certain_coins_is_certain():
    p = np.array([0.0, 1.0])
    assert np.all(random.bernoulli(KEYS[0], p, (1000, 2)) == [False, True])


@pytest.mark.parametrize("key", KEYS)
def test_all_orders_are_equally_likely(key):
    """The 24 permutations of four; lines ordered on their own give them at once."""
    lines = random.permutation(key, np.tile(np.arange(4), (20_000, 1)), axis=1, independent=True)
    counts = Counter(map(tuple, lines.tolist()))
    assert set(counts) == set(permutations(range(4)))
    assert stats.chisquare(list(counts.values())).pvalue > LEAST


def test_a_permutation_moves_whole_slices():
    x = np.arange(60).reshape(5, 3, 4)
    for axis in (0, 1, 2, -1):
        shuffled = random.permutation(KEYS[0], x, axis)
        order = random.permutation(KEYS[0], x.shape[axis])
        assert np.array_equal(shuffled, np.take(x, order, axis))
    assert sorted(random.permutation(KEYS[0], 100)) == list(range(100))


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_choices_without_replacement_differ(weighted):
    """The first has the probabilities p; the second, those of the rest, renormalised."""
    p = np.array([0.1, 0.2, 0.3, 0.4])
    given = {"p": p} if weighted else {}
    chosen = np.array([random.choice(k, 4, (2,), replace=False, **given) for k in random.split(KEYS[1], 1000)])
    rates = p if weighted else np.full(4, 0.25)
    pair = np.array([[0.0 if i == j else rates[i] * rates[j] / (1 - rates[i]) for j in range(4)] for i in range(4)])
    assert fits(chosen[:, 0] * 4 + chosen[:, 1], pair.ravel())


def test_what_cannot_be_chosen_is_last():
    p = np.array([0.5, 0.0, 0.5])
    for key in random.split(KEYS[0], 50):
        assert set(random.choice(key, 3, (2,), replace=False, p=p)) == {0, 2}
