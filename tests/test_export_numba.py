"""Small programs as parts of Numba code: their bits, and which of several functions of a name runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.runtime._nrt_python import memsys_disable_stats, memsys_enable_stats
from numba.core.runtime.nrt import rtsys

import fnad
from fnad.backends.standalone import native
from tests.test_export import PROGRAMS, called, exported
from tests.together import some_of

SMALL = (
    "division of floats",
    "single complex",
    "narrow integers",
    "indexing",
    "while",
    "gradient of cross-entropy",
    "gradient of a scan",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(SMALL, "bits", 3))
def test_programs_within_numba_code_have_the_bits_of_the_object_code(name: str) -> None:
    found, given, expected = exported(name)
    assert native.LoadedFunction(found._standalone).text is not None
    made = [np.empty_like(array) for array in expected]
    parameters = ", ".join(f"x{n}" for n in range(len(PROGRAMS[name][1]) + len(made)))
    space = {"into": found.njit_into()}
    exec(f"def caller({parameters}): into({parameters})", space)
    numba.njit(space["caller"], fastmath=True)(*PROGRAMS[name][1], *made)
    for x, y in zip(made, called(found.cfunc().call, given, expected), strict=True):
        assert x.tobytes() == y.tobytes()


def large(x: Any) -> Any:
    return [np.sin(x * k) / (x + k) for k in range(200)]


@pytest.mark.parametrize(("f", "x"), [(large, 1.0), (lambda x: np.tanh(x @ x @ x) @ x, np.ones((200, 200)))])
def test_large_programs_and_those_that_allocate_are_called(f: Any, x: Any) -> None:
    assert native.LoadedFunction(fnad.export(f, x)._standalone).text is None


@pytest.mark.slow
def test_functions_of_one_name_keep_apart() -> None:
    def power(n: int) -> Any:
        return fnad.export(fnad.grad(lambda x: x**n), 1.0).njit()

    square, cube = power(2), power(3)
    large = [fnad.export(lambda x, n=n: np.sum(np.sin(n * x)), np.ones(8)).njit() for n in (1, 2)]

    @numba.njit
    def both(x: Any) -> Any:
        return square(x), cube(x)

    assert both(3.0) == (6.0, 27.0)
    assert [f(np.ones(8)) for f in large] == pytest.approx([8 * np.sin(1), 8 * np.sin(2)], rel=1e-14)


@pytest.mark.slow
def test_references_of_arrays_are_counted() -> None:
    found = fnad.export(lambda x: x[::-1] * 2, np.ones(3))
    new, into = found.njit(), found.njit_into()

    @numba.njit
    def rows(x: Any, out: Any) -> Any:
        total, failed = 0.0, 0
        for i in range(len(x)):
            total += new(x[i])[0]
            into(x[i], out)
            total += out[0]
            into(x[:3, 1], x[i])
            try:
                into(x[i, :2], out)
            except Exception:  # noqa: BLE001 - Numba has no other class here
                failed += 1
        return total, failed

    x, out = np.arange(12.0).reshape(4, 3), np.empty(3)
    rows(x.copy(), out)
    references = sys.getrefcount(x), sys.getrefcount(out)
    memsys_enable_stats()
    try:
        before, result, after = rtsys.get_allocation_stats(), rows(x, out), rtsys.get_allocation_stats()
    finally:
        memsys_disable_stats()
    expected = 0.0
    for row in (y := np.arange(12.0).reshape(4, 3)):
        expected += 4 * row[2]
        row[:] = y[:3, 1][::-1] * 2
    assert result == (expected, 4)
    assert (sys.getrefcount(x), sys.getrefcount(out)) == references
    assert after.alloc - before.alloc == after.free - before.free


@pytest.mark.slow
@pytest.mark.parametrize("size", some_of([3, 9], "memory"))
def test_results_may_share_memory_with_arguments(size: int) -> None:
    reverse = fnad.export(lambda x: (x[::-1] * 2, np.cumsum(x)), np.ones(size)).njit_into()

    @numba.njit
    def within(memory: Any, start: int, out: Any) -> None:
        reverse(memory[:size], memory[start : start + size], out)

    for start in range(size + 1):
        memory, out = np.arange(1.0, 2 * size + 1), np.empty(size)
        x = memory[:size].copy()
        within(memory, start, out)
        assert memory[start : start + size].tolist() == (2 * x[::-1]).tolist()
        assert out.tolist() == np.cumsum(x).tolist()


CLIENT = """\
import os, sys
import numpy as np
from numba import njit
import fnad
from fnad.backends.standalone.numba_function import TABLE

other = fnad.export(np.sin, 1.0).njit()

def power(n, formula):
    return fnad.export(fnad.grad(eval(f"lambda x: {formula}", {"n": n, "np": np})), 1.0).njit()

@njit(cache=True)
def user(x):
    return derivative(x) + 1.0

def show(formula, has_addresses, *powers):
    global derivative
    functions = [power(int(n), formula) for n in powers]
    derivative = functions[0] if functions else None
    if not int(has_addresses):
        TABLE[1::2] = [1] * (len(TABLE) // 2)
    try:
        print(user(2.0), sum(user.stats.cache_hits.values()), flush=True)
    except RuntimeError as error:
        print(str(error).replace("\\n", " "), flush=True)

for case in sys.argv[1:]:
    if not os.fork():
        show(*case.split())
        os._exit(0)
    os.wait()
"""


@pytest.mark.slow
def test_cached_code_runs_the_program_that_it_was_compiled_with_or_the_one_of_its_name(tmp_path: Path) -> None:
    """In a child process for each case, where nothing was compiled before."""
    cases = {
        "x**n 1 2": "5.0 0",
        "x**n 0 2": "5.0 1",  # the part within the cached code runs
        "x**n 1 3": "13.0 1",
        "x**n 1 3 2": "5.0 1",  # the program that it was compiled with
        "np.exp(n*x) 1 2": f"{2 * np.exp(4.0) + 1} 1",
        "x**n 1": None,
        "x**n 1 3 4": None,
    }
    (tmp_path / "client.py").write_text(CLIENT)
    command = [sys.executable, "-W", "ignore", "client.py", *cases]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    for expected, printed in zip(cases.values(), done.stdout.splitlines(), strict=True):
        if expected is not None:
            assert printed == expected
        else:
            assert "lambda_grad is not there: export it in this process" in printed
            assert "If several functions are called lambda_grad, remove the code that Numba keeps on disk" in printed
