"""The content of a program as a key: programs with equal keys are the same up to names and source lines.

Values are numbered in the order of their definition; results need no aval, since inference gives it. Constants and
params count to the bit, so that 0.0 and -0.0 make two programs and a NaN equals itself.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable
from typing import Any

from fnad.ir.program import Equation, Params, Program, Var
from fnad.ir.size import is_size


class Content:
    """A key that knows its hash, which takes longer than most of what is done with it."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, *parts: Hashable) -> None:
        self._parts = parts
        self._hash = hash(parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Content) and self._hash == other._hash and self._parts == other._parts
        )


def content_key(program: Program) -> Content:
    """The key of a program, under which what was made of an equal one is found."""
    found: Content | None = program.content
    if found is None:
        found = _content_of(program)
        object.__setattr__(program, "content", found)  # which does not change what it is
    return found


def _content_of(program: Program) -> Content:
    numbers = {var: number for number, var in enumerate(program.inputs)}
    number = len(numbers)
    equations: list[Hashable] = []
    for equation in program.equations:
        equations.append(
            (
                equation.primitive,
                tuple([numbers[atom] if isinstance(atom, Var) else atom.key for atom in equation.operands]),
                key_of_params(equation),
                tuple(map(content_key, equation.regions)) if equation.regions else (),
            )
        )
        for var in equation.results:
            numbers[var] = number
            number += 1
    avals = tuple([(var.aval.dtype, var.aval.shape) for var in program.inputs])
    outputs = tuple([numbers[atom] if isinstance(atom, Var) else atom.key for atom in program.outputs])
    return Content(avals, tuple(equations), outputs)


def key_of_params(equation: Equation) -> Hashable:
    """The params of an equation as a key."""
    if equation.static is None:
        equation.static = params_key(equation.params)
    return equation.static


def params_key(params: Params) -> Hashable:
    """Params as a key."""
    if not params:
        return ()
    return tuple([(name, static_key(params[name])) for name in (params if len(params) == 1 else sorted(params))])


_INT = frozenset({int})


def static_key(value: object) -> Hashable:
    """A param's value as a key: 1, 1.0 and True differ, 0.0 and -0.0 too, and nan equals itself."""
    if type(value) is int or type(value) is str or is_size(value):
        return value
    if isinstance(value, tuple):
        items: tuple[Any, ...] = value
        return items if _INT.issuperset(map(type, items)) else tuple([static_key(item) for item in items])
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float | complex):
        return type(value), struct.pack("dd", value.real, value.imag)
    return type(value), value
