"""Running a program equation by equation with NumPy, the meaning every backend is held to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.ir.program import Environment, Literal, Program


def interpret(program: Program, arguments: Sequence[Any]) -> list[Any]:
    """Return the outputs of the program on these arrays."""
    env = Environment(program.inputs, arguments)
    with np.errstate(all="ignore"):
        for equation in program.equations:
            operands = [a.value if isinstance(a, Literal) else a for a in env.read(equation.operands)]
            results = equation.primitive.evaluate(*operands, **equation.keywords)
            env.write(equation.results, results if isinstance(results, tuple) else (results,))
    return [a.value if isinstance(a, Literal) else a for a in env.read(program.outputs)]
