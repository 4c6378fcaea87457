"""NumPy functions that make or convert arrays, called with traced values in user code; NumPy itself is unchanged."""

import contextlib
import inspect
import pickle
import subprocess
import sys
import threading
import types
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numba
import numpy as np
import pytest

import fnad
from fnad.errors import ArgumentTypeError, TracerEscapeError, UnsupportedFunctionError
from fnad.trace.tracer import Tracer
from tests.numpy.against_numpy import check
from tests.together import in_groups

T = np.float64(0.7)
V = np.array([1.0, 2.0, 3.0])
ORIGINAL = np.array
array_bound_before = np.array


@pytest.fixture(autouse=True)
def _nothing_is_left():
    yield
    assert type(np) is type(np.linalg) is type(np.fft) is types.ModuleType
    assert np.array is ORIGINAL


CALLS = {
    "array": (lambda t: np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]), T),
    "array of rows": (lambda t, v: (np.array([v, v * t]), np.array((v, [1, t, 2]))), T, V),
    "array with options": (lambda t: (np.array([t, 1], dtype=np.float32), np.array([t], ndmin=2), np.array(t)), T),
    "deque": (lambda t, v: (np.array(deque([t, 2, t])), np.dot(deque([1.0, 2.0, 3.0]), v)), T, V),
    "deque of rows": (lambda t, v: (np.mean(deque([v, v * t]), axis=0), np.stack(deque([v, v]))), T, V),
    "asarray": (lambda t, v: (np.asarray([t, 2]), np.asarray(v), np.asanyarray(v, np.float32)), T, V),
    "contiguous": (lambda v: (np.ascontiguousarray(v), np.ascontiguousarray(v[0]), np.asfortranarray([v, v])), V),
    "require": (lambda v: (np.require(v, requirements="C"), np.require([v, v], np.float32, ["W", "O"])), V),
    "full": (lambda t: (np.full(3, t), np.full((2, 2), t, np.float32)), T),
    "reductions": (lambda t: (np.sum([t, 1]), np.mean([t, 2 * t]), np.max([t, 3.0]), np.std([t, 1.0])), T),
    "lists of arrays": (lambda t, v: (np.sum([v, v * t], axis=0), np.prod([[t, 2], [3, t]], axis=1)), T, V),
    "products": (lambda t: (np.dot([t, 1], [2, t]), np.linalg.norm([t, t]), np.outer([t, 1], [1.0, 2.0])), T),
    "lists to ufuncs": (lambda t: (np.exp([t, 1]), np.maximum([[t, 1], [2, t]], 1.0), np.add((t, 2), [[1], [t]])), T),
    "methods of ufuncs": (lambda v: (np.add.reduce(v), np.multiply.outer(v, v), np.exp.nin * v), V),
    "nested lists": (lambda t: (np.concatenate([[t], [t, 1]]), np.append([[t]], [[t]], axis=0), np.diag([t, t])), T),
    "tables": (lambda v: (np.take(np.arange(5.0), v.astype(int)), np.full_like(np.arange(3.0), v[0])), V),
    "callbacks": (lambda t: np.apply_along_axis(lambda row: row * t, 0, np.ones((2, 3))), T),
    "r_": (lambda t, v: (np.r_[t, 1.0, v], np.r_[v, 0:3], np.r_[0:t:3j, v], np.r_["0,2", v, v]), T, V),
    "ptp": (lambda t, v: (np.ptp([t, -1.0]), np.ptp([v, v * t], axis=0), np.ptp(v)), T, V),
    "r_ by directive": (lambda v: (np.r_["-1", v, v], np.r_["0,2,0", v, v], np.r_["1,3,0", v]), V),
    "fromiter": (lambda v: (np.fromiter((a * a for a in v), float), np.fromiter(v, np.float32, 2)), V),
    "fromfunction": (lambda t: np.fromfunction(lambda i, j: i * t + j, (2, 3)), T),
    "c_": (lambda t, v: (np.c_[v, v * t], np.c_[t, 2], np.c_[np.ones((3, 2)), v], np.c_[0:3, v]), T, V),
}


