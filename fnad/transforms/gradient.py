"""Reverse mode as the user's functions need it: with outputs that take no cotangent, or with the cotangent 1."""

from __future__ import annotations

from collections.abc import Sequence

from fnad.ir.builder import current_builder, inline, trace
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ops.shape import broadcast_to
from fnad.transforms.joint import joint


def joint_of_first(program: Program, wrt: Sequence[bool], count: int) -> Program:
    """Return the program (x…, ct…) -> (y…, x̄…) in which only the first `count` outputs take cotangents."""
    swept = joint(Program(program.name, program.inputs, program.equations, program.outputs[:count]), wrt)
    if count == len(program.outputs):
        return swept

    def both(*args: Symbol) -> list[Symbol]:
        return [*inline(program, args[: len(program.inputs)]), *inline(swept, args)[count:]]

    return trace(both, *swept.in_avals, name=program.name)


def value_and_gradient(program: Program, wrt: Sequence[bool]) -> Program:
    """Return the program (x…) -> (y…, x̄…), where x̄ is the gradient of the first output, which has one real element.

    There is one x̄ for each input marked in `wrt`. The other outputs are carried along.
    """
    swept = joint_of_first(program, wrt, 1)

    def at_one(*args: Symbol) -> list[Symbol]:
        ct = program.outputs[0].aval
        one = current_builder().literal(ct.dtype.type(1))
        return inline(swept, [*args, broadcast_to(one, ct.shape)])

    return trace(at_one, *program.in_avals, name=program.name)


def gradient(program: Program, wrt: Sequence[bool]) -> Program:
    """Return the same without the first output: (x…) -> (other y…, x̄…)."""
    both = value_and_gradient(program, wrt)
    return Program(both.name, both.inputs, both.equations, both.outputs[1:])
