"""`parse(print(p))` is p up to names: over every primitive and sample, and what the transforms make of them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import numpy as np
import pytest

from fnad.ir.builder import trace
from fnad.ir.parser import parse_program
from fnad.ir.primitive import PRIMITIVES, Primitive, Sample
from fnad.ir.printer import print_annotated, print_program
from fnad.ir.program import Program
from fnad.ir.types import aval_of, is_inexact
from fnad.ir.verifier import verify
from fnad.ir.walk import equal_up_to_names
from fnad.transforms.joint import joint
from fnad.transforms.jvp import jvp

import_module("fnad.ops")  # registers the primitives


def program_of(primitive: Primitive, sample: Sample) -> Program:
    """Return the program of one equation: a primitive on operands like the sample's."""

    def apply(*operands):
        results = primitive(*operands, **sample.params)
        return results if isinstance(results, tuple) else [results]

    return trace(apply, *[aval_of(np.asarray(x)) for x in sample.operands], name=primitive.name)


def inexact(program: Program) -> list[bool]:
    return [is_inexact(aval.dtype) for aval in program.in_avals]


def derived(program: Program) -> Iterator[Program]:
    """Yield a program and its first and second derivatives."""
    forward, reverse = jvp(program, inexact(program)), joint(program, inexact(program))
    yield from (program, forward, reverse, joint(forward, inexact(forward)), jvp(reverse, inexact(reverse)))


@pytest.mark.parametrize("name", sorted(PRIMITIVES))
def test_every_primitive_and_its_derivatives(name: str) -> None:
    for sample in PRIMITIVES[name].samples():
        for program in derived(program_of(PRIMITIVES[name], sample)):
            verify(program)
            text = print_program(program)
            parsed = parse_program(text)
            verify(parsed)
            assert equal_up_to_names(parsed, program), text
            assert parsed.name == program.name
            assert print_program(parsed) == text
            assert print_program(parse_program(print_annotated(program))) == text
