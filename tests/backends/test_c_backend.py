"""A backend of another kind takes no more than the interface describes: see docs/backends.md."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import fnad
from fnad.backends.base import BACKENDS, Backend
from fnad.ir.program import Program
from tests.backends import c_backend

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """Run programs by the backend; return the list of those that it compiled."""
    found: list[Program] = []
    compile_program = c_backend.compile_program
    monkeypatch.setattr(c_backend, "compile_program", lambda *given: found.append(given[0]) or compile_program(*given))
    monkeypatch.setitem(BACKENDS, "cpu", Backend(c_backend.__name__, setup=0.0, program=0.1, equation=0.001))
    fnad.clear_cache()
    return found


def test_programs_run_as_c(compiled: list[Program]) -> None:
    x, weights = np.linspace(0.1, 1.0, 12).reshape(3, 4), np.arange(8.0).reshape(4, 2)
    functions = {
        "sum": lambda x: np.sum(np.exp(x) * np.sin(x)),
        "product": lambda x: np.sum(np.tanh(x @ weights) ** 2),
        "scan": lambda x: np.sum(fnad.scan(lambda c, r: (c * 0.5 + r, c), np.zeros(4), x)[1] ** 2),
    }
    for function in functions.values():
        with fnad.config.override(executor="interpreter"):
            value, gradient = fnad.value_and_grad(function)(x)
        with fnad.config.override(executor="compiled"):
            found = fnad.jit(fnad.value_and_grad(lambda x, f=function: f(x)))(x)
        np.testing.assert_allclose(found[0], value, rtol=1e-14)
        np.testing.assert_allclose(found[1], gradient, rtol=1e-13)
    assert len(compiled) == len(functions)


def test_a_fault_is_the_error_of_the_program() -> None:
    with fnad.config.override(executor="compiled"), pytest.raises(fnad.errors.OutOfRangeError):
        fnad.jit(lambda x, i: x[i])(np.arange(3.0), np.array([7]))
