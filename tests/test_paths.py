"""The paths of compiled functions: when one is traced, compiled and run, and how many there may be."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fnad
from fnad import config, errors, grad, jit, value_and_grad
from fnad.api.running import paths as paths_module
from fnad.backends.cpu import executor as native
from fnad.backends.tiers import TieredProgram
from fnad.errors import PathsWarning, TracerEscapeError

Counted = tuple[Callable[..., Any], list[str]]
SCALE, OFFSET = 2.0, 1.0


def counted(f: Callable[..., Any]) -> Counted:
    """Return a function and the list that grows each time Python runs it."""
    calls: list[str] = []

    def run(*args: Any) -> Any:
        calls.append("run")
        return f(*args)

    return run, calls


def newton(a: Any) -> Any:
    s = 2.0
    while abs(s * s - a) > 1e-12:
        s = 0.5 * (s + a / s)
    return s


def piecewise(x: Any) -> Any:
    if x > 1:
        return x * x
    return x**3


@pytest.fixture
def _by_weight(by_weight: None) -> None:
    """Have functions compiled when they are outside of the tests: at their second call, and at the first if heavy."""
    fnad.clear_cache()  # with the programs of other tests, whose sizes are known


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list that grows with each program that is compiled."""
    compiled: list[str] = []
    compile_program = native.compile_program

    def compile_counted(program: Any, *others: Any) -> Any:
        compiled.append(program.name)
        return compile_program(program, *others)

    monkeypatch.setattr(native, "compile_program", compile_counted)
    return compiled


# ---- when a path is traced, and when it is compiled ------------------------------------------------------------------


def test_alternating_neither_traces_nor_compiles(compilations: list[str]) -> None:
    run, calls = counted(lambda x: x * x * 1.25 if x > 1 else x**3 * 1.25)
    f = jit(value_and_grad(run))
    f(2.0)
    f(0.5)
    f(3.0)
    assert (len(calls), len(compilations)) == (2, 0)  # nobody waits for the compiler
    for x in (0.25, 3.0, 0.25):
        f(x)
    assert (len(calls), len(compilations)) == (2, 2)
    for x in (2.0, 0.5) * 10:
        assert f(x) == ((1.25 * x * x, 2.5 * x) if x > 1 else (1.25 * x**3, 3.75 * x * x))
    assert (len(calls), len(compilations)) == (2, 2)


@pytest.mark.usefixtures("_by_weight")
def test_a_function_without_decisions_is_compiled_at_its_second_call(compilations: list[str]) -> None:
    """A fit that calls a Hessian once, at its end, took most of its time to compile that."""
    compiled = jit(lambda x: x * 1.125)
    assert (compiled(2.0), compilations) == (2.25, [])
    assert (compiled(2.0), len(compilations)) == (2.25, 1)
    assert (compiled(2.0), len(compilations)) == (2.25, 1)


@pytest.mark.usefixtures("_by_weight")
def test_one_that_is_made_anew_each_time_is_interpreted(compilations: list[str]) -> None:
    for _ in range(4):
        assert jit(lambda x: x * 1.1875)(2.0) == 2.375
    assert compilations == []


@pytest.mark.usefixtures("_by_weight")
def test_what_takes_longer_to_interpret_than_to_compile_is_compiled_at_once(compilations: list[str]) -> None:
    jit(lambda x: np.sum(np.full(100_000_000, x) * 1.125))(2.0)
    assert len(compilations) == 1


@pytest.mark.usefixtures("_by_weight", "by_time")
def test_a_loop_that_takes_long_is_given_up_and_compiled(
    compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TieredProgram, "expected_cost", lambda self: 0.01)
    assert jit(lambda x: fnad.fori_loop(0, 1_000_000, lambda i, c: c + 1.0, x))(0.5) == 1_000_000.5
    assert len(compilations) == 1


def test_all_can_be_compiled_before_it_is_called(compilations: list[str]) -> None:
    jit(lambda x: x * 1.21875).lower(2.0).compile()
    assert len(compilations) == 1