M, Z = np.arange(6.0).reshape(2, 3), np.array([1 + 2j, 3j])
HALF = np.float32(0.5)
bound_before = np.vectorize(lambda a, b: a * b)

CLASSES = {
    "float64": (lambda t, v, m: (np.float64(t), np.float64(v), np.float64(m[0]), np.float64([t, 2])), T, V, M),
    "others": (lambda v: (np.float32(v[0]), np.int64(v[1] + 0.7), np.bool_(v[2]), np.uint8(v), np.double(v[0])), V),
    "complex": (lambda z, t: (np.complex64(z), np.complex128(t, t), np.complex128(t), np.float64(z)), Z, T),
    "0-d": (lambda a: (np.float64(a), np.float32(a), np.int64(a)), np.array(1.5)),
    "weak": (lambda n: (np.float64(n), np.float32(n), np.int8(n)), 1.5),
    "as dtypes": (lambda v: (v.astype(np.float32), np.zeros_like(v, np.int64), np.dtype(np.float32).itemsize * v), V),
    "in an expression": (lambda v: [np.float64(a if len(v) else 0) for a in v] + [np.float64.fromhex("0x1p1")], V),
    "nditer": (
        lambda v, m: [[a * b for a, b in np.nditer([v, 2.0])], [np.exp(a) for a in np.nditer(m, order="F")]],
        V,
        M,
    ),
    "ndenumerate": (lambda m: [a * i + j for (i, j), a in np.ndenumerate(m)], M),
}
VECTORIZED = {
    "vectorize": (lambda v: np.vectorize(lambda a: a * a + 1)(v), V),
    "several": (lambda m, t: (bound_before(m, 2.0), bound_before(m, t), bound_before(b=m, a=3)), M, T),
    "dtype of the first": (lambda v: np.vectorize(lambda i: i * 2 if i else 1)(np.arange(3)) * v, V),
    "of integers": (lambda v: np.vectorize(lambda a: 1 if a is None else a)(v.astype(int)), V),
    "float32": (lambda v, h: (np.vectorize(np.sin)(v), np.vectorize(np.sin)(h)), V.astype("f"), HALF),
    "otypes": (lambda v: np.vectorize(lambda a: a, otypes="f")(v), V),
    "a list of otypes": (lambda v: np.vectorize(lambda a: a * a, otypes=[np.float32])(v), V),
    "two otypes": (lambda v: np.vectorize(lambda a: (a * a, a), otypes=[float, np.float32])(v), V),
    "objects": (
        lambda v: np.vectorize(lambda name, a: len(name) * a)(np.array(["a", None, "bc"])[[0, 2, 0]], v[:3]),
        V,
    ),
    "two results": (lambda m: np.vectorize(lambda a: (a, 2))(m), M),
    "a number from outside": (lambda v: (bound_before(2.0, 3) * v, np.vectorize(abs, otypes=[int])(-2) * v), V),
    "0-d": (lambda a, t: (np.vectorize(np.cos)(a), np.vectorize(np.cos)(t)), np.array(2.0), T),
    "excluded": (lambda v, m: np.vectorize(lambda p, a: p[0] * a + p[1], excluded=[0])(v, m), V, M),
    "signature": (lambda m, v: np.vectorize(np.dot, signature="(n),(n)->()")(m, v), M, V),
    "signature, rows": (lambda m: np.vectorize(lambda r: r[::-1] * 2, signature="(n)->(n)")(m), M),
    "from outside": (lambda v: np.vectorize(lambda i: v[i] * 2)(np.arange(3)), V),
}


@in_groups("call", [*CALLS.values(), *CLASSES.values(), *VECTORIZED.values()], ids=[*CALLS, *CLASSES, *VECTORIZED])
def test_stand_ins_compute_as_the_functions_of_numpy(call):
    check(*call)


def test_classes_are_themselves_where_they_are_not_called():
    def f(t):
        kind = np.float64
        assert kind is T.dtype.type
        assert isinstance(np.float64(1.0), np.float64)
        assert issubclass(np.float32, np.floating)
        assert {np.float64: 1}[type(T)] == 1
        return t

    fnad.grad(f)(1.0)


