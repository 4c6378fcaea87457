"""The keys of compiled programs on disk: the text of a program, and its surroundings.

A program has no key if its text does not say all that it does: it calls a function of the host, or has a primitive that
is not fnad's own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fnad import disk
from fnad.backends.surroundings import surroundings
from fnad.ir.primitive import OWN
from fnad.ir.printer import print_program
from fnad.ir.program import Equation, Program
from fnad.ir.size import Size
from fnad.ir.walk import all_equations


def key_of(program: Program, donated: Sequence[int]) -> str | None:
    """The key of what is compiled of a program, if it has one."""
    if not all(map(is_told, all_equations(program))):
        return None
    return disk.digest(b"program", surroundings(), repr(tuple(donated)).encode(), print_program(program).encode())


def is_told(equation: Equation) -> bool:
    """True if the text of an equation says what it computes."""
    return equation.primitive.name in OWN and all(map(_is_plain, equation.params.values()))


def _is_plain(value: object) -> bool:
    """True if it is a static value, and no number that stands for something else."""
    return all(map(_is_plain, value)) if type(value) is tuple else type(value) in PLAIN or isinstance(value, np.dtype)


PLAIN = {bool, int, float, str, type(None), Size}
