"""Traced integers and bools as keys of dicts and elements of sets: each answer is a path, as of an index."""

import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest

from fnad import fori_loop, grad, jit, vmap
from fnad.errors import TracerEscapeError

X = np.array([0.5, 1.5, -2.5, 0.7])


def cells(x):
    found = defaultdict(list)
    for value, cell in zip(x, np.floor(x).astype(int), strict=True):
        found[cell].append(value)
    return sum(len(values) * sum(values) ** 2 for values in found.values())


def cells_of_pairs(x):
    found = {}
    for pair in x.reshape(2, 2):
        found.setdefault(tuple(np.floor(pair).astype(int)), []).append(pair)
    return sum((sum(pairs) ** 2).sum() for _, pairs in sorted(found.items())) + len(found)


def groups(x):
    found = {key: [*values] for key, values in itertools.groupby(sorted(x), key=lambda value: value > 0)}
    return 2 * sum(found[True]) + sum(found[False]) ** 2


def by_place(x):
    return {0: x[0], 1: x[1] * x[2], 2: 2 * x[3]}[np.argmax(x)] + (np.argmin(x) in {2, 3}) * x[1]


def counted(x):
    return x[0] * sum(count * sign for sign, count in Counter(np.sign(x).astype(int)).items())


@pytest.mark.parametrize("f", [cells, cells_of_pairs, groups, by_place, counted])
def test_integers_and_bools_are_found_by_value(f):
    rows = np.stack([X, 1.3 * X, X[::-1]])
    expected, slopes = [f(x) for x in rows], [grad(f)(x) for x in rows]
    step = 1e-6 * np.eye(4)
    np.testing.assert_allclose(slopes, [[(f(x + e) - f(x - e)) / 2e-6 for e in step] for x in rows], rtol=1e-7)
    compiled, slope = jit(f), jit(grad(f))
    np.testing.assert_allclose([compiled(x) for x in rows], expected)
    np.testing.assert_allclose([slope(x) for x in rows], slopes)
    for run in (vmap(f), jit(vmap(f))):
        np.testing.assert_allclose(run(rows), expected)


def test_a_float_is_no_key_and_nothing_is_where_no_value_is_at_hand():
    with pytest.raises(TracerEscapeError, match="its hash"):
        jit(lambda x: {0.5: x}[x])(0.5)
    with pytest.raises(TracerEscapeError, match="its hash"):
        fori_loop(0, 2, lambda i, x: x * {0: 1.0, 1: 2.0}[i], 1.0)
