"""Row 49: derivatives that the user states, in every mode and order, and what is wrong with one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fnad
from fnad.errors import ArgnumsError, CustomRuleError

executors = pytest.mark.parametrize("executor", ["interpreter", "compiled"])
X = np.array([0.3, -1.2, 2.0])


def along(f: Any) -> Any:
    """Return the derivative of a function of a number, forwards."""
    return lambda x: fnad.jvp(f, (x,), (1.0,))[1]


@fnad.custom_vjp
def tripled(x: Any, y: Any) -> Any:
    """Return x² y, whose rule says thrice the slope in x, and none in y."""
    return x**2 * y


tripled.defvjp(lambda x, y: (x**2 * y, {"x": x, "y": y}), lambda kept, ct: (6.0 * kept["x"] * kept["y"] * ct, None))


@fnad.custom_jvp
def sine(x: Any) -> Any:
    """Return the sine, whose rule calls it."""
    return np.sin(x)


@sine.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    return sine(x), sine(x + np.pi / 2) * dx


@executors
def test_the_rule_is_the_derivative_in_both_modes(executor: Any) -> None:
    with fnad.config.override(executor=executor):
        dx, dy = fnad.grad(lambda x, y: np.sum(tripled(x, y)), argnums=(0, 1))(X, X + 1.0)
        value, pushed = fnad.jvp(tripled, (X, X + 1.0), (np.ones(3), np.ones(3)))
    assert_allclose(dx, 6.0 * X * (X + 1.0))
    assert_allclose(dy, np.zeros(3))
    assert_allclose(value, X**2 * (X + 1.0))
    assert_allclose(pushed, 6.0 * X * (X + 1.0))


@executors
def test_row_49_the_second_derivative_is_that_of_the_rule(executor: Any) -> None:
    with fnad.config.override(executor=executor):
        slope = fnad.grad(lambda x: np.sum(tripled(x, X)))
        second = fnad.grad(lambda x: np.sum(slope(x)))(X)
        along = fnad.jvp(slope, (X,), (np.ones(3),))[1]
    assert_allclose(second, 6.0 * X)
    assert_allclose(along, 6.0 * X)


@executors
def test_a_rule_calls_its_own_function(executor: Any) -> None:
    with fnad.config.override(executor=executor):
        derivative = fnad.jit(fnad.grad(fnad.grad(fnad.grad(sine))))
        assert_allclose(fnad.grad(sine)(0.4), np.cos(0.4))
        assert_allclose(derivative(0.4), -np.cos(0.4))


@fnad.custom_jvp
def rounded(x: Any) -> Any:
    """Return the nearest integer, whose rule says that of the identity, once."""
    return np.round(x)


@rounded.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return np.round(primals[0]), tangents[0]


@pytest.mark.parametrize("outer", [fnad.grad, along], ids=["reverse", "forward"])
@pytest.mark.parametrize("inner", [fnad.grad, along], ids=["reverse", "forward"])
def test_a_derivative_takes_the_value_that_the_rule_returns(outer: Any, inner: Any) -> None:
    slope = inner(lambda x: rounded(x) ** 2)
    assert slope(1.7) == 4.0  # 2 round(x)
    assert outer(slope)(1.7) == 0.0  # np.round has no slope of its own
    assert fnad.jit(outer(slope))(1.7) == 0.0


def test_a_rule_that_calls_itself_is_followed_so_far() -> None:
    f: Any = sine
    for _ in range(4):
        f = fnad.grad(f)
    with pytest.raises(CustomRuleError, match="deeper than it is followed"):
        f(0.4)


@executors
def test_inside_loops_and_branches(executor: Any) -> None:
    def f(x: Any) -> Any:
        carry = fnad.scan(lambda s, r: (sine(s) + r, None), x, X)[0]
        return fnad.cond(carry > 0.0, lambda: tripled(carry, 2.0), lambda: sine(carry))

    def plain(x: Any) -> Any:
        carry = fnad.scan(lambda s, r: (np.sin(s) + r, None), x, X)[0]
        return fnad.cond(carry > 0.0, lambda: 3.0 * carry**2 * 2.0, lambda: np.sin(carry))

    with fnad.config.override(executor=executor):
        assert_allclose(fnad.grad(f)(0.7), fnad.grad(plain)(0.7))


def test_arguments_that_are_not_differentiated() -> None:
    apply = fnad.custom_vjp(lambda f, x: f(x), nondiff_argnums=0)
    apply.defvjp(lambda f, x: (f(x), x), lambda f, x, ct: (ct * 10.0 * f(x),))
    assert_allclose(fnad.grad(lambda x: np.sum(apply(np.exp, x)))(X), 10.0 * np.exp(X))
    n = fnad.jit(fnad.grad(lambda x, n: np.sum(apply(lambda v: v * n, x))))
    assert_allclose(n(X, 3), 30.0 * X)


def test_row_49_a_traced_value_from_outside() -> None:
    def f(x: Any) -> Any:
        g = fnad.custom_vjp(lambda y: x * y)
        g.defvjp(lambda y: (x * y, None), lambda _, ct: (ct * x,))
        return g(2.0)

    with pytest.raises(CustomRuleError, match="uses from outside"):
        fnad.grad(f)(3.0)
    with pytest.raises(CustomRuleError, match="uses from outside"):
        fnad.jvp(f, (3.0,), (1.0,))


def test_integers_among_the_arguments() -> None:
    f = fnad.custom_vjp(lambda x, n: x**n)
    f.defvjp(lambda x, n: (x**n, (x, n)), lambda kept, ct: (7.0 * ct, None))
    assert_allclose(fnad.grad(lambda x: f(x, np.int64(3)))(2.0), 7.0)


@pytest.mark.parametrize(
    ("fwd", "bwd", "message"),
    [
        (lambda x: x, lambda _, ct: (ct,), "not a pair"),
        (lambda x: ((x, x), None), lambda _, ct: (ct,), r"returned \(\*, \*\) where \* belongs"),
        (lambda x: (x[:1], None), lambda _, ct: (ct,), r"returned f64\[1\] where f64\[3\] belongs"),
        (lambda x: (x, None), lambda _, ct: ct, "not a tuple of 1"),
        (lambda x: (x, None), lambda _, ct: (ct, ct), "returned a tuple of 2, not a tuple of 1"),
        (lambda x: (x, None), lambda _, ct: (ct[0],), r"returned f64\[\] where f64\[3\] belongs"),
        (lambda x: (x, None), lambda _, ct: ([ct],), r"where \* belongs"),
    ],
)
def test_what_does_not_fit(fwd: Any, bwd: Any, message: str) -> None:
    f = fnad.custom_vjp(lambda x: x * 1.0)
    f.defvjp(fwd, bwd)
    with pytest.raises(CustomRuleError, match=message) as caught:
        fnad.grad(lambda x: np.sum(f(x)))(X)
    assert "test_custom.py" in str(caught.value)


def test_a_function_without_a_rule() -> None:
    with pytest.raises(CustomRuleError, match="has no rule"):
        fnad.grad(fnad.custom_vjp(np.sin))(1.0)


def test_a_position_that_is_not_there() -> None:
    f = fnad.custom_vjp(lambda x, y: x * y, nondiff_argnums=2)
    f.defvjp(lambda x, y: (x * y, y), lambda y, ct: (y * ct, None))
    with pytest.raises(ArgnumsError, match="nondiff_argnums names argument 2 of <lambda>") as caught:
        fnad.grad(lambda x: f(x, 3.0))(2.0)
    assert "test_custom.py" in str(caught.value)


@pytest.mark.parametrize(
    "rule", [np.abs, np.square, lambda t: np.where(t > 0, t, 0.5 * t), lambda t: np.clip(t, -1, 1)]
)
def test_a_rule_that_is_not_linear_has_no_transpose(rule: Any) -> None:
    """Its derivative at 0 is another linear function, such as 0."""
    forward, reverse = fnad.custom_jvp(lambda x: x**2), fnad.custom_vjp(lambda x: x**2)
    forward.defjvp(lambda primals, tangents: (primals[0] ** 2, rule(tangents[0])))
    reverse.defvjp(lambda x: (x**2, None), lambda _, ct: (rule(ct),))
    assert fnad.jvp(forward, (3.0,), (-2.0,))[1] == rule(-2.0)
    assert fnad.vjp(reverse, 3.0)[1](-2.0) == (rule(-2.0),)
    for transform in (fnad.grad, fnad.jacrev, fnad.hessian, lambda f: fnad.jit(fnad.grad(f))):
        with pytest.raises(CustomRuleError, match="is not linear in its tangents") as caught:
            transform(forward)(3.0)
        assert "test_custom.py" in str(caught.value)
    for transform in (fnad.jacfwd, lambda f: lambda x: fnad.jvp(f, (x,), (1.0,))):
        with pytest.raises(CustomRuleError, match="is not linear in its cotangents"):
            transform(reverse)(3.0)


def test_a_rule_may_be_linear_along_loops_and_branches() -> None:
    def solved(t: Any, x: Any) -> Any:
        t = fnad.fori_loop(0, 3, lambda i, c: 0.5 * c + t * x, t)
        t = fnad.scan(lambda c, w: (c * w, c), t, np.array([x, 2.0]))[0]
        return np.sum(np.stack([t, t]) / fnad.cond(x > 0, lambda t: 2 * t / t, lambda t: 3.0, 1.0))

    f = fnad.custom_jvp(lambda x: x**2)
    f.defjvp(lambda primals, tangents: (primals[0] ** 2, solved(tangents[0], primals[0])))
    assert fnad.grad(f)(3.0) == pytest.approx(fnad.jvp(f, (3.0,), (1.0,))[1])


@pytest.mark.slow
def test_a_rule_may_be_stated_again() -> None:
    """As by a cell of a notebook that runs twice: whatever was traced with the rule before follows the new one."""
    reverse, forward = fnad.custom_vjp(lambda x: x**2), fnad.custom_jvp(lambda x: x**2)
    calls = [
        made(f)
        for f in (reverse, forward)
        for made in (
            fnad.grad,
            lambda f: fnad.jit(fnad.grad(f)),
            lambda f: fnad.grad(fnad.jit(lambda x: f(x))),
            lambda f: fnad.jit(lambda x: fnad.grad(f)(x)),
            lambda f: fnad.jit(fnad.grad(lambda x: fnad.cond(x > 0, f, f, x))),
            lambda f: lambda x: fnad.jit(fnad.vmap(fnad.grad(f)))(np.array([x]))[0],
        )
    ]
    for slope in (1.0, 5.0, 7.0):
        reverse.defvjp(lambda x: (x**2, None), lambda _, ct, slope=slope: (slope * ct,))
        forward.defjvp(lambda primals, tangents, slope=slope: (primals[0] ** 2, slope * tangents[0]))
        for _ in range(12):  # beyond the calls after which the last one is made directly
            assert [call(3.0) for call in calls] == [slope] * len(calls)


def test_a_rule_may_be_stated_by_its_part_for_each_argument() -> None:
    """The names it uses from outside may change, as in any rule."""

    @fnad.custom_jvp
    def f(x: Any, y: Any, z: Any) -> Any:
        return {"a": np.sin(x) * y, "b": (z * x,)}

    factor = [1.0]
    f.defjvps(
        lambda dx, out, x, y, z: {
            "a": np.array([factor[0] * np.cos(x), 0.0])[0] * y * dx,
            "b": (out["b"][0] / x * dx,),
        },
        None,
        lambda dz, out, x, y, z: {"a": 0.0 * x, "b": (x * dz,)},
    )
    total = lambda x, y, z: f(x, y, z)["a"] + f(x, y, z)["b"][0]  # noqa: E731
    slopes = fnad.jit(fnad.grad(total, (0, 1, 2)))
    assert_allclose(slopes(1.0, 2.0, 3.0), [2 * np.cos(1.0) + 3, 0, 1])
    assert_allclose(fnad.grad(fnad.grad(total))(1.0, 2.0, 3.0), -2 * np.sin(1.0))
    factor[0] = 5.0
    assert_allclose(slopes(1.0, 2.0, 3.0), [10 * np.cos(1.0) + 3, 0, 1])
    constant = fnad.custom_jvp(lambda x: x * 2)
    constant.defjvps(None)
    assert fnad.grad(constant)(2.0) == 0


@executors
def test_arguments_by_keyword_and_defaults_come_by_position(executor: str) -> None:
    def f(x: Any, y: Any = 2.0, *, scale: float = 1.0) -> Any:
        return x**2 * y * scale

    forward, backward = fnad.custom_jvp(f), fnad.custom_vjp(f)
    forward.defjvp(lambda p, t: (f(*p), 6.0 * p[0] * p[1] * t[0] + p[0] ** 2 * t[1]))
    backward.defvjp(lambda x, y: (f(x, y), (x, y)), lambda kept, ct: (6.0 * kept[0] * kept[1] * ct, kept[0] ** 2 * ct))
    with fnad.config.override(executor=executor):
        for g in (forward, backward):
            assert_allclose([g(3.0), g(3.0, y=4.0), g(y=4.0, x=3.0)], [18.0, 36.0, 36.0])
            assert_allclose(fnad.grad(g)(3.0), 36.0)
            assert_allclose(fnad.grad(lambda x, g=g: g(x, y=4.0))(3.0), 72.0)
            assert_allclose(fnad.grad(lambda y, g=g: g(y=y, x=3.0))(4.0), 9.0)
            assert_allclose(fnad.jit(fnad.grad(lambda x, y, g=g: g(x, y=y), argnums=(0, 1)))(3.0, 4.0), (72.0, 9.0))


def test_an_argument_that_has_no_position_is_refused() -> None:
    f = fnad.custom_jvp(lambda x, *, scale=1.0: x * scale)
    f.defjvp(lambda p, t: (f(*p), t[0]))
    assert_allclose(fnad.grad(f)(3.0), 1.0)
    with pytest.raises(CustomRuleError, match="takes scale by keyword alone"):
        fnad.grad(lambda x: f(x, scale=2.0))(3.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        fnad.grad(lambda x: f(x, other=2.0))(3.0)
    sine = fnad.custom_jvp(np.sin)
    sine.defjvp(lambda p, t: (sine(*p), np.cos(p[0]) * t[0]))
    assert_allclose(fnad.grad(sine)(3.0), np.cos(3.0))
    with pytest.raises(CustomRuleError, match="takes dtype by keyword alone"):
        fnad.grad(lambda x: sine(x, dtype=np.float32))(3.0)
