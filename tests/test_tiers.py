"""Which backend runs a program and when, and the interpreter as an executor."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fnad
from fnad import store
from fnad.backends import tiers
from fnad.backends.base import BACKENDS, Backend
from fnad.backends.cpu.executor import compile_plainly
from fnad.backends.reference import interpreter
from fnad.backends.tiers import COMPILING, TieredProgram
from fnad.errors import LoweringError
from fnad.ir.builder import trace
from fnad.ir.program import Literal, Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, Aval
from fnad.ops.arithmetic import mul
from fnad.ops.elementary import sin
from fnad.ops.shape import reduce_sum, reshape_to
from fnad.trace.tracing import trace_function
from fnad.transforms.interpret import TimeUpError, interpret
from fnad.transforms.pipeline import simplify
from tests.steps import steps

X = np.array([1.0, 2.0, 3.0])
IS_HEAVY = TieredProgram.is_heavy


class Native:
    """What a compiler makes of a program, by a function of its arguments."""

    is_alone = True
    is_plain = False
    nbytes = workspace_bytes = 0

    def __init__(self, run: Callable[[Any], Any]) -> None:
        self.run = run

    def __call__(self, arguments: Any) -> Any:
        return self.run(arguments)


def example(name: str = "example") -> Program:
    return trace(lambda x: [mul(sin(x), x)], Aval(F64, (3,)), name=name)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """Replace the compiler by one that returns zeros; return the list of programs it is given."""
    given: list[Program] = []

    def compile_program(program: Program, donated: Sequence[int]) -> Callable[[Any], Any]:
        given.append(program)
        return Native(lambda arguments: [np.zeros(atom.aval.shape) for atom in program.outputs])

    monkeypatch.setattr("fnad.backends.cpu.executor.compile_program", compile_program)
    monkeypatch.setattr("fnad.backends.sizes._SIZES", WeakValueDictionary())  # what other tests compiled
    return given


# ---- tiers -----------------------------------------------------------------------------------------------------------


def test_cold_programs_are_interpreted_and_hot_ones_compiled(
    compiled: list[Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = TieredProgram(example())
    for _ in range(3):
        assert_array_equal(program.executor()([X])[0], np.sin(X) * X)
    assert compiled == []
    monkeypatch.setattr(TieredProgram, "expected_cost", lambda self: 0.0)
    assert_array_equal(program.executor()([X])[0], np.zeros(3))
    assert_array_equal(program.executor()([X])[0], np.zeros(3))
    assert len(compiled) == 1


def test_a_slow_program_is_compiled_when_it_has_cost_as_much(
    compiled: list[Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = TieredProgram(example())
    clock = iter(np.arange(0.0, 100.0, 0.04))
    monkeypatch.setattr(tiers, "perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr(TieredProgram, "expected_cost", lambda self: 0.1)
    for _ in range(3):
        program.executor()([X])
        assert compiled == []
    program.executor()([X])
    assert len(compiled) == 1


def test_eager_means_at_once(compiled: list[Program]) -> None:
    program = TieredProgram(example())
    assert_array_equal(program.executor(eager=True)([X])[0], np.zeros(3))
    assert compiled == [program.simplified]


class Clock:
    """What a program takes to run, in the place of a clock."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def plain(compiled: list[Program], monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """Replace the compiler of long programs by one that returns ones; return the list of programs it is given."""
    given: list[Program] = []

    def compile_plainly(program: Program, donated: Sequence[int]) -> Callable[[Any], Any]:
        given.append(program)
        native = Native(lambda arguments: [np.ones(atom.aval.shape) for atom in program.outputs])
        native.is_plain = True
        return native

    monkeypatch.setattr("fnad.backends.cpu.executor.compile_plainly", compile_plainly)
    monkeypatch.setattr(TieredProgram, "is_heavy", False)
    monkeypatch.setitem(BACKENDS, "cpu", replace(BACKENDS["cpu"], long=2))
    return given


@pytest.mark.parametrize("is_ready", [False, True])
def test_long_programs_are_optimised_once_they_ran_as_long(
    plain: list[Program], compiled: list[Program], monkeypatch: pytest.MonkeyPatch, *, is_ready: bool
) -> None:
    clock = Clock()
    monkeypatch.setattr(tiers, "perf_counter", clock)
    monkeypatch.setattr(TieredProgram, "expected_cost", lambda self: 0.1)
    program = TieredProgram(example())
    assert_array_equal(program.executor(eager=True)([X])[0], np.ones(3))
    run = Native.__call__

    def slowly(self: Native, arguments: Any) -> Any:
        clock.now += 0.04
        return run(self, arguments)

    monkeypatch.setattr(Native, "__call__", slowly)
    for expected in (1.0, 1.0, 1.0, 0.0, 0.0):
        following = program.ready() if is_ready else program.executor()
        assert following is not None
        assert_array_equal(following([X])[0], np.full(3, expected))
    assert len(plain) == len(compiled) == 1


def test_what_looks_into_a_program_sees_it_optimised(plain: list[Program], compiled: list[Program]) -> None:
    program = TieredProgram(example())
    assert_array_equal(program.executor(eager=True)([X])[0], np.ones(3))
    native = program.native()
    assert native is not None
    assert_array_equal(native([X])[0], np.zeros(3))
    assert program.native() is native
    assert len(plain) == len(compiled) == 1


def test_plain_code_runs_while_another_thread_optimises(plain: list[Program], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TieredProgram, "expected_cost", lambda self: 0.0)
    program = TieredProgram(example())
    assert_array_equal(program.executor(eager=True)([X])[0], np.ones(3))
    with COMPILING.holding(program):
        assert_array_equal(program.executor()([X])[0], np.ones(3))
    assert_array_equal(program.executor()([X])[0], np.zeros(3))
    assert len(plain) == 1


def test_short_heavy_and_endless_programs_and_further_sizes_are_optimised_at_once(
    plain: list[Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    def begins(f: Callable[[Any], Any], n: int = 3) -> bool:
        program = TieredProgram(fnad.make_program(f)(np.ones(n)).program)
        kept.append(program)
        return bool(program.executor(eager=True)([np.ones(n)])[0].any())

    kept: list[TieredProgram] = []
    assert begins(lambda x: np.sin(x) * x)
    assert not begins(lambda x: np.sin(x) * x, 4)
    assert not begins(lambda x: np.sinh(x))
    assert not begins(lambda x: fnad.while_loop(lambda x: np.sum(x) < 9.0, lambda x: x * 2.0, np.cosh(x)) * 2.0)
    monkeypatch.setattr(TieredProgram, "is_heavy", True)
    assert not begins(lambda x: np.cos(x) * x)
    assert len(plain) == 1


def test_plain_code_computes_the_same_but_for_rounding() -> None:
    """Sums go in shorter blocks instead of lanes, so that they are as accurate."""
    rng = np.random.default_rng(0)
    x, y, unit = rng.random((50, 20)), np.full(1_000_003, 0.1), np.eye(20)

    def f(x: Any, y: Any, unit: Any) -> Any:
        z = np.where(x > 0.5, np.tanh(x) ** 2.5, np.cumsum(x, axis=1))
        return [np.linalg.solve(z.T @ z + unit, z.sum(axis=0)), np.sort(z, axis=0)[::-1], np.sum(y)]

    program = fnad.make_program(f)(x, y, unit).program
    native = compile_plainly(simplify(program))
    assert native.is_plain
    found, expected = native([x, y, unit]), interpret(program, [x, y, unit])
    for a, b in zip(found[:2], expected[:2], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    exact = float(np.longdouble(y[0]) * len(y))
    assert abs(found[2] - exact) <= 2 * np.spacing(exact)


def test_settings_decide(compiled: list[Program]) -> None:
    program = TieredProgram(example())
    with fnad.config.override(executor="interpreter"):
        assert_array_equal(program.executor(eager=True)([X])[0], np.sin(X) * X)
        with fnad.config.override(executor="compiled"):
            assert_array_equal(program.executor()([X])[0], np.zeros(3))
        assert_array_equal(program.executor()([X])[0], np.sin(X) * X)
    assert len(compiled) == 1


def test_settings_belong_to_their_thread() -> None:
    seen: list[str] = []
    with fnad.config.override(executor="interpreter"):
        thread = threading.Thread(target=lambda: seen.append(fnad.config.current().executor))
        thread.start()
        thread.join()
    fnad.config.set_default(executor="compiled")
    try:
        with fnad.config.override(executor="auto"):
            seen.append(fnad.config.current().executor)
        seen.append(fnad.config.current().executor)
    finally:
        fnad.config.set_default(executor="auto")
    assert seen == ["auto", "auto", "compiled"]


def test_a_function_with_settings_of_its_own_takes_the_others_from_its_call() -> None:
    @fnad.config.override(executor="interpreter")
    def settings() -> fnad.config.Settings:
        return fnad.config.current()

    @fnad.device("cpu")
    def on_the_cpu() -> fnad.config.Settings:
        return settings()

    with fnad.config.override(debug_nans=True, executor="compiled"):
        assert (on_the_cpu().executor, on_the_cpu().debug_nans) == ("interpreter", True)
    assert (on_the_cpu().executor, on_the_cpu().debug_nans) == ("interpreter", False)


def test_what_cannot_be_lowered_is_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[Program] = []

    def refuse(program: Program, donated: Sequence[int]) -> Any:
        attempts.append(program)
        raise LoweringError("no loops for this")

    monkeypatch.setattr("fnad.backends.cpu.executor.compile_program", refuse)
    program = TieredProgram(example())
    for _ in range(3):
        assert_array_equal(program.executor(eager=True)([X])[0], np.sin(X) * X)
    assert len(attempts) == 1


def test_a_loop_with_effects_is_not_run_again_from_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter gives up a loop that takes long, but not after effects, which would happen twice."""
    monkeypatch.setattr(tiers, "perf_counter", time.perf_counter)  # the steps' own clock, for which time must be up
    monkeypatch.setattr(TieredProgram, "expected_cost", lambda self: 0.01)
    seen: list[int] = []

    def note(i: Any) -> None:
        seen.append(int(i))
        time.sleep(0.02)

    def step(i: Any, x: Any) -> Any:
        fnad.callback(note, i)
        return np.sin(x)

    fnad.grad(lambda x: fnad.fori_loop(0, 5, step, x))(1.0)
    assert seen == [0, 1, 2, 3, 4]


