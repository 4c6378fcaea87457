"""Which backend runs a program and when, and the interpreter as an executor."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fnad
from fnad.backends.background import BACKGROUND
from fnad.backends.base import BACKENDS, Backend
from fnad.backends.cpu.executor import compile_program
from fnad.backends.reference import interpreter
from fnad.backends.tiers import TieredProgram
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


class Native:
    """What a compiler makes of a program, by a function of its arguments."""

    is_alone = True
    nbytes = workspace_bytes = 0

    def __init__(self, run: Callable[[Any], Any]) -> None:
        self.run = run

    def __call__(self, arguments: Any) -> Any:
        return self.run(arguments)


def example(name: str = "example") -> Program:
    return trace(lambda x: [mul(sin(x), x)], Aval(F64, (3,)), name=name)


SECONDS = 0.04
"""The least time that the interpreter takes for `slow()`."""


def slow() -> Program:
    @partial(fnad.external, result=lambda x: x)
    def slowly(x: Any) -> Any:
        time.sleep(SECONDS)
        return np.sin(x) * x

    return fnad.make_program(slowly)(X).program


Costs = Callable[..., None]


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Costs]:
    """Return `backend(compile_program)`, which replaces that of the CPU; it returns a function that sets its costs."""

    def replace(compile_program: Callable[..., Any]) -> Costs:
        fnad.clear_cache()  # with the programs of other tests, whose sizes are known
        monkeypatch.setitem(sys.modules, "of_test_tiers", SimpleNamespace(compile_program=compile_program))

        def costs(**given: float) -> None:
            fields = {"setup": 0.0, "program": 1e9, "equation": 0.0, "lowered": 1e9} | given
            monkeypatch.setitem(BACKENDS, "cpu", Backend("of_test_tiers", **fields))

        costs()
        return costs

    return replace


class Zeros:
    """A compiler that makes code which returns zeros; the programs that it was given, and its costs."""

    def __init__(self, backend: Callable[..., Costs]) -> None:
        self.given: list[Program] = []
        self.costs = backend(self.compile_program)

    def compile_program(self, program: Program, donated: Sequence[int]) -> Native:
        self.given.append(program)
        return Native(lambda arguments: [np.zeros(atom.aval.shape) for atom in program.outputs])


@pytest.fixture
def zeros(backend: Callable[..., Costs]) -> Zeros:
    return Zeros(backend)


# ---- tiers -----------------------------------------------------------------------------------------------------------


def test_cold_programs_are_interpreted_and_hot_ones_compiled(zeros: Zeros) -> None:
    program = TieredProgram(example())
    for _ in range(3):
        assert_array_equal(program.executor()([X])[0], np.sin(X) * X)
    assert zeros.given == []
    zeros.costs(program=0.0)
    assert_array_equal(program.executor()([X])[0], np.zeros(3))
    assert_array_equal(program.executor()([X])[0], np.zeros(3))
    assert len(zeros.given) == 1


@pytest.mark.usefixtures("by_time")
def test_a_slow_program_is_compiled_when_it_has_cost_as_much(zeros: Zeros) -> None:
    program = TieredProgram(slow())
    zeros.costs(program=6 * SECONDS)
    program.executor()([X])
    assert zeros.given == []
    for _ in range(5):
        program.executor()([X])
    assert_array_equal(program.executor()([X])[0], np.zeros(3))
    assert len(zeros.given) == 1


def test_eager_means_at_once(zeros: Zeros) -> None:
    program = TieredProgram(example())
    assert_array_equal(program.executor(eager=True)([X])[0], np.zeros(3))
    assert zeros.given == [program.simplified]


# ---- the background --------------------------------------------------------------------------------------------------


class Compiler:
    """A compiler that makes code which returns zeros, as soon as it may; or raises an error."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.given: list[Program] = []
        self.settings: list[fnad.config.Settings] = []
        self.error: BaseException | None = None
        self.costs: Costs = lambda **_: None

    def compile_program(self, program: Program, donated: Sequence[int]) -> Native:
        self.given.append(program)
        self.settings.append(fnad.config.current())
        self.begun.set()
        assert self.may_end.wait(60)
        if self.error is not None:
            raise self.error
        native = Native(lambda arguments: [np.zeros(atom.aval.shape) for atom in program.outputs])
        native.is_alone = False  # or the programs of later tests would be compiled later
        return native


@pytest.fixture
def compiler(backend: Callable[..., Costs], compiled_in_background: None) -> Iterator[Compiler]:
    """Have programs compiled in the background, by a compiler that waits."""
    made = Compiler()
    made.costs = backend(made.compile_program)
    yield made
    made.may_end.set()
    BACKGROUND.wait()