def test_a_path_that_was_just_traced_is_interpreted(compilations: list[str]) -> None:
    def root(a: Any, s: Any = 2.0) -> Any:
        return s if abs(s * s - a) < 1e-12 * a else root(a, 0.5 * (s + a / s))

    f = jit(grad(root))
    for a in (9.0, 1e4, 1e6):
        assert f(a) == pytest.approx(0.5 / np.sqrt(a))
    assert compilations == []


def test_the_setting_compiled_compiles_at_once(compilations: list[str]) -> None:
    with config.override(executor="compiled"):
        assert jit(lambda x: x * 1.0625 if x > 0 else -x)(2.0) == 2.125
    assert len(compilations) == 1


@pytest.mark.parametrize("executor", ["interpreter", "auto", "compiled"])
def test_many_paths_in_any_order(executor: Any) -> None:
    run, calls = counted(newton)
    f = jit(value_and_grad(run))
    starts = [4.1, 4.5, 9.0, 100.0, 1e-3, 3.0]
    with config.override(executor=executor):
        for a in starts:
            assert_allclose(f(a), (np.sqrt(a), 0.5 / np.sqrt(a)))
        traced = len(calls)
        assert traced <= len(starts)
        for a in np.random.default_rng(0).permutation(starts * 5).tolist():
            assert_allclose(f(a), (np.sqrt(a), 0.5 / np.sqrt(a)))
    assert len(calls) == traced


def test_nested_transforms_and_compiled_functions_inside() -> None:
    inner = jit(newton)
    for f in (grad(inner), jit(grad(inner)), jit(grad(lambda a: inner(a) * 1.0))):
        for a in (9.0, 4.1, 9.0, 4.1, 4.1, 9.0):
            assert f(a) == pytest.approx(0.5 / np.sqrt(a))
    second = jit(grad(grad(inner)))
    for a in (9.0, 4.1, 9.0, 4.1, 4.1):
        assert second(a) == pytest.approx(-0.25 * a**-1.5)
    assert len(second.paths()) == 2


def test_an_inner_function_decides_by_values_from_around_it() -> None:
    def f(x: Any, y: Any) -> Any:
        return grad(lambda z: z * z * y if x > 1 and z * y > 1 else z * x)(y)

    compiled = jit(f)
    for _ in range(3):
        for x, y in ((2.0, 3.0), (2.0, 0.5), (0.5, 3.0)):
            assert compiled(x, y) == f(x, y) == (2 * y * y if x > 1 and y * y > 1 else x)
    assert len(compiled.paths()) == 3
    assert jit(grad(f, 1))(2.0, 3.0) == 12


def test_an_inner_transform_of_numbers() -> None:
    def f(x: Any) -> Any:
        return x * grad(lambda y: y * y if y > 1 else y)(np.array(3.0)) * grad(piecewise)(2.0)

    assert jit(f)(2.0) == 2 * 6 * 4
    assert len(jit(f).paths()) == 0


def test_what_is_computed_again_decides_alike() -> None:
    f = jit(grad(fnad.checkpoint(lambda x: x * newton(x) if x > 5 else piecewise(x))))
    for _ in range(3):
        for x in (9.0, 2.0, 0.5, 100.0):
            assert f(x) == pytest.approx(1.5 * np.sqrt(x) if x > 5 else 2 * x if x > 1 else 3 * x * x)
    assert len(f.paths()) == 4


# ---- integers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [int, np.int8, np.uint8, np.int64, np.uint64, np.float32, float, bool])
def test_integers_of_any_dtype_that_are_decided_on_have_paths(kind: Any) -> None:
    def f(n: Any, x: Any) -> Any:
        total = x
        for k in range(int(n)):
            total = total * x + k
        return total * [1.0, 2.0, 3.0, 4.0][int(n)]

    compiled = jit(value_and_grad(f, 1))
    for n in (kind(0), kind(1), kind(3), kind(1), kind(0), kind(3)):
        assert compiled(n, 1.5) == value_and_grad(f, 1)(n, 1.5)
        assert compiled(n, 1.5)[0] == f(n, 1.5)


