"""A call like the one before, which is not looked up; and all that makes it another one."""

import gc
import sys
import threading
import weakref
from functools import partial

import numpy as np
import pytest

import fnad
from fnad import tree
from fnad.api.running.paths import Paths
from fnad.api.running.ready import OFTEN
from fnad.backends.cpu.executor import NativeExecutor
from fnad.errors import DtypeError, FnadError, MutationError, NonFiniteError, SettingError, StaticArgumentError
from fnad.kernel import residual_stack

X = np.linspace(0.5, 1.5, 4)
SCALE = 1.0


@pytest.fixture
def looked_up(monkeypatch):
    """The calls that are looked up, one entry each."""
    calls = []
    run = Paths.run
    monkeypatch.setattr(Paths, "run", lambda self, *given: calls.append(1) or run(self, *given))
    return calls


@pytest.fixture
def passed_on(monkeypatch):
    """The runs of native code that Python prepares, one entry each: not those of direct calls."""
    runs = []
    run = NativeExecutor.__call__
    monkeypatch.setattr(NativeExecutor, "__call__", lambda self, arrays: runs.append(1) or run(self, arrays))
    return runs


@pytest.fixture(params=["ready", "direct"])
def compiled(request):
    """Makes a function after its first calls, which compiled it; or after so many that they are made directly."""

    def made(f, *args):
        function = fnad.jit(f)
        with fnad.config.override(executor="compiled"):
            function(*args)
        for _ in range(1 + OFTEN if request.param == "direct" else 1):
            function(*args)
        return function

    return made


def direct(f, *args):
    """A function whose calls are made directly."""
    function = fnad.jit(f)
    for _ in range(3 + OFTEN):
        function(*args)
    return function


def test_a_call_like_the_one_before_is_not_looked_up(looked_up, compiled):
    f = compiled(fnad.value_and_grad(lambda x: np.sum(x**3)), X)
    looked_up.clear()
    before = f.paths()[0].runs
    for x in (X, X + 1, X[::-1], np.asfortranarray(X), X + 2):
        value, gradient = f(x)
        assert isinstance(value, np.float64)
        np.testing.assert_allclose(gradient, 3 * x**2, rtol=1e-14)
    assert not looked_up
    assert f.paths()[0].runs == before + 5


@pytest.mark.parametrize(
    "args",
    [({"a": X, "b": [X, 2.0]},), (X, 0.5), (X, True), (np.float32(2), X), (np.array(3.0), X), (1j, X), ((), X), (X, 3)],
    ids=str,
)
def test_any_structure_of_arrays_and_numbers_is_ready(args, looked_up, compiled):
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
def test_another_argument_is_looked_up(another, looked_up, compiled):
    def f(x):
        return 2 * x[0] if isinstance(x, list) else 2 * x

    function = compiled(f, X)
    looked_up.clear()
    result = function(another)
    np.testing.assert_array_equal(result, f(another))
    assert np.asarray(result).dtype == np.asarray(f(another)).dtype
    assert looked_up
    np.testing.assert_array_equal(function(X), 2 * X)


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4", ">c16"])
@pytest.mark.parametrize("shape", [(4,), (), (0,)], ids=str)
def test_an_array_in_another_byte_order_is_copied_at_each_call(dtype, shape, compiled):
    x = np.full(shape, 0.75).astype(dtype)
    function = compiled(lambda x, y: {"twice": 2 * x, "other": y}, x, X)
    for _ in range(2):
        np.testing.assert_array_equal(function(x, X)["twice"], 2 * x)


def test_fewer_and_more_arguments_are_looked_up(compiled):
    function = compiled(lambda *xs: sum(xs), X)
    np.testing.assert_array_equal(function(X, X), 2 * X)
    np.testing.assert_array_equal(function(X), X)


def test_what_the_function_reads_is_compared(monkeypatch, compiled):
    factors = np.array([2.0])
    function = compiled(lambda x: SCALE * x * factors, X)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    np.testing.assert_array_equal(function(X), 3 * X * 2)
    factors[0] = 5.0
    np.testing.assert_array_equal(function(X), 3 * X * 5)


def test_settings_are_compared(looked_up, compiled):
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


def test_a_call_in_a_block_with_settings_is_like_one_in_another_block_with_the_same(looked_up, passed_on):
    function = fnad.jit(np.sin)

    def in_block():
        with fnad.config.override(executor="compiled", threads=1):
            return function(X)

    for _ in range(3 + OFTEN):
        in_block()
    looked_up.clear()
    passed_on.clear()
    np.testing.assert_allclose(in_block(), np.sin(X), rtol=1e-15)
    assert not looked_up
    assert not passed_on