def test_vectorize_of_nothing():
    with pytest.raises(ValueError, match="cannot call `vectorize` on size 0 inputs"):
        fnad.grad(lambda v: np.vectorize(np.sin)(v[:0]).sum())(V)
    check(lambda v: np.vectorize(np.sin, otypes="d")(v[:0]), V)
    check(lambda v: np.vectorize(np.sin, otypes=[float])(v[:0]), V)


def test_gradient_of_a_vectorized_branch():
    clipped = np.vectorize(lambda i, a: a * a if i % 2 else 3 * a)
    np.testing.assert_array_equal(fnad.grad(lambda v: clipped(np.arange(3), v).sum())(V), [3, 4, 3])


def test_gradients_through_np_array_are_exact():
    def rotated(t):
        return (np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]) @ np.array([1.0, 2.0]))[0]

    assert fnad.grad(rotated)(0.7) == pytest.approx(-np.sin(0.7) - 2 * np.cos(0.7))
    assert fnad.grad(fnad.grad(rotated))(0.7) == pytest.approx(-np.cos(0.7) + 2 * np.sin(0.7))
    assert fnad.jit(fnad.grad(rotated))(0.7) == pytest.approx(fnad.grad(rotated)(0.7))


def test_nested_lists_lose_nothing():
    np.testing.assert_array_equal(
        fnad.grad(lambda x: np.append([[x[0], x[1]]], [[x[0], x[1]]], axis=0).sum())(V[:2]), [2, 2]
    )


def test_what_is_copied_and_what_is_not():
    def f(v):
        view, copy, new = np.asarray(v), np.array(v), np.array([v[0], v[1]])
        view[0], copy[1], new[0] = 10.0, 20.0, 30.0
        return v * 1, copy, new

    check(f, V)


def test_constants_are_ordinary_arrays():
    def f(t):
        assert type(np.array([1.0, 2.0])) is np.ndarray
        assert type(np.zeros(3)) is np.ndarray
        assert type(np.sum(V)) is np.float64
        assert type(np.r_[0:3]) is np.ndarray
        return t

    fnad.grad(f)(1.0)


exp_bound_before = np.exp
KEPT = SimpleNamespace(array=array_bound_before)


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (lambda t: array_bound_before([t, t]).sum(), 2.0),
        (lambda t: KEPT.array([t, t]).sum(), 2.0),
        (lambda t: KEPT.array(*[[t, t]]).sum(), 2.0),
        (lambda t, make=array_bound_before: make(*[[t, t]]).sum(), 2.0),
        (lambda t: exp_bound_before([t, 2 * t]).sum(), np.e + 2 * np.e**2),
        (lambda t: {"make": np.full}["make"](3, t).sum(), 3.0),
        (lambda t: getattr(np, "hstack")([t, [t]]).sum(), 2.0),  # noqa: B009
        (lambda t: sum(map(np.max, [[t, 0.0], [0.0, t]])), 2.0),
    ],
)
def test_functions_under_other_names_have_their_slopes(function, slope):
    assert fnad.grad(function)(1.0) == pytest.approx(slope, rel=1e-15)


# ---- refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda v: np.nditer(v, flags=["multi_index"]), r"numpy\.nditer has no rule for its flags"),
        (lambda v: np.nditer(v, op_flags=["readwrite"]), r"numpy\.nditer has no rule for its flags"),
        (lambda v: np.nditer([v, v[:, None]]), r"order='K' asks for the layout in memory"),
    ],
)
def test_what_nditer_does_not_do(call, error):
    with pytest.raises(UnsupportedFunctionError, match=error + r"(?s:.*)\n  at test_stand_ins\.py:"):
        fnad.grad(lambda v: len(list(call(v))) * v[0])(V)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_what_is_no_array_is_refused():
    with pytest.raises(ArgumentTypeError, match="is not an array"):
        fnad.grad(lambda t: np.array([[t], [t, t]]).sum())(1.0)
    with pytest.raises(UnsupportedFunctionError, match=r"numpy\.matrix has no rule"):
        fnad.grad(lambda t: np.r_["c", t].sum())(1.0)


