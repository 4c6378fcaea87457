"""`profile`: the lines of user code that take the time of native code, forward and derivative."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.cli.command import run
from fnad.debug import profile
from fnad.errors import ArgumentTypeError, UnsupportedFunctionError

if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
    pytest.skip("profiles are taken on Linux, x86-64 and ARM64", allow_module_level=True)

import fnad.backends.cpu.profile as sampling
from fnad.backends.cpu import codegen
from fnad.backends.cpu.line_numbers import LINELESS, line_map
from fnad.backends.cpu.sampler import Samples

X = np.linspace(0.1, 2.0, 20_000)


@pytest.fixture(autouse=True)
def _few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "ENOUGH", 400)


def chain(x: Any) -> Any:
    a = x + 1.0
    b = np.arctan2(a, x) + np.arctan2(x, a * a) + np.arctan2(a + x, a)
    return np.sum(b * 2.0)


def solved(a: Any) -> Any:
    b = a @ a[0]
    return np.sum(np.linalg.solve(a, b) + 1.0)


def by_python(a: Any) -> Any:
    b = a * 2.0
    c = np.linalg.eigvals(b)
    return np.sum(np.abs(c))


def looped(x: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        y = x * 0.5
        return np.arctan2(np.sin(y), np.cos(y) + 2.0)

    return np.sum(fnad.fori_loop(0, 20, step, x) + 1.0)


MATRIX = np.eye(200) + 0.01 * np.random.default_rng(0).random((200, 200))
LONGEST = {
    "elementwise": (chain, X, "b = np.arctan2"),
    "routine in a kernel": (solved, MATRIX, "np.linalg.solve"),
    "routine that Python calls": (by_python, MATRIX, "np.linalg.eigvals"),
    "loop": (looped, X[:2000], "np.arctan2(np.sin"),
}


@pytest.mark.parametrize("name", LONGEST)
def test_the_line_that_takes_the_time_comes_first(name: str) -> None:
    f, x, text = LONGEST[name]
    found = profile(f, x)
    longest = found.lines[0]
    assert text in str(longest.source)
    assert longest.forward > 0.6
    assert longest.derivative == 0
    assert sum(line.share for line in found.lines) + found.elsewhere == pytest.approx(1.0)


@pytest.mark.slow
def test_derivatives_are_apart_from_values() -> None:
    found = profile(fnad.value_and_grad(chain), X)
    longest = found.lines[0]
    assert "b = np.arctan2" in str(longest.source)
    of_values = [
        each.lines[0].forward / sum(line.forward for line in each.lines) for each in (found, profile(chain, X))
    ]
    assert of_values[0] == pytest.approx(of_values[1], rel=0.4)
    assert longest.derivative > 0.1
    assert "forward  derivative" in str(found)
    only = profile(fnad.grad(lambda x: np.sum(np.exp(np.sin(x)))), X)
    assert {line.derivative > 0 for line in only.lines} == {True}


def test_a_program_that_is_too_short_says_so() -> None:
    found = profile(lambda x: x * 2.0, 1.0)
    assert found.lines == ()
    assert "too little of the time is in native code for a profile: give larger arrays" in str(found)


def test_a_program_with_effects_runs_once() -> None:
    calls: list[int] = []

    def f(x: Any) -> Any:
        fnad.callback(lambda: calls.append(1))
        return np.sum(np.sin(x))

    assert profile(f, X).runs == 1
    assert len(calls) == 1


def test_what_cannot_be_profiled_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentTypeError):
        profile(chain, fnad.ShapeDtypeStruct((3,), float))
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(UnsupportedFunctionError, match="takes Linux on x86-64 or ARM64, not linux on riscv64"):
        profile(chain, X)


@pytest.mark.slow
def test_the_command_and_the_page_have_the_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = "import numpy as np\ndef f(x):\n    y = np.arctan2(np.sin(x), x)\n    return np.sum(y)\n"
    (tmp_path / "model.py").write_text(source, "utf-8")
    target = f"{tmp_path}/model.py:f"
    assert run(["profile", target, "--args", "f64[20000]", "--grad"]) == 0
    assert re.search(r"\d+\.\d % +\d+\.\d % +model.py:3 in f:  y = np.arctan2", capsys.readouterr().out)
    page = tmp_path / "page.html"
    assert run(["view", target, "--args", "f64[20000]", "--profile", "-o", str(page)]) == 0
    assert re.search(r"<b>\d+\.\d %</b>    y = np.arctan2", page.read_text("utf-8"))
    assert "equations as traced; time of values by line" in page.read_text("utf-8")


@pytest.mark.skipif(shutil.which("objdump") is None, reason="the reference is objdump")
def test_lines_are_those_that_objdump_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[bytes] = []
    emit = codegen.object_code
    monkeypatch.setattr(codegen, "object_code", lambda *given: codes.append(emit(*given)) or codes[-1])
    program = fnad.jit(fnad.grad(solved)).lower(MATRIX).path.traced
    sampling.compiled_with_lines(list(sampling.plan(program).kernels.values()))
    (tmp_path / "code.o").write_bytes(codes[-1])
    command = ["objdump", "--dwarf=decodedline", str(tmp_path / "code.o")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^user code +(\d+|-) +(0x[0-9a-f]+)", printed, re.MULTILINE)
    expected = {int(start, 16): LINELESS if line == "-" else int(line) for line, start in rows}
    found = line_map(codes[-1])
    assert len(set(expected.values())) > 3
    assert {start: found.line(start) for start in expected} == expected


def test_samples_leave_the_signal_as_it_was() -> None:
    import signal  # noqa: PLC0415 - Linux has this one

    seen, nothing = list[int](), np.zeros(1, np.int64)
    before = signal.signal(signal.SIGPROF, lambda *_: seen.append(1))
    try:
        samples = Samples(nothing.ctypes.data, nothing.ctypes.data)
        with samples.running():
            np.linalg.eigvals(MATRIX)
        assert samples.count > 0
        assert not seen
        signal.raise_signal(signal.SIGPROF)
        assert seen == [1]
    finally:
        signal.signal(signal.SIGPROF, before)


@pytest.mark.slow
def test_a_program_with_products_tiles_and_folds_has_lines() -> None:
    def f(a: Any, b: Any) -> Any:
        c = np.matmul(a - b[:, None], np.swapaxes(b[:, None] * a, 1, 2))
        return np.sum(np.logaddexp(c, 0.0))

    found = profile(fnad.value_and_grad(f, argnums=(0, 1)), np.ones((8, 60, 20)), np.ones((8, 20)))
    assert found.lines
    assert found.elsewhere < 0.5
