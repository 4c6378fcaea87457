"""Without `jit` a trace is used again where another run would do the same; where it would not, the function runs."""

from __future__ import annotations

import collections
import contextvars
import functools
import gc
import io
import logging
import math
import random
import sys
import time
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from numpy import where
from numpy.testing import assert_array_equal

import fnad
from fnad.api.functions.jit import Compiled
from fnad.api.running import execution, reused_traces
from fnad.trace import recording

Function = Callable[..., Any]

X = np.array([1.0, 2.0])


@pytest.fixture(autouse=True)
def _interpreted() -> Iterator[None]:
    with fnad.config.override(executor="interpreter"):
        yield


@pytest.fixture(params=[fnad.grad, fnad.jacobian, fnad.jacfwd], ids=lambda transform: transform.__name__)
def derivative(request: pytest.FixtureRequest) -> Function:
    """Transforms that make the gradient of a function of one element."""
    return request.param


@pytest.fixture(
    params=[fnad.grad, fnad.jacrev, fnad.hessian, fnad.laplacian, "rows"],
    ids=lambda transform: getattr(transform, "__name__", transform),
)
def transformed(request: pytest.FixtureRequest) -> Function:
    """Transforms to a function that runs what the given one does, of one array; the result may be anything."""
    return request.param if callable(request.param) else lambda f: fnad.vmap(lambda x: np.ones(2) * f(x))


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Counts the runs of functions; of a library's class, since what the user's code does is an effect."""
    counter = Mock(wraps=reused_traces.stage_in)
    monkeypatch.setattr(reused_traces, "stage_in", counter)
    monkeypatch.setattr(sys, "gettrace", lambda: None)  # coverage is no debugger
    return counter


# ---- what runs no more -----------------------------------------------------------------------------------------------


def test_an_unchanged_function_is_traced_twice(traces: Mock, derivative: Function) -> None:
    weights = np.array([3.0, 4.0])

    def helper(x: Any) -> Any:
        parts = []
        for i in range(len(x)):
            parts.append(np.exp(x[i]) * weights[i])  # noqa: PERF401  (as it is often written)
        return np.stack(parts)

    def f(x: Any, scale: Any, label: str = "a") -> Any:
        total = np.zeros(2)
        total[:] = helper(x)
        return math.sqrt(scale[0]) * np.sum(total) + len(label)

    gradient, both = derivative(f), fnad.value_and_grad(f)
    for i in range(5):
        assert_array_equal(gradient(i * X, np.array([4.0])), 2.0 * np.exp(i * X) * weights)
    assert traces.call_count == 2
    for i in range(5):
        value, _ = both(i * X, np.array([4.0]), label="abc")
        assert value == pytest.approx(2.0 * np.sum(np.exp(i * X) * weights) + 3, rel=1e-15)
    assert traces.call_count == 4


def test_each_signature_has_traces_of_its_own(traces: Mock) -> None:
    gradient = fnad.grad(lambda x, n: np.sum(x * x.dtype.itemsize * n))
    for _ in range(4):
        assert_array_equal(gradient(X, 1), [8.0, 8.0])
        assert_array_equal(gradient(X.astype(np.float32), 1), [4.0, 4.0])
        assert_array_equal(gradient(np.ones(3), 1), [8.0, 8.0, 8.0])
    assert traces.call_count == 6
    for n in (True, 1, 1.0, 1, np.float64(1.0)) * 2:
        gradient(X, n)
    assert traces.call_count == 9


LEVEL: contextvars.ContextVar[float] = contextvars.ContextVar("LEVEL", default=2.0)


class Scales:
    """Reads what has a namespace and no state: NumPy's functions under names of its own, a static method, a generic."""

    exponential = staticmethod(np.exp)
    kinds = list[int]

    def __call__(self, x: Any) -> Any:
        token = LEVEL.set(LEVEL.get() + 1.0)
        scaled = LEVEL.get() * self.exponential(x)
        LEVEL.reset(token)
        return np.sum(where(x > 0.0, scaled, len(self.kinds.__args__)))


def test_what_has_no_state_or_a_state_that_is_watched(traces: Mock) -> None:
    gradient = fnad.grad(Scales().__call__)
    for i in range(1, 5):
        assert_array_equal(gradient(i * X), 3.0 * np.exp(i * X))
    assert traces.call_count == 2
    token = LEVEL.set(4.0)
    assert_array_equal(gradient(X), 5.0 * np.exp(X))
    LEVEL.reset(token)


