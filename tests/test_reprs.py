"""What a shell shows of the objects that fnad returns is text for a person."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import XMLParser

import numpy as np
import pytest

import fnad
from fnad import optim
from fnad.api.functions.profile import LineTime, Profile
from fnad.ir.program import Source

X = np.ones(4)


def loss(x: Any) -> Any:
    return np.sum(x * x)


def shifts(x: Any) -> Any:
    return x[1:] * x[:-1]


def paths() -> Any:
    """The paths of a function that was called once."""
    compiled = fnad.jit(loss)
    compiled(X)
    return compiled.paths()


SHOWN: dict[str, tuple[Callable[[], Any], str]] = {
    "explain": (lambda: fnad.explain(loss, X), r"loss: 2 operations\ntraced:\n  x: f64\[4\]\n.*"),
    "sparsity": (
        lambda: fnad.sparse_jacobian(shifts).sparsity(X),
        r"3 x 4, 6 nonzeros \(50 %\), 2 colours of (columns|rows)",
    ),
    "check": (lambda: fnad.testing.check(loss, X), r" .*loss: all \d+ comparisons agree"),
    "program": (lambda: fnad.make_program(loss)(X).program, r"loss\(a: f64\[4\]\) -> f64\[\] \{\n.*\n\}"),
    "call": (lambda: fnad.make_program(loss)(X), r"# loss: 2 equations\n.*"),
    "paths": (paths, r"1 path\n  1\. \(f64\[4\]\)  ran 1 time, .*"),
    "path": (lambda: paths()[0], r"\(f64\[4\]\)  ran 1 time, .*"),
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


HTML: dict[str, tuple[Callable[[], Any], str]] = {
    "program": (
        lambda: fnad.make_program(loss)(X),
        r"<caption>loss: 2 equations</caption>.*<td>32 B</td><td>test_reprs\.py:\d+",
    ),
    "program of a path": (
        lambda: fnad.make_program(lambda x: x if x < 1 else -x)(2.0),
        r"<caption>decided: .*&lt; 1 .*-&gt; False<br>&lt;lambda&gt;: \d equations",
    ),
    "explain": (
        lambda: fnad.explain(loss, X, memory=True),
        r"<td>traced</td><td>x: f64\[4\]</td>.*<td>at most \d+ bytes",
    ),
    "sparsity": (
        lambda: fnad.sparse_jacobian(shifts).sparsity(np.ones(3)),
        r'<svg viewBox="0 0 3 2".*d="M0 0h1v1h-1zM1 0h1v1h-1zM1 1h1v1h-1zM2 1h1v1h-1z".*2 x 3, 4 nonzeros',
    ),
    "large sparsity": (
        lambda: fnad.sparse_jacobian(np.sin).sparsity(np.ones(1000)),
        r'<svg viewBox="0 0 100 100".*d="(M\d+ \d+h1v1h-1z){100}"',
    ),
    "empty sparsity": (lambda: fnad.sparse_jacobian(np.sin).sparsity(np.ones(0)), r'<svg viewBox="0 0 1 1".*d=""'),
    "paths": (paths, r"<caption>1 path</caption>.*<td>\(f64\[4\]\)</td><td></td><td>ran 1 time, "),
    "optimizer": (
        lambda: optim.sgd(0.1, momentum=0.9),
        r"<caption>fnad\.optim\.sgd</caption>.*<td>learning_rate</td><td>0\.1</td>.*<td>momentum</td><td>0\.9</td>",
    ),
    "chain": (
        lambda: optim.chain(optim.clip(1.0), optim.scale(-0.1)),
        r"<td>fnad\.optim\.clip\(1\.0\)<br>fnad\.optim\.scale\(-0\.1\)</td>",
    ),
    "optimizer by hand": (lambda: optim.GradientTransformation(np.sin, np.cos), "<td>init</td><td>&lt;ufunc &#x27;sin"),
    "profile": (
        lambda: Profile("f", (LineTime(Source("a.py", 3, "f"), 0.7, 0.2),), 0.1, 1000, 1.0, 3),
        r"<caption>f: 1,000 samples.*<th>line</th>.*<td>70\.0 %</td><td>20\.0 %</td>.*a\.py:3",
    ),
    "short profile": (lambda: Profile("f", (), 1.0, 0, 1.0, 3), r"<td>too little of the time"),
}  # fmt: skip


@pytest.mark.parametrize("what", HTML)
def test_what_a_notebook_shows(what: str) -> None:
    make, shown = HTML[what]
    html = make()._repr_html_()
    assert re.search(shown, html, re.DOTALL), html
    XMLParser().feed(html.join(("<body>", "</body>")).replace("<br>", "<br/>").replace("&nbsp;", " "))