# ---- sizes -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def by_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have programs be compiled at their first call if they are heavy."""
    monkeypatch.setattr(TieredProgram, "is_heavy", IS_HEAVY)


@pytest.mark.usefixtures("by_weight")
def test_new_sizes_with_code_of_their_own_are_waited_for_three_times(
    compiled: list[Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    f = fnad.jit(lambda x: np.sin(x) * x + 0.375)
    for n in range(1, 8):
        x = np.arange(1.0, 1.0 + n)
        assert_array_equal(f(x), np.sin(x) * x + 0.375)
        assert_array_equal(f(x), np.zeros(n) if n <= 3 else np.sin(x) * x + 0.375)
    assert [program.inputs[0].aval.shape for program in compiled] == [(1,), (2,), (3,)]
    monkeypatch.setattr(TieredProgram, "expected_cost", lambda self: 0.0)
    assert_array_equal(f(np.ones(7)), np.zeros(7))  # it is hot


@pytest.mark.usefixtures("by_weight")
def test_new_sizes_that_share_code_are_compiled_when_they_come_again(
    compiled: list[Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Native, "is_alone", False)
    f = fnad.jit(lambda x: np.sin(x) * x + 0.875)
    for n in range(1, 8):
        x = np.arange(1.0, 1.0 + n)
        assert_array_equal(f(x), np.sin(x) * x + 0.875)
        assert_array_equal(f(x), np.zeros(n))
    assert len(compiled) == 7


@pytest.mark.usefixtures("by_weight")
def test_a_loop_that_is_known_to_be_long_is_not_interpreted_for_a_time_first(
    compiled: list[Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    def f(x: Any) -> Any:
        return fnad.scan(lambda c, row: (np.sin(c) * row, None), 0.5, x)[0]

    short, long = (fnad.make_program(f)(np.ones(n)).program for n in (4, 100_000))
    assert not TieredProgram(short).is_heavy
    assert TieredProgram(long).is_heavy
    monkeypatch.setattr(TieredProgram, "_interpret", None)
    fnad.jit(f)(np.ones(100_000))
    assert len(compiled) == 1


@pytest.mark.usefixtures("by_weight")
def test_what_shares_code_is_expected_to_cost_little(compiled: list[Program], monkeypatch: pytest.MonkeyPatch) -> None:
    def program(n: int) -> TieredProgram:
        return TieredProgram(trace(lambda x: [mul(sin(x), sin(mul(x, x)))], Aval(F64, (n,))))

    monkeypatch.setitem(
        BACKENDS, "cpu", Backend("no_such_backend", setup=0.0, program=0.5, equation=0.25, lowered=1e-9)
    )
    monkeypatch.setitem(sys.modules, "no_such_backend", sys.modules["fnad.backends.cpu.executor"])
    first, second, third = program(10), program(20), program(10_000)
    for each, is_alone in ((first, True), (second, False)):
        assert each.expected_cost() == 0.5 + 4 * 0.25
        assert not third.is_heavy
        monkeypatch.setattr(Native, "is_alone", is_alone)
        each.native()
    assert third.expected_cost() == 4e-9
    assert third.is_heavy


def test_one_thread_compiles_while_others_interpret(monkeypatch: pytest.MonkeyPatch) -> None:
    started, proceed = threading.Event(), threading.Event()
    attempts: list[Program] = []

    def slow(program: Program, donated: Sequence[int]) -> Any:
        attempts.append(program)
        started.set()
        assert proceed.wait(60)
        return Native(interpreter(program))

    monkeypatch.setattr("fnad.backends.cpu.executor.compile_program", slow)
    monkeypatch.setattr(TieredProgram, "expected_cost", lambda self: 0.0)
    program = TieredProgram(example())
    compiling = threading.Thread(target=lambda: program.executor()([X]))
    compiling.start()
    assert started.wait(60)
    assert_array_equal(program.executor()([X])[0], np.sin(X) * X)
    proceed.set()
    compiling.join()
    assert len(attempts) == 1


def test_threads_that_want_it_compiled_wait_for_one(compiled: list[Program]) -> None:
    program = TieredProgram(example())
    threads = [threading.Thread(target=lambda: program.executor(eager=True)([X])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(compiled) == 1


def test_without_jit_small_gradients_load_no_compiler() -> None:
    program = """
import sys, numpy as np, fnad
for c in range(20):
    fnad.grad(lambda x: np.sum(np.sin(x) * c))(np.ones(3))
    fnad.value_and_grad(lambda x: np.sum(x * np.full(3, c)))(np.ones(3))
print("numba" in sys.modules, "scipy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_gradients_of_fresh_closures_take_no_more_steps_the_more_there_were(monkeypatch: pytest.MonkeyPatch) -> None:
    def gradient(array: Any, number: float) -> Any:
        def f(x: Any) -> Any:
            y = np.sin(x) * array
            y = np.exp(y) + x
            y = np.tanh(y * y) - x
            return np.sum(y * number)

        return fnad.grad(f)(X)

    def some(start: int, end: int) -> None:
        for i in range(start, end):
            gradient(np.full(3, float(i)), 2.0)
            gradient(X, float(i))

    fnad.clear_cache()  # a full one has to make room at each new program
    for name, value in (("_stages", WeakValueDictionary()), ("_unweighed", 0)):
        monkeypatch.setattr(store.STORE, name, value)  # all programs that live are weighed from time to time
    with fnad.config.override(executor="interpreter"):  # when it is compiled depends on the time that was spent
        some(0, 4)  # among them gradient(X, 2.0), which is the program of all gradient(array, 2.0)
        early = steps(lambda: some(4, 20))
        some(20, 200)
        assert steps(lambda: some(200, 216)) <= 1.05 * early


# ---- the interpreter as an executor ----------------------------------------------------------------------------------


def test_results_are_fresh() -> None:
    aval = Aval(F64, (3,))

    def outputs(x: Symbol, y: Symbol) -> list[Symbol]:
        z = sin(x)
        return [x, x, z, z, reshape_to(z, (3, 1)), reshape_to(y, (1, 3))]

    run = interpreter(trace(outputs, aval, aval))
    x, y = X.copy(), X.copy()
    results = run([x, y])
    for i, result in enumerate(results):
        assert isinstance(result, np.ndarray)
        for other in (x, y, *results[:i]):
            assert not np.shares_memory(result, other)


def test_constants_and_scalars() -> None:
    program = trace(lambda x: [x], Aval(F64))
    program = Program("constant", program.inputs, program.equations, (*program.outputs, Literal(np.float64(2.0))))
    one, two = interpreter(program)([np.array(1.0)])
    assert (type(one), type(two), one[()], two[()]) == (np.ndarray, np.ndarray, 1.0, 2.0)


def test_values_are_freed_after_their_last_use() -> None:
    alive: list[int] = []
    program = trace(lambda x: [sin(sin(sin(sin(x))))], Aval(F64, (1000,)))

    class Tracked(np.ndarray):
        def __array_finalize__(self, source: Any) -> None:
            alive.append(1)

        def __del__(self) -> None:
            alive.pop()

    peaks: list[int] = []
    original = sin.evaluate

    def evaluate(x: Any) -> Any:
        result = original(x)
        peaks.append(len(alive))
        return result

    steps = [type(e)(e.results, _with(e.primitive, evaluate), e.operands) for e in program.equations]
    run = interpreter(Program("tracked", program.inputs, tuple(steps), program.outputs))
    run([np.zeros(1000).view(Tracked)])
    assert max(peaks) <= 3


def _with(primitive: Any, evaluate: Any) -> Any:
    fields = {name: getattr(primitive, name) for name in type(primitive).__dataclass_fields__}
    return type(primitive)(**fields | {"evaluate": evaluate})


def test_floating_point_warnings_are_off() -> None:
    program = trace(lambda x: [x / (x - x)], Aval(F64, (3,)))
    with np.errstate(all="raise"):
        assert_array_equal(interpreter(program)([X])[0], np.full(3, np.inf))


# ---- backends --------------------------------------------------------------------------------------------------------


def test_the_backend_of_the_settings_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    class Doubling:
        @staticmethod
        def compile_program(program: Program, donated: Sequence[int]) -> Callable[[Any], Any]:
            return Native(lambda arguments: [2 * argument for argument in arguments])

    monkeypatch.setitem(sys.modules, "doubling", Doubling)
    monkeypatch.setitem(BACKENDS, "cpu", Backend("doubling", setup=1e9, program=0.5, equation=0.25))
    program = TieredProgram(example())
    assert program.expected_cost() == 0.5 + 2 * 0.25
    assert_array_equal(program.executor(eager=True)([X])[0], 2 * X)


def test_what_loading_a_backend_costs_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "cpu", Backend("no_such_backend", setup=3.0, program=0.5, equation=0.0))
    assert TieredProgram(example()).expected_cost() == 3.5


def test_loops_of_their_own_cost_more_than_what_joins_those_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "cpu", Backend("no_such_backend", setup=0.0, program=0.5, equation=0.25, loop=10.0))
    monkeypatch.setitem(sys.modules, "no_such_backend", sys.modules["fnad.backends.cpu.executor"])
    program = trace(lambda x: [reduce_sum(mul(sin(x), x), axes=(0,))], Aval(F64, (5,)))
    assert TieredProgram(program).expected_cost() == 0.5 + 3 * 0.25 + 10.0


def test_a_device_that_there_is_not() -> None:
    with pytest.raises(fnad.errors.SettingError, match="device is 'tpu'"):
        fnad.config.set_default(device="tpu")


# ---- deadlines -------------------------------------------------------------------------------------------------------


def looping(x: Any) -> Any:
    return fnad.while_loop(lambda c: c < 1e3, lambda c: c + 1.0, x)


def solved(x: Any) -> Any:
    return fnad.root(lambda y: y**3 - x, x)


WITHIN: dict[str, Callable[[Any], Any]] = {
    "alone": looping,
    "a scan": lambda x: fnad.scan(lambda c, _: (c * 0.5, None), x, length=3)[0],
    "the test of a loop": lambda x: fnad.while_loop(lambda c: looping(c) < 1e3, lambda c: c, x),
    "the body of a loop": lambda x: fnad.fori_loop(0, 2, lambda i, c: looping(c), x),
    "the body of a scan": lambda x: fnad.scan(lambda c, _: (looping(c), None), x, length=2)[0],
    "a branch": lambda x: fnad.cond(x > 0.0, looping, lambda c: c, x),
    "a checkpoint": lambda x: fnad.checkpoint(looping)(x),
    "a solver": solved,
    "an equation": lambda x: fnad.odeint(lambda y, t: -y, x, np.array([0.0, 1.0])),
    "the derivative of a solver": fnad.grad(solved),
    "the derivative of a checkpoint": fnad.grad(lambda x: fnad.checkpoint(looping)(x)),
}


@pytest.mark.parametrize("f", WITHIN.values(), ids=WITHIN)
def test_loops_end_at_the_deadline_wherever_they_are(f: Callable[[Any], Any]) -> None:
    found = trace_function(lambda tracers: [f(tracers[0])], [Aval(F64)], name="f")
    operands = [np.array(1.0), *found.captured]
    assert np.all(np.isfinite(interpret(found.program, operands)[0]))
    with pytest.raises(TimeUpError):
        interpret(found.program, operands, -1.0)
