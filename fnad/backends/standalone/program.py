"""A program that leaves the process: its kernels, the arrays that they take, and the names of arguments and results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fnad.backends.base import Array
from fnad.backends.standalone.target import STANDALONE, WITH_BLAS
from fnad.errors import ExportError
from fnad.ir.program import Program
from fnad.ir.types import Aval
from fnad.kernel.plan import Plan
from fnad.kernel.statements import Kernel, Name
from fnad.kernel.steps import Chunk
from fnad.lower.faults import Fault
from fnad.lower.loop_ir import LibraryCall, effects
from fnad.lower.lowering import lower
from fnad.records import NamedTuple
from fnad.scalar.operation import Dtype, Pointer

MOST_CAPTURED = 2**16
"""The most elements of captured arrays, which become part of the code."""


class Parameter(NamedTuple):
    """An array of the exported function: its name there, and the buffer that it is in the kernels."""

    name: str
    buffer: str
    aval: Aval


class Standalone(NamedTuple):
    """A lowered program; `captured` are arrays that become part of the code, by the names of their buffers."""

    name: str
    plan: Plan
    arguments: list[Parameter]
    results: list[Parameter]
    captured: dict[str, Array]

    @property
    def faults(self) -> Sequence[Fault]:
        """The errors in which a run may end; fault n is reported as the number n."""
        return self.plan.loops.faults

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels, in their order."""
        return [self.plan.kernels[chunk] for chunk in self.plan.chunks]

    @property
    def parameters(self) -> list[Parameter]:
        """The arguments, then the results."""
        return [*self.arguments, *self.results]


def standalone(
    program: Program,
    name: str,
    arguments: Sequence[str],
    results: Sequence[str],
    captured: Sequence[Array],
    *,
    with_blas: bool = False,
) -> Standalone:
    """Lower a program, whose inputs are the arguments, then the captured arrays; C alone can have BLAS beside it.

    Raises `ExportError` for what runs in Python, and `LoweringError` for what has no instructions.
    """
    target = WITH_BLAS if with_blas else STANDALONE
    plan = Plan(lower(program, target), target)
    every = [effect for item in plan.loops.items for effect in effects(item)]
    calls = [effect for effect in every if isinstance(effect, LibraryCall) and effect.routine is None]
    if calls or not all(isinstance(step, Chunk) for step in plan.steps):
        called = dict.fromkeys(f"{call.primitive.name}{f' at {call.source}' if call.source else ''}" for call in calls)
        what = "; ".join(called) or "Python"
        raise ExportError(f"{name} calls what has no code without Python: {what}", remedy=OUTSIDE)
    if plan.loops.residual_stacks:
        raise ExportError(
            f"{name} saves the steps of a loop of unknown length",
            remedy="use fnad.scan or fnad.fori_loop with a fixed number of steps, or forward mode",
        )
    if (size := sum(array.size for array in captured)) > MOST_CAPTURED:
        raise ExportError(
            f"{name} uses arrays of {size} elements from outside; at most {MOST_CAPTURED} become part of the code",
            remedy="give these arrays as arguments",
        )
    inputs = plan.loops.inputs
    given, rest = inputs[: len(arguments)], inputs[len(arguments) :]
    return Standalone(
        name,
        plan,
        [Parameter(word, buffer.name, buffer.aval) for word, buffer in zip(arguments, given, strict=True)],
        [Parameter(word, buffer.name, buffer.aval) for word, buffer in zip(results, plan.loops.outputs, strict=True)],
        {buffer.name: np.ascontiguousarray(array) for buffer, array in zip(rest, captured, strict=True)},
    )


def element_type(parameter: Name) -> Dtype:
    """The dtype of the array that a kernel takes."""
    assert isinstance(parameter.kind, Pointer)
    return parameter.kind.dtype


OUTSIDE = "replace the call by one that compiles, such as a product or a solver of fnad, or export the parts around it"
