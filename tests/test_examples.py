"""Each example runs, and prints what it promises.

Some run in a process of their own. The others run in the process of the tests, which has imported their packages.
"""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


def run(name: str, *arguments: str) -> str:
    """Run an example in a process of its own; return what it prints."""
    return printed_by(str(ROOT / "examples" / name), *arguments)


def printed_by(*arguments: str, folder: Path = ROOT) -> str:
    """Return what Python prints in a folder."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    options = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run(command, **options, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def run_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return `run_here(name, *arguments)`, which runs an example in this process and returns what it prints.

    Pictures are of few points, and nothing in them is moved apart, which would take half a second each.
    """
    with suppress(ImportError):
        figure = import_module("matplotlib.figure").Figure
        save = figure.savefig
        monkeypatch.setattr(
            figure, "savefig", lambda self, file, **_: self.set_layout_engine("none") or save(self, file, dpi=20)
        )

    def run(name: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        with suppress(SystemExit):
            runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
        return capsys.readouterr().out

    return run


def number_after(label: str, printed: str) -> float:
    """Return the last number that follows a label."""
    found = re.findall(re.escape(label) + r"\s*(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)", printed)
    assert found, f"no number after {label!r} in:\n{printed}"
    return float(found[-1])


def vector_after(label: str, printed: str) -> list[float]:
    """Return the numbers in brackets that follow a label."""
    found = re.search(re.escape(label) + r"\s*\[([^]]*)\]", printed)
    assert found is not None, f"no vector after {label!r} in:\n{printed}"
    return [float(number) for number in found[1].split()]


def test_the_gallery_names_each_example() -> None:
    gallery = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in (ROOT / "examples").rglob("*.py") if path.name not in gallery] == []


def test_linear_regression_finds_the_line(tmp_path: Path, run_here: Callable[..., str]) -> None:
    pytest.importorskip("matplotlib")
    printed = run_here("linear_regression.py", "--plot", str(tmp_path / "line.png"))
    assert (tmp_path / "line.png").read_bytes().startswith(b"\x89PNG")
    assert vector_after("weight", printed) == pytest.approx([1.5, -2.0, 0.5], abs=5e-3)
    assert number_after("bias  ", printed) == pytest.approx(0.7, abs=5e-3)
    assert number_after("loss", printed) < 2e-4


@pytest.mark.slow
@pytest.mark.parametrize(("by", "workers"), [("processes", "1"), ("joblib", "2")])
def test_partitions_find_the_weights_in_processes(by: str, workers: str) -> None:
    printed = run("partitions.py", "--by", by, "--workers", workers, "--parts", "3", "--rows", "2000")
    assert float(printed.split()[-1]) < 0.3


SHOWN = """
from client import *
feeds, found = np.linspace(0.5, 3.0, 5), np.empty((5, 2))
mean, _ = sample(300, 20, 0.1, np.random.default_rng(1))
solve(feeds, found)
print("weights", mean)
print("cells", found[-1])
print("species", integrate(np.array([1.0, 0.0, 0.0]), 1e4, 400))
print("from the disk", sum(sum(function.stats.cache_hits.values()) for function in (sample, solve, integrate)))
"""


@pytest.mark.slow
def test_numba_code_runs_on_derivatives_of_its_process_as_on_those_by_hand(tmp_path: Path) -> None:
    """A later process finds the Numba code on disk, and other derivatives in the module that the code calls."""
    text = (ROOT / "examples" / "inside_numba.py").read_text(encoding="utf-8")
    model, rest = text.split("# ---- the same by hand", 1)
    (tmp_path / "client.py").write_text(f"from model import *\n#{rest}", encoding="utf-8")

    def shown(code: str, *changes: tuple[str, str]) -> str:
        changed = model
        for old, new in changes:
            assert changed.count(old) == 1
            changed = changed.replace(old, new)
        (tmp_path / "model.py").write_text(changed, encoding="utf-8")
        return printed_by("-c", code, "--cells", "500", folder=tmp_path)

    first = shown("import client; client.main()")
    assert vector_after("weights", first) == pytest.approx([0.77, -2.09, 0.39, 0.09, 1.6])
    assert vector_after("species", first) == pytest.approx([1.09332122e-01, 4.90202740e-07, 8.90667388e-01])
    for name in ("sampler", "cells", "equation"):
        assert number_after(f"time of the {name}, of that by hand:", first) > 0
    second = shown(SHOWN, ("RATE = 3.0", "RATE = 0.0"), ("0.04 * u[0]", "0.0 * u[0]"), ("0.5 * np.sum", "5e3 * np.sum"))
    assert vector_after("cells", second) == pytest.approx([3.0, 1.0])
    assert vector_after("species", second) == pytest.approx([1.0, 0.0, 0.0])
    assert np.abs(vector_after("weights", second)).max() < 0.1
    assert number_after("from the disk", second) == 3


