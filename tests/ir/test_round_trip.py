"""`parse(print(p))` is p up to names: over every primitive and sample, and what the transforms make of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from fnad.ir.parser import parse_program
from fnad.ir.primitive import PRIMITIVES, Unknown
from fnad.ir.printer import print_annotated, print_program
from fnad.ir.program import Program
from fnad.ir.types import is_inexact
from fnad.ir.verifier import verify
from fnad.ir.walk import equal_up_to_names
from fnad.transforms.joint import joint
from fnad.transforms.jvp import jvp
from tests.catalogue.cases import BY_NAME, Case, widest_of_each_form
from tests.together import in_groups, some_of


def distinct(cases: Iterable[Case]) -> list[Program]:
    """Return the programs of cases, each once."""
    return list({str(program): program for program in (case.program() for case in cases)}.values())


def inexact(program: Program) -> list[bool]:
    return [is_inexact(aval.dtype) for aval in program.in_avals]


def derived(name: str) -> Iterator[Program]:
    """Yield programs of a primitive, and of one of them, if they are known, derivatives and a second derivative."""
    yield from some_of(distinct(BY_NAME[name]), name, 2)
    if isinstance(PRIMITIVES[name].derivative, Unknown):
        return
    for program in some_of(distinct(widest_of_each_form(BY_NAME[name])), name):
        forward, reverse = jvp(program, inexact(program)), joint(program, inexact(program))
        (transform, first), *_ = some_of([(joint, forward), (jvp, reverse)], name)
        yield from (forward, reverse, transform(first, inexact(first)))


@pytest.mark.slow
@in_groups("name", sorted(PRIMITIVES))
def test_every_primitive_and_its_derivatives(name: str) -> None:
    for program in derived(name):
        verify(program)
        text = print_program(program)
        parsed = parse_program(text)
        assert equal_up_to_names(parsed, program), text
        assert parsed.name == program.name
        assert print_program(parsed) == text
    for program in some_of(distinct(BY_NAME[name]), name):
        assert equal_up_to_names(parse_program(print_annotated(program)), program)
