"""Rules are run where their kinds of arguments are new; when these come again, equations are added."""

import random
import sys
import warnings

import numpy as np
import optree
import pytest
import scipy.special

import fnad
from fnad.errors import FnadError, OutOfRangeError
from fnad.ir.builder import trace
from fnad.ir.types import F64, Aval, aval_of
from fnad.numpy.indexing import getitem, read_at, setitem, write_at
from fnad.numpy.namespace import on_traced
from fnad.numpy.registry import RULES
from fnad.numpy.views import ArrayView
from fnad.trace import dispatch, expansion
from fnad.trace.tracing import trace_function
from tests.numpy.generated_calls import call_of, split
from tests.numpy.test_generated_calls import FUNCTIONS, MODULES

X = np.array([1.0, 2.0, 4.0])
CALLS = 2
OTHERS = (2, 2.0, True, -0.0, 1e300, np.float32(3), np.array([1, 3, 2], "i4"), 1j)
UFUNCS = [f for f in vars(np).values() if isinstance(f, np.ufunc) and f.signature is None]


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch):
    monkeypatch.setattr(expansion, "_EXPANSIONS", {})
    monkeypatch.setattr(expansion, "_MET", set())


def traced(f, *values):
    """Return what a trace of a function finds, or the error it ends with, and the warnings."""
    avals = [aval_of(value) for value in values]
    with warnings.catch_warnings(record=True, action="always") as warned:
        try:
            found = trace_function(lambda leaves: results(f(*leaves)), avals, name="f", values=values)
        except Exception as error:  # noqa: BLE001
            return type(error), getattr(error, "what", str(error)), said(warned)
    guards = [(guard.expected, guard.position) for guard in found.guards]
    return str(found.program), guards, said(warned)


def results(value):
    return [leaf for leaf in optree.tree_leaves(value) if not isinstance(leaf, (str, type, np.dtype))]


def said(warned):
    return [(str(w.message), w.category, w.lineno) for w in warned]


def directly(rule, operands, options):
    return rule(*operands, **options)


def differences(monkeypatch, calls):
    """Return the calls whose trace is another one where rules are not run again, the first time or later."""
    found = []
    for name, f, values in calls:
        with monkeypatch.context() as patch:
            patch.setattr(dispatch, "follow", directly)
            expected = traced(f, *values)
        traces = [traced(f, *values) for _ in range(3)]
        found += [(name, expected, again) for again in traces if again != expected]
    return found


def generated():
    for module, name in FUNCTIONS:
        function, full = getattr(MODULES[module], name), f"{module}.{name}"
        for number in range(1):
            try:
                arrays, call = split(*call_of(full, function, number))
            except (
                KeyError,
                ValueError,
            ):  # a parameter that a later NumPy has, a signature that an earlier one has not
                continue
            if all(array.dtype.kind in "biufc" for array in arrays):
                yield f"{full} {number}", lambda *xs, call=call, f=function: call(on_traced(f), xs), arrays


def of_ufuncs():
    for ufunc in (*UFUNCS, scipy.special.gammaln, scipy.special.jv):
        for dtypes in (("f8", "f8"), ("f4", "i8"), ("i8", "u8"), ("?", "c16"), ("c8", "f8")):
            values = [np.array([[1, 2, 0]], dtype) for dtype in dtypes[: ufunc.nin]]
            yield f"{ufunc} {dtypes}", ufunc, values
            if ufunc.nin == 2:
                for other in random.Random(f"{ufunc} {dtypes}").sample(OTHERS, 1):
                    yield f"{ufunc} {dtypes} {other!r}", lambda x, u=ufunc, y=other: u(x, y), values[:1]


