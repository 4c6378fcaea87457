"""fnad.numpy: NumPy's names for what NumPy cannot hand on; outside a trace it is NumPy."""

import operator
from pathlib import Path

import numpy as np
import pytest

import fnad
import fnad.numpy as fnp
from fnad.errors import DtypeError, UnsupportedFunctionError
from fnad.numpy.registry import RULES, WRITERS, Bound
from fnad.trace.tracer import Tracer
from tests.numpy.against_numpy import check_value, traced

S = np.float64(0.5)
V = np.array([1.0, 2.0, 3.0])
TABLE = np.arange(5.0)


def check(function, *args):
    """Compare a function of a namespace, traced in fnad's, with what it gives in NumPy's."""
    expected = function(np, *args)
    for actual, value in zip(traced(lambda *xs: function(fnp, *xs), *args)[0], expected, strict=True):
        check_value(actual, np.asarray(value))


def rotation(xp, t):
    return (xp.array([[xp.cos(t), -xp.sin(t)], [xp.sin(t), xp.cos(t)]]) @ xp.array([t, 1.0]),)


def constructors(xp, t):
    return (
        xp.array([t, 2, 3.5]),
        xp.array([[t], [1]], dtype=np.float32),
        xp.asarray([t, t]),
        xp.array(t, ndmin=2),
        xp.full((2, 3), t),
        xp.full(2, t, dtype=complex),
    )


def filled_in_a_loop(xp, t):
    y, z, e = xp.zeros(4), xp.ones((2, 2), np.float32), xp.eye(3)
    for i in range(1, 4):
        y[i] = y[i - 1] * t + i
    z[0] = t
    z += t
    e[0, 2] = t
    w = xp.array([1.0, 2.0])
    w[1] = t
    return y, z, e, w, xp.identity(2) * t, xp.empty(2) * 0 * t


def lists(xp, t):
    return (
        xp.sum([t, t * 2]),
        xp.dot([t, 1], [2, t]),
        xp.concatenate([[t], [t, 1.0]]),
        xp.max([t, 0.1]),
        xp.append([[t]], [[t]], axis=0),
        xp.linalg.norm(xp.array([t, t])),
        xp.diag([t, t]),
        xp.mean([[t, 1], [2, t]], axis=0),
    )


@pytest.mark.parametrize("function", [rotation, constructors, filled_in_a_loop])
def test_functions_that_make_arrays_return_as_numpy(function):
    check(function, S)


def test_lists_with_traced_elements_become_arrays():
    check(lists, S)


def test_a_table_at_a_traced_index():
    actual, _ = traced(lambda k: fnp.asarray(TABLE)[k] + fnp.take(TABLE, k), np.int64(3))
    assert actual == 6


def test_the_callers_arrays_stay():
    def function(v):
        w = fnp.asarray(TABLE)
        w[0] = v[0]
        return w

    np.testing.assert_array_equal(traced(function, V)[0], [1, 1, 2, 3, 4])
    np.testing.assert_array_equal(TABLE, np.arange(5.0))


def test_numpy_itself_outside_a_trace():
    assert isinstance(fnp.zeros(3), np.ndarray)
    assert type(fnp.array([1, 2])) is np.ndarray
    assert fnp.sin is np.sin
    assert fnp.float32 is np.float32
    assert fnp.pi is np.pi
    assert fnp.random is np.random
    assert isinstance(fnp.linalg.norm([3, 4]), float)
    assert fnp.sum([1, 2]) == 3
    with pytest.raises(AttributeError):
        operator.attrgetter("no_such_name")(fnp)


def test_names_of_numpy_are_not_hidden_by_files():
    hidden = {name for name in vars(fnp) if hasattr(np, name) and getattr(fnp, name) is not getattr(np, name)}
    assert {name for name in hidden if type(getattr(fnp, name)) is type(fnp)} <= {"fft", "linalg"}


def test_new_arrays_are_traced_while_a_trace_runs():
    def function(v):
        assert isinstance(fnp.zeros(3), Tracer)
        assert isinstance(fnp.arange(3), Tracer)
        assert type(fnp.sum(TABLE)) is np.float64
        return v

    traced(function, V)


def test_gradients_through_the_namespace():
    assert fnad.grad(lambda t: rotation(fnp, t)[0].sum())(0.0) == 0
    np.testing.assert_array_equal(fnad.grad(lambda v: fnp.array([v[0], v[0] * v[1]]).sum())(V), [3, 1, 0])


def test_dtypes_that_are_not_there():
    with pytest.raises(DtypeError, match="dtype float16 is not supported"):
        traced(lambda v: fnp.zeros(3, np.float16) + v, V)


# ---- writing one's own rule ------------------------------------------------------------------------------------------


def packbits(a):
    return RULES[np.exp](a)


def test_a_rule_of_the_users():
    fnp.implements(np.packbits)(packbits)
    try:
        np.testing.assert_allclose(traced(np.packbits, V)[0], np.exp(V))
        with pytest.raises(ValueError, match="has two rules"):
            fnp.implements(np.packbits)(packbits)
    finally:
        del RULES[np.packbits]


def test_a_rule_is_called_by_the_signature_of_its_function():
    def spread(a, axis, *, ddof=0, keepdims=np._NoValue, out=None, order="K"):
        raise AssertionError

    fnp.implements(spread)(lambda keepdims, a, axis: (a, axis, keepdims))
    rule = RULES.pop(spread)
    assert rule(1, 2) == rule(axis=2, a=1, ddof=0, keepdims=np._NoValue) == (1, 2, False)
    assert rule(1, 2, keepdims=True, order="F") == (1, 2, True)
    with pytest.raises(UnsupportedFunctionError, match=r"spread has no rule for the option ddof=") as caught:
        rule(1, 2, ddof=1)
    assert caught.value.remedy == "leave it out"
    for args, kwargs in (((1,), {}), ((1, 2, 3), {}), ((1, 2), {"a": 1}), ((1, 2), {"dtype": float})):
        with pytest.raises(TypeError, match=r"spread: "):
            rule(*args, **kwargs)
    with pytest.raises(ValueError, match="'b', which it has not"):
        fnp.implements(spread)(lambda a, b: a)


def test_every_rule_has_the_parameters_of_its_function():
    conventions = [rule.convention for rule in (*RULES.values(), *WRITERS.values()) if isinstance(rule, Bound)]
    assert sum(convention is not None for convention in conventions) > 200


def test_no_file_hides_a_name_of_numpys():
    files = {path.stem for path in Path(fnp.__file__).parent.glob("[!_]*.py")}
    assert {name for name in files if hasattr(np, name)} == {"fft", "linalg"}
    assert fnp.linalg.norm([3.0, 4.0]) == np.linalg.norm([3.0, 4.0])
    with pytest.raises(AttributeError, match="nothing"):
        fnp.linalg.nothing  # noqa: B018
