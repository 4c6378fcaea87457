"""fnad.explain: what was traced, captured and copied, with lines."""

import inspect
import logging
import random
import sys
import time

import numpy as np
import pytest

import fnad
from fnad.errors import TracerEscapeError

TABLE = np.arange(3.0)


def model(w, x, n):
    y = np.zeros_like(x)
    y[0] = w["a"] * x[0]
    for i in range(1, n):
        y[i] = y[i - 1] + x[i]
    return np.sum(y @ TABLE)


def line(text):
    lines, start = inspect.getsourcelines(model)
    return next(start + i for i, code in enumerate(lines) if text in code)


def test_what_is_found():
    found = fnad.explain(model, {"a": 2.0}, np.ones(3), 3)
    assert found.function == "model"
    assert [(f.name, str(f.aval)) for f in found.traced] == [("w['a']", "f64[]"), ("x", "f64[3]")]
    assert [(str(f.aval), f.source.line) for f in found.captured] == [("f64[3]", line("TABLE"))]
    assert [(str(c.aval), c.source.line) for c in found.copies] == [
        ("f64[3]", line("y[0] =")),
        ("f64[3]", line("y[i] =")),
        ("f64[3]", line("y[i] =")),
    ]
    assert found.operations["dot_general"] == 1


def test_text_of_explain_lists_what_a_trace_found():
    x = np.ones(3)
    text = str(fnad.explain(lambda x: np.sin(x) * 2, x))
    assert text == (
        "<lambda>: 3 operations\ntraced:\n  x: f64[3]\ncaptured: none\ncopies: none\ndecisions: none\n"
        "outside: none\noperations:\n  1 sin\n  1 broadcast_in_dim\n  1 mul\nin the store: none"
    )
    text = str(fnad.explain(model, {"a": 2.0}, np.ones(3), 2))
    assert f"captured:\n  f64[3] at test_explain.py:{line('TABLE')} in model:" in text
    assert f"copies:\n  f64[3] at test_explain.py:{line('y[0] =')} in model:" in text


def test_what_the_store_has():
    def f(x):
        return np.sum(np.sin(x) * 1.125) if x[0] > 0.0 else x[0]

    x = np.ones(3)
    assert fnad.explain(f, x).made == ()
    fnad.grad(f)(x)
    fnad.vjp(f, x)
    compiled = fnad.jit(f)
    with fnad.config.override(executor="compiled"):
        compiled(x)
        fnad.jvp(f, (x,), (x,))
    made = fnad.explain(f, x).made
    assert sorted(map(str, made)) == ["grad: interpreted", "itself: compiled", "jvp: compiled", "vjp: interpreted"]
    assert str(fnad.explain(f, x)).endswith("vjp: interpreted\n  jvp: compiled")
    assert fnad.explain(f, -x).made == ()
    del compiled
    assert [str(each) for each in fnad.explain(f, x).made] == ["grad: interpreted", "vjp: interpreted", "jvp: compiled"]
    fnad.clear_cache()
    assert fnad.explain(f, x).made == ()


def test_decisions_of_explain_have_answers_and_lines():
    def f(x):
        while np.sum(x) < 10:
            x = x * 2
        return x[int(x[0]) % 2]

    found = fnad.explain(f, np.ones(3))
    assert [decision.answer for decision in found.decisions] == [True, True, False, 4]
    start = f.__code__.co_firstlineno
    assert f"decisions:\n  test_explain.py:{start + 1} in f:  while np.sum(x) < 10:  -> True x 2, False" in str(found)


def test_lines_of_a_loop_stand_once_in_the_text():
    text = str(fnad.explain(model, {"a": 2.0}, np.ones(3), 3))
    assert text.count("y[i] =") == 1
    assert f"  2 times f64[3] at test_explain.py:{line('y[i] =')} in model:" in text


def test_functions_that_fill_arrays_of_numpys():
    def f(x):
        y = np.zeros(3)
        y[1] = x[0]
        return y.sum()

    found = fnad.explain(f, np.ones(2))
    assert [str(write.aval) for write in found.copies] == ["f64[3]"]


def test_the_callers_arrays_stay_and_keywords_are_handed_on():
    x = np.ones(3)

    def f(x, scale=1):
        x *= scale
        return x

    assert len(fnad.explain(f, x, scale=2).copies) == 1
    np.testing.assert_array_equal(x, 1)


def test_errors_are_those_of_a_trace():
    with pytest.raises(TracerEscapeError):
        fnad.explain(lambda x: hash(x), 1.0)


def test_what_is_outside_the_process(tmp_path):
    path = tmp_path / "number"
    path.write_text("2")
    numbers = iter(range(10))

    def f(x):
        start = time.perf_counter()
        logging.getLogger("fnad").warning("the time in a log is no matter")
        y = x * float(path.read_text()) + next(numbers)
        y = y * globals()["sca" + "le"] + random.random()
        return y + (time.perf_counter() - start)

    found = fnad.explain(f, 1.0)
    first = f.__code__.co_firstlineno
    assert {(met.what, met.source and met.source.line - first, met.anew) for met in found.outside} == {
        ("the clock is read", 1, False),
        ("the clock is read", 5, False),
        ("a file is read", 3, True),
        ("an iterator is read", None, True),
        ("names are computed", 4, True),
        ("random numbers are drawn", None, True),
    }
    assert (
        f"  the clock is read at test_explain.py:{first + 1} in f:  start = time.perf_counter()  -> as it was"
        in str(found)
    )
    assert "  random numbers are drawn  -> traced again at each call" in str(found)