def of_arrays_from_outside():
    """Beside a traced value, alone and in lists; of all dtypes, and such as there are none."""
    for dtype in ("?", "i1", "i8", "u8", "f4", "f8", "c16", ">f8", "f2", "O", "U1"):
        array = np.array([1, 0, 1]).astype(dtype)
        for f in (np.concatenate, np.stack, np.vstack, np.hstack, np.column_stack, np.dstack):
            yield f"{f} {dtype}", lambda x, f=f, y=array: on_traced(f)((x, y, [x[0], 2, True], x)), [X]
            yield f"{f} of two {dtype}", lambda x, f=f, y=array: on_traced(f)([y, x]), [X]
        for name, f in {
            "where": lambda x, y: on_traced(np.where)(y, x, y),
            "where in a list": lambda x, y: on_traced(np.where)([True, False, True], x, list(y)),
            "where of two": lambda x, y: on_traced(np.where)(x > 1.0, y, [y[0], x[0], 2]),
            "where alone": lambda x, y: on_traced(np.where)(x > y),
            "clip": lambda x, y: on_traced(np.clip)(x, y, None),
            "sum": lambda x, y: on_traced(np.sum)([x, y], 0),
            "mean": lambda x, y: on_traced(np.mean)((y, x), axis=(0, 1)),
            "cumsum": lambda x, y: on_traced(np.cumsum)([x[:2], y[1:]], 1),
        }.items():
            yield f"{name} {dtype}", lambda x, f=f, y=array: f(x, y), [X]


def test_an_array_from_outside_may_change_between_calls():
    mask, other, starts = np.array([True, False, True]), np.array([5.0, 6.0, 7.0]), [0.0]

    def f(x):
        found = []
        for i in range(4):
            mask[1], other[0], starts[0] = i % 2, i, i
            found.append(np.where(mask, x, other) + np.concatenate([other[:1], x[1:]]) + np.stack([x, starts * 3])[1])
        return found

    expected = [found.tolist() for found in f(X)]
    for transform in (fnad.jit, lambda f: lambda x: fnad.vjp(f, x)[0]):
        for _ in range(3):
            assert [np.asarray(found).tolist() for found in transform(f)(X)] == expected


@pytest.mark.slow
@pytest.mark.parametrize("calls", [generated, of_ufuncs, of_arrays_from_outside])
def test_the_program_is_the_same(monkeypatch, calls):
    with np.errstate(all="ignore"):
        assert differences(monkeypatch, calls()) == []


def test_an_expansion_is_made_once(monkeypatch):
    runs, of = [], expansion.expansion
    monkeypatch.setattr(expansion, "expansion", lambda rule, *args: (runs.append(rule), of(rule, *args))[1])

    def f(x):
        for i in range(5):
            x = np.sinh(x) * 2.0
            x[i % 2 :].sum()
        return x

    first, second = traced(f, X), traced(f, X)
    assert first == second
    assert len(runs) == 6  # sinh, mul, two slices, sums of two shapes


def test_of_what_comes_once_nothing_is_kept(monkeypatch):
    def f(x):
        for i in range(3):
            x[i] = x[i] * x[i, ...]
            x[i:] = x[: 3 - i]

    traced(f, X)
    assert [key[0] for key in expansion._EXPANSIONS] == [RULES[np.multiply]]


def test_a_place_is_what_the_general_rule_makes_of_it():
    whole, numbers = [(4,), (4, 3), (4, 1), (1,), (1, 3), (2, 3, 0), (0,), ()], (0, 1, -1, 3, -4, 4, -5)
    indices = [*numbers, *[(i,) for i in numbers], *[(i, j) for i in numbers for j in numbers], (1, 1, 0), (0, 0, 0, 0)]

    def program(rule, shape, index, *value):
        def written(x):
            found = rule(x, index, *value)
            return [found.read() if isinstance(found, ArrayView) else found]

        try:
            return str(trace(written, Aval(F64, shape)))
        except OutOfRangeError as error:
            return str(error)

    for shape in whole:
        for index in indices:
            assert program(read_at, shape, index) == program(getitem, shape, index)
            assert program(write_at, shape, index, 2.5) == program(setitem, shape, index, 2.5)