def test_settings_of_another_type_are_not_those_of_a_block_before():
    with fnad.config.override(threads=1, disable_jit=True):
        pass
    for wrong in ({"threads": True}, {"disable_jit": 1}, {"threads": [1]}, {"settings": 1}):
        with pytest.raises(SettingError), fnad.config.override(**wrong):
            pass


def test_code_that_was_freed_is_made_again(compiled):
    function = compiled(lambda x: np.sin(x) * x, X)
    for path in function._paths.values():
        path.known[0].programs[0].free()
    np.testing.assert_allclose(function(X), np.sin(X) * X, rtol=1e-15)


def test_a_path_that_asks_for_values_asks_each_time(compiled):
    function = compiled(lambda x: 2 * x if x[0] > 0 else -x, X)
    np.testing.assert_array_equal(function(-X), X)
    np.testing.assert_array_equal(function(X), 2 * X)


def test_arguments_that_are_written_into_have_to_be_apart_each_time(compiled):
    def double(x, y):
        x *= 2
        return x + y

    function = compiled(double, X, X.copy())
    np.testing.assert_array_equal(function(X, X.copy()), 2 * X + X)
    with pytest.raises(MutationError):
        function(X, X)


def test_an_error_has_the_line(compiled):
    function = compiled(lambda a: np.linalg.inv(a), np.eye(2))
    with pytest.raises(FnadError, match=r"test_ready\.py") as caught:
        function(np.zeros((2, 2)))
    assert "inv" in str(caught.value)
    np.testing.assert_array_equal(function(2 * np.eye(2)), np.eye(2) / 2)


def test_inside_a_trace_it_is_the_function(compiled):
    function = compiled(lambda x: x**2, X)
    np.testing.assert_array_equal(fnad.grad(lambda x: np.sum(function(x)))(X), 2 * X)


# ---- direct calls ----------------------------------------------------------------------------------------------------

TREES = {"a": (X, [np.ones((2, 3)), None]), 3: {"b": 2.0, "c": np.float64(3)}, "d": ()}


def loss(p):
    a, (m, _) = p["a"]
    return np.sum(a**2) + np.sum(m * p[3]["b"]) + p[3]["c"]


def test_a_direct_call_is_one_builtin(passed_on):
    def f(p, x):
        return {"value": loss(p), "all": [p, (x + 1, None)], 7: np.sin(x)}

    function = direct(f, TREES, X)
    passed_on.clear()
    expected, found = f(TREES, X), function(TREES, X)
    assert not passed_on
    assert tree.structure(found) == tree.structure(expected)
    assert list(found) == list(expected)
    for result, value in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        assert type(result) is type(np.add(value, 0))
        np.testing.assert_allclose(result, value, rtol=1e-15)


@pytest.mark.parametrize(
    "other",
    [
        {3: TREES[3], "a": TREES["a"], "d": ()},
        {**TREES, "a": [*TREES["a"]]},
        {**TREES, "a": (X, [np.ones((2, 3)), 0.0])},
        {**TREES, "a": (X, [np.ones((3, 2)), None])},
        {**TREES, "a": (X, [np.ones((2, 3), order="F"), None])},
        {**TREES, "a": (X, [np.ones((2, 3), "f4"), None])},
        {**TREES, 3: {"b": 2, "c": np.float64(3)}},
        {**TREES, 3: {"b": np.float64(2), "c": 3.0}},
        {"a": TREES["a"], 3.0: TREES[3], "d": ()},
        {**TREES, "e": X},
    ],
    ids=str,
)
def test_other_trees_are_no_direct_calls(other, passed_on):
    function = direct(fnad.value_and_grad(lambda p: loss(p) + sum(map(np.sum, tree.leaves(p)))), TREES)
    with fnad.config.override(executor="interpreter"):
        expected = fnad.jit(function.__wrapped__)(other)
    passed_on.clear()
    found = function(other)
    assert tree.structure(found) == tree.structure(expected)
    for result, value in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-14)
    assert tree.structure(function(TREES)) == tree.structure((0.0, TREES))