@pytest.mark.slow
def test_exp_sin_agrees_with_the_textbook() -> None:
    printed = run("exp_sin.py")
    first, second = re.findall(r"exact  = (\S+)", printed)
    assert number_after("f'(x)  =", printed) == pytest.approx(float(first), abs=1e-11)
    assert number_after("f''(x) =", printed) == pytest.approx(float(second), abs=1e-11)


@pytest.mark.slow
def test_vector_output_explains_and_pulls_back(run_here: Callable[..., str]) -> None:
    printed = run_here("vector_output.py")
    assert "vjp" in printed.partition("\ny ")[0], "the error names the way out"
    assert vector_after("pulled back", printed) == vector_after("2x + cos(x)", printed)
    assert vector_after("weighted", printed) == pytest.approx(vector_after("by grad", printed))


@pytest.mark.slow
def test_python_control_flow_has_the_derivatives_of_the_textbook(run_here: Callable[..., str]) -> None:
    printed = run_here("python_control_flow.py")
    roots, huber = printed.split("     x ")
    for line in roots.splitlines()[1:]:
        a, root, slope, exact, curvature, exact_curvature = map(float, line.split())
        assert root == pytest.approx(a**0.5, abs=1e-5)
        assert (slope, curvature) == (exact, exact_curvature)
    assert [line.split()[2:] for line in huber.splitlines()[1:4]] == [
        ["-1.00000", "0.00000"], ["0.50000", "1.00000"], ["1.00000", "0.00000"]]  # fmt: skip
    assert "2 paths" in printed  # that of the first call, and one for all later numbers of steps
    assert "-> True x 5, False" in printed
    assert "[-1.   0.5  1. ] [0.1 0.2 1. ]" in printed


@pytest.mark.slow
def test_logistic_regression_converges(tmp_path: Path, run_here: Callable[..., str]) -> None:
    pytest.importorskip("matplotlib")
    printed = run_here("logistic_regression.py", "--plot", str(tmp_path / "margins.png"))
    assert (tmp_path / "margins.png").read_bytes().startswith(b"\x89PNG")
    assert number_after("loss at the start", printed) == pytest.approx(0.693147)
    assert number_after("gradient there", printed) < 1e-3
    assert number_after("not seen before", printed) >= 95


@pytest.mark.slow
def test_digits_learns_to_read_draws_and_follows_its_seed(tmp_path: Path, run_here: Callable[..., str]) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "digits.png"
    printed = run_here("digits.py", "--epochs", "1", "--seed", "3", "--plot", str(picture))
    assert number_after("\ntest accuracy", printed) >= 85
    assert len(re.findall(r"^ +\d .* %$", printed, re.MULTILINE)) == 10, "a line for each digit"
    assert picture.read_bytes().startswith(b"\x89PNG")
    again = run_here("digits.py", "--epochs", "1", "--seed", "3")
    assert re.sub(r"trained in \S+", "", again) in re.sub(r"trained in \S+", "", printed)


@pytest.mark.slow
def test_cnn_learns_to_read_and_draws(tmp_path: Path, run_here: Callable[..., str]) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "cnn.png"
    printed = run_here("cnn.py", "--epochs", "1", "--plot", str(picture))
    assert number_after("\ntest accuracy", printed) >= 30, "10 are those of a guess"
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_char_rnn_learns_and_writes(tmp_path: Path, run_here: Callable[..., str]) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "sonnets.png"
    printed = run_here("char_rnn.py", "--steps", "10", "--plot", str(picture))
    assert number_after("bits a letter", printed) < 4.6, "5.9 are those of 58 letters that are equally likely"
    assert number_after("in text not seen", printed) < 4.6
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_char_rnn_reads_another_text(tmp_path: Path, run_here: Callable[..., str]) -> None:
    text = tmp_path / "abc.txt"
    text.write_text("abc\n" * 500)
    printed = run_here("char_rnn.py", "--steps", "50", "--text", str(text))
    assert "2000 letters of 4 kinds" in printed
    assert "abc\nabc\nabc\n" in printed
    assert number_after("in text not seen", printed) < 0.1


