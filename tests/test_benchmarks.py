"""The benchmarks' own logic: what agrees is timed, what differs, fails or is missing becomes a row that says so."""

import gc
import subprocess
import sys
from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fnad
from benchmarks import calls, gpu, native, report, session, table
from benchmarks.calls import Call
from benchmarks.case import Case
from benchmarks.measure import Row, difference, leaves, rows
from benchmarks.problems import checkpoint, early, lorenz, odeint, operations, rnn, while_loops
from benchmarks.processes import Process
from tests.gpu import simulated

PEERS = {"numpy", "autograd"}


@pytest.fixture(autouse=True)
def _older_objects_stay_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no collection look through all tests, which are left out of it."""
    monkeypatch.setattr("benchmarks.measure.gc", SimpleNamespace(**vars(gc) | {"unfreeze": lambda: None}))


def returning(value: Any) -> Callable[[Any], Callable[[], Any]]:
    return lambda module: lambda: value


def measured(*contenders: Call | Process, tolerance: float = 0.0) -> list[Row]:
    return list(rows("problem", Case("case", contenders, tolerance), PEERS, rounds=2))


class Clock:
    """The clock of the stopwatch, on which only calls take time."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def taking(self, *seconds: float) -> Callable[[Any], Callable[[], float]]:
        """Make a call that takes so long, one after the other, and then always as long as the last."""
        times = chain(seconds, repeat(seconds[-1]))

        def run() -> float:
            self.now += next(times)
            return 1.0

        return lambda module: run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(calls, "time", made)
    return made


def test_contenders_that_agree_are_timed_relative_to_the_first(clock: Clock) -> None:
    first, second = measured(Call("a", "numpy", clock.taking(0.001)), Call("b", "numpy", clock.taking(0.003)))
    assert first.ratio == 1.0
    assert second.ratio == pytest.approx(3.0)
    assert not first.failed


@pytest.mark.slow
def test_early_calls_are_timed_from_before_the_import(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("one", [Call("a", "fnad", clock.taking(0.5, 0.001)), Call("b", "jax", clock.taking(1.0))])
    monkeypatch.setattr(early, "first_case", lambda name: case)
    monkeypatch.setattr(early, "time", clock)
    found = early.calls("problem", "fnad", 3)
    assert found["seconds"] == pytest.approx(0.502)
    assert found["note"] == "0.00 s before the first call; call 1 took the longest, 0.500 s"
    late = early.calls("problem", "fnad", 10_000)
    assert late["seconds"] == pytest.approx(10.0)  # of which 7 are not spent
    assert clock.now < 4


def test_a_second_call_that_compiles_is_told_and_not_counted(clock: Clock) -> None:
    stopwatch = Call("a", "numpy", clock.taking(0.001, 0.02, 0.001)).start()
    assert stopwatch.first().note == "second call 0.02 s"
    assert stopwatch.calls == 8  # of 5 ms in all, though the second call alone took as long


def test_a_later_call_that_compiles_does_not_make_batches_short(clock: Clock) -> None:
    stopwatch = Call("a", "numpy", clock.taking(0.001, 0.001, 0.001, 0.001, 0.02, 0.001)).start()
    stopwatch.first()
    assert stopwatch.calls == 8


def test_a_sample_is_taken_after_as_many_calls(clock: Clock) -> None:
    slow_after_other_work = [0.009] * 8
    stopwatch = Call("a", "numpy", clock.taking(*[0.001] * 32, *slow_after_other_work, 0.001)).start()
    stopwatch.first()
    assert stopwatch.sample() == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("theirs", "fault"),
    [
        (np.array([1.0, 2.1]), "b and a differ: array 0 by 1.00e-01 where the largest element is 2.00e+00"),
        (np.array([1.0, np.nan]), "b and a differ: array 0 by nan where"),
        (np.array([1.0, 2.0], np.float32), "b and a differ: array 0 is float32[2], not float64[2]"),
        (np.array([1.0]), "b and a differ: array 0 is float64[1], not float64[2]"),
        ((np.array([1.0, 2.0]), 0.0), "b and a differ: 2 arrays, not 1"),
    ],
)
def test_contenders_that_differ_are_not_timed(theirs: Any, fault: str) -> None:
    ours = Call("a", "numpy", returning(np.array([1.0, 2.0])))
    result = measured(ours, Call("b", "numpy", returning(theirs)), tolerance=1e-3)
    assert all(row.failed and row.median is None and fault in row.note for row in result)


@pytest.mark.slow
def test_a_missing_peer_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "autograd", None)
    missing, present = measured(Call("b", "autograd", returning(1.0)), Call("a", "numpy", returning(1.0)))
    assert (missing.note, missing.failed) == ("autograd is not installed", False)
    assert present.median is not None