@pytest.mark.parametrize(
    "number",
    [3, -1, 2**62, True, 0.5, 2 - 1j, *(np.dtype(t).type(1) for t in "?bhilBHILfdFD")],
    ids=lambda number: f"{type(number).__name__} {number}",
)
def test_numbers_of_all_types_are_read_by_direct_calls(number, passed_on):
    def f(x, n):
        return x * n, n

    kind = type(number)
    others = [number, kind(0), kind(1)] + ([-1, 2**63 - 1, -(2**63)] if kind is int else [])
    function = direct(f, X, kind(1))
    expected = [fnad.jit(f)(X, other) for other in others]
    passed_on.clear()
    for other, (product, same) in zip(others, expected, strict=True):
        found, given = function(X, other)
        np.testing.assert_array_equal(found, product)
        np.testing.assert_array_equal(given, same)
        assert (found.dtype, type(given)) == (product.dtype, type(same))
    assert not passed_on


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_an_integer_that_is_too_large_is_an_error_as_at_the_first_call(number, compiled):
    function = compiled(lambda x, n: x * n, X, 3)
    with pytest.raises(DtypeError, match=f"n is {number}, which does not fit i64"):
        function(X, number)
    np.testing.assert_array_equal(function(X, 4), 4 * X)


def test_a_direct_call_frees_the_residual_stacks(monkeypatch, passed_on):
    """Loops of unknown length save what they need in memory that grows, of any length at each call."""
    tables, new_table = [], residual_stack.new_table
    monkeypatch.setattr(residual_stack, "new_table", lambda n: tables.append(new_table(n)) or tables[-1])

    def f(x, n):
        return fnad.while_loop(lambda state: state[1] < n, lambda state: (np.sin(state[0]) * x, state[1] + 1), (x, 0))[
            0
        ]

    function = direct(fnad.value_and_grad(f), 0.5, 3)
    lengths = [0, 1, 2000, 3, 100_000, 5]
    expected = [fnad.jit(fnad.value_and_grad(f))(0.75, n) for n in lengths]
    passed_on.clear()
    assert [function(0.75, n) for n in lengths] == expected
    assert not passed_on
    assert all(not table.any() for table in tables)


def test_equal_keys_need_not_be_the_same_objects(passed_on):
    function = direct(lambda p: p["first key"] * 2, {"first key": X})
    passed_on.clear()
    np.testing.assert_array_equal(function({"first {}".format("key"): X}), 2 * X)
    assert not passed_on


def test_results_are_fresh_and_arguments_are_not_kept():
    function = direct(lambda x: (x, x * 2, np.sum(x)), X)
    x = X.copy()
    first, second = function(x), function(x)
    first[0][:] = 0
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(second[0], X)
    assert first[1] is not second[1]
    before = sys.getrefcount(x), sys.getrefcount(X.dtype), sys.getrefcount(first[1])
    for _ in range(1000):
        function(x)
        function(x[::-1])
    after = sys.getrefcount(x), sys.getrefcount(X.dtype), sys.getrefcount(first[1])
    assert after[::2] == before[::2]
    assert after[1] < before[1] + 100


def test_the_function_and_what_it_reads_are_freed():
    class Scale:
        factor = 2.0

    def made():
        scale, x = Scale(), X.copy()
        function = direct(lambda x: x * scale.factor, x)
        return weakref.ref(function), weakref.ref(scale), weakref.ref(x)

    references = made()
    gc.collect()
    assert [reference() for reference in references] == [None] * 3


def test_a_direct_call_sees_cells_defaults_and_attributes_change():
    class Scale:
        factor = 2.0

    scale, shift = Scale(), 1.0

    def f(x, power=1):
        return (x * scale.factor + shift) ** power

    function = direct(lambda x: f(x), X)
    np.testing.assert_array_equal(function(X), 2 * X + 1)
    scale.factor = 3.0
    np.testing.assert_array_equal(function(X), 3 * X + 1)
    function = direct(lambda x: f(x), X)
    shift = 5.0
    np.testing.assert_array_equal(function(X), 3 * X + 5)
    function = direct(lambda x: f(x), X)
    f.__defaults__ = (2,)
    np.testing.assert_array_equal(function(X), (3 * X + 5) ** 2)


class Scale:
    __slots__ = ("factor",)


def test_what_is_equal_and_made_anew_is_compared_by_a_direct_call(monkeypatch, passed_on):
    scale, shift = Scale(), 1.0
    scale.factor = 2.0

    def f(x):
        return x * scale.factor * SCALE + shift + Scale.__dictoffset__ + Scale.__flags__ * 0

    function = fnad.jit(f)
    function(X)
    monkeypatch.setattr(sys.modules[__name__], "SCALE", float("1.0"))
    scale.factor, shift = float("2.0"), float("1.0")
    for _ in range(3 + OFTEN):
        function(X)
    passed_on.clear()
    np.testing.assert_array_equal(function(X), 2 * X + 1)
    assert passed_on == []
    scale.factor = 3.0
    np.testing.assert_array_equal(function(X), 3 * X + 1)


