"""Values and cotangents out of the middle of functions: under every transform, out of loops and branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fnad
from fnad import config, cotangent_tap, grad, jit, tap, tapped, value_and_grad
from fnad.errors import TapError
from tests.together import together

W = np.array([0.0, 0.5, 1.0])


@pytest.fixture(autouse=True)
def _interpreted() -> Any:
    with config.override(executor="interpreter"):
        yield


def loss(w: Any) -> Any:
    return np.sum(cotangent_tap(tap(np.tanh(w), "h"), "dh") ** 2)


H, DH = np.tanh(W), 2.0 * np.tanh(W)
G = DH * (1.0 - H**2)

WAYS: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "grad": lambda: tapped(grad(loss))(W),
    "jit": lambda: jit(tapped(grad(loss)))(W),
    "of jit": lambda: tapped(jit(grad(loss)))(W),
    "of checkpoint": lambda: tapped(grad(fnad.checkpoint(loss)))(W),
    "vjp": lambda: tapped(lambda w: fnad.vjp(loss, w)[1](1.0)[0])(W),
    "keyword": lambda: tapped(lambda *, w: grad(loss)(w))(w=W),
}


def test_values_and_cotangents_under_every_transform() -> None:
    assert loss(W) == np.sum(H**2)
    assert_array_equal(grad(loss)(W), jit(grad(loss))(W))
    with together() as check:
        for name, run in WAYS.items():
            with check(name):
                gradient, taps = run()
                assert_allclose(gradient, G, rtol=1e-14)
                assert list(taps) == ["h", "dh"]
                assert_allclose(taps["h"], H, rtol=1e-14)
                assert_allclose(taps["dh"], DH, rtol=1e-14)


def test_forward_mode_has_values_alone_and_nested_reverse_the_innermost_cotangent() -> None:
    _, taps = tapped(lambda w: fnad.jvp(loss, (w,), (w,)))(W)
    assert list(taps) == ["h"]
    second, taps = tapped(grad(grad(lambda x: cotangent_tap(x**3, "d") ** 2)))(2.0)
    assert (second, taps["d"]) == (6 * 5 * 2.0**4, 2 * 2.0**3)
    assert_allclose(tapped(fnad.hessian(loss))(W)[1]["h"], H)


def test_rows_of_vmap() -> None:
    rows = np.stack([W, W + 1.0])
    for transformed in (fnad.vmap(tapped(grad(loss))), tapped(fnad.vmap(grad(loss)))):
        gradients, taps = transformed(rows)
        assert_allclose(gradients, [grad(loss)(w) for w in rows], rtol=1e-14)
        assert_allclose(taps["dh"], 2.0 * np.tanh(rows), rtol=1e-14)


def test_what_is_tapped_has_a_derivative() -> None:
    assert_allclose(grad(lambda w: np.sum(tapped(loss)(w)[1]["h"]))(W), 1.0 - H**2, rtol=1e-14)


RATES = np.array([1.0, 2.0, 3.0, 4.0])


def recurrence(x: Any, rates: Any = RATES) -> Any:
    def step(c: Any, t: Any) -> Any:
        c = cotangent_tap(tap(np.sin(c) * t, "c"), "dc")
        return c, fnad.cond(t > 1.5, lambda c: tap(c * 2.0, "y"), lambda c: tap({"u": c, "v": 3}, "z")["u"], c)

    return np.sum(fnad.scan(step, x, rates)[1])


def by_hand(x: float, rates: Any) -> tuple[list[float], list[float]]:
    states = [x]
    for t in rates:
        states.append(np.sin(states[-1]) * t)
    cts, behind = [], 0.0
    for i in reversed(range(len(rates))):
        ct = behind + (2.0 if rates[i] > 1.5 else 1.0)
        behind = ct * np.cos(states[i]) * rates[i]
        cts.insert(0, ct)
    return states[1:], cts


@pytest.mark.parametrize("rates", [RATES, RATES[:1]])
def test_rows_of_a_scan(rates: Any) -> None:
    states, cts = by_hand(0.3, rates)
    for f in (recurrence, fnad.checkpoint(recurrence)):
        _, taps = tapped(grad(lambda x, f=f: f(x, rates)))(0.3)
        assert_allclose(taps["c"], states, rtol=1e-13)
        assert_allclose(taps["dc"], cts, rtol=1e-13)
        assert_allclose(taps["y"], [2.0 * s if t > 1.5 else np.nan for s, t in zip(states, rates, strict=True)])
        assert_allclose(taps["z"]["u"], [np.nan if t > 1.5 else s for s, t in zip(states, rates, strict=True)])
        assert_array_equal(taps["z"]["v"], [0 if t > 1.5 else 3 for t in rates])


def test_a_compiled_scan() -> None:
    states, cts = by_hand(0.3, RATES)
    with config.override(executor="auto"):
        _, taps = jit(tapped(value_and_grad(recurrence)))(0.3)
    assert_allclose(taps["c"], states, rtol=1e-13)
    assert_allclose(taps["dc"], cts, rtol=1e-13)


def test_the_last_step_of_a_loop_of_unknown_length() -> None:
    def grown(x: Any) -> Any:
        return fnad.while_loop(lambda c: c < 10.0, lambda c: cotangent_tap(tap(c * 1.5, "c"), "dc"), x)

    assert tapped(grown)(1.0) == (1.5**6, {"c": 1.5**6})
    (value, slope), taps = tapped(value_and_grad(grown))(1.0)
    assert (value, slope, taps) == (1.5**6, 1.5**6, {"c": 1.5**6, "dc": 1.5**5})  # backwards it ends at the first
    assert np.isnan(tapped(grown)(20.0)[1]["c"])
    assert grad(lambda x: tapped(grown)(x)[1]["c"])(1.0) == 1.5**6


def test_the_path_that_python_takes() -> None:
    f = tapped(lambda x: tap(x, "positive") * 2.0 if x > 0 else tap(-x, "negative"))
    assert f(1.0) == (2.0, {"positive": 1.0})
    assert jit(f)(-1.0) == (1.0, {"negative": 1.0})


def test_a_rule_of_the_users_is_kept_where_the_tapped_function_is_differentiated() -> None:
    @fnad.custom_vjp
    def tripled(x: Any) -> Any:
        return tap(x * x, "square")

    tripled.defvjp(lambda x: (tripled(x), None), lambda _, ct: (3.0 * ct,))
    assert tapped(tripled)(2.0) == (4.0, {"square": 4.0})
    for way in (lambda f: f, jit):
        assert grad(way(lambda x: tapped(tripled)(x)[0]))(2.0) == 3.0
        assert tapped(way(grad(tripled)))(2.0) == (3.0, {"square": 4.0})


def test_taps_in_what_a_solver_solves() -> None:
    f = tapped(lambda a: fnad.root(lambda x: tap(x**3 - a, "residual"), 1.0))
    value, taps = f(8.0)
    assert_allclose(value, 2.0)
    assert abs(taps["residual"]) < 1e-6
    assert_allclose(grad(lambda a: f(a)[0])(8.0), 1.0 / 12.0)


def test_inner_taps_belong_to_the_inner_function() -> None:
    def outer(x: Any) -> Any:
        value, taps = tapped(lambda y: tap(y * 2.0, "a"))(x)
        return value + tap(taps["a"], "a")

    assert tapped(outer)(1.0) == (4.0, {"a": 2.0})


def test_values_with_one_name() -> None:
    with pytest.raises(TapError, match="two values are tapped as 'a'"):
        tapped(lambda x: tap(x, "a") + tap(x, "a"))(1.0)
    with pytest.raises(TapError, match="two values are tapped as 'a'"):
        tapped(lambda x: fnad.scan(lambda c, _: (tap(c, "a"), None), tap(x, "a"), length=2)[0])(1.0)
    with pytest.raises(TapError, match=r"branches tap 'a' as f64\[1\], f64\[\]"):
        tapped(lambda x: fnad.cond(x > 0, lambda x: tap(x, "a"), lambda x: tap(np.ones(1), "a")[0] + x, x))(1.0)