# ---- NumPy is unchanged ----------------------------------------------------------------------------------------------


def test_functions_look_like_those_of_numpy():
    def f(t):
        assert np.array.__name__ == "array"
        assert np.mean.__name__ == "mean"
        assert np.mean.__module__ == "numpy"
        assert str(inspect.signature(np.mean)) == str(inspect.signature(np.mean.__wrapped__))
        assert callable(np.array)
        assert isinstance(np, types.ModuleType)
        assert isinstance(np.sin, np.ufunc)
        assert isinstance(np.float64(1), np.floating)
        assert "array" in dir(np)
        for module, value in ((np, np.array), (np, np.mean), (np.linalg, np.linalg.norm)):
            assert pickle.loads(pickle.dumps(value)) is vars(module)[value.__name__]
        return t

    fnad.grad(f)(1.0)


def test_other_threads_read_the_functions_of_numpy():
    inside, done = threading.Event(), threading.Event()
    seen = []

    def f(t):
        inside.set()
        assert done.wait(60)
        return np.array([t, 2 * t]).sum()

    def look():
        assert inside.wait(60)
        seen.extend([np.array is ORIGINAL, np.array([1.0]), pickle.loads(pickle.dumps(np.array)) is ORIGINAL])
        done.set()

    with ThreadPoolExecutor(2) as pool:
        gradient = pool.submit(fnad.grad(f), 1.0)
        pool.submit(look).result()
        assert gradient.result() == 3
    assert seen[0]
    assert seen[2]


def test_traces_in_several_threads():
    def f(t):
        return np.array([t, t * t]).sum() + fnad.grad(lambda u: np.sum([u * t, u]))(t)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda t: fnad.grad(f)(float(t)), range(40)))
    assert found == [2 + 2 * t for t in range(40)]


def test_an_exception_leaves_nothing():
    def f(t):
        with contextlib.suppress(TracerEscapeError):
            fnad.grad(lambda u: float(u))(t)
        assert isinstance(np.array([t]), Tracer)
        raise KeyError

    with pytest.raises(KeyError):
        fnad.grad(f)(1.0)


def test_a_generator_that_is_left_open():
    def numbers(t):
        while True:
            yield np.array([t, t])

    kept = []

    def f(t):
        kept.append(numbers(t))
        return next(kept[0]).sum()

    assert fnad.grad(f)(1.0) == 2


def test_modules_imported_while_tracing_get_the_functions_of_numpy(tmp_path, monkeypatch):
    (tmp_path / "imported_while_tracing.py").write_text("from numpy import array\nimport numpy\nmean = numpy.mean\n")
    monkeypatch.syspath_prepend(tmp_path)

    def f(t):
        import imported_while_tracing as imported  # noqa: PLC0415 # pyright: ignore[reportMissingImports]

        assert imported.array is ORIGINAL
        return np.sum([t]), imported.mean

    traced_sum = fnad.grad(lambda t: f(t)[0])
    assert traced_sum(1.0) == 1


def test_numba_compiles_while_a_trace_runs():
    @numba.njit
    def total(n):
        return np.sum(np.ones(n)) + np.full(2, 1.0)[0]

    assert fnad.grad(lambda t: t * total(3) + np.sum([t]))(1.0) == 5


def test_attributes_of_numpy_can_be_set_meanwhile(monkeypatch):
    def f(t):
        with monkeypatch.context() as patch:
            patch.setattr(np, "array", lambda values: values[0])
            assert np.array([t]) is t
        return np.array([t, t]).sum()

    assert fnad.grad(f)(1.0) == 2
    assert np.array is ORIGINAL


def test_a_trace_may_import_what_has_rules():
    code = "import numpy as np, fnad; print(fnad.grad(lambda c: np.polynomial.polynomial.polyval(2.0, c))(np.ones(3)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[1. 2. 4.]\n"