def test_a_direct_call_sees_names_appear_and_objects_become_others(monkeypatch):
    class Scale:
        factor = 2.0

    class Other:
        factor = 4.0

    scale = Scale()
    f = partial(lambda x, scale: x * scale.factor + getattr(f, "shift", 0.0), scale=scale)
    function = direct(f, X)
    np.testing.assert_array_equal(function(X), 2 * X)
    scale.factor = 3.0  # before the class's
    np.testing.assert_array_equal(function(X), 3 * X)
    del scale.factor
    function = direct(f, X)
    scale.__class__ = Other
    np.testing.assert_array_equal(function(X), 4 * X)
    function = direct(f, X)
    scale.__dict__ = {"factor": 5.0}
    np.testing.assert_array_equal(function(X), 5 * X)
    function = direct(f, X)
    f.keywords["scale"] = Other()
    np.testing.assert_array_equal(function(X), 4 * X)

    def named(x):
        return x * (2.0 if named.__name__ == "named" else 3.0) * abs(SCALE)

    function = direct(named, X)
    monkeypatch.setitem(globals(), "abs", lambda x: -5.0)
    np.testing.assert_array_equal(function(X), -10 * X)
    function = direct(named, X)
    named.__name__ = "other"
    np.testing.assert_allclose(function(X), -15 * X, rtol=1e-15)


@pytest.mark.parametrize("f", [lambda x: np.sum(x) * SCALE, partial(np.multiply, 2.0)], ids=["name", "partial"])
def test_what_a_function_reads_is_compared_without_python(f):
    function = direct(f, X)
    called = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_qualname) if event == "call" else None)
    try:
        function(X)
    finally:
        sys.setprofile(None)
    assert called == ["Compiled.__call__"]


def test_direct_calls_of_several_threads():
    function = direct(fnad.value_and_grad(lambda x: np.sum(np.sin(x) * x)), np.ones(5000))
    wrong = []

    def run(seed):
        x = np.random.default_rng(seed).normal(size=5000)
        for _ in range(100):
            value, gradient = function(x)
            if not (np.allclose(gradient, np.sin(x) + x * np.cos(x)) and np.isclose(value, np.sum(np.sin(x) * x))):
                wrong.append(seed)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_error_of_a_direct_call_has_the_line_and_the_next_call_runs():
    def f(x, i):
        return x[i] * 2

    at = fnad.numpy.asarray(X)
    function = direct(lambda x, i: f(x, i), at, np.array([1, 2]))
    with pytest.raises(FnadError, match=r"test_ready\.py"):
        function(X, np.array([1, 9]))
    np.testing.assert_array_equal(function(X, np.array([0, 3])), 2 * X[[0, 3]])


def test_a_large_result_of_a_direct_call_comes_from_the_pool(passed_on):
    x = np.ones(2**19)
    function = direct(lambda x: x * 2, x)
    passed_on.clear()
    np.testing.assert_array_equal(function(x), 2 * x)
    assert not passed_on


def test_a_program_without_dimensions_returns_what_the_function_does(passed_on):
    function = direct(lambda x: (np.asarray(x) * 2, np.reshape(x * 2.0, ())), np.array(1.5))
    before = function(np.array(1.5))
    passed_on.clear()
    for result, expected in zip(function(np.array(2.5)), before, strict=True):
        assert type(result) is type(expected)
        assert result == 5.0
    assert not passed_on


# ---- forms of calls, paths with guards, and views ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda f, x: f(x, n=3), lambda x: 3 * x),
        (lambda f, x: f(x, 3), lambda x: 3 * x),
        (lambda f, x: f(n=3, x=x), lambda x: 3 * x),
        (lambda f, x: f(x, 3, scale=2.0), lambda x: 6 * x),
        (lambda f, x: f(x, (1, 2.0)[0], scale=np.float64(2)), lambda x: 2 * x),
    ],
)
def test_a_call_with_keywords_or_static_arguments_is_one_builtin(call, expected, looked_up, passed_on):
    function = fnad.jit(lambda x, n, scale=1.0: x * n * scale, static_argnames="n")
    for _ in range(3 + OFTEN):
        call(function, X)
    looked_up.clear()
    passed_on.clear()
    for x in (X, X + 1):
        np.testing.assert_array_equal(call(function, x), expected(x))
    assert not looked_up
    assert not passed_on


