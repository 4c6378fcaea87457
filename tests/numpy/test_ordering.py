"""Ordering, counting, choosing and accumulating: every dtype, NumPy's errors, traced masks, compiled programs."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fnad
from fnad.errors import DomainError, TracerEscapeError
from tests.numpy.against_numpy import NAMES, check, check_error, check_or_refused, sample, traced
from tests.numpy.ordering_calls import K, N, V, X
from tests.together import in_groups, some_of

# ---- every dtype -----------------------------------------------------------------------------------------------------

ALONG = ("sort", "median", "cumprod", "nancumsum", "nancumprod", "argsort")
OVER = ("nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nansum", "nanprod", "nanmedian", "median")


@in_groups("dtype", NAMES)
@pytest.mark.parametrize("name", ALONG)
def test_along_an_axis(name, dtype):
    options = {"kind": "stable"} if name == "argsort" else {}
    for axis in some_of((None, 0, 1, -1), f"{name} {dtype}", 2):
        check_or_refused(partial(getattr(np, name), axis=axis, **options), sample((2, 3, 2), dtype))


@in_groups("dtype", NAMES)
@pytest.mark.parametrize("name", OVER)
def test_orders_over_axes_are_numpys(name, dtype):
    """Over some axes, which are drawn."""
    for axis in some_of((None, 0, -1, (0, 2)), f"{name} {dtype}", 2):
        check_or_refused(partial(getattr(np, name), axis=axis), sample((2, 3, 2), dtype))
        check_or_refused(partial(getattr(np, name), axis=axis, keepdims=True), sample((2, 1, 2), dtype))


@pytest.mark.parametrize("dtype", NAMES)
def test_quantiles_of_any_dtype_are_numpys(dtype):
    for q in (0.3, 1, [0.25, 0.5], np.float32(0.7)):
        for name in ("quantile", "nanquantile"):
            if dtype != "bool":  # NumPy takes a difference of bools, which it does not have, by some methods
                check_or_refused(lambda x: getattr(np, name)(x, q, axis=1), sample((2, 3, 2), dtype))  # noqa: B023


@pytest.mark.parametrize("dtype", NAMES)
def test_searches_insertions_and_choices_are_numpys(dtype):
    x = sample((2, 3), dtype)
    check_or_refused(lambda x: (np.searchsorted(np.sort(x[0]), x), np.isin(x, x[0]), np.lexsort(x)), x)
    check_or_refused(
        lambda x: (np.insert(x, 1, x[0, 0]), np.delete(x, 1, 0), np.compress([1, 0], x), np.choose(0, x)), x
    )
    check_or_refused(lambda x: (np.maximum.accumulate(x), np.multiply.accumulate(x, 1)), x)
    if dtype != "bool":  # NumPy warns
        check_or_refused(lambda x: (np.histogram(x, [0, 0.5, 3]), np.digitize(x, [0.5, 2])), x)


# ---- what NumPy refuses ----------------------------------------------------------------------------------------------

REFUSED = {
    "sort of a number": (lambda x: np.sort(x[0, 0]), X),
    "sort by a kind": (lambda x: np.sort(x, kind="bubble"), X),
    "sort in two ways": (lambda x: np.sort(x, kind="stable", stable=True), X),
    "sort by a field": (lambda x: np.sort(x, order="a"), X),
    "sort of a number in place": (lambda x: x[0, 0].sort(), X),
    "partition": (lambda x: np.partition(x, 9), X),
    "lexsort of nothing": (lambda x: np.lexsort(()) + x, X),
    "lexsort": (lambda x, v: np.lexsort((x[0], v)), X, V),
    "searchsorted": (lambda x: np.searchsorted(x, 1.0), X),
    "searchsorted to a side": (lambda v: np.searchsorted(v, 1.0, side="middle"), V),
    "quantile": (lambda x: np.quantile(x, 1.5), X),
    "quantile where it is": (lambda x: np.quantile(x, x[0] + 1), X),
    "percentile": (lambda x: np.percentile(x, -1), X),
    "quantile by a method": (lambda x: np.quantile(x, 0.5, method="guess"), X),
    "quantile of complex numbers": (lambda x: np.quantile(x * 1j, 0.5), X),
    "quantile of nothing": (lambda x: np.quantile(x[:0], 0.5, axis=0), X),
    "nanargmax": (lambda n: np.nanargmax(n * np.nan, 0), N),
    "nanmax of nothing": (lambda x: np.nanmax(x[:0], 0), X),
    "cumulative_sum": (np.cumulative_sum, X),
    "accumulate of a number": (lambda x: np.maximum.accumulate(x[0, 0]), X),
    "sums of a number": (lambda x: np.add.accumulate(x[0, 0]), X),
    "products of a number": (lambda x: np.multiply.accumulate(x[0, 0]), X),
    "reduce over axes in order": (lambda x: np.subtract.reduce(x, axis=(0, 1)), X),
    "reduce of nothing": (lambda x: np.fmax.reduce(x[:0]), X),
    "reduceat": (lambda x: np.add.reduceat(x, [9]), X),
    "histogram": (lambda v: np.histogram(v, [1, 0]), V),
    "histogram of no bins": (lambda v: np.histogram(v, 0), V),
    "histogram over no range": (lambda v: np.histogram(v, 3, range=(1, 0)), V),
    "histogram of weights": (lambda v: np.histogram(v, 3, weights=v[:2]), V),
    "histogramdd": (lambda v: np.histogramdd(v[:, None], [1, 2]), V),
    "digitize": (lambda v: np.digitize(v, [1, 3, 2]), V),
    "bincount of floats": (lambda v: np.bincount(v, minlength=9), V),
    "bincount of negative integers": (lambda k: np.bincount(k - 1, minlength=9), K),
    "bincount of negative integers that are known": (lambda v: np.bincount([0, 1, -1], v[:3]), V),
    "choose": (lambda k, x: np.choose(k + 2, x), K, X),
    "choose by negative integers": (lambda k, x: np.choose(k - 1, x), K, X),
    "place": (lambda x: np.place(x * 1, x > 0, []), X),
    "place under a mask": (lambda x: np.place(x * 1, x[0] > 0, [1]), X),
    "insert": (lambda x: np.insert(x, 9, 0, 0), X),
    "insert too much": (lambda x: np.insert(x, 1, [1, 2, 3], 0), X),
    "delete": (lambda x: np.delete(x, 9, 0), X),
    "delete along an axis": (lambda x: np.delete(x, 0, 5), X),
    "resize": (lambda x: np.resize(x, -1), X),
    "ravel_multi_index": (lambda k: np.ravel_multi_index((k, k), (2, 2)), K),
    "unravel_index": (lambda k: np.unravel_index(k, (2, 1)), K),
    "tril_indices_from": (np.tril_indices_from, V),
    "a mask": (lambda x: x[x[:2] > 0].sum(), X),
    "the largest of nothing": (lambda x: x[x > 9].max(), X),
    "piecewise": (lambda x: np.piecewise(x, [x > 1, x > 2], [1]), X),
    "apply_along_axis": (lambda x: np.apply_along_axis(np.sum, 0, x[:, :0]), X),
    "ldexp": (lambda x: np.ldexp(x, x), X),
}


@in_groups("name", REFUSED)
def test_ordering_functions_refuse_what_numpy_refuses(name):
    check_error(*REFUSED[name])


def test_shapes_that_depend_on_values():
    for function, remedy in (
        (np.unique, "reduce with where="),
        (np.argwhere, "reduce with where="),
        (np.trim_zeros, "reduce with where="),
        (lambda v: np.union1d(v, v), "reduce with where="),
        (lambda v: v.nonzero(), "reduce with where="),
        (lambda v: np.bincount(v.astype(int)), "reduce with where="),
        (lambda v: np.histogram(v, "auto"), "give the number of bins"),
        (lambda v: np.compress(v > 0.5, v), "reduce with where="),
    ):
        with pytest.raises(TracerEscapeError, match=rf"(?s)depends on .*{remedy}"):
            traced(function, V)


def test_integers_beyond_the_bins():
    with pytest.raises(DomainError, match="takes those from 0 to minlength - 1, which is 1"):
        traced(lambda k: np.bincount(k, minlength=2), K)


def test_negative_integers_and_too_few_bins():
    count = fnad.jit(np.bincount)
    assert_array_equal(count(np.array([0, 2, 2])), [1, 0, 2])
    for integers in ([0, -1], [-3]):
        with pytest.raises(ValueError, match="must have no negative elements"):
            count(np.array(integers))


def test_indices_of_a_triangle_of_traced_size():
    for indices in (np.tril_indices, np.triu_indices):
        for args in ((3,), (3, 1), (2, -1, 4)):
            for given in (args, tuple(map(np.int64, args))):
                for found, expected in zip(fnad.jit(indices)(*given), indices(*args), strict=True):
                    assert_array_equal(found, expected)
        with pytest.raises(TracerEscapeError, match="a number of rows was given as a traced value"):
            fnad.map(lambda n, indices=indices: indices(n)[0], np.array([2, 2]))
        assert_array_equal(fnad.vmap(lambda n, indices=indices: indices(n)[0])(np.array([2, 2])), [indices(2)[0]] * 2)
    with pytest.raises(TypeError, match="a row of a vector is a number in the body of vmap"):
        fnad.vmap(np.maximum.accumulate)(np.ones(3))


# ---- masks known when the program runs -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[x > 0.4],
        lambda x: len(x[x > 0.4]),
        lambda x: x[x > 0.4].shape,
        lambda x: x[x > 0.4].size,
        lambda x: x[x > 0.4][0],
        lambda x: list(x[x > 0.4]),
        lambda x: np.sort(x[x > 0.4]),
        lambda x: np.concatenate([x[0], x[x > 0.4]]),
        lambda x: x + x[x > 0.4],
        lambda x: x[x > 0.4] + x[x > 0.5],
        lambda x: x[x > 0.4].sum(axis=1),
        lambda x: np.add.outer(x[x > 0.4], x[0]),
    ],
)
def test_what_a_selection_cannot_tell(function):
    with pytest.raises(TracerEscapeError, match=r"(?s)the shape of the result depends on a traced value.*where=mask"):
        traced(function, X)


def test_a_selection_is_a_copy():
    def function(x):
        y, mask = x * 1, x > 0.4
        part = y[mask]
        alias = part
        alias += 1
        y[...] = 0
        return part.sum(), y, (part - part).sum()

    check(function, X)


def test_what_is_not_selected_has_no_part_in_derivatives():
    gradient = fnad.grad(lambda x: np.sum(np.log(x[x > 0])))
    np.testing.assert_array_equal(gradient(np.array([1.0, -2.0, 0.0, 4.0])), [1, 0, 0, 0.25])


# ---- compiled --------------------------------------------------------------------------------------------------------

COMPILED = {
    "order": lambda x: np.sort(x, 0) @ np.arange(4.0) * np.median(x) + np.quantile(x, 0.3) * np.partition(x, 1)[0, 1],
    "running": lambda x: np.cumprod(x, 1) * np.maximum.accumulate(x) + np.logaddexp.reduce(x) * np.nanstd(x),
    "counts": lambda x: np.histogram(x, 3, (0, 1), weights=x)[0] * np.bincount(np.digitize(x[0], [0.4]), x[1], 3),
    "masks": lambda x: x[x > 0.4].mean() * np.piecewise(x, [x > 0.6], [lambda v: v**2, lambda v: v - v.max()]),
    "digits": lambda x: np.ldexp(x, np.frexp(x * 9)[1]) * np.nextafter(x, 9) + np.spacing(x) + np.gcd(K, 4) * x,
    "places": lambda x: np.choose(np.argsort(x[0]) % 3, x) + np.insert(x, 1, x[0], 0)[1] * np.delete(x, 0, 0)[0],
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_ordering_functions_are_interpreted(name):
    found = {}
    for executor in ("interpreter", "compiled"):
        with fnad.config.override(executor=executor):
            found[executor] = fnad.value_and_grad(lambda x: np.sum(COMPILED[name](x)))(X)
    for compiled, interpreted in zip(found["compiled"], found["interpreter"], strict=True):
        np.testing.assert_allclose(compiled, interpreted, rtol=1e-14)


def test_counts_of_nothing_have_the_dtype_of_their_weights() -> None:
    """NumPy's are integers where there is nothing to count, and floats otherwise; a sum of weights has a derivative."""
    none, weights = np.zeros(0, int), np.zeros(0)
    for least in (0, 3):
        for run in (fnad.jit, lambda f: lambda *args: fnad.vjp(lambda w: f(args[0], w), args[1])[0]):
            found = run(lambda n, w: np.bincount(n, w, minlength=least))(none, weights)  # noqa: B023
            assert (found.dtype, found.shape) == (np.float64, (least,))
    assert fnad.jit(lambda n: np.bincount(n, minlength=3))(none).dtype == np.int64
    assert fnad.grad(lambda w: np.sum(np.bincount(none, w, minlength=3) ** 2))(weights).shape == (0,)
