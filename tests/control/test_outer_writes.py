"""Functions that are traced once, and run never, once or many times, and write ordinary numbers into outer arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import fnad
from fnad.errors import MutationError, UsedAfterTraceError

TABLE = np.zeros(3)


def write_helper() -> None:
    TABLE[0] = 6.0


def make() -> tuple[Any, dict[str, Callable[[Any], Any]]]:
    """An array of an enclosing function, and functions that write into it or into `TABLE`."""
    own = np.zeros(3)

    def element(x: Any) -> Any:
        own[0] = 6.0
        return x

    def added(x: Any) -> Any:
        own[1:] += 1.0
        return x

    def filled(x: Any) -> Any:
        own.fill(2.0)
        return x

    def given_out(x: Any) -> Any:
        np.add(TABLE, 1.0, out=TABLE)
        return x

    def called(x: Any) -> Any:
        write_helper()
        return x

    def default(x: Any, array: Any = own) -> Any:
        array[2] = np.nan
        return x

    def in_place(x: Any, array: Any = own) -> Any:
        array *= 2.0
        array += 1.0
        return x

    return own, {f.__name__: f for f in (element, added, filled, given_out, called, default, in_place)}


CONTROL: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "cond": lambda f: lambda x: fnad.cond(x > 1, lambda x: 2 * x, f, x),
    "switch": lambda f: lambda x: fnad.switch(np.int64(0), [np.sin, f], x),
    "fori_loop": lambda f: lambda x: fnad.fori_loop(0, 3, lambda i, x: f(x), x),
    "while_loop": lambda f: lambda x: fnad.while_loop(lambda x: x < 5, lambda x: f(x) + 1, x),
    "scan": lambda f: lambda x: fnad.scan(lambda c, _: (f(c), None), x, None, length=4)[0],
}
TIMES = np.linspace(0.0, 1.0, 3)
SOLVERS: dict[str, Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "fnad.odeint": lambda f: lambda x: fnad.odeint(lambda y, t: f(-y), x, TIMES)[-1],
    "fnad.root": lambda f: lambda x: fnad.root(lambda z, x: f(z * z - x), 1.0, x),
    "fnad.fixed_point": lambda f: lambda x: fnad.fixed_point(lambda z, x: f(np.cos(z) + x) / 9, 0.5, x),
    "fnad.minimize": lambda f: lambda x: fnad.minimize(lambda z, x: f((z - x) ** 2), 1.0, x)[0],
    "odeint": lambda f: lambda x: np.sum(scipy.integrate.odeint(lambda y, t: f(-y), [x], TIMES)),
    "solve_ivp": lambda f: lambda x: scipy.integrate.solve_ivp(lambda t, y: f(-y), (0.0, 1.0), [x]).y[0, -1],
    "quad": lambda f: lambda x: scipy.integrate.quad(lambda t: f(x * t), 0.0, 1.0)[0],
    "newton": lambda f: lambda x: scipy.optimize.newton(lambda z: f(z * z - x), 1.0),
    "brentq": lambda f: lambda x: scipy.optimize.brentq(lambda z: f(z * z - x), 0.0, 5.0),
    "root": lambda f: lambda x: scipy.optimize.root(lambda z: f(z * z - x), np.ones(1)).x[0],
    "minimize": lambda f: lambda x: scipy.optimize.minimize(lambda z: f(np.sum((z - x) ** 2)), np.ones(1)).x[0],
    "least_squares": lambda f: lambda x: scipy.optimize.least_squares(lambda z: f(z - x), np.ones(1)).x[0],
    "vmap": lambda f: lambda x: np.sum(fnad.vmap(f)(x * np.arange(3.0))),
    "custom_vjp": lambda f: with_rule(f),
}


def with_rule(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    custom = fnad.custom_vjp(lambda x: 2.0 * x)
    custom.defvjp(lambda x: (2.0 * x, ()), lambda _, ct: (2.0 * f(ct),))
    return custom


TRANSFORMS: list[Callable[[Any], Any]] = [lambda f: f, fnad.grad, fnad.jit, lambda f: fnad.jit(fnad.grad(f))]


@pytest.mark.parametrize("control", CONTROL.values(), ids=CONTROL)
def test_writes_are_undone_and_an_error_with_their_line(control: Any) -> None:
    own, functions = make()
    for name, f in functions.items():
        for transform in TRANSFORMS:
            with pytest.raises(MutationError, match=r"writes into (own|TABLE|array), an array outside of it") as caught:
                transform(control(f))(2.0)
            assert caught.value.source is not None, name
            assert caught.value.source.file == __file__
            assert not np.any([own, TABLE]), name


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_functions_that_solvers_call_and_rules(solver: Any) -> None:
    for name, f in make()[1].items():
        with pytest.raises(MutationError, match=r"writes into (own|TABLE|array), an array outside of it") as caught:
            fnad.grad(solver(f))(2.0)
        assert caught.value.source is not None, name
        assert caught.value.source.file == __file__
        assert not TABLE.any(), name


@pytest.mark.parametrize("name", ["fnad.root", "quad", "vmap", "custom_vjp"])
def test_functions_that_solvers_call_may_write_to_what_they_make(name: str) -> None:
    solver: Any = SOLVERS[name]

    def f(x: Any) -> Any:
        made = TABLE + 1.0
        made[0] = 2.0
        np.add(made, made, out=made)
        return x * (made[0] - 3.0)

    assert fnad.grad(solver(f))(2.0) == fnad.grad(solver(lambda x: x))(2.0)


def test_a_function_without_traced_values_is_called_by_scipy_as_often_as_without_a_trace() -> None:
    own = np.zeros(1)

    def integrand(t: float) -> float:
        own[0] += 1.0
        return t**2

    def f(x: Any) -> Any:
        return x * scipy.integrate.quad(integrand, 0.0, 1.0)[0]

    f(2.0)
    calls = own[0]
    fnad.grad(f)(2.0)
    assert own[0] == 2 * calls


class Exponential:
    """An object that is called with code which needs hooks."""

    def __call__(self, x: Any) -> Any:
        return math.exp(x) * float(x)


@pytest.mark.parametrize("transform", [fnad.checkpoint, lambda f: lambda x: fnad.tapped(f)(x)[0]])
def test_what_runs_once_writes_once_and_may_be_an_object(transform: Any) -> None:
    own, functions = make()
    assert fnad.grad(transform(functions["added"]))(2.0) == 1.0
    assert own.tolist() == [0.0, 1.0, 1.0]
    assert fnad.grad(transform(Exponential()))(1.0) == pytest.approx(2 * math.e, rel=1e-15)


def test_a_traced_value_that_a_region_leaves_in_a_list_is_an_error_at_use() -> None:
    found: list[Any] = []

    def body(i: Any, x: Any) -> Any:
        found.append(x)
        return 2.0 * x

    fnad.fori_loop(0, 3, body, 1.0)
    assert len(found) == 1
    with pytest.raises(UsedAfterTraceError):
        np.sin(found[0])


def test_what_a_function_makes_itself_it_may_write_to() -> None:
    def f(x: Any) -> Any:
        made = np.zeros(3)
        made[0] = 6.0
        return x * made[0] + TABLE[1]

    assert fnad.cond(True, f, np.sin, 2.0) == 12.0
    assert fnad.fori_loop(0, 2, lambda i, x: f(x), 1.0) == 36.0


def test_what_is_written_before_an_error_is_undone() -> None:
    own = np.zeros(3)

    def f(x: Any) -> Any:
        own[0] = 1.0
        raise KeyError("an error of the user's")

    with pytest.raises(KeyError, match="an error of the user's"):
        fnad.cond(True, f, np.sin, 2.0)
    assert not own.any()


def test_plain_loops_write_as_python_does() -> None:
    own, functions = make()
    with fnad.disable_jit():
        assert fnad.fori_loop(0, 3, lambda i, x: functions["added"](x), 1.0) == 1.0
    assert own.tolist() == [0.0, 3.0, 3.0]
