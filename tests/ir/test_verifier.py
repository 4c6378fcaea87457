from dataclasses import replace

import numpy as np
import pytest

from fnad.errors import VerificationError
from fnad.ir.program import Equation, Literal, Program, Var
from fnad.ir.types import Aval
from fnad.ir.verifier import verify
from fnad.ops.elementary import sin
from fnad.ops.shape import reduce_sum
from tests.ir.programs import VECTOR, branch, loss, with_sources


def broken(message: str, program: Program) -> None:
    with pytest.raises(VerificationError) as caught:
        verify(program)
    assert str(caught.value) == message


def with_equation(equation: Equation, *inputs: Var) -> Program:
    return Program("f", inputs, (equation,), equation.results)


def test_a_program_of_the_builder_is_right() -> None:
    verify(loss())


def test_an_operand_before_its_definition() -> None:
    program = loss()
    swapped = replace(program, equations=program.equations[1::-1])
    broken("loss: operand 0 is not defined before its use\n  in c: f64[3] = mul(d, b)", swapped)


def test_an_output_that_nothing_defines() -> None:
    broken("f: output 0 is not defined before its use", Program("f", (), (), (Var(VECTOR),)))


def test_an_input_twice() -> None:
    x = Var(VECTOR)
    broken("f: a value of aval f64[3] is defined twice among its inputs", Program("f", (x, x), (), ()))


def test_a_result_twice() -> None:
    x, y = Var(VECTOR), Var(VECTOR)
    program = Program("f", (x,), (Equation((y,), sin, (x,)), Equation((y,), sin, (y,))), (y,))
    broken("f: a value of aval f64[3] is defined twice\n  in b: f64[3] = sin(b)", program)


def test_an_aval_that_inference_does_not_give() -> None:
    x = Var(VECTOR)
    program = with_equation(Equation((Var(Aval(VECTOR.dtype, (4,))),), sin, (x,)), x)
    broken("f: f64[4] is declared where inference gives f64[3]\n  in b: f64[4] = sin(a)", program)


def test_too_many_results() -> None:
    x = Var(VECTOR)
    program = with_equation(Equation((Var(VECTOR), Var(VECTOR)), sin, (x,)), x)
    broken("f: f64[3], f64[3] is declared where inference gives f64[3]\n  in b: f64[3], c: f64[3] = sin(a)", program)


def test_operands_that_the_primitive_does_not_take() -> None:
    x = Var(Aval(np.dtype(np.int64), (3,)))
    with pytest.raises(VerificationError, match="f: sin does not take this: sin does not take i64"):
        verify(with_equation(Equation((Var(x.aval),), sin, (x,)), x))


def test_a_missing_param() -> None:
    x = Var(VECTOR)
    equation = Equation((Var(Aval(VECTOR.dtype)),), reduce_sum, (x,))
    with pytest.raises(VerificationError, match=r"reduce_sum does not take this: missing a required .*: 'axes'"):
        verify(with_equation(equation, x))


def test_a_param_that_is_not_static() -> None:
    x = Var(VECTOR)
    equation = Equation((Var(Aval(VECTOR.dtype)),), reduce_sum, (x,), {"axes": [0]})
    message = "f: param axes: a param is a number, str, None, dtype or a tuple of these, not list"
    broken(f"{message}\n  in an equation of reduce_sum", with_equation(equation, x))


def test_a_constant_that_is_an_array() -> None:
    literal = Literal(np.zeros(3))  # pyright: ignore[reportArgumentType]
    with pytest.raises(VerificationError, match="operand 0 is a constant of type ndarray, not a NumPy scalar"):
        verify(with_equation(Equation((Var(VECTOR),), sin, (literal,))))


def test_a_region_that_uses_a_value_from_outside() -> None:
    x, y = Var(VECTOR), Var(VECTOR)
    region = Program("inner", (), (Equation((y,), sin, (x,)),), (y,))
    equation = Equation((Var(VECTOR),), branch, (x,), {}, (region,))
    broken("inner: operand 0 is not defined before its use\n  in a: f64[3] = sin(?)", with_equation(equation, x))


def test_the_source_is_named() -> None:
    program = with_sources(3, 5)
    with pytest.raises(VerificationError, match=r"  in b: f64\[3\] = sin\(\?\)\n  at model.py:5 in loss"):
        verify(replace(program, equations=program.equations[1:], outputs=()))
