"""Tracebacks: an error in user code or of fnad has frames of user code alone, whichever way it leaves fnad."""

from __future__ import annotations

import linecache
import os
import pdb  # noqa: T100 its view of a traceback
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import scipy.optimize

import fnad
from fnad import config
from fnad.codes import original_of

W, X = np.ones((5, 2)), np.ones((3, 4))
FNAD = str(Path(fnad.__file__).parent)


def layer(w: Any, x: Any) -> Any:
    return np.tanh(x @ w)


def loss(w: Any, x: Any) -> Any:
    return np.sum(layer(w, x) ** 2)


def caused(w: Any, x: Any) -> Any:
    try:
        return loss(w, x)
    except ValueError as error:
        raise RuntimeError("no loss") from error


def handled(w: Any, x: Any) -> Any:
    try:
        return loss(w, x)
    except ValueError:
        raise RuntimeError("no loss")  # noqa: B904 the context is what is tested


def grouped(w: Any, x: Any) -> Any:
    found: list[Exception] = []
    for f in (loss, caused):
        try:
            f(w, x)
        except (ValueError, RuntimeError) as error:
            found.append(error)
    raise ExceptionGroup("losses", found)


def interrupted(w: Any, x: Any) -> Any:
    raise KeyboardInterrupt


def deep(w: Any, x: Any) -> Any:
    return deep(w, x)


WAYS: dict[str, Callable[[Any], Any]] = {
    "jit of grad": lambda f: fnad.jit(fnad.grad(f))(W, X),
    "grad of jit": lambda f: fnad.grad(fnad.jit(f))(W, X),
    "value_and_grad": lambda f: fnad.value_and_grad(f)(W, X),
    "hessian": lambda f: fnad.hessian(f)(W, X),
    "jacfwd": lambda f: fnad.jacfwd(f)(W, X),
    "vmap": lambda f: fnad.vmap(f, (None, 0))(W, np.ones((6, 3, 4))),
    "vjp": lambda f: fnad.vjp(f, W, X),
    "jvp": lambda f: fnad.jvp(f, (W, X), (W, X)),
    "linearize": lambda f: fnad.linearize(f, W, X),
    "hvp": lambda f: fnad.hvp(f, (W, X), (W, X)),
    "lower": lambda f: fnad.jit(f).lower(W, X),
    "make_program": lambda f: fnad.make_program(f)(W, X),
    "eval_shape": lambda f: fnad.eval_shape(f, W, X),
    "explain": lambda f: fnad.explain(f, W, X),
    "checkpoint": lambda f: fnad.grad(fnad.checkpoint(f))(W, X),
    "sparse_hessian": lambda f: fnad.sparse_hessian(f)(W, X),
    "cond": lambda f: fnad.jit(lambda c: fnad.cond(c, lambda: f(W, X), lambda: 0.0))(True),
    "fori_loop": lambda f: fnad.fori_loop(0, 3, lambda i, c: c + f(W, X * c), 1.0),
    "while_loop": lambda f: fnad.while_loop(lambda c: f(W, X * c) > 0, lambda c: c, 1.0),
    "check_grads": lambda f: fnad.testing.check_grads(f, (W, X), 1),
    "minimize": lambda f: fnad.optim.minimize(f, W, X),
    "tree.map": lambda f: fnad.tree.map(f, [W], [X]),
    "debug.callback": lambda f: fnad.jit(lambda w, x: fnad.debug.callback(f, w, x))(W, X),
    "plain": lambda f: fnad.config.override(disable_jit=True)(fnad.jit(f))(W, X),
}  # fmt: skip


def raised(act: Callable[[], Any]) -> BaseException:
    with pytest.raises((Exception, KeyboardInterrupt)) as caught:
        act()
    return caught.value