scale = 2.0


def test_what_a_pullback_keeps():
    def layer(w, x):
        return np.sum(np.tanh(w @ x) * 2.0)

    w, x = np.ones((2, 3)), np.ones(3)
    assert fnad.explain(layer, w, x).residuals is None
    assert "kept" not in str(fnad.explain(layer, w, x))
    found = fnad.explain(layer, w, x, memory=True)
    start = layer.__code__.co_firstlineno + 1
    assert [(each.name, each.nbytes, each.source and each.source.line) for each in found.residuals or ()] == [
        ("w", 48, None),
        ("x", 24, None),
        ("", 16, start),
    ]
    assert str(found).endswith(
        "kept for the pullback, 88 bytes:\n  48 bytes: f64[2,3] w\n  24 bytes: f64[3] x\n"
        f"  16 bytes: f64[2] at test_explain.py:{start} in layer:  return np.sum(np.tanh(w @ x) * 2.0)"
    )
    assert str(fnad.explain(lambda x: 2 * x, x, memory=True)).endswith("kept for the pullback, 0 bytes: none")


@pytest.mark.slow
def test_the_live_arrays_over_time():
    """Sums of what each nest needs, counted by hand, and a picture of them."""

    def layer(w, x):
        return np.sum(np.tanh(w @ x) * 2.0)

    w, x = np.ones((200, 300)), np.ones((300, 100))
    moments = fnad.explain(layer, w, x, memory=True).timeline or ()
    hidden, given = 200 * 100 * 8, w.nbytes + x.nbytes
    assert [(m.in_pullback, m.arguments, m.results, m.residuals) for m in moments] == [
        (False, given, 0, 0),
        (False, given, 8, hidden),
        (True, given + 8, 8, hidden),
        (True, given + 8, 8 + w.nbytes, 0),
        (True, given + 8, 8 + w.nbytes + x.nbytes, 0),
    ]
    start = layer.__code__.co_firstlineno + 1
    assert {m.source and m.source.line for m in moments} == {start}
    found = fnad.explain(layer, w, x, memory=True)
    assert found.timeline.peak.nbytes == given + 16 + w.nbytes + x.nbytes + hidden
    ax = found.timeline.plot(pytest.importorskip("matplotlib.figure").Figure().subplots())
    highest = max(area.get_paths()[0].vertices[:, 1].max() for area in ax.collections)
    assert highest == pytest.approx(found.timeline.peak.nbytes / 1e6)
    assert ax.get_title() == f"at most {highest:.3g} MB at test_explain.py:{start}"


def test_live_arrays_of_loops_and_of_nothing():
    """A residual stack is live from its loop to the end of the loop of the pullback."""
    step = lambda c, _: (np.sin(c @ c.T) * c, None)  # noqa: E731
    moments = (
        fnad.explain(lambda x: fnad.scan(step, x, None, length=20)[0], np.ones((10, 10)), memory=True).timeline or ()
    )
    stacks = {m.residuals for m in moments}
    assert stacks <= {0, 3 * 20 * 800}
    assert [m.in_pullback for m in moments if m.residuals] != []
    for f in (lambda x: x, lambda x: 2.0):
        assert fnad.explain(f, 1.0, memory=True).timeline is not None


def test_without_matplotlib_a_plot_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    jitted = fnad.jit(np.sin)
    jitted(1.0)
    words = r"is drawn by Matplotlib, which cannot be imported: .*\n.*pip install matplotlib"
    for plot in (
        fnad.explain(np.sin, 1.0, memory=True).timeline.plot,
        fnad.sparse_jacobian(np.sin).sparsity(np.ones(3)).plot,
        jitted.paths().plot,
    ):
        with pytest.raises(fnad.errors.MissingPackageError, match=words):
            plot()


def test_what_a_pullback_keeps_of_loops_has_the_lines_of_their_bodies():
    def step(s, _):
        t = np.sin(s)
        return t * s, None

    found = fnad.explain(lambda x: fnad.scan(step, x, None, length=50)[0], 0.5, memory=True)
    start = step.__code__.co_firstlineno
    assert sorted((str(each.aval), each.source.line) for each in found.residuals or ()) == [
        ("f64[50]", start + 1),
        ("f64[50]", start + 1),
        ("f64[50]", start + 1),
    ]
    newton = lambda a: fnad.while_loop(lambda s: s * s > 1.01 * a, lambda s: (s + a / s) / 2, 1.0 + a)  # noqa: E731
    assert " bytes a step: f64[?] at test_explain.py:" in str(fnad.explain(newton, 2.0, memory=True))