def wait_until(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


def result(program: TieredProgram) -> float:
    """The sum of the results of a call that finds the program hot."""
    return float(program.executor(eager=True)([X])[0].sum())


EXPECTED = float(np.sum(np.sin(X) * X))


def test_calls_go_on_while_the_background_compiles(compiler: Compiler) -> None:
    program = TieredProgram(example())
    for _ in range(3):
        assert result(program) == EXPECTED
    assert compiler.begun.wait(60)
    assert BACKGROUND.compiles(program)
    assert result(program) == EXPECTED
    compiler.may_end.set()
    wait_until(lambda: program.is_native)
    assert result(program) == 0.0
    assert len(compiler.given) == 1
    BACKGROUND.wait()
    assert not BACKGROUND.compiles(program)


def test_calls_interpret_a_program_as_it_is_until_the_background_has_simplified_it(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    simplifies, threads = threading.Event(), set[str]()

    def slowly(program: Program) -> Program:
        threads.add(threading.current_thread().name)
        assert simplifies.wait(60)
        return simplify(program)

    monkeypatch.setattr("fnad.backends.tiers.simplify", slowly)
    program = TieredProgram(example())
    for _ in range(3):
        assert result(program) == EXPECTED
    simplifies.set()
    assert compiler.begun.wait(60)
    assert result(program) == EXPECTED
    assert threads == {"fnad compiler"}


@pytest.mark.usefixtures("by_time")
def test_a_call_waits_for_what_takes_at_most_as_long_as_two_calls(compiler: Compiler) -> None:
    for cost, expected in ((1e3 * SECONDS, EXPECTED), (SECONDS, 0.0)):
        compiler.costs(program=cost, lowered=cost)
        program = TieredProgram(slow())
        program.executor()([X])
        assert result(program) == expected
        compiler.may_end.set()
        BACKGROUND.wait()


def test_an_error_of_the_compiler_is_raised_by_the_next_call(compiler: Compiler) -> None:
    compiler.error = ZeroDivisionError("in the compiler")
    compiler.may_end.set()
    program = TieredProgram(example())
    assert result(program) == EXPECTED
    wait_until(lambda: not BACKGROUND.compiles(program))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="in the compiler"):
            result(program)
    compiler.error = None
    assert result(program) == 0.0


def test_what_cannot_be_lowered_is_tried_once_in_the_background(compiler: Compiler) -> None:
    compiler.error = LoweringError("no loops for this")
    compiler.may_end.set()
    program = TieredProgram(example())
    for _ in range(3):
        assert result(program) == EXPECTED
        wait_until(lambda: not BACKGROUND.compiles(program))
    assert len(compiler.given) == 1


def test_programs_wait_in_order_and_not_if_nothing_refers_to_them(compiler: Compiler) -> None:
    first, forgotten, last = (TieredProgram(example(name)) for name in ("first", "forgotten", "last"))
    for program in (first, forgotten, last):
        assert result(program) == EXPECTED
    assert compiler.begun.wait(60)
    del forgotten, program
    compiler.may_end.set()
    wait_until(lambda: last.is_native)
    assert [program.name for program in compiler.given] == ["first", "last"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_waits_is_compiled_though_the_thread_ended(compiler: Compiler) -> None:
    compiler.error = SystemExit()
    first, last = TieredProgram(example("first")), TieredProgram(example("last"))
    result(first)
    result(last)
    compiler.may_end.set()
    BACKGROUND.wait()
    compiler.error = None
    assert BACKGROUND.compiles(last)
    result(last)
    wait_until(lambda: last.is_native)


def test_the_background_compiles_by_the_settings_of_the_call(compiler: Compiler) -> None:
    compiler.may_end.set()
    program = TieredProgram(example())
    with fnad.config.override(disk_cache_bytes=12345):
        result(program)
    wait_until(lambda: program.is_native)
    assert compiler.settings[0].disk_cache_bytes == 12345


def test_who_wants_native_code_waits_for_the_background(compiler: Compiler) -> None:
    program = TieredProgram(example())
    result(program)
    assert compiler.begun.wait(60)
    threading.Timer(0.1, compiler.may_end.set).start()
    assert program.native() is not None
    assert len(compiler.given) == 1


def test_one_thread_compiles_for_all(compiler: Compiler) -> None:
    programs = [TieredProgram(example(str(number))) for number in range(3)]
    threads = [threading.Thread(target=result, args=(programs[number % 3],)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    compiler.may_end.set()
    wait_until(lambda: all(program.is_native for program in programs))
    assert sorted(program.name for program in compiler.given) == ["0", "1", "2"]


def test_the_executor_setting_decides_before_tiers(zeros: Zeros) -> None:
    program = TieredProgram(example())
    with fnad.config.override(executor="interpreter"):
        assert_array_equal(program.executor(eager=True)([X])[0], np.sin(X) * X)
        with fnad.config.override(executor="compiled"):
            assert_array_equal(program.executor()([X])[0], np.zeros(3))
        assert_array_equal(program.executor()([X])[0], np.sin(X) * X)
    assert len(zeros.given) == 1


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


def test_what_cannot_be_lowered_is_interpreted(backend: Callable[..., Costs]) -> None:
    attempts: list[Program] = []

    def refuse(program: Program, donated: Sequence[int]) -> Any:
        attempts.append(program)
        raise LoweringError("no loops for this")

    backend(refuse)
    program = TieredProgram(example())
    for _ in range(3):
        assert_array_equal(program.executor(eager=True)([X])[0], np.sin(X) * X)
    assert len(attempts) == 1


@pytest.mark.usefixtures("by_time", "compiled_in_background")
def test_a_loop_with_effects_is_not_run_again_from_its_start(backend: Callable[..., Costs]) -> None:
    """The interpreter gives up a loop that takes long, but not after effects, which would happen twice."""
    backend(compile_program)(program=0.01)
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


@pytest.mark.usefixtures("by_weight")
def test_only_the_first_sizes_with_code_of_their_own_are_compiled_at_their_second_call(zeros: Zeros) -> None:
    f = fnad.jit(lambda x: np.sin(x) * x + 0.375)
    for n in range(1, 8):
        x = np.arange(1.0, 1.0 + n)
        assert_array_equal(f(x), np.sin(x) * x + 0.375)
        assert_array_equal(f(x), np.zeros(n) if n <= 3 else np.sin(x) * x + 0.375)
    assert [program.inputs[0].aval.shape for program in zeros.given] == [(1,), (2,), (3,)]
    zeros.costs(program=0.0)
    assert_array_equal(f(np.ones(7)), np.zeros(7))  # it is hot


@pytest.mark.usefixtures("by_weight")
def test_sizes_that_share_code_are_all_compiled_when_they_come_again(
    zeros: Zeros, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Native, "is_alone", False)
    f = fnad.jit(lambda x: np.sin(x) * x + 0.875)
    for n in range(1, 8):
        x = np.arange(1.0, 1.0 + n)
        assert_array_equal(f(x), np.sin(x) * x + 0.875)
        assert_array_equal(f(x), np.zeros(n))
    assert len(zeros.given) == 7


@pytest.mark.usefixtures("by_weight")
def test_a_loop_that_is_known_to_be_long_is_not_interpreted_for_a_time_first(zeros: Zeros) -> None:
    zeros.costs(program=0.003)

    def f(x: Any) -> Any:
        return fnad.scan(lambda c, row: (np.sin(c) * row, None), 0.5, x)[0]

    short, long = (fnad.make_program(f)(np.ones(n)).program for n in (4, 100_000))
    assert not TieredProgram(short).is_heavy
    assert TieredProgram(long).is_heavy
    assert steps(lambda: fnad.jit(f)(np.ones(100_000))) < 100_000
    assert len(zeros.given) == 1


@pytest.mark.usefixtures("by_weight")
def test_what_shares_code_is_expected_to_cost_little(zeros: Zeros, monkeypatch: pytest.MonkeyPatch) -> None:
    def program(n: int) -> TieredProgram:
        return TieredProgram(trace(lambda x: [mul(sin(x), sin(mul(x, x)))], Aval(F64, (n,))))

    zeros.costs(program=0.5, equation=0.25, lowered=1e-9)
    first, second, third = program(10), program(20), program(10_000)
    for each, is_alone in ((first, True), (second, False)):
        assert each.expected_cost() == 0.5 + 4 * 0.25
        assert not third.is_heavy
        monkeypatch.setattr(Native, "is_alone", is_alone)
        each.native()
    assert third.expected_cost() == 4e-9
    assert third.is_heavy


def test_threads_that_want_it_compiled_wait_for_one(zeros: Zeros) -> None:
    program = TieredProgram(example())
    threads = [threading.Thread(target=lambda: program.executor(eager=True)([X])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(zeros.given) == 1


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


@pytest.mark.slow
def test_gradients_of_fresh_closures_take_no_more_steps_the_more_there_were() -> None:
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
    with fnad.config.override(executor="interpreter"):  # when it is compiled depends on the time that was spent
        some(0, 4)  # among them gradient(X, 2.0), which is the program of all gradient(array, 2.0)
        early = steps(lambda: some(4, 20))
        some(20, 200)
        late = min(steps(lambda n=n: some(n, n + 16)) for n in (200, 216, 232))  # all are weighed from time to time
        assert late <= 1.05 * early


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


def test_the_backend_of_the_settings_compiles(backend: Callable[..., Costs]) -> None:
    costs = backend(lambda program, donated: Native(lambda arguments: [2 * argument for argument in arguments]))
    costs(setup=1e9, program=0.5, equation=0.25)
    program = TieredProgram(example())
    assert program.expected_cost() == 0.5 + 2 * 0.25
    assert_array_equal(program.executor(eager=True)([X])[0], 2 * X)


def test_what_loading_a_backend_costs_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "cpu", Backend("no_such_backend", setup=3.0, program=0.5, equation=0.0))
    assert TieredProgram(example()).expected_cost() == 3.5


def test_loops_of_their_own_cost_more_than_what_joins_those_of_others(zeros: Zeros) -> None:
    zeros.costs(program=0.5, equation=0.25, loop=10.0)
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
