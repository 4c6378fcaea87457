"""What a shell shows of the objects that fnad returns is text for a person."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad
from fnad import optim

X = np.ones(4)


def loss(x: Any) -> Any:
    return np.sum(x * x)


def shifts(x: Any) -> Any:
    return x[1:] * x[:-1]


compiled = fnad.jit(loss)
compiled(X)

SHOWN: dict[str, tuple[Callable[[], Any], str]] = {
    "explain": (lambda: fnad.explain(loss, X), r"loss: 2 operations\ntraced:\n  x: f64\[4\]\n.*"),
    "sparsity": (
        lambda: fnad.sparse_jacobian(shifts).sparsity(X),
        r"3 x 4, 6 nonzeros \(50 %\), 2 colours of (columns|rows)",
    ),
    "check": (lambda: fnad.testing.check(loss, X), r" .*loss: all \d+ comparisons agree"),
    "program": (lambda: fnad.make_program(loss)(X).program, r"loss\(a: f64\[4\]\) -> f64\[\] \{\n.*\n\}"),
    "call": (lambda: fnad.make_program(loss)(X), r"# loss: 2 equations\n.*"),
    "paths": (lambda: compiled.paths(), r"1 path\n  1\. \(f64\[4\]\)  ran 1 time, .*"),
    "path": (lambda: compiled.paths()[0], r"\(f64\[4\]\)  ran 1 time, .*"),
    "exported": (lambda: fnad.export(loss, X), r"<exported loss\(f64\[4\]\) -> f64\[\]>"),
    "exported, with no form in C": (
        lambda: fnad.export(np.linalg.solve, np.eye(4), X),
        r"<exported solve\(f64\[4,4\], f64\[4\]\) -> f64\[4\]>",
    ),
    "pullback": (lambda: fnad.vjp(loss, X)[1], "<pullback of loss>"),
    "pushforward": (lambda: fnad.linearize(loss, X)[1], "<pushforward of loss>"),
    "transpose": (lambda: fnad.linear_transpose(np.cumsum, X), "<transpose of cumsum>"),
    "optimizer": (lambda: optim.adam(0.1), r"fnad\.optim\.adam\(0\.1\)"),
    "optimizer with keywords": (lambda: optim.sgd(0.1, momentum=0.9), r"fnad\.optim\.sgd\(0\.1, momentum=0\.9\)"),
    "line search": (lambda: optim.lbfgs(memory_size=5), r"fnad\.optim\.lbfgs\(memory_size=5\)"),
    "chain": (
        lambda: optim.chain(optim.clip(1.0), optim.scale(-0.1)),
        r"fnad\.optim\.chain\(fnad\.optim\.clip\(1\.0\), fnad\.optim\.scale\(-0\.1\)\)",
    ),
    "schedule": (
        lambda: optim.cosine_decay_schedule(0.1, 100),
        r"fnad\.optim\.cosine_decay_schedule\(0\.1, 100\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SHOWN)
def test_what_a_shell_shows(what: str) -> None:
    make, shown = SHOWN[what]
    assert re.fullmatch(shown, repr(make()), re.DOTALL)


def test_every_optimizer_is_called_after_its_call() -> None:
    """Also in a trace, where numbers have no text."""
    f = fnad.grad(lambda rate: np.sum(optim.sgd(rate).update(X, optim.sgd(rate).init(X))[0]))
    assert f(0.1) == -4.0
    for name in ("sgd", "adam", "adamw", "rmsprop", "adagrad", "lion"):
        assert repr(getattr(optim, name)(learning_rate=0.5)) == f"fnad.optim.{name}(learning_rate=0.5)"
