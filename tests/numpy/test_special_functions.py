"""scipy.special: its ufuncs on traced values, and the functions that fnad.scipy.special has in place of SciPy's."""

import numpy as np
import pytest
import scipy.special

import fnad
from fnad.numpy.registry import RULES
from fnad.scipy import special
from fnad.trace.stand_ins import MADE
from tests.numpy.against_numpy import check, check_value, traced

X = np.array([[0.1, 0.5, 0.9], [-0.3, 1.7, 0.2]])
P = np.array([0.1, 0.5, 0.9])
INF = np.inf


@pytest.mark.parametrize("name", ["erf", "erfc", "expit", "logit", "log_expit"])
def test_traced_special_ufuncs_compute_as_scipy(name):
    ufunc = getattr(scipy.special, name)
    assert getattr(special, name) is ufunc
    for dtype in (np.float32, np.float64):
        check(ufunc, P.astype(dtype))
    check(ufunc, np.array([0.0, 1.0, INF, -INF, np.nan] if name != "logit" else [0.0, 1.0]))


def test_a_ufunc_of_the_same_name_is_none_of_scipys():
    other = np.frompyfunc(lambda x: x, 1, 1)
    assert other.__name__ != "erf"
    with pytest.raises(fnad.errors.UnsupportedFunctionError):
        traced(other, X)


CALLS = {
    "logsumexp": [{}, {"axis": 0}, {"axis": (0, 1)}, {"axis": 1, "keepdims": True}, {"b": np.array([1.0, 2.0, 0.0])}],
    "softmax": [{}, {"axis": 0}, {"axis": -1}],
    "log_softmax": [{}, {"axis": 0}, {"axis": -1}],
}


@pytest.mark.parametrize("name", CALLS)
def test_traced_special_functions_compute_as_scipy(name):
    ours, scipys = getattr(special, name), getattr(scipy.special, name)
    for options in CALLS[name]:
        for x in (X, X * 1000, X.astype(np.float32), np.arange(3) * np.ones((2, 1), int)):
            check_value(traced(lambda x: ours(x, **options), x)[0], np.asarray(scipys(x, **options)))  # noqa: B023
    check_value(np.asarray(ours(X)), np.asarray(scipys(X)))


def test_lists_of_traced_values():
    assert traced(lambda t: special.logsumexp([t, 0.0]), 1.0)[0] == pytest.approx(np.logaddexp(1, 0))


def test_all_minus_infinity():
    empty = np.array([-INF, -INF])
    assert special.logsumexp(empty) == traced(special.logsumexp, empty)[0] == -INF
    np.testing.assert_array_equal(fnad.grad(special.logsumexp)(empty), [0, 0])
    np.testing.assert_array_equal(fnad.grad(special.logsumexp)(np.array([-INF, 0.0])), [0, 1])
    np.testing.assert_array_equal(fnad.grad(fnad.grad(lambda t: special.logsumexp([t, -INF])))(0.5), 0)


def test_gradients_of_special_functions_are_known_formulas():
    np.testing.assert_allclose(fnad.grad(special.logsumexp)(X), scipy.special.softmax(X), rtol=1e-14)
    np.testing.assert_allclose(
        fnad.grad(lambda x: special.log_softmax(x, axis=1)[0, 0])(X)[0],
        [1, 0, 0] - scipy.special.softmax(X[0]),
        rtol=1e-14,
    )
    for x in (-1000.0, 1000.0):
        assert fnad.grad(scipy.special.expit)(x) == 0
        assert fnad.grad(scipy.special.log_expit)(x) == (x < 0)


def test_a_list_may_be_the_first_that_a_special_function_takes(monkeypatch):
    for known, key in ((RULES, scipy.special.gammaln), (MADE, id(scipy.special.gammaln))):
        monkeypatch.delitem(known, key, raising=False)
    gradient = fnad.grad(lambda x: np.sum(scipy.special.gammaln([x, 2 * x])))(0.3)
    assert gradient == pytest.approx(scipy.special.digamma(0.3) + 2 * scipy.special.digamma(0.6), rel=1e-12)