def test_a_variable_of_a_context_that_is_left_changed() -> None:
    level = contextvars.ContextVar("level", default=1.0)

    def f(x: Any) -> Any:
        level.set(level.get() + 1.0)
        return level.get() * x

    gradient = fnad.grad(f)
    assert [gradient(1.0) for _ in range(4)] == [2.0, 3.0, 4.0, 5.0]


def test_tables_of_pandas(traces: Mock) -> None:
    """Their content is compared with its labels, not what the code of pandas reads."""
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0], "c": ["x", "y"]})
    gradient = fnad.grad(lambda x: np.sum(x * table["a"].to_numpy()))
    compiled = fnad.jit(gradient)

    def check(expected: Any) -> None:
        before = traces.call_count
        for _ in range(3):
            assert_array_equal(gradient(X), expected)
            assert_array_equal(compiled(X), expected)
        assert traces.call_count - before <= 4

    check([1.0, 2.0])
    table.loc[1, "a"] = 5.0
    check([1.0, 5.0])
    table.columns = ["b", "a", "c"]
    check([3.0, 4.0])
    table["a"] += 1.0
    check([4.0, 5.0])


def test_integers_among_what_is_differentiated_are_what_they_were(derivative: Function) -> None:
    gradient = derivative(lambda w: np.sum(w["x"] ** w["n"]))
    for n in (1, 1, 1, 2, 3, 2, 1):
        assert_array_equal(gradient({"x": X, "n": n})["x"], n * X ** (n - 1))


# ---- what changes ----------------------------------------------------------------------------------------------------

NUMBER, LIST, DICT, ARRAY = 1.0, [1.0], {"a": 1.0}, np.ones(2)


def rate() -> float:
    return 1.0


def pace() -> float:
    return 1.0


def faster(before: float) -> float:
    return before + 1.0


class Settings:
    a = 1.0

    def __getattr__(self, name: str) -> float:
        return 1.0


class Thing:
    def __init__(self) -> None:
        self.a = 1.0


THING = Thing()


def changed_global() -> None:
    global NUMBER  # noqa: PLW0603
    NUMBER += 1.0


def redefined() -> None:
    now = rate()
    globals()["rate"] = lambda: now + 1.0


def other_code() -> None:
    pace.__code__, pace.__defaults__ = faster.__code__, (pace(),)


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "a global": (lambda: NUMBER, changed_global),
    "an element": (lambda: LIST[0], lambda: LIST.__setitem__(0, LIST[0] + 1.0)),
    "a value of a dict": (lambda: DICT["a"], lambda: DICT.update(a=DICT["a"] + 1.0)),
    "the content of an array": (lambda: ARRAY[0], lambda: ARRAY.__iadd__(1.0)),
    "an attribute": (lambda: THING.a, lambda: setattr(THING, "a", THING.a + 1.0)),
    "an attribute that was not there": (lambda: Settings().b, lambda: setattr(Settings, "b", Settings().b + 1.0)),
    "an attribute of a class": (lambda: Settings().a, lambda: setattr(Settings, "a", Settings.a + 1.0)),
    "another function": (lambda: rate(), redefined),
    "other code": (lambda: pace(), other_code),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen(name: str, traces: Mock, derivative: Function) -> None:
    read, change = CHANGES[name]
    gradient = derivative(lambda x: np.sum(x * read()))
    for _ in range(3):
        count = traces.call_count
        for _ in range(4):
            assert_array_equal(gradient(X), [read()] * 2)
        assert traces.call_count <= count + 2
        change()
    assert traces.call_count > 2


def test_rows_are_traced_anew_where_something_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = Mock(wraps=execution.stage)
    monkeypatch.setattr(execution, "stage", traces)
    monkeypatch.setattr(sys, "gettrace", lambda: None)
    data, thing = np.ones(2), Thing()
    mapped = fnad.vmap(lambda x, y: np.sum(x * y * data) * thing.a)
    expected = 0
    for factor, a in ((1.0, 1.0), (2.0, 1.0), (2.0, 3.0)):
        data[:], thing.a = factor, a
        for _ in range(4):
            assert_array_equal(mapped(np.eye(2), np.ones((2, 2))), [factor * a] * 2)
        expected += 2 if factor == 1.0 else 1
        assert traces.call_count == expected


