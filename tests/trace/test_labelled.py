"""A Series or DataFrame among the arguments computes what it does in pandas, or is refused where labels decide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fnad
from fnad.errors import FnadError, MissingAttributeError
from tests.together import together
from tests.trace.test_opening import differences

pandas = pytest.importorskip("pandas")

VALUES = np.array([[0.3, -1.2, 2.1], [1.7, 0.4, -0.6], [-0.9, 0.8, 1.1], [2.4, -0.1, 0.2]])
DAYS = pandas.date_range("2020-01-01", periods=4)
FRAME = pandas.DataFrame(VALUES, index=DAYS, columns=list("abc"))
SERIES = pandas.Series(VALUES[:, 0], index=DAYS)
OTHER = pandas.Series(VALUES[:, 1], index=DAYS.copy())
BACKWARDS = pandas.Series(VALUES[:, 1], index=DAYS[::-1])
PLAIN = pandas.Series(VALUES[:, 2])
MISSING = FRAME.where(FRAME > -1)
W = np.array([0.5, -1.0, 2.0])


def in_place(s):
    s = s * 1
    s += 1
    s *= 2
    return s.std()


def written(s):
    s = s.copy()
    s[1] = 5.0
    s[2:] = 0.5
    s[s > 4] = 1.0
    return s.std() + s.sum()


ONE: dict[str, Any] = {
    "reductions": lambda s: s.sum() + s.mean() + s.max() * s.min() + s.prod() + s.std() + s.var(),
    "degrees of freedom": lambda s: s.std(ddof=0) * s.var(ddof=2),
    "NumPy's reductions": lambda s: np.sum(s) + np.mean(s) * np.std(s) + np.var(s, ddof=1) + np.max(s) + np.median(s),
    "what is made of it": lambda s: (2 * s - 1).std() + np.exp(s).std() + (1 / s).var() + (s**2).std() + abs(-s).std(),
    "functions that keep it": lambda s: np.clip(s, -1, 1).std() + np.round(s, 1).std() + s.clip(0, 1).std(),
    "arrays": lambda s: s.values.std() + s.to_numpy().std() + np.asarray(s).std() + np.where(s > 0, s, 0).std(),
    "comparisons": lambda s: (s > 0).sum() * s.sum() + (s > 0).mean() + (s < 9).all() * s.sum(),
    "some of it": lambda s: s[1:].std() + s[s > 0].std() + (s[1:] * s[1:]).std(),
    "running": lambda s: s.cumsum().std() + np.cumsum(s).std() + s.cumprod().std(),
    "products": lambda s: s @ s + s.dot(s) * np.dot(s, s),
    "elements": lambda s: sum(i * v for i, v in enumerate(s)) * len(s),
    "in place": in_place,
}
OF_PLAIN: dict[str, Any] = {"places": lambda s: s[2] * s[[0, 1]].std(), "written": written}
TABLE: dict[str, Any] = {
    "by columns": lambda d: (d.mean() * d.std()).sum() + d.sum().std() + d.max().std() * d.var().sum(),
    "by rows": lambda d: d.mean(axis=1).std() + d.sum(axis="columns").std(),
    "NumPy's": lambda d: np.mean(d) * np.max(d) + np.sum(d, axis=0).std() + np.exp(d).mean().std(),
    "standardized": lambda d: (((d - d.mean()) / d.std()) ** 3).mean().sum(),
    "a product": lambda d: (
        (d @ W).std() + (np.arange(4.0) @ d).std() + np.matmul(d, W).std() + d.T.mean().std() + (d.to_numpy() @ W).std()
    ),
    "rows": lambda d: d[1:3].mean().sum() + d.cumsum().std().sum() + d.to_numpy()[:, 0].std(),
}
TWO: dict[str, Any] = {
    "the same labels": (lambda a, b: (a * b).std() + np.maximum(a, b).std() + a[b > 0].std(), SERIES, OTHER),
    "rows of a table": (lambda d, y: ((d @ W - y) ** 2).mean(), FRAME, OTHER),
    "products with a table from outside": (
        lambda a, b: (SERIES @ a) * (FRAME @ W * (FRAME @ b[:3]).mean()).std(),
        OTHER,
        OTHER.to_numpy(),
    ),
    "an array": (lambda d, y: ((d @ W - y) ** 2).std(), FRAME, OTHER.to_numpy()),
}


def agrees(f: Any, *args: Any) -> None:
    one, first = args[0], np.asarray(args[0])

    def of_values(x: Any) -> Any:
        return f(type(one)(x, *one.axes), *args[1:])

    value, gradient = fnad.jit(fnad.value_and_grad(f))(*args)
    np.testing.assert_allclose(value, f(*args), rtol=1e-13)
    if not np.isnan(first).any():
        wanted = differences(lambda x: of_values(x.reshape(first.shape)), first.ravel()).reshape(first.shape)
        np.testing.assert_allclose(gradient, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "calls",
    [
        {name: (f, SERIES) for name, f in ONE.items()},
        {f"{name}, nan": (ONE[name], MISSING["b"]) for name in ("reductions", "running")},
        {name: (f, PLAIN) for name, f in OF_PLAIN.items()},
        {name: (f, FRAME) for name, f in TABLE.items()},
        {"by columns, nan": (TABLE["by columns"], MISSING)},
        TWO,
    ],
    ids=["series", "missing", "plain", "frame", "missing columns", "two"],
)
def test_it_computes_what_pandas_does(calls: Any) -> None:
    with together() as check:
        for name, (f, *args) in calls.items():
            with check(name):
                agrees(f, *args)


REFUSED: dict[str, Any] = {
    "other labels": (lambda a, b: (a * b).sum(), SERIES, BACKWARDS),
    "other rows": (lambda d, y: (d @ W - y).sum(), FRAME, BACKWARDS),
    "moved rows": (lambda s: (s[1:] - s[:-1]).sum(), SERIES),
    "a Series beside columns": (lambda d, y: (d[:3] * y[:3]).sum().sum(), FRAME, OTHER),
    "a constant": (lambda s: (s * OTHER).sum(), SERIES),
    "a constant first": (lambda s: (OTHER * s).sum(), SERIES),
    "a label": (lambda s: s[2], SERIES),
    "a mask of other rows": (lambda a, b: a[b > 0].sum(), SERIES, BACKWARDS),
    "a mask of elements": (lambda d: d[d > 0].sum().sum(), FRAME),
    "a column by number": (lambda d: d[0].sum(), FRAME),
    "columns": (lambda d: sum(1.0 for _ in d), FRAME),
    "a label in it": (lambda s: 1.0 if 2 in s else 0.0, PLAIN),
    "an Index": (lambda x: (x * pandas.Index([1.0, 2.0, 3.0])).sum(), W),
    "an array of pandas": (lambda x: (pandas.array([1.0, 2.0, 3.0]) + x).sum(), W),
}


@pytest.mark.parametrize("name", REFUSED)
def test_where_labels_decide_it_is_refused(name: str) -> None:
    f, *args = REFUSED[name]
    with pytest.raises(FnadError, match=r"to_numpy\(\)"):
        fnad.jit(f)(*args)


def test_a_path_is_for_the_labels_it_was_traced_with() -> None:
    spread = fnad.jit(lambda s: s.std())
    for s in (SERIES, SERIES.to_numpy(), PLAIN, SERIES):
        np.testing.assert_allclose(spread(s), s.std(), rtol=1e-13)
    product = fnad.jit(lambda a, b: (a * b).sum())
    product(SERIES, OTHER)
    with pytest.raises(FnadError, match="labels"):
        product(SERIES, BACKWARDS)
    inner = fnad.jit(lambda s: fnad.grad(lambda t: t.std())(s))
    np.testing.assert_allclose(inner(SERIES), fnad.grad(lambda t: t.std())(SERIES), rtol=1e-13)
    spread = fnad.value_and_grad(lambda s: s.std())
    for s in (SERIES, SERIES.to_numpy()) * 3:
        np.testing.assert_allclose(spread(s)[0], s.std(), rtol=1e-13)


@pytest.mark.parametrize("name", ["a", "diff", "iloc"])
def test_an_attribute_that_arrays_have_not_says_how_to_pass_what_is_needed(name):
    for table in (PLAIN, FRAME):
        with pytest.raises(MissingAttributeError, match=rf"has no '{name}'\n.*\n.*df\['a'\].to_numpy\(\)"):
            fnad.grad(lambda d: np.sum(getattr(d, name)))(table)
