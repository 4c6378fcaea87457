"""Progress of loops: every step is counted once, in whatever way the program runs, and nothing else changes."""

from __future__ import annotations

import io
import logging
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import sleep
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fnad
from fnad import config, grad, jit
from fnad.cli.command import run
from fnad.debug import progress
from fnad.errors import ArgumentTypeError
from fnad.trace import meters
from tests.together import together

XS = np.linspace(0.1, 0.7, 7)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """The labels, steps and totals of the loops that have ended."""
    found: list[tuple[str, int, int]] = []
    end = meters._end

    def noted(key: tuple[int, str]) -> None:
        if key in meters._METERS:
            found.append((key[1], *map(int, meters._METERS[key].words)))
        end(key)

    monkeypatch.setattr(meters, "_end", noted)
    return found


def scanned(w: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        progress(7, "row")
        return carry + np.sin(x) * carry, None

    return fnad.scan(step, w, XS)[0]


def counted(w: Any) -> Any:
    def step(i: Any, w: Any) -> Any:
        progress(7, "row")
        return w + np.sin(w)

    return fnad.fori_loop(0, 7, step, w)


def repeated(w: Any) -> Any:
    def step(w: Any) -> Any:
        progress(label="row")
        return w / 2

    return fnad.while_loop(lambda w: w > 0.01, step, w)


def rolled(w: Any) -> Any:
    for _ in range(7):
        w = w + np.sin(w) * 0.1
        progress(7, "row")
    return w


def deciding(w: Any) -> Any:
    for n in range(7):
        w = w * 1.5 if w < n else w - 1.0
        progress(7, "row")
    return w


LOOPS: dict[str, Callable[[Any], Any]] = {
    "scan": scanned, "fori_loop": counted, "while_loop": repeated, "rolled": rolled, "deciding": deciding,
}  # fmt: skip
WAYS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "as it is": lambda f: f,
    "jit": jit,
    "gradient": lambda f: jit(grad(f)),
    "value and gradient": lambda f: jit(fnad.value_and_grad(f)),
    "forward mode": lambda f: jit(lambda x: fnad.jvp(f, (x,), (1.0,))),
    "second derivative": lambda f: jit(grad(grad(f))),
    "checkpoint": lambda f: jit(grad(fnad.checkpoint(f))),
}


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
@pytest.mark.parametrize("loop", LOOPS)
def test_each_step_is_counted_once(loop: str, executor: Any, counts: list[tuple[str, int, int]]) -> None:
    total = -1 if loop == "while_loop" else 7
    with config.override(executor=executor), together() as check:
        for name, way in WAYS.items():
            with check(name):
                of_way = way(LOOPS[loop])
                of_way(0.6)
                counts.clear()
                of_way(0.6)
                assert counts == [("row", 6 if loop == "while_loop" else 7, total)]


@pytest.mark.slow
def test_results_are_those_without_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        name: (jit(f)(0.6), jit(grad(f))(0.6), fnad.vmap(f)(XS)) for name, f in LOOPS.items() if name != "deciding"
    }
    monkeypatch.setitem(globals(), "progress", lambda *_, **__: None)
    for name, before in found.items():
        after = (jit(LOOPS[name])(0.6), jit(grad(LOOPS[name]))(0.6), fnad.vmap(LOOPS[name])(XS))
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
def test_stacks_count_together_and_totals_may_be_traced(executor: Any, counts: list[tuple[str, int, int]]) -> None:
    def f(w: Any, n: Any) -> Any:
        def step(i: Any, w: Any) -> Any:
            progress(n, "epoch")
            return w + i

        return fnad.fori_loop(0, 5, step, w)

    with config.override(executor=executor):
        assert jit(f)(1.0, 5) == 11.0
        assert fnad.vmap(f, in_axes=(0, None))(XS, 5)[0] == XS[0] + 10
        assert fnad.vmap(f)(XS, np.arange(7))[0] == XS[0] + 10
    assert counts == [("epoch", 5, 5), ("epoch", 5, 5), ("epoch", 5, 6)]


def test_nested_loops_have_meters_of_their_own(counts: list[tuple[str, int, int]]) -> None:
    @jit
    def f(w: Any) -> Any:
        def outer(i: Any, w: Any) -> Any:
            progress(3, "outer")
            return fnad.fori_loop(0, 4, lambda j, w: progress(4, "inner") or np.cos(w), w)

        return fnad.fori_loop(0, 3, outer, w)

    for executor in ("interpreter", "compiled"):
        with config.override(executor=executor):
            f(XS)
        assert counts == [("outer", 3, 3), ("inner", 12, 4)]
        counts.clear()


def test_loops_of_python_end_with_their_last_step_or_when_another_begins(counts: list[tuple[str, int, int]]) -> None:
    for total in (3, 3, 5, 2):
        for _ in range(min(total, 3)):
            progress(total)
    assert counts == [("step", 3, 3), ("step", 3, 3), ("step", 3, 5), ("step", 2, 2)]


