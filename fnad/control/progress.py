"""`progress`: the steps of a loop, counted as the program runs, so that another thread can show them.

To count is an effect that may happen again or in vain: it changes nothing that a program or user code reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fnad.errors import DtypeError, ShapeError
from fnad.ir.axes import AxisPairs, Custom
from fnad.ir.primitive import NonDifferentiable, Sample, StepCount
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Aval
from fnad.ops.constructors import primitive
from fnad.ops.reduction import reduce_max
from fnad.ops.shape import copies
from fnad.trace import meters


def _infer(total: Aval, *, label: str) -> Aval:
    if total.dtype != I64:
        raise DtypeError(f"progress takes an i64, got {total}")
    if total.shape:
        raise ShapeError(f"progress takes a scalar, got {total}")
    return total


def _stack(count: int, operands: Sequence[Symbol], stacked: Sequence[bool], **params: Any) -> Symbol:
    """The rows of a stack take a step together; the longest loop has the most steps."""
    return copies(progress(reduce_max(operands[0], axes=(0,)), **params), count)


def _align(*operands: Aval, label: str) -> tuple[AxisPairs, ...]:
    return ((),)


def _samples() -> Iterable[Sample]:
    for total in (3, -1):
        yield Sample((np.array(total),), {"label": meters.LABEL})


@primitive(_infer, NonDifferentiable(), StepCount(), _samples, effect=True, axes=Custom(_stack, _align))
def progress(total: Any, *, label: str) -> Any:
    """The operand, the number of steps of a loop, of which one more is taken."""
    meters.step_of_program(label, int(total))
    return total