def test_rows_that_are_written_into_are_traced_each_time() -> None:
    def f(x: Any, y: Any) -> Any:
        y[0] = 5.0
        return np.sum(x * y)

    mapped, rows = fnad.vmap(f), np.ones((3, 2))
    for _ in range(3):
        assert_array_equal(mapped(2 * rows, rows), [12.0] * 3)
    with pytest.raises(fnad.errors.MutationError):
        mapped(rows, rows)


def test_other_arguments_that_change_are_seen(traces: Mock, derivative: Function) -> None:
    gradient = derivative(lambda x, data, thing, *, power=1: np.sum(data * x**power * thing.a))
    data, thing = np.ones(2), Thing()
    expected: list[Any] = []
    for factor, a, power in ((1.0, 1.0, 1), (1.0, 1.0, 1), (1.0, 1.0, 1), (2.0, 1.0, 1), (2.0, 3.0, 1), (2.0, 3.0, 2)):
        data[:], thing.a = factor, a
        expected.append(factor * a * power * X ** (power - 1))
        assert_array_equal(gradient(X, data, thing, power=power), expected[-1])
        assert_array_equal(gradient(X, data.copy(), thing, power=power), expected[-1])
    assert traces.call_count == 2 + 3 + 1  # one in vain, with a traced integer that turns out to be used


def test_python_decides_by_the_values_at_hand(traces: Mock, derivative: Function) -> None:
    gradient = derivative(lambda x: np.sum(x) if x[0] > 0 else np.sum(x**2))
    for sign in (1, 1, 1, -1, 1, -1, -1, 1):
        assert_array_equal(gradient(sign * X), [1.0, 1.0] if sign > 0 else -2 * X)
    assert traces.call_count == 3  # the first, and one of each path


@pytest.mark.filterwarnings("ignore::fnad.errors.ControlFlowWarning")
def test_what_python_decides_of_all_kinds(traces: Mock) -> None:
    """A bool, an integer, a mask, a text; a later question that other values cannot be asked."""

    def inverse(x: Any) -> Any:
        return np.sum(np.linalg.inv(np.diag(x))) * x[0] if x[0] != 0 and np.linalg.inv(np.diag(x))[0, 0] > 0 else x[1]

    cases: list[tuple[Any, list[list[float]]]] = [
        (lambda x: x[0] ** int(x[1]) + x[1], [[2.0, 2.0], [2.0, 3.0], [3.0, 2.5]]),
        (lambda x: np.sum(x[x > 1.0] ** 2) * len(x[x > 1.0]), [[2.0, 2.0], [0.5, 3.0], [3.0, 2.5]]),
        (lambda x: x[0] * len(f"{x[1]}"), [[1.0, 2.0], [1.0, 2.25]]),
        (inverse, [[1.0, 2.0], [0.0, 2.0], [-1.0, 3.0]]),
    ]
    for f, points in cases:
        gradient = fnad.grad(f)
        for point in [*points, *points, *points]:
            assert_array_equal(gradient(np.array(point)), fnad.grad(lambda x, f=f: f(x))(np.array(point)))
    own = sum(3 * len(points) for _, points in cases)
    assert traces.call_count - own <= sum(1 + len(points) for _, points in cases)


def test_an_effect_beside_a_decision_happens_at_each_call(derivative: Function) -> None:
    seen: list[float] = []

    def f(x: Any) -> Any:
        fnad.callback(lambda x: seen.append(float(x)), x)
        return x**2 if x > 0 else x

    gradient = derivative(f)
    for x in (1.0, 2.0, 3.0, -4.0, 5.0):
        gradient(x)
    assert seen == [1.0, 2.0, 3.0, -4.0, 5.0]


# ---- effects ---------------------------------------------------------------------------------------------------------