def test_a_view_is_one_of_what_it_is_asked_of():
    def f(x, y):
        z = x + y
        for i in (0, 1):
            part, other = z[:2], y.T
            part[i] = 5.0
            other[2] = -1.0
        return z * y

    for _ in range(2):
        assert fnad.jit(f)(X.copy(), X.copy()).tolist() == [5.0, 10.0, -8.0]


def test_what_numbers_decide_is_run_each_time():
    def f(x):
        count, table = fnad.numpy.zeros(1, int), fnad.numpy.arange(4)
        for _ in range(3):
            count = count + 1
            x = x * int(table[count[0]]) if table[count[0]] > 1 else x
            x = x[x > 1.0]
        return x

    for _ in range(2):
        assert fnad.grad(lambda x: np.sum(f(x)))(X).tolist() == [0.0, 6.0, 6.0]
        assert fnad.jit(f)(X).tolist() == [12.0, 24.0]


def test_a_rule_of_the_users_is_run_each_time():
    runs = []

    def doubled(x):
        return 2 * x

    @fnad.numpy.implements(doubled)
    def rule(x):
        runs.append(x)
        return x + x

    double = on_traced(doubled)
    assert fnad.grad(lambda x: np.sum(double(x) + double(x)))(X).tolist() == [4.0, 4.0, 4.0]
    assert len(runs) == 2


def test_an_error_is_raised_each_time():
    def f(x):
        for _ in range(2):
            try:
                np.reshape(x, (2, 2))
            except FnadError as error:
                messages.append(str(error))
        return x

    messages = []
    trace_function(lambda leaves: [f(*leaves)], [Aval(F64, (3,))], name="f")
    assert len(messages) == 2
    assert messages[0] == messages[1]
    assert "np.reshape(x, (2, 2))" in messages[0]


FEWEST = {
    "np.exp(x)": (lambda x: np.exp(x), 34),
    "x * 2.0": (lambda x: x * 2.0, 28),
    "np.stack([x, x])": (lambda x: np.stack([x, x]), 47),
    "np.clip(x, 0, 1)": (lambda x: np.clip(x, 0, 1), 42),
    "x[1:]": (lambda x: x[1:], 44),
}
"""How many functions of Python's a traced call takes, which is nearly all of its time."""


@pytest.mark.parametrize(("call", "most"), FEWEST.values(), ids=FEWEST)
def test_a_call_that_came_before_takes_few_functions(call, most):
    begun = []

    def f(x, y, z):
        for given in (x, y):
            call(given)
        sys.setprofile(lambda frame, event, _: begun.append(frame.f_code) if event == "call" else None)
        try:
            call(z)
        finally:
            sys.setprofile(None)
        return np.sum(z)

    for _ in range(3):
        begun.clear()
        fnad.grad(f)(X, X + 1.0, X + 2.0)
    assert len(begun) <= most


def test_operands_of_one_value_are_views_of_their_own():
    def f(x):
        x = x * 1.0
        first, second = np.broadcast_arrays(x, x[:])
        whole = np.atleast_1d(x, x[1:])[0]
        whole[0] = 7.0
        return np.sum(first * second) + np.sum(whole)

    for _ in range(CALLS):
        np.testing.assert_array_equal(fnad.grad(f)(X), [0.0, 5.0, 9.0])


def test_what_numpy_has_a_say_in_is_left_to_it():
    def f(x):
        other = np.exp(x)
        np.exp(x[::-1], other)  # the second argument is where it is written to
        return np.sum(other * X) + np.sum(np.exp([x, 2.0 * x])) + np.sum(np.exp(x[x > 1.5]))

    def exact(x):
        return np.exp(x) * X[::-1] + np.exp(x) + 2.0 * np.exp(2.0 * x) + np.where(x > 1.5, np.exp(x), 0.0)

    for _ in range(CALLS):
        np.testing.assert_allclose(fnad.grad(f)(X), exact(X), rtol=1e-14)
