"""What the store has, how long, and what it gives up."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fnad
from fnad import config
from fnad.control import reroll
from fnad.store import ProgramStore, now
from fnad.transforms import joint

X = np.array([1.0, 2.0, 3.0])
ONE = 1.5


@pytest.fixture
def collector_off() -> Generator[None]:
    """Have memory freed by counting references alone: arrays do not hurry the collector."""
    fnad.clear_cache()
    gc.collect()
    gc.disable()
    yield
    gc.enable()


FUNCTIONS = {
    "alone": lambda x: np.sum(np.sin(x)),
    "with two paths": lambda x: x * 2.0 if x[0] > 0 else x * 3.0,
    "with a loop": lambda x: fnad.scan(lambda c, _: (np.sin(c), None), x, length=3)[0],
    "with a loop of unknown length": lambda x: fnad.while_loop(lambda c: c.sum() < 50.0, lambda c: c * 1.5, x),
    "with a library": lambda x: np.linalg.solve(np.outer(x, x) + 9.0 * np.eye(3), x),
    "with a fault in a loop of a library": lambda x: fnad.while_loop(
        lambda c: c.sum() < 9.0, lambda c: np.linalg.solve(np.eye(3), c) * 2.0, x, max_steps=99
    ),
    "with its surroundings": lambda x: x * ONE,
    "that is a gradient": fnad.grad(lambda x: np.sum(x**2)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_along_what_was_theirs(name: str, collector_off: None):
    before = fnad.cache_info()
    f = fnad.jit(lambda x: FUNCTIONS[name](x))
    for x in (X, -X) * 3 if name == "with two paths" else (X, X):
        f(x)
    assert fnad.cache_info().compiled > 0
    del f
    assert fnad.cache_info() == before


def test_methods_take_along_what_was_theirs_and_their_objects(collector_off: None):
    class Model:
        rate = 2.0

        @fnad.jit
        def step(self, x: Any) -> Any:
            return x * self.rate

    before = fnad.cache_info()
    model, other = Model(), Model()
    for each in (model, other):
        each.rate = 3.0
        assert_array_equal(each.step(X), 3.0 * X)
    assert fnad.cache_info().compiled > before.compiled
    del model, each
    del Model.step
    assert fnad.cache_info() == before
    assert other.rate == 3.0


def test_arrays_at_hand_go_with_the_function(collector_off: None):
    before = fnad.cache_info().nbytes  # of functions of other tests that still live
    f = fnad.jit(lambda x: np.sort(np.sin(x))[::-1] + np.sort(np.cos(x)))
    f(np.ones(30_000))  # the pool keeps the memory of larger results
    assert fnad.cache_info().nbytes > before + 200_000
    del f
    assert fnad.cache_info().nbytes == before


def test_functions_that_are_made_anew_are_compiled_twice_at_most(monkeypatch: pytest.MonkeyPatch):
    from fnad.backends.cpu import executor  # noqa: PLC0415

    compiled: list[Any] = []
    compile_program = executor.compile_program

    def count(program: Any, donated: Any) -> Any:
        compiled.append(program)
        return compile_program(program, donated)

    monkeypatch.setattr(executor, "compile_program", count)
    fnad.clear_cache()
    for _ in range(5):
        assert fnad.jit(lambda x: x * 2.0 + 17.25)(1.0) == 19.25
    assert len(compiled) == 2


def test_after_clearing_functions_go_on():
    f, g = fnad.jit(lambda x: np.sum(np.sin(x) * x)), fnad.grad(lambda x: np.sum(np.cos(x)))
    y, pullback = fnad.vjp(np.sin, X)
    expected = f(X), g(X), pullback(y)[0]
    assert fnad.cache_info().compiled > 0
    fnad.clear_cache()
    assert fnad.cache_info().compiled == 0
    for found, known in zip((f(X), g(X), pullback(y)[0]), expected, strict=True):
        assert_array_equal(found, known)
    assert fnad.cache_info().compiled == 1


def test_clearing_frees_what_programs_have_in_common():
    from fnad.backends.cpu.families import _FAMILIES  # noqa: PLC0415

    before = set(_FAMILIES)  # of programs that earlier tests left as garbage
    f = fnad.jit(lambda x: np.sum(np.sin(x) * 3.5 + np.cosh(x) ** 5 / (x + 9.5)))
    f(X)
    assert not before.issuperset(_FAMILIES)
    del f
    fnad.clear_cache()
    gc.collect()
    assert before.issuperset(_FAMILIES)


def test_what_is_counted():
    fnad.clear_cache()
    gc.collect()
    before = fnad.cache_info()  # of functions of other tests that still live
    assert (before.compiled, before.kept) == (0, 0)

    def counted() -> tuple[int, ...]:
        now = fnad.cache_info()
        return now.programs - before.programs, now.compiled, now.kept

    def f(x: Any) -> Any:
        return np.sum(np.sin(x) * 1.75)

    fnad.grad(f)(X)
    fnad.grad(f)(X)
    assert counted() == (1, 0, 1)
    y, pullback = fnad.vjp(f, X)
    pullback(y)
    assert counted() == (3, 0, 2)
    g, h = fnad.jit(f), fnad.jit(f)
    assert g(X) == h(X)
    assert counted() == (4, 1, 2)
    del g, h
    assert counted() == (3, 0, 2)
    taken = fnad.cache_info().nbytes
    fnad.clear_cache()
    assert counted() == (1, 0, 0)  # the backward one, which the pullback has
    assert 0 < fnad.cache_info().nbytes < taken
    del pullback
    assert counted() == (0, 0, 0)


def test_derived_programs_are_as_many_as_is_set():
    fnad.clear_cache()
    before = fnad.cache_info().programs  # of functions of other tests that still live
    with config.override(cache_entries=3):
        for n in range(10):
            fnad.grad(lambda x, n=n: x * x * (n + 0.5))(2.0)
    assert fnad.cache_info().programs == before + 3
    fnad.clear_cache()
    for n in range(10):
        fnad.grad(lambda x, n=n: x * x * (n + 0.5))(2.0)
    assert fnad.cache_info().programs == before + 10


def test_arrays_at_hand_are_freed_where_memory_is_wanted():
    def sorted_sum(c: float) -> Any:
        return fnad.jit(lambda x: np.sort(np.sin(x * c))[::-1] + np.sort(x + c))

    fnad.clear_cache()
    functions = [sorted_sum(n + 0.5) for n in range(3)]
    x = np.linspace(0.0, 1.0, 100_000)
    expected = [f(x) for f in functions]
    whole = fnad.cache_info()
    with config.override(cache_bytes=whole.nbytes * 2 // 3):
        for _ in range(2):
            for f, known in zip(functions, expected, strict=True):
                assert_array_equal(f(x), known)
        sorted_sum(9.5)(x)
    left = fnad.cache_info()
    assert left.compiled == whole.compiled
    assert left.nbytes < whole.nbytes
    assert_array_equal(functions[0](x), expected[0])


def test_of_programs_that_take_too_much_the_last_remains():
    fnad.clear_cache()
    f, g = fnad.jit(lambda x: np.sin(x) * 4.5), fnad.jit(lambda x: np.sin(x) * 5.5)
    with config.override(cache_bytes=0):
        for _ in range(2):
            assert f(0.5) == np.sin(0.5) * 4.5
            assert g(0.5) == np.sin(0.5) * 5.5
            assert fnad.cache_info().compiled == 1


@pytest.mark.slow
def test_threads_share_the_store():
    functions = [fnad.jit(lambda x, n=n: np.sum(np.sin(x) * n)) for n in range(4)]
    expected = [f(X) for f in functions]
    wrong: list[Any] = []

    def work(k: int) -> None:
        with config.override(executor="interpreter" if k % 2 else "auto", cache_entries=2, cache_bytes=100_000):
            for turn in range(30):
                n = (turn + k) % 4
                found = functions[n](X), fnad.grad(lambda x, n=n: np.sum(x * x) * n)(X)
                if turn % 7 == k:
                    fnad.clear_cache()
                if not (np.isclose(found[0], expected[n]) and np.array_equal(found[1], 2 * X * n)):
                    wrong.append((n, found))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# ---- the order -------------------------------------------------------------------------------------------------------


class Fake:
    """Stages of a given weight."""

    def __init__(self, nbytes: int, workspace_bytes: int = 0) -> None:
        self.nbytes, self.workspace_bytes, self.used = nbytes, workspace_bytes, now()
        self.is_native = True

    def free_workspaces(self) -> int:
        freed, self.workspace_bytes = self.workspace_bytes, 0
        return freed

    def free(self) -> int:
        freed, self.nbytes, self.is_native = self.nbytes, 0, False
        return freed


def test_what_was_used_least_recently_goes_first():
    store = ProgramStore()
    with config.override(cache_entries=2):
        for key in "abac":
            store.get(key, lambda key=key: key.upper())
        made: list[str] = []
        for key in "acb":
            store.get(key, lambda key=key: made.append(key) or key)
    assert made == ["b"]


def test_workspaces_go_before_programs_and_the_oldest_first():
    store = ProgramStore()
    stages = [store.stages(n, lambda: Fake(10, 100)) for n in range(4)]
    stages[0].used = now()
    with config.override(cache_bytes=300):
        store.trim()
        assert [s.workspace_bytes for s in stages] == [100, 0, 0, 100]
        store.trim(wanted=100)
        assert [s.workspace_bytes for s in stages] == [100, 0, 0, 0]
        assert all(s.is_native for s in stages)
    with config.override(cache_bytes=25):
        store.trim()
        assert [s.is_native for s in stages] == [True, False, False, True]


def test_memory_that_programs_share_goes_first():
    store = ProgramStore()
    stages, shared = store.stages("key", lambda: Fake(10, 100)), Fake(0, 50)
    other = store.stages("other", lambda: Fake(10, 100))
    store.share(shared)
    assert store.info().nbytes == 270
    with config.override(cache_bytes=270):
        store.trim()
        assert shared.workspace_bytes == 50
        store.trim(wanted=50)
        assert [m.workspace_bytes for m in (shared, stages, other)] == [0, 100, 100]
        store.trim(wanted=51)
        assert [m.workspace_bytes for m in (shared, stages, other)] == [0, 0, 100]
    shared.workspace_bytes = 50
    store.clear()
    assert shared.workspace_bytes == 0


def test_stages_live_as_long_as_someone_has_them():
    store = ProgramStore()
    stages = store.stages("key", lambda: Fake(10))
    assert store.stages("key", lambda: Fake(20)) is stages
    del stages
    assert store.info().programs == 0
    store.stages("key", lambda: Fake(30))
    assert store.info() == (1, 1, 1, 30)
    store.clear()
    assert store.info().programs == 0


# ---- what is derived within a trace ----------------------------------------------------------------------------------


def first(x: Any) -> Any:
    return np.sum(np.sin(x) * SCALE[0])


def second(x: Any) -> Any:
    return np.sum(np.sin(x) * SCALE[0])


SCALE = [2.0]


def lines_of(transform: Any, f: Any) -> set[tuple[str, str]]:
    """The functions and modes of the lines of a transformed function's program, traced anew."""
    program = fnad.jit(transform(f)).lower(X).program
    return {(e.source.function, e.source.mode) for e in program.equations if e.source is not None}