def test_an_integer_is_an_index_and_a_bound_as_it_is() -> None:
    def f(n: Any, x: Any) -> Any:
        return sum(x * k for k in range(n)) + [x, x * x, x**3][n] + "abc".index("abc"[n]) + divmod(n, 2)[1]

    compiled = jit(f)
    for n in (0, 2, 1, 2, 0, np.int32(1)):
        assert compiled(n, 1.5) == f(n, 1.5)


def test_rounding_to_integers() -> None:
    import math  # noqa: PLC0415

    for rounding in (int, round, math.floor, math.ceil, math.trunc):
        f = lambda x: x * rounding(x)  # noqa: B023, E731
        for x in (1.5, -1.5, 2.5, 2.4, -0.2):
            assert jit(f)(x) == f(x)
            assert grad(f)(x) == rounding(x)


def test_numbers_that_are_no_integers() -> None:
    f = jit(lambda x: x * int(x))
    assert f(2.5) == 5
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        f(np.nan)
    with pytest.raises(OverflowError):
        f(np.inf)
    for large in (1e300, 2.0**63, -(2.0**63)):
        with pytest.raises(errors.IntegerRangeError, match="too large for i64"):
            f(large)
    assert f(2.5) == 5
    assert jit(lambda x: float(int(x)) * x)(2.0**63 - 1024) == (2.0**63 - 1024) ** 2
    large = jit(lambda n, x: x * (int(n) - 2**63))
    for n in (np.uint64(2**63 + 5), np.uint64(2**63), np.uint64(2**63 + 5)):
        assert large(n, 1.5) == 1.5 * (int(n) - 2**63)


@pytest.mark.parametrize("asked", [range, lambda x: [1, 2][x]])
def test_floats_are_no_index(asked: Any) -> None:
    with pytest.raises(TypeError):
        jit(asked)(1.0)


# ---- truth -----------------------------------------------------------------------------------------------------------


def test_the_truth_of_arrays() -> None:
    f = jit(lambda x: np.sum(x) if x[:1] else -np.sum(x))
    assert (f(np.array([1.0, 2.0])), f(np.array([0.0, 2.0]))) == (3, -2)
    assert (jit(lambda x: 2 * x if x else 5.0)(np.nan) is not None, jit(lambda x: 1 if x else 2)(0j)) == (True, 2)

    def several(x: Any) -> Any:
        if x > 1:
            return x
        return -x

    line = several.__code__.co_firstlineno + 1
    for x, words in (
        (np.ones(2), "an array with more than one element is ambiguous. Use a.any() or a.all()"),
        (np.ones(0), "an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty."),
    ):
        with pytest.raises(ValueError, match="truth value") as raised:
            jit(several)(x)
        first, place, _ = str(raised.value).split("\n")
        assert first == f"The truth value of {words}"
        assert place == f"  at test_paths.py:{line} in several:  if x > 1:"
        with pytest.raises(ValueError, match="truth value") as numpys:
            several(x)
        assert first == str(numpys.value)


def test_floats_and_items_have_no_guards() -> None:
    for asked in (float, lambda x: x.item(), complex, lambda x: x.tolist()):
        compiled = jit(asked)
        assert compiled(np.float64(2.0)) == 2.0
        assert compiled(np.float64(3.0)) == 3.0
        assert "None" not in str(compiled.paths())
        assert "\n    " not in str(compiled.paths())


def test_the_body_of_a_loop_has_no_numbers() -> None:
    def f(x: Any) -> Any:
        return fnad.fori_loop(0, 3, lambda k, y: y * 2 if y > 1 else y, x)

    for transformed in (f, jit(f), grad(f)):
        with pytest.raises(TracerEscapeError) as raised:
            transformed(2.0)
        assert "asked for its truth value" in str(raised.value)
        assert f"test_paths.py:{f.__code__.co_firstlineno + 1} in <lambda>" in str(raised.value)
        assert "fnad.cond or np.where, repeat with fnad.while_loop or fnad.fori_loop" in str(raised.value)


def test_the_body_of_a_loop_decides_by_what_is_around_it() -> None:
    def f(x: Any, n: Any) -> Any:
        return fnad.fori_loop(0, 3, lambda k, y: y * x if x * x > n else y + x, x)

    compiled = jit(value_and_grad(f))
    for x in (2.0, 0.5, 2.0, 0.5):
        assert compiled(x, 1) == ((x**4, 4 * x**3) if x > 1 else (4 * x, 4))
    assert len(compiled.paths()) == 2


