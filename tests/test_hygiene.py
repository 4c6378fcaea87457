"""Traced values that get out of their trace, traces that end badly, caches that must not mix things up."""

from __future__ import annotations

import collections
import functools
import importlib
import inspect
import math
import pickle
import queue
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fnad
from fnad import errors, grad, jit, jvp, value_and_grad, vjp
from fnad.ir.builder import NOT_KEPT, is_tracing

X = np.array([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def _no_trace_is_left() -> Iterator[None]:
    yield
    assert not is_tracing()


TRACES: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: grad(f)(X),
    "jit": lambda f: jit(f)(X),
    "vjp": lambda f: vjp(f, X),
    "jvp": lambda f: jvp(f, (X,), (X,)),
    "jit grad": lambda f: jit(grad(f))(X),
}


# ---- traced values that get out --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRACES)
def test_a_traced_value_kept_past_its_trace(name: str) -> None:
    leaked: list[Any] = []

    def leaky(x: Any) -> Any:
        leaked.append(x * 2.0)
        return np.sum(x)

    TRACES[name](leaky)
    for use in (
        lambda x: x + 1.0,
        np.sin,
        lambda x: grad(lambda y: np.sum(y * x))(X),
        lambda x: jit(lambda y: y * x)(X),
        lambda x: grad(np.sum)(x),
        lambda x: jit(np.sum)(x),
        lambda x: jit(lambda y, t: y)(X, {"a": x}),
        lambda x: vjp(np.sin, X)[1](x),
        lambda x: jvp(np.sin, (X,), (x,)),
        lambda x: vjp(lambda y: x, X),
    ):
        with pytest.raises(errors.UsedAfterTraceError):
            use(leaked[0])
        assert not is_tracing()


KEPT: list[Any] = []


def keeps(x: Any) -> Any:
    _ = [KEPT.append(y) for y in (np.sin(x) * 2.0, np.sum(x), x[x > 1.0], np.sum(x) > 0.0, x)]
    return np.sum(x)


USES: list[Callable[[Any], Any]] = [
    *(np.sum, lambda x: x + 1.0, lambda x: np.stack([x, x]), lambda x: x == 1.0, np.asarray, pickle.dumps, hash),
    *(lambda x: f"{x}" + "1", lambda x: grad(lambda y: np.sum(np.sum(y) * x))(X), lambda x: jit(lambda y: x)(X)),
]
NUMBERS: list[Callable[[Any], Any]] = [
    *(float, int, bool, lambda x: "%f" % x, math.sin, lambda x: max(x, 1.0)),  # noqa: UP031
    *(lambda x: grad(lambda y: y * float(x))(1.0), lambda x: grad(lambda y: y if x else -y)(1.0)),
]


@pytest.mark.parametrize("name", ["grad", "jit grad"])
def test_the_line_where_a_kept_value_was_made(name: str) -> None:
    KEPT.clear()
    TRACES[name](keeps)
    line = inspect.getsourcelines(keeps)[1] + 1
    for i, uses in enumerate([USES, [*USES, *NUMBERS], USES, NUMBERS]):
        for use in uses:
            with pytest.raises(errors.UsedAfterTraceError) as caught:
                use(KEPT[i])
            *_, made, remedy = str(caught.value).splitlines()
            if i != 2:  # what a mask selects is made where it is used
                assert made.startswith(f"  it was made at test_hygiene.py:{line} in keeps:  _ = [KEPT.append")
            assert remedy == f"  {NOT_KEPT}"
    with pytest.raises(errors.UsedAfterTraceError) as caught:
        np.sum(KEPT[-1])  # an argument
    assert "made at" not in str(caught.value)


def stores(kind: Callable[[], Any], store: Callable[[Any, Any], Any], find: Callable[[Any], Any]) -> Any:
    """Return what makes a function that stores a traced value outside, with what finds it there."""

    def make() -> tuple[Callable[[Any], Any], Callable[[], Any]]:
        container = kind()

        def f(x: Any) -> Any:
            store(container, x * 2.0)
            return np.sum(x)

        return f, lambda: find(container)

    return make


def appends() -> Any:
    container: list[Any] = []

    def f(x: Any) -> Any:
        container.append(x * 2.0)
        return np.sum(x)

    return f, lambda: container[0]


def appends_to_a_deque() -> Any:
    container = collections.deque[Any]()

    def f(x: Any) -> Any:
        container.append(x * 2.0)
        return np.sum(x)

    return f, lambda: container[0]


def extends() -> Any:
    container: list[Any] = []

    def f(x: Any) -> Any:
        nonlocal container
        container += [x * 2.0]
        return np.sum(x)

    return f, lambda: container[0]


STORES = {
    "append": appends,
    "append to a deque": appends_to_a_deque,
    "+=": extends,
    "append elsewhere": stores(list, lambda c, x: c.append(x), lambda c: c[0]),
    "append to an attribute": stores(lambda: types.SimpleNamespace(a=[]), lambda c, x: c.a.append(x), lambda c: c.a[0]),
    "extend": stores(list, lambda c, x: c.extend([x]), lambda c: c[0]),
    "insert": stores(list, lambda c, x: c.insert(0, x), lambda c: c[0]),
    "an element": stores(lambda: [None], lambda c, x: c.__setitem__(0, x), lambda c: c[0]),
    "a key": stores(dict, lambda c, x: c.__setitem__("a", x), lambda c: c["a"]),
    "setdefault": stores(dict, lambda c, x: c.setdefault("a", x), lambda c: c["a"]),
    "update": stores(dict, lambda c, x: c.update(a=x), lambda c: c["a"]),
    "within a dict": stores(list, lambda c, x: c.append({"a": [x]}), lambda c: c[0]["a"][0]),
    "a default": stores(lambda: collections.defaultdict(list), lambda c, x: c["a"].append(x), lambda c: c["a"][0]),
    "a queue": stores(queue.Queue, lambda c, x: c.put(x), lambda c: c.queue[0]),
    "objects": stores(lambda: np.empty(1, object), lambda c, x: c.__setitem__(0, x), lambda c: c[0]),
    "a function": stores(list, lambda c, x: c.append(lambda: x + 1.0), lambda c: c[0]()),
    "a set": stores(set, lambda c, x: c.add(x), lambda c: next(iter(c))),
}


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("transform", ["grad", "jit", "jit grad"])
def test_a_traced_value_in_a_container_that_nobody_reads(transform: str, name: str) -> None:
    """It is an error under `jit` at once, or else where it is used, in every call."""
    f, find = STORES[name]()
    try:
        for _ in range(3):
            TRACES[transform](f)
    except errors.TracerEscapeError:
        assert transform != "grad" or name == "a set"
        return
    for use in (np.sum, lambda x: x + 1.0, lambda x: f"{x}" + "1"):
        with pytest.raises(errors.UsedAfterTraceError):
            use(find())


def test_a_traced_value_kept_in_an_attribute_or_a_cache() -> None:
    thing = types.SimpleNamespace()

    @functools.lru_cache
    def kept() -> Any:
        return thing.x * 2.0

    def f(x: Any) -> Any:
        thing.x = x
        return np.sum(x) if np.ndim(kept()) else x

    grad(f)(X)
    with pytest.raises(errors.UsedAfterTraceError):
        np.sin(thing.x)
    with pytest.raises(errors.UsedAfterTraceError):
        grad(lambda x: np.sum(x * kept()))(X)


def test_a_traced_value_of_an_inner_trace_in_the_outer() -> None:
    leaked: list[Any] = []

    def f(x: Any) -> Any:
        grad(lambda y: leaked.append(y * x) or np.sum(y * x))(x)
        return np.sum(leaked[-1])

    with pytest.raises(errors.UsedAfterTraceError):
        grad(f)(X)


def test_a_pullback_kept_past_its_trace() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        y, pullback = vjp(np.sin, x)
        kept.append(pullback)
        return np.sum(y)

    grad(f)(X)
    with pytest.raises(errors.UsedAfterTraceError):
        kept[0](np.ones(3))


def test_a_generator_that_outlives_the_trace() -> None:
    def numbers(x: Any) -> Iterator[Any]:
        yield x
        yield x * 2.0

    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(numbers(x))
        return np.sum(next(kept[0]))

    assert_array_equal(grad(f)(X), np.ones(3))
    with pytest.raises(errors.UsedAfterTraceError):
        next(kept[0])


def test_a_traced_value_of_another_thread() -> None:
    found: list[BaseException] = []

    def f(x: Any) -> Any:
        def work() -> None:
            try:
                np.sum(x * 2.0)
            except errors.UsedAfterTraceError as error:
                found.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return np.sum(x)

    grad(f)(X)
    assert len(found) == 1


# ---- traces that end badly -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRACES)
def test_an_exception_in_the_middle(name: str) -> None:
    def broken(x: Any) -> Any:
        grad(lambda y: np.sum(y * x))(x)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        TRACES[name](broken)
    assert not is_tracing()
    assert_allclose(grad(lambda x: np.sum(x * x))(X), 2 * X)


def test_an_exception_caught_inside_the_function() -> None:
    def inner(x: Any) -> Any:
        raise ValueError(str(np.shape(x)))

    def f(x: Any) -> Any:
        try:
            grad(inner)(x)
        except ValueError:
            return np.sum(x * x)
        raise AssertionError

    assert_allclose(grad(f)(X), 2 * X)


def test_threads_trace_independently() -> None:
    barrier = threading.Barrier(4)
    found: list[bool] = []

    def work(n: int) -> None:
        def f(x: Any) -> Any:
            barrier.wait(60)
            y = grad(lambda z: np.sum(z * z * x))(x)
            barrier.wait(60)
            return np.sum(y)

        x = np.arange(1.0, n + 2.0)
        found.append(np.allclose(grad(f)(x), 4 * x))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


# ---- aliasing and workspaces -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
def test_results_of_earlier_calls_stay(executor: Any) -> None:
    with fnad.config.override(executor=executor):
        f = jit(value_and_grad(lambda x: np.sum(np.exp(np.sin(x) * x))))
        results = [f(k * X) for k in (1.0, 2.0, 3.0)]
        again = [f(k * X) for k in (1.0, 2.0, 3.0)]
    for (value, gradient), (expected_value, expected) in zip(results, again, strict=True):
        assert value == expected_value
        assert_array_equal(gradient, expected)
    assert not np.shares_memory(results[0][1], results[1][1])


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
def test_a_pullback_keeps_what_it_needs(executor: Any) -> None:
    with fnad.config.override(executor=executor):
        x = X.copy()
        w = np.array([2.0, 3.0, 4.0])
        y, pullback = vjp(lambda x: np.sin(x) * w * x, x)
        expected = pullback(np.ones(3))[0]
        x[:], w[:], y[:] = 0.0, 0.0, 0.0
        vjp(lambda x: np.sin(x) * w * x, x)
        assert_array_equal(pullback(np.ones(3))[0], expected)
        first = pullback(np.ones(3))[0]
        first[:] = -1.0
        assert_array_equal(pullback(np.ones(3))[0], expected)


def test_an_array_written_to_while_it_is_traced() -> None:
    w = np.ones(3)

    def f(x: Any) -> Any:
        y = x * w
        w[0] = 100.0
        return np.sum(y)

    assert_array_equal(grad(f)(X), [1.0, 1.0, 1.0])
    assert_array_equal(grad(f)(X), [100.0, 1.0, 1.0])

    w[0] = 1.0
    run = jit(grad(f))
    assert_array_equal(run(X), [1.0, 1.0, 1.0])
    w[0] = 5.0
    assert_array_equal(run(X), [5.0, 1.0, 1.0])


def first_row(x: Any, i: Any) -> Any:
    return np.sum(np.sin(x)[i])


def second_row(x: Any, i: Any) -> Any:
    return np.sum(np.sin(x)[i])


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
@pytest.mark.parametrize(
    "call",
    [
        lambda f, i: grad(f)(X, i),
        lambda f, i: jit(f)(X, i),
        lambda f, i: jit(grad(f))(X, i),
        lambda f, i: vjp(lambda x: f(x, i), X),
        lambda f, i: jvp(lambda x: f(x, i), (X,), (X,)),
    ],
)
def test_an_error_shows_the_line_of_the_function_at_hand(call: Any, executor: Any) -> None:
    with fnad.config.override(executor=executor):
        for f in (first_row, second_row):
            call(f, np.array([0, 1]))
            with pytest.raises(IndexError) as caught:
                call(f, np.array([0, 7]))
            assert isinstance(caught.value, errors.OutOfRangeError)
            line = f.__code__.co_firstlineno + 1
            assert str(caught.value).splitlines()[:2] == [
                "index 7 is out of bounds for axis 0 with size 3",
                f"  at test_hygiene.py:{line} in {f.__name__}:  return np.sum(np.sin(x)[i])",
            ]


# ---- caches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [grad, lambda f: jit(grad(f))])
def test_other_layouts_of_one_signature(transform: Any) -> None:
    f = transform(lambda x: np.sum(x * np.arange(6.0).reshape(2, 3)))
    x = np.arange(6.0).reshape(2, 3)
    for given in (x, np.asfortranarray(x), x[::-1], x.T.copy().T, np.broadcast_to(x[:1], (2, 3)), x.astype(">f8")):
        assert_array_equal(f(given), np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("transform", [grad, lambda f: jit(grad(f))])
def test_programs_that_differ_in_a_constant(transform: Any) -> None:
    signed = [transform(lambda x, c=c: np.sum(np.arctan2(x * -0.0 + c, -1.0) * x))(1.0) for c in (0.0, -0.0, 0.0)]
    assert_allclose(signed, [np.pi, -np.pi, np.pi])
    for c, dtype in ((2, "f4"), (2.0, "f4"), (np.float32(2), "f4"), (np.float64(2), "f4")):
        x = np.ones(2, np.float32)
        assert_array_equal(transform(lambda x, c=c: np.sum(x * c))(x), np.full(2, 2, dtype))


def test_programs_that_differ_in_what_they_return() -> None:
    f = lambda x: (np.sum(x), np.sum(x * x))  # noqa: E731
    assert_array_equal(grad(lambda x: f(x), has_aux=True)(X)[0], np.ones(3))
    assert_array_equal(grad(lambda x: f(x)[::-1], has_aux=True)(X)[0], 2 * X)
    assert_array_equal(vjp(f, X)[1]((1.0, 0.0))[0], np.ones(3))
    assert_array_equal(vjp(f, X)[1]((0.0, 1.0))[0], 2 * X)
    assert_array_equal(vjp(lambda x: f(x), X, has_aux=True)[1](1.0)[0], np.ones(3))


def test_a_module_edited_and_reloaded(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    file = tmp_path / "edited_module.py"
    file.write_text("def g(x): return x * 2.0\n")
    module = importlib.import_module("edited_module")
    run = jit(grad(lambda x: np.sum(module.g(x))))
    assert_array_equal(run(X), np.full(3, 2.0))
    file.write_text("RATE = 7.0\ndef g(x): return x * RATE\n")
    importlib.invalidate_caches()
    importlib.reload(module)
    assert_array_equal(run(X), np.full(3, 7.0))
    monkeypatch.setattr(module, "RATE", 8.0)
    assert_array_equal(run(X), np.full(3, 8.0))