def pulled(f: Any) -> Any:
    """The function that pulls back along f in two programs."""
    return lambda x: fnad.vjp(f, x)[1](1.0)[0]


@pytest.mark.parametrize("transform", [fnad.grad, fnad.value_and_grad, pulled, fnad.jacobian, fnad.hessian])
def test_what_is_derived_within_a_trace_has_the_lines_of_each_function(transform: Any):
    for _ in range(3):
        for f in (first, second):
            functions = {function for function, _ in lines_of(transform, f)}
            assert f.__name__ in functions
            assert functions.isdisjoint({"first", "second"} - {f.__name__})


def test_what_was_derived_within_a_trace_is_not_derived_again(monkeypatch: pytest.MonkeyPatch):
    made: list[object] = []
    looked_through: list[object] = []
    sweep, look_through = joint.sweep, reroll._looked_through
    monkeypatch.setattr(joint, "sweep", lambda *args: made.append(args) or sweep(*args))
    monkeypatch.setattr(reroll, "_looked_through", lambda *args: looked_through.append(args) or look_through(*args))
    fnad.clear_cache()
    for scale in (2.0, 3.0) * 4:  # the scale is a number in the program
        SCALE[0] = scale
        assert_array_equal(fnad.jit(fnad.grad(first))(X), scale * np.cos(X))
    assert len(made) == 2 * 2  # it is kept from the second time on
    looks = len(looked_through)
    assert_array_equal(fnad.jit(fnad.grad(first))(X), 3.0 * np.cos(X))
    assert len(looked_through) == looks  # for loops