class Recorder:
    """Something with a method that keeps what it is given, and an attribute that is written to."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.count = 0

    def note(self) -> None:
        self.seen.append(1)

    def __call__(self) -> None:
        self.count = self.count + 1


COUNT = 0
SEEN: list[int] = []
NUMBER_OF = functools.lru_cache(lambda: NUMBER)
ITERATOR = iter(range(1000))
LOGGER = logging.getLogger("test_repeating")


def counts() -> None:
    global COUNT  # noqa: PLW0603
    COUNT += 1


def effects(path: Path) -> dict[str, tuple[Callable[[], Any], Callable[[], int]]]:
    """What a function may do at each call, with how often it was done."""
    recorder, queue, table, stream = Recorder(), collections.deque[int](), dict[int, int](), io.StringIO()
    generator = np.random.default_rng(0)

    def draws() -> int:
        done, copy = 0, np.random.default_rng(0)
        while copy.bit_generator.state != generator.bit_generator.state:
            copy.random()
            done += 1
        return done

    def extends() -> None:
        table[len(table)] = 1

    return {
        "a counter": (counts, lambda: COUNT),
        "a list": (lambda: SEEN.append(1), lambda: len(SEEN)),
        "a list that is extended": (lambda: SEEN.__iadd__([1]), lambda: len(SEEN)),
        "a list under another name": (lambda: list.append(SEEN, 1), lambda: len(SEEN)),
        "a method": (recorder.note, lambda: len(recorder.seen)),
        "an object": (recorder, lambda: recorder.count),
        "a queue": (lambda: queue.append(1), lambda: len(queue)),
        "a dict": (extends, lambda: len(table)),
        "a stream": (lambda: stream.write("x"), lambda: len(stream.getvalue())),
        "a draw": (generator.random, draws),
        "a file": (lambda: path.write_text(path.read_text() + "x"), lambda: len(path.read_text())),
    }


@pytest.mark.parametrize("name", effects(Path()))
def test_an_effect_happens_at_each_call(name: str, tmp_path: Path, transformed: Function) -> None:
    path = tmp_path / "file"
    path.touch()
    act, count = effects(path)[name]
    before = count()

    def f(x: Any) -> Any:
        act()
        return np.sum(x)

    gradient = transformed(f)
    for _ in range(6):
        gradient(X)
    assert count() - before == 6


def test_what_is_shown_is_shown_at_each_call(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    def prints(x: Any) -> Any:
        print("printed")
        return np.sum(x)

    def logs(x: Any) -> Any:
        LOGGER.warning("logged")
        return np.sum(x)

    def warns(x: Any) -> Any:
        warnings.warn("warned", stacklevel=1)
        return np.sum(x)

    def writes(x: Any) -> Any:
        sys.stdout.write("printed")
        return np.sum(x)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for f in (prints, logs, warns, writes):
            gradient = fnad.grad(f)
            for _ in range(6):
                gradient(X)
    assert capsys.readouterr().out.count("printed") == 12
    assert (len(caplog.records), len(caught)) == (6, 6)


@pytest.mark.parametrize(
    "read",
    [
        lambda thing: getattr(sys.modules[__name__], f"NUM{'BER'}"),
        lambda thing: globals()["NUMBER"],
        lambda thing: float(thing == types.SimpleNamespace(a=NUMBER)),
        lambda thing: (NUMBER_OF.cache_clear(), NUMBER_OF())[1],
    ],
)
def test_what_is_not_watched_is_read_anew(read: Callable[[Any], Any], derivative: Function) -> None:
    thing = types.SimpleNamespace(a=NUMBER)
    gradient = derivative(lambda x: np.sum(x * read(thing)))
    for _ in range(3):
        for _ in range(4):
            assert_array_equal(gradient(X), [read(thing)] * 2)
        changed_global()


@pytest.mark.parametrize("draw", [time.perf_counter, random.random, np.random.normal, lambda: next(ITERATOR)])
def test_what_is_read_anew_is_another_number(draw: Callable[[], float], derivative: Function) -> None:
    gradient = derivative(lambda x: np.sum(x * draw()))
    found = [gradient(X)[0] for _ in range(6)]
    assert len(set(found)) == 6


def test_a_function_that_writes_into_an_argument_runs_each_time(traces: Mock, derivative: Function) -> None:
    def f(x: Any, y: Any) -> Any:
        y[0] = 5.0
        return np.sum(x * y)

    gradient, y = derivative(f), np.ones(2)
    for _ in range(4):
        assert_array_equal(gradient(X, y), [5.0, 1.0])
    with pytest.raises(fnad.errors.MutationError):
        derivative(lambda x, y: f(x, y), argnums=1)(y, y)
    assert traces.call_count == 5


def test_what_is_returned_beside_the_result_is_new_each_time(traces: Mock) -> None:
    table = np.arange(3)
    gradient = fnad.grad(lambda x: (np.sum(x * x), (table, x, "text")), has_aux=True)
    found = [gradient(i * X)[1] for i in range(4)]
    assert len({id(aux[0]) for aux in found}) == 4
    assert [aux[1].tolist() for aux in found] == [(i * X).tolist() for i in range(4)]
    assert traces.call_count == 2
    kept = object()
    other = fnad.grad(lambda x: (np.sum(x * x), kept), has_aux=True)
    assert all(other(X)[1] is kept for _ in range(4))


# ---- what it costs ---------------------------------------------------------------------------------------------------


def test_a_function_is_not_watched_for_ever(monkeypatch: pytest.MonkeyPatch, traces: Mock) -> None:
    watched: list[object] = []
    active = recording.Recorder.active
    monkeypatch.setattr(recording.Recorder, "active", lambda self: (watched.append(self), active(self))[1])
    LIST[0] = 0.0
    gradient = fnad.grad(lambda x: np.sum(x * LIST[0]))
    for i in range(20):
        LIST[0] = float(i)
        assert gradient(X)[0] == i
    assert len(watched) == reused_traces.CREDIT
    watched.clear()
    gradient = fnad.grad(lambda x: (np.sum(x), SEEN.append(1))[0])
    for _ in range(10):
        gradient(X)
    assert len(watched) == 1


def test_nothing_more_is_looked_at_once_an_effect_is_found() -> None:
    recorder = recording.Recorder(seeks_effects=True)
    recorder.follow(THING)
    recorder.follow(types.SimpleNamespace(a=1.0))
    recorder.follow(LIST)
    assert recorder.effect == "a SimpleNamespace is read"
    recorder.follow(changing := [1.0])
    changing[0] = 2.0
    assert recorder.environment.holds()


def test_a_transform_of_the_same_function_again_has_its_traces(traces: Mock, derivative: Function) -> None:
    scale = [2.0]

    def f(x: Any) -> Any:
        return np.sum(np.sin(x) * scale[0])

    found = [derivative(f)(X) for _ in range(6)]
    assert traces.call_count <= 4
    scale[0] = 4.0
    np.testing.assert_allclose(derivative(f)(X), 2.0 * found[-1], rtol=1e-15)
    assert [type(derivative(f, argnums=argnums)(X)) for argnums in (0, (0,), 0)] == [np.ndarray, tuple, np.ndarray]


def test_a_function_and_what_has_its_own_rule_have_traces_of_their_own(derivative: Function) -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sin(x))

    def rule(primals: Any, tangents: Any) -> Any:
        return f(primals[0]), 100.0 * np.sum(tangents[0])

    ruled = fnad.custom_jvp(f)
    ruled.defjvp(rule)
    of_vjp = fnad.custom_vjp(f)
    of_vjp.defvjp(lambda x: (f(x), x), lambda x, ct: (np.full(len(x), 50.0) * ct,))
    for _ in range(4):
        np.testing.assert_allclose(derivative(ruled)(X), [100.0, 100.0])
        np.testing.assert_allclose(derivative(f)(X), np.cos(X))
        np.testing.assert_allclose(derivative(fnad.jit(ruled))(X), [100.0, 100.0])
        np.testing.assert_allclose(derivative(fnad.jit(f))(X), np.cos(X))
        np.testing.assert_allclose(fnad.grad(of_vjp)(X), [50.0, 50.0])
        np.testing.assert_allclose(fnad.vmap(fnad.grad(ruled))(X[None]), [[100.0, 100.0]])
        np.testing.assert_allclose(fnad.vmap(fnad.grad(f))(X[None]), np.cos(X)[None])


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets `jit` of the same function return the same object, as it does outside of tests."""
    monkeypatch.setattr(Compiled, "is_shared", True)