# ---- what another path would have done -------------------------------------------------------------------------------


@pytest.mark.parametrize("executor", ["interpreter", "auto", "compiled"])
def test_a_run_ends_at_its_guard(executor: Any) -> None:
    """What would fail behind a guard of the path that is tried first does not."""

    def f(x: Any) -> Any:
        if np.all(np.linalg.eigvalsh(x) > 0):
            return np.sum(np.linalg.inv(x)) + np.linalg.cholesky(x)[0, 0]
        return np.sum(x)

    good, bad = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1.0, 1.0], [1.0, 1.0]])
    compiled = jit(f)
    with config.override(executor=executor):
        for _ in range(3):
            assert compiled(good) == pytest.approx(f(good))
            assert compiled(bad) == 4


@pytest.mark.parametrize("executor", ["interpreter", "auto", "compiled"])
def test_an_index_out_of_range_on_the_other_path(executor: Any) -> None:
    def f(i: Any, x: Any) -> Any:
        if i < 3:
            return x[i]
        return np.sum(x)

    compiled, x = jit(f), np.array([1.0, 2.0, 3.0])
    with config.override(executor=executor):
        for i in (0, 7, 1, 8, 2, 7):
            assert compiled(i, x) == f(i, x)
        with pytest.raises(IndexError, match=r"test_paths\.py"):
            compiled(-4, x)
        assert compiled(7, x) == 6


def test_long_programs_end_early_too() -> None:
    def f(x: Any) -> Any:
        for k in range(60):
            x = np.cumsum(np.sin(x[::-1])) + k
            if k % 20 == 5 and x[0] > 1000:
                return np.sum(x) * 0
        return np.sum(x)

    compiled = jit(f)
    for x in (np.ones(4), np.array([np.nan, 1, 1, 1]), np.ones(4) * 2, np.ones(4)):
        assert_allclose(compiled(x), f(x))


def test_exceptions_leave_the_paths_as_they_were() -> None:
    def f(x: Any) -> Any:
        if x < 0:
            raise ValueError("negative")
        return np.sqrt(x)

    compiled = jit(f)
    for _ in range(2):
        assert compiled(4.0) == 2
        with pytest.raises(ValueError, match="negative"):
            compiled(-1.0)
    assert len(compiled.paths()) == 1


@pytest.mark.parametrize("executor", ["interpreter", "auto", "compiled"])
def test_effects_happen_once(executor: Any) -> None:
    """A path that is tried in vain calls nobody."""
    seen: list[float] = []

    def f(x: Any) -> Any:
        fnad.callback(lambda v: seen.append(float(v)), x)
        if x > 1:
            return x * 2
        fnad.callback(lambda v: seen.append(float(v)), -x)
        return x

    compiled = jit(f)
    with config.override(executor=executor):
        for x in (2.0, 0.5, 2.0, 0.5, 2.0, 2.0, 0.5, 0.5, 2.0):
            assert compiled(x) == (2 * x if x > 1 else x)
            assert seen == ([x] if x > 1 else [x, -x])
            seen.clear()


@pytest.mark.parametrize("executor", ["interpreter", "auto", "compiled"])
def test_an_error_repeats_no_effect(executor: Any) -> None:
    seen: list[int] = []

    def f(i: Any, x: Any) -> Any:
        fnad.callback(lambda i: seen.append(int(i)), i)
        return x[i] if x[0] > 0 else x[0]

    compiled = jit(f)
    with config.override(executor=executor):
        for i in (1, 2, 1, 0):
            assert compiled(i, np.ones(3)) == 1
        seen.clear()
        with pytest.raises(IndexError, match=r"test_paths\.py"):
            compiled(7, np.ones(3))
    assert seen == [7]


def test_a_loop_on_a_path_is_not_interpreted_for_long() -> None:
    def f(x: Any) -> Any:
        if x > 0:
            return fnad.fori_loop(0, 3_000_000, lambda k, y: y * 0.999999 + x * 1e-6, x)
        return x

    assert jit(f)(1.0) == pytest.approx(1.0)


