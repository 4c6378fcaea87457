"""Derivatives of what functions of the host return: errors, unless stated by a rule or stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fnad
from fnad.errors import CallbackError
from tests.together import together

X = np.array([0.3, -1.2, 2.0])
REMEDY = (
    "call it by fnad.external or fnad.custom_vjp, which take its derivative, or give the call "
    "fnad.stop_gradient(x) for its arguments"
)


def host_sine(x: Any) -> Any:
    return fnad.callback(np.sin, x, result=x)


def host_cosine(x: Any) -> Any:
    return fnad.callback(np.cos, x, result=x)


by_vjp = fnad.custom_vjp(host_sine)
by_vjp.defvjp(lambda x: (host_sine(x), x), lambda x, ct: (ct * host_cosine(x),))
by_jvp = fnad.custom_jvp(host_sine)
by_jvp.defjvp(lambda xs, dxs: (host_sine(xs[0]), dxs[0] * host_cosine(xs[0])))
pulled_by_host = fnad.custom_vjp(host_sine)
pulled_by_host.defvjp(
    lambda x: (host_sine(x), x), lambda x, ct: (fnad.callback(lambda x, ct: ct * np.cos(x), x, ct, result=x),)
)


def in_scan(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: fnad.scan(lambda c, v: (c * v, f(c)), 1.0, x)[1]


def in_while(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: fnad.while_loop(lambda c: c[1] < 2, lambda c: (c[0] * f(c[0]), c[1] + 1), (x, 0))[0]


def in_branch(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: fnad.cond(x[0] > 0, f, lambda x: x, x)


def in_checkpoint(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: fnad.checkpoint(lambda x: x * f(x))(x)


def in_rows(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: fnad.vmap(lambda v: v * f(v))(x)


def alone(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return f


PLACES = [alone, in_scan, in_while, in_branch, in_checkpoint, in_rows]
MODES: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "grad": lambda f: fnad.grad(lambda x: np.sum(f(x)))(X),
    "vjp": lambda f: fnad.vjp(f, X)[1](np.ones(3))[0],
    "jvp": lambda f: fnad.jvp(f, (X,), (np.ones(3),))[1],
    "linearize": lambda f: fnad.linearize(f, X)[1](np.ones(3)),
    "jit": lambda f: fnad.jit(fnad.grad(lambda x: np.sum(f(x))))(X),
    "hessian": lambda f: fnad.hessian(lambda x: np.sum(f(x)))(X),
    "jet": lambda f: fnad.jet(f, (X,), ((np.ones(3), np.zeros(3)),))[1],
}
modes = pytest.mark.parametrize("mode", MODES)
first_order = pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in ("hessian", "jet")])


@modes
def test_a_result_of_the_host_is_not_differentiated_in_silence(mode: str) -> None:
    with together() as check:
        for place in PLACES:
            with check(place.__name__), pytest.raises(CallbackError) as found:
                MODES[mode](place(host_sine))
            what = "the result of fnad.callback is differentiated, and the derivative of sin is not known"
            assert (found.value.what, found.value.remedy) == (what, REMEDY)
            assert "in host_sine" in str(found.value.source)


@modes
def test_what_takes_stopped_arguments_is_a_constant(mode: str) -> None:
    with together() as check:
        for place in PLACES:
            with check(place.__name__):
                found = MODES[mode](place(lambda x: x * host_sine(fnad.stop_gradient(x))))
                assert_allclose(found, MODES[mode](place(lambda x: x * fnad.stop_gradient(np.sin(x)))))


@modes
def test_a_stopped_result_is_a_constant(mode: str) -> None:
    with together() as check:
        for place in PLACES:
            with check(place.__name__):
                found = MODES[mode](place(lambda x: x * fnad.stop_gradient(host_sine(x))))
                assert_allclose(found, MODES[mode](place(lambda x: x * fnad.stop_gradient(np.sin(x)))))


@first_order
def test_a_rule_states_the_derivative(mode: str) -> None:
    for f in (by_vjp, by_jvp):
        assert_allclose(MODES[mode](f), np.cos(X))
    if mode in ("jvp", "linearize"):  # this is the transpose of what the host computes
        with pytest.raises(CallbackError, match="is not known"):
            MODES[mode](pulled_by_host)
    else:
        assert_allclose(MODES[mode](pulled_by_host), np.cos(X))


def squared_slope(f: Any) -> Callable[[Any], Any]:
    return lambda x: np.sum(fnad.grad(lambda x: np.sum(f(x)))(x) ** 2)


@pytest.mark.parametrize("f", [by_vjp, by_jvp, pulled_by_host], ids=["vjp", "jvp", "pulled by the host"])
def test_a_second_derivative_differentiates_the_rule(f: Any) -> None:
    for second in (
        lambda: fnad.hessian(lambda x: np.sum(f(x)))(X),
        lambda: fnad.grad(squared_slope(f))(X),
        lambda: fnad.jvp(squared_slope(f), (X,), (X,)),
    ):
        with pytest.raises(CallbackError, match="is not known"):
            second()


def test_a_rule_in_a_rule_gives_second_derivatives() -> None:
    cosine = fnad.custom_jvp(host_cosine)
    cosine.defjvp(lambda xs, dxs: (cosine(*xs), -dxs[0] * host_sine(xs[0])))
    sine = fnad.custom_vjp(host_sine)
    sine.defvjp(lambda x: (host_sine(x), x), lambda x, ct: (ct * cosine(x),))
    assert_allclose(fnad.hessian(lambda x: np.sum(sine(x)))(X), np.diag(-np.sin(X)), atol=1e-15)


@first_order
def test_what_has_no_derivative_by_its_dtype_or_is_not_differentiated_is_returned(mode: str) -> None:
    results: list[Callable[[Any], Any]] = [
        lambda x: x * fnad.callback(lambda x: len(x), x, result=0),
        lambda x: np.where(fnad.callback(lambda x: x > 5.0, x, result=X > 0), 0.0, 3.0 * x),
        lambda x: x * fnad.callback(lambda i: np.full(3, 3.0 * i), 1, result=X),
        lambda x: 3.0 * x * np.sign(1.0 + abs(host_sine(x))),
    ]
    for f in results:
        assert_allclose(MODES[mode](f), np.full(3, 3.0))


def test_other_results_are_not_differentiated() -> None:
    def with_record(x: Any) -> Any:
        return np.sum(x**2), host_sine(x)

    _, slope = fnad.value_and_grad(with_record, has_aux=True)(X)
    _, pushed, _ = fnad.jvp(with_record, (X,), (X,), has_aux=True)
    _, push, _ = fnad.linearize(with_record, X, has_aux=True)
    assert_allclose(slope, 2.0 * X)
    assert_allclose([pushed, push(X)], 2.0 * np.sum(X**2))