@pytest.mark.slow
def test_what_a_trace_asks_for_counts_nothing_and_keeps_no_loop_apart(counts: list[tuple[str, int, int]]) -> None:
    assert "paths under jit" not in str(fnad.explain(deciding, 1.0))
    fnad.testing.check(scanned, 1.0)
    assert all(count == total for _, count, total in counts)
    assert not any(meter.is_plain for meter in meters._METERS.values())


def test_a_loop_of_python_that_ends_early_is_shown_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meters, "SHOWN_AFTER", 0.01)
    for _ in range(3):
        progress(1000, "lost")
        sleep(0.001)
    for _ in range(100):
        sleep(0.05)
        if "lost" not in [label for _, label in meters._METERS]:
            return
    raise AssertionError("it is still under way")


def test_loops_are_rolled_and_fused_as_without() -> None:
    def f(w: Any, count: Callable[..., None]) -> Any:
        for _ in range(100):
            w = w + np.sin(w) * 0.1
            count(100)
        return w

    with_count, without = (jit(partial(f, count=count)).lower(XS) for count in (progress, lambda _: None))
    assert with_count.as_text("simplified").count("progress(100:i64)") == 1
    loops, plain = (call.as_text("loops").split("\n")[2:] for call in (with_count, without))
    assert [line for line in loops if "meter" not in line] == plain


def test_what_is_no_number_of_steps_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match=r"the total of progress is float, not an integer"):
        progress(2.5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentTypeError, match=r"the label of progress is 3, not a string"):
        progress(2, 3)  # pyright: ignore[reportArgumentType]


# ---- showing ---------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meters, "SHOWN_AFTER", 0.05)
    monkeypatch.setattr(meters, "SHOWN_EVERY", 0.02)


def slow_loop() -> None:
    for _ in range(4):
        progress(4, "epoch")
        sleep(0.1)


@pytest.mark.usefixtures("_soon")
def test_a_terminal_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    slow_loop()
    texts = terminal.getvalue().split("\r\x1b[K")
    assert texts[0] == ""
    assert re.match(r"epoch [123] of 4, 0 s left", texts[1])
    assert texts[-1] == "epoch: 4 in 0 s\n"


@pytest.mark.usefixtures("_soon")
def test_elsewhere_the_logger_has_lines(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(meters, "LOGGED_EVERY", 0.0)
    with caplog.at_level(logging.INFO, "fnad"):
        slow_loop()
    assert re.match(r"epoch [123] of 4, 0 s left", caplog.messages[0])
    assert caplog.messages[-1] == "epoch: 4 in 0 s"


@pytest.mark.usefixtures("_soon")
def test_a_notebook_has_one_output(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def display(content: dict[str, str], **_: Any) -> Any:
        shown.append("new")
        return SimpleNamespace(update=lambda content, **_: shown.append(content["text/plain"]))

    fake = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1), display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", fake)
    slow_loop()
    assert shown.count("new") == 1
    assert shown[-1] == "epoch: 4 in 0 s"


@pytest.mark.slow
@pytest.mark.usefixtures("_soon")
def test_a_compiled_loop_is_shown_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(w: Any) -> Any:
        return fnad.fori_loop(0, 1_000, lambda i, w: progress(1_000) or w + 1e-9 * np.sin(w), w)

    terminal, texts, compiled = Terminal(), [], jit(f)
    monkeypatch.setattr(sys, "stderr", terminal)
    with config.override(executor="compiled"):
        while len(texts) < 4:  # the machine may be busy, or faster
            compiled(np.linspace(0.0, 1.0, 50_000))
            texts = terminal.getvalue().split("\r\x1b[K")[1:]
    assert texts[-1].startswith("step: 1000 in ")
    assert len({text for text in texts if text.startswith("step ") and " of 1000" in text}) > 1


@pytest.mark.slow
@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize("is_terminal", [True, False])
def test_commands_show_long_work_on_a_terminal_alone(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    terminal = Terminal() if is_terminal else io.StringIO()
    (tmp_path / "slow.py").write_text(
        "import time\ndef f(x):\n    time.sleep(0.003)\n    return x * x\n", encoding="utf-8"
    )
    monkeypatch.setattr(sys, "stderr", terminal)
    assert run(["check", f"{tmp_path}/slow.py:f", "--values", "2.0"]) == 0
    texts = terminal.getvalue().split("\r\x1b[K")
    if is_terminal:
        assert re.match(r"fnad check, \d s", texts[1])
        assert any(re.search(r"point [1-6] of 7, \d s left", text) for text in texts)
        assert re.match(r"fnad check: \d+ s\n", texts[-1])
    else:
        assert texts == [""]


@pytest.mark.slow
def test_the_process_ends_while_a_loop_is_shown() -> None:
    program = """
import sys, fnad
from fnad.trace import meters
meters.SHOWN_AFTER = meters.SHOWN_EVERY = 0.001
sys.stderr.isatty = lambda: True
for n in range(3000):
    fnad.debug.progress(10000)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0
    assert "Error" not in done.stderr