def test_derivatives_within_a_trace_follow_what_python_decided():
    def f(x: Any) -> Any:
        return np.sum(x**2) if x[0] > LIMIT[0] else np.sum(x**3)

    for _ in range(3):
        for limit in (0.0, 5.0):
            LIMIT[0] = limit
            traced = fnad.jit(fnad.grad(f))
            for x in (X, X + 5.0, -X):
                assert_array_equal(traced(x), 2.0 * x if x[0] > limit else 3.0 * x**2)


LIMIT = [0.0]


def test_a_trace_that_is_a_derivative_and_more_has_all_of_it():
    def both(x: Any) -> Any:
        gradient = fnad.grad(first)(x)
        return gradient, fnad.grad(first)(x * 2.0), np.sin(x), fnad.grad(first)(x)

    SCALE[0] = 2.0
    for _ in range(3):
        found = fnad.jit(both)(X)
        for value, expected in zip(found, (2 * np.cos(X), 2 * np.cos(2 * X), np.sin(X), 2 * np.cos(X)), strict=True):
            assert_array_equal(value, expected)
        x, z = fnad.jit(lambda x: (x, fnad.grad(lambda y: np.sum(y * x))(x)))(X)
        assert_array_equal(x, X)
        assert_array_equal(z, X)
        looped = fnad.jit(
            lambda x: fnad.scan(lambda y, _: (y + fnad.grad(first)(y), None), fnad.grad(first)(x), length=3)[0]
        )
        c = 2 * np.cos(X)
        for _ in range(3):
            c = c + 2 * np.cos(c)
        np.testing.assert_allclose(looped(X), c, rtol=1e-14)
