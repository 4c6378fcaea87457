"""What is known of code objects goes with them, and is not mixed up."""

from __future__ import annotations

import gc
import linecache
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import fnad
from fnad import codes, config
from fnad.codes import notes_of, parsed, remembered
from fnad.errors import TracerEscapeError
from fnad.trace import conversion, libraries

SOURCE = """
import math
table = np.arange(4.0)
def scale(y):
    return y * 2.0 if type(y) is float else y * 3.0
def f(x):
    y = np.array([x[0], x[1]]) + len(table)
    y += 1.0
    if x[0] > 0.0:
        y = y * len(f"{x[0]:.3f}")
    u = np.zeros(2)
    u[0] = y[0]
    return np.sum(u * scale(x[1]) * table[1])
"""


def failing(f: Any, x: Any) -> None:
    with pytest.raises(TracerEscapeError):
        f(x)


USES: dict[str, Callable[[Any, Any], Any]] = {
    "jit": lambda f, x: fnad.jit(f)(x),
    "grad": lambda f, x: fnad.grad(f)(x),
    "jit of grad": lambda f, x: fnad.jit(fnad.grad(f))(x),
    "jvp": lambda f, x: fnad.jvp(f, (x,), (x,)),
    "vjp": lambda f, x: fnad.vjp(f, x)[1](1.0),
    "explain": lambda f, x: str(fnad.explain(f, x)),
    "an error": lambda f, x: failing(fnad.grad(lambda y: f(y) + hash(y)), x),
}


def function_of(source: str) -> Any:
    space = {"np": np}
    linecache.cache["<a function made anew>"] = len(source), None, source.splitlines(True), ""
    exec(compile(source, "<a function made anew>", "exec"), space)
    return space.pop("f")


@pytest.mark.filterwarnings("ignore::fnad.errors.ControlFlowWarning")  # the text is that of this value alone
@pytest.mark.parametrize("use", USES)
def test_code_objects_go_with_their_functions(use: str) -> None:
    f = function_of(SOURCE)
    codes = [weakref.ref(code) for code in (f.__code__, f.__globals__["scale"].__code__)]
    with config.override(executor="interpreter"):
        USES[use](f, np.array([1.0, 2.0]))
    assert notes_of(f.__code__)
    del f
    gc.collect()
    assert [code() for code in codes] == [None, None]


def test_clearing_the_cache_forgets_code_objects() -> None:
    f = function_of("def f(x):\n    return np.sum(x)")
    fnad.grad(f)(np.array([1.0, 2.0]))
    assert notes_of(f.__code__)
    fnad.clear_cache()
    assert not notes_of(f.__code__)


def test_equal_code_objects_are_two() -> None:
    f, g = (function_of("def f(x):\n    return x") for _ in range(2))
    assert f.__code__ == g.__code__
    name = remembered(id)
    assert name(f.__code__) != name(g.__code__)
    notes_of(f.__code__)["a"] = 1
    assert "a" not in notes_of(g.__code__)


def test_code_at_the_same_address_is_another() -> None:
    addresses: set[int] = set()
    constant = remembered(lambda code: code.co_consts[-1])
    for n in range(50):
        f = function_of(f"def f(x):\n    return x + {n}")
        addresses.add(id(f.__code__))
        assert constant(f.__code__) == n
        del f
    assert len(addresses) < 50


OF_CLASS = """
class Point:
    def __init__(self, x):
        self.x = float(x)
def f(x):
    return Point(x).x * (lambda y: y)(x)
"""


def test_no_python_code_runs_where_code_objects_go() -> None:
    """An interrupt in such code is lost: what is known would stay, and be found for the next code at the address."""
    f = function_of(OF_CLASS)
    assert fnad.jit(fnad.grad(f))(3.0) == 6.0
    gone, lines, before = weakref.ref(f.__code__), set[tuple[str, int]](), sys.gettrace()

    def line(frame: FrameType, event: str, _: Any) -> Any:
        lines.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    sys.settrace(line)
    try:
        del f
        gc.collect()
    finally:
        sys.settrace(before)
    assert gone() is None
    files = {codes.__file__, libraries.__file__, conversion.__file__}
    assert [each for each in sorted(lines) if each[0] in files] == []


GROWTH = """
import gc
import numpy as np
import fnad

lines = "".join(f"    x = x * {n}.5 + np.abs(x)\\n" for n in range(20))

def resident():
    gc.collect()
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))

def run(n):
    space = {"np": np}
    exec(compile(f"def f(x):\\n    x = x + {n}.0\\n{lines}    return x", f"<{n}>", "exec"), space)
    fnad.jit(space["f"])(1.0)

with fnad.config.override(executor="interpreter"):
    for n in range(200):  # by then what is kept of the last programs, and no more, is full
        run(n)
    before = resident()
    for n in range(200, 360):
        run(n)
    print((resident() - before) / 160)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux for the resident memory")
def test_programs_made_anew_leave_nothing() -> None:
    ran = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout) < 2.0, "kilobytes that each program leaves"


def test_a_compiled_function_keeps_what_is_its_own() -> None:
    """It ran some three hundred functions of fnad's and NumPy's while it was traced."""

    def scaled(c: float) -> Any:
        return lambda x: np.sum(np.sin(x) * c + x)

    def made(start: float) -> list[Any]:
        functions = [fnad.jit(scaled(start + n)) for n in range(40)]
        for f in functions:
            f(np.ones(3))
        return functions

    with config.override(executor="interpreter"):
        warm = made(0.5)
        gc.collect()
        tracemalloc.start()
        kept = made(100.5)
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert taken / len(kept) < 25_000
    del warm


def test_nothing_is_known_of_code_that_is_gone_when_all_is_forgotten() -> None:
    """Converted code may live by what is known of its own code alone: another code object has its place then."""
    f = function_of("def f(x):\n    return np.array([x, x]).sum()\n")
    assert fnad.grad(f)(1.0) == 2.0
    codes.forget_codes()
    assert all(notes.code() is not None for notes in [*vars(codes)["_NOTES"].values()])


def test_threads_that_parse_at_once_do_not_mix_up_the_depth_of_their_trees() -> None:
    """Otherwise 3.11 raises `SystemError` a few times in 40 trees, where the garbage collector calls Python."""
    text = "\n".join(
        f"def f{n}(x):\n    return [(x + {n}) * g(x, [{n}, -x]) for x in range({n}) if x]" for n in range(150)
    )
    trees: list[object] = []

    def parse() -> None:
        trees.extend(parsed(text) for _ in range(20))

    def collected(*_: object) -> None:
        sum(range(50))

    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)
    gc.callbacks.append(collected)
    try:
        threads = [threading.Thread(target=parse) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(collected)
    assert len(trees) == 40