def frames(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


def chain(error: BaseException | None) -> list[BaseException]:
    if error is None:
        return []
    group = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return [error, *chain(error.__cause__), *chain(error.__context__), *[e for each in group for e in chain(each)]]


LAST = {
    loss: "layer",
    caused: "caused",
    handled: "handled",
    grouped: "grouped",
    interrupted: "interrupted",
    deep: "deep",
}


@pytest.mark.parametrize("way", WAYS)
def test_tracebacks_have_user_code_alone(way: str) -> None:
    for f, name in LAST.items():
        error = raised(lambda f=f: WAYS[way](f))
        assert not [frame for each in chain(error) for frame in frames(each) if frame.filename.startswith(FNAD)]
        assert (frames(error)[-1].filename, frames(error)[-1].name) == (__file__, name)


SGD = fnad.optim.sgd(0.1)
ERRORS_OF_FNAD: dict[str, Callable[[], Any]] = {
    "no function": lambda: fnad.grad(cast("Any", 3)),
    "no function to a decorator": lambda: fnad.grad(argnums=1)(cast("Any", 3)),
    "key": lambda: fnad.random.key(cast("Any", "x")),
    "vector": lambda: fnad.flatten_util.ravel_pytree("x"),
    "argnums": lambda: fnad.grad(loss, 5)(W, X),
    "keyword": lambda: cast("Any", fnad.jit)(loss, wrt=0),
    "keyword of an optimizer": lambda: cast("Any", fnad.optim.sgd)(lr=0.1),
    "leaf": lambda: fnad.jit(loss)("text", X),
    "cotangent": lambda: fnad.vjp(np.sin, X)[1](W),
    "tangent": lambda: fnad.linearize(np.sin, X)[1](W),
    "update": lambda: SGD.update(W, (), W),
    "applied": lambda: fnad.optim.apply_updates(W, X),
    "rule": lambda: fnad.custom_vjp(loss)(W, X),
    "program": lambda: fnad.make_program(np.sin)(X)(W),
    "stage": lambda: fnad.make_program(np.sin)(X).as_text("none"),
    "carry": lambda: fnad.scan(lambda c, _: (c[:-1], None), X, None, 2),
    "when it runs": lambda: fnad.jit(np.linalg.cholesky)(-np.eye(3)),
    "name": lambda: cast("Any", fnad).gard,
    "name of a package": lambda: cast("Any", fnad.optim).Adam,
    "name of a setting": lambda: cast("Any", fnad.config).update,
    "setting": lambda: fnad.config.override(executor=cast("Any", "none")),
    "default": lambda: fnad.config.set_default(speed=1),
    "sparse": lambda: fnad.sparse_jacobian(np.sin).sparsity(1j * W),
}  # fmt: skip


@pytest.mark.parametrize("what", ERRORS_OF_FNAD)
def test_the_last_line_of_an_error_of_fnad_is_that_of_the_call(what: str) -> None:
    error = raised(ERRORS_OF_FNAD[what])
    assert isinstance(error, fnad.errors.FnadError)
    assert (frames(error)[-1].filename, frames(error)[-1].name) == (__file__, "<lambda>")


def test_a_wrong_product_takes_few_lines() -> None:
    """The text is as long as without fnad, and two lines for what is wrong."""
    text = "".join(traceback.format_exception(raised(lambda: fnad.jit(fnad.grad(loss))(W, X))))
    plain = "".join(traceback.format_exception(raised(lambda: loss(W, X))))
    assert text.count("\n") <= plain.count("\n") + 5


def test_code_of_a_notebook() -> None:
    file, cell = "<ipython-input-1-0123456789ab>", "import fnad\ndef f(x):\n    return 1 / 0\nfnad.grad(f)(1.0)\n"
    linecache.cache[file] = len(cell), None, cell.splitlines(keepends=True), file
    error = raised(lambda: exec(compile(cell, file, "exec"), {}))
    assert [frame.line for frame in frames(error)[-2:]] == ["fnad.grad(f)(1.0)", "return 1 / 0"]


def test_frames_of_other_libraries_stay() -> None:
    error = raised(lambda: scipy.optimize.minimize(fnad.value_and_grad(loss), W.ravel(), X, jac=True))
    files = [Path(frame.filename).name for frame in frames(error)]
    assert "_optimize.py" in files
    assert not any(frame.filename.startswith(FNAD) for frame in frames(error))


def test_a_debugger_begins_in_user_code() -> None:
    error = raised(lambda: fnad.jit(fnad.grad(loss))(W, X))
    stack, at = pdb.Pdb().get_stack(None, error.__traceback__)
    assert original_of(stack[at][0].f_code) is layer.__code__
    assert original_of(stack[at - 1][0].f_code) is loss.__code__


def test_the_setting_keeps_all_frames() -> None:
    with config.override(traceback_filtering=False):
        error = raised(lambda: fnad.jit(fnad.grad(loss))(W, X))
    assert frames(error)[-1].filename.startswith(FNAD)


@pytest.mark.parametrize(("value", "are_kept"), [("off", True), ("on", False), ("", False)])
def test_the_environment_variable_keeps_all_frames(value: str, are_kept: bool) -> None:
    program = "import fnad; fnad.grad(lambda x: 1 / 0)(1.0)"
    environment = os.environ | {"FNAD_TRACEBACK_FILTERING": value}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert (FNAD in done.stderr) == are_kept
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_public_functions_are_pickled_by_their_names() -> None:
    for name in fnad.__all__:
        found = getattr(fnad, name)
        if callable(found):
            assert pickle.loads(pickle.dumps(found)) is found
