"""How rules of fnad.scipy are called: by SciPy's signatures, what they do not heed refused or without effect."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.errors import UnsupportedFunctionError
from fnad.numpy.registry import RULES, WITHOUT_EFFECT
from fnad.scipy import linalg, signal, special
from fnad.scipy.rule import rule_of
from tests.together import in_groups

A = np.array([[2.0, 1.0], [0.5, 3.0]])


def rules() -> list[tuple[ModuleType, str, Any]]:
    modules = (linalg, signal, special)
    functions = [
        (m, name, value)
        for m in modules
        for name, value in vars(m).items()
        if name[0] != "_" and hasattr(value, "__wrapped__")
    ]
    unwrapped = [(m, name, inspect.unwrap(value, stop=RULES.__contains__)) for m, name, value in functions]
    entered = [(m, name, rule) for m, name, rule in unwrapped if rule in RULES]
    return [(m, name, rule) for m, name, rule in entered if "args" not in inspect.signature(rule).parameters]


@pytest.mark.peers
@in_groups(("module", "name", "function"), rules(), ids=lambda value: value if isinstance(value, str) else "")
def test_parameters_are_scipys(module: ModuleType, name: str, function: Any) -> None:
    scipys = inspect.signature(getattr(import_module(module.__name__.removeprefix("fnad.")), name)).parameters
    for parameter in inspect.signature(function).parameters.values():
        assert parameter.name in scipys
        assert parameter.default == scipys[parameter.name].default
        assert parameter.kind is scipys[parameter.name].kind or name == "qr"


def test_there_are_rules() -> None:
    assert len(rules()) > 40


def test_options_without_effect() -> None:
    plain = fnad.grad(lambda a: linalg.inv(a)[0, 0])(A)
    given = fnad.grad(lambda a: linalg.inv(a, True, False)[0, 0])(A)
    np.testing.assert_array_equal(plain, given)
    (x, *_) = fnad.jit(lambda a: linalg.lstsq(a, np.ones(2), lapack_driver="gelsy", overwrite_b=True))(A)
    np.testing.assert_allclose(x, np.linalg.solve(A, np.ones(2)))
    assert {"check_finite", "overwrite_a"} <= WITHOUT_EFFECT


def test_an_option_that_is_not_heeded_is_an_error_where_it_is_not_the_default() -> None:
    fnad.grad(lambda a: np.sum(np.real(linalg.eigvals(a, None, homogeneous_eigvals=False))))(A)
    for call, option in (
        (lambda a: linalg.eigvals(a, np.eye(2)), "b="),
        (lambda a: linalg.eigvalsh(a, subset_by_value=[0, 0]), "subset_by_value="),
        (lambda a: linalg.qr(a, False, None, "full", True), "pivoting="),
        (lambda a: special.perm(a, 1, True), "exact="),
    ):
        with pytest.raises(UnsupportedFunctionError, match=f"has no rule for the option {option}"):
            fnad.jit(call)(A)


def test_arguments_that_scipy_does_not_take() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        fnad.jit(lambda a: linalg.inv(a, nothing=1))(A)


def test_a_function_that_scipy_does_not_have() -> None:
    @rule_of("scipy.special")
    def nothing(x: Any) -> Any:
        return x

    with pytest.raises(AttributeError, match="nothing"):
        nothing(1.0)


CALLED_BEFORE = """
import numpy as np, scipy.signal, fnad
from fnad.scipy import signal

assert signal.convolve([1.0, 2.0], [1.0, 1.0]).tolist() == [1.0, 3.0, 2.0]
print(fnad.grad(lambda x: x * scipy.signal.convolve(np.ones(2), np.ones(2))[1])(1.0))
"""


def test_what_was_called_before_any_trace_is_scipys_own_in_one() -> None:
    assert subprocess.run([sys.executable, "-c", CALLED_BEFORE], check=True, capture_output=True).stdout == b"2.0\n"