@pytest.mark.slow
def test_eight_schools_agree_with_quadrature(tmp_path: Path, run_here: Callable[..., str]) -> None:
    """The means of μ and τ are those of their joint posterior, with θ integrated out, on a fine grid."""
    pytest.importorskip("matplotlib")
    picture = tmp_path / "schools.png"
    printed = run_here("eight_schools.py", "--chains", "2", "--draws", "3000", "--plot", str(picture))
    assert number_after("mu  ", printed) == pytest.approx(4.397, abs=0.5)
    assert number_after("tau  ", printed) == pytest.approx(3.598, abs=0.5)
    assert all(float(row.split()[-1]) < 1.01 for row in printed.splitlines() if row.startswith(("mu", "tau", "theta")))
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_neural_ode_fits_the_hares_and_lynxes(tmp_path: Path, run_here: Callable[..., str]) -> None:
    """The rates of Lotka and Volterra are near those of Carpenter's case study, 0.55, 0.028, 0.024 and 0.80."""
    pytest.importorskip("matplotlib")
    picture = tmp_path / "lynx.png"
    printed = run_here("neural_ode.py", "--steps", "50", "--plot", str(picture))
    assert number_after("Lotka-Volterra: error", printed) == pytest.approx(0.25, abs=0.01)
    assert number_after("hares'  =", printed) == pytest.approx(0.55, abs=0.06)
    assert number_after("lynxes' =", printed) == pytest.approx(0.024, abs=0.002)
    assert number_after("network: error", printed) < 0.75
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_burgers_nears_the_solution(tmp_path: Path, run_here: Callable[..., str]) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "burgers.png"
    printed = run_here("burgers.py", "--steps", "20", "--plot", str(picture))
    assert number_after("relative error", printed) < 0.55, "it begins at 0.63"
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("stage", "shows"), [("simplified", "dot_general"), ("source", "def ")])
def test_digits_dumps_its_gradient(
    stage: str, shows: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["digits.py", "--dump", stage])
    assert exit_code("digits.py") == 0
    assert shows in capsys.readouterr().out


def test_digits_refuses_an_unknown_stage(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["digits.py", "--dump", "nothing"])
    assert exit_code("digits.py") == 2
    assert "invalid choice: 'nothing'" in capsys.readouterr().err


def exit_code(name: str) -> object:
    """Run an example in this process, where what it imports has been imported; return what it ends with."""
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    return ended.value.code


HAS_HELP = sorted(
    path for path in (ROOT / "examples").rglob("*.py") if '"__main__"' in path.read_text(encoding="utf-8")
)


@pytest.mark.slow
@pytest.mark.parametrize("example", HAS_HELP, ids=lambda example: example.stem)
def test_each_example_has_help(
    example: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if example.stem == "pymanopt_fnad":
        pytest.importorskip("pymanopt")
    text = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8"))) or ""
    monkeypatch.setattr(sys, "argv", [example.name, "--help"])
    monkeypatch.syspath_prepend(str(example.parent))
    with suppress(SystemExit):
        runpy.run_path(str(example), run_name="__main__")
    printed = capsys.readouterr().out
    assert "usage: " in printed or text in printed


def test_each_example_runs_by_itself() -> None:
    missing = {path.name for path in (ROOT / "examples").rglob("*.py")} - {path.name for path in HAS_HELP}
    assert missing == {"foreign_functions.py"}, "which is a list for foreign_code.py"


@pytest.mark.parametrize("name", ["burgers", "char_rnn", "eight_schools", "linear_regression", "neural_ode"])
def test_a_plot_without_matplotlib_is_refused_before_the_training(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("sys.argv", [name, "--plot", "never.png"])
    with pytest.raises(SystemExit):
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert "--plot draws by matplotlib, which is not installed" in capsys.readouterr().err
