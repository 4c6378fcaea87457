"""Where the first nan or inf arises: the line, the operation, the element, the mode, the step, in every transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad
from fnad import config, debug_nans, grad, jit, jvp, value_and_grad, vjp
from fnad.errors import FactorizationError, LoopLimitError, NonFiniteError
from fnad.transforms.nonfinite import Origin
from tests.together import together

X = np.array([4.0, 0.0])


def roots(x: Any) -> Any:
    y = np.sqrt(x)  # blamed
    return np.sum(y * 2.0)


def origin_of(run: Callable[[], Any]) -> Origin:
    with debug_nans(), config.override(executor="interpreter"), pytest.raises(NonFiniteError) as caught:
        run()
    assert isinstance(caught.value, FloatingPointError)
    return caught.value.origin


def line_of(origin: Origin) -> str:
    return str(origin.source).partition(":  ")[2]


DERIVATIVES: dict[str, Callable[[], Any]] = {
    "grad": lambda: grad(roots)(X),
    "value_and_grad": lambda: value_and_grad(roots)(X),
    "jit grad": lambda: jit(grad(roots))(X),
    "vjp": lambda: vjp(roots, X)[1](1.0),
    "jvp": lambda: jvp(roots, (X,), (X + 1.0,)),
    "linearize": lambda: fnad.linearize(roots, X)[1](X + 1.0),
    "jacfwd": lambda: fnad.jacfwd(roots)(X),
    "jacrev": lambda: fnad.jacrev(np.sqrt)(X),
    "hvp": lambda: fnad.hvp(roots, (X,), (X + 1.0,)),
    "vmap": lambda: fnad.vmap(grad(roots))(np.stack([X + 1.0, X])),
}


def test_the_derivative_of_a_line_is_blamed_in_every_transform() -> None:
    with together() as check:
        for name, run in DERIVATIVES.items():
            with check(name):
                origin = origin_of(run)
                assert origin.equation.primitive.name == "div"
                assert (float(origin.value), origin.operands[1], origin.place[-1]) == (np.inf, 0.0, 1)
                assert line_of(origin) in {"y = np.sqrt(x)  # blamed", '"jacrev": lambda: fnad.jacrev(np.sqrt)(X),'}
                modes = {"jvp", "linearize", "jacfwd"}
                assert ("forward" in origin.mode) if name in modes else ("reverse" in origin.mode or name == "hvp")


def stepwise(x: Any) -> Any:
    def outer(c: Any, t: Any) -> Any:
        rows = fnad.scan(lambda d, s: (d, np.log(d - s)), c, np.array([-1.0, t]), reverse=True)[1]
        return c, np.sum(rows)

    return np.sum(fnad.scan(outer, x, np.arange(4.0))[1])


def endless(x: Any) -> Any:
    return fnad.while_loop(lambda c: c != 5.0, lambda c: c + np.log(c - 3.0), x, max_steps=4)


def branching(x: Any) -> Any:
    return fnad.cond(x > 1.0, lambda x: x, lambda x: 1.0 / (x - 0.5), x)


VALUES: dict[str, tuple[Callable[[], Any], str, list[int]]] = {
    "value": (lambda: jit(roots)(-X - 1.0), "sqrt", []),
    "loops": (lambda: jit(stepwise)(2.0), "log", [2, 1]),
    "gradient of loops": (lambda: value_and_grad(stepwise)(2.0), "log", [2, 1]),
    "an error that follows": (lambda: jit(endless)(3.0), "log", [0]),
    "a singular matrix": (lambda: jit(lambda x: np.linalg.inv(np.log(x)))(np.zeros((2, 2))), "log", []),
    "branch": (lambda: jit(branching)(0.5), "div", []),
    "Python's branch": (lambda: jit(lambda x: np.log(x) if x < 1.0 else x)(0.0), "log", []),
    "inf before nan": (lambda: jit(lambda x: x * np.log(x))(0.0), "log", []),
    "nan of a constant": (lambda: jit(lambda x: x * np.array([1.0, np.inf]))(np.zeros(2)), "mul", []),
    "beside a given nan": (lambda: jit(np.log)(np.array([np.nan, 0.0])), "log", []),
    "overflow of a sum": (lambda: jit(lambda x: np.sum(x * 1e308))(np.ones(2)), "reduce_sum", []),
    "complex": (lambda: jit(lambda x: np.sum(1j / x))(np.zeros(2)), "div", []),
    "custom": (lambda: grad(fnad.checkpoint(lambda x: np.log(x) * 2.0))(0.0), "div", []),
    "root": (lambda: jit(lambda a: fnad.root(lambda x: x - np.log(a), 1.0))(0.0), "log", [0]),
}


def test_what_arises_in_values_in_loops_and_before_other_errors() -> None:
    with together() as check:
        for name, (run, primitive, steps) in VALUES.items():
            with check(name):
                origin = origin_of(run)
                assert origin.equation.primitive.name == primitive
                assert [step.number for step in origin.steps] == steps or name == "root"


def test_what_is_no_finding() -> None:
    masked = np.array([0.0, -np.inf])
    calls: dict[str, tuple[Callable[..., Any], Any]] = {
        "a constant": (lambda x: x + masked, np.ones(2)),
        "an argument": (lambda x: x * 2.0, np.array([np.nan, 1.0])),
        "a branch not chosen": (lambda x: np.where(x > 0.0, np.log(x), 0.0), X),
        "its derivative": (grad(lambda x: np.sum(np.where(x > 0.0, np.sqrt(x), 0.0))), X),
        "a maximum of a masked array": (lambda x: np.max(x + masked), np.ones(2)),
        "what comes back": (lambda x: 1.0 / (1.0 + np.exp(-x)), np.array([-1000.0])),
        "integers": (lambda x: np.argmax(x / 0.0), np.ones(2)),
        "a finite pullback": (lambda x: vjp(lambda x: np.where(x > 0.0, np.sqrt(x), x), x)[1](x)[0], X),
    }
    with together() as check, config.override(executor="interpreter"):
        for name, (f, x) in calls.items():
            with check(name):
                expected = jit(f)(x)
                with debug_nans():
                    np.testing.assert_array_equal(jit(f)(x), expected)
                    np.testing.assert_array_equal(f(x) if name == "a finite pullback" else expected, expected)


def test_the_same_other_errors_without_a_nan() -> None:
    with debug_nans(), config.override(executor="interpreter"):
        with pytest.raises(FactorizationError):
            jit(np.linalg.inv)(np.zeros((2, 2)))
        with pytest.raises(LoopLimitError):
            jit(lambda x: fnad.while_loop(lambda c: c > 0.0, lambda c: c + 1.0, x, max_steps=3))(1.0)


def test_effects_happen_once() -> None:
    seen: list[float] = []

    @jit
    def f(x: Any) -> Any:
        fnad.callback(seen.append, x)
        return np.log(x) if x < 1.0 else x

    with debug_nans():
        assert f(2.0) == f(2.0) == 2.0
        with pytest.raises(NonFiniteError):
            f(0.0)
    assert seen == [2.0, 2.0, 0.0]


def test_compiled_loops_and_their_derivatives() -> None:
    f = jit(value_and_grad(stepwise))
    for _ in range(2):
        f(9.0)  # compiled
    with debug_nans(), pytest.raises(NonFiniteError) as caught:
        f(2.0)
    assert [step.number for step in caught.value.origin.steps] == [2, 1]
    assert str(caught.value).splitlines()[0] == "inf arises: log(0.0) = -inf"


def test_the_setting_ends_with_the_block() -> None:
    pull = vjp(roots, X)[1]
    with debug_nans():
        inside = vjp(roots, X)[1]
        with debug_nans(False):
            assert np.isinf(inside(1.0)[0][1])
    assert np.isinf(inside(1.0)[0][1])
    assert np.isinf(pull(1.0)[0][1])
