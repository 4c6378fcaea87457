"""Handlers of signals that call fnad: where they interrupt it that is an error, and elsewhere a call like any other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.errors import ReentryError
from fnad.ir.builder import is_tracing

X = np.array([1.0, 2.0, 3.0])
SLOPES = fnad.jit(fnad.grad(lambda x: np.sum(np.sin(x))))

CALLS: dict[str, Callable[[], Any]] = {
    "grad": lambda: fnad.grad(lambda x: np.sum(x * x))(X),
    "jit": lambda: SLOPES(X),
    "a new function": lambda: fnad.jit(lambda x: x * 2.0)(X),
    "scan": lambda: fnad.scan(lambda c, x: (c + x, c), 0.0, X),
}


class Handler:
    """Calls fnad, by each of the ways in which a handler can be given."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call

    def method(self, number: int, frame: object) -> None:
        self.call()

    def with_more(self, more: str, *given: object) -> None:
        self.call()

    def __call__(self, *given: object) -> None:
        self.call()


HANDLERS: dict[str, Callable[[Handler], Any]] = {
    "a method": lambda handler: handler.method,
    "an object": lambda handler: handler,
    "a partial": lambda handler: partial(handler.with_more, "more"),
    "a function": lambda handler: lambda number, frame: handler.call(),
}
TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: fnad.grad(f)(X),
    "jit": lambda f: fnad.jit(f)(X),
    "jit grad": lambda f: fnad.jit(fnad.grad(f))(X),
    "hessian": lambda f: fnad.hessian(f)(X),
    "vmap": lambda f: fnad.vmap(f)(np.ones((2, 3))),
}


@pytest.fixture(autouse=True)
def _handler() -> Generator[None]:
    before = signal.getsignal(signal.SIGUSR1)
    yield
    signal.signal(signal.SIGUSR1, before)


def interrupted(x: Any) -> Any:
    y = np.sum(x * x)
    os.kill(os.getpid(), signal.SIGUSR1)
    return y * x[0]


def uninterrupted(x: Any) -> Any:
    return np.sum(x * x) * x[0]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_handler_in_a_trace(transform: str, call: str) -> None:
    signal.signal(signal.SIGUSR1, Handler(CALLS[call]))
    with pytest.raises(ReentryError) as given:
        TRANSFORMS[transform](interrupted)
    assert str(given.value).splitlines()[-2:] == [
        "the handler of a signal calls fnad in the middle of another call",
        "  have the handler set a flag, and call fnad where the flag is read",
    ]
    assert not is_tracing()
    signal.signal(signal.SIGUSR1, lambda *_: None)
    found, expected = TRANSFORMS[transform](interrupted), TRANSFORMS[transform](uninterrupted)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("handler", HANDLERS)
def test_handlers_of_all_kinds(handler: str) -> None:
    signal.signal(signal.SIGUSR1, HANDLERS[handler](Handler(CALLS["grad"])))
    with pytest.raises(ReentryError):
        fnad.grad(interrupted)(X)


@pytest.mark.parametrize("call", CALLS)
def test_a_handler_elsewhere(call: str) -> None:
    found: list[Any] = []
    signal.signal(signal.SIGUSR1, Handler(lambda: found.append(CALLS[call]())))
    os.kill(os.getpid(), signal.SIGUSR1)
    assert len(found) == 1
    for value, expected in zip(fnad.tree.leaves(found), fnad.tree.leaves([CALLS[call]()]), strict=True):
        np.testing.assert_array_equal(value, expected)


def test_a_function_that_is_a_handler_too_may_be_called() -> None:
    def handler(number: Any, frame: Any) -> Any:
        return fnad.grad(lambda x: np.sum(x * number))(X)

    signal.signal(signal.SIGUSR1, handler)
    np.testing.assert_array_equal(fnad.grad(lambda x: np.sum(handler(2.0, None) * x))(X), np.full(3, 2.0))


def test_a_handler_that_interrupts_the_first_access_of_a_name_is_refused() -> None:
    """Python's import of a module cannot be entered again."""
    code = """
import signal, fnad
found, rest = set(), iter(range(200))

def handler(*_):
    try:
        found.add(fnad.grad(lambda x: x**2)(3.0) == 6.0)
    except Exception as error:
        found.add(type(error).__name__)
    signal.setitimer(signal.ITIMER_REAL, 0 if next(rest, None) is None else 0.002)  # where this takes longer, it ends

signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.002)
slope = fnad.grad(lambda x: x**3)(2.0)
signal.signal(signal.SIGALRM, signal.SIG_IGN)  # a handler that is pending would set the timer again
print(slope, found <= {"ReentryError", True})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["12.0", "True"]
