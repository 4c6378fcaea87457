"""Random programs with loops and branches in one another: what passes keep, and forward against reverse mode."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from fnad.ir.parser import parse_program
from fnad.ir.printer import print_program
from fnad.ir.program import Program
from fnad.ir.types import F32, is_inexact
from fnad.ir.verifier import verify
from fnad.ir.walk import all_equations, equal_up_to_names
from fnad.testing import direction, magnitude, marks, pairing
from fnad.transforms.dce import dce
from fnad.transforms.expand import expand
from fnad.transforms.interpret import interpret
from fnad.transforms.joint import joint
from fnad.transforms.jvp import jvp
from fnad.transforms.pipeline import simplify, sweep
from tests.random_control import random_control_program
from tests.together import in_groups

SEEDS = range(24)


def close(found: Sequence[Any], expected: Sequence[Any], allowed: float) -> None:
    """Compare values to the rounding that another order of operations may make."""
    for one, other in zip(map(np.asarray, found), map(np.asarray, expected), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        scale = np.max(np.abs(other), initial=1.0, where=np.isfinite(other)) if is_inexact(other.dtype) else 0.0
        np.testing.assert_allclose(one, other, rtol=allowed, atol=allowed * scale)


def rounding(program: Program) -> float:
    single = any(var.aval.dtype == F32 for e in all_equations(program) for var in e.results)
    return 1e-3 if single or any(aval.dtype == F32 for aval in program.in_avals) else 1e-8


def directions(avals: Sequence[Any], seed: int) -> list[Any]:
    return [direction(aval, seed + i) for i, aval in enumerate(avals) if is_inexact(aval.dtype)]


@pytest.mark.parametrize("seed", SEEDS)
def test_passes_keep_values_and_derivatives(seed: int) -> None:
    program, arguments = random_control_program(Random(seed), library=True)
    cts, dxs = directions(program.out_avals, seed), directions(program.in_avals, seed)
    for derived, along in ((program, []), (joint(program, marks(program)), cts), (jvp(program, marks(program)), dxs)):
        expected = interpret(derived, [*arguments, *along])
        for change in (dce, sweep, simplify, lambda p: expand(simplify(p)), lambda p: simplify(simplify(p))):
            passed = change(derived)
            verify(passed)
            close(interpret(passed, [*arguments, *along]), expected, rounding(program))
        assert equal_up_to_names(parse_program(print_program(passed)), passed)


@in_groups("seed", SEEDS)
def test_derivatives_of_what_was_simplified(seed: int) -> None:
    program, arguments = random_control_program(Random(seed), library=True)
    for derive, avals in ((joint, program.out_avals), (jvp, program.in_avals)):
        given = [*arguments, *directions(avals, seed)]
        simple = simplify(program)
        close(
            interpret(derive(simple, marks(simple)), given),
            interpret(derive(program, marks(program)), given),
            rounding(program),
        )


def assert_dual(program: Program, arguments: Sequence[Any], seed: int, allowed: float) -> None:
    """Assert <ct, J dx> = <Jᵀ ct, dx>."""
    dxs, cts = directions(program.in_avals, seed), directions(program.out_avals, seed + 50)
    pushed = interpret(jvp(program, marks(program)), [*arguments, *dxs])[len(program.outputs) :]
    pulled = interpret(joint(program, marks(program)), [*arguments, *cts])[len(program.outputs) :]
    size = max(magnitude(cts, pushed), magnitude(pulled, dxs), 1.0)
    assert np.isfinite(size)
    assert abs(pairing(cts, pushed) - pairing(pulled, dxs)) <= allowed * size


@in_groups("seed", SEEDS)
def test_forward_and_reverse_are_transposes_to_second_order(seed: int) -> None:
    program, arguments = random_control_program(Random(seed), library=True)
    assert_dual(program, arguments, seed, rounding(program))
    reverse = simplify(joint(program, marks(program)))
    assert_dual(reverse, [*arguments, *directions(program.out_avals, seed + 7)], seed, rounding(program))