# ---- what is read from outside ---------------------------------------------------------------------------------------


def test_a_global_of_one_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    def scaled(x: Any) -> Any:
        return x * SCALE

    run, calls = counted(lambda x: scaled(x) if x > 1 else x)
    f = jit(run)
    for _ in range(2):
        assert (f(2.0), f(0.5)) == (4, 0.5)
    assert len(calls) == 2
    monkeypatch.setattr("tests.test_paths.SCALE", 3.0)
    assert (f(0.5), f(2.0), f(0.5), f(2.0)) == (0.5, 6, 0.5, 6)
    monkeypatch.setattr("tests.test_paths.SCALE", 2.0)
    traced = len(calls)
    assert (f(0.5), f(2.0)) == (0.5, 4)
    assert len(calls) == traced


def test_a_captured_array_that_changes() -> None:
    table = np.array([1.0, 5.0])

    def f(x: Any) -> Any:
        return x * table[0] if x > table[1] else x + table[0]

    compiled = jit(f)
    for _ in range(2):
        assert (compiled(6.0), compiled(2.0)) == (6, 3)
    table[:] = 2.0, 1.0
    for _ in range(2):
        assert (compiled(6.0), compiled(2.0), compiled(0.5)) == (12, 4, 2.5)


# ---- rounding --------------------------------------------------------------------------------------------------------


def test_native_code_may_find_another_answer() -> None:
    """Near the point where an answer changes NumPy and native code differ; each result is that of a consistent run."""

    def f(x: Any) -> Any:
        y = x * x - 1.0 / 3.0 * x * 3.0 * x  # 0 up to rounding
        return np.sum(x) + (10.0 if np.sum(y) > 0 else 20.0)

    compiled, run = jit(f), np.random.default_rng(5)
    xs = [run.normal(size=5) for _ in range(40)]
    for _ in range(4):
        for x in xs:
            assert min(abs(compiled(x) - np.sum(x) - 10.0), abs(compiled(x) - np.sum(x) - 20.0)) < 1e-12


def test_a_fallback_takes_over_where_native_code_answers_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    run, calls = counted(lambda x: x * 2.0 if x > 1 else x * 3.0)
    f = jit(run)
    assert (f(2.0), f(2.0)) == (4, 4)
    (path,) = next(iter(f.paths.__self__._paths.values())).known  # type: ignore[attr-defined]

    def contrary(**_: Any) -> Any:
        def fail(_: Any) -> Any:
            raise errors.GuardFailed(0, 0)

        return fail

    monkeypatch.setattr(path.programs[0], "executor", contrary)
    monkeypatch.setattr(path.programs[0], "ready", contrary)
    assert (f(2.0), f(2.0), f(3.0)) == (4, 4, 6)
    assert len(calls) == 2, "the fallback is traced once"
    assert (f(0.5), f(0.5), f(2.0), f(0.5)) == (1.5, 1.5, 4, 1.5)
    assert len(calls) <= 4


# ---- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_paths_are_found_in_several_threads_at_once() -> None:
    f = jit(value_and_grad(newton))
    starts = [4.1, 9.0, 100.0, 1e-3]
    failures: list[BaseException] = []
    barrier = threading.Barrier(4)

    def work(seed: int) -> None:
        try:
            barrier.wait()
            for a in np.random.default_rng(seed).permutation(starts * 25).tolist():
                assert_allclose(f(a), (np.sqrt(a), 0.5 / np.sqrt(a)))
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    found = f.paths()
    assert len({path.decisions for path in found}) == len(found), "a path is kept once"
    assert len(found) <= len(starts)


# ---- too many --------------------------------------------------------------------------------------------------------


def many(n: Any, x: Any) -> Any:
    parts = {}
    for i in range(n):
        parts[i] = x
    return sum(parts.values())


def deep(x: Any) -> Any:
    parts = {0: 0.0}
    while x > 1:
        x = x - 1
        parts[len(parts)] = x
    return sum(parts.values())


def pattern(x: Any) -> Any:
    return sum({i: v if v > 0 else -2 * v for i, v in enumerate(x)}.values())


