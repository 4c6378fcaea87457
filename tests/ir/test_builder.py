"""Equations are one where nothing tells them apart, and what a pass rebuilds is inferred anew."""

import pytest

from fnad.errors import VerificationError
from fnad.ir.builder import Builder, rebuilt, trace
from fnad.ir.program import Var
from fnad.ir.types import F32, Aval
from fnad.ops.arithmetic import add
from fnad.ops.elementary import sin
from tests.ir.programs import VECTOR, branch


def test_params_count_to_the_bit() -> None:
    values = [1, 1.0, True, 0, 0.0, -0.0, False, (1, 0.0), (True, 0.0), (1, -0.0), "1"]
    builder = Builder()
    with builder.active():
        x = builder.input(VECTOR)
        for value in values * 2:
            builder.bind(branch, [x], {"value": value})
    assert [equation.params["value"] for equation in builder.equations] == values


def test_nan_is_one_param() -> None:
    builder = Builder()
    with builder.active():
        x = builder.input(VECTOR)
        results = [builder.bind(branch, [x], {"value": float("nan")})[0].atom for _ in range(2)]
    assert results[0] is results[1]


def test_what_is_rebuilt_keeps_its_avals() -> None:
    (equation,) = trace(lambda x: [sin(x)], VECTOR).equations
    other = Var(VECTOR)
    assert rebuilt(equation, operands=(other,)).operands == (other,)
    with pytest.raises(VerificationError, match=r"sin was rebuilt with results f64\[3\], and gives f32\[3\]"):
        rebuilt(equation, operands=(Var(Aval(F32, (3,))),))
    with pytest.raises(VerificationError, match=r"add was rebuilt with results f64\[3\], f64\[3\], and gives f64\[3\]"):
        rebuilt(equation, primitive=add, operands=(other, other), results=(other, Var(VECTOR)))