@pytest.mark.usefixtures("shared")
def test_jit_of_the_same_function_again_has_its_traces() -> None:
    weights, runs = np.array([2.0, 3.0]), []

    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        def loss(self, x: Any, n: Any = 1) -> Any:
            runs.append(n)
            return np.sum(x * weights) * self.scale * n

    models = [Model(1.0), Model(2.0)]
    for i in range(8):
        models[1].scale = 2.0 + (i > 5)
        for model in models:
            assert fnad.jit(model.loss)(i * X) == i * 8.0 * model.scale
            assert fnad.jit(model.loss, static_argnums=1)(i * X, 4) == i * 32.0 * model.scale
            assert_array_equal(fnad.jit(fnad.grad(model.loss))(X), weights * model.scale)
    assert len(runs) <= 3 * (2 * 4 + 1)
    assert fnad.jit(Model(3.0).loss)(X) == 24.0


@pytest.mark.usefixtures("shared")
def test_jit_of_what_has_its_own_rule_is_another_one() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.sin(x))

    for i in range(5):
        ruled = fnad.custom_jvp(f)
        ruled.defjvp(lambda primals, tangents, i=i: (f(primals[0]), (10.0 + i) * np.sum(tangents[0])))
        for _ in range(3):
            np.testing.assert_allclose(fnad.grad(fnad.jit(ruled))(X), [10.0 + i] * 2)
            np.testing.assert_allclose(fnad.jit(fnad.grad(ruled))(X), [10.0 + i] * 2)
            np.testing.assert_allclose(fnad.jit(fnad.grad(f))(X), np.cos(X), rtol=1e-15)
            np.testing.assert_allclose(fnad.grad(fnad.jit(f))(X), np.cos(X), rtol=1e-15)
            np.testing.assert_allclose(fnad.jit(functools.partial(f))(X), f(X), rtol=1e-15)
        ruled.defjvp(lambda primals, tangents: (f(primals[0]), 7.0 * np.sum(tangents[0])))
        np.testing.assert_allclose(fnad.jit(fnad.grad(ruled))(X), [7.0] * 2)