@pytest.mark.slow
def test_a_failing_contender_is_a_row() -> None:
    def fail() -> None:
        raise ValueError("no luck")

    (row,) = measured(Call("a", "numpy", lambda numpy: fail))
    assert (row.note, row.failed) == ("ValueError: no luck", True)


@pytest.mark.slow
def test_a_process_reports_its_own_reading() -> None:
    report = """print('{"seconds": 0.5, "result": [[1, 2]], "note": "imported"}')"""
    (row,) = measured(Process("a", "numpy", ["-c", report], reports=True))
    assert (row.median, row.first, row.note) == (0.5, 0.5, "imported")


@pytest.mark.slow
def test_a_process_that_fails_is_a_row() -> None:
    (row,) = measured(Process("a", "numpy", ["-c", "raise SystemExit('no luck')"]))
    assert (row.note, row.failed) == ("RuntimeError: no luck", True)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nope"], "no problem named nope; there are "),
        (["--peers", "nope"], "no peer named nope; there are fnad, numpy, jax"),
        (["--rounds", "0"], "'0' is not a positive integer"),
    ],
)
def test_wrong_arguments_of_the_benchmarks_are_named(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        session.arguments(argv)
    assert message in capsys.readouterr().err


def test_every_problem_has_cases() -> None:
    folder = Path(checkpoint.__file__).parent
    texts = {name: (folder / f"{name}.py").read_text(encoding="utf-8") for name in session.PROBLEMS}
    assert not [name for name, text in texts.items() if "\ndef cases(" not in text]


def test_table_in_three_forms() -> None:
    told = [
        Row("p", "c", "a|b", "ms", 0.002, 0.01, 1.0, 0.5, least=0.001),
        Row("p", "d", "x", "s", note="x is not installed"),
    ]
    lines = table.aligned(told).splitlines()
    assert lines[0].split() == ["problem", "case", "system", "median", "±", "least", "ratio", "first", "call", "remark"]
    assert lines[2].split() == ["p", "c", "a|b", "2", "ms", "1%", "1", "1.00", "0.50", "s"]
    assert lines[3] == ""
    assert r"| p | c | a\|b | 2 ms | 1% | 1 | 1.00 | 0.50 s |  |" in table.markdown(told, {"date": "today"})
    assert '"median": 0.002' in table.as_json(told, {})


def test_peak_memory_counts_what_is_held_and_what_comes_on_top() -> None:
    held: list[np.ndarray] = []

    def run() -> None:
        if not held:
            held.append(np.ones(100_000, np.uint8))
        np.add(np.ones(200_000, np.uint8), 1)

    assert checkpoint.peak_memory(run) == pytest.approx(500_000, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("policy", checkpoint.POLICIES)
def test_a_policy_reads_as_the_closed_form_of_few_steps(policy: str) -> None:
    """Two steps by hand, differentiated by complex steps."""
    read = checkpoint.measured(policy, 2)

    def energy(stiffness: np.ndarray) -> Any:
        angle, speed = checkpoint.STATE
        for _ in range(2):
            speed = speed - checkpoint.DT * stiffness * np.sin(angle)
            angle = angle + checkpoint.DT * speed
        return np.sum(speed**2 / 2 - np.cos(angle))

    slope = [energy(checkpoint.STIFFNESS + 1e-30j * unit).imag / 1e-30 for unit in np.eye(2)]
    assert read["result"][0] == pytest.approx([energy(checkpoint.STIFFNESS)], rel=1e-14)
    assert read["result"][1] == pytest.approx(slope, rel=1e-12)
    assert read["note"].startswith("peak ")


def gemm(alpha: Any, a: Any, a_is_transposed: bool, b: Any, b_is_transposed: bool, beta: Any, c: Any) -> None:
    """A product of matrices, as BLAS adds it to another matrix."""
    c[...] = alpha * (a.T if a_is_transposed else a) @ (b.T if b_is_transposed else b) + (beta * c if beta else 0)


@pytest.mark.slow
@pytest.mark.parametrize("problem", [lorenz, odeint, rnn, while_loops])
def test_contenders_of_loops_agree_where_they_are_small(problem: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"STEPS": 50, "COLLATZ_START": 27, "ANOMALIES": np.array([0.5, 2.0]), "TIMES": np.linspace(0.0, 1.0, 3)}
    for name in small.keys() & vars(problem).keys():
        monkeypatch.setattr(problem, name, small[name])
    monkeypatch.setattr(native, "njit", lambda f: f)
    monkeypatch.setattr(native, "tanh", np.tanh)
    monkeypatch.setattr(native, "gemm", gemm)
    for case in (case for case in problem.cases() if "float32" not in case.title):
        assert not [row.note for row in rows("problem", case, {"fnad", "numba"}, rounds=1) if row.failed]


def test_a_report_has_ratios_to_fnad_and_means_over_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "FOLDER", tmp_path)
    times = {("p", "c"): (2.0, 4.0, 1.0), ("p", "d"): (1.0, 8.0, None), ("q", "e"): (1.0, 1.0, None)}
    told = [
        {"problem": problem, "case": case, "peer": peer, "median": time}
        for (problem, case), each in times.items()
        for peer, time in zip(("fnad", "jax", "numba"), each, strict=True)
    ]
    report.write([{"date": "today", "threads": "one", "rows": told}])
    lines = (tmp_path / "RESULTS.md").read_text(encoding="utf-8").splitlines()
    assert "| p | c | 2e+03 ms | 2.00 |  |  | **0.50** |" in lines
    assert "| **geometric mean of problems** | | | 2.00 |  |  | **0.50** |" in lines  # of 4 and 1, where 4 is that of p
    assert (tmp_path / "results.svg").read_text(encoding="utf-8").count("<title>") == 4


@pytest.mark.slow
def test_problems_for_a_gpu_are_right_on_a_device() -> None:
    with simulated():
        for name in set(gpu.PROBLEMS) - {"ensembles", "cold"}:
            for case in gpu.PROBLEMS[name](100):
                found = fnad.to_host(case.contenders[0].start().run())
                with fnad.config.override(executor="interpreter"):
                    wanted = fnad.to_host(case.contenders[0].start().run())
                assert not difference(leaves(wanted), leaves(found), case.tolerance), case.title


def test_problems_left_out_when_the_time_is_over_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    with simulated():
        assert session.main(["--device", "cuda", "--minutes", "0.0", "--elements", "100", "launch"]) == 1
    assert "left out: 0 minutes are over" in capsys.readouterr().out


def test_problems_for_a_gpu_are_measured_though_one_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each is in a process: here one that hangs after its first case, one that crashes, one that is done."""
    written = table.as_json([Row("a problem", "a case", "fnad", "s", median=2.0)], {})

    def run(command: list[str], **options: Any) -> Any:
        assert command[1:5] == ["-m", "benchmarks.session", "--device", "cuda"]
        assert 0 < options["timeout"] <= session.PATIENCE
        file = Path(command[command.index("--json") + 1])
        if command[-1] == "rows":
            return SimpleNamespace(returncode=-11)
        file.write_text(written, encoding="utf-8")
        if command[-1] == "launch":
            raise subprocess.TimeoutExpired(command, options["timeout"])
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    file = tmp_path / "table.md"
    with simulated():
        names = ["launch", "rows", "fused"]
        assert session.main(["--device", "cuda", "--elements", "100", "--markdown", str(file), *names]) == 1
    text = file.read_text(encoding="utf-8")
    assert text.count("| a problem | a case | fnad | 2 s |") == 2
    assert "| stopped after 180 s |" in text
    assert "| the process ended with status -11 |" in text
    assert "stopped after 180 s" in capsys.readouterr().out


def test_without_a_gpu_nothing_is_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    table = tmp_path / "table.md"
    assert session.main(["--device", "cuda", "--elements", "100", "--markdown", str(table), "fused"]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("CUDA needs CuPy, which cannot be imported")
    assert "pip install 'fnad[cuda]'" in shown.err
    assert not shown.out
    assert not table.exists()


def test_cases_in_which_fnad_is_behind_are_told_the_worst_first() -> None:
    times = {"a": (2.0, 1.0), "b": (1.04, 1.0), "c": (3.0, 4.0, 1.0), "d": (1.0,), "e": (1.0, 2.0)}
    told = [Row("p", case, "", "s", median=9.0, least=least) for case, each in times.items() for least in each]
    assert table.behind([Row("p", "f", "", "s", failed=True), *told]) == ["  3.00  p: c", "  2.00  p: a"]


@pytest.mark.slow
def test_single_operations_are_texts_of_arguments_that_are_there() -> None:
    assert len({*operations.TEXTS}) == len(operations.TEXTS)
    given = operations.arguments(16, 8, "float32")
    assert all(array.dtype == np.float32 for name, array in given.items() if name not in "mkc")
    for text in ("np.hypot(x, y)", "x[k]", "np.abs(np.fft.fft(x))", "np.isnan(x)"):
        value, gradient = (prepared(text, given, fnad)() for prepared in (operations.value, operations.gradient))
        np.testing.assert_allclose(value, eval(text, {"np": np, **given}), rtol=1e-5)
        assert gradient == () if text == "np.isnan(x)" else all(g.dtype == np.float32 for g in leaves(gradient))
