"""Rules that users register for functions of libraries (`fnad.register_rule`)."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
from numpy.testing import assert_allclose

import fnad
from fnad.errors import ArgumentTypeError, TracerEscapeError


@pytest.fixture
def exp2() -> Any:
    """A new function in C, from a float to a float."""
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    library.exp2.restype, library.exp2.argtypes = ctypes.c_double, [ctypes.c_double]
    return library.exp2


def by_numpy(x: Any) -> Any:
    return 2.0**x


Transform = Callable[..., Any]


@pytest.mark.parametrize("transform", [lambda f: f, fnad.jit], ids=["plain", "jit"])
def test_a_function_in_c_without_a_rule_is_refused_and_follows_the_rule_once_there_is_one(
    exp2: Any, transform: Transform
) -> None:
    f = transform(fnad.value_and_grad(lambda x: exp2(x) * exp2(2.0)))
    with pytest.raises(TracerEscapeError):
        f(1.0)
    fnad.register_rule(exp2, by_numpy)
    for x in (1.0, 0.5):
        assert_allclose(f(x), (4 * 2**x, 4 * 2**x * np.log(2)), rtol=1e-14)


@pytest.mark.parametrize("transform", [lambda f: f, fnad.jit], ids=["plain", "jit"])
def test_a_function_that_was_traced_already_follows_a_newer_rule(exp2: Any, transform: Transform) -> None:
    fnad.register_rule(exp2, by_numpy)
    g = transform(fnad.grad(exp2)) if transform is fnad.jit else fnad.grad(lambda x: exp2(x))
    for _ in range(3):
        assert_allclose(g(0.0), np.log(2))
    fnad.register_rule(exp2, lambda x: 3 * by_numpy(x))
    for _ in range(3):
        assert_allclose(g(0.0), 3 * np.log(2))


def test_a_rule_may_be_external_and_is_called_with_what_the_function_is(exp2: Any) -> None:
    calls: list[Any] = []

    @functools.partial(fnad.external, result=0.0, vjp=lambda ct, x: (ct * np.log(2) * exp2(x),))
    def rule(x: Any) -> Any:
        calls.append(x)
        return exp2(x)

    fnad.register_rule(exp2, rule)
    assert exp2(2.0) == 4.0
    assert calls == []
    assert_allclose(fnad.value_and_grad(lambda x: exp2(2 * x))(0.5), (2.0, 4 * np.log(2)))
    assert calls
    assert all(float(x) == 1.0 for x in calls)


def test_a_rule_is_found_under_any_name_in_containers_and_in_code_of_libraries(exp2: Any) -> None:
    fnad.register_rule(exp2, by_numpy)
    table = {"f": exp2}
    slope = np.log(2)
    assert_allclose(fnad.grad(lambda x: table["f"](x))(0.0), slope)
    assert_allclose(fnad.grad(lambda x: sum(map(exp2, [x, 2 * x])))(0.0), 3 * slope)
    assert_allclose(fnad.grad(lambda x: functools.partial(exp2, x)())(0.0), slope)
    within = fnad.grad(lambda b: scipy.integrate.fixed_quad(np.vectorize(exp2), 0.0, b, n=8)[0])
    assert_allclose(within(0.25), 2**0.25, rtol=1e-10)


def test_a_list_with_a_traced_value_is_given_to_the_rule_and_others_to_the_function() -> None:
    def total(values: Any) -> Any:
        return float(np.asarray(values, float).sum())

    fnad.register_rule(total, lambda values: 2 * sum(values))
    assert fnad.grad(lambda x: total([x, 3.0]) * total([1.0, 4.0]))(1.0) == 10.0


def test_a_method_of_a_class_follows_the_rule_for_its_function() -> None:
    class Curve:
        scale = 3.0

        def at(self, x: Any) -> Any:
            return self.scale * float(x)

    fnad.register_rule(Curve.at, lambda self, x: self.scale * np.sin(x))
    assert fnad.grad(lambda x: Curve().at(x))(0.0) == 3.0


def test_a_rule_that_is_no_function_is_an_error(exp2: Any) -> None:
    rule: Any = 3.0
    with pytest.raises(ArgumentTypeError, match="register_rule"):
        fnad.register_rule(exp2, rule)
