"""Draws inside compiled loops: the numbers of the same loop in Python, with keys as carries and folded indices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fnad
from fnad import random

KEY = random.key(3)


def walk(key):
    """Draw in a scan, with a key folded from the number of the step."""

    def step(x, i):
        x = x + random.normal(random.fold_in(key, i), (3,))
        return x, x

    return fnad.scan(step, np.zeros(3), np.arange(50))[1]


def walk_in_python(key):
    steps = [random.normal(random.fold_in(key, i), (3,)) for i in range(50)]
    return np.cumsum(steps, axis=0)


def chain(key):
    """Draw in a loop that carries the key, with a parameter that the loop computes."""

    def step(i, carry):
        k, x = carry
        following, here = random.split(k)
        return following, random.gamma(here, 0.5 + 0.125 * x)

    return fnad.fori_loop(0, 20, step, (key, 1.0))[1]


def chain_in_python(key):
    x = 1.0
    for _ in range(20):
        key, here = random.split(key)
        x = random.gamma(here, 0.5 + 0.125 * x)
    return x


def until_six(key):
    """Throw a die until it shows a six; return how often."""

    def throw(carry):
        k, n, _ = carry
        following, here = random.split(k)
        return following, n + 1, random.randint(here, (), 1, 7)

    return fnad.while_loop(lambda carry: carry[2] != 6, throw, (key, 0, 0))[1]


def until_six_in_python(key):
    n, shown = 0, 0
    while shown != 6:
        key, here = random.split(key)
        n, shown = n + 1, random.randint(here, (), 1, 7)
    return n


@pytest.mark.parametrize("transform", [fnad.jit, lambda f: f], ids=["compiled", "as it is"])
@pytest.mark.parametrize(
    ("loop", "in_python"),
    [(walk, walk_in_python), (chain, chain_in_python), (until_six, until_six_in_python)],
    ids=["scan", "fori_loop", "while_loop"],
)
def test_a_loop_draws_what_python_draws(loop, in_python, transform):
    for key in random.split(KEY, 5):
        assert_array_equal(transform(loop)(key), in_python(key))


def test_derivatives_pass_through_draws_in_a_loop():
    def scaled(s, key):
        step = lambda x, i: (x + s * random.normal(random.fold_in(key, i)), None)  # noqa: E731
        return fnad.scan(step, 0.0, np.arange(5))[0]

    total = sum(random.normal(random.fold_in(KEY, i)) for i in range(5))
    assert_allclose(fnad.jit(fnad.grad(scaled))(2.0, KEY), total, rtol=1e-14)
