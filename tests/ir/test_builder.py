"""Equations are one where nothing tells them apart, and what a pass rebuilds is inferred anew."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from fnad.errors import VerificationError
from fnad.ir.builder import Builder, inline, rebuilt, trace
from fnad.ir.content import content_key
from fnad.ir.program import Program, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import F32, F64, Aval
from fnad.ir.verifier import verify
from fnad.ops.arithmetic import add, mul
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


def test_what_was_inferred_is_not_inferred_again() -> None:
    asked: list[tuple[Aval, int]] = []

    def infer(x: Aval, *, n: int) -> Aval:
        asked.append((x, n))
        return x

    counted = dataclasses.replace(mul, name="counted", infer=infer)
    avals = Aval(F64, (2,)), Aval(F32, (2,))
    for _ in range(2):
        trace(lambda x, y: [counted(x, n=1), counted(x, n=2), counted(y, n=1)], *avals)
    assert asked == [(avals[0], 1), (avals[0], 2), (avals[1], 1)]


def test_equal_avals_are_one_object() -> None:
    aval = Aval(np.dtype("f8"), (2, 3))
    assert Aval(F64, (np.int64(2), 3)) is aval
    assert pickle.loads(pickle.dumps(aval)) is copy.deepcopy(aval) is aval
    assert len({aval, Aval(F64, (2, 4)), Aval(F32, (2, 3))}) == 3


def test_a_program_is_inlined_on_arguments_of_its_avals_alone() -> None:
    program = trace(lambda x: [sin(x)], VECTOR)
    with pytest.raises(VerificationError, match="is inlined on"):
        trace(lambda x: inline(program, [x]), Aval(F32, VECTOR.shape))


def test_what_is_inlined_is_numbered_as_what_is_bound() -> None:
    def twice(x: Symbol) -> list[Symbol]:
        return [*inline(program, [x]), *inline(program, [x]), mul(sin(x), sin(x))]

    program = trace(lambda x: [mul(sin(x), sin(x)), x], VECTOR)
    found = trace(twice, VECTOR)
    assert len(found.equations) == 2
    assert found.outputs[0] is found.outputs[2] is found.outputs[4]
    assert found.outputs[1] is found.inputs[0]


def test_a_builder_that_begins_with_a_program_is_as_one_with_equations_of_its_own() -> None:
    program = trace(lambda x, y: [mul(sin(x), y), y, sin(x)], VECTOR, VECTOR)
    builder = Builder()
    with builder.active():
        given = [builder.input(VECTOR), builder.input(VECTOR)]
        outputs = builder.begin(program, tuple(symbol.atom for symbol in given))
        whole = builder.finish("whole", [Symbol(builder, atom, atom.aval) for atom in outputs])
        swapped = builder.finish("swapped", [Symbol(builder, outputs[i], VECTOR) for i in (2, 0, 1)])
        again = sin(given[0])
        more = builder.finish("more", [mul(again, again)])
    assert whole.content is content_key(program)
    assert content_key(Program(whole.name, whole.inputs, whole.equations, whole.outputs)) == content_key(program)
    assert swapped.content is None
    assert content_key(swapped) != content_key(program)
    assert again.atom is outputs[2]
    assert len(more.equations) == 3
    assert [equation.results for equation in program.equations] == [e.results for e in whole.equations]
    assert set(whole.inputs).isdisjoint(program.inputs)
    verify(whole)
    verify(more)
