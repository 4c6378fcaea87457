"""The reference backend: the meaning of a program in NumPy, prepared for repeated runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from fnad.backends.base import Array
from fnad.ir.primitive import StepCount
from fnad.ir.program import Program
from fnad.ir.walk import all_equations
from fnad.lapack_threads import within_settings
from fnad.trace.meters import counting
from fnad.transforms.interpret import NEVER, Run, prepare


def interpreter(program: Program) -> Run:
    """The executor that runs a program equation by equation with NumPy, until a deadline if one is given."""
    prepared, labels = prepare(program), labels_of(program)

    def run(arguments: Sequence[Array], deadline: float = NEVER) -> list[Array]:
        with within_settings(), counting(labels, [[0, -1] for _ in labels]) if labels else nullcontext():
            return fresh(prepared(arguments, deadline), arguments)

    return run


def fresh(results: Sequence[Any], arguments: Sequence[Array]) -> list[Array]:
    """The results as separate arrays; a view, an argument or a repeated array is copied."""
    taken = {id(argument) for argument in arguments}
    arrays: list[Array] = []
    for result in results:
        array = np.asarray(result)
        if not array.flags.owndata or id(array) in taken:
            array = array.copy()
        taken.add(id(array))
        arrays.append(array)
    return arrays


def labels_of(program: Program) -> list[str]:
    """The labels of the loops whose steps a program counts."""
    counts = (e.params["label"] for e in all_equations(program) if isinstance(e.primitive.lower, StepCount))
    return list(dict.fromkeys(counts))
