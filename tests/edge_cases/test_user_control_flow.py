"""Python's own control flow on traced values: what is run is what is differentiated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fnad
from fnad import config, grad, jit, jvp, value_and_grad, vjp
from fnad.errors import ControlFlowWarning
from tests.edge_cases.ways import check

floats = pytest.mark.parametrize("dtype", [np.float64, np.float32])

# ---- row 17: equality of floats --------------------------------------------------------------------------------------


def zero_at_zero(x: Any) -> Any:
    return 0.0 * x if x == 0 else x


@pytest.mark.filterwarnings("ignore::fnad.errors.ControlFlowWarning")
@floats
def test_row_17_the_derivative_of_the_branch(dtype: Any) -> None:
    check(zero_at_zero, dtype(0), value=0, gradient=[0], hessian=[[0]], inside=False)


@floats
def test_row_17_elsewhere_there_is_nothing_to_say(dtype: Any) -> None:
    check(zero_at_zero, dtype(2), value=2, gradient=[1], hessian=[[0]], inside=False)


def unless_one(x: Any) -> Any:
    return x * x if x != 1.0 else x


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (zero_at_zero, 0.0),
        (unless_one, 1.0),
        (lambda x: x if x else 1.0, 0.0),
        (lambda x: 2 * x if x in (1.0, 2.0) else x, 2.0),
    ],
)
@pytest.mark.parametrize(
    "way", [grad, value_and_grad, lambda f: lambda x: vjp(f, x), lambda f: lambda x: jvp(f, (x,), (1.0,))]
)
@pytest.mark.parametrize("outer", [jit, lambda f: f])
def test_row_17_a_warning_names_the_line(f: Any, x: float, way: Any, outer: Any) -> None:
    transformed = outer(lambda x: way(f)(x)[0]) if way not in (grad, value_and_grad) else outer(way(f))
    with config.override(executor="interpreter"), pytest.warns(ControlFlowWarning) as caught:
        transformed(x)
    said = str(caught[0].message)
    assert said.startswith("a derivative is taken where two floats are equal")
    assert (
        f"  at test_user_control_flow.py:{f.__code__.co_firstlineno + (f.__name__ != '<lambda>')} in {f.__name__}:"
        in said
    )
    assert caught[0].filename == __file__


def test_row_17_equality_of_what_is_not_differentiated() -> None:
    def f(x: Any, mode: Any) -> Any:
        return x * x if mode == 1.0 else x

    assert grad(f)(3.0, 1.0) == 6
    assert jit(grad(f))(3.0, 1.0) == 6


def test_row_17_a_loop_that_ends_where_nothing_changes() -> None:
    def f(a: Any) -> Any:
        s, before = 2.0, 0.0
        while s != before:
            s, before = 0.5 * (s + a / s), s
        return s

    assert grad(f)(9.0) == pytest.approx(1 / 6)


# ---- row 52: Newton's method -----------------------------------------------------------------------------------------


def newton(a: Any) -> Any:
    s = 2.0
    while abs(s * s - a) > 1e-14:
        s = 0.5 * (s + a / s)
    return s


@pytest.mark.slow
def test_row_52_square_root() -> None:
    first, second = 4.1**-0.5 / 2, -(4.1**-1.5) / 4
    check(newton, np.float64(4.1), value=4.1**0.5, gradient=[first], rtol=1e-12, inside=False)
    check(newton, np.float64(4.1), value=4.1**0.5, gradient=[first], hessian=[[second]],
          rtol=1e-10, inside=False)  # fmt: skip
    assert round(float(grad(newton)(4.1)), 5) == 0.24693


@pytest.mark.filterwarnings("ignore::fnad.errors.ControlFlowWarning")
def test_row_52_no_turn_is_the_derivative_of_the_program() -> None:
    check(newton, np.float64(4), value=2, gradient=[0], hessian=[[0]], inside=False)


def test_row_52_a_warning_names_the_loop_and_the_argument() -> None:
    start = newton.__code__.co_firstlineno
    for transformed in (grad(newton), value_and_grad(newton), jit(grad(newton)), lambda a: vjp(newton, a)):
        with config.override(executor="interpreter"), pytest.warns(ControlFlowWarning) as caught:
            transformed(4.0)
        assert str(caught[0].message).split("\n") == [
            "newton depends on a through control flow only: its derivative is 0",
            f"  at test_user_control_flow.py:{start + 2} in newton:  while abs(s * s - a) > 1e-14:",
            "  if the loop comes closer to a solution, differentiate that: fnad.fixed_point, fnad.root",
        ]


def test_row_52_an_argument_in_a_pytree_and_a_break() -> None:
    def f(p: Any) -> Any:
        s = 2.0
        for _ in range(20):
            if abs(s * s - p["a"][0]) < 1e-12:
                break
            s = 0.5 * (s + p["a"][0] / s)
        return s * p["b"]

    gradient = grad(f)({"a": [4.1], "b": 1.0})
    np.testing.assert_allclose([gradient["a"][0], gradient["b"]], [0.5 / np.sqrt(4.1), np.sqrt(4.1)])
    with pytest.warns(ControlFlowWarning, match=r"f depends on p\['a'\]\[0\] through control flow only"):
        grad(f)({"a": [4.0], "b": 1.0})


def test_row_52_a_constant_branch_is_no_cause_to_warn() -> None:
    def clipped(x: Any) -> Any:
        if x > 3:
            return 3.0
        return x

    assert grad(clipped)(5.0) == 0
    assert grad(grad(lambda x: 3 * x if x > 0 else x))(1.0) == 0


# ---- row 53: Python's semantics --------------------------------------------------------------------------------------


def branches(x: Any) -> Any:
    if x > 1:
        return x * x
    elif x < 0:  # noqa: RET505
        return -x
    return x**3


def zero_trips(x: Any) -> Any:
    y = x * x
    while y > 100:
        y = y / 2
    for _ in range(0):
        y = np.sin(y)
    return y


def break_and_else(x: Any) -> Any:
    total = 0.0
    for k in range(10):
        if total > 2:
            break
        total = total + x * k
    else:
        total = x
    return total * x


def continues(x: Any) -> Any:
    total = 0
    for k in range(4):
        if k * x < 1.0:
            continue
        total += k * x**2
    return total


def returns_in_a_loop(x: Any) -> Any:
    y = x
    while True:
        y = y * x
        if y > 10:
            return y


def int_to_float(x: Any) -> Any:
    count = 0
    while count < 3:
        count = count + x
    return count * x


def swapped(x: Any) -> Any:
    a, b = x, 1.0
    while a < 10:
        a, b = b + a, a
    return a * b


def set_in_one_branch(x: Any) -> Any:
    if x > 1:
        extra = x * 5
    y = x * x
    return y + extra if x > 1 else y  # pyright: ignore[reportPossiblyUnboundVariable]


def unbound_if_not_set(x: Any) -> Any:
    if x < 0:
        y = x
    return y  # pyright: ignore[reportPossiblyUnboundVariable]


def logic(x: Any) -> Any:
    if (x > 0 and x < 3) or not x > -1:
        return x * x
    return x


def chained(x: Any) -> Any:
    return x * x if 0 < x < 3 < 4 else -x


def membership(x: Any) -> Any:
    return (x * x if round(x) in (2, 3) else x) + (x if x in [7.0] else 0.0)


def extremes(x: Any) -> Any:
    a, b, c = sorted([x * x, x, 1.0])
    return a + 10 * b + 100 * c + min(x, 1.0) * max(2.0, x, key=lambda v: -v)


def counted(x: Any) -> Any:
    y = x
    for k in range(int(x)):
        y = y * x + k
    return y


def indexed(x: Any) -> Any:
    return [np.sin, np.cos, np.exp, np.tanh][int(x)](x) * (1.0, 2.0, 3.0)[int(np.floor(x))]


def matched(x: Any) -> Any:
    match int(x):
        case 0:
            return x
        case 1 | 2 if x > 1.25:
            return x**2
        case k:
            return k * x**3


def asserted(x: Any) -> Any:
    assert x > 0, "positive"
    return np.log(x)


def recursive(x: Any) -> Any:
    return x if x < 1 else x * recursive(x / 2)


def caught(x: Any) -> Any:
    try:
        if x > 1:
            raise ValueError  # noqa: TRY301
    except ValueError:
        return x * x
    else:
        return x
    finally:
        x = None


def generated(x: Any) -> Any:
    return sum(x * k for k in range(5) if k < x)


ROW_53: dict[str, tuple[Any, float, float, float]] = {
    "if": (branches, 2.0, 4.0, 2.0),
    "elif": (branches, -2.0, -1.0, 0.0),
    "else": (branches, 0.5, 0.75, 3.0),
    "no turn": (zero_trips, 1.5, 3.0, 2.0),
    "turns": (zero_trips, 20.0, 20.0 * 2 / 4, 0.5),
    "break": (break_and_else, 1.5, 9.0, 6.0),
    "else of a loop": (break_and_else, 0.01, 0.02, 2.0),
    "continue": (continues, 0.4, 2 * 0.4 * 3, 6.0),
    "return in a loop": (returns_in_a_loop, 2.0, 4 * 2.0**3, 12 * 2.0**2),
    "an int becomes a float": (int_to_float, 0.75, 8 * 0.75, 8.0),
    "swapped": (swapped, 1.5, 5 * (3 * 1.5 + 2) + 3 * (5 * 1.5 + 3), 30.0),
    "set in one branch": (set_in_one_branch, 2.0, 9.0, 2.0),
    "not set": (set_in_one_branch, 0.5, 1.0, 2.0),
    "and": (logic, 1.5, 3.0, 2.0),
    "or": (logic, -1.5, -3.0, 2.0),
    "neither": (logic, 3.5, 1.0, 0.0),
    "chained": (chained, 1.5, 3.0, 2.0),
    "chained not": (chained, 3.5, -1.0, 0.0),
    "in": (membership, 2.25, 4.5, 2.0),
    "sorted": (extremes, 1.5, 10 + 200 * 1.5 + 1.0, 200.0),
    "min and max": (extremes, 0.5, 2 * 0.5 + 10 + 2 * 0.5, 2 + 2.0),
    "range": (counted, 2.5, 3 * 2.5**2, 6 * 2.5),  # y = x³ + 1
    "index of a list": (indexed, 1.5, -2 * np.sin(1.5), -2 * np.cos(1.5)),
    "match": (matched, 1.5, 3.0, 2.0),
    "match a capture": (matched, 3.5, 9 * 3.5**2, 18 * 3.5),
    "assert": (asserted, 2.0, 0.5, -0.25),
    "recursion": (recursive, 3.0, 3 * 9.0 / 8, 6 * 3.0 / 8),
    "exceptions": (caught, 1.5, 3.0, 2.0),
    "a generator": (generated, 2.5, 3.0, 0.0),
}


@pytest.mark.parametrize("name", ROW_53)
def test_row_53_python_semantics(name: str) -> None:
    f, x, first, second = ROW_53[name]
    check(f, np.float64(x), value=f(x), gradient=[first], hessian=[[second]], rtol=1e-12, inside=False)


def test_row_53_what_python_raises_is_raised() -> None:
    compiled, gradient = jit(asserted), jit(grad(asserted))
    assert compiled(2.0) == np.log(2.0)
    assert gradient(2.0) == 0.5
    for f in (compiled, gradient, grad(asserted)):
        with pytest.raises(AssertionError, match="positive"):
            f(-1.0)
        assert f(2.0) in (np.log(2.0), 0.5)
    for f in (jit(unbound_if_not_set), grad(unbound_if_not_set)):
        with pytest.raises(UnboundLocalError):
            f(1.0)
        assert f(-1.0) in (-1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["auto", "interpreter", "compiled"])
def test_row_53_each_path_in_any_order(executor: Any) -> None:
    rng = np.random.default_rng(3)
    for f in (branches, break_and_else, continues, returns_in_a_loop, logic, recursive, counted):
        compiled = jit(value_and_grad(f))
        with config.override(executor=executor):
            for x in [*rng.uniform(1.3, 3.5, 6), *rng.uniform(1.3, 3.5, 6)]:
                value, slope = compiled(x)
                assert value == pytest.approx(f(x), rel=1e-12)
                assert slope == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel=1e-6)


def while_newton(a: Any) -> Any:
    return fnad.while_loop(lambda s: abs(s * s - a) > 1e-14, lambda s: 0.5 * (s + a / s), 2.0)


def carrying(a: Any) -> Any:
    def step(carry: Any) -> Any:
        s, a, n = carry
        return 0.5 * (s + a / s), a, n + 1

    return fnad.while_loop(lambda c: abs(c[0] ** 2 - c[1]) > 1e-14, step, (2.0, a, 0))[0]


TRANSFORMS: dict[str, Any] = {
    "grad": lambda f: grad(f),
    "value_and_grad": lambda f: lambda a: value_and_grad(f)(a)[1],
    "jit of grad": lambda f: jit(grad(f)),
    "grad of jit": lambda f: grad(jit(f)),
    "vjp": lambda f: lambda a: vjp(f, a)[1](1.0)[0],
    "jvp": lambda f: lambda a: jvp(f, (a,), (1.0,))[1],
    "linearize": lambda f: lambda a: fnad.linearize(f, a)[1](1.0),
    "jacobian": fnad.jacobian,
}


@pytest.mark.parametrize("f", [while_newton, carrying])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_row_52_a_while_loop_without_a_step_warns_as_a_while_does(name: str, f: Any) -> None:
    slope = TRANSFORMS[name](f)
    with config.override(executor="interpreter"):
        for a in (4.1, 5.0):
            assert slope(a) == pytest.approx(0.5 / np.sqrt(a))
        with pytest.warns(
            ControlFlowWarning, match="depends on .* through control flow only: its derivative is 0"
        ) as caught:
            assert slope(4.0) == 0
        assert "fnad.while_loop(" in str(caught[0].message)
        assert slope(4.2) == pytest.approx(0.5 / np.sqrt(4.2))


def test_row_52_a_while_loop_that_is_no_cause_to_warn() -> None:
    from_argument = lambda a: fnad.while_loop(lambda s: abs(s * s - a) > 1e-12, lambda s: 0.5 * (s + a / s), a)  # noqa: E731
    assert grad(from_argument)(4.0) == pytest.approx(0.25)
    assert grad(lambda a: a * while_newton(a))(4.0) == 2  # as that of a while: the other factor has a derivative
    assert jit(while_newton)(4.0) == 2
    rows = fnad.vmap(grad(while_newton))(np.array([4.0, 4.1]))
    np.testing.assert_allclose(rows, [0.0, 0.5 / np.sqrt(4.1)])