@pytest.mark.parametrize(
    ("f", "arguments", "line", "remedy"),
    [
        (many, [(n, 1.5) for n in range(9)], 2, "repeat with fnad.fori_loop or fnad.scan; to read an array at a"),
        (deep, [(n + 0.5,) for n in range(9)], 2, "repeat with fnad.while_loop"),
        (pattern, [(np.array([n & 1, n & 2, n & 4, n & 8]) - 0.5,) for n in range(16)], 1, "fnad.cond or np.where"),
    ],
)
def test_too_many_paths(monkeypatch: pytest.MonkeyPatch, f: Any, arguments: Any, line: int, remedy: str) -> None:
    monkeypatch.setattr(paths_module, "MOST", 4)
    run, calls = counted(f)
    compiled = jit(run)
    with config.override(executor="interpreter"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            for args in arguments:
                assert compiled(*args) == f(*args)
    (warning,) = caught
    assert warning.category is PathsWarning
    assert warning.filename == __file__
    first, place, advice = str(warning.message).split("\n")
    assert first == "run takes more than 4 paths, most of which part at"
    assert f"test_paths.py:{f.__code__.co_firstlineno + line} in {f.__name__}" in place or f is pattern
    assert advice.startswith("  further ones are traced at each call and interpreted: ")
    assert remedy in advice
    assert len(compiled.paths()) == 4
    assert len(calls) == 2 * len(arguments) - 4, "those that are known are not traced again"


# ---- what the user sees ----------------------------------------------------------------------------------------------


def test_paths_are_listed_with_their_decisions_and_lines() -> None:
    f = jit(grad(piecewise))
    assert str(f.paths()) == repr(f.paths()) == "0 paths"
    for x in (2.0, 0.5, 3.0, 4.0, np.float32(2.0)):
        f(x)
    line = piecewise.__code__.co_firstlineno + 1
    place = f"test_paths.py:{line} in piecewise:  if x > 1:"
    assert str(f.paths()).split("\n") == [
        "3 paths",
        "  1. (f64[])  ran 3 times, compiled",
        f"     {place}  -> True",
        "  2. (f64[])  ran 1 time, interpreted",
        f"     {place}  -> False",
        "  3. (f32[])  ran 1 time, interpreted",
        f"     {place}  -> True",
    ]
    first, second, _ = f.paths()
    assert (first.arguments, first.runs, first.is_compiled) == (("f64[]",), 3, True)
    assert [(d.source.line, d.answer) for d in second.decisions] == [(line, False)]


def test_listing_of_a_loop_counts() -> None:
    f = jit(newton)
    with config.override(executor="interpreter"):
        f(4.1)
        f(np.array(9.0))
    assert str(f.paths()).split("\n")[2].endswith("while abs(s * s - a) > 1e-12:  -> True x 3, False")
    assert str(f.paths()).split("\n")[0] == "2 paths"


def test_listing_of_a_function_without_decisions() -> None:
    f = jit(lambda x, y: x + y)
    f(1.0, np.ones(3))
    assert str(f.paths()) == "1 path\n  1. (f64[], f64[3])  ran 1 time, compiled"


def test_paths_are_drawn_as_a_tree() -> None:
    f = jit(piecewise)
    for x in (2.0, 0.5, 3.0, np.float32(2.0)):
        f(x)
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    assert f.paths().plot(axes) is axes
    place = f"test_paths.py:{piecewise.__code__.co_firstlineno + 1}"
    how = ["compiled" if path.is_compiled else "interpreted" for path in f.paths()]
    assert sorted(text.get_text() for text in axes.texts) == sorted(
        [
            "(f32[])",
            "(f64[])",
            f"{place}\n-> True\nran 2 times, {how[0]}",
            f"{place}\n-> False\nran 1 time, {how[1]}",
            f"{place}\n-> True\nran 1 time, {how[2]}",
        ]
    )
    widths = [line.get_linewidth() for line in axes.lines]
    assert len(widths) == 3
    assert max(widths) > min(widths)
    with warnings.catch_warnings(action="error"):
        jit(np.sin).paths().plot(pytest.importorskip("matplotlib.figure").Figure().subplots())
