"""A call like the one before, which is not looked up; and all that makes it another one."""

import numpy as np
import pytest

import fnad
from fnad import tree
from fnad.api.paths import Paths
from fnad.errors import FnadError, MutationError, NonFiniteError

X = np.linspace(0.5, 1.5, 4)
SCALE = 1.0


@pytest.fixture
def looked_up(monkeypatch):
    """The calls that are looked up, one entry each."""
    calls = []
    run = Paths.run
    monkeypatch.setattr(Paths, "run", lambda self, arrays: calls.append(1) or run(self, arrays))
    return calls


def compiled(f, *args):
    """The function after its first call, which compiled it."""
    function = fnad.jit(f)
    with fnad.config.override(executor="compiled"):
        function(*args)
    function(*args)
    return function


def test_a_call_like_the_one_before_is_not_looked_up(looked_up):
    f = compiled(fnad.value_and_grad(lambda x: np.sum(x**3)), X)
    looked_up.clear()
    for x in (X, X + 1, X[::-1], np.asfortranarray(X), X + 2):
        value, gradient = f(x)
        assert isinstance(value, np.float64)
        np.testing.assert_allclose(gradient, 3 * x**2, rtol=1e-14)
    assert not looked_up
    assert f.paths()[0].runs == 7


@pytest.mark.parametrize(
    "args",
    [({"a": X, "b": [X, 2.0]},), (X, 0.5), (X, True), (np.float32(2), X), (np.array(3.0), X), (1j, X), ((), X)],
    ids=str,
)
def test_any_structure_of_arrays_and_numbers_is_ready(args, looked_up):
    def f(*args):
        return [x * 2 for x in tree.leaves(args)]

    def other(x):
        return not x if isinstance(x, bool) else np.array(x + 1) if isinstance(x, np.ndarray) else x + 1

    function = compiled(f, *args)
    looked_up.clear()
    args = tree.map(other, args)
    for result, expected in zip(function(*args), f(*args), strict=True):
        np.testing.assert_array_equal(result, expected)
        assert result.dtype == np.asarray(expected).dtype
    assert not looked_up


@pytest.mark.parametrize(
    "another",
    [X.astype("f4"), X[:3], X.reshape(2, 2), X.astype(">f8"), X.astype(int), 2.0, 3, np.float64(2), np.array(2.0), [X]],
    ids=lambda x: f"{type(x).__name__} {getattr(x, 'dtype', '')} {np.shape(x)}",
)
def test_another_argument_is_looked_up(another, looked_up):
    def f(x):
        return 2 * x[0] if isinstance(x, list) else 2 * x

    function = compiled(f, X)
    looked_up.clear()
    result = function(another)
    np.testing.assert_array_equal(result, f(another))
    assert np.asarray(result).dtype == np.asarray(f(another)).dtype
    assert looked_up
    np.testing.assert_array_equal(function(X), 2 * X)


def test_fewer_and_more_arguments_are_looked_up():
    function = compiled(lambda *xs: sum(xs), X)
    np.testing.assert_array_equal(function(X, X), 2 * X)
    np.testing.assert_array_equal(function(X), X)


def test_what_the_function_reads_is_compared(monkeypatch):
    factors = np.array([2.0])
    function = compiled(lambda x: SCALE * x * factors, X)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    np.testing.assert_array_equal(function(X), 3 * X * 2)
    factors[0] = 5.0
    np.testing.assert_array_equal(function(X), 3 * X * 5)


def test_settings_are_compared(looked_up):
    called = []
    function = compiled(lambda x: called.append(1) or np.log(x), X)
    traced = len(called)
    with fnad.disable_jit():
        function(X)
    assert len(called) == traced + 1
    with fnad.debug_nans(), pytest.raises(NonFiniteError):
        function(0 * X)
    function(X)
    looked_up.clear()
    with fnad.config.override(executor="interpreter"):
        function(X)
        function(X)
    assert len(looked_up) == 2


def test_code_that_was_freed_is_made_again():
    function = compiled(lambda x: np.sin(x) * x, X)
    for path in function._paths.values():
        path.known[0].programs[0].free()
    np.testing.assert_allclose(function(X), np.sin(X) * X, rtol=1e-15)


def test_a_path_that_asks_for_values_asks_each_time():
    function = compiled(lambda x: 2 * x if x[0] > 0 else -x, X)
    np.testing.assert_array_equal(function(-X), X)
    np.testing.assert_array_equal(function(X), 2 * X)


def test_arguments_that_are_written_into_have_to_be_apart_each_time():
    def double(x, y):
        x *= 2
        return x + y

    function = compiled(double, X, X.copy())
    np.testing.assert_array_equal(function(X, X.copy()), 2 * X + X)
    with pytest.raises(MutationError):
        function(X, X)


def test_an_error_has_the_line():
    function = compiled(lambda a: np.linalg.inv(a), np.eye(2))
    with pytest.raises(FnadError, match=r"test_ready\.py") as caught:
        function(np.zeros((2, 2)))
    assert "inv" in str(caught.value)
    np.testing.assert_array_equal(function(2 * np.eye(2)), np.eye(2) / 2)


def test_inside_a_trace_it_is_the_function():
    function = compiled(lambda x: x**2, X)
    np.testing.assert_array_equal(fnad.grad(lambda x: np.sum(function(x)))(X), 2 * X)
