"""Random programs: what every pass must keep, and how the transforms compose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings

from fnad.backends.cpu.executor import compile_program
from fnad.ir.parser import parse_program
from fnad.ir.printer import print_program
from fnad.ir.program import Program
from fnad.ir.types import F32, Aval, is_inexact, real_dtype
from fnad.ir.verifier import verify
from fnad.ir.walk import equal_up_to_names
from fnad.testing import direction, magnitude, marks, pairing
from fnad.transforms.interpret import interpret
from fnad.transforms.joint import joint
from fnad.transforms.jvp import jvp
from fnad.transforms.pipeline import simplify
from fnad.transforms.split import split
from tests.passes import PASSES
from tests.random_programs import Example, examples

few = settings(max_examples=20 if settings().derandomize else 40)  # those of a fresh run are new
Pass = Callable[[Program], Program]


def directions(avals: Sequence[Aval], seed: int) -> list[Any]:
    """Return a random direction for each aval that carries derivatives."""
    return [direction(aval, seed + n) for n, aval in enumerate(avals) if is_inexact(aval.dtype)]


def tangents(program: Program, seed: int) -> list[Any]:
    return directions(program.in_avals, seed)


def cotangents(program: Program, seed: int) -> list[Any]:
    return directions(program.out_avals, seed)


class Tolerance(NamedTuple):
    """What rounding may amount to: of an element, and of the largest one, for a small one may be what is left of it."""

    relative: float
    cancelled: float


def tolerance(program: Program) -> Tolerance:
    """Return that of the narrowest float in the program, some orders above its precision."""
    defined = [*program.inputs, *(var for equation in program.equations for var in equation.results)]
    single = any(real_dtype(var.aval.dtype) == F32 for var in defined)
    return Tolerance(1e-3, 1e-5) if single else Tolerance(1e-8, 1e-12)


def assert_close(found: Sequence[Any], expected: Sequence[Any], tol: Tolerance) -> None:
    """Compare values, each element by itself, to the rounding that another order of operations may make."""
    for f, e in zip(map(np.asarray, found), map(np.asarray, expected), strict=True):
        assert (f.dtype, f.shape) == (e.dtype, e.shape)
        if is_inexact(e.dtype):
            scale = np.max(np.abs(e), initial=1.0, where=np.isfinite(e))
            np.testing.assert_allclose(f, e, rtol=tol.relative, atol=tol.cancelled * scale)
        else:
            np.testing.assert_array_equal(f, e)


@given(examples())
@few
def test_a_program_verifies(example: Example) -> None:
    verify(example.program)


@given(examples())
@few
def test_a_program_round_trips_through_its_text(example: Example) -> None:
    text = print_program(example.program)
    again = parse_program(text)
    assert equal_up_to_names(again, example.program)
    assert print_program(again) == text


@pytest.mark.slow
@pytest.mark.parametrize("transform", PASSES.values(), ids=PASSES)
@given(examples())
@few
def test_a_pass_keeps_values(transform: Pass, example: Example) -> None:
    passed = transform(example.program)
    verify(passed)
    assert_close(
        interpret(passed, example.arguments), interpret(example.program, example.arguments), tolerance(example.program)
    )


@pytest.mark.slow
@pytest.mark.parametrize("transform", PASSES.values(), ids=PASSES)
@given(examples(most=8))
@few
def test_a_pass_keeps_derivatives(transform: Pass, example: Example) -> None:
    program, arguments = example.program, example.arguments
    for derive, along in ((joint, cotangents(program, 1)), (jvp, tangents(program, 2))):
        derived = derive(program, marks(program))
        expected = interpret(derived, [*arguments, *along])
        for passed in (transform(derived), derive(transform(program), marks(program))):
            verify(passed)
            assert_close(interpret(passed, [*arguments, *along]), expected, tolerance(program))


@given(examples())
@few
def test_the_parts_of_a_split_are_the_whole(example: Example) -> None:
    program, arguments = example.program, example.arguments
    whole = joint(program, marks(program))
    forward, backward = split(whole, len(program.inputs), len(program.outputs))
    for part in (whole, forward, backward):
        verify(part)
    cts = cotangents(program, 3)
    found = interpret(forward, arguments)
    outputs, residuals = found[: len(program.outputs)], found[len(program.outputs) :]
    assert_close(
        [*outputs, *interpret(backward, [*residuals, *cts])], interpret(whole, [*arguments, *cts]), tolerance(program)
    )


# ---- forward against reverse -------------------------------------------------------------------------------------


def assert_dual(program: Program, arguments: Sequence[Any]) -> None:
    """Assert <ct, J dx> = <Jᵀ ct, dx> where both are finite."""
    wrt = marks(program)
    dxs, cts = tangents(program, 4), cotangents(program, 5)
    pushed = interpret(jvp(program, wrt), [*arguments, *dxs])[len(program.outputs) :]
    pulled = interpret(joint(program, wrt), [*arguments, *cts])[len(program.outputs) :]
    with np.errstate(all="ignore"):
        size = max(magnitude(cts, pushed), magnitude(pulled, dxs))
        if np.isfinite(size):
            difference = abs(pairing(cts, pushed) - pairing(pulled, dxs))
            assert difference <= tolerance(program).relative * max(size, 1.0)


@pytest.mark.slow
@given(examples())
@few
def test_forward_and_reverse_are_transposes(example: Example) -> None:
    assert_dual(example.program, example.arguments)


@pytest.mark.slow
@given(examples(most=5))
@few
def test_forward_and_reverse_are_transposes_at_second_order(example: Example) -> None:
    program, arguments = example.program, example.arguments
    wrt = marks(program)
    assert_dual(joint(program, wrt), [*arguments, *cotangents(program, 6)])
    assert_dual(jvp(program, wrt), [*arguments, *tangents(program, 7)])


@pytest.mark.slow
@given(examples(most=5))
@few
def test_second_derivatives_agree_in_every_nesting(example: Example) -> None:
    """Pulling back along ct and differentiating along dx is the same in either order."""
    program, arguments = example.program, example.arguments
    wrt, dxs, cts = marks(program), tangents(program, 8), cotangents(program, 9)
    count = sum(wrt)
    reverse = joint(program, wrt)
    forward_over_reverse = interpret(jvp(reverse, (*wrt, *[False] * len(cts))), [*arguments, *cts, *dxs])[-count:]
    forward = jvp(program, wrt)
    zeros = [np.zeros_like(ct) for ct in cts]
    reverse_over_forward = interpret(joint(forward, (*wrt, *[False] * len(dxs))), [*arguments, *dxs, *zeros, *cts])[
        -count:
    ]
    if all(np.isfinite(x).all() for x in (*forward_over_reverse, *reverse_over_forward)):
        assert_close(forward_over_reverse, reverse_over_forward, tolerance(program))


# ---- native code ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(examples(most=8))
@settings(few, max_examples=25)
def test_native_code_computes_what_the_interpreter_does(example: Example) -> None:
    program, arguments = example.program, example.arguments
    assert_native(program, arguments)
    assert_native(simplify(joint(program, marks(program))), [*arguments, *cotangents(program, 10)])


def assert_native(program: Program, arguments: Sequence[Any]) -> None:
    assert_close(compile_program(program)(arguments), interpret(program, arguments), tolerance(program))