@pytest.mark.usefixtures("shared")
def test_what_is_compiled_once_is_not_kept() -> None:
    def f(x: Any) -> Any:
        return x * 2.0

    fnad.grad(f)(1.0)
    compiled = weakref.ref(fnad.jit(f))
    gc.collect()
    assert compiled() is None
    assert fnad.jit(f) is fnad.jit(f)
    assert fnad.jit(f, device="cpu") is not fnad.jit(f)


def test_methods_are_transformed_again_as_functions_are(traces: Mock) -> None:
    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        def loss(self, x: Any) -> Any:
            return np.sum(x * self.scale)

    models = Model(2.0), Model(3.0)
    for _ in range(6):
        assert [fnad.grad(model.loss)(X).tolist() for model in models] == [[2.0] * len(X), [3.0] * len(X)]
    assert traces.call_count <= 8


def test_a_function_that_is_transformed_once_is_not_kept() -> None:
    def f(x: Any) -> Any:
        return np.sum(x)

    fnad.grad(f)(X)
    kept = weakref.ref(f)
    del f
    gc.collect()
    assert kept() is None


def test_large_arrays_are_kept_with_a_trace_of_many_equations(traces: Mock, derivative: Function) -> None:
    data = np.ones(reused_traces.LARGE // 8 + 1)

    def f(x: Any) -> Any:
        for i in range(100):
            x = np.sin(x) + i
        return np.sum(x[0] * data)

    gradient = derivative(f)
    found = [gradient(X) for _ in range(4)]
    assert traces.call_count == 2
    data[0] = 2.0
    np.testing.assert_allclose(gradient(X), found[-1] * (1 + 1 / data.size), rtol=1e-12)


def test_what_is_large_is_not_kept(traces: Mock, derivative: Function) -> None:
    data = np.ones(2**19)
    gradient, other = derivative(lambda x: np.sum(x[0] * data)), derivative(lambda x, y: np.sum(x[0] * y))
    for _ in range(4):
        gradient(X)
        other(X, data)
    assert traces.call_count == 8


def test_a_debugger_sees_each_run(monkeypatch: pytest.MonkeyPatch, traces: Mock, derivative: Function) -> None:
    monkeypatch.setattr(sys, "gettrace", lambda: print)
    gradient = derivative(lambda x: np.sum(x))
    for _ in range(4):
        gradient(X)
    assert traces.call_count == 4


def test_within_another_trace_it_is_traced(derivative: Function) -> None:
    def f(x: Any, a: Any) -> Any:
        return np.sum(x**3 * a)

    gradient = derivative(f)
    hessian = derivative(lambda x: np.sum(gradient(x, 2.0) ** 2))
    for i in range(1, 5):
        assert_array_equal(gradient(i * X, 2.0), 6.0 * (i * X) ** 2)
        assert_array_equal(hessian(i * X), 2 * 6.0 * (i * X) ** 2 * 12.0 * (i * X))