@pytest.mark.parametrize(
    ("args", "others", "expected"),
    [
        ((X, 3), (X, 4), 4 * X),
        ((X, 1), (X, True), X),
        ((X, 0.0), (X, -0.0), -0.0 * X),
        ((X, (2, (3,))), (X, (2, (4,))), 4 * X),
        ((X, 3), (X,), 2 * X),
        ((X, 3), (X, 3, 1.0), 3 * X + 1),
        ((X, 2.0), (X, np.float64(3)), 3 * X),
    ],
)
def test_another_static_argument_or_form_is_looked_up(args, others, expected, looked_up):
    def f(x, n=2, y=None):
        scaled = x * (n[1][0] if isinstance(n, tuple) else n)
        return scaled if y is None else scaled + y

    function = fnad.jit(f, static_argnums=1)
    for _ in range(3 + OFTEN):
        function(*args)
    looked_up.clear()
    result = function(*others)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))
    assert looked_up
    with pytest.raises(StaticArgumentError, match="n is of type list"):
        function(X, [1])


def test_static_arguments_that_cannot_be_compared_are_told_apart():
    class Scale:
        def __init__(self, value):
            self.value = value

        __hash__ = object.__hash__

        def __eq__(self, other):
            raise ValueError("no truth")

    function = fnad.jit(lambda x, scale: scale.value * x, static_argnums=1)
    one, other = Scale(2.0), Scale(3.0)
    for _ in range(3 + OFTEN):
        function(X, one)
    np.testing.assert_array_equal(function(X, other), 3 * X)
    np.testing.assert_array_equal(function(X, one), 2 * X)


def test_keywords_in_another_order_are_looked_up(looked_up):
    function = fnad.jit(lambda **arrays: [arrays[name] for name in arrays])
    for _ in range(3 + OFTEN):
        function(a=X, b=2 * X)
    looked_up.clear()
    np.testing.assert_array_equal(function(b=X, a=3 * X), [X, 3 * X])
    assert looked_up


def test_a_method_is_ready_for_its_object_alone(looked_up):
    class Scaled:
        def __init__(self, scale):
            self.scale = scale

        @fnad.jit
        def call(self, x):
            return self.scale * x

    one, other = Scaled(2.0), Scaled(3.0)
    for _ in range(3 + OFTEN):
        one.call(X)
    looked_up.clear()
    np.testing.assert_array_equal(one.call(X), 2 * X)
    assert not looked_up
    np.testing.assert_array_equal(other.call(X), 3 * X)
    np.testing.assert_array_equal(one.call(X), 2 * X)
    for _ in range(3 + OFTEN):
        one.call(X)
    one.scale = 5.0
    np.testing.assert_array_equal(one.call(X), 5 * X)
    for _ in range(3 + OFTEN):
        one.call(X)
    is_left = weakref.ref(one)
    del one
    gc.collect()
    assert is_left() is None


def test_a_path_with_guards_that_comes_again_is_one_builtin(looked_up, passed_on):
    function = direct(lambda x: np.sin(x) if x[0] > 0 else np.cos(x), X)
    looked_up.clear()
    passed_on.clear()
    np.testing.assert_allclose(function(X), np.sin(X), rtol=1e-15)
    assert not looked_up
    assert not passed_on
    for x in (-X, X, -X, -X, -X, X, X, X, -X):
        np.testing.assert_allclose(function(x), np.sin(x) if x[0] > 0 else np.cos(x), rtol=1e-15)
    assert looked_up


def test_a_guard_that_fails_is_not_asked_twice(monkeypatch, looked_up):
    function = fnad.jit(lambda x: np.sin(x) if x[0] > 0 else np.cos(x))
    with fnad.config.override(executor="compiled"):
        for x in (X, -X, X, X, X):
            function(x)
        tried = []
        run = NativeExecutor.__call__
        monkeypatch.setattr(NativeExecutor, "__call__", lambda self, arrays: tried.append(self) or run(self, arrays))
        np.testing.assert_allclose(function(-X), np.cos(X), rtol=1e-15)
    assert len(tried) == len({*map(id, tried)}) == 2


@pytest.mark.parametrize(
    "view",
    [lambda x: x[::-1], lambda x: np.repeat(x, 2)[::2], lambda x: np.frombuffer(b"." + x.tobytes(), "f8", 4, 1)],
    ids=["reversed", "strided", "not aligned"],
)
def test_a_direct_call_copies_a_view(view, passed_on):
    function = direct(lambda x, y: (2 * x, x + y), X, X)
    passed_on.clear()
    twice, total = function(view(X), view(X + 1))
    np.testing.assert_array_equal(twice, 2 * view(X))
    np.testing.assert_array_equal(total, view(X) + view(X + 1))
    assert not passed_on
